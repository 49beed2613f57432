//! The loop on three small projects with seeded bugs: what passes, what does not, and what a second session knows.

use serde_json::{Value, json};

use super::{
    FOLDER, analysis, attempt, call, debug, edits, has, is_analysis, memory_of, outcome, project, session, step, task,
};
use crate::support::env::Env;
use crate::support::git::{broken, git};
use crate::support::kills;
use crate::support::model_server::{ModelServer, Request, Response};

const NODE: &str = "node --test --test-reporter=tap";
const JAVASCRIPT: &[(&str, &str)] = &[
    ("list.js", "exports.first = (list) => list[0].name;\nexports.count = (list) => list.length;\n"),
    (
        "list.test.js",
        "const test = require('node:test');\nconst assert = require('node:assert');\nconst { first, count } = require('./list');\n\
         test('first of none', () => { assert.strictEqual(first([]), undefined); });\n\
         test('count', () => { assert.strictEqual(count([1]), 1); });\n",
    ),
];

const UNITTEST: &str = "python3 -B -m unittest -v";
const PYTHON: &[(&str, &str)] = &[
    ("span.py", "def width(a, b):\n    return a - b\n\n\ndef double(a):\n    return a + a\n"),
    (
        "test_span.py",
        "import unittest\nfrom span import double, width\n\n\nclass Test(unittest.TestCase):\n    def test_width(self):\n        \
         self.assertEqual(width(2, 5), 3)\n\n    def test_double(self):\n        self.assertEqual(double(2), 4)\n",
    ),
];

const RUST: &[(&str, &str)] = &[
    ("Cargo.toml", "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n"),
    (".gitignore", "target\n"),
    (
        "src/lib.rs",
        "pub fn last(list: &[u8]) -> u8 {\n    list[list.len()]\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn last() {\n        \
         assert_eq!(super::last(&[1, 2]), 2);\n    }\n\n    #[test]\n    fn one() {\n        assert_eq!(1, 1);\n    }\n}\n",
    ),
];

/// A Rust project, with the toolchain that runs this test.
fn rust(server: &ModelServer) -> Env {
    let tools = std::path::Path::new(env!("CARGO")).parent().expect("cargo is in a folder");
    let env = project(server, RUST).var("PATH", &format!("{}:/usr/bin:/bin", tools.display()));
    // A toolchain of rustup's is in the home of whoever runs this; the sandbox has to be told.
    match tools.ancestors().nth(3).filter(|folder| folder.join("toolchains").is_dir()) {
        Some(rustup) => env.var("RUSTUP_HOME", &rustup.display().to_string()),
        None => env,
    }
}

/// The counts of each execution: passed and failed.
fn counts(memory: &Value) -> Vec<(u64, u64)> {
    let of = |execution: &Value, name: &str| execution["test_results"][name].as_u64().unwrap();
    let executions = memory["executions"].as_array().unwrap();
    executions.iter().map(|execution| (of(execution, "passed"), of(execution, "failed"))).collect()
}

