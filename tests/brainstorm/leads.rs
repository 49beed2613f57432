//! The brief leads, says what decides an open question, and marks what nobody said.

use serde_json::{Value, json};

use super::model::Brain;
use super::table::{FULL, SLUG, Table, says};
use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Request, Response};

/// A table whose model writes these sections into its brief.
pub(super) fn writing(sections: fn() -> Value) -> Table {
    let server = ModelServer::start(move |request| {
        let mut value = Brain::default().reply(request);
        if !value["parts"].is_null() {
            for (of, text) in sections().as_object().expect("sections") {
                with_part(&mut value, of, text);
            }
        }
        Response::text(value.to_string())
    });
    Table { env: Env::with(&server), server }
}

/// Puts a text in place of a part of a brief, or behind all of them.
fn with_part(value: &mut Value, of: &str, text: &Value) {
    let parts = value["parts"].as_array_mut().expect("parts");
    let heading = match of {
        "steps" => "Next steps, in this order",
        "open" => "Open questions",
        other => other,
    };
    parts.retain(|part| part["of"] != of);
    parts.push(json!({"of": of, "heading": heading, "text": text}));
}

pub(super) fn brief(table: &Table) -> String {
    table.env.read(&format!("docs/briefs/{SLUG}/brief-2026-01-09.md"))
}

/// What a large mind is told once its brief was compared with what was noted.
fn corrections(table: &Table) -> Vec<String> {
    let told = table.server.requests();
    told.iter().map(Request::prompt).filter(|prompt| prompt.contains("was compared with what was noted")).collect()
}

