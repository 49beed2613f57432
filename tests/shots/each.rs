//! The promise of `--each`: one part for each file or folder that matches, validated and merged one by one; what failed is tried
//! again once, at the end, and named if it fails again.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde_json::{Value, json};

use super::basics::{call, call_of, column, prompt, rows, shoot, step};
use super::parts::{breaks_down, check_tables, goal, outcome, write};
use crate::support::env::Env;
use crate::support::git::{git, init};
use crate::support::model_server::{ModelServer, Request, Response};

const NEW: &str = "! grep -q old {path}/code.txt";

/// A repository of modules that all say `old`.
fn modules(server: &ModelServer, count: usize) -> Env {
    let env = Env::with(server).file("README", "read me\n").file("modules/list.txt", "a file beside the modules\n");
    let env = (1..=count).fold(env, |env, number| {
        env.file(&format!("modules/m{number:02}/code.txt"), format!("module {number}\nold\n"))
    });
    init(&env.workspace());
    env
}

/// The folder of the part that an attempt has.
fn path(request: &Request) -> String {
    goal(request).split(": ").nth(1).unwrap_or_default().to_owned()
}

/// Counts the attempts at each part.
#[derive(Default)]
struct Attempts(Mutex<BTreeMap<String, usize>>);

impl Attempts {
    /// Which attempt at its part this is, from 1.
    fn number(&self, request: &Request) -> usize {
        let mut all = self.0.lock().expect("nobody panics while it is held");
        let count = all.entry(path(request)).or_default();
        if step(request) == 0 {
            *count += 1;
        }
        *count
    }
}

fn renew(request: &Request) -> Response {
    match step(request) {
        0 => call("read_file", &json!({ "path": format!("{}/code.txt", path(request)) })),
        1 => call(
            "replace_in_file",
            &json!({ "path": format!("{}/code.txt", path(request)), "old": "old", "new": "new" }),
        ),
        _ => Response::text("It says new."),
    }
}

#[test]
fn fifty_modules_are_fifty_parts_and_those_that_fail_are_tried_again_at_the_end() {
    let attempts = Attempts::default();
    let server = ModelServer::start(move |request| {
        assert!(!breaks_down(request));
        let number = attempts.number(request);
        match (path(request).as_str(), step(request)) {
            ("modules/m07" | "modules/m31", 0) if number == 1 => write("wrong.txt", &path(request)),
            ("modules/m07" | "modules/m31", _) if number == 1 => Response::text("I did not find it."),
            _ => renew(request),
        }
    });
    let env = modules(&server, 50);
    let more = ["--each", "modules/*/", "--each-validate", NEW, "--validate", "! grep -rq old modules"];
    let more = [&more[..], &["--parallel", "8", "--max-breakdowns", "0"]].concat();
    let ended = call_of(&env, &more).patient().go();
    assert_eq!(outcome(&ended)["status"], "success", "{ended:?}");

    let goals = rows(&env, "goal");
    assert_eq!(goals.len(), 51);
    for (at, part) in goals.iter().enumerate().skip(1) {
        let found = [&part["parent_goal_id"], &part["source"], &part["created_by_attempt_id"], &part["order"]];
        assert_eq!(found, [&json!(1), &json!("cli"), &Value::Null, &json!(at)]);
    }
    assert_eq!(goals[7]["goal_text"], "say done in work.txt: modules/m07");
    assert_eq!(column(&env, "goal_end", "status"), vec!["success"; 51]);
    assert_eq!(column(&env, "validation_step", "source"), vec!["cli"; 51]);
    assert_eq!(column(&env, "validation_step", "command")[7], "! grep -q old modules/m07/code.txt");
    assert_eq!(rows(&env, "attempt").len(), 52);
    assert!(server.most_at_once() <= 8, "{}", server.most_at_once());
    // Those that failed were tried when all others were done.
    let last: Vec<Value> = column(&env, "attempt", "goal_id").split_off(50);
    assert!(last.contains(&json!(8)) && last.contains(&json!(32)), "{last:?}");
    let said: String = ended.of_type("said").iter().map(|event| event["markdown"].to_string()).collect();
    assert!(said.contains("2 of 50 parts failed, and are tried again: modules/m07, modules/m31"), "{ended:?}");
    // Each part has changed its own file, whatever was merged meanwhile.
    let texts = ended.of_type("said");
    let shown = texts.iter().filter_map(|event| event["markdown"].as_str()).collect::<Vec<_>>().join("\n");
    let of_parts = shown.lines().filter(|line| line.starts_with("success ") && line.contains(": modules/m"));
    let parts: Vec<Vec<&str>> = of_parts.map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(parts.len(), 50, "{shown}");
    assert!(parts.iter().all(|part| part[2..4] == ["1", "+1/-1"]), "{shown}");
    // What holds of each part is said once.
    assert_eq!(shown.matches("tests not counted: ").count(), 1, "{shown}");
    // The tree has those that are in work, each with its attempts, and counts the others.
    let trees: Vec<String> =
        ended.of_type("status").iter().map(|event| event["text"].as_str().unwrap_or_default().to_owned()).collect();
    let longest = trees.iter().max_by_key(|tree| tree.lines().count()).expect("it is shown");
    assert!(longest.lines().count() < 50, "{longest}");
    assert!(
        trees.iter().any(|tree| tree.lines().any(|line| line.contains(" reached  ") && line.ends_with(" to come"))),
        "{longest}"
    );

    let work = env.workspace();
    assert_eq!(git(&work, ["grep", "-l", "new", "nietz/r1", "--", "modules"]).lines().count(), 50);
    // Each was merged by itself, and whatever stands on the goal's branch was validated as it stands.
    let merges = git(&work, ["log", "--first-parent", "--format=%s", "main..nietz/r1"]);
    assert_eq!(merges.lines().filter(|line| line.starts_with("Merge sub-goal ")).count(), 50, "{merges}");
    check_tables(&env);
}

