//! What the memory answers: the schema's own queries, patterns, statistics; and what goes to the archive when.

use serde_json::{Value, json};

use super::{FOLDER, debug, project, session};
use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};

/// The example of the schema, as it stands there.
fn example() -> String {
    let schema = include_str!("../../flows/common/memory/debug-memory.schema.yaml");
    let schema: Value = serde_yaml::from_str(schema).expect("it is YAML");
    serde_yaml::to_string(&schema["examples"][0]).expect("it can be written")
}

/// A memory file with one failure, one fix and one pattern.
pub(crate) fn file(
    id: u32,
    day: &str,
    status: &str,
    error: &str,
    path: &str,
    pattern: Option<(&str, u32, f64)>,
) -> (String, String) {
    let id = format!("00000000-0000-4000-8000-{id:012}");
    let mut value = json!({
        "session_id": id, "file_path": path, "created_at": format!("{day}T08:00:00Z"), "updated_at": format!("{day}T09:00:00Z"),
        "status": status,
        "executions": [{
            "attempt": 1, "timestamp": format!("{day}T08:00:00Z"), "code_hash": "0".repeat(64),
            "test_results": { "total": 2, "passed": 1, "failed": 1 },
            "failures": [{ "test_name": format!("test of {path}"), "error_type": error, "error_message": "it broke",
                "source_location": { "file": path, "line": 3 } }],
            "analysis": { "root_cause": "the value is not checked before", "fix_strategy": "check the value before it is used",
                "root_cause_category": "missing_validation", "confidence": 0.9 },
            "fix_applied": { "description": "checked", "verification": "passed" },
        }],
    });
    if let Some((name, frequency, effectiveness)) = pattern {
        value["learnings"] = json!({ "patterns_identified": [{ "pattern": name, "category": "missing_validation",
            "frequency": frequency, "effectiveness": effectiveness, "fix_template": "Check it first" }] });
    }
    (format!("{FOLDER}/sessions/{id}.yaml"), serde_yaml::to_string(&value).expect("it can be written"))
}

/// A workspace with the schema's example and five sessions, as of 2026-01-09.
fn memory() -> Env {
    let mut env = Env::new().file(&format!("{FOLDER}/sessions/dm-001-example.yaml"), example());
    for (path, text) in [
        file(1, "2026-01-08", "escalated", "TypeError", "src/a.ts", None),
        file(2, "2026-01-05", "passed", "TypeError", "src/b.ts", Some(("unchecked_input", 1, 1.0))),
        file(3, "2025-12-30", "escalated", "TimeoutError", "src/a.ts", None),
        file(4, "2026-01-02", "passed", "TypeError", "lib/c.ts", Some(("unchecked_input", 3, 0.5))),
        file(5, "2026-01-03", "failed", "Other", "lib/d.ts", Some(("wild_guess", 4, 0.25))),
    ] {
        env = env.file(&path, text);
    }
    env
}

fn ask(env: &Env, run: &str, arguments: &[&str]) -> Value {
    debug(env, run, arguments).result()
}

/// The last characters of the ids in the first column.
fn ids(result: &Value) -> Vec<String> {
    let rows = result["rows"].as_array().expect("there are rows");
    rows.iter().map(|row| row[0].as_str().unwrap().rsplit('0').next().unwrap().to_owned()).collect()
}

#[test]
fn the_queries_of_the_schema_do_what_they_say() {
    let env = memory();
    let query = |run: &str, more: &[&str]| ask(&env, run, &[&["query"], more].concat());
    let similar = query("q1", &["find_similar_failures", "--error-type", "TypeError", "--file", "src/%"]);
    // The newest first; the example has no time.
    assert_eq!(ids(&similar), ["1", "2", "1-example"]);
    assert_eq!(ids(&query("q2", &["find_similar_failures", "--file", "a.ts"])), ["1", "3", "1-example"][..2]);
    let templates = query("q3", &["get_fix_templates", "--category", "missing_validation"]);
    // Summed over both sessions that met it, it held in 2.5 of 4 fixes: too seldom for a template.
    assert_eq!(templates["rows"], json!([]));
    assert_eq!(ids(&query("q4", &["recent_escalations"])), ["1", "3"]);
    assert_eq!(ids(&query("q5", &["recent_escalations", "--since", "7d"])), ["1"]);
    assert_eq!(ids(&query("q6", &["recent_escalations", "--since", "2025-12-01"])), ["1", "3"]);
    assert_eq!(ids(&query("q7", &["unchecked"])), ["2", "4"]);
    assert_eq!(ids(&query("q8", &["c.ts", "--error-type", "TypeError"])), ["4"]);
    assert_eq!(debug(&env, "q9", &["query", "find_similar_failures"]).failure(), "usage");
    assert_eq!(debug(&env, "q10", &["query", "x", "--since", "soon"]).failure(), "usage");
    let text =
        env.nietz(["run", "debug-memory", "query", "recent_escalations", "--format", "csv"]).var("NIETZ_RUN", "q11");
    assert!(
        text.go()
            .stdout
            .starts_with("session_id,file_path,status,updated_at\n00000000-0000-4000-8000-000000000001,src/a.ts,")
    );
    // A file that is broken is left out, and said to be.
    env.write(&format!("{FOLDER}/sessions/broken.yaml"), "session_id: [\n");
    let said = debug(&env, "q12", &["query", "unchecked"]).of_type("said");
    assert!(said.iter().any(|event| event["markdown"].as_str().unwrap().starts_with("Left out: ")), "{said:?}");
}