#[test]
fn a_brief_is_shown_as_it_was_written_without_its_marks_and_what_it_rests_on_is_kept() {
    let table = writing(|| {
        json!({"steps": "| What | Who | By |\n|---|---|---|\n| Ask the bank [1] | Zoe *(suggested)* | Friday *(suggested)* |",
               "open": "- **Who pays?** Whoever signs first [1, 2]."})
    });
    table.begin(&[FULL, "", "", "finish"]).exits(0);
    let text = brief(&table);
    for part in [
        "## Next steps, in this order\n\n| What | Who | By |\n|---|---|---|\n| Ask the bank | Zoe *(suggested)* | Friday *(suggested)* |\n",
        "## Open questions\n\n- **Who pays?** Whoever signs first.\n",
        "\nKeep orders in the ledger.\n\n## Problem\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let rests = table.own()["brief"]["rests"].clone();
    let of = |section: &str| {
        rests.as_array().expect("a list").iter().filter(|rest| rest["section"] == section).cloned().collect::<Vec<_>>()
    };
    assert_eq!(of("open")[0]["from"], json!([1, 2]), "{rests}");
    for section in ["lead", "steps"] {
        assert_eq!(of(section)[0]["from"], json!([1]), "{rests}");
    }
    let journal = table.env.read(&format!("docs/briefs/{SLUG}/journal-2026-01-09.md"));
    assert!(journal.contains("- Recommendation: Keep orders in the ledger. ← 1\n"), "{journal}");
}

#[test]
fn sums_and_days_counted_in_weeks_are_sources_and_a_figure_without_one_goes_with_its_sentence() {
    let table = writing(|| {
        json!({"goals": "We write 24 mails (2 × 12) by 23 January. There are 777 of them. We begin in 2027.",
               "other": "- Of these 24 mails none is written."})
    });
    let lines = ["Orders wait two days from 9 January on. We write 12 mails.", "", "", "finish"];
    table.begin(&lines).exits(0);
    let text = brief(&table);
    assert!(text.contains("\nWe write 24 mails (2 × 12) by 23 January. We begin in 2027.\n"), "{text}");
    assert!(text.contains("\n- Of these 24 mails none is written.\n"), "{text}");
    let wrong = corrections(&table);
    assert_eq!(wrong.len(), 1);
    assert!(wrong[0].contains("- goals: 777 is in nothing that holds"), "{}", wrong[0]);
    assert!(!wrong[0].contains("- other"), "{}", wrong[0]);
}

#[test]
fn what_stands_in_italics_is_suggested_and_an_upright_figure_that_nobody_said_is_marked_or_goes() {
    let table = writing(|| {
        json!({"goals": "We stop *at 777 orders*. There are 541 of them. And 543 of those.\n\nWe keep 812 rows [1], and 813 more [1].",
               "steps": "| What | Who | By |\n|---|---|---|\n| Ask the bank [1] | *Zoe* | *day 61* |\n\
                         | Ask them all | Bob | day 47 |\n| Tell them all [1] | Ann | day 59 |"})
    });
    table.begin(&[FULL, "", "", "finish"]).exits(0);
    let wrong = corrections(&table);
    assert_eq!(wrong.len(), 1);
    let faults: Vec<&str> = wrong[0]
        .lines()
        .filter_map(|line| line.split_once(" is in nothing that holds"))
        .map(|(figure, _)| figure)
        .collect();
    let expected = ["- goals: 541", "- goals: 543", "- steps: 47", "- steps: 59"];
    assert_eq!(faults, expected, "{}", wrong[0]);
    assert!(wrong[0].contains("- goals: 812 and 813 are in nothing that holds"), "{}", wrong[0]);
    let text = brief(&table);
    for part in [
        "\nWe stop *at 777 orders*. \n\nWe keep *812* rows, and *813* more.\n",
        "\n|---|---|---|\n| Ask the bank | *Zoe* | *day 61* |\n| Ask them all | Bob | day *47* |\n| Tell them all | Ann | day *59* |\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn a_brief_over_its_length_and_a_mark_of_nothing_go_back_once() {
    let table = writing(|| json!({"goals": "It is so and so on. ".repeat(400), "scope": "- All of it [99]"}));
    table.begin(&[FULL, "", "", "finish"]).exits(0);
    let wrong = corrections(&table);
    assert_eq!(wrong.len(), 1);
    for part in ["words in all, where 900 are the most", "- scope: [99] is nothing that holds"] {
        assert!(wrong[0].contains(part), "{}", wrong[0]);
    }
    assert!(brief(&table).contains("\n- All of it\n"), "no mark is shown");
}

/// A brief of a short talk is short: whoever may write more fills it.
#[test]
fn how_long_a_draft_may_be_follows_from_how_much_was_said() {
    let long = "We keep orders and count them. ".repeat(100);
    let endless = "We keep orders and count them. ".repeat(900);
    for (answer, most) in [(FULL, 700), (long.as_str(), 1050), (endless.as_str(), 1300)] {
        let table = Table::new();
        table.begin(&[answer, "", "", "finish"]).exits(0);
        let asked = table.server.requests();
        let draft = asked.iter().find(|one| !one.schema()["properties"]["brief"].is_null()).expect("one is written");
        assert!(draft.prompt().contains(&format!("(at most {most} words")), "{most}: {}", draft.prompt());
    }
}

#[test]
fn what_a_writer_passes_over_twice_closes_the_brief_in_a_sentence() {
    let table = writing(|| json!({}));
    table.begin(&[FULL, "/fact Sixty inspectors come in May", "", "", "finish"]).exits(0);
    assert!(corrections(&table)[0].contains("Sixty inspectors come in May"));
    assert!(brief(&table).contains("Sixty inspectors come in May."), "{}", brief(&table));
}

#[test]
fn what_a_writer_gives_can_only_be_read() {
    let table = writing(|| {
        json!({"goals": "# A title\n<script>alert(1)</script> ![a picture](http://127.0.0.1/x) [a link](http://127.0.0.1/y)\n---\n```\nopen",
               "scope": "{{ topic }} {% include 'x' %}"})
    });
    table.begin(&[FULL, "", "", "finish"]).exits(0);
    let text = brief(&table);
    for part in [
        "\n**A title**\n",
        "\\<script>",
        " a picture a link (http://127.0.0.1/y)\n",
        "\nopen\n```\n",
        "{{ topic }} {% include",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(
        text.contains("\n## Risks\n") || text.contains("\n## Open risks\n"),
        "the sections behind it stand: {text}"
    );
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
