//! What a small mind gets in place of tools: the code that the failures are about, and a change to write down.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::{has, is_analysis, outcome, project, task};
use crate::support::git::git;
use crate::support::model_server::{ModelServer, Response};

const FILES: &[(&str, &str)] = &[
    (
        "shop/prices.py",
        "def total(lines):\n    \"\"\"The sum of count times price.\"\"\"\n    result = 0\n    for count, price in lines:\n        result += count + price\n    return result\n",
    ),
    ("shop/other.py", "UNUSED = True\n"),
    (
        "test_prices.py",
        "import unittest\nfrom shop.prices import total\n\n\nclass Test(unittest.TestCase):\n    def test_total(self):\n        self.assertEqual(total([(3, 4)]), 12)\n",
    ),
];

#[test]
fn a_small_mind_gets_the_code_and_no_tools_and_writes_its_change_down() {
    if !has("python3") {
        return;
    }
    let edit = |path: &str, old: &str, new: &str| {
        Response::text(json!({ "edits": [{ "path": path, "old": old, "new": new }] }).to_string())
    };
    let written = AtomicUsize::new(0);
    let server = ModelServer::start(move |request| {
        assert!(!request.body.to_string().contains("\"tools\""), "{}", request.body);
        let task = task(request);
        assert!(
            task.contains("`shop/prices.py`:\n```\ndef total(lines):") && task.contains("`test_prices.py`:"),
            "{task}"
        );
        assert!(!task.contains("UNUSED") && !task.contains("tool calls"), "{task}");
        if is_analysis(request) {
            assert!(!task.contains("`security`") && !task.contains("`issues`"), "{task}");
            return Response::text(
                json!({
                    "root_cause": "total adds the count to the price", "root_cause_category": "logic_error",
                    "location": { "file": "shop/prices.py", "line": 5 }, "fix_strategy": "multiply them in total()",
                    "confidence": 0.9, "pattern": "wrong_operator", "fix_template": "Use the operator that is meant",
                })
                .to_string(),
            );
        }
        let said: String = request.turns().into_iter().map(|(_, text)| text).collect();
        match written.fetch_add(1, Ordering::SeqCst) {
            0 => edit("shop/prices.py", "result", "sum"),
            1 => {
                assert!(said.contains("old stands in shop/prices.py more than once"), "{said}");
                edit("shop/prices.py", "7 != 12", "12")
            }
            2 => {
                assert!(
                    said.contains("old must stand in shop/prices.py letter by letter, and this does not: 7 != 12"),
                    "{said}"
                );
                edit("nowhere.py", "a", "b")
            }
            // That was not carried out; it leaves a line out, as such models do.
            _ => edit(
                "shop/prices.py",
                "def total(lines):\n    result = 0\n    for count, price in lines:\n        result += count + price\n",
                "def total(lines):\n    result = 0\n    for count, price in lines:\n        result += count * price\n",
            ),
        }
    });
    let env = project(&server, FILES);
    let call = ["debug-memory", "--test", "python3 -B -m unittest -v"];
    let ended = env.run_on("openai/test-1.5b", call).var("NIETZ_RUN", "r1").go();
    assert_eq!(outcome(&ended)["status"], "passed", "{ended:?}");
    assert_eq!(
        git(&env.workspace(), ["diff", "--shortstat", "main", "nietz/r1"]),
        " 1 file changed, 1 insertion(+), 1 deletion(-)"
    );
}
