//! The debug memory as its users meet it: real projects with seeded bugs, real test runners, and a scripted model.

mod advice;
pub(crate) mod asked;
mod cassettes;
mod endings;
mod fields;
mod judged;
mod outputs;
mod pairs;
mod places;
mod projects;
mod prompts;
mod recall;
mod reports;
mod samples;
mod small;
mod strict;

use std::path::Path;

use serde_json::{Value, json};

use crate::support::env::Env;
use crate::support::git::init;
use crate::support::model_server::{ModelServer, Request, Response};
use crate::support::process::Ended;

const FOLDER: &str = ".nietz/debug-memory";

/// A repository with these files.
fn project(server: &ModelServer, files: &[(&str, &str)]) -> Env {
    let mut env = Env::with(server);
    for (path, text) in files {
        env = env.file(path, text);
    }
    init(&env.workspace());
    env
}

fn debug(env: &Env, run: &str, arguments: &[&str]) -> Ended {
    env.run(["debug-memory"].into_iter().chain(arguments.iter().copied())).var("NIETZ_RUN", run).go()
}

/// The memory file of a session, as JSON.
fn session(env: &Env, folder: &str, id: &str) -> Value {
    serde_yaml::from_str(&env.read(&format!("{FOLDER}/{folder}/{id}.yaml"))).expect("it is YAML")
}

/// The result of a session that is done, whatever its answer is: what needs a person, or what was skipped, ends with 8.
fn outcome(ended: &Ended) -> Value {
    let result = ended.ending()["result"].clone();
    let no = result["status"] == "escalated" || !result["trigger"].is_null();
    assert_eq!(ended.code, Some(if no { 8 } else { 0 }), "{ended:?}");
    result
}

/// The memory file of a run that is done, checked by the program.
fn memory_of(env: &Env, ended: &Ended) -> Value {
    let result = outcome(ended);
    let id = result["session"].as_str().expect("it has a session");
    env.nietz(["check", &format!("{FOLDER}/sessions/{id}.yaml")]).go().exits(0);
    session(env, "sessions", id)
}

/// What the conversation began with.
fn task(request: &Request) -> String {
    request.turns().into_iter().find(|(role, _)| role == "user").expect("there is a prompt").1
}

/// How many replies of the model this conversation has.
fn step(request: &Request) -> usize {
    request.turns().iter().filter(|(role, _)| role == "assistant").count()
}

fn is_analysis(request: &Request) -> bool {
    task(request).starts_with("You find out why tests fail")
}

/// Which attempt of the session this is, from 0: what was tried before is told.
fn attempt(request: &Request) -> usize {
    let task = task(request);
    task.matches("It did not help: ").count() + task.matches("It helped: ").count()
}

/// An analysis that names a file.
fn analysis(file: &str, strategy: &str) -> Response {
    Response::text(
        json!({
            "root_cause": "the code does not do what its test asks for",
            "root_cause_category": "null_undefined_access",
            "location": { "file": file, "line": 1 },
            "fix_strategy": strategy,
            "confidence": 0.8,
            "pattern": "access_without_check",
            "fix_template": "Check that there is a value before its parts are used",
        })
        .to_string(),
    )
    .usage(10, 5)
}

fn call(name: &str, arguments: &Value) -> Response {
    Response::text("").usage(10, 5).tool_call("t", name, &arguments.to_string())
}

/// A model that makes one replacement in a file for each attempt, by what its strategy says.
pub(crate) fn edits(
    file: &'static str,
    edits: &'static [(&'static str, &'static str)],
) -> impl Fn(&Request) -> Response {
    move |request| {
        if is_analysis(request) {
            let (old, new) = edits[attempt(request).min(edits.len() - 1)];
            return analysis(file, &format!("put `{new}` in the place of `{old}` there"));
        }
        let task = task(request);
        let edit = edits.iter().find(|(old, new)| task.contains(&format!("put `{new}` in the place of `{old}` there")));
        match (step(request), edit) {
            // A small mind has no tools, and writes its change down.
            (_, Some((old, new))) if task.contains("`edits`, each with the `path`") => {
                Response::text(json!({ "edits": [{ "path": file, "old": old, "new": new }] }).to_string()).usage(10, 5)
            }
            (0, Some((old, new))) => call("replace_in_file", &json!({ "path": file, "old": old, "new": new })),
            _ => Response::text("I changed it.").usage(10, 5),
        }
    }
}

/// Tells whether a runtime is on this machine; a test that needs it says so and does nothing without it.
fn has(program: &str) -> bool {
    let there = Path::new("/usr/bin").join(program).exists();
    if !there {
        eprintln!("SKIPPED: there is no /usr/bin/{program} here, so nothing was shown about it");
    }
    there
}
