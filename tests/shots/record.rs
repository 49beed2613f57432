//! The promise of the migrations mode's record: each call, goal and end is a row, and rows answer questions.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::basics::{CHECK, call, column, divided, env, good, replace, rows, shoot, step, task};
use crate::support::env::Env;
use crate::support::git::git;
use crate::support::kills;
use crate::support::model_server::{ModelServer, Request, Response};

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
    // A version is a digest of what models see of a tool; one that was made up has none.
    let version =
        |name: &str| rows(&env, "tool").into_iter().find(|row| row["name"] == name).unwrap()["version"].clone();
    let digest = |name: &str| version(name).as_str().is_some_and(|text| text.len() == 64);
    assert!(digest("read_file") && digest("list_folder") && version("read_file") != version("list_folder"));
    assert_eq!(version("again"), Value::Null);
    let inputs = column(&env, "tool_call", "input");
    assert_eq!(inputs[0], json!({ "path": "work.txt" }));
    assert_eq!(inputs[2], json!({ "arguments": "{\"path\": \"wo" }));
    assert_eq!(inputs[4], json!({ "arguments": "[1]" }));
    let outputs = column(&env, "tool_call", "output");
    assert!(outputs[1].as_str().unwrap().starts_with("error: the arguments are wrong: "), "{}", outputs[1]);
    let path = ".nietz/shots-on-goal/r1/tool_call.jsonl";
    env.nietz(["check", path]).go().exits(0);
    // The specification's own queries are right about it.
    for (number, (query, count)) in [(1, 5), (2, 15)].into_iter().enumerate() {
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
            "    • implementation 1 (openai/a) · 0 s, 15 tokens: write_file wrong.txt (1)",
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
            "      • implementation 4 (openai/b) · 0 s, 27 tokens: validating with grep -q alpha a.txt (2 of 2)",
            "  • goal 4: say done in work.txt for good",
            "0 s, 249 tokens",
        ]),
        "{seen:#?}"
    );
    assert_eq!(seen.last().map(String::as_str), Some(""), "nothing is left at the end");
    // A pipe shows no status: there each step is a line.
    let plain = env.nietz(["run", "shots-on-goal", "say done", "--model", "openai/b"]).var("NIETZ_RUN", "r2");
    let plain = plain.args(["--accept-unvalidated", "--max-breakdowns", "0"]).go().stdout;
    assert!(plain.starts_with("• goal 1: say done\n• goal 1, implementation 1 (openai/b) begins\n"), "{plain}");
}

/// The queries of the specification, as they stand there, with values and how many rows they give for the session that is `divided`.
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
        16,
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
        shoot(&env, &[&["--validate", CHECK, "--run", "grep"], more].concat()).refused();
        let prompt = column(&env, "attempt", "prompt")[1].as_str().unwrap().to_owned();
        let memory = "- 2026-01-05, work.txt: AssertionError in says done: expected the word done";
        assert_eq!(
            prompt.contains(memory) && prompt.contains("What helped: write the word done in small letters"),
            told,
            "{prompt}"
        );
    }
}

/// Shots side by side that call what is not there: a tool of another agent's, and one that they have not been offered.
fn stray(request: &Request) -> Response {
    match step(request) {
        0 => call("bash", &json!({ "command": "ls" })),
        1 => call("read_file", &json!({ "path": "work.txt" })),
        2 => call("bash", &json!({ "command": "ls -l" })),
        3 => replace("todo", "done"),
        _ => Response::text("Done.").usage(10, 5),
    }
}

