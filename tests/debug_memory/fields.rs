//! What stands in a memory file, field by field of the specification, and under our own key beside it.

use serde_json::{Value, json};

use super::{analysis, attempt, call, debug, edits, has, is_analysis, memory_of, project, step, task};
use crate::support::env::Env;
use crate::support::git::git;
use crate::support::model_server::{ModelServer, Response};

const UNITTEST: &str = "python3 -B -m unittest -v";
const SPAN: &[(&str, &str)] = &[
    ("span.py", "def width(a, b):\n    return a - b\n"),
    (
        "test_span.py",
        "import unittest\nfrom span import width\n\n\nclass Test(unittest.TestCase):\n    def test_width(self):\n        \
         self.assertEqual(width(2, 5), 3)\n",
    ),
];

/// What a program prints, in the same environment as the tests have.
fn printed(program: &str, arguments: &[&str]) -> String {
    let ran = std::process::Command::new(program).args(arguments).output().expect("it can be run");
    String::from_utf8_lossy(&ran.stdout).trim().to_owned()
}

#[test]
fn what_a_run_depended_on_is_told_for_runners_that_do_not_say_it() {
    if !has("python3") || !has("node") {
        return;
    }
    let python = printed("/usr/bin/python3", &["--version"]).replace("Python ", "");
    let node = printed("/usr/bin/node", &["--version"]).replace('v', "");
    let tap = "node --test --test-reporter=tap";
    let files: &[(&str, &str)] =
        &[SPAN[0], SPAN[1], ("a.test.js", "require('node:test')('a', () => {});\n"), (".gitignore", ".venv\n")];
    for (test, runtime, version, framework) in [(UNITTEST, "python", &python, "unittest"), (tap, "node", &node, "tap")]
    {
        let server = ModelServer::start(|_| analysis("span.py", "look at it more closely than that"));
        let env = project(&server, files);
        let ended = debug(&env, "r1", &["--no-fix", "--test", test]);
        let environment = memory_of(&env, &ended)["executions"][0]["environment"].clone();
        assert_eq!(
            environment,
            json!({ "runtime": runtime, "runtime_version": version, "test_framework": framework,
                "os": printed("uname", &["-sr"]), "additional": { "test_command": test, "sandbox": true } })
        );
    }
    // A program of the project's own is another than the one that would be asked; what is installed is told by its digest.
    let server = ModelServer::start(|_| analysis("span.py", "look at it more closely than that"));
    let env = project(&server, files);
    std::fs::create_dir_all(env.path(".venv/bin")).expect("it can be made");
    std::os::unix::fs::symlink("/usr/bin/python3", env.path(".venv/bin/python")).expect("it can be made");
    env.write(".venv/pyvenv.cfg", "home = /usr/bin\n");
    let ended = debug(&env, "r1", &["--no-fix", "--test", ".venv/bin/python -B -m unittest", "--setup", "true"]);
    let environment = memory_of(&env, &ended)["executions"][0]["environment"].clone();
    assert!(environment["runtime_version"].is_null(), "{environment}");
    let more = &environment["additional"];
    assert_eq!((&more["setup"], &more["dependencies"][0]["path"]), (&json!("true"), &json!(".venv")), "{environment}");
    assert!(more["dependencies"][0]["digest"].as_str().is_some_and(|digest| digest.len() >= 32), "{environment}");
    // Whether a sandbox held the commands is told, unless the user allows the program by which the host tells it.
    for (run, flags, more, sandbox) in
        [("r2", &["--no-sandbox"][..], &[][..], json!(false)), ("r3", &[][..], &["--run", "uname"][..], Value::Null)]
    {
        let arguments = ["run", "--json", "--model", "openai/test"].iter().chain(flags).copied();
        let arguments = arguments.chain(["debug-memory", "--no-fix", "--test", UNITTEST]).chain(more.iter().copied());
        let ended = env.nietz(arguments).var("NIETZ_RUN", run).go();
        let additional = memory_of(&env, &ended)["executions"][0]["environment"]["additional"].clone();
        assert_eq!(additional["sandbox"], sandbox, "{additional}");
    }
}

