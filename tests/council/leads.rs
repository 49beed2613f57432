//! The answer leads, rests on figures that can be followed, and is written after the user was asked what is wrong.

use serde_json::{Value, json};

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

/// A council whose moderator writes these sections, mends nothing, and is reviewed so; what it came to.
fn answered(brain: Brain, context: &str, sections: fn() -> Value) -> (Table, String) {
    let server = ModelServer::start(move |request| {
        let mut value = brain.reply(request);
        if value["weighed"].is_string() {
            for (name, text) in sections().as_object().expect("sections") {
                value[name] = text.clone();
            }
        }
        Response::text(value.to_string())
    });
    let table = Table { model: LARGE, ..Table::of(server) };
    let session = table.hold(&["--no-pause", "--cycles", "2", "--context", context], &[]).result();
    table.env.write("kept.json", session.to_string());
    table.env.nietz(["check", "--as", "council:sessions", "kept.json"]).go().exits(0);
    let answer = session["finalAnswer"].as_str().expect("an answer").to_owned();
    (table, answer)
}

fn nothing_mended(_: &str, _: &[&str]) -> Value {
    json!({"changes": [], "holes": []})
}

/// What the moderator was told to mend.
fn to_mend(table: &Table) -> String {
    let asked = table.prompts("Before it goes out, mend it");
    assert_eq!(asked.len(), 1, "once");
    asked[0].prompt()
}

#[test]
fn a_sum_beside_a_figure_and_a_day_counted_in_weeks_are_sources_and_other_days_are_not() {
    let brain = Brain { stand: stuck, mend: nothing_mended, ..Brain::default() };
    let context = "The fee is 1,600 a month. We meet every second Saturday, next on 10 January.";
    let (table, answer) = answered(brain, context, || {
        json!({"why": "- It costs 19,200 a year (1,600 × 12) [U1]. We meet on 10 January, every second Saturday, and again on 24 January [U2]. It is due on 26 February.",
               "sinks": "- Of 19,200 nobody has seen a receipt."})
    });
    let kept = "- It costs 19,200 a year (1,600 × 12). We meet on 10 January, every second Saturday, and again on 24 January.\n";
    assert!(answer.contains(kept), "{answer}");
    assert!(answer.contains("- Of 19,200 nobody has seen a receipt."), "a sum is given once: {answer}");
    let told = to_mend(&table);
    assert!(told.contains("- why: 26 is in nothing that holds") && !told.contains("Their words"), "{told}");
}

#[test]
fn an_answer_is_shown_as_it_was_written_without_its_marks_and_what_it_rests_on_is_kept() {
    let (table, answer) = answered(Brain { stand: stuck, dissents: false, ..Brain::default() }, "", || {
        json!({"decision": "Split it, and stop at 250 failures *(suggested)* [P1].",
               "sinks": "- More than 250 failures in May *(suggested)* [P1, P2].\n\n<img src=x> ![a](http://127.0.0.1/x)"})
    });
    assert!(
        answer
            .starts_with("## The answer\n\n**Split it, and stop at 250 failures *(suggested)*.**\n\n| In short | |\n"),
        "{answer}"
    );
    assert!(answer.contains("- More than 250 failures in May *(suggested)*.\n\n\\<img src=x> a\n"), "{answer}");
    assert!(table.prompts("Before it goes out, mend it").is_empty(), "nothing is wrong");
    let kept: Value = serde_json::from_str(&table.env.read("kept.json")).expect("JSON");
    let decision = &kept["metadata"]["decision"];
    assert_eq!(decision["sections"][0]["name"], "table");
    let sinks =
        decision["rests"].as_array().expect("a list").iter().find(|rest| rest["section"] == "sinks").expect("it rests");
    assert_eq!(sinks["from"].as_array().map(Vec::len), Some(2), "{sinks}");
}

#[test]
fn what_is_too_long_cites_nothing_or_passes_over_an_option_goes_back_once() {
    let brain = Brain { stand: stuck, mend: nothing_mended, ..Brain::default() };
    let (table, _) = answered(
        brain,
        "",
        || json!({"context": "It is so and so on. ".repeat(300), "open": "- Who pays [U99]?", "weighed": "| Split now | now |\n| Leave it | never |"}),
    );
    let told = to_mend(&table);
    for part in [
        "words in all, where 1100 are the most",
        "- open: [U99] is nothing that holds",
        "- weighed: it does not name \"Boundary first\"",
    ] {
        assert!(told.contains(part), "{part} is not in {told}");
    }
}

#[test]
fn who_would_still_decide_otherwise_is_told_once_in_the_dissent() {
    let (_, answer) = answered(Brain { stand: stuck, mend: nothing_mended, ..Brain::default() }, "", || json!({}));
    let dissent = "### What speaks against it, and who says so\n\nQA Engineer counts nights, others do not.\n\n- **Devil's Advocate would still decide otherwise**: Nobody has shown that two deployments are cheaper than one. *What would convince me:* A month";
    assert!(answer.contains(dissent), "{answer}");
    let mend = |prompt: &str, _: &[&str]| {
        assert!(
            prompt.contains("- Devil's Advocate: Nobody has shown that two deployments are cheaper than one."),
            "{prompt}"
        );
        json!({"changes": [{"section": "dissent", "text": "Two deployments may cost more, and nobody knows."}], "holes": []})
    };
    let (_, answer) = answered(Brain { stand: stuck, mend, ..Brain::default() }, "", || json!({}));
    assert!(answer.contains("who says so\n\nTwo deployments may cost more, and nobody knows.\n\n###"), "{answer}");
}
