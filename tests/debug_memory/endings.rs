//! How sessions end: with which exit status and trigger, with what a person gets, and what is done where a session cannot go on.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::{FOLDER, analysis, call, debug, edits, has, is_analysis, memory_of, outcome, project, step, task};
use crate::support::env::Env;
use crate::support::git::git;
use crate::support::model_server::{ModelServer, Request, Response};

const UNITTEST: &str = "python3 -B -m unittest -v";

/// Two bugs, each with a test of its own, and a test that passes.
const TWO: &[(&str, &str)] = &[
    ("sums.py", "def one():\n    return 0\n\n\ndef two():\n    return 0\n"),
    ("other.py", "KEPT = True\n"),
    (
        "test_sums.py",
        "import unittest\nimport sums\n\n\nclass Test(unittest.TestCase):\n    def test_one(self):\n        self.assertEqual(sums.one(), 1)\n\n    \
         def test_two(self):\n        self.assertEqual(sums.two(), 2)\n\n    def test_three(self):\n        self.assertEqual(3, 3)\n",
    ),
];

fn branches(env: &Env) -> String {
    git(&env.workspace(), ["for-each-ref", "--format=%(refname:short)", "refs/heads/nietz"])
}

fn said(ended: &crate::support::process::Ended) -> String {
    ended.of_type("said").iter().map(|event| event["markdown"].as_str().unwrap_or_default().to_owned() + "\n").collect()
}

