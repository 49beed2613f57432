//! The answer leads, rests on figures that can be followed, and is written after the user was asked what is wrong.

use serde_json::json;

use super::model::{Brain, stuck, whole};
use super::table::{LARGE, Table, says};
use crate::support::model_server::{ModelServer, Response};

#[test]
fn before_the_answer_is_written_the_user_is_asked_what_is_wrong_and_it_is_debated() {
    let table = Table::large(Brain::default());
    let lines = ["", "Ann owns the ledger", "", "", ""];
    let ended = table.hold(&["--consider", "never", "--cycles", "5"], &lines);
    let session = ended.result();
    says(&ended, &["**Converged.**", "All will hear that."]);
    assert_eq!(session["debateCycles"], 3, "once more, with what was said");
    assert!(table.reads("Cycle 3.").iter().all(|request| whole(request).contains("Ann owns the ledger")));
    assert_eq!(table.prompts("The debate is over").len(), 1, "and one answer");
    // Who has nothing to say gets the answer at once.
    let table = Table::large(Brain::default());
    let session = table.hold(&["--consider", "never", "--cycles", "5"], &["", "", ""]).result();
    assert_eq!(session["debateCycles"], 2);
    // At the limit all hear it, and nobody debates.
    let table = Table::large(Brain::default());
    let ended = table.hold(&["--consider", "never", "--cycles", "2"], &["", "Ann owns the ledger", "", ""]);
    assert_eq!(ended.result()["debateCycles"], 2);
    says(&ended, &["so nobody debates again"]);
    assert!(whole(&table.prompts("The debate is over")[0]).contains("Ann owns the ledger"));
}

#[test]
fn of_options_that_are_as_good_the_writer_takes_one() {
    fn stand(name: &str, _: usize) -> (&'static str, u64) {
        match name {
            "Senior Architect" => ("A", 70),
            "QA Engineer" => ("B", 66),
            _ => ("C", 20),
        }
    }
    let table = Table::large(Brain { stand, ..Brain::default() });
    table.hold(&["--no-pause", "--cycles", "2"], &[]).result();
    let asked = &table.prompts("The debate is over")[0];
    assert!(asked.prompt().contains("option: A (\"Split now\") or B (\"Leave it\")."), "{}", asked.prompt());
    assert_eq!(asked.schema()["properties"]["option"]["enum"], json!(["A", "B"]));
}

#[test]
fn a_sum_beside_a_figure_and_a_day_counted_in_weeks_are_sources_and_other_days_are_not() {
    let brain =
        Brain { stand: stuck, mend: |_, _| json!({"changes": [], "figures": [], "settled": []}), ..Brain::default() };
    let server = ModelServer::start(move |request| {
        let mut value = brain.reply(request);
        if !value["rests_on"].is_null() {
            value["reasons"][0]["text"] =
                "It costs 19,200 a year (1,600 × 12). We meet again on 24 January. It is due on 26 February.".into();
            value["sinks"][0]["text"] = "Of 19,200 nobody has seen a receipt.".into();
            value["rests_on"] =
                json!(["The fee is 1,600 a month, and we meet every second Saturday, next on 10 January."]);
        }
        Response::text(value.to_string())
    });
    let table = Table { model: LARGE, ..Table::of(server) };
    let context = "The fee is 1,600 a month. We meet every second Saturday, next on 10 January.";
    let session = table.hold(&["--no-pause", "--cycles", "2", "--context", context], &[]).result();
    let answer = session["finalAnswer"].as_str().expect("an answer");
    assert!(answer.contains("- It costs 19,200 a year (1,600 × 12). We meet again on 24 January.\n"), "{answer}");
    assert!(answer.contains("- Of 19,200 nobody has seen a receipt."), "a sum is given once: {answer}");
    let mend = table.prompts("Before it goes out, mend it");
    assert!(
        mend[0].prompt().contains("26 is neither theirs, as far as it holds, nor has it a sum that gives it, beside it or in figures: reasons 1\n"),
        "{}",
        mend[0].prompt()
    );
}

#[test]
fn what_is_suggested_is_marked_below_the_sentence_and_a_new_row_has_its_label() {
    let brain = Brain {
        stand: stuck,
        hole: "Nobody says who pays.",
        mend: |_, _| {
            json!({"changes": [{"part": "glance", "line": 0, "text": "Who pays: the \"platform\" team"},
                               {"part": "glance", "line": 1, "text": "Cost: Three people"}],
                   "figures": [], "settled": [{"id": "H1", "how": "mended", "words": ""}]})
        },
        ..Brain::default()
    };
    let server = ModelServer::start(move |request| {
        let mut value = brain.reply(request);
        if !value["rests_on"].is_null() {
            value["decision"]["text"] = "Split it, and stop at 250 failures.".into();
            value["sinks"][0]["text"] = "More than 250 failures in May.".into();
            value["figures"] = json!([{"figure": "250", "how": "proposed"}]);
        }
        Response::text(value.to_string())
    });
    let table = Table { model: LARGE, ..Table::of(server) };
    let ended = table.hold(&["--no-pause", "--cycles", "2"], &[]);
    let session = ended.result();
    let answer = session["finalAnswer"].as_str().expect("an answer");
    assert!(answer.contains("**Split it, and stop at 250 failures.**\n"), "{answer}");
    assert!(answer.contains("- More than 250 failures in May. *(250 is suggested: nobody measured it)*\n"), "{answer}");
    assert!(
        answer.contains("| **Cost** | Three people |\n")
            && answer.contains("| **Who pays** | the \"platform\" team |\n"),
        "{answer}"
    );
    says(&ended, &["*The answer is mended before it goes out: a hole that Devil's Advocate found.*"]);
    table.env.write("kept.json", session.to_string());
    table.env.nietz(["check", "--as", "council:sessions", "kept.json"]).go().exits(0);
}