/// Holds the answers of the five queries against what the tables say, for every attempt and every goal.
fn the_queries_are_right(env: &Env, run: &str) {
    let mut number = 0;
    let mut ask = |query: usize, value: &Value| -> Vec<Value> {
        number += 1;
        let (sql, bind, _) = QUERIES[query];
        let value = value.to_string();
        let bind = bind.iter().flat_map(|_| ["--bind", value.as_str()]);
        let asked = env.nietz(["run", "shots-on-goal", "query", "--json"]).args(bind).args([sql]);
        let result = asked.var("NIETZ_RUN", &format!("{run}-{number}")).go().result();
        let columns = result["columns"].as_array().expect("there are columns").clone();
        let rows = result["rows"].as_array().expect("there are rows").iter().map(|row| {
            let cells = columns.iter().zip(row.as_array().expect("a row is a list"));
            Value::Object(cells.map(|(name, cell)| (name.as_str().unwrap().to_owned(), cell.clone())).collect())
        });
        rows.collect()
    };
    let ids = |rows: &[Value], column: &str| {
        let mut ids: Vec<u64> = rows.iter().map(|row| row[column].as_u64().expect("an id")).collect();
        ids.sort_unstable();
        ids
    };
    let of = |table: &str, column: &str, id: &Value| -> Vec<Value> {
        rows(env, table).into_iter().filter(|row| row[column] == *id).collect()
    };
    let one = |table: &str, id: &Value| of(table, "id", id).pop().expect("it is there");
    for attempt in rows(env, "attempt") {
        let id = &attempt["id"];
        assert_eq!(ids(&ask(0, id), "id"), ids(&of("goal", "created_by_attempt_id", id), "id"), "goals by {id}");
        let calls = of("tool_call", "attempt_id", id);
        let orders: Vec<Value> = ask(1, id).into_iter().map(|row| row["order"].clone()).collect();
        assert_eq!(orders, (1..=calls.len()).map(|order| json!(order)).collect::<Vec<_>>(), "calls of {id}");
        let called = ids(&calls, "tool_id");
        let mut unused = ids(&of("attempt_tool", "attempt_id", id), "tool_id");
        unused.retain(|tool| !called.contains(tool));
        assert_eq!(ids(&ask(2, id), "id"), unused, "tools that {id} has not used");
        let branch = &one("worktree", &attempt["worktree_id"])["branch_id"];
        assert_eq!(ids(&ask(3, id), "id"), [branch.as_u64().unwrap()], "the branch of {id}");
    }
    for goal in rows(env, "goal") {
        let (mut above, mut at) = (Vec::new(), goal.clone());
        loop {
            above.insert(0, at["id"].clone());
            if at["parent_goal_id"].is_null() {
                break;
            }
            at = one("goal", &at["parent_goal_id"]);
        }
        let told: Vec<Value> = ask(4, &goal["id"]).into_iter().map(|row| row["id"].clone()).collect();
        assert_eq!(told, above, "what is above goal {}", goal["id"]);
    }
}

/// What `nietz verify` and `nietz check` say of a session: nothing at all.
fn nothing_is_wrong(env: &Env) {
    env.nietz(["verify", "r1"]).go().exits(0);
    let mut files: Vec<String> = std::fs::read_dir(env.path(".nietz/shots-on-goal/r1"))
        .expect("it is there")
        .map(|entry| entry.expect("it can be read").path().display().to_string())
        .collect();
    files.sort();
    let checked = env.nietz(["check", "--json"]).args(files.iter().map(String::as_str)).go();
    assert_eq!((checked.code, checked.stdout.as_str()), (Some(0), ""), "{checked:?}");
}

#[test]
fn the_queries_are_right_with_unknown_tools_shots_side_by_side_and_a_resume() {
    let server = ModelServer::start(stray);
    let env = env(&server).without("NIETZ_CLOCK");
    shoot(&env, &["--validate", CHECK, "--shots", "3", "--max-calls", "8"]).exits(6);
    let ended = env.resume().args(["--max-calls", "60"]).go();
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
    assert_eq!(rows(&env, "attempt").len(), 3);
    the_queries_are_right(&env, "q");
    let known: Vec<Value> = rows(&env, "tool").into_iter().filter(|row| row["name"] == "bash").collect();
    assert!(!known.is_empty() && known.iter().all(|row| row["description"] == "not offered"), "{known:?}");
    nothing_is_wrong(&env);
}

