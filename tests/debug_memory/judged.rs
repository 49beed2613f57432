//! The promise: the rules propose what may be like, and the analysis, which reads the code, says which of it is. Only that is
//! shown, recorded, counted, and told to the model that mends; and it costs no call.

use serde_json::{Value, json};

use super::recall::{PORT, Past};
use super::{call, debug, has, is_analysis, memory_of, project, step, task};
use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Request, Response};
use crate::support::process::Ended;

const UNITTEST: &str = "python3 -B -m unittest -v";
const SPAN: &[(&str, &str)] = &[
    ("span.py", "def width(a, b):\n    return a - b\n"),
    (
        "test_span.py",
        "import unittest\nfrom span import width\n\n\nclass Test(unittest.TestCase):\n    def test_width(self):\n        \
         self.assertEqual(width(2, 5), 3)\n",
    ),
];

/// The same test failed in the same words once, for another cause; and another test for the like one.
const SAME_WORDS: Past = Past {
    id: 1,
    file: "numbers.py",
    test: "test_width (test_span.Test.test_width)",
    error: ("AssertionError", "AssertionError: -3 != 3"),
    cause: "parse() drops the sign of what it reads",
    fix: "keep the sign in parse()",
    ..PORT
};
const SAME_CAUSE: Past = Past {
    id: 2,
    file: "age.py",
    test: "test_years (test_age.Test.test_years)",
    error: ("AssertionError", "AssertionError: -40 != 40"),
    cause: "years() takes the later year from the earlier one",
    fix: "swap the operands in years()",
    ..PORT
};

/// The name by which a prompt tells the past that is about this file.
fn name_of(prompt: &str, file: &str) -> String {
    let line = prompt.lines().find(|line| line.starts_with("- P") && line.contains(&format!(", {file}: ")));
    let line = line.unwrap_or_else(|| panic!("{file} is a candidate: {prompt}"));
    line[2..].split(',').next().expect("it has a name").to_owned()
}

/// A model that mends it, and says of the candidates what `alike` gives for the prompt and the number of the reply.
fn script(alike: impl Fn(&str, usize) -> Option<Value> + Send + Sync + 'static) -> impl Fn(&Request) -> Response {
    move |request| match (is_analysis(request), step(request)) {
        (true, count) => {
            let mut said = json!({
                "root_cause": "width takes the end from the beginning", "root_cause_category": "logic_error",
                "location": { "file": "span.py", "line": 2 }, "fix_strategy": "swap the operands in width()",
                "confidence": 0.9, "pattern": "swapped_operands", "fix_template": "Put the operands in order",
            });
            if let Some(alike) = alike(&task(request), count) {
                said["alike"] = alike;
            }
            Response::text(said.to_string())
        }
        (false, 0) => call("replace_in_file", &json!({ "path": "span.py", "old": "a - b", "new": "b - a" })),
        _ => Response::text("I swapped them."),
    }
}

/// A session over a memory with both pasts; returns it, its file, and what the model that mends was told.
fn session(server: &ModelServer, more: &[&str]) -> (Ended, Value, String, Env) {
    let env = project(server, SPAN);
    SAME_WORDS.put(&env);
    SAME_CAUSE.put(&env);
    let ended = debug(&env, "r1", &[&["--test", UNITTEST], more].concat()).exits(0);
    let memory = memory_of(&env, &ended);
    let fix = server.requests().iter().find(|request| !is_analysis(request)).map(task).expect("it is mended");
    (ended, memory, fix, env)
}

fn said(ended: &Ended) -> String {
    let line = |event: Value| event["markdown"].as_str().unwrap_or_default().to_owned();
    ended.of_type("said").into_iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_the_analysis_says_is_like_is_carried_on_and_nothing_else() {
    if !has("python3") {
        return;
    }
    let server = ModelServer::start(script(|prompt, count| {
        // A name that is none is sent back.
        let name = if count == 0 { "P9".to_owned() } else { name_of(prompt, "age.py") };
        Some(json!([{ "past": name, "reason": "the operands of a subtraction are swapped" }]))
    }));
    let (ended, memory, fix, env) = session(&server, &[]);
    let requests = server.requests();
    let again = requests[1].body["messages"].to_string();
    assert!(
        again.contains("alike names past observations above, and P9 is none of them: those are P1 to P2"),
        "{again}"
    );
    // All of it is told to who judges, and what is like to who mends.
    let asked = task(&requests[0]);
    assert!(asked.contains("numbers.py") && asked.contains("age.py"), "{asked}");
    assert!(fix.contains("What helped: swap the operands in years()"), "{fix}");
    assert!(fix.contains("  Like this one, because: the operands of a subtraction are swapped\n"), "{fix}");
    assert!(!fix.contains("numbers.py") && !fix.contains("- P"), "{fix}");
    let said = said(&ended);
    assert!(
        said.contains("a like AssertionError in age.py, mended then: the operands of a subtraction are swapped"),
        "{said}"
    );
    assert!(!said.contains("numbers.py"), "{said}");
    assert_eq!(ended.result()["recalled"], 1);
    let similar = &memory["executions"][0]["analysis"]["similar_past_issues"];
    assert_eq!(*similar, json!([{ "session_id": SAME_CAUSE.id(), "file": "age.py", "resolution": SAME_CAUSE.fix }]));
    let reason = "the operands of a subtraction are swapped";
    assert_eq!(
        memory["nietz"]["judged_past"],
        json!([{ "attempt": 1, "candidates": 2, "alike": [{ "session_id": SAME_CAUSE.id(), "reason": reason }] }])
    );
    let stats = debug(&env, "q1", &["stats"]).of_type("said")[0]["markdown"].to_string();
    assert!(stats.contains("memory used in 33 %"), "{stats}");
}

#[test]
fn where_none_is_like_none_is_told_and_it_costs_no_call() {
    if !has("python3") {
        return;
    }
    let server = ModelServer::start(script(|_, _| Some(json!([]))));
    let (ended, memory, fix, _) = session(&server, &[]);
    assert!(!fix.contains("Past observations") && !said(&ended).contains("a like "), "{fix}");
    assert_eq!(ended.result()["recalled"], 0);
    assert!(memory["executions"][0]["analysis"]["similar_past_issues"].is_null(), "{memory}");
    assert_eq!(memory["nietz"]["judged_past"], json!([{ "attempt": 1, "candidates": 2, "alike": [] }]));
    let with = server.calls();
    let server = ModelServer::start(script(|_, _| None));
    let (_, memory, _, _) = session(&server, &["--no-memory"]);
    assert_eq!(server.calls(), with);
    assert!(memory["nietz"]["judged_past"].is_null() && !task(&server.requests()[0]).contains("`alike`"), "{memory}");
}

#[test]
fn where_nobody_judges_that_is_offered_of_which_the_rules_are_sure() {
    if !has("python3") {
        return;
    }
    let server = ModelServer::start(script(|_, _| None));
    let (ended, memory, fix, _) = session(&server, &[]);
    assert!(fix.contains("numbers.py") && !fix.contains("age.py"), "the same test in the same words: {fix}");
    assert!(said(&ended).contains("a like AssertionError in numbers.py, mended then"), "{ended:?}");
    assert_eq!(ended.result()["recalled"], 1);
    assert!(memory["nietz"]["judged_past"].is_null(), "{memory}");
}