#[test]
fn our_own_key_holds_what_it_is_told_to_and_a_slip_is_named() {
    let (path, text) = super::asked::file(1, "2026-01-05", "passed", "TypeError", "src/a.py", None);
    let check = |own: &str, code: i32| {
        let env = Env::new().file(&path, format!("{text}nietz: {own}\n"));
        let ended = env.nietz(["check", &path]).go();
        assert_eq!(ended.code, Some(code), "{own}: {ended:?}");
        format!("{}{}", ended.stdout, ended.stderr)
    };
    check("{version: 1, source: debug, problem: p, report: r.md, ended: {reason: passed}}", 0);
    check("{version: 1, senior: {model: a/b, from_attempt: 2}, applied_templates: [{attempt: 1, pattern: p}]}", 0);
    check("{version: 1, judged_past: [{attempt: 1, candidates: 3, alike: [{session_id: s, reason: r}]}]}", 0);
    for (own, named) in [
        ("{version: 1, aplied_templates: []}", "aplied_templates"),
        ("{version: 1, ended: {trigger: stuck}}", "ended"),
        ("{version: 1, ended: {reason: passed, why: x}}", "ended"),
        ("{version: 1, senior: {model: a/b}}", "senior"),
        ("{version: 1, report: 7}", "report"),
        ("{version: 1, applied_templates: [{attempt: 0, pattern: p}]}", "applied_templates"),
        ("{version: 1, judged_past: [{attempt: 1, candidates: 3}]}", "judged_past"),
    ] {
        let told = check(own, 4);
        assert!(told.contains(named), "{told}");
    }
    // A later version may know more, and is read as far as it goes.
    let told = check("{version: 9, of_tomorrow: 1}", 0);
    assert!(told.contains("9 is newer than 1"), "{told}");
}

#[test]
fn equal_code_has_one_hash_in_two_sessions_whatever_its_commits_are() {
    let server = ModelServer::start(|_| analysis("out.txt", "look at it more closely than that"));
    let env = project(&server, &[("out.txt", "1..1\nok 1 - a\n")]);
    let hash = |run: &str| {
        let ended = debug(&env, run, &["--test", "cat out.txt"]);
        memory_of(&env, &ended)["executions"][0]["code_hash"].as_str().expect("there is one").to_owned()
    };
    let first = hash("r1");
    git(&env.workspace(), ["commit", "-q", "--allow-empty", "-m", "another commit of the same"]);
    assert_eq!(hash("r2"), first);
    env.write("out.txt", "1..1\nok 1 - b\n");
    git(&env.workspace(), ["commit", "-q", "-a", "-m", "other code"]);
    assert_ne!(hash("r3"), first);
}

/// An analysis for the one test of `SPAN`, with more fields.
fn with(more: &Value) -> impl Fn(&crate::support::model_server::Request) -> Response + use<> {
    let more = more.clone();
    let script = edits("span.py", &[("return a - b", "return b - a")]);
    move |request| {
        if !is_analysis(request) {
            return script(request);
        }
        let mut value = json!({
            "root_cause": "width takes its two sides in the wrong order",
            "root_cause_category": "logic_error",
            "location": { "file": "span.py", "line": 2 },
            "fix_strategy": "put `return b - a` in the place of `return a - b` there",
            "confidence": 0.8,
            "related_failures": ["test_width (test_span.Test.test_width)"],
            "pattern": "swapped_operands",
            "fix_template": "Put the operands in the order that the name says",
        });
        for (name, part) in more.as_object().expect("fields") {
            value[name] = part.clone();
        }
        Response::text(value.to_string()).usage(10, 5)
    }
}

fn ask(env: &Env, run: &str, arguments: &[&str]) -> Value {
    debug(env, run, arguments).result()
}

#[test]
fn a_failure_without_a_place_gets_that_of_the_analysis_and_queries_by_file_find_it() {
    let script = |request: &crate::support::model_server::Request| {
        let mut value = json!({ "root_cause": "width takes its two sides in the wrong order", "root_cause_category": "logic_error",
            "location": { "file": "span.py", "line": 2 }, "fix_strategy": "take the sides in the other order there",
            "confidence": 0.8, "pattern": "swapped_operands", "fix_template": "Put the operands in order" });
        value["related_failures"] = json!(["width"]);
        assert!(is_analysis(request));
        Response::text(value.to_string())
    };
    let server = ModelServer::start(script);
    let env = project(&server, &[SPAN[0], ("out.txt", "TAP version 13\n1..1\nnot ok 1 - width\n")]);
    let ended = debug(&env, "r1", &["--no-fix", "--test", "cat out.txt"]);
    let memory = memory_of(&env, &ended);
    let failure = &memory["executions"][0]["failures"][0];
    assert_eq!(failure["source_location"], json!({ "file": "span.py", "line": 2 }));
    assert_eq!(memory["nietz"]["placed_by_analysis"], json!([{ "attempt": 1, "test_name": "width" }]));
    assert_eq!(memory["executions"][0]["analysis"]["root_cause"], "width takes its two sides in the wrong order");
    let found = ask(&env, "q1", &["query", "find_similar_failures", "--file", "span.py"]);
    assert_eq!((&found["rows"][0][0], &found["rows"][0][6]), (&memory["session_id"], &json!("span.py")), "{found}");
    let stats = debug(&env, "q2", &["stats"]).of_type("said");
    assert!(stats.iter().any(|event| event["markdown"].to_string().contains("files: span.py 1")), "{stats:?}");
}