/// A model that analyses for one test at a time: `next` says what it is for, and which replacement mends it.
fn one_by_one(
    next: impl Fn(&str) -> (&'static str, &'static str, &'static str) + Send + Sync + 'static,
) -> impl Fn(&Request) -> Response {
    move |request| {
        let task = task(request);
        if is_analysis(request) {
            let (test, old, new) = next(&task);
            return related("sums.py", &format!("put `{new}` in the place of `{old}` there"), &[test], &json!({}));
        }
        let strategy = task.split("The strategy: put `").nth(1).expect("there is one");
        let (new, rest) = strategy.split_once("` in the place of `").expect("there is a text");
        let old = rest.split("` there").next().expect("there is a text");
        match step(request) {
            0 => call("replace_in_file", &json!({ "path": "sums.py", "old": old, "new": new })),
            _ => Response::text("I changed it."),
        }
    }
}

/// An analysis for these tests, with more fields.
fn related(file: &str, strategy: &str, names: &[&str], more: &Value) -> Response {
    let mut value = json!({
        "root_cause": "the code does not do what its test asks for",
        "root_cause_category": "logic_error",
        "location": { "file": file, "line": 2 },
        "fix_strategy": strategy,
        "confidence": 0.8,
        "related_failures": names.iter().map(|name| format!("{name} (test_sums.Test.{name})")).collect::<Vec<_>>(),
        "pattern": "wrong_constant",
        "fix_template": "Return what the test asks for",
    });
    for (name, part) in more.as_object().expect("fields") {
        value[name] = part.clone();
    }
    Response::text(value.to_string()).usage(10, 5)
}

#[test]
fn what_is_wrong_on_the_command_line_is_told_before_anything_is_paid() {
    let server = ModelServer::start(|_| Response::text("never"));
    let env = project(&server, TWO);
    for (arguments, told) in [
        (&["debug-memory"][..], "there is no command that runs the tests"),
        (&["debug-memory", "--test", " "], "there is no command that runs the tests"),
        (&["debug-memory", "patern"], "did you mean `patterns`?"),
        (&["debug-memory", "--test", UNITTEST, "stat"], "did you mean `stats`?"),
        (&["debug-memory", "--test", UNITTEST, "--on-escalation", "senior_agent"], "--senior-model PROVIDER/MODEL"),
        (&["debug-memory", "--test", UNITTEST, "--senior-model", "openai/o"], "--on-escalation senior_agent"),
        (&["debug-memory", "--test", UNITTEST, "--on-escalation", "call_the_boss"], "human_review"),
        (&["debug-memory", "query", "find_similar_failures"], "--error-type"),
        (&["debug-memory", "show", "nothing"], "there is no such session"),
        (&["debug-memory", "query", "find_similar_failure"], "did you mean find_similar_failures?"),
    ] {
        let ended = env.nietz(["run", "--model", "openai/test"]).args(arguments.iter().copied()).go().exits(2);
        assert!(ended.stderr.contains(told), "{arguments:?}: {ended:#?}");
        assert!(!ended.stderr.contains(".lua") && !ended.stderr.contains("local "), "no source: {ended:#?}");
    }
    assert_eq!((server.calls(), branches(&env)), (0, String::new()));
    assert!(!env.path(".nietz/runs/r1").exists(), "no run is left");
}

#[test]
fn a_session_without_a_commit_leaves_no_branch() {
    let server = ModelServer::start(|_| analysis("out.txt", "look at it more closely than that"));
    for (output, exit, status) in [
        ("1..1\nok 1 - a\n", 0, "passed"),
        ("1..1\nnot ok 1 - a\n", 0, "failed"),
        ("1..1\nok 1 - a # SKIP\n", 8, "failed"),
        ("who knows\n", 8, "escalated"),
    ] {
        let env = project(&server, &[("out.txt", output)]);
        let ended = debug(&env, "r1", &["--no-fix", "--test", "cat out.txt"]).exits(exit);
        let result = ended.ending()["result"].clone();
        assert_eq!((&result["status"], branches(&env)), (&json!(status), String::new()), "{result}");
        assert!(result["branch"].is_null(), "{result}");
    }
}

#[test]
fn an_answer_that_is_no_ends_with_8_and_the_result_says_which() {
    let server = ModelServer::start(|_| analysis("out.txt", "look at it more closely than that"));
    for (output, test, trigger, status) in [
        ("1..2\nok 1 - a # SKIP\nok 2 - b\n", "cat out.txt", "unverified", "failed"),
        ("1..0\n", "cat out.txt", "nothing_executed", "failed"),
        ("who knows\n", "cat out.txt", "unknown_error_type", "escalated"),
        ("", "there-is-no-such-program", "cannot_run", "escalated"),
    ] {
        let env = project(&server, &[("out.txt", output)]);
        let ended = debug(&env, "r1", &["--test", test]).exits(8);
        let result = ended.ending()["result"].clone();
        assert_eq!((&result["trigger"], &result["status"]), (&json!(trigger), &json!(status)), "{result}");
        assert!(
            result["reason"].as_str().is_some_and(|reason| reason.starts_with(&format!("{trigger}: "))),
            "{result}"
        );
        let memory = memory_of(&env, &ended);
        assert_eq!(memory["nietz"]["ended"]["trigger"], trigger);
        assert!(memory["learnings"]["recommendations"].is_null(), "how it ended is no recommendation: {memory}");
    }
    assert_eq!(server.calls(), 0);
}

#[test]
fn a_steady_failure_gets_three_fixes_and_so_does_the_next_one() {
    if !has("python3") {
        return;
    }
    // Two fixes for the first failure that come to nothing, two for the second, and then one each that mends.
    const TRIES: [(&str, &str, &str); 6] = [
        ("test_one", "one():\n    return 0", "one():\n    return None"),
        ("test_one", "one():\n    return None", "one():\n    return {}"),
        ("test_two", "two():\n    return 0", "two():\n    return None"),
        ("test_two", "two():\n    return None", "two():\n    return {}"),
        ("test_one", "one():\n    return {}", "one():\n    return 1"),
        ("test_two", "two():\n    return {}", "two():\n    return 2"),
    ];
    let server = ModelServer::start(one_by_one(|task| {
        TRIES[task.matches("It did not help: ").count() + task.matches("It helped: ").count()]
    }));
    let env = project(&server, TWO);
    let ended = debug(&env, "r1", &["--test", UNITTEST]).exits(0);
    assert!(
        ended.result()["reason"].as_str().is_some_and(|reason| reason.starts_with("passed after 6 fixes")),
        "{ended:?}"
    );
    let memory = memory_of(&env, &ended);
    assert_eq!(memory["metadata"]["ralph_iteration"], 6);

    // The third that comes to nothing is the last.
    const NEVER: [(&str, &str, &str); 3] = [
        ("test_one", "one():\n    return 0", "one():\n    return None"),
        ("test_one", "one():\n    return None", "one():\n    return {}"),
        ("test_one", "one():\n    return {}", "one():\n    return []"),
    ];
    let server = ModelServer::start(one_by_one(|task| NEVER[task.matches("It did not help: ").count()]));
    let env = project(&server, TWO);
    let result = debug(&env, "r1", &["--test", UNITTEST]).refused();
    assert_eq!(
        (&result["trigger"], &result["executions"]),
        (&json!("max_attempts_reached"), &json!(4)),
        "three fixes after the first run: {result}"
    );
}

#[test]
fn a_person_gets_everything_and_nothing_that_did_harm_is_offered() {
    if !has("python3") {
        return;
    }
    let long = "x".repeat(70_000);
    let text = long.clone();
    let server = ModelServer::start(move |request| match (is_analysis(request), step(request)) {
        (true, _) => {
            related("sums.py", "write another module, and break the first test on the way", &["test_one"], &json!({}))
        }
        (_, 0) => call(
            "write_file",
            &json!({ "path": "more.py", "text": format!("# {text}\nSECRET = 'planted-key-5f1d9a77c3'\n") }),
        ),
        (_, 1) => call("replace_in_file", &json!({ "path": "test_sums.py", "old": "(3, 3)", "new": "(3, 4)" })),
        _ => Response::text("Done."),
    });
    let env = project(&server, TWO);
    let ended = debug(&env, "r1", &["--test", UNITTEST]);
    let result = ended.refused();
    assert_eq!(result["trigger"], "regression_detected", "{result}");
    let memory = memory_of(&env, &ended);
    let path = format!("{FOLDER}/reports/{}.md", result["session"].as_str().expect("it has one"));
    assert_eq!((&memory["nietz"]["report"], &result["report"]), (&json!(path), &json!(path)));
    let report = env.read(&path);
    for part in [
        "# This needs a person: regression_detected: test_three (test_sums.Test.test_three) passed before",
        "## more.py, as it was left",
        "## test_sums.py, as it was left",
        "## What the tests wrote, attempt 1",
        "## What the tests wrote, attempt 2",
        "AssertionError: 3 != 4",
        long.as_str(),
    ] {
        assert!(report.contains(part), "{}", &part[..part.len().min(80)]);
    }
    assert!(!report.contains("planted-key-5f1d9a77c3"), "secrets are taken out");
    let snapshot = memory["executions"][1]["code_snapshot"].as_str().expect("there is one");
    assert!(snapshot.contains(&long) && snapshot.contains("=== test_sums.py"), "all changed files, whole");
    let said = said(&ended);
    assert!(said.contains("This is not for merging: regression_detected") && !said.contains("git merge"), "{said}");
    assert_eq!(result["kept"], git(&env.workspace(), ["rev-parse", "HEAD"]).trim());
    env.nietz(["check", &path]).go().exits(0);

    // A report alone is shorter on the screen.
    let ended = debug(&env, "r2", &["--test", UNITTEST, "--on-escalation", "abort_with_report", "--no-memory"]);
    let path = ended.refused()["report"].as_str().expect("there is one").to_owned();
    assert!(env.read(&path).contains("## more.py, as it was left"));
    assert!(!self::said(&ended).contains("**This needs a person.**"), "{ended:?}");
}

#[test]
fn what_has_held_is_offered_without_what_was_tried_after_it() {
    if !has("python3") {
        return;
    }
    const TRIES: [(&str, &str, &str); 2] = [
        ("test_one", "one():\n    return 0", "one():\n    return 1"),
        ("test_two", "two():\n    return 0", "two():\n    return 7"),
    ];
    let server = ModelServer::start(one_by_one(|task| TRIES[task.matches("It helped: ").count().min(1)]));
    let env = project(&server, TWO);
    let ended = debug(&env, "r1", &["--test", UNITTEST, "--max-attempts", "1"]);
    let result = ended.refused();
    let kept = result["kept"].as_str().expect("a commit");
    assert_eq!(result["reason"], "max_attempts_reached: 1 fix for test_two (test_sums.Test.test_two) did not do it");
    assert!(
        said(&ended)
            .contains(&format!("Take what has held, without what was tried after it: `git merge --no-ff {kept}`"))
    );
    let held = git(&env.workspace(), ["show", &format!("{kept}:sums.py")]);
    assert!(held.contains("return 1") && !held.contains("return 7"), "{held}");
}

#[test]
fn what_cannot_be_mended_is_flagged_and_the_others_are_mended() {
    if !has("python3") {
        return;
    }
    let server = ModelServer::start(one_by_one(|task| {
        if task.contains("Leave these failures as they are") {
            assert!(task.contains("\n- test_one (test_sums.Test.test_one)\n"), "{task}");
            ("test_two", "two():\n    return 0", "two():\n    return 2")
        } else {
            ("test_one", "one():\n    return 0", "one():\n    return 7")
        }
    }));
    let env = project(&server, TWO);
    let arguments = ["--test", UNITTEST, "--max-attempts", "1", "--on-escalation", "flag_and_continue"];
    let ended = debug(&env, "r1", &arguments);
    let result = ended.refused();
    assert_eq!((&result["status"], &result["trigger"]), (&json!("escalated"), &json!("flagged")), "{result}");
    let memory = memory_of(&env, &ended);
    let row = &memory["learnings"]["recurring_failures"][0];
    assert_eq!((&row["test"], &row["resolution"]), (&json!("test_one (test_sums.Test.test_one)"), &json!("escalated")));
    assert!(row["notes"].as_str().is_some_and(|note| note.contains("max_attempts_reached")), "{row}");
    let verified = |index: usize| memory["executions"][index]["fix_applied"]["verification"].clone();
    assert_eq!([verified(0), verified(1)], ["failed", "passed"]);

    // A fix that broke something is taken back first.
    let server = ModelServer::start(one_by_one(|task| {
        if task.contains("Leave these failures as they are") {
            ("test_two", "two():\n    return 0", "two():\n    return 2")
        } else {
            ("test_one", "def one():\n    return 0", "import nowhere\n\ndef one():\n    return 1")
        }
    }));
    let files = [("sums.py", TWO[0].1), ("test_sums.py", TWO[2].1), ("test_more.py", MORE)];
    let env = project(&server, &files);
    let ended = debug(&env, "r1", &arguments);
    let result = ended.refused();
    assert_eq!(result["trigger"], "flagged", "{result}");
    let file = git(&env.workspace(), ["show", "nietz/r1:sums.py"]);
    assert!(!file.contains("nowhere") && file.contains("return 2"), "{file}");
}

/// A test that fails as soon as `sums` cannot be imported.
const MORE: &str = "import unittest\n\n\nclass More(unittest.TestCase):\n    def test_import(self):\n        import sums\n        self.assertTrue(sums)\n";

#[test]
fn a_stronger_model_has_one_round_with_everything_that_was_tried() {
    if !has("python3") {
        return;
    }
    for (mends, status) in [(true, "passed"), (false, "escalated")] {
        let script = one_by_one(move |task| match (task.contains("It did not help: "), mends) {
            (false, _) => ("test_one", "one():\n    return 0", "one():\n    return None"),
            (true, true) => ("test_one", "one():\n    return None", "one():\n    return 1"),
            (true, false) => ("test_one", "one():\n    return None", "one():\n    return {}"),
        });
        let server = ModelServer::start(script);
        let env = project(&server, TWO);
        let known = ["--wont-fix", "test_two", "--max-attempts", "1"];
        let senior = ["--on-escalation", "senior_agent", "--senior-model", "openai/senior"];
        let ended = debug(&env, "r1", &[&["--test", UNITTEST], &known[..], &senior[..]].concat());
        let result = outcome(&ended);
        assert_eq!(result["status"], status, "{result}");
        let mut models: Vec<Value> = server.requests().iter().map(|request| request.body["model"].clone()).collect();
        models.dedup();
        assert_eq!(models, ["test", "senior"].map(|name| json!(name)), "one after the other");
        let memory = memory_of(&env, &ended);
        assert_eq!(memory["nietz"]["senior"], json!({ "model": "openai/senior", "from_attempt": 2 }));
    }
}

#[test]
fn a_strategy_that_was_not_carried_out_may_be_taken_again_and_has_not_failed() {
    if !has("python3") {
        return;
    }
    // The first time the model looks, says something and changes nothing.
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let server = ModelServer::start(move |request| {
        let mend = one_by_one(|_| ("test_one", "one():\n    return 0", "one():\n    return 1"));
        if is_analysis(request) {
            return mend(request);
        }
        match asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => call("list_tree", &json!({})),
            // It is asked once more for a change.
            1 | 2 => Response::text("I would put it there."),
            _ => mend(request),
        }
    });
    let env = project(&server, TWO);
    let ended = debug(&env, "r1", &["--test", UNITTEST, "--wont-fix", "test_two"]).exits(0);
    let again = server.requests().iter().map(task).find(|task| task.contains("has tried already")).expect("it goes on");
    assert!(again.contains("It was not carried out: nothing was changed: I would put it there."), "{again}");
    let memory = memory_of(&env, &ended);
    let fixes = |name: &str| -> Vec<Value> {
        let all = memory["executions"].as_array().expect("executions");
        all.iter().map(|execution| execution["fix_applied"][name].clone()).filter(|part| !part.is_null()).collect()
    };
    assert_eq!(fixes("verification"), ["passed"], "what was carried out takes its place: {memory}");
    assert_eq!(memory["learnings"]["patterns_identified"][0]["effectiveness"], json!(1), "{memory}");
}