#[test]
fn javascript_passes_at_the_first_try_and_a_second_session_finds_its_fix() {
    if !has("node") {
        return;
    }
    let server = ModelServer::start(edits("list.js", &[("list[0].name", "list[0]?.name")]));
    let env = project(&server, JAVASCRIPT);
    env.write("list.js", "// the user's own change\n");
    let ended = debug(&env, "r1", &["--test", NODE]);
    let result = outcome(&ended);
    assert_eq!((&result["status"], &result["branch"]), (&json!("passed"), &json!("nietz/r1")), "{result}");
    let memory = memory_of(&env, &ended);
    assert_eq!(counts(&memory), [(1, 1), (2, 0)]);
    let first = &memory["executions"][0];
    let failure = &first["failures"][0];
    assert_eq!(
        (&failure["test_name"], &failure["error_type"], &failure["source_location"]["file"]),
        (&json!("first of none"), &json!("TypeError"), &json!("list.js")),
        "{failure}"
    );
    assert_eq!(first["environment"]["runtime"], "node");
    assert_eq!(first["fix_applied"]["verification"], "passed");
    assert_eq!(first["fix_applied"]["diff_summary"], "+1/-1 lines");
    assert_eq!(first["fix_applied"]["files_changed"], json!(["list.js"]));
    for execution in memory["executions"].as_array().unwrap() {
        let hash = execution["code_hash"].as_str().unwrap();
        assert!(hash.len() == 64 && hash.chars().all(|c| c.is_ascii_hexdigit()), "{hash}");
    }
    let pattern = &memory["learnings"]["patterns_identified"][0];
    assert_eq!((pattern["frequency"].as_u64(), pattern["effectiveness"].as_f64()), (Some(1), Some(1.0)));
    // The checkout is the user's; the fix is on a branch, and shown.
    assert_eq!(env.read("list.js"), "// the user's own change\n");
    assert!(git(&env.workspace(), ["show", "nietz/r1:list.js"]).contains("list[0]?.name"));
    let said: Vec<Value> = ended.of_type("said").iter().map(|event| event["markdown"].clone()).collect();
    assert!(said.iter().any(|text| text.as_str().unwrap().contains("git merge --no-ff nietz/r1")), "{said:?}");
    assert_eq!(git(&env.workspace(), ["worktree", "list"]).lines().count(), 1, "no worktree is left");

    // A like bug elsewhere: what worked is offered, as what it is.
    git(&env.workspace(), ["checkout", "-q", "-f", "nietz/r1"]);
    env.write("user.js", "exports.id = (users) => users[0].id;\n");
    env.write(
        "user.test.js",
        "const test = require('node:test');\nconst assert = require('node:assert');\nconst { id } = require('./user');\n\
         test('id of none', () => { assert.strictEqual(id([]), undefined); });\n",
    );
    git(&env.workspace(), ["add", "-A", "--", "user.js", "user.test.js"]);
    git(&env.workspace(), ["commit", "-q", "-m", "users"]);
    let script = edits("user.js", &[("users[0].id", "users[0]?.id")]);
    let server = ModelServer::start(move |request: &Request| {
        if !is_analysis(request) || !task(request).contains("- P1, ") {
            return script(request);
        }
        let said = json!({
            "root_cause": "id takes the first user of a list that may be empty", "root_cause_category": "null_undefined_access",
            "location": { "file": "user.js", "line": 1 }, "confidence": 0.8, "pattern": "access_without_check",
            "fix_strategy": "put `users[0]?.id` in the place of `users[0].id` there",
            "fix_template": "Check that there is a value before its parts are used",
            "alike": [{ "past": "P1", "reason": "the first of a list is taken that may be empty" }],
        });
        Response::text(said.to_string()).usage(10, 5)
    });
    let run = |run: &str, more: &[&str]| {
        let arguments = ["debug-memory", "--test", NODE].into_iter().chain(more.iter().copied());
        let call = env.nietz(["run", "--json", "--model", "openai/test"]).args(arguments);
        call.var("NIETZ_RUN", run).var("OPENAI_BASE_URL", &server.url()).go()
    };
    let ended = run("r2", &[]);
    assert_eq!((&ended.result()["status"], &ended.result()["recalled"]), (&json!("passed"), &json!(1)), "{ended:?}");
    let second = memory_of(&env, &ended);
    let similar = &second["executions"][0]["analysis"]["similar_past_issues"][0];
    assert_eq!((&similar["session_id"], &similar["file"]), (&memory["session_id"], &json!("list.js")));
    let prompt = task(&server.requests()[0]);
    for part in [
        "Past observations from this project's debug memory. They were true then and may not be now",
        "- P1, 2026-01-09, list.js: TypeError in first of none: Cannot read properties of undefined (reading 'name')",
        "What helped: put `list[0]?.name` in the place of `list[0].name` there",
        "- Known pattern `access_without_check` (null undefined access), used 1 time, helped in 100 %, last on 2026-01-09: \
         Check that there is a value",
    ] {
        assert!(prompt.contains(part), "{part}\n{prompt}");
    }
    let asked = server.requests().len();
    run("r3", &["--no-memory"]);
    assert!(!task(&server.requests()[asked]).contains("Past observations"));
}

