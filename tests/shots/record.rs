//! The promise of the migrations mode's record: each call, goal and end is a row, and rows answer questions.

use serde_json::{Value, json};

use super::basics::{CHECK, call, column, divided, env, rows, shoot, step, task};
use crate::support::model_server::{ModelServer, Response};

#[test]
fn a_call_that_reaches_no_tool_is_a_row_and_counts() {
    let server = ModelServer::start(|request| match step(request) {
        0 => call("delete_file", &json!({ "path": "work.txt" })),
        1 => call("read_file", &json!({ "paths": "work.txt" })),
        2 => Response::text("").usage(10, 5).tool_call("t", "read_file", "{\"path\": \"wo"),
        3 => call("list_folder", &json!({ "path": "." })),
        _ => call("again", &json!([1])),
    });
    let env = env(&server);
    shoot(&env, &["--validate", CHECK, "--max-tools", "5", "--max-breakdowns", "0"]).refused();
    assert_eq!(column(&env, "attempt_result", "status"), ["tool_limit"]);
    assert_eq!(column(&env, "tool_call", "order"), [1, 2, 3, 4, 5]);
    let tool = |name: &str| rows(&env, "tool").into_iter().find(|row| row["name"] == name).unwrap()["id"].clone();
    let (read, list) = (tool("read_file"), tool("list_folder"));
    let (delete, again) = (tool("delete_file"), tool("again"));
    assert_eq!(column(&env, "tool_call", "tool_id"), [delete, read.clone(), read, list, again]);
    assert_eq!(column(&env, "tool_call", "tool_name")[0], "delete_file");
    let inputs = column(&env, "tool_call", "input");
    assert_eq!(inputs[0], json!({ "path": "work.txt" }));
    assert_eq!(inputs[2], json!({ "arguments": "{\"path\": \"wo" }));
    assert_eq!(inputs[4], json!({ "arguments": "[1]" }));
    let outputs = column(&env, "tool_call", "output");
    assert!(outputs[1].as_str().unwrap().starts_with("error: the arguments are wrong: "), "{}", outputs[1]);
    let path = ".nietz/shots-on-goal/r1/tool_call.jsonl";
    env.nietz(["check", path]).go().exits(0);
    // The specification's own queries are right about it.
    for (number, (query, count)) in [(1, 5), (2, 14)].into_iter().enumerate() {
        let (sql, bind, _) = QUERIES[query];
        let bind = bind.iter().flat_map(|_| ["--bind", "1"]);
        let asked = env.nietz(["run", "shots-on-goal", "query", "--json"]).args(bind).args([sql]);
        let result = asked.var("NIETZ_RUN", &format!("q{number}")).go().result();
        assert_eq!(result["rows"].as_array().map(Vec::len), Some(count), "{sql}: {result}");
    }
}

#[test]
fn a_sub_goal_that_was_never_started_is_said_to_be_so() {
    let server = ModelServer::start(|request| match (task(request).contains("put beta"), step(request)) {
        (true, 0) if !task(request).contains("break the goal down") => {
            call("write_file", &json!({ "path": "c.txt", "text": "no" }))
        }
        (true, 1) => Response::text("It will not do."),
        _ => divided(request),
    });
    let env = env(&server);
    let ended = shoot(&env, &["--validate", CHECK, "--run", "grep", "--max-breakdowns", "1"]);
    assert_eq!(ended.refused()["status"], "failed", "{ended:?}");
    let ends: Vec<(Value, Value)> =
        rows(&env, "goal_end").into_iter().map(|row| (row["goal_id"].clone(), row["status"].clone())).collect();
    let expected = [(2, "success"), (3, "failed"), (4, "not_started"), (1, "failed")];
    assert_eq!(ends, expected.map(|(id, status)| (json!(id), json!(status))));
    let shown = env.nietz(["run", "shots-on-goal", "show"]).var("NIETZ_RUN", "r2").go().stdout;
    for line in [
        "✗ goal 1: say done in work.txt",
        "  ✓ goal 2: put alpha into a.txt",
        "  ✗ goal 3: put beta into b.txt",
        "  • goal 4: say done in work.txt for good (not started: sub-goal 3 before it failed)",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}\n{shown}");
    }
}

#[test]
fn the_tree_is_shown_with_what_each_attempt_is_doing() {
    let server = ModelServer::start(divided);
    let env = env(&server);
    let ended = shoot(&env, &["--validate", CHECK, "--run", "grep"]);
    let seen: Vec<String> =
        ended.of_type("status").iter().map(|event| event["text"].as_str().unwrap().to_owned()).collect();
    let has = |tree: &[&str]| seen.iter().any(|text| *text == tree.join("\n"));
    assert!(
        has(&[
            "• goal 1: say done in work.txt",
            "    • implementation 1 (openai/a): write_file wrong.txt (1) · 0 s, 15 tokens",
            "0 s, 15 tokens",
        ]),
        "{seen:#?}"
    );
    assert!(
        has(&[
            "• goal 1: say done in work.txt",
            "    ✗ implementation 1 (openai/a): completed",
            "    ✓ breakdown 2 (openai/b): success",
            "  ✓ goal 2: put alpha into a.txt",
            "  • goal 3: put beta into b.txt",
            "      • implementation 4 (openai/b): validating with grep -q alpha a.txt (2 of 2) · 0 s, TOKENS",
            "  • goal 4: say done in work.txt for good",
            "0 s, TOKENS",
        ]),
        "{seen:#?}"
    );
    assert_eq!(seen.last().map(String::as_str), Some(""), "nothing is left at the end");
    // A pipe shows no status: there each step is a line.
    let plain = env.nietz(["run", "shots-on-goal", "say done", "--model", "openai/b"]).var("NIETZ_RUN", "r2");
    let plain = plain.args(["--accept-unvalidated", "--max-breakdowns", "0"]).go().stdout;
    assert!(plain.starts_with("• goal 1: say done\n• goal 1, implementation 1 (openai/b) begins\n"), "{plain}");
}