#[test]
fn shots_side_by_side_that_are_killed_anywhere_leave_a_whole_record() {
    let script = |request: &Request| match step(request) {
        0 => replace("todo", "done"),
        _ => Response::text("Done.").usage(10, 5),
    };
    let arguments =
        ["shots-on-goal", "--model-a", "openai/a", "--validate", CHECK, "--shots", "3", "say done in work.txt"];
    let server = ModelServer::start(script);
    let reference = env(&server);
    reference.run(arguments).go().result();
    let length = std::fs::metadata(reference.journal_path()).expect("it is there").len();
    let seeds = if kills::whole() { (1..=12).collect::<Vec<u64>>() } else { vec![1, 2, 3] };
    kills::for_each(&seeds, |seed| {
        let server = ModelServer::start(script);
        let env = env(&server).without("NIETZ_CLOCK");
        let resume = || env.resume();
        let ended = kills::anywhere(&env, &mut kills::Chance(seed), (2, length), env.run(arguments), resume);
        assert_eq!(ended.result()["status"], "success", "seed {seed}");
        nothing_is_wrong(&env);
    });
}

#[test]
fn branches_and_worktrees_are_called_by_the_attempts_own_id() {
    for more in [&["--shots", "3"][..], &["--run", "grep"][..]] {
        let server = ModelServer::start(divided);
        let env = env(&server);
        shoot(&env, &[&["--validate", CHECK], more].concat());
        assert!(rows(&env, "attempt").len() >= 3);
        let (branches, worktrees) = (rows(&env, "branch"), rows(&env, "worktree"));
        for attempt in rows(&env, "attempt") {
            let own = |row: &&Value, column: &str, id: &Value| row[column] == *id;
            let worktree = worktrees.iter().find(|row| own(row, "id", &attempt["worktree_id"])).unwrap();
            let branch = branches.iter().find(|row| own(row, "id", &worktree["branch_id"])).unwrap();
            let (goal, id) = (&attempt["goal_id"], &attempt["id"]);
            let end = if attempt["attempt_type"] == "breakdown" { "-breakdown" } else { "" };
            assert_eq!(branch["name"], format!("nietz/r1-g{goal}-a{id}{end}"));
            assert!(worktree["path"].as_str().unwrap().ends_with(&format!("/r1-g{goal}-a{id}")), "{worktree}");
        }
    }
}

#[test]
fn rows_have_the_time_of_their_event_in_milliseconds() {
    let server = ModelServer::start(good);
    let env = env(&server).file("check.sh", "sleep 0.3; grep -q '^done$' work.txt\n").without("NIETZ_CLOCK");
    git(&env.workspace(), ["commit", "-q", "-a", "-m", "slow"]);
    shoot(&env, &["--validate", CHECK]).result();
    let time = |row: &Value| {
        let text = row["timestamp"].as_str().expect("a time").to_owned();
        assert!(text.len() == 24 && text.as_bytes()[19] == b'.' && text.ends_with('Z'), "{text}");
        chrono::DateTime::parse_from_rfc3339(&text).expect("a time").timestamp_millis()
    };
    let last_call = time(&rows(&env, "tool_call")[2]);
    let (result, run) = (time(&rows(&env, "attempt_result")[0]), time(&rows(&env, "validation_run")[0]));
    let usage = time(&rows(&env, "attempt_usage")[0]);
    // The model ended, then the command ran, then what both came to was written.
    assert!(last_call <= result && result + 300 <= run && run <= usage, "{last_call} {result} {run} {usage}");
}

#[test]
fn flags_say_what_was_loosened_and_a_resume_changes_no_row() {
    let server = ModelServer::start(good);
    let env = env(&server);
    shoot(&env, &["--validate", CHECK, "--allow-net", "--no-sandbox", "--max-calls", "2"]).exits(6);
    let ended = env.resume().args(["--max-calls", "50", "--max-tokens", "100000"]).go();
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
    let sessions = rows(&env, "session");
    assert_eq!(sessions.len(), 1);
    let host = &sessions[0]["flags"]["host"];
    assert_eq!(
        (&host["allow_net"], &host["no_sandbox"], host["seed"].is_u64(), &host["budget"]["calls"]),
        (&json!(true), &json!(true), true, &json!(2)),
        "{host}"
    );
    let server = ModelServer::start(good);
    let env = super::basics::env(&server);
    shoot(&env, &["--validate", CHECK]).result();
    let host = &rows(&env, "session")[0]["flags"]["host"];
    assert_eq!((&host["allow_net"], &host["no_sandbox"]), (&json!(false), &json!(false)), "{host}");
}

