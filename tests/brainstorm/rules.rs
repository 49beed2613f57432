//! The rules by which a session turns: phases, checkpoints, checks of energy, leaders, biases.

use super::model::Brain;
use super::table::{FULL, MORE, SLUG, TOPIC, Table, prompts, said, says};
use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};

#[test]
fn each_axis_rises_by_what_its_evidence_carries_and_the_bars_say_so() {
    let table = Table::with(Brain { claims: 100, ..Brain::default() });
    let ended = table.begin(&[FULL, "", "", "quit"]).exits(0);
    says(&ended, &["EMS 47/100 (+25) · Development · iteration 1", "Clarity        ██████░░░░  55  +25"]);
    assert!(!said(&ended).contains("Held back"), "it rests on enough; no axis rises further at once");
    assert_eq!(table.session()["ems"], 47);
    assert_eq!(table.own()["evidence"]["action"], "Ann writes the worker by Friday.");
}

#[test]
fn half_way_is_announced_saved_and_followed_by_a_check_of_energy() {
    let table = Table::with(Brain { claims: 55, ..Brain::default() });
    let ended = table.begin(&[FULL, "", "", MORE, "", ""]).exits(7);
    says(&ended, &["**Half-way: EMS 5"]);
    assert_eq!(ended.asked().last().map(String::as_str), Some("energy"));
    assert_eq!(table.session()["phase"], "transition", "saved by itself");
    assert_eq!(table.session()["history"][0]["phase"], "divergent");
    table.go_on(&["the export has a date", "", ""]).exits(7);
    assert_eq!(table.session()["phase"], "convergent");
}

#[test]
fn at_seventy_the_session_asks_whether_to_finish_and_never_does_so_by_itself() {
    let table = Table::with(Brain { claims: 100, ..Brain::default() });
    let ended = table.begin(&[FULL, "", "", MORE, "", "", "what?", "preview", "continue", "quit"]).exits(0);
    let asked = ended.asked();
    assert_eq!(asked.iter().filter(|id| *id == "checkpoint").count(), 3, "{asked:?}");
    let checkpoint =
        prompts(&ended).into_iter().find(|prompt| prompt.contains("mature enough for a brief")).expect("it asks");
    assert!(checkpoint.contains("Shall we finish? [1] continue  [2] preview the brief  [3] finish"), "{checkpoint}");
    says(&ended, &["Please choose one of: [1] continue", "# Checkout that survives a payment outage"]);
    assert_eq!(table.session()["status"], "in_progress");
    assert!(!table.env.path("docs").exists(), "a preview writes nothing");

    let ended = table.go_on(&["finish"]).exits(0);
    assert_eq!(ended.result()["status"], "completed");
}

#[test]
fn a_session_that_stands_still_or_is_long_asks_how_it_goes() {
    let table = Table::with(Brain { claims: 25, ..Brain::default() });
    let lines =
        ["the ledger keeps orders", "", "", "a worker retries them", "", "", "no", "support sees them daily", "", ""];
    let ended = table.begin(&lines).exits(7);
    assert!(
        prompts(&ended).last().expect("one").starts_with("The last iterations moved little."),
        "{:?}",
        prompts(&ended)
    );
    says(&ended, &["[Pragmatist] takes over, to get things moving."]);

    let table = Table::new();
    let ended = table.talk([TOPIC, "--no-clarify", "--no-hmw", "--no-technique"], &["continue"; 11]).exits(7);
    assert!(prompts(&ended).iter().any(|prompt| prompt.contains("This is iteration 7.")), "{:?}", prompts(&ended));
}

#[test]
fn after_two_hours_the_user_is_asked_once_whether_to_stop() {
    let table = Table::new();
    table.begin(&["quit"]).exits(0);
    let path = super::table::path(SLUG);
    let text = table.env.read(&path);
    table.env.write(
        &path,
        text.replace("duration_minutes: 0", "duration_minutes: 125").replace("seconds: 0", "seconds: 7500"),
    );
    let ended = table.go_on(&["the ledger", "", "", "1", "the worker", "", "", "quit"]);
    let asked: Vec<_> = prompts(&ended).into_iter().filter(|prompt| prompt.contains("125 minutes, EMS")).collect();
    assert_eq!(asked.len(), 1, "{:?}", prompts(&ended));
}