/// The queries of the specification, as they stand there.
const QUERIES: [(&str, &[&str], usize); 5] = [
    ("SELECT * FROM goal\nWHERE created_by_attempt_id = ?", &["2"], 3),
    (
        "SELECT tc.*, t.description\nFROM tool_call tc\nJOIN tool t ON tc.tool_id = t.id\nWHERE tc.attempt_id = ?\nORDER BY tc.order",
        &["2"],
        2,
    ),
    (
        "SELECT t.* FROM tool t\nJOIN attempt_tool at ON t.id = at.tool_id\nWHERE at.attempt_id = ?\n  AND t.id NOT IN (\n    SELECT tool_id FROM tool_call WHERE attempt_id = ?\n  )",
        &["1", "1"],
        15,
    ),
    (
        "SELECT b.* FROM branch b\nJOIN worktree w ON b.id = w.branch_id\nJOIN attempt a ON w.id = a.worktree_id\nWHERE a.id = ?",
        &["1"],
        1,
    ),
    (
        "WITH RECURSIVE goal_ancestry AS (\n  SELECT id, parent_goal_id, goal_text, 0 as depth\n  FROM goal WHERE id = ?\n  UNION ALL\n  SELECT g.id, g.parent_goal_id, g.goal_text, ga.depth + 1\n  FROM goal g\n  JOIN goal_ancestry ga ON g.id = ga.parent_goal_id\n)\nSELECT * FROM goal_ancestry ORDER BY depth DESC",
        &["3"],
        2,
    ),
];

#[test]
fn the_record_answers_the_queries_of_the_specification() {
    let server = ModelServer::start(divided);
    let env = env(&server);
    let ask = |number: usize, sql: &str, bind: &[&str], more: &[&str]| {
        let mut arguments = vec!["run", "shots-on-goal", "query", "--json"];
        bind.iter().for_each(|value| arguments.extend(["--bind", value]));
        arguments.extend(more);
        arguments.push(sql);
        env.nietz(arguments).var("NIETZ_RUN", &format!("q{number}")).go()
    };
    for (number, (sql, bind, _)) in QUERIES.iter().enumerate() {
        assert_eq!(ask(number, sql, bind, &[]).result()["rows"], json!([]), "before the first session");
    }
    shoot(&env, &["--validate", CHECK, "--run", "grep"]).result();
    for (number, (sql, bind, count)) in QUERIES.iter().enumerate() {
        let result = ask(10 + number, sql, bind, &[]).result();
        assert_eq!(result["rows"].as_array().unwrap().len(), *count, "{sql}: {result}");
    }
    assert_eq!(ask(20, QUERIES[0].0, &[], &[]).failure(), "request-invalid", "a value is missing");
    assert_eq!(ask(21, "DELETE FROM goal", &[], &[]).failure(), "permission-refused");
    assert_eq!(ask(22, "SELECT 1", &[], &["--session", "nowhere"]).failure(), "flow-error");
    let text = |format: &str, number: usize| {
        let sql = "SELECT g.id, g.order, g.parent_goal_id, g.goal_text || ', \"so\"' AS t FROM goal g WHERE id < 3";
        let call = ["run", "shots-on-goal", "query", "--format", format, sql];
        env.nietz(call).var("NIETZ_RUN", &format!("f{number}")).go().exits(0).stdout
    };
    assert!(
        text("csv", 1).contains("id,order,parent_goal_id,t\n1,1,,\"say done in work.txt, \"\"so\"\"\"\n2,1,1,"),
        "{}",
        text("csv", 2)
    );
    assert!(text("table", 3).contains("id  order  parent_goal_id  t"), "{}", text("table", 4));
    assert!(text("json", 5).contains("\"parent_goal_id\": null"), "{}", text("json", 6));
}

/// A memory file of a failure that was mended.
const MEMORY: &str = r#"
session_id: 00000000-0000-4000-8000-000000000001
file_path: work.txt
updated_at: "2026-01-05T09:00:00Z"
status: passed
executions:
- attempt: 1
  timestamp: "2026-01-05T08:00:00Z"
  code_hash: "00"
  test_results: {total: 1, passed: 0, failed: 1}
  failures: [{test_name: says done, error_type: AssertionError, error_message: expected the word done}]
  analysis: {root_cause: the word stood in capitals, fix_strategy: write the word done in small letters}
  fix_applied: {description: did so, verification: passed}
"#;

#[test]
fn the_next_shot_is_told_what_the_debug_memory_knows() {
    for (more, told) in [(&[][..], true), (&["--no-memory"][..], false)] {
        let server = ModelServer::start(divided);
        let env = env(&server)
            .file("check.sh", "echo 1..1; grep -q '^done$' work.txt && echo ok 1 && exit\necho 'not ok 1 - says done'; printf '  ---\\n  error: expected the word done\\n  ...\\n'; exit 1\n")
            .file(".nietz/debug-memory/sessions/00000000-0000-4000-8000-000000000001.yaml", MEMORY);
        crate::support::git::git(&env.workspace(), ["commit", "-q", "-a", "-m", "tap"]);
        shoot(&env, &[&["--validate", CHECK, "--run", "grep"], more].concat()).result();
        let prompt = column(&env, "attempt", "prompt")[1].as_str().unwrap().to_owned();
        let memory = "- 2026-01-05, work.txt: AssertionError in says done: expected the word done";
        assert_eq!(
            prompt.contains(memory) && prompt.contains("What helped: write the word done in small letters"),
            told,
            "{prompt}"
        );
    }
}
