//! The promise: what a run wrote can be held against its journal, and what does not agree is found and named.

use crate::support::env::{Env, RUN};
use crate::support::model_server::{ModelServer, Response};

const FLOW: &str = r#"local documents = require("@nietz/documents")
return require("@nietz").flow { name = "writes", summary = "Writes",
  collections = {
    rows = { path = "rows.jsonl", schema = { type = "object", properties = { id = { type = "integer" } } } },
    notes = { path = "notes/{slug}.yaml", keys = { slug = "/slug" }, schema = { type = "object" } } },
  run = function()
    local rows, notes = documents.collection("rows"), documents.collection("notes")
    for id = 1, 4 do rows:append { id = id, list = {} } end
    notes:save { slug = "kept", text = "as it is" }
    notes:save { slug = "gone", text = "not for long" }
    notes:delete("gone")
  end }
"#;

fn written() -> Env {
    let server = ModelServer::start(|_| Response::text("nobody asks"));
    let env = Env::with(&server).flow("writes", FLOW);
    env.run(["writes"]).go().exits(0);
    env
}

/// What is said after something was done to a file.
#[track_caller]
fn said(path: &str, change: impl Fn(Vec<&str>) -> String) -> Vec<String> {
    let env = written();
    let text = env.read(path);
    env.write(path, change(text.lines().collect()));
    let ended = env.nietz(["verify", RUN]).go().exits(4);
    assert!(ended.stderr.contains("error[record-differs]"), "{}", ended.stderr);
    let named = ended.stderr.lines().filter(|line| line.contains(&format!("{path}: ")));
    named.map(|line| line.split_once(&format!("{path}: ")).expect("it is there").1.to_owned()).collect()
}

#[test]
fn what_is_as_it_was_written_agrees() {
    let env = written();
    let told = env.nietz(["verify", RUN]).go().exits(0).stdout;
    assert_eq!(told, format!("{RUN}: {} lines in one chain, 2 documents, 4 rows\n", env.journal().lines.len()));
    // Others may add rows behind it.
    env.write("rows.jsonl", env.read("rows.jsonl") + "{\"id\":9,\"list\":[]}\n");
    env.nietz(["verify", RUN, "--json"]).go().exits(0);
}

#[test]
fn rows_that_were_edited_deleted_moved_or_doubled_are_named() {
    let edited = said("rows.jsonl", |rows| rows.join("\n").replacen("\"id\":2", "\"id\":7", 1) + "\n");
    assert_eq!(edited, ["line 2 was changed (line 5 of the journal)"]);
    let missing = said("rows.jsonl", |rows| rows[..3].join("\n") + "\n");
    assert_eq!(missing, ["a row is missing (line 9 of the journal)"]);
    let deleted = said("rows.jsonl", |rows| [rows[0], rows[2], rows[3]].join("\n") + "\n");
    assert!(deleted.contains(&"a row is missing (line 5 of the journal)".to_owned()), "{deleted:?}");
    let reversed = said("rows.jsonl", |rows| [rows[1], rows[0], rows[2], rows[3]].join("\n") + "\n");
    assert_eq!(
        reversed,
        [
            "line 2 was written elsewhere (line 3 of the journal)",
            "line 1 was written elsewhere (line 5 of the journal)"
        ]
    );
    let doubled = said("rows.jsonl", |rows| [&rows[..], &rows[1..2]].concat().join("\n") + "\n");
    assert_eq!(doubled, ["line 5 stands there twice"]);
}

#[test]
fn documents_that_are_not_as_they_were_saved_are_named() {
    let changed = said("notes/kept.yaml", |lines| lines.join("\n").replace("as it is", "as it is not") + "\n");
    assert_eq!(changed, ["is not as line 11 saved it"]);
    let env = written();
    std::fs::remove_file(env.path("notes/kept.yaml")).expect("it is there");
    env.write("notes/gone.yaml", "slug: gone\n");
    let ended = env.nietz(["verify", RUN]).go().exits(4);
    assert!(ended.stderr.contains("notes/kept.yaml: is gone; line 11 saved it"), "{}", ended.stderr);
    assert!(ended.stderr.contains("notes/gone.yaml: is there; line 15 deleted it"), "{}", ended.stderr);
}

#[test]
fn a_journal_whose_chain_is_broken_is_refused() {
    let env = written();
    let text = std::fs::read_to_string(env.journal_path()).expect("it is there");
    std::fs::write(env.journal_path(), text.replacen("\"id\":2", "\"id\":3", 1)).expect("it can be written");
    let ended = env.nietz(["verify", RUN]).go().exits(4);
    assert!(ended.stderr.contains("error[journal-broken]"), "{}", ended.stderr);
}