#[test]
fn what_a_stronger_model_begins_with_is_free_of_what_broke_something() {
    if !has("python3") {
        return;
    }
    let server = ModelServer::start(one_by_one(|task| {
        if task.contains("[regression: ") {
            ("test_one", "one():\n    return 0", "one():\n    return 1")
        } else {
            ("test_one", "def one():\n    return 0", "import nowhere\n\ndef one():\n    return 1")
        }
    }));
    let files = [("sums.py", TWO[0].1), ("test_sums.py", TWO[2].1), ("test_more.py", MORE)];
    let env = project(&server, &files);
    let senior = ["--on-escalation", "senior_agent", "--senior-model", "openai/senior", "--wont-fix", "test_two"];
    let ended = debug(&env, "r1", &[&["--test", UNITTEST], &senior[..]].concat()).exits(0);
    let file = git(&env.workspace(), ["show", "nietz/r1:sums.py"]);
    assert!(!file.contains("nowhere") && file.contains("return 1"), "{file}");
    // What broke something, what was there before, and what mended it.
    assert_eq!(memory_of(&env, &ended)["executions"].as_array().map(Vec::len), Some(4));
}

#[test]
fn a_known_failure_is_left_as_it_is_and_recorded_so() {
    if !has("python3") {
        return;
    }
    let server = ModelServer::start(one_by_one(|_| ("test_one", "one():\n    return 0", "one():\n    return 1")));
    let env = project(&server, TWO);
    let ended = debug(&env, "r1", &["--test", UNITTEST, "--wont-fix", "test_two"]).exits(0);
    let memory = memory_of(&env, &ended);
    assert_eq!(memory["executions"][1]["test_results"]["failed"], 1, "it is counted as what it is");
    assert_eq!(
        memory["learnings"]["recurring_failures"],
        json!([{ "test": "test_two (test_sums.Test.test_two)", "occurrences": 2, "resolution": "wont_fix",
            "notes": "failed in attempts 1, 2; left as it is: --wont-fix" }])
    );
    let asked = task(&server.requests()[0]);
    assert!(asked.contains("\n- test_two\n") && !asked.contains("- test_two (test_sums"), "{asked}");
    // Where nothing else fails, nothing is to be done.
    let calls = server.calls();
    let both =
        ["--test", UNITTEST, "--wont-fix", "test_two", "--wont-fix", "test_sums.Test.test_one", "--wont-fix", "wo"];
    let ended = debug(&env, "r2", &both);
    assert!(said(&ended).contains("--wont-fix wo: no test of that name fails.\n"), "{ended:?}");
    let result = ended.result();
    assert_eq!(result["reason"], "the tests pass as they are; what is known to fail is left as it is");
    assert_eq!(server.calls(), calls);
}

