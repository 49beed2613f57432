//! The answer leads, rests on figures that can be followed, and is written after the user was asked what is wrong.

use serde_json::{Value, json};

use super::model::{Brain, stuck, whole};
use super::table::{LARGE, Table, says};
use crate::support::model_server::{ModelServer, Response};

#[test]
fn before_the_answer_is_written_the_user_is_asked_what_is_wrong_and_it_is_debated() {
    let table = Table::large(Brain::default());
    let lines = ["", "", "Ann owns the ledger", "", "", ""];
    let ended = table.hold(&["--consider", "never", "--cycles", "5"], &lines);
    let session = ended.result();
    says(&ended, &["**Converged.**", "All will hear that."]);
    assert_eq!(session["debateCycles"], 3, "once more, with what was said");
    assert!(table.reads("Cycle 3.").iter().all(|request| whole(request).contains("Ann owns the ledger")));
    assert_eq!(table.prompts("The debate is over").len(), 1, "and one answer");
    // Who has nothing to say gets the answer at once.
    let table = Table::large(Brain::default());
    let session = table.hold(&["--consider", "never", "--cycles", "5"], &["", "", "", ""]).result();
    assert_eq!(session["debateCycles"], 2);
    // At the limit all hear it, and nobody debates.
    let table = Table::large(Brain::default());
    let ended = table.hold(&["--consider", "never", "--cycles", "2"], &["", "", "Ann owns the ledger", "", ""]);
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

/// A council whose moderator writes this memo, mends nothing, and is reviewed so; what it came to.
fn answered(brain: Brain, context: &str, memo: &'static str) -> (Table, String) {
    let server = ModelServer::start(move |request| {
        let mut value = brain.reply(request);
        if value["against"].is_string() {
            value["memo"] = memo.into();
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
    json!({})
}

/// What the moderator was told to mend.
fn to_mend(table: &Table) -> String {
    let asked = table.prompts("others have read it before it goes out");
    assert_eq!(asked.len(), 1, "once");
    asked[0].prompt()
}

#[test]
fn sums_days_and_times_that_follow_are_none_of_the_hosts_business_and_others_go_back_once() {
    let brain = Brain { stand: stuck, mend: nothing_mended, ..Brain::default() };
    let context = "The fee is 1,600 a month. We meet every second Saturday, next on Saturday 10 January. It closes at 22:30. \
                   64 people pay 4.80 each. They charge 3p a page for 40,000 pages.";
    let (table, _) = answered(
        brain,
        context,
        "It costs 19,200 a year [U1]. We meet on 10 January and again on 24 January [U2]. Leave at 22:15, it takes \
         20 minutes. At 4.80 for 64 people it is about 307, so 3,686 a year. At 3p for 40,000 pages it is 1,200.\n\n\
         ## When\n\n| What | By |\n|---|---|\n| Ask them | 26 February |\n\nThe dates are my suggestions.\n\n\
         ## Due\n\nIt is due on 26 March.\n\n## But\n\nIt gives 900 (1,600 × 2). Sign it by 27 January. Ask on Friday 23 January, \
         or on Monday 24 January.",
    );
    let told = to_mend(&table);
    let faults: Vec<&str> = told.lines().filter(|line| line.starts_with("- ") && line.contains(": ")).collect();
    let told_of = |part: &str| faults.iter().any(|line| line.contains(part));
    assert!(told_of("- Due: 26 is in nothing that holds"), "{told}");
    assert!(told_of("900 is not what its sum gives, 3200"), "{told}");
    assert!(told_of("\"monday 24 january\" is a Saturday"), "{told}");
    for part in ["beginning", "When", "27", "23 january"] {
        assert!(!told_of(part), "{part} in {told}");
    }
}

#[test]
fn a_memo_is_shown_as_it_was_written_without_its_marks_and_what_it_rests_on_is_kept() {
    let (table, answer) = answered(
        Brain { stand: stuck, dissents: false, ..Brain::default() },
        "",
        "# A title\n\nSplit it, and stop at 250 failures *(suggested)* [P1].\n\n# What sinks it\n\n- More than 250 \
         failures in May *(suggested)* [P1, P2].\n\n---\n\n<img src=x> ![a](http://127.0.0.1/x)\n\n```\n## no heading\n```",
    );
    let shown = "# Billing on its own?\n\nSplit it, and stop at 250 failures *(suggested)*.\n\n## What sinks it\n\n\
                 - More than 250 failures in May *(suggested)*.\n\n\n\\<img src=x> a\n\n```\n## no heading\n```";
    assert_eq!(answer, shown);
    assert!(table.prompts("others have read it before it goes out").is_empty(), "nothing is wrong");
    let kept: Value = serde_json::from_str(&table.env.read("kept.json")).expect("JSON");
    let decision = &kept["metadata"]["decision"];
    assert_eq!(decision["memo"], answer.split_once("\n\n").expect("a title").1);
    let sinks = decision["rests"].as_array().expect("a list").iter().find(|rest| rest["section"] == "What sinks it");
    assert_eq!(sinks.expect("it rests")["from"].as_array().map(Vec::len), Some(2), "{sinks:?}");
    assert_eq!(decision["nextSteps"][0]["text"], "Write the contract tests, the team, May");
    assert_eq!(decision["tradeoffs"][0]["text"], "Two deployments instead of one.");
    assert_eq!(decision["rejected"].as_array().map(Vec::len), Some(2));
}

#[test]
fn what_is_too_long_cites_nothing_or_quotes_what_nobody_said_goes_back_once() {
    static LONG: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        format!(
            "{}\n\n## Open\n\nWho pays [U99]? You said “we will never ever pay a single cent for that server”. Write: “we will gladly pay for it”.",
            "It is so and so on. ".repeat(300)
        )
    });
    let (table, _) = answered(Brain { stand: stuck, mend: nothing_mended, ..Brain::default() }, "", &LONG);
    let told = to_mend(&table);
    for part in [
        "words in all, where 1200 are the most",
        "- Open: [U99] is nothing that holds",
        "- Open: nobody said these words: \"we will never ever pay a single cent for that server\"",
    ] {
        assert!(told.contains(part), "{part} is not in {told}");
    }
    assert!(!told.contains("gladly"), "a letter has words of its own: {told}");
}

#[test]
fn who_would_still_decide_otherwise_goes_back_to_the_writer_and_is_named_below_the_memo() {
    let mend = |prompt: &str, _: &[&str]| {
        assert!(
            prompt.contains("- Devil's Advocate: Nobody has shown that two deployments are cheaper than one."),
            "{prompt}"
        );
        json!({"memo": super::model::memo("P1").replace("others do not", "others count money")})
    };
    let table = Table::large(Brain { stand: stuck, mend, ..Brain::default() });
    let ended = table.hold(&["--no-pause", "--cycles", "2"], &[]);
    let answer = ended.result()["finalAnswer"].as_str().expect("an answer").to_owned();
    assert!(answer.contains("counts nights, others count money.") && !answer.contains("Advocate"), "{answer}");
    says(&ended, &["- Would still decide otherwise: Devil's Advocate. Why stands word for word in the session."]);
}

#[test]
fn before_the_debate_begins_the_user_is_asked_once_what_else_is_to_be_known() {
    let table = Table::large(Brain { stand: stuck, ..Brain::default() });
    let ended = table.hold(&["--consider", "never", "--cycles", "1"], &["facts", "Ann owns the ledger.", "", ""]);
    says(&ended, &["You have said nothing that could be struck."]);
    let heard = table.reads("U1: Ann owns the ledger.");
    assert!(heard.iter().any(|request| request.prompt().contains("Prepare the debate")), "options are made of it");
    assert_eq!(ended.asked().iter().filter(|id| *id == "before").count(), 2, "again behind `facts`, and no more");
    let ended = table.hold(&["--no-pause", "--cycles", "1"], &[]);
    assert!(ended.asked().is_empty(), "who goes on without questions is asked none");
}