#[test]
fn a_known_template_is_recorded_as_applied_where_it_is() {
    if !has("python3") {
        return;
    }
    let server = ModelServer::start(with(&json!({})));
    let env = project(&server, SPAN);
    debug(&env, "r1", &["--test", UNITTEST]).exits(0);
    // The second session follows the template, after naming one that nobody offers.
    let (wrong, right) = (
        with(&json!({ "applied": "magic" })),
        with(&json!({ "applied": "swapped_operands", "pattern": "other_name" })),
    );
    let server =
        ModelServer::start(
            move |request| if is_analysis(request) && step(request) == 0 { wrong(request) } else { right(request) },
        );
    let env = env.var("OPENAI_BASE_URL", &server.url());
    let ended = debug(&env, "r2", &["--test", UNITTEST]).exits(0);
    let memory = memory_of(&env, &ended);
    assert_eq!(memory["nietz"]["applied_templates"], json!([{ "attempt": 1, "pattern": "swapped_operands" }]));
    let pattern = &memory["learnings"]["patterns_identified"][0];
    assert_eq!((&pattern["pattern"], &pattern["effectiveness"]), (&json!("swapped_operands"), &json!(1)), "{pattern}");
    assert_eq!(pattern["fix_template"], "Put the operands in the order that the name says");
    let told = server.requests()[1].body["messages"].to_string();
    assert!(told.contains("applied must be the name of one of the known patterns above"), "{told}");
    let patterns = ask(&env, "q1", &["patterns"]);
    assert_eq!((&patterns["patterns"][0]["uses"], &patterns["patterns"][0]["successes"]), (&json!(2), &json!(2)));
}

#[test]
fn recommendations_are_what_would_prevent_it_and_how_it_ended_stands_beside_them() {
    if !has("python3") {
        return;
    }
    let server =
        ModelServer::start(with(&json!({ "prevention": "Name parameters after what they are: start and end" })));
    let env = project(&server, SPAN);
    let ended = debug(&env, "r1", &["--test", UNITTEST]).exits(0);
    let memory = memory_of(&env, &ended);
    assert_eq!(memory["learnings"]["recommendations"], json!(["Name parameters after what they are: start and end"]));
    let reason = memory["nietz"]["ended"]["reason"].as_str().expect("a text");
    assert!(reason.starts_with("passed after 1 fix"), "{reason}");
    assert_eq!(memory["metadata"]["ralph_iteration"], 1);
    let shown = debug(&env, "q1", &["show"]).of_type("said")[0]["markdown"].to_string();
    assert!(shown.contains("• Name parameters") && shown.contains("ended: passed after 1 fix"), "{shown}");
}

#[test]
fn models_may_run_a_single_test_while_they_look_and_nothing_else() {
    if !has("python3") {
        return;
    }
    let server = ModelServer::start(move |request| match (is_analysis(request), step(request)) {
        (true, 0) => call("run", &json!({ "command": format!("{UNITTEST} test_span.Test.test_width") })),
        (true, 1) => call("run", &json!({ "command": format!("{UNITTEST} ../outside") })),
        (true, 2) => call("run", &json!({ "command": "python3 -c 'print(1)'" })),
        (true, 3) => call("read_file", &json!({ "path": "span.py" })),
        (true, _) => analysis("span.py", "put `return b - a` in the place of `return a - b` there"),
        (_, 0) => call("run", &json!({ "command": format!("{UNITTEST} -k test_width") })),
        (_, 1) => call("replace_in_file", &json!({ "path": "span.py", "old": "return a - b", "new": "return b - a" })),
        _ => Response::text("Done."),
    });
    let env = project(&server, SPAN);
    debug(&env, "r1", &["--test", UNITTEST]).exits(0);
    let requests = server.requests();
    let answer = |index: usize| {
        requests[index].body["messages"].as_array().and_then(|all| all.last()).expect("one")["content"].to_string()
    };
    assert!(answer(1).contains("exit code 1") && answer(1).contains("AssertionError: -3 != 3"), "{}", answer(1));
    for refused in [2, 3] {
        assert!(answer(refused).contains("is not allowed, or needs a shell"), "{}", answer(refused));
    }
    assert!(answer(6).contains("exit code 1") && answer(6).contains("Ran 1 test"), "{}", answer(6));
    let mending = requests.iter().find(|request| !is_analysis(request)).expect("there is one");
    assert!(task(mending).contains("\nRead for the analysis: span.py\n"), "what was read is known: {}", task(mending));
    assert_eq!(attempt(mending), 0);
}
