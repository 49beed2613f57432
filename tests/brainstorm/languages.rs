//! A large mind writes in the language of the user where nobody chose one, and the headings of a brief are its own then, too.

use serde_json::{Value, json};

use super::leads::{brief, writing};
use super::model::Brain;
use super::table::{FULL, TOPIC, Table, read, task};
use crate::support::model_server::Request;

/// The headings of a brief.
fn headings(brief: &str) -> Vec<&str> {
    brief.lines().filter_map(|line| line.strip_prefix("## ")).collect()
}

/// The one request that asks for the brief.
fn asked(table: &Table) -> Request {
    let mut all = table.server.requests();
    all.retain(|request| task(request).starts_with("Write the brief"));
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[test]
fn the_headings_of_a_brief_are_what_its_writer_calls_them_and_those_that_it_leaves_out_are_ours() {
    let table = writing(|| {
        json!({"headings": [
            {"of": "problem", "text": "Worum es geht"}, {"of": "sinks", "text": "Woran es\n## scheitern kann"},
            {"of": "next", "text": "Was zu tun ist"}, {"of": "goals", "text": "Ziele, die niemand nannte"}]})
    });
    table.begin(&["Bestellungen bleiben bei uns.", "", "", "finish"]).exits(0);
    let text = brief(&table);
    let expected = [
        "Woran es ## scheitern kann",
        "Worum es geht",
        "Who is touched by it",
        "Options",
        "Stories",
        "Risks",
        "Was zu tun ist",
        "Findings",
    ];
    assert_eq!(headings(&text), expected, "{text}");
    let asked = asked(&table);
    let told = "headings: empty if you write in English. Else these in the language in which you write: problem (\"Problem\"); \
                users (\"Who is touched by it\"); goals (\"Goals and success\"); scope (\"Scope\"); constraints (\"Constraints\"); \
                decisions (\"Decisions\"); options (\"Options\"); stories (\"Stories\"); risks (\"Risks\"); \
                open (\"Open questions\"); next (\"Next steps, in this order\"); sinks (\"What would sink it as it stands\"); \
                table (\"In short\"); closing (\"Closing\").\nWrite in the language in which the user writes.";
    assert!(task(&asked).ends_with(told), "{}", task(&asked));
    let names = &asked.schema()["properties"]["headings"]["items"]["properties"]["of"]["enum"];
    assert_eq!(names.as_array().map(Vec::len), Some(14), "{names}");
}

#[test]
fn where_a_language_was_chosen_the_headings_are_of_that_whatever_the_user_writes() {
    let table = Table::new();
    let flags = [TOPIC, "--no-clarify", "--no-hmw", "--lang", "fr"];
    table.talk(flags, &["Bestellungen bleiben bei uns.", "", "", "finish"]).exits(0);
    let asked = asked(&table);
    assert_eq!(asked.schema()["properties"]["headings"], Value::Null);
    assert!(task(&asked).ends_with("\nWrite in French.") && !task(&asked).contains("headings:"), "{}", task(&asked));
    let text = brief(&table);
    assert!(headings(&text).contains(&"Problème"), "{text}");
}

#[test]
fn a_small_mind_is_told_the_language_and_asked_for_no_headings() {
    let table = Table::small(Brain::default());
    table.begin(&[FULL, "", "", "finish"]).exits(0);
    for request in table.server.requests() {
        assert!(!read(&request).contains("the language in which the user writes"), "{}", read(&request));
        assert_eq!(request.schema()["properties"]["headings"], Value::Null);
    }
    assert!(headings(&brief(&table)).contains(&"Problem"));
}
