//! A large mind writes in the language of the user where nobody chose one, headings included, and says how the brief came about in it, too.

use serde_json::{Value, json};

use super::leads::brief;
use super::model::Brain;
use super::table::{FULL, TOPIC, Table, read, task};
use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Request, Response};

/// The headings of a brief.
fn headings(brief: &str) -> Vec<&str> {
    brief.lines().filter_map(|line| line.strip_prefix("## ")).collect()
}

/// The one request that asks for the brief that goes out.
fn asked(table: &Table) -> Request {
    let mut all = table.server.requests();
    all.retain(|request| !request.schema()["properties"]["parts"].is_null());
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[test]
fn headings_and_the_last_line_of_a_brief_are_its_writers() {
    let server = ModelServer::start(|request| {
        let mut value = Brain::default().reply(request);
        if !value["parts"].is_null() {
            value["parts"] = json!([
                {"of": "risks", "heading": "Woran es\n## scheitern kann", "text": "Niemand ruft an."},
                {"of": "problem", "heading": "Worum es geht", "text": "Bestellungen gehen verloren [1]."},
                {"of": "risks", "heading": "Und woran noch", "text": "Niemand schreibt."}]);
            value["came_about"] = json!("Wie es entstand: eine Antwort.");
        }
        Response::text(value.to_string())
    });
    let table = Table { env: Env::with(&server), server };
    table.begin(&["Bestellungen bleiben bei uns.", "", "", "finish"]).exits(0);
    let text = brief(&table);
    let expected = ["Woran es ## scheitern kann", "Worum es geht", "Und woran noch", "Findings"];
    assert_eq!(headings(&text), expected, "in the order of its writer, and what it passed over: {text}");
    for part in ["\n## Und woran noch\n\nNiemand schreibt.\n", "\n*Wie es entstand: eine Antwort.*\n"] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let told = "came_about: empty if you write in English. Else this line in the language in which you write: \"How this came about: \
                one answer in one round of questions, in the journal beside this file.\"\nWrite in the language in which the user writes.";
    let asked = asked(&table);
    assert!(task(&asked).ends_with(told), "{}", task(&asked));
}

#[test]
fn who_drafts_a_brief_reads_the_conversation_alone_and_who_writes_it_the_draft_too() {
    let table = Table::new();
    table.begin(&[FULL, "", "", "finish"]).exits(0);
    let mut drafts = table.server.requests();
    drafts.retain(|request| !request.schema()["properties"]["brief"].is_null());
    assert_eq!(drafts.len(), 1);
    let (draft, said) = (read(&drafts[0]), FULL.split(". ").next().unwrap_or_default());
    assert!(draft.contains("\nU1: ") && draft.contains(said), "{draft}");
    assert!(!draft.contains("#1 ") && !draft.contains("Noted:"), "nothing that was noted: {draft}");
    let written = read(&asked(&table));
    assert!(
        written.contains("<draft>\nKeep orders in the ledger.\n\n## Why\n\nThe customer leaves.\n</draft>"),
        "{written}"
    );
    assert!(written.contains("\n#1 "), "{written}");
}

#[test]
fn where_a_language_was_chosen_all_is_in_that_whatever_the_user_writes() {
    let table = Table::new();
    let flags = [TOPIC, "--no-clarify", "--no-hmw", "--lang", "fr"];
    table.talk(flags, &["Bestellungen bleiben bei uns.", "", "", "finish"]).exits(0);
    let asked = asked(&table);
    assert_eq!(asked.schema()["properties"]["came_about"], Value::Null);
    assert!(task(&asked).ends_with("\nWrite in French.") && !task(&asked).contains("came_about:"), "{}", task(&asked));
    let text = brief(&table);
    assert!(text.contains("*D'où vient ce document : une réponse en un tour de questions, "), "{text}");
}

#[test]
fn a_small_mind_is_told_the_language_and_drafts_nothing() {
    let table = Table::small(Brain::default());
    table.begin(&[FULL, "", "", "finish"]).exits(0);
    for request in table.server.requests() {
        assert!(!read(&request).contains("the language in which the user writes"), "{}", read(&request));
        let properties = request.schema()["properties"].clone();
        assert!(properties["brief"].is_null() && properties["parts"].is_null(), "{properties}");
    }
    assert!(headings(&brief(&table)).contains(&"Problem"));
}