#[test]
fn patterns_are_counted_over_all_sessions_and_those_that_fail_are_given_up() {
    let env = memory();
    let patterns = |run: &str, more: &[&str]| {
        let result = ask(&env, run, &[&["patterns"], more].concat());
        let of =
            |row: &Value| (row["pattern"].as_str().unwrap().to_owned(), row["uses"].clone(), row["successes"].clone());
        result["patterns"].as_array().into_iter().flatten().map(of).collect::<Vec<_>>()
    };
    let unchecked = ("unchecked_input".to_owned(), json!(4), json!(3));
    let example = ("null_access_without_check".to_owned(), json!(1), json!(1));
    assert_eq!(patterns("p1", &[]), [unchecked.clone(), example.clone()], "a quarter of four uses is too seldom");
    let all = patterns("p2", &["--all"]);
    assert_eq!(all[2], ("wild_guess".to_owned(), json!(4), json!(1)));
    let stats = ask(&env, "p3", &["stats"]);
    assert_eq!((&stats["sessions"], &stats["passed"], &stats["escalated"]), (&json!(6), &json!(3), &json!(2)));
    // What is archived still counts.
    ask(&env, "p4", &["clear", "--yes"]);
    assert_eq!(patterns("p5", &[]), [unchecked, example]);
    assert_eq!(ask(&env, "p6", &["stats"])["sessions"], 6);
    assert_eq!(ids(&ask(&env, "p7", &["query", "recent_escalations"])), Vec::<String>::new());
}

#[test]
fn clear_asks_and_archives_what_it_was_told_to() {
    let env = memory();
    let count = |folder: &str| std::fs::read_dir(env.path(&format!("{FOLDER}/{folder}"))).map_or(0, Iterator::count);
    let clear = |run: &str, answer: &str, more: &[&str]| {
        let call = env.run(["debug-memory", "clear"].into_iter().chain(more.iter().copied())).var("NIETZ_RUN", run);
        let ended = call.stdin(format!("{answer}\n")).go();
        let archived = ended.result()["archived"].clone();
        if archived == 1 {
            let said = ended.of_type("said");
            assert!(said.iter().any(|event| event["markdown"].to_string().contains("\"1 session is in ")), "{said:?}");
        }
        archived
    };
    assert_eq!(clear("c1", "no", &[]), 0);
    assert_eq!((count("sessions"), count("archive")), (6, 0));
    assert_eq!(clear("c2", "yes", &["--file", "src/%", "--before", "2026-01-01"]), 1);
    assert_eq!(clear("c3", "yes", &["--error-type", "Other"]), 1);
    assert_eq!((count("sessions"), count("archive")), (4, 2));
    assert_eq!(clear("c4", "yes", &[]), 4);
    // The example goes as well, though it has no UUID.
    assert_eq!(session(&env, "archive", "dm-001-example")["status"], "passed");
    assert_eq!((count("sessions"), clear("c5", "yes", &[])), (0, json!(0)));
}

#[test]
fn old_sessions_are_archived_on_start_by_what_they_are_worth() {
    let server = ModelServer::start(|_| Response::text("never"));
    let env = project(&server, &[("out.txt", "1..1\nok 1 - a\n")]);
    for (path, text) in [
        file(1, "2025-12-05", "failed", "Other", "x", None),
        file(2, "2025-12-15", "failed", "Other", "x", None),
        file(3, "2025-11-05", "passed", "Other", "x", Some(("kept_longer", 1, 1.0))),
        file(4, "2025-11-15", "passed", "Other", "x", Some(("kept_longer", 1, 1.0))),
        file(5, "2025-10-05", "escalated", "Other", "x", None),
        file(6, "2025-10-15", "escalated", "Other", "x", None),
    ] {
        env.write(&path, text);
    }
    // Where a session does not say when it was changed, its last run of the tests does.
    for (id, day) in [(7, "2025-12-06"), (8, "2025-12-16")] {
        let (path, text) = file(id, day, "failed", "Other", "x", None);
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("updated_at")).collect();
        assert_eq!(lines.len() + 1, text.lines().count(), "one line is taken out");
        env.write(&path, lines.join("\n").replace(&format!("created_at: {day}"), "created_at: 2025-11-01"));
    }
    let ended = debug(&env, "r1", &["--test", "cat out.txt"]);
    assert_eq!((&ended.result()["status"], server.calls()), (&json!("passed"), 0));
    let there = |folder: &str| {
        let mut names: Vec<String> = std::fs::read_dir(env.path(&format!("{FOLDER}/{folder}")))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with("00000000"))
            .map(|name| name.trim_end_matches(".yaml").rsplit('0').next().unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(
        (there("archive"), there("sessions")),
        (["1", "3", "5", "7"].map(str::to_owned).into(), ["2", "4", "6", "8"].map(str::to_owned).into())
    );
    assert!(ended.of_type("said").iter().any(|event| event["markdown"] == "4 old sessions are in the archive now."));
}