#[test]
fn edits_of_rows_are_found() {
    let server = ModelServer::start(good);
    let env = env(&server);
    shoot(&env, &["--validate", CHECK]).result();
    nothing_is_wrong(&env);
    let path = |table: &str| format!(".nietz/shots-on-goal/r1/{table}.jsonl");
    let whole = |table: &str| env.read(&path(table));
    let found = |table: &str, text: String, told: &str| {
        let before = std::fs::read(env.path(&path(table))).ok();
        env.write(&path(table), text);
        let ended = env.nietz(["verify", "r1"]).go().exits(4);
        assert!(ended.stderr.contains(&format!("{}: {told}", path(table))), "{told}: {}", ended.stderr);
        match before {
            Some(before) => env.write(&path(table), before),
            None => std::fs::remove_file(env.path(&path(table))).expect("it is ours"),
        }
    };
    found("attempt_result", whole("attempt_result").replace("success", "error"), "line 1 was changed");
    let calls = whole("tool_call");
    let lines: Vec<&str> = calls.lines().collect();
    found("tool_call", format!("{}\n{}\n", lines[0], lines[2]), "a row is missing");
    found(
        "tool_call",
        format!("{calls}{}\n", lines[2].replace("\"id\":3", "\"id\":4")),
        "line 4 was not written by this run",
    );
    found("merge_conflict", "{\"id\":1}\n".to_owned(), "was not written by this run");
    nothing_is_wrong(&env);
    // Without a path, documents below `.nietz` are looked at, too.
    let attempts = whole("attempt");
    env.write(&path("attempt"), attempts.replace("\"goal_id\":1", "\"goal_id\":7"));
    let checked = env.nietz(["check"]).go().exits(4);
    assert!(checked.stdout.contains("there is no row 7 in `goal`"), "{checked:?}");
    env.write(&path("attempt"), attempts);
    // A second result for an attempt is a fault of the file itself.
    let result = whole("attempt_result");
    env.write(&path("attempt_result"), format!("{result}{}", result.replace("\"id\":1,", "\"id\":2,")));
    let checked = env.nietz(["check", &path("attempt_result")]).go().exits(4);
    assert!(checked.stdout.contains("attempt_id"), "{checked:?}");
}

#[test]
fn pass_at_k_goes_by_the_order_in_which_shots_began() {
    let asked = AtomicU64::new(0);
    // The shot that begins last is the only one that validates, and the first that ends.
    let server =
        ModelServer::start(move |request| match (step(request), task(request).contains("break the goal down")) {
            (_, true) => Response::text("never"),
            (0, _) if asked.fetch_add(1, Ordering::SeqCst) < 3 => replace("todo", "nearly"),
            (0, _) => replace("todo", "done"),
            _ => Response::text("Done.").usage(10, 5),
        });
    let env = env(&server);
    shoot(&env, &["--validate", CHECK, "--shots", "3", "--max-breakdowns", "0"]).refused();
    let shown = env.nietz(["run", "shots-on-goal", "show"]).var("NIETZ_RUN", "r2").go().stdout;
    assert!(shown.contains("pass@1 0 of 1, pass@2 0 of 1, pass@3 0 of 1"), "{shown}");
    let lines = std::fs::read_to_string(env.path(".nietz/shots-on-goal/r1/attempt_result.jsonl")).expect("it is there");
    // Were it that the third shot had validated, whatever the order of rows, it is the third.
    let third = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("a row")).map(|mut row| {
        if row["attempt_id"] == 3 {
            row["status"] = json!("success");
        }
        row.to_string()
    });
    let mut rewritten: Vec<String> = third.collect();
    rewritten.reverse();
    env.write(".nietz/shots-on-goal/r1/attempt_result.jsonl", rewritten.join("\n") + "\n");
    let attempts = env.read(".nietz/shots-on-goal/r1/attempt.jsonl");
    let mut reversed: Vec<&str> = attempts.lines().collect();
    reversed.reverse();
    env.write(".nietz/shots-on-goal/r1/attempt.jsonl", reversed.join("\n") + "\n");
    let shown = env.nietz(["run", "shots-on-goal", "show"]).var("NIETZ_RUN", "r3").go().stdout;
    assert!(shown.contains("pass@1 0 of 1, pass@2 0 of 1, pass@3 1 of 1"), "{shown}");
}
