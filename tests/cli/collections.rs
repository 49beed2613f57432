//! The promise: what a collection's declaration, its schema and its migrations get wrong is told before a document is lost to
//! it, with its file and line, and in words that say what to do.

use serde_json::{Value, json};

use crate::support::env::Env;

const SCHEMA: &str = r#"{
  "type": "object",
  "additionalProperties": false,
  "required": ["version", "week"],
  "properties": {
    "version": { "const": 2 },
    "week": { "type": "string" },
    "mood": { "type": "integer" }
  }
}
"#;

/// A flow of one collection; its keys and its version can be said in another way.
fn flow(keys: &str, version: &str) -> String {
    format!(
        r#"local documents, llm, json = require("@nietz/documents"), require("@nietz/llm"), require("@nietz/json")
return require("@nietz").flow {{
  name = "retro", summary = "Weeks", host_api = 2, permissions = {{ llm = true }},
  collections = {{ weeks = {{
    path = "weeks/{{week}}.yaml",
    schema = "./retro/week.schema.json",
    keys = {{ {keys} }},
    version = {{ {version} }},
  }} }},
  run = function()
    documents.collection("weeks"):save {{ version = 2, week = "a" }}
    return llm.chat {{ prompt = "Sort.", schema = json.load("./retro/sorted.json") }}.value
  end,
}}"#
    )
}

const KEYS: &str = r#"week = "/week""#;
const VERSION: &str = r#"field = "/version", current = 2"#;

fn with(flow: &str, schema: &str) -> Env {
    let sorted = "{\n  \"type\": \"array\"\n}\n";
    Env::new().flow("retro", flow).file("flows/retro/week.schema.json", schema).file("flows/retro/sorted.json", sorted)
}

fn faults(env: &Env) -> Vec<(String, u64, String)> {
    let ended = env.nietz(["check", "--json", "flows/retro.lua"]).go();
    let told = ended.stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let told = told.map(|told| {
        let file = told["file"].as_str().unwrap_or_default().rsplit('/').next().unwrap_or_default().to_owned();
        (file, told["line"].as_u64().unwrap_or_default(), told["message"].as_str().unwrap_or_default().to_owned())
    });
    told.collect()
}