#[test]
fn certainty_brings_the_sparring_partner_unless_the_user_chose_who_leads() {
    let table = Table::new();
    let ended = table.begin(&["Obviously the ledger keeps orders", "", "", "quit"]).exits(0);
    says(&ended, &["[Sparring partner] takes over, since some things sound very certain."]);
    assert_eq!(table.session()["persona"], "sparring");
    assert_eq!(table.own()["iterations"][0]["persona"], "architecte");
    let pinned = Table::new();
    let arguments = [TOPIC, "--no-clarify", "--no-hmw", "--persona", "architecte"];
    pinned.talk(arguments, &["Obviously the ledger keeps orders", "", "", "quit"]).exits(0);
    assert_eq!(pinned.session()["persona"], "architecte");
}

#[test]
fn a_bias_is_named_from_the_third_iteration_on_and_not_twice() {
    let lines = [
        "we already spent a year on the ledger",
        "",
        "",
        "so much work is in the worker",
        "",
        "",
        "no",
        "support sees the orders daily",
        "",
        "",
    ];
    let table = Table::new();
    let two = table.begin(&lines[..6]).exits(7);
    assert!(!said(&two).contains("Sunk cost"), "two signals, but too early");
    let table = Table::new();
    let ended = table.begin(&[&lines[..], &["1", "refunds go out after two days", "", "", "quit"]].concat());
    says(&ended, &["⚖️ **Sunk cost?** If nothing had been spent yet, would you begin this today?"]);
    assert_eq!(said(&ended).matches("Sunk cost").count(), 1);
    assert_eq!(table.own()["biases"], serde_json::json!([{"slug": "sunk-cost", "iteration": 3}]));
}

#[test]
fn a_technique_is_offered_for_two_weak_axes_with_its_reason_and_recorded_either_way() {
    for (answer, applied) in [("yes", true), ("no", false), ("Ja!", true), ("Nein", false)] {
        let table = Table::new();
        let lines = ["the ledger keeps orders", "", "", "a worker retries them", "", "", answer, "quit"];
        let ended = table.begin(&lines).exits(0);
        let offer = prompts(&ended).into_iter().find(|prompt| prompt.contains("Use it?")).expect("it is offered");
        assert!(offer.contains("could help (Depth 2"), "{offer}");
        let session = table.session();
        let history = session["techniques_history"].as_array().expect("a list");
        assert_eq!(history.len(), 2, "{history:?}");
        for entry in history {
            assert_eq!(
                (&entry["applied"], &entry["source"], &entry["iteration"]),
                (&applied.into(), &"auto".into(), &2.into())
            );
            let axis = entry["weak_axes"][0].as_str().expect("an axis");
            assert!(entry["suggested_reason"].as_str().is_some_and(|why| why.starts_with(axis)), "{entry}");
        }
        assert_eq!(session["techniques_used"].as_array().map(Vec::len), Some(if applied { 2 } else { 0 }));
        let asked = table.server.requests().last().expect("a call").prompt();
        assert_eq!(asked.contains("Work with the technique"), applied, "{asked}");
    }
}

#[test]
fn a_model_that_gives_nothing_valid_is_said_and_the_session_goes_on() {
    let server = ModelServer::start(|_| Response::text("I would rather talk."));
    let env = Env::with(&server);
    let table = Table { env, server };
    let ended = table.begin(&["the ledger keeps orders", "a", "/spike 1d does it hold?", "quit"]).exits(0);
    says(
        &ended,
        &[
            "The model gave nothing usable here (Looking for the next questions)",
            "(Taking it down)",
            "(Judging the spike)",
        ],
    );
    assert!(!said(&ended).contains("MORE_RESEARCH"), "no verdict is made up");
    assert_eq!(table.session()["ems"], 22, "nothing is scored that nobody judged");
}

#[test]
fn no_more_than_five_techniques_are_used_by_themselves() {
    let table = Table::new();
    let arguments = [TOPIC, "--no-clarify", "--no-hmw", "--random", "--no-suggest"];
    table.talk(arguments, &["continue"; 8]).exits(7);
    let session = table.session();
    assert_eq!(
        (session["iteration"].as_u64(), session["techniques_used"].as_array().map(Vec::len)),
        (Some(9), Some(5))
    );
}