#[test]
fn python_passes_at_the_second_try_and_effectiveness_is_counted() {
    if !has("python3") {
        return;
    }
    let server =
        ModelServer::start(edits("span.py", &[("return a - b", "return b + a"), ("return b + a", "return b - a")]));
    let env = project(&server, PYTHON);
    let ended = debug(&env, "r1", &["--test", UNITTEST]);
    assert_eq!(
        outcome(&ended)["reason"].as_str().unwrap().split(';').next(),
        Some("passed after 2 fixes"),
        "{ended:?}"
    );
    let memory = memory_of(&env, &ended);
    assert_eq!(counts(&memory), [(1, 1), (1, 1), (2, 0)]);
    let verified = |index: usize| memory["executions"][index]["fix_applied"]["verification"].clone();
    assert_eq!([verified(0), verified(1)], ["failed", "passed"]);
    let learnings = &memory["learnings"];
    let pattern = &learnings["patterns_identified"][0];
    assert_eq!((&pattern["frequency"], &pattern["effectiveness"]), (&json!(2), &json!(0.5)));
    assert_eq!(learnings["recurring_failures"][0]["resolution"], "resolved");
    let failure = &memory["executions"][0]["failures"][0];
    assert_eq!((&failure["expected"], &failure["actual"]), (&json!("3"), &json!("-3")));
}

#[test]
fn a_strategy_that_did_not_help_is_not_taken_again() {
    if !has("python3") {
        return;
    }
    let server = ModelServer::start(|request| match (is_analysis(request), attempt(request), step(request)) {
        (true, 0, _) | (true, 1, 0) => analysis("span.py", "put `return 7` into the function width"),
        (true, ..) => analysis("span.py", "take a from b in the function width instead"),
        (false, ..) if task(request).contains("take a from b") && step(request) == 0 => {
            call("replace_in_file", &json!({ "path": "span.py", "old": "return 7", "new": "return b - a" }))
        }
        (false, _, 0) => {
            call("replace_in_file", &json!({ "path": "span.py", "old": "return a - b", "new": "return 7" }))
        }
        _ => Response::text("Done."),
    });
    let env = project(&server, PYTHON);
    assert_eq!(debug(&env, "r1", &["--test", UNITTEST]).result()["status"], "passed");
    let told: Vec<String> = server.requests().iter().map(|request| request.body["messages"].to_string()).collect();
    assert!(told.iter().any(|text| text.contains("that strategy was tried already and did not help")));
}