#[test]
fn a_matter_of_security_is_a_persons_and_other_issues_are_recorded() {
    if !has("python3") {
        return;
    }
    let issue = |severity: &str, security: bool| {
        json!({ "issues": [
            { "issue": "anybody can call two()", "location": "sums.py:6", "severity": severity, "security": security },
            { "issue": "one() has no documentation", "location": "sums.py:1", "severity": "minor" },
            { "issue": "KEPT is not used", "location": "other.py:1", "severity": "minor" },
        ], "prevention": "Have a test for each function from its first day" })
    };
    for (severity, cause, action, trigger) in [
        ("critical", None, "human_review", Some("security_issue_found")),
        ("minor", Some("critical"), "human_review", Some("security_issue_found")),
        ("critical", None, "flag_and_continue", Some("flagged")),
        ("major", Some("major"), "human_review", None),
    ] {
        let mut more = issue(severity, true);
        if let Some(cause) = cause {
            more["security"] = json!(cause);
        }
        let mend = one_by_one(|_| ("test_one", "one():\n    return 0", "one():\n    return 1"));
        let server = ModelServer::start(move |request| {
            if is_analysis(request) {
                return related(
                    "sums.py",
                    "put `one():\n    return 1` in the place of `one():\n    return 0` there",
                    &["test_one"],
                    &more,
                );
            }
            mend(request)
        });
        let env = project(&server, TWO);
        let ended = debug(&env, "r1", &["--test", UNITTEST, "--wont-fix", "test_two", "--on-escalation", action]);
        let result = outcome(&ended);
        assert_eq!(result["trigger"].as_str(), trigger, "{result}");
        let memory = memory_of(&env, &ended);
        let addressed = trigger != Some("security_issue_found");
        assert_eq!(
            memory["learnings"]["code_quality_issues"],
            json!([
                { "issue": "anybody can call two()", "location": "sums.py:6", "severity": severity, "addressed": false },
                { "issue": "one() has no documentation", "location": "sums.py:1", "severity": "minor", "addressed": addressed },
                { "issue": "KEPT is not used", "location": "other.py:1", "severity": "minor", "addressed": false },
            ])
        );
        assert_eq!(memory["learnings"]["recommendations"], json!(["Have a test for each function from its first day"]));
        assert_eq!(memory["executions"][0]["fix_applied"].is_null(), !addressed, "{memory}");
    }
}

