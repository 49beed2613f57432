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
fn places_are_pointers_and_the_old_spelling_means_the_same() {
    let query = r#""SELECT v.who, v.points FROM vote v ORDER BY v.points", { tables = { "notes" } }"#;
    let old = ask("notes/{slug}.yaml", INDEX, query).result();
    for each in ["/votes", "/votes/*"] {
        let declared = format!(
            r#"index = {{ vote = {{ each = "{each}", columns = {{ who = "/by/name", points = "/points" }} }} }}"#
        );
        assert_eq!(ask("notes/{slug}.yaml", &declared, query).result(), old, "{each}");
    }
    assert_eq!(old, json!([["Ann", 2], [null, 3], ["Bob", 5]]));
    let first = r#"index = { vote = { columns = { who = "/votes/0/by/name", points = "/votes/*/points" } } }"#;
    assert_eq!(ask("notes/{slug}.yaml", first, query).result(), json!([["Ann", "[2,3]"], ["Bob", "[5]"]]));
}

#[test]
fn a_place_in_another_spelling_is_refused_or_remarked_with_the_right_one() {
    let check = |declared: &str| {
        let flow = format!(
            "return require('@nietz').flow {{\n  name = 'places', summary = 'Places', run = function() end,\n  \
             collections = {{ notes = {{ path = 'notes/{{slug}}.yaml', schema = {{ type = 'object' }},\n    {declared} }} }},\n}}"
        );
        Env::new().flow("places", &flow)
    };
    for (declared, wrong, right) in [
        ("version = { field = 'version', current = 1 }", "version.field: `version`", "`/version`"),
        ("version = { field = 'meta.version', current = 1 }", "`meta.version`", "`/meta/version`"),
        ("keys = { slug = 'slug' }", "keys: `slug`", "`/slug`"),
    ] {
        let env = check(declared);
        for arguments in [vec!["check", "flows/places.lua"], vec!["run", "places"]] {
            let said = env.nietz(arguments.iter().copied()).go().exits(4);
            let said = format!("{}{}", said.stdout, said.stderr);
            assert!(said.contains(wrong) && said.contains(&format!("write {right}")), "{declared}: {said}");
        }
    }
    let env = check("index = { a = { each = 'rounds.votes', columns = { who = 'name', fine = '/name' } } }");
    let said = env.nietz(["check", "flows/places.lua"]).go().exits(0).stdout;
    assert!(said.contains("`/rounds/votes`") && said.contains("`/name`"), "{said}");
    assert!(said.contains("flows/places.lua:4:"), "{said}");
    assert_eq!(env.nietz(["check", "--json", "flows/places.lua"]).go().exits(0).stdout.lines().count(), 2);
}

#[test]
fn a_part_that_is_no_pointer_is_refused_with_the_right_spelling() {
    let flow = r#"local notes = require("@nietz/documents").collection("notes")
return require("@nietz").flow {
  name = "parts", summary = "Parts",
  collections = { notes = { path = "notes/{slug}.yaml", schema = { type = "object" } } },
  run = function()
    notes:save { slug = "a", by = { name = "Ann" } }
    local found
    notes:each(function(entry) found = entry.value end, { fields = { who = "/by/name" } })
    local ok, problem = pcall(notes.each, notes, function() end, { fields = { who = "by.name" } })
    return { found = found, ok = ok, code = problem.code, hint = problem.hint }
  end,
}"#;
    let result = Env::new().flow("parts", flow).run(["parts"]).go().result();
    let hint = "write `/by/name`";
    assert_eq!(result, json!({ "found": { "who": "Ann" }, "ok": false, "code": "request-invalid", "hint": hint }));
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