#[test]
fn a_regression_stops_the_loop_and_a_person_is_told_all_of_it() {
    if !has("python3") {
        return;
    }
    let server = ModelServer::start(edits("span.py", &[("return a + a", "return a * a * a")]));
    let env = project(&server, PYTHON);
    let ended = debug(&env, "r1", &["--test", UNITTEST]);
    let result = outcome(&ended);
    assert_eq!(result["status"], "escalated");
    let reason = result["reason"].as_str().unwrap();
    assert!(reason.starts_with("regression_detected: test_double") && reason.ends_with("passed before"), "{reason}");
    let memory = memory_of(&env, &ended);
    assert_eq!(counts(&memory), [(1, 1), (0, 2)]);
    assert!(memory["executions"][0]["fix_applied"]["diff"].as_str().unwrap().contains("+    return a * a * a"));
    assert!(memory["executions"][1]["code_snapshot"].as_str().unwrap().contains("return a * a * a"));
    let said: String =
        ended.of_type("said").iter().map(|event| event["markdown"].as_str().unwrap().to_owned()).collect();
    for part in [
        "**This needs a person.**",
        "attempt 1, 2026-01-09T10:30:00Z: 1 passed, 1 failed",
        "strategy: put `",
        "regression_detected",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
}

#[test]
fn deleting_a_test_is_a_regression() {
    if !has("python3") {
        return;
    }
    let gone = "    def test_width(self):\n        self.assertEqual(width(2, 5), 3)\n\n";
    let server = ModelServer::start(move |request| match (is_analysis(request), step(request)) {
        (true, _) => analysis("span.py", "make the tests pass, one way or another"),
        (_, 0) => call("replace_in_file", &json!({ "path": "test_span.py", "old": gone, "new": "" })),
        _ => Response::text("Done."),
    });
    let env = project(&server, PYTHON);
    let result = outcome(&debug(&env, "r1", &["--test", UNITTEST]));
    assert_eq!(
        (&result["status"], &result["reason"]),
        (&json!("escalated"), &json!("regression_detected: 1 tests are gone"))
    );
    // It is remembered as what it is, and offered to nobody.
    let memory = session(&env, "sessions", result["session"].as_str().expect("it has one"));
    let fix = &memory["executions"][0]["fix_applied"];
    assert_eq!(fix["verification"], "failed", "{fix}");
    assert!(fix["description"].as_str().is_some_and(|text| text.ends_with("[regression: 1 tests are gone]")), "{fix}");
    assert_eq!(memory["learnings"]["patterns_identified"][0]["effectiveness"].as_f64(), Some(0.0));
    // What is protected is taken from the start: the same trick comes to nothing.
    let env = project(&server, PYTHON);
    let ended = debug(&env, "r1", &["--test", UNITTEST, "--protect", "test_*.py", "--max-attempts", "1"]);
    assert_eq!(
        outcome(&ended)["reason"],
        "max_attempts_reached: 1 fix for test_width (test_span.Test.test_width) did not do it",
        "{ended:?}"
    );
}

/// Three bugs, each with a test of its own.
const THREE: &[(&str, &str)] = &[
    ("sums.py", "def one():\n    return 0\n\n\ndef two():\n    return 0\n\n\ndef three():\n    return 0\n"),
    (
        "test_sums.py",
        "import unittest\nimport sums\n\n\nclass Test(unittest.TestCase):\n    def test_one(self):\n        self.assertEqual(sums.one(), 1)\n\n    \
         def test_two(self):\n        self.assertEqual(sums.two(), 2)\n\n    def test_three(self):\n        self.assertEqual(sums.three(), 3)\n\n    \
         def test_four(self):\n        self.assertEqual(4, 4)\n",
    ),
];

#[test]
fn several_bugs_are_mended_one_by_one_and_each_fix_is_remembered_as_one_that_worked() {
    if !has("python3") {
        return;
    }
    const MENDS: [(&str, &str); 4] = [
        ("def one():\n    return 0", "def one():\n    return 1"),
        // One that helps nothing, between two that do.
        ("def two():\n    return 0", "def two():\n    return None"),
        ("def two():\n    return None", "def two():\n    return 2"),
        ("def three():\n    return 0", "def three():\n    return 3"),
    ];
    let server = ModelServer::start(edits("sums.py", &MENDS));
    let env = project(&server, THREE);
    // Two fixes are allowed for each failure, and four are needed in all.
    let ended = debug(&env, "r1", &["--test", UNITTEST, "--max-attempts", "2"]);
    let reason = outcome(&ended)["reason"].clone();
    assert!(reason.as_str().is_some_and(|reason| reason.starts_with("passed after 4 fixes")), "{ended:?}");
    let memory = memory_of(&env, &ended);
    assert_eq!(counts(&memory), [(1, 3), (2, 2), (2, 2), (3, 1), (4, 0)]);
    let executions = memory["executions"].as_array().expect("a list");
    let fixes: Vec<&Value> = executions.iter().map(|execution| &execution["fix_applied"]["verification"]).collect();
    assert_eq!(
        fixes,
        ["passed", "failed", "passed", "passed"]
            .map(|word| json!(word))
            .iter()
            .chain([&Value::Null])
            .collect::<Vec<_>>()
    );
    let said = executions[0]["fix_applied"]["description"].as_str().expect("a text");
    assert!(said.contains("[mended 1 of 3 failures: ") && said.contains("test_one"), "{said}");
}

#[test]
fn rust_is_stuck_after_the_same_failure_three_times() {
    const TRIES: &[(&str, &str)] = &[
        ("list[list.len()]", "list[list.len() + 0]"),
        ("list[list.len() + 0]", "list[list.len() + 0 + 0]"),
        ("list[list.len() + 0 + 0]", "list[list.len() + 0 + 0 + 0]"),
        ("list[list.len() + 0 + 0 + 0]", "list[list.len() - 1]"),
    ];
    let server = ModelServer::start(edits("src/lib.rs", TRIES));
    let env = rust(&server);
    let ended = debug(&env, "r1", &["--test", "cargo test --offline", "--max-attempts", "10"]);
    let result = outcome(&ended);
    assert_eq!(
        (&result["status"], &result["reason"]),
        (&json!("escalated"), &json!("stuck: tests::last failed in the same way 3 times")),
        "{ended:?}"
    );
    let memory = memory_of(&env, &ended);
    assert_eq!(counts(&memory), [(1, 1), (1, 1), (1, 1), (1, 1)]);
    let failure = &memory["executions"][0]["failures"][0];
    assert_eq!(
        (&failure["source_location"]["file"], &failure["source_location"]["line"]),
        (&json!("src/lib.rs"), &json!(2))
    );
    assert_eq!(
        memory["learnings"]["recurring_failures"][0],
        json!({ "test": "tests::last", "occurrences": 4, "resolution": "escalated", "notes": "failed in attempts 1, 2, 3, 4" })
    );
}

#[test]
fn rust_is_stuck_when_it_undoes_what_it_did_and_may_break_the_build_on_the_way() {
    const TRIES: &[(&str, &str)] = &[("list[list.len()]", "list[list.len()"), ("list[list.len()", "list[list.len()]")];
    let server = ModelServer::start(edits("src/lib.rs", TRIES));
    let env = rust(&server);
    let ended = debug(&env, "r1", &["--test", "cargo test --offline"]);
    let reason = outcome(&ended)["reason"].clone();
    assert_eq!(reason, "stuck: the code is what it was at attempt 1: it was undone and done again", "{ended:?}");
    let memory = memory_of(&env, &ended);
    assert_eq!(memory["executions"][1]["failures"][0]["test_name"], "build");
    assert_eq!(memory["executions"][1]["failures"][0]["source_location"]["file"], "src/lib.rs");
}

#[test]
fn a_fix_beside_skipped_tests_is_verified_and_the_session_is_not() {
    if !has("node") {
        return;
    }
    let server = ModelServer::start(edits("[a].js", &[("list[0].name", "list[0]?.name")]));
    let tests = JAVASCRIPT[1].1.replace("./list", "./[a]") + "test('later', { skip: true }, () => {});\n";
    let env = project(&server, &[("[a].js", JAVASCRIPT[0].1), ("a.test.js", &tests)]);
    let ended = debug(&env, "r1", &["--test", NODE]);
    let reason = outcome(&ended)["reason"].clone();
    assert_eq!(reason, "unverified: 1 tests were skipped, so it does not count as passed", "{ended:?}");
    let memory = memory_of(&env, &ended);
    assert_eq!((&memory["status"], counts(&memory)), (&json!("failed"), vec![(1, 1), (2, 0)]));
    assert_eq!(memory["executions"][0]["fix_applied"]["verification"], "passed");
}

#[test]
fn a_goal_needs_a_test_that_shows_it() {
    if !has("node") {
        return;
    }
    let good = [
        JAVASCRIPT[1],
        ("list.js", "exports.first = (list) => list[0]?.name;\nexports.count = (list) => list.length;\n"),
    ];
    for (tested, status) in [(false, "escalated"), (true, "passed")] {
        let server = ModelServer::start(move |request: &Request| match (is_analysis(request), step(request)) {
            (true, _) => analysis("list.js", "add a function last beside the function first"),
            (_, 0) => call(
                "replace_in_file",
                &json!({ "path": "list.js", "old": "exports.count", "new": "exports.last = (list) => list.at(-1);\nexports.count" }),
            ),
            (_, 1) if tested => call(
                "write_file",
                &json!({ "path": "last.test.js", "text":
                "const test = require('node:test');\nconst assert = require('node:assert');\n\
                 test('last', () => { assert.strictEqual(require('./list').last([1, 2]), 2); });\n" }),
            ),
            _ => Response::text("Done."),
        });
        let env = project(&server, &good);
        let ended = debug(&env, "r1", &["--test", NODE, "give the last of a list"]);
        let result = outcome(&ended);
        assert_eq!(result["status"], status, "{result}");
        let reason = result["reason"].as_str().unwrap();
        assert!(tested || reason == "coverage_threshold_unmet: no test was added that shows the fix", "{reason}");
        let said = ended.of_type("said").iter().map(|event| event["markdown"].to_string()).collect::<String>();
        assert_eq!(said.contains("Take it: "), tested, "what is refused is not offered: {said}");
        assert!(task(&server.requests()[0]).contains("all 2 tests pass. So the goal is not reached"));
    }
}

#[test]
fn killed_here_and_there_a_session_comes_to_the_same_memory_and_commits() {
    if !has("node") {
        return;
    }
    let script = || edits("list.js", &[("list[0].name", "list[1].name"), ("list[1].name", "list[0]?.name")]);
    let seen = |env: &Env, result: &Value| {
        let mut memory = session(env, "sessions", result["session"].as_str().unwrap());
        for execution in memory["executions"].as_array_mut().unwrap() {
            execution["test_results"]["duration_ms"] = Value::Null;
        }
        (memory, git(&env.workspace(), ["for-each-ref"]))
    };
    let server = ModelServer::start(script());
    let reference = project(&server, JAVASCRIPT);
    let result = outcome(&debug(&reference, "r1", &["--test", NODE]));
    let expected = seen(&reference, &result);
    let lines = reference.journal().lines.len() as u64;
    // There is no session before the first line is followed by another.
    let points: Vec<u64> = kills::points(lines, 5).into_iter().filter(|line| *line > 1).collect();
    kills::for_each(&points, |line| {
        let server = ModelServer::start(script());
        let env = project(&server, JAVASCRIPT);
        let killed = env.run(["debug-memory", "--test", NODE]).var("NIETZ_FAULT", &format!("kill@{line}")).go();
        assert_eq!(killed.signal, Some(9), "line {line}");
        let resumed = outcome(&env.resume().go());
        assert_eq!(resumed, result, "killed after line {line}");
        assert_eq!(seen(&env, &resumed), expected, "killed after line {line}");
        assert_eq!(std::fs::read_dir(env.path(&format!("{FOLDER}/sessions"))).unwrap().count(), 1);
    });
}

#[test]
fn killed_at_any_moment_a_session_comes_to_the_same_memory_and_leaves_nothing() {
    const FILES: &[(&str, &str)] =
        &[("list.js", "list[0].name\n"), ("test.sh", "echo TAP version 13\necho 'not ok 1 - first'\necho 1..1\n")];
    let script = || edits("list.js", &[("list[0].name", "list[1].name"), ("list[1].name", "list[0]?.name")]);
    let seen = |env: &Env, result: &Value| {
        let mut memory = session(env, "sessions", result["session"].as_str().unwrap());
        for execution in memory["executions"].as_array_mut().unwrap() {
            execution["test_results"]["duration_ms"] = Value::Null;
        }
        (memory, git(&env.workspace(), ["for-each-ref"]))
    };
    let arguments = ["debug-memory", "--test", "sh test.sh"];
    let server = ModelServer::start(script());
    let reference = project(&server, FILES);
    let result = outcome(&debug(&reference, "r1", &["--test", "sh test.sh"]));
    let expected = seen(&reference, &result);
    let length = std::fs::metadata(reference.journal_path()).expect("it is there").len();
    let (seeds, times) = kills::rounds();
    kills::for_each(&seeds, |seed| {
        let server = ModelServer::start(script());
        let env = project(&server, FILES);
        let resume = || env.resume();
        let ended = kills::anywhere(&env, &mut kills::Chance(seed), (times, length), env.run(arguments), resume);
        let resumed = outcome(&ended);
        assert_eq!(resumed, result, "seed {seed}");
        assert_eq!(seen(&env, &resumed), expected, "seed {seed}");
        assert_eq!(git(&env.workspace(), ["worktree", "list"]).lines().count(), 1, "seed {seed}");
        assert_eq!(kills::strays(&env), Vec::<String>::new(), "seed {seed}");
    });
}

/// What git fails at because of what is in the worktree ends a session as any other end does: told, kept, and with the
/// memory valid.
#[test]
fn what_git_fails_at_is_left_to_a_person() {
    const FILES: &[(&str, &str)] =
        &[("list.js", "list[0].name\n"), ("test.sh", "echo TAP version 13\necho 'not ok 1 - first'\necho 1..1\n")];
    for (what, pattern, from) in [("commit", "*write-tree*", 1), ("restore", "*read-tree*", 3)] {
        let server = ModelServer::start(edits("list.js", &[("list[0].name", "list[0]?.name")]));
        let env = broken(project(&server, FILES), pattern, from);
        let ended = debug(&env, "r1", &["--test", "sh test.sh"]);
        let result = outcome(&ended);
        assert_eq!(result["status"], "escalated", "{what}: {result}");
        let reason = result["reason"].as_str().expect("a text");
        assert!(reason.starts_with("left_behind: git ") && reason.ends_with("it is broken"), "{what}: {reason}");
        assert_eq!(memory_of(&env, &ended)["status"], "escalated", "{what}");
        assert_eq!(git(&env.workspace(), ["worktree", "list"]).lines().count(), 1, "{what}: no worktree is left");
    }
}