/// What small models do: they fill what they may leave out with what they were told.
#[test]
fn a_failure_told_again_is_no_issue_besides_and_the_name_of_a_kind_no_cause() {
    if !has("python3") {
        return;
    }
    let asked = AtomicUsize::new(0);
    let mend = one_by_one(|_| ("test_one", "one():\n    return 0", "one():\n    return 1"));
    let server = ModelServer::start(move |request| {
        if !is_analysis(request) {
            return mend(request);
        }
        let told = json!({ "issue": "AssertionError: 0 != 1", "location": "test_sums.py:7", "severity": "critical", "security": true });
        let mut more = json!({ "issues": [told] });
        if asked.fetch_add(1, Ordering::SeqCst) == 0 {
            more["root_cause"] = json!("null_undefined_access");
            more["root_cause_category"] = json!("null_undefined_access");
        } else {
            let prompt: String = request.turns().into_iter().map(|(_, text)| text).collect();
            assert!(
                prompt.contains("root_cause must say why it fails, and null_undefined_access only names its kind"),
                "{prompt}"
            );
        }
        let strategy = "put `one():\n    return 1` in the place of `one():\n    return 0` there";
        related("sums.py", strategy, &["test_one"], &more)
    });
    let env = project(&server, TWO);
    let ended = debug(&env, "r1", &["--test", UNITTEST, "--wont-fix", "test_two"]);
    assert_eq!(outcome(&ended)["status"], "passed", "{ended:?}");
    assert!(memory_of(&env, &ended)["learnings"]["code_quality_issues"].is_null());
}

