//! The promise: what is recalled is true and fits. Only what helped is told as help, what did not is told as that, and what is
//! alike on the surface alone is not offered.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::{FOLDER, analysis, debug, has, is_analysis, memory_of, project, session, step, task};
use crate::debug::desk::usual;
use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Request, Response};
use crate::support::process::Ended;

/// A session about a file, as the specification alone has it: one failure, one cause, one fix, and what the tests showed then.
pub(super) struct Past {
    pub(super) id: u32,
    pub(super) day: &'static str,
    pub(super) file: &'static str,
    pub(super) test: &'static str,
    pub(super) error: (&'static str, &'static str),
    pub(super) cause: &'static str,
    pub(super) fix: &'static str,
    pub(super) verification: &'static str,
    /// Of both runs: total, failed, skipped.
    pub(super) runs: [(u32, u32, u32); 2],
}

pub(super) const PORT: Past = Past {
    id: 1,
    day: "2026-01-05",
    file: "net/urls.py",
    test: "tests/test_urls.py::TestPort::test_https_default",
    error: ("AssertionError", "AssertionError: 80 != 443"),
    cause: "split() takes 80 for every address without a port and never looks at the scheme",
    fix: "look the default port up by scheme, with 443 for https",
    verification: "passed",
    runs: [(9, 1, 0), (9, 0, 0)],
};

impl Past {
    pub(super) fn id(&self) -> String {
        format!("00000000-0000-4000-8000-{:012}", self.id)
    }

    pub(super) fn value(&self) -> Value {
        let run = |(total, failed, skipped): (u32, u32, u32)| json!({ "total": total, "passed": total - failed - skipped, "failed": failed, "skipped": skipped });
        json!({
            "session_id": self.id(), "file_path": self.file, "status": "passed",
            "created_at": format!("{}T08:00:00Z", self.day), "updated_at": format!("{}T09:00:00Z", self.day),
            "executions": [
                {
                    "attempt": 1, "timestamp": format!("{}T08:00:00Z", self.day), "code_hash": "0".repeat(64),
                    "test_results": run(self.runs[0]),
                    "failures": [{ "test_name": self.test, "error_type": self.error.0, "error_message": self.error.1 }],
                    "analysis": { "root_cause": self.cause, "fix_strategy": self.fix, "root_cause_category": "logic_error" },
                    "fix_applied": {
                        "description": self.fix, "files_changed": [self.file], "verification": self.verification,
                    },
                },
                {
                    "attempt": 2, "timestamp": format!("{}T08:30:00Z", self.day), "code_hash": "1".repeat(64),
                    "test_results": run(self.runs[1]),
                },
            ],
        })
    }

    pub(super) fn put(&self, env: &Env) -> String {
        put(env, &self.value())
    }
}

/// Writes a session and returns its path.
pub(super) fn put(env: &Env, session: &Value) -> String {
    let path = format!("{FOLDER}/sessions/{}.yaml", session["session_id"].as_str().expect("it has an id"));
    env.write(&path, serde_yaml::to_string(session).expect("it can be written"));
    path
}

/// A name for a run that no other one of this test has.
fn run_name() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    format!("n{}", NEXT.fetch_add(1, Ordering::SeqCst))
}

/// What the debug memory asks a person who describes a problem.
fn asked_about(env: &Env, problem: &str, language: &str) -> String {
    let server = ModelServer::start(|request| Response::text(usual(request)));
    let call = env.run(["debug", problem, "--lang", language]).var("OPENAI_BASE_URL", &server.url());
    let ended = call.var("NIETZ_RUN", &run_name()).stdin("exit\n\n").go();
    let said = ended.of_type("said").into_iter().map(|event| event["markdown"].as_str().unwrap_or_default().to_owned());
    said.filter(|line| line.contains("- On ") || line.contains("- Le ")).collect()
}

/// Copies the bundled flows into a workspace, beside a flow of the test.
pub(super) fn with_flows(name: &str, source: &str) -> Env {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut env = Env::new();
    for folder in ["flows/common", "flows/debug-memory", "tests/debug_memory/pairs"] {
        for entry in walkdir::WalkDir::new(repository.join(folder)) {
            let entry = entry.expect("it can be listed");
            if entry.file_type().is_file() {
                let below = entry.path().strip_prefix(repository).expect("it is below").to_str().expect("UTF-8");
                let below = below.replace("tests/debug_memory/pairs", "flows/pairs");
                env = env.file(&below, std::fs::read(entry.path()).expect("it can be read"));
            }
        }
    }
    env.flow(name, source)
}