#[test]
fn what_fails_twice_is_named_and_all_else_is_merged() {
    let server = ModelServer::start(|request| match (path(request).as_str(), step(request)) {
        ("modules/m2" | "modules/m02", 0) => write("wrong.txt", &prompt(request)),
        ("modules/m02", _) => Response::text("I did not find it."),
        _ => renew(request),
    });
    let env = modules(&server, 3);
    let ended = shoot(&env, &["--each", "modules/m*/", "--each-validate", NEW, "--max-breakdowns", "0"]);
    let result = outcome(&ended);
    assert_eq!(
        (result["status"].as_str(), result["detail"].as_str()),
        (Some("failed"), Some("1 of 3 parts were not reached: modules/m02")),
        "{ended:?}"
    );
    assert_eq!(column(&env, "goal_end", "status"), ["success", "success", "failed", "failed"]);
    let changed = git(&env.workspace(), ["diff", "--name-only", "main", "nietz/r1"]);
    assert_eq!(changed, "modules/m01/code.txt\nmodules/m03/code.txt");
    check_tables(&env);
}

#[test]
fn without_commands_of_their_own_parts_are_held_to_what_passes_now_and_the_whole_to_all() {
    // The suite passes before and after; that nothing is old any more can only be said at the end.
    let server = ModelServer::start(renew);
    let env = modules(&server, 3);
    let more = ["--validate", "test -e README", "--validate", "! grep -rq old modules", "--max-breakdowns", "0"];
    let ended = shoot(&env, &[&["--each", "modules/*/"], &more[..]].concat());
    assert_eq!(outcome(&ended)["status"], "success", "{ended:?}");
    let steps: Vec<(Value, Value)> = rows(&env, "validation_step")
        .iter()
        .map(|row| (row["goal_id"].clone(), row["command"].clone()))
        .filter(|(goal, _)| goal != &json!(1))
        .collect();
    assert_eq!(steps, [2, 3, 4].map(|goal| (json!(goal), json!("test -e README"))));
}

#[test]
fn files_are_parts_too_and_their_names_reach_a_shell_as_they_are() {
    let server = ModelServer::start(|request| match step(request) {
        0 => call("replace_in_file", &json!({ "path": path(request), "old": "old", "new": "new" })),
        _ => Response::text("It says new."),
    });
    let env =
        Env::with(&server).file("src/it's $HOME.txt", "old\n").file("src/b.txt", "old\n").file("src/c/d.txt", "old\n");
    init(&env.workspace());
    let more = ["--each", "src/*.txt", "--each-validate", "grep -qx new {path}", "--max-breakdowns", "0"];
    let ended = shoot(&env, &more);
    assert_eq!(outcome(&ended)["status"], "success", "{ended:?}");
    assert_eq!(
        column(&env, "validation_step", "command"),
        ["grep -qx new src/b.txt", "grep -qx new 'src/it'\\''s $HOME.txt'"]
    );
    // Nothing validates the whole: what validates each part does, on all of them together.
    let last = rows(&env, "attempt_result").pop().expect("there is one")["id"].clone();
    let runs = rows(&env, "validation_run");
    let of_whole: Vec<&Value> = runs.iter().rev().take(2).map(|run| &run["attempt_result_id"]).collect();
    assert!(of_whole.iter().all(|id| *id == of_whole[0]) && runs.len() >= 4, "{last} {runs:?}");
}

#[test]
fn what_cannot_be_is_said_before_the_first_call() {
    let server = ModelServer::start(|_| unreachable!("nobody is to be called"));
    let cases: [(&[&str], &str); 7] = [
        (
            &["--each", "modules/*/", "--validate", "test -e README"],
            "nothing can show that a part of --each is reached: all of --validate passes now",
        ),
        (&["--each", "nowhere/*"], "--each 'nowhere/*' matches nothing in the commit that this starts from"),
        (&["--each", "modules/*/"], "nothing validates a part of --each: there is no --validate"),
        (
            &["--each", "modules/*/", "--validate", "! grep -rq old modules"],
            "nothing validates a part of --each: what --validate names fails now, and may do so until all of them are done",
        ),
        (&["--each-validate", "grep -q new {path}"], "--each-validate is for the parts of --each, and there are none"),
        (
            &["--each", "modules/*/", "--each-validate", "grep -q new all.txt"],
            "--each-validate `grep -q new all.txt` is the same for all parts",
        ),
        (
            &["--each", "modules/*/", "--each-validate", "grep -q new {path}/code.txt", "--no-run"],
            "the command `grep -q new modules/m01/code.txt` is not allowed",
        ),
    ];
    for (more, why) in cases {
        let env = modules(&server, 2);
        let ended = shoot(&env, more).exits(2);
        let told = ended.ending()["failure"].to_string();
        assert!(told.contains(why), "{why}\n{told}");
        assert_eq!(git(&env.workspace(), ["branch", "--list", "nietz/*"]), "", "{why}");
    }
}