#[test]
fn tests_that_run_into_their_limit_and_models_that_do_are_told_as_that() {
    let server = ModelServer::start(edits("work.txt", &[("todo", "doing"), ("doing", "done")]));
    let files = [("work.txt", "todo\n"), ("test.sh", "echo 1..1\necho waiting for the port\nexec sleep 60\n")];
    let env = project(&server, &files);
    let ended = debug(&env, "r1", &["--test", "sh test.sh", "--test-seconds", "5", "--max-attempts", "1"]);
    assert_eq!(ended.refused()["reason"], "timeout_exceeded: the tests were ended by their limit: timeout (5 s)");
    let asked = task(&server.requests()[0]);
    assert!(asked.contains("waiting for the port"), "what hung, and its last words: {asked}");

    for (silent, reason) in [
        (true, "timeout_exceeded: the limit of 2 seconds"),
        (false, "timeout_exceeded: the last fix was ended by its limit: --attempt-seconds, --idle"),
    ] {
        let script = edits("work.txt", &[("todo", "done")]);
        let server =
            ModelServer::start(
                move |request| {
                    if is_analysis(request) == silent { Response::silence() } else { script(request) }
                },
            );
        let env = project(&server, &[files[0], ("out.txt", "1..1\nnot ok 1 - work\n")]);
        let arguments = ["--test", "cat out.txt", "--attempt-seconds", "2", "--max-attempts", "1"];
        assert_eq!(debug(&env, "r1", &arguments).refused()["reason"], reason);
    }
}