#[test]
fn a_schema_that_lets_no_document_of_today_in_is_told_where_it_is_declared() {
    let env = with(&flow(KEYS, VERSION), SCHEMA);
    assert_eq!(faults(&env), [], "nothing is wrong with it");

    let cases = [
        (flow(KEYS, r#"field = "/version", current = 1"#), SCHEMA.to_owned(), 8, "it is of version 1"),
        (flow(KEYS, VERSION), SCHEMA.replace("\"const\": 2", "\"const\": 1"), 8, "it is of version 2"),
        (flow(KEYS, VERSION), SCHEMA.replace("\"const\": 2", "\"enum\": [1, 3]"), 8, "it is of version 2"),
        (flow(KEYS, r#"field = "/format", current = 2"#), SCHEMA.to_owned(), 8, "lets no `/format` in"),
        (flow(r#"week = "/wek""#, VERSION), SCHEMA.to_owned(), 7, "lets no `/wek` in"),
    ];
    for (flow, schema, line, part) in cases {
        let found = faults(&with(&flow, &schema));
        assert!(
            matches!(found.as_slice(), [(file, at, message)] if file == "retro.lua" && *at == line && message.contains(part)),
            "{part}: {found:?}"
        );
    }
    // What a schema says in another spelling, by a reference, or not at all, is no fault.
    for (version, said) in [
        (r#"field = "/version", current = "2""#, r#""const": 2"#),
        (VERSION, r#""const": "2""#),
        (VERSION, r#""enum": [1, 2]"#),
        (VERSION, r##""$ref": "#/$defs/v""##),
        (VERSION, r#""anyOf": [{ "const": 7 }, { "const": 2 }]"#),
    ] {
        let schema = SCHEMA
            .replace("\"const\": 2", said)
            .replace("\"type\": \"object\",", "\"type\": \"object\", \"$defs\": { \"v\": { \"const\": 2 } },");
        assert_eq!(faults(&with(&flow(KEYS, version), &schema)), [], "{version} {said}");
    }
    for open in [
        SCHEMA.replace("\"additionalProperties\": false,", ""),
        SCHEMA.replace(
            "\"additionalProperties\": false",
            "\"additionalProperties\": false, \"patternProperties\": { \"^w\": true }",
        ),
    ] {
        assert_eq!(faults(&with(&flow(r#"week = "/wek""#, VERSION), &open)), []);
    }
}

#[test]
fn a_schema_that_is_none_is_told_by_its_file_and_line() {
    let wrong = SCHEMA.replace("\"type\": \"integer\"", "\"type\": \"intger\"");
    let env = with(&flow(KEYS, VERSION), &wrong);
    let ended = env.nietz(["check", "flows/retro.lua"]).go().exits(4);
    let told = format!("{}{}", ended.stdout, ended.stderr);
    for part in [
        "collection `weeks`: its schema (./retro/week.schema.json) is wrong: /properties/mood/type: \"intger\" is no type; known are \
         array, boolean, integer, null, number, object, string; did you mean integer?",
        "flows/retro/week.schema.json:8",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }

    // One that is loaded and given to a call is looked at, too, and not only once the call is made.
    let env = with(&flow(KEYS, VERSION), SCHEMA);
    env.write("flows/retro/sorted.json", "{\n  \"type\": \"arry\"\n}\n");
    let found = faults(&env);
    assert!(
        matches!(found.as_slice(), [(file, 2, message)] if file == "sorted.json" && message.contains("did you mean array?")),
        "{found:?}"
    );
    // What is loaded for something else is no schema.
    let other = flow(KEYS, VERSION)
        .replace("schema = json.load(\"./retro/sorted.json\")", "label = json.load(\"./retro/sorted.json\").type");
    env.write("flows/retro.lua", other);
    assert_eq!(faults(&env), []);
}

#[test]
fn a_misspelt_part_of_a_version_is_told_with_the_name_that_was_meant() {
    let version = r#"field = "/version", current = 2, migratons = { ["1"] = function(doc) return doc end }"#;
    let ended = with(&flow(KEYS, version), SCHEMA).nietz(["check", "flows/retro.lua"]).go().exits(4);
    let told = format!("{}{}", ended.stdout, ended.stderr);
    assert!(told.contains("version has no field `migratons`") && told.contains("did you mean `migrations`?"), "{told}");
    // A number is taken as a text, as ever, and said to be one.
    let version = r#"field = "/version", current = 2, migrations = { [1] = function(doc) return doc end }"#;
    let found = faults(&with(&flow(KEYS, version), SCHEMA));
    assert!(matches!(found.as_slice(), [(_, 8, message)] if message.contains(r#"write `["1"]`"#)), "{found:?}");
}

#[test]
fn what_is_wrong_with_a_migration_is_told_in_words_and_whole() {
    let migrating = |body: &str| {
        let version = format!(r#"{VERSION}, migrations = {{ ["1"] = function(doc) {body} end }}"#);
        with(&flow(KEYS, &version), SCHEMA).file("weeks/a.yaml", "version: 1\nweek: a\n")
    };
    let told = |env: &Env| {
        let checked = env.nietz(["check", "weeks"]).go().exits(4);
        let tried = env.nietz(["documents", "migrate", "--dry-run"]).go().exits(4);
        let done = env.nietz(["documents", "migrate"]).go().exits(4);
        assert_eq!(env.read("weeks/a.yaml"), "version: 1\nweek: a\n", "it is kept");
        [format!("{}{}", checked.stdout, checked.stderr), tried.stdout, done.stdout]
    };
    for told in told(&migrating("doc.version = 2")) {
        assert!(told.contains("the migration from \"1\" returned nothing"), "{told}");
    }
    for told in told(&migrating("doc.mood, doc.wek, doc.week = \"good\", 1, nil return doc")) {
        for part in ["version", "/mood: must be an integer", "/wek", "is missing required \"week\""] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
    // The key is held against it as well: it would be saved under another name.
    for told in told(&migrating("doc.version, doc.week = 2, \"b\" return doc")) {
        assert!(told.contains("/week: must be \"a\", as the file's name says"), "{told}");
    }
    // A version that the migration leaves as it was, where the schema says nothing of it.
    let env = migrating("return doc");
    env.write("flows/retro/week.schema.json", SCHEMA.replace("{ \"const\": 2 }", "{ \"type\": \"integer\" }"));
    for told in told(&env) {
        assert!(told.contains("/version: must be the current version 2"), "{told}");
    }
    // An empty list is one, as it is when it is saved.
    let env = migrating("doc.version, doc.mood = 2, {} return doc");
    env.write("flows/retro/week.schema.json", SCHEMA.replace("\"type\": \"integer\"", "\"type\": \"array\""));
    env.nietz(["check", "weeks"]).go().exits(0);
    env.nietz(["documents", "migrate"]).go().exits(0);
    assert!(env.read("weeks/a.yaml").contains("mood: []"));
}

#[test]
fn files_that_cannot_be_read_are_kept_counted_and_told() {
    let version = format!(r#"{VERSION}, migrations = {{ ["1"] = function(doc) doc.version = 2 return doc end }}"#);
    let env = with(&flow(KEYS, &version), SCHEMA)
        .file("weeks/a.yaml", "version: 1\nweek: a\n")
        .file("weeks/b.yaml", "week: [\n")
        .file("weeks/c.yaml", b"\xff\xfe\x00");
    for arguments in [vec!["documents", "migrate", "--dry-run"], vec!["documents", "migrate"]] {
        let told = env.nietz(arguments).go().exits(4).stdout;
        assert!(
            told.contains("weeks/b.yaml: kept as it is: ") && told.contains("weeks/c.yaml: kept as it is: "),
            "{told}"
        );
        assert!(told.contains("brought up to date: 1; kept as they are: 2"), "{told}");
    }
    assert_eq!(env.read("weeks/b.yaml"), "week: [\n");
    let told = env.nietz(["documents", "migrate", "--json"]).go().exits(4).stdout;
    let kept: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(kept.iter().all(|one| one["failure"]["code"] == json!("document-unreadable")), "{kept:?}");
}
