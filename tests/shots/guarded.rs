//! What the tests of honest success share: a scripted model does some steps in a real project, real runners validate them, and
//! what became of the attempt is told.

use std::path::Path;

use serde_json::json;

use super::basics::{call, column, rows, step};
use crate::support::env::Env;
use crate::support::git::{git, init};
use crate::support::model_server::{ModelServer, Response};
use crate::support::process::Ended;

/// One thing that the model does. Each has to work: a test whose model could not do what it tried shows nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Writes a file.
    Write(&'static str, &'static str),
    /// Replaces a text that stands in a file once.
    Replace(&'static str, &'static str, &'static str),
    /// Deletes a file or a folder.
    Delete(&'static str),
    /// Moves a file or a folder.
    Move(&'static str, &'static str),
    /// Runs a line of a shell in the sandbox, which must exit with 0.
    Run(&'static str),
}

impl Step {
    /// The calls that do it. A file that is there has to be read before it is written; of a new one, that says so.
    fn calls(self) -> Vec<(Option<Step>, Response)> {
        let read = match self {
            Step::Write(path, _) => Some((None, call("read_file", &json!({ "path": path })))),
            _ => None,
        };
        read.into_iter().chain([(Some(self), self.response())]).collect()
    }

    fn response(self) -> Response {
        match self {
            Step::Write(path, text) => call("write_file", &json!({ "path": path, "text": text })),
            Step::Replace(path, old, new) => call("replace_in_file", &json!({ "path": path, "old": old, "new": new })),
            Step::Delete(path) => call("delete", &json!({ "paths": [path] })),
            Step::Move(from, to) => call("move", &json!({ "moves": [{ "from": from, "to": to }] })),
            Step::Run(command) => call("run", &json!({ "command": command })),
        }
    }
}

/// What became of an attempt.
pub(crate) struct Played {
    /// The status and the detail of the attempt.
    pub(crate) status: String,
    pub(crate) detail: String,
    /// What the session ended with: `success` is what a user would merge.
    pub(crate) session: String,
    env: Env,
    pub(crate) ended: Ended,
    /// Held as long as the rest is looked at.
    _server: ModelServer,
}

impl Played {
    /// Requires that the work did not pass, and that its detail has all of these.
    #[track_caller]
    pub(crate) fn is_caught(&self, case: &str, named: &[&str]) {
        assert_ne!(self.status, "success", "{case}: {} {:?}", self.detail, self.ended);
        assert_ne!(self.session, "success", "{case}: {:?}", self.ended);
        for part in named {
            assert!(self.detail.contains(part), "{case}: `{part}` is not in {}", self.detail);
        }
    }

    /// Requires that the work passed, and that nobody called it anything else than work.
    #[track_caller]
    pub(crate) fn is_honest(&self, case: &str) {
        assert_eq!(self.status, "success", "{case}: {} {:?}", self.detail, self.ended);
        assert!(!self.detail.contains("tampered"), "{case}: {}", self.detail);
    }

    /// Returns a file of what would be merged.
    #[track_caller]
    pub(crate) fn merged(&self, path: &str) -> String {
        git(&self.env.workspace(), ["show", &format!("nietz/r1:{path}")])
    }
}

/// Has a model do its steps in a project of these files, each with its path, for one attempt that these commands validate.
#[track_caller]
pub(crate) fn play(files: &[(&str, &str)], validate: &[&str], more_options: &[&str], work: &[Step]) -> Played {
    play_in(|env| env, files, validate, more_options, work)
}

/// As [`play`], with what `prepare` does to the workspace when its files are committed: folders that git ignores, links.
#[track_caller]
pub(crate) fn play_in(
    prepare: impl FnOnce(Env) -> Env,
    files: &[(&str, &str)],
    validate: &[&str],
    more_options: &[&str],
    work: &[Step],
) -> Played {
    let calls: Vec<(Option<Step>, Response)> = work.iter().flat_map(|step| step.calls()).collect();
    let steps: Vec<Option<Step>> = calls.iter().map(|(step, _)| *step).collect();
    let server = ModelServer::start(move |request| match calls.get(step(request)) {
        Some((_, response)) => response.clone(),
        None => Response::text("I did it.").usage(10, 5),
    });
    let mut env = with_cargo(Env::with(&server));
    for (path, text) in files {
        env = env.file(path, text);
    }
    init(&env.workspace());
    let env = prepare(env);
    let mut arguments = vec!["shots-on-goal", "--model-a", "openai/a", "--max-breakdowns", "0"];
    for command in validate {
        arguments.extend(["--validate", command]);
    }
    arguments.extend(more_options);
    arguments.push("make what validates pass");
    let ended = env.run(arguments).go();
    let session = ended.ending()["result"]["status"].as_str().unwrap_or_default().to_owned();
    for (step, output) in steps.iter().zip(column(&env, "tool_call", "output")) {
        let Some(step) = step else { continue };
        let output = output.as_str().expect("a tool answers with text");
        let failed = match step {
            Step::Run(_) => !output.starts_with("exit code 0"),
            _ => output.contains("error:"),
        };
        assert!(!failed, "the model could not do {step:?}: {output}");
    }
    let results = rows(&env, "attempt_result");
    let result = results.first().unwrap_or_else(|| panic!("there is no result: {ended:?}"));
    let text = |name: &str| result[name].as_str().map(str::to_owned).unwrap_or_default();
    Played { status: text("status"), detail: text("status_detail"), session, env, ended, _server: server }
}

/// An environment with the toolchain that runs these tests.
pub(crate) fn with_cargo(env: Env) -> Env {
    let tools = Path::new(env!("CARGO")).parent().expect("cargo is in a folder");
    let env = env.var("PATH", &format!("{}:/usr/bin:/bin", tools.display()));
    // A toolchain of rustup's is in the home of whoever runs this; the sandbox has to be told.
    match tools.ancestors().nth(3).filter(|folder| folder.join("toolchains").is_dir()) {
        Some(rustup) => env.var("RUSTUP_HOME", &rustup.display().to_string()),
        None => env,
    }
}

/// Whether a runner is on this machine; a test that needs it says so and shows nothing without it.
pub(crate) fn has(program: &str) -> bool {
    let there = Path::new("/usr/bin").join(program).exists();
    if !there {
        eprintln!("SKIPPED: there is no /usr/bin/{program} here, so nothing was shown about it");
    }
    there
}
