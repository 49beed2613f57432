//! The promise: it works where developers work, on what they have there: a failing test that is not committed, a folder below
//! the top; and it says on which files it works.

use serde_json::json;

use super::{debug, edits, has, memory_of, project};
use crate::support::git::git;
use crate::support::model_server::ModelServer;
use crate::support::process::Ended;

const UNITTEST: &str = "python3 -B -m unittest -v";
const SPAN: &str = "def width(a, b):\n    return a - b\n";
const TEST: &str = "import unittest\nfrom span import width\n\n\nclass Test(unittest.TestCase):\n    def test_width(self):\n        \
                    self.assertEqual(width(2, 5), 3)\n\n    def test_none(self):\n        self.assertEqual(width(2, 2), 0)\n";

fn said(ended: &Ended) -> String {
    let line = |event: serde_json::Value| event["markdown"].as_str().unwrap_or_default().to_owned();
    ended.of_type("said").into_iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_failing_test_that_is_not_committed_is_said_to_be_left_out_or_taken() {
    if !has("python3") {
        return;
    }
    let server = ModelServer::start(edits("span.py", &[("return a - b", "return b - a")]));
    let passing = TEST.replace("width(2, 5), 3", "width(5, 2), 3");
    let env = project(&server, &[("span.py", SPAN), ("test_span.py", &passing)]);
    env.write("test_span.py", TEST);
    let ended = debug(&env, "r1", &["--test", UNITTEST]).exits(0);
    assert_eq!(ended.result()["reason"], "the tests pass as they are");
    let told = "This starts from the last commit, without 1 file with changes that are not committed: `test_span.py`. \
                --with-changes starts from the files as they are.";
    assert!(said(&ended).contains(told), "{}", said(&ended));
    assert_eq!(server.calls(), 0);

    let ended = debug(&env, "r2", &["--test", UNITTEST, "--with-changes"]).exits(0);
    let memory = memory_of(&env, &ended);
    assert_eq!((&memory["status"], memory["executions"].as_array().map(Vec::len)), (&json!("passed"), Some(2)));
    assert_eq!(memory["executions"][0]["test_results"]["failed"], 1);
    assert_eq!(memory["executions"][0]["environment"]["additional"]["starts_from_changes"], true);
    assert!(git(&env.workspace(), ["show", "nietz/r2:span.py"]).contains("b - a"));
    assert_eq!(env.read("span.py"), SPAN, "the checkout is the user's");
}

#[test]
fn in_a_folder_below_the_top_the_tests_of_that_folder_are_run_and_mended() {
    if !has("python3") {
        return;
    }
    let server = ModelServer::start(edits("lib/span.py", &[("return a - b", "return b - a")]));
    let env = project(&server, &[("README.md", "x\n"), ("lib/span.py", SPAN), ("lib/test_span.py", TEST)]);
    let call = env.run(["debug-memory", "--test", UNITTEST]).var("NIETZ_RUN", "r1").within("lib");
    let ended = call.go().exits(0);
    assert_eq!(ended.result()["status"], "passed", "{ended:?}");
    assert!(git(&env.workspace(), ["show", "nietz/r1:lib/span.py"]).contains("b - a"));
}