#[test]
fn who_is_not_there_is_told_where_they_are() {
    let server = ModelServer::start(|_| Response::text("never"));
    let env = project(&server, &[("out.txt", "who knows\n")]).config(
        "models: {retry: {attempts: 3, total_seconds: 20, base_delay_ms: 1}}\nnotify: {command: [sh, -c, 'cat > \"$HOME/told\"']}\n",
    );
    debug(&env, "r1", &["--test", "cat out.txt"]).exits(8);
    let told = std::fs::read_to_string(env.home().join("told")).expect("somebody was told");
    assert!(told.contains("unknown_error_type"), "{told}");
}

#[test]
fn sessions_without_a_fix_do_not_count_as_mended_at_the_first() {
    if !has("python3") {
        return;
    }
    let server = ModelServer::start(one_by_one(|_| ("test_one", "one():\n    return 0", "one():\n    return 1")));
    let env = project(&server, TWO);
    debug(&env, "r1", &["--test", UNITTEST, "--wont-fix", "test_two"]).exits(0);
    debug(&env, "r2", &["--test", UNITTEST, "--wont-fix", "test_one", "--wont-fix", "test_two"]).exits(0);
    debug(&env, "r3", &["--test", "echo who knows"]).exits(8);
    let stats = debug(&env, "r4", &["stats"]);
    assert_eq!((&stats.result()["first"], &stats.result()["mended"]), (&json!(1), &json!(1)));
    assert!(said(&stats).contains("with a fix, at the first one: 100 %"), "{stats:?}");
}
