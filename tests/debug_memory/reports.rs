//! The promise: a session's page shows the failures by round, their causes, which fixes held, and what was changed.

use super::{debug, edits, has, project};
use crate::support::model_server::ModelServer;

#[test]
fn the_page_of_a_session_shows_rounds_causes_and_fixes() {
    if !has("python3") {
        return;
    }
    let server = ModelServer::start(edits("add.py", &[("a - b", "a * b"), ("a * b", "a + b")]));
    let test = "import unittest\nfrom add import add\n\nclass Adds(unittest.TestCase):\n    def test_adds(self):\n        \
        self.assertEqual(add(2, 3), 5)\n";
    let env = project(&server, &[("add.py", "def add(a, b):\n    return a - b\n"), ("test_add.py", test)]);
    debug(&env, "r1", &["--test", "python3 -m unittest", "--file", "add.py"]).exits(0);
    let page = env.page("debug-memory");
    for part in
        ["Tests by round", "<polyline", "test_adds", "AssertionError", "Causes and fixes", "round 1", "nietz/r1"]
    {
        assert!(page.contains(part), "{part} is missing: {page}");
    }
}
