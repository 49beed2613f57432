//! The brief leads, says what decides an open question, and marks what nobody said.

use serde_json::{Value, json};

use super::model::Brain;
use super::table::{FULL, SLUG, Table, says};
use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};

/// A table whose model writes these sections into its brief.
fn writing(sections: fn() -> Value) -> Table {
    let server = ModelServer::start(move |request| {
        let mut value = Brain::default().reply(request);
        if !value["lead"].is_null() && !value["stories"].is_null() && value["remove"].is_null() {
            for (name, part) in sections().as_object().expect("sections") {
                value[name] = part.clone();
            }
        }
        Response::text(value.to_string())
    });
    Table { env: Env::with(&server), server }
}

fn brief(table: &Table) -> String {
    table.env.read(&format!("docs/briefs/{SLUG}/brief-2026-01-09.md"))
}

#[test]
fn an_open_question_has_its_rule_and_what_holds_until_then_and_a_step_its_owner() {
    let table = writing(|| {
        json!({"open": [{"from": [], "text": "Who pays the worker?", "why": "The budget hangs on it", "rule": "whoever signs first",
                         "default": "the platform team", "owner": "Ann", "date": ""}],
               "steps": [{"from": [], "text": "Ask Ann | Bob", "owner": "Zoe", "date": "by Friday"},
                         {"from": [], "text": "Ask the bank", "owner": "", "date": ""}]})
    });
    table.begin(&[FULL, "", "", "finish"]).exits(0);
    let text = brief(&table);
    for part in [
        "- **Who pays the worker?** The budget hangs on it. *Decided by:* whoever signs first. *Until then:* the platform team. (Ann) *(suggested)*\n",
        "| 1 | Ask Ann \\| Bob *(suggested)* | Zoe *(suggested)* | by Friday |\n",
        "| 2 | Ask the bank *(suggested)* | to be named |  |\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn sums_and_days_counted_in_weeks_are_sources_and_a_figure_without_one_goes_with_its_sentence() {
    let table = writing(|| {
        json!({"goals": [{"from": [], "text": "We write 24 mails (2 × 12) by 23 January. There are 777 of them. We begin in 2027."}],
               "sinks": [{"from": [], "text": "Of these 24 mails none is written."}]})
    });
    let lines = ["Orders wait two days from 9 January on. We write 12 mails.", "", "", "finish"];
    table.begin(&lines).exits(0);
    let text = brief(&table);
    assert!(text.contains("- We write 24 mails (2 × 12) by 23 January. We begin in 2027. *(suggested)*\n"), "{text}");
    assert!(text.contains("- Of these 24 mails none is written. *(suggested)*\n"), "{text}");
    let told = table.server.requests();
    let wrong: Vec<_> = told.iter().filter(|request| request.prompt().contains("Your brief was compared")).collect();
    assert_eq!(wrong.len(), 1);
    assert!(wrong[0].prompt().contains("- goals 1: \"777\" is in nothing that holds"), "{}", wrong[0].prompt());
    assert!(!wrong[0].prompt().contains("sinks 1"), "{}", wrong[0].prompt());
}

#[test]
fn a_reason_is_shown_when_it_is_noted_and_so_is_what_gives_way() {
    let server = ModelServer::start(|request| {
        let mut value = Brain::default().reply(request);
        if !value["decided"].is_null() {
            value["decided"][0]["why"] = "it is ours".into();
            value["decided"][0]["rejected"] = "a second provider".into();
        }
        Response::text(value.to_string())
    });
    let table = Table { env: Env::with(&server), server };
    let ended = table.begin(&[FULL, "/dive the ledger", "", "", "", "quit"]).exits(0);
    says(&ended, &["(why: it is ours; rejected: a second provider)", "questions that were open give way to new ones"]);
}
