//! The promise of indexes: what stands in many documents can be asked in SQL, and a declaration that is wrong is told.

use serde_json::json;

use crate::support::env::Env;
use crate::support::process::Ended;

/// Runs a flow whose collection of notes has this declared, and which asks this.
fn ask(path: &str, declared: &str, query: &str) -> Ended {
    let flow = format!(
        r#"local documents = require("@nietz/documents")
return require("@nietz").flow {{
  name = "asking", summary = "Asks",
  collections = {{ notes = {{ path = "{path}", schema = {{ type = "object" }}, {declared} }} }},
  run = function()
    local notes = documents.collection("notes")
    notes:save {{ slug = "a", votes = {{ {{ by = {{ name = "Ann" }}, points = 2 }}, {{ points = 3 }} }} }}
    notes:save {{ slug = "b", votes = {{ {{ by = {{ name = "Bob" }}, points = 5 }} }} }}
    local answer = documents.query({query})
    return answer.rows
  end,
}}"#
    );
    Env::new().flow("asking", &flow).run(["asking"]).go()
}

const INDEX: &str = r#"index = { vote = { each = "votes", columns = { who = "by.name", points = "points" } } }"#;

#[test]
fn documents_are_asked_through_their_index() {
    let asked = ask(
        "notes/{slug}.yaml",
        INDEX,
        r#""SELECT v.who, v.points, v.document FROM vote v WHERE v.points > ? ORDER BY v.points", { bind = { 2 }, tables = { "notes" } }"#,
    );
    assert_eq!(asked.result(), json!([[null, 3, "notes/a.yaml"], ["Bob", 5, "notes/b.yaml"]]));
}

#[test]
fn what_cannot_be_asked_is_told() {
    let failure = |path: &str, declared: &str, query: &str| {
        let ended = ask(path, declared, query);
        let failure = &ended.events().pop().unwrap_or_default()["failure"];
        let said = format!("{} {} {}", failure["code"], failure["message"], failure["hint"]);
        if failure.is_null() { ended.stderr } else { said }
    };
    let yaml = "notes/{slug}.yaml";
    for (path, declared, query, part) in [
        (yaml, "", r#""SELECT 1", { tables = { "notes" } }"#, "holds documents, not rows"),
        (yaml, INDEX, r#""SELECT x FROM vote", { tables = { "notes" } }"#, "tables: vote"),
        (yaml, INDEX, r#""DELETE FROM vote", { tables = { "notes" } }"#, "a query can only read"),
        (yaml, INDEX, r#""SELECT * FROM vote""#, "no such table"),
        (yaml, r#"index = { ["a b"] = { columns = { x = "x" } } }"#, "'SELECT 1'", "must be a name of letters"),
        (yaml, r#"index = { a = { columns = { document = "x" } } }"#, "'SELECT 1'", "and not `document`"),
        (yaml, r#"formats = "sometimes""#, "'SELECT 1'", "formats must be on-save or never"),
        ("notes/{slug}.jsonl", INDEX, "'SELECT 1'", "rows can be asked as they are"),
        (".nietz/index/{slug}.yaml", INDEX, "'SELECT 1'", "leads to files of the repository or of nietz itself"),
    ] {
        let said = failure(path, declared, query);
        assert!(said.contains(part), "{part}: {said}");
    }
}