/// What a model is told of a failure by a memory.
fn told(env: &Env, failure: &Value) -> String {
    env.write("failure.json", failure.to_string());
    let ended = env.nietz(["run", "--json", "flows/told.lua"]).var("NIETZ_RUN", &run_name()).go().exits(0);
    ended.result()["told"].as_str().expect("it is told").to_owned()
}

const TOLD: &str = r#"
local json = require("@nietz/json")
local files = require("@nietz/files")
local recall = require("./common/memory/recall")
return require("@nietz").flow({
	name = "told",
	summary = "What a model is told",
	permissions = { files = true },
	collections = recall.collections,
	run = function()
		local failures = { json.decode(files.read("failure.json").text) }
		local found = recall.find_similar(failures)
		return { told = recall.for_model(found, recall.offered_patterns(failures, found)) }
	end,
})
"#;

#[test]
fn a_problem_in_words_finds_the_session_about_exactly_that() {
    let env = Env::new();
    PORT.put(&env);
    Past {
        id: 2,
        file: "net/redirects.py",
        test: "tests/test_history.py::test_redirects",
        cause: "follow() stops one hop too early",
        fix: "go on until the answer is no redirect",
        ..PORT
    }
    .put(&env);
    insta::assert_snapshot!(asked_about(&env, "the port of an https url is wrong", "en"), @r"
    Something like it was here before:

    - On 2026-01-05 an AssertionError like this one, in net/urls.py, was put down to an error in the logic. What would you see now if it were the same again, and what if it were not?
    ");
    insta::assert_snapshot!(asked_about(&env, "the port of an https url is wrong", "fr"), @r"
    Quelque chose de semblable a déjà eu lieu :

    - Le 2026-01-05, une erreur AssertionError semblable à celle-ci, dans net/urls.py, a été attribuée à ceci : une erreur de logique. Que verrais-tu maintenant si c'était de nouveau cela, et que verrais-tu sinon ?
    ");
    assert_eq!(asked_about(&env, "the cache returns stale prices after a deploy", "en"), "");
}

#[test]
fn a_session_that_named_no_file_says_so_to_a_person_and_to_a_model() {
    let env = Env::new();
    Past { file: "unknown", ..PORT }.put(&env);
    let asked = asked_about(&env, "the port of an https url is wrong", "en");
    assert!(
        asked.contains("an AssertionError like this one, in a file that was not recorded, was put down"),
        "{asked}"
    );
    let asked = asked_about(&env, "the port of an https url is wrong", "fr");
    assert!(asked.contains("semblable à celle-ci, dans un fichier qui n'a pas été noté, a été"), "{asked}");
    let env = with_flows("told", TOLD);
    Past { file: "unknown", ..PORT }.put(&env);
    let failure = json!({ "test_name": PORT.test, "error_type": "AssertionError", "error_message": "80 != 443" });
    let said = told(&env, &failure);
    assert!(said.contains("- 2026-01-05, a file that was not recorded: AssertionError in "), "{said}");
}

#[test]
fn two_assertions_that_compare_something_are_not_alike_by_that() {
    let env = with_flows("told", TOLD);
    PORT.put(&env);
    let other = json!({ "test_name": "tests/test_urls.py::TestHistory::test_count", "test_file": "tests/test_urls.py",
        "error_type": "AssertionError", "error_message": "AssertionError: 2 != 3" });
    assert_eq!(told(&env, &other), "");
    let again = json!({ "test_name": PORT.test, "test_file": "tests/test_urls.py",
        "error_type": "AssertionError", "error_message": "AssertionError: 80 != 8443" });
    insta::assert_snapshot!(told(&env, &again), @r"
    Past observations from this project's debug memory. They were true then and may not be now: check before you rely on one.

    - 2026-01-05, net/urls.py: AssertionError in tests/test_urls.py::TestPort::test_https_default: AssertionError: 80 != 443
      Cause then (logic error): split() takes 80 for every address without a port and never looks at the scheme
      What helped: look the default port up by scheme, with 443 for https (all tests passed after it)
    ");
}

#[test]
fn what_did_not_help_is_told_as_that_with_what_the_tests_showed() {
    let env = with_flows("told", TOLD);
    let failure =
        json!({ "test_name": PORT.test, "error_type": "AssertionError", "error_message": "AssertionError: 80 != 443" });
    // Recorded as a help, although a test was gone, skipped or failed newly after it: by whatever program.
    let mut seen = Vec::new();
    for (runs, more) in [
        ([(9, 1, 0), (8, 0, 0)], None),
        ([(9, 1, 0), (9, 0, 1)], None),
        ([(9, 1, 0), (9, 1, 0)], Some("test_ftp_default")),
        ([(9, 1, 0), (9, 1, 0)], Some(PORT.test)),
    ] {
        let past = Past { runs, fix: "delete the test that fails there", ..PORT };
        let mut value = past.value();
        if let Some(test) = more {
            value["executions"][1]["failures"] =
                json!([{ "test_name": test, "error_type": "AssertionError", "error_message": "21 != 80" }]);
        }
        put(&env, &value);
        let all = told(&env, &failure);
        assert!(!all.contains("What helped"), "{all}");
        seen.push(all.lines().last().unwrap_or_default().trim().to_owned());
    }
    insta::assert_snapshot!(seen.join("\n"), @r"
    What did NOT help: delete the test that fails there (1 test was gone after it)
    What did NOT help: delete the test that fails there (1 more test was skipped after it)
    What did NOT help: delete the test that fails there (test_ftp_default failed after it and not before)
    What did NOT help: delete the test that fails there (tests/test_urls.py::TestPort::test_https_default failed as before)
    ");
}

#[test]
fn what_was_tried_before_goes_with_what_helped_and_nothing_runs_together() {
    let env = with_flows("told", TOLD);
    let mut value = Past {
        runs: [(9, 1, 0), (9, 1, 0)],
        verification: "failed",
        fix: "take 443 where the path begins with /secure",
        ..PORT
    }
    .value();
    let failed = value["executions"][0].clone();
    let mut helped = Past { ..PORT }.value()["executions"].as_array().expect("a list").clone();
    value["executions"][1]["failures"] = failed["failures"].clone();
    helped[0]["attempt"] = json!(2);
    helped[0]["timestamp"] = json!("2026-01-05T08:30:00Z");
    helped[1]["attempt"] = json!(3);
    helped[1]["timestamp"] = json!("2026-01-05T08:40:00Z");
    value["executions"] = json!([failed, helped[0], helped[1]]);
    value["learnings"] = json!({ "patterns_identified": [{ "pattern": "default_without_scheme", "category": "logic_error",
        "frequency": 2, "effectiveness": 0.75, "fix_template": "Choose the default\nby scheme" }] });
    put(&env, &value);
    Past { id: 3, day: "2026-01-06", runs: [(9, 1, 0), (9, 1, 0)], verification: "pending", ..PORT }.put(&env);
    let failure =
        json!({ "test_name": PORT.test, "error_type": "AssertionError", "error_message": "AssertionError: 80 != 443" });
    insta::assert_snapshot!(told(&env, &failure), @r"
    Past observations from this project's debug memory. They were true then and may not be now: check before you rely on one.

    - 2026-01-05, net/urls.py: AssertionError in tests/test_urls.py::TestPort::test_https_default: AssertionError: 80 != 443
      Cause then (logic error): split() takes 80 for every address without a port and never looks at the scheme
      What helped: look the default port up by scheme, with 443 for https (all tests passed after it)
      Tried before that, did NOT help: take 443 where the path begins with /secure (tests/test_urls.py::TestPort::test_https_default failed as before)
    - 2026-01-06, net/urls.py: AssertionError in tests/test_urls.py::TestPort::test_https_default: AssertionError: 80 != 443
      Cause then (logic error): split() takes 80 for every address without a port and never looks at the scheme
      Proposed, never tried: look the default port up by scheme, with 443 for https
    - Known pattern `default_without_scheme` (logic error), used 2 times, helped in 75 %, last on 2026-01-05: Choose the default by scheme
    ");
}

#[test]
fn templates_are_summed_over_sessions_and_are_the_same_everywhere() {
    let env = Env::new();
    let learnt = |id: u32, day: &'static str, frequency: u32, effectiveness: f64| {
        let mut value = Past { id, day, ..PORT }.value();
        value["learnings"] = json!({ "patterns_identified": [{ "pattern": "seldom", "category": "logic_error",
            "frequency": frequency, "effectiveness": effectiveness, "fix_template": "Do it as always" }] });
        put(&env, &value);
    };
    learnt(1, "2026-01-05", 1, 1.0);
    let templates = |run: &str| {
        debug(&env, run, &["query", "get_fix_templates", "--category", "logic_error"]).result()["rows"].clone()
    };
    assert_eq!(templates("q1"), json!([["seldom", "logic_error", 1, 1, "Do it as always"]]));
    // It helped once, and four times not: that is no template, as `patterns` has it.
    learnt(2, "2026-01-06", 4, 0.0);
    assert_eq!(templates("q2"), json!([]));
    let patterns = env.nietz(["run", "debug-memory", "patterns", "--all"]).var("NIETZ_RUN", &run_name()).go().exits(0);
    assert!(patterns.stdout.contains("worked 1 of 5 times"), "{patterns:?}");
    assert!(patterns.stdout.contains("not offered: it seldom helps"), "{patterns:?}");
}

/// A session as it was written before our key had a version: it says who wrote it.
fn of_before(past: &Past) -> Value {
    let mut value = past.value();
    value["metadata"] = json!({ "agent": "openai/test", "task_id": "r1" });
    value
}

#[test]
fn entries_of_before_are_judged_anew_from_what_they_recorded() {
    let env = Env::new();
    // A test was deleted: recorded as a help.
    let mut deleted = of_before(&Past { runs: [(9, 1, 0), (8, 0, 0)], ..PORT });
    deleted["learnings"] = json!({ "patterns_identified": [{ "pattern": "delete_it", "category": "logic_error",
        "frequency": 1, "effectiveness": 1, "fix_template": "Delete the test" }] });
    // One of two bugs was mended: recorded as no help.
    let mut half = of_before(&Past { id: 2, runs: [(9, 2, 0), (9, 1, 0)], verification: "failed", ..PORT });
    let failing = |test: &str| json!({ "test_name": test, "error_type": "AssertionError", "error_message": "1 != 2" });
    half["executions"][0]["failures"] = json!([failing("test_one"), failing("test_two")]);
    half["executions"][1]["failures"] = json!([failing("test_two")]);
    let foreign = Past { id: 3, runs: [(9, 1, 0), (8, 0, 0)], ..PORT }.value();
    let paths = [put(&env, &deleted), put(&env, &half), put(&env, &foreign)];
    let before = paths.each_ref().map(|path| env.read(path));
    // What only looks changes nothing, and sees them as they are judged now.
    let rows = debug(&env, "q1", &["query", "get_fix_templates", "--category", "logic_error"]).result()["rows"].clone();
    assert_eq!(rows, json!([]));
    assert_eq!(paths.each_ref().map(|path| env.read(path)), before);

    env.nietz(["documents", "migrate", "debug-memory"]).go().exits(0);
    let fix = |id: u32| session(&env, "sessions", &Past { id, ..PORT }.id())["executions"][0]["fix_applied"].clone();
    let own = |id: u32| session(&env, "sessions", &Past { id, ..PORT }.id())["nietz"].clone();
    assert_eq!((&fix(1)["verification"], &fix(2)["verification"]), (&json!("failed"), &json!("passed")));
    insta::assert_snapshot!(serde_yaml::to_string(&[own(1), own(2)]).expect("YAML"), @r#"
    - judged_anew:
      - attempt: 1
        is: failed
        was: passed
        why: 1 test was gone after it
      source: debug-memory
      version: 1
    - judged_anew:
      - attempt: 1
        is: passed
        was: failed
        why: "mended 1 of 2 failures: test_one"
      source: debug-memory
      version: 1
    "#);
    assert_eq!(session(&env, "sessions", &PORT.id())["learnings"]["patterns_identified"][0]["effectiveness"], 0.0);
    // Another program wrote it by the specification alone: it stays, and counts.
    assert_eq!(env.read(&paths[2]), before[2]);
    let stats = env.nietz(["run", "debug-memory", "stats"]).var("NIETZ_RUN", &run_name()).go().exits(0);
    assert!(stats.stdout.contains("sessions 3"), "{stats:?}");
    for path in &paths {
        env.nietz(["check", path]).go().exits(0);
    }
}

#[test]
fn how_an_old_session_ended_leaves_its_recommendations() {
    let env = Env::new();
    let of = |id: u32, status: &str, lines: &[&str]| {
        let mut value = of_before(&Past { id, ..PORT });
        value["status"] = json!(status);
        value["learnings"] = json!({ "recommendations": lines });
        put(&env, &value)
    };
    of(1, "passed", &["passed: passed after 1 fix; which lines are covered is not known"]);
    of(2, "escalated", &["escalated: stuck: test_a failed in the same way 3 times", "Check ports at the edge"]);
    // What only begins like such a line is a recommendation.
    of(3, "passed", &["failed: say it where a port is refused"]);
    let mut foreign = Past { id: 4, ..PORT }.value();
    foreign["learnings"] = json!({ "recommendations": ["passed: passed after 1 fix"] });
    put(&env, &foreign);
    env.nietz(["documents", "migrate", "debug-memory"]).go().exits(0);
    let now = [1, 2, 3, 4].map(|id| {
        let doc = session(&env, "sessions", &Past { id, ..PORT }.id());
        env.nietz(["check", &format!("{FOLDER}/sessions/{}.yaml", Past { id, ..PORT }.id())]).go().exits(0);
        json!([doc["nietz"]["ended"], doc["learnings"]["recommendations"]])
    });
    assert_eq!(
        json!(now),
        json!([
            [{ "reason": "passed after 1 fix; which lines are covered is not known" }, null],
            [{ "trigger": "stuck", "reason": "stuck: test_a failed in the same way 3 times" }, ["Check ports at the edge"]],
            [null, ["failed: say it where a port is refused"]],
            [null, ["passed: passed after 1 fix"]],
        ])
    );
}

const UNITTEST: &str = "python3 -B -m unittest -v";
const SPAN: &[(&str, &str)] = &[
    ("span.py", "def width(a, b):\n    return a - b\n"),
    (
        "test_span.py",
        "import unittest\nfrom span import width\n\n\nclass Test(unittest.TestCase):\n    def test_width(self):\n        \
         self.assertEqual(width(2, 5), 3)\n",
    ),
];

fn said(ended: &Ended) -> String {
    let line = |event: Value| event["markdown"].as_str().unwrap_or_default().to_owned();
    ended.of_type("said").into_iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A debugging session that the developer solves: what they type is the answers, in order.
fn solved(env: &Env, run: &str, problem: &str, more: &[&str], typed: &str) -> Ended {
    let server = ModelServer::start(|request| Response::text(usual(request)));
    let call = env.run(["debug", problem]).args(more.iter().copied()).var("OPENAI_BASE_URL", &server.url());
    let ended = call.var("NIETZ_RUN", run).stdin(typed).go();
    assert_eq!(ended.result()["outcome"], "solved", "{ended:?}");
    ended
}

#[test]
fn a_solved_debugging_session_is_remembered_with_the_cause_in_the_developers_words() {
    if !has("python3") {
        return;
    }
    let server = ModelServer::start(|request| Response::text(usual(request)));
    let env = project(&server, SPAN);
    // The files are mended while the program waits for an answer: here, by what the command itself reads.
    let verify = format!("test -f mended && sed -i 's/a - b/b - a/' span.py; {UNITTEST}");
    let cause = "width takes the end from the beginning";
    let ended = solved(
        &env,
        "s1",
        "the width of a span is negative",
        &["--verify", &verify],
        &format!("{cause}\nsolved\n\ny\n\n"),
    );
    assert!(
        said(&ended).contains("This is not kept in the debug memory: the command did not show that all tests pass"),
        "{}",
        said(&ended)
    );
    env.write("mended", "");
    let ended = solved(
        &env,
        "s2",
        "the width of a span is negative",
        &["--verify", &verify],
        &format!("{cause}\nsolved\n\n\n"),
    );
    assert!(said(&ended).contains("What was found out is in the debug memory: "), "{}", said(&ended));
    let memory = session(&env, "sessions", ended.result()["id"].as_str().expect("it has an id"));
    env.nietz(["check", &format!("{FOLDER}/sessions/{}.yaml", ended.result()["id"].as_str().unwrap())]).go().exits(0);
    let first = &memory["executions"][0];
    assert_eq!((&memory["status"], &memory["nietz"]["source"]), (&json!("passed"), &json!("debug")));
    assert_eq!((&first["test_results"]["total"], &first["analysis"]["root_cause"]), (&json!(1), &json!(cause)));
    // Both modes ask one memory.
    let asked = asked_about(&env, "a span has a negative width", "en");
    assert!(asked.contains("like this one"), "{asked}");

    // Nothing is written where no results were read, or the cause is not told.
    let ended = solved(
        &env,
        "s3",
        "the width of a span is negative",
        &["--verify", "echo fine"],
        &format!("{cause}\nsolved\n\n\n"),
    );
    assert!(said(&ended).contains("no known test runner wrote what the command showed"), "{}", said(&ended));
    let ended =
        solved(&env, "s4", "the width of a span is negative", &["--verify", &verify], "it was me\nsolved\n\n\n");
    assert!(said(&ended).contains("the cause is not told in at least 20 letters"), "{}", said(&ended));
    assert_eq!(std::fs::read_dir(env.path(&format!("{FOLDER}/sessions"))).expect("it is there").count(), 1);
}

#[test]
fn failed_shots_are_remembered_as_what_did_not_help() {
    if !has("python3") {
        return;
    }
    let server = ModelServer::start(|request: &Request| match step(request) {
        0 => super::call("replace_in_file", &json!({ "path": "span.py", "old": "a - b", "new": "a + b" })),
        _ => Response::text("I add them now."),
    });
    let env = project(&server, SPAN);
    let arguments = [
        "shots-on-goal",
        "the width is right",
        "--shots",
        "1",
        "--validate",
        UNITTEST,
        "--model-a",
        "openai/a",
        "--model-b",
        "openai/b",
    ];
    let ended = env.run(arguments).var("NIETZ_RUN", "shots").go();
    assert_eq!(ended.refused()["status"], "failed", "{ended:?}");
    let folder = env.path(&format!("{FOLDER}/sessions"));
    let files: Vec<_> =
        std::fs::read_dir(folder).expect("it is there").map(|entry| entry.expect("it can be read").path()).collect();
    assert_eq!(files.len(), 1, "a session's shots are one session");
    let id = files[0].file_stem().and_then(|name| name.to_str()).expect("it has a name").to_owned();
    env.nietz(["check", &format!("{FOLDER}/sessions/{id}.yaml")]).go().exits(0);
    let memory = session(&env, "sessions", &id);
    let first = &memory["executions"][0];
    assert_eq!((&memory["status"], &memory["nietz"]["source"]), (&json!("failed"), &json!("shots-on-goal")));
    assert_eq!(
        (&first["fix_applied"]["verification"], &first["test_results"]["failed"]),
        (&json!("failed"), &json!(1))
    );
    assert_eq!(first["fix_applied"]["files_changed"], json!(["span.py"]), "{memory:#}");

    // The next session knows what was tried.
    let server = ModelServer::start(|request: &Request| match (is_analysis(request), step(request)) {
        (true, _) => analysis("span.py", "put `return b - a` in the place of `return a - b` there"),
        (false, 0) => super::call("replace_in_file", &json!({ "path": "span.py", "old": "a - b", "new": "b - a" })),
        _ => Response::text("I changed it."),
    });
    let arguments = ["run", "--json", "--model", "openai/test", "debug-memory", "--test", UNITTEST];
    let ended = env.nietz(arguments).var("OPENAI_BASE_URL", &server.url()).var("NIETZ_RUN", "r1").go();
    assert_eq!(memory_of(&env, &ended)["status"], "passed", "{ended:?}");
    let prompt = task(&server.requests()[0]);
    assert!(prompt.contains("What did NOT help: For: the width is right"), "{prompt}");
}
