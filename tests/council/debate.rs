//! The debate: blind first, then each must take up another; measured ends; the user in between; limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::model::{Brain, restless, stuck};
use super::table::{Table, complaint, each, list, says, turns};
use crate::support::model_server::{Gate, ModelServer, Response};

#[test]
fn the_first_cycle_is_blind_and_side_by_side_and_later_each_takes_up_another_by_id() {
    // Nobody is answered until all of a cycle have been asked: voices that waited for each other would wait for ever.
    let gates = Arc::new([Gate::default(), Gate::default()]);
    let asked = Arc::new(AtomicUsize::new(0));
    let brain = Brain { stand: stuck, ..Brain::default() };
    let server = ModelServer::start(move |request| {
        let reply = brain.answer(request);
        if !request.prompt().starts_with("You sit in a council") {
            return reply;
        }
        let number = asked.fetch_add(1, Ordering::SeqCst);
        let cycle = (number / 3).min(1);
        if number % 3 == 2 {
            gates[cycle].open();
        }
        reply.held_by(&gates[cycle])
    });
    let table = Table::of(server);
    let session = table.hold(&["--cycles", "2", "--no-pause"], &[]).result();
    assert_eq!(table.server.most_at_once(), 3);
    let asked = table.prompts("You sit in a council");
    assert_eq!(asked.len(), 6);
    assert!(asked[..3].iter().all(|request| !request.prompt().contains("What was said so far")), "blind");
    assert!(asked.iter().all(|request| !request.prompt().contains("Said earlier")), "that is for the third cycle");
    assert!(
        asked[3..]
            .iter()
            .all(|request| request.prompt().contains("(you)") && request.prompt().contains("You stood for"))
    );
    for request in &asked[3..] {
        let schema = &request.body["response_format"]["json_schema"]["schema"];
        let responds = &schema["properties"]["responds"];
        assert_eq!(
            (&responds["minItems"], &responds["items"]["properties"]["to"]["enum"].as_array().map(Vec::len)),
            (&1.into(), &Some(2))
        );
        assert_eq!(schema["properties"]["points"]["minItems"], 0, "nobody has to fill a round");
    }
    let spoken = turns(&session, "discussion");
    assert_eq!(spoken.len(), 6);
    for turn in &spoken[3..] {
        let taken_up = &turn["metadata"]["responds"][0];
        assert_ne!(taken_up["name"], turn["sender"]["name"]);
        assert!(spoken[..3].iter().any(|before| before["turnId"] == taken_up["turnId"]), "{turn}");
    }
    let cycles = list(&session["councilDiscussions"]);
    assert_eq!(each(cycles, "status"), ["concluded", "limit_reached"]);
    assert!(cycles.iter().all(|cycle| list(&cycle["messageTurns"]).len() == 3));
}

#[test]
fn a_debate_ends_early_and_by_name() {
    let plain = Brain::default();
    for (brain, cycles, outcome, words) in [
        (plain.clone(), 2, "converged", "**Converged.**"),
        (Brain { stand: stuck, ..plain.clone() }, 3, "deadlock", "**Deadlock.**"),
        (Brain { stand: stuck, repeats: true, ..plain.clone() }, 2, "nothing_new", "**Nothing new was said.**"),
    ] {
        let table = Table::with(brain);
        let ended = table.hold(&["--no-pause"], &[]);
        let session = ended.result();
        assert_eq!((&session["metadata"]["outcome"], &session["debateCycles"]), (&outcome.into(), &cycles.into()));
        says(&ended, &[words]);
        assert_eq!(list(&session["metadata"]["measures"]).len(), cycles);
        let last = &session["councilDiscussions"][cycles - 1];
        assert_eq!(last["status"], "concluded");
        assert!(last["resolutionSummary"].as_str().expect("a text").contains("% of the confidence"), "{last}");
    }
}

/// A cycle's summary tells how what was disputed was settled: who stands where, and who moved. Options are told by their names.
#[test]
fn a_cycles_summary_says_who_moved_and_calls_options_by_their_names() {
    fn stand(name: &str, cycle: usize) -> (&'static str, u64) {
        match (name, cycle) {
            ("QA Engineer", 1) => ("B", 70),
            ("Devil's Advocate", _) => ("B", 60),
            _ => ("A", 80),
        }
    }
    let table = Table::large(Brain { stand, ..Brain::default() });
    let ended = table.hold(&["--no-pause", "--cycles", "2"], &[]);
    let session = ended.result();
    let summary = session["councilDiscussions"][1]["resolutionSummary"].as_str().expect("a text");
    for part in
        ["QA Engineer moved from B to A.", "A (Split now) has 73 % of the confidence (", "B (Leave it) has 27 %"]
    {
        assert!(summary.contains(part), "{part} in {summary}");
    }
    assert!(!summary.contains("Split billing out now"), "{summary}");
    says(&ended, &[&format!("*{summary}*")]);
}

#[test]
fn reaching_the_limit_is_announced_and_recorded() {
    let ten = Table::with(Brain { stand: restless, ..Brain::default() });
    let ended = ten.hold(&["--no-pause"], &[]);
    let session = ended.result();
    says(&ended, &["**Limit reached.** Cycle 10 of 10 was the last."]);
    assert_eq!((&session["debateCycles"], &session["metadata"]["outcome"]), (&10.into(), &"limit_reached".into()));
    assert_eq!(session["councilDiscussions"][9]["status"], "limit_reached");
    assert_eq!((&session["extendedDebateRequested"], &session["status"]), (&false.into(), &"completed".into()));

    let extended = Table::with(Brain { stand: restless, ..Brain::default() });
    let session = extended.hold(&["--no-pause", "--extended"], &[]).result();
    assert_eq!((&session["debateCycles"], &session["extendedDebateRequested"]), (&20.into(), &true.into()));
    assert!(session["metadata"]["debateCycleLimit"].is_null(), "20 is what the specification says");
}

#[test]
fn the_administrators_limit_holds_and_is_written_down() {
    let mut table = Table::with(Brain { stand: restless, ..Brain::default() });
    let refused = table.hold(&["--cycles", "21"], &[]).exits(2);
    assert!(complaint(&refused).contains("--cycles 21 is more than the limit of 20"), "{}", complaint(&refused));
    assert_eq!(table.server.calls(), 0);
    table.env = table.env.config("flows: {council: {cycle_limit: 12}}");
    let session = table.hold(&["--extended", "--no-pause"], &[]).result();
    assert_eq!((&session["debateCycles"], &session["metadata"]["debateCycleLimit"]), (&12.into(), &12.into()));
    table.env = table.env.file("nietz.yaml", "flows: {council: {cycle_limit: 4}}");
    let session = table.hold(&["--no-pause"], &[]).result();
    assert_eq!((&session["debateCycles"], &session["metadata"]["debateCycleLimit"]), (&4.into(), &4.into()));
}

#[test]
fn the_user_speaks_to_one_and_to_all_and_extends_and_stops() {
    let table = Table::with(Brain { stand: stuck, ..Brain::default() });
    let lines = [
        "",
        "@Securty what now?",
        "@QA Engineer",
        "@QA Engineer how would we know?",
        "We are two people.",
        "extend",
        "",
        "stop",
        "",
    ];
    let ended = table.hold(&["--cycles", "3"], &lines);
    let session = ended.result();
    says(
        &ended,
        &[
            "Nobody here is called \"Securty\".",
            "What do you want to ask QA Engineer?",
            "All will hear that.",
            "The debate may go on for up to 20 cycles.",
            "**Stopped.**",
        ],
    );
    let spoken = turns(&session, "discussion");
    let reply = spoken[3];
    assert_eq!((&reply["sender"]["name"], &reply["recipient"]["type"]), (&"QA Engineer".into(), &"user".into()));
    let said = list(&session["nietz"]["said"]);
    assert_eq!((&said[0]["text"], &said[0]["to"]), (&"how would we know?".into(), &"QA Engineer".into()));
    assert_eq!(table.prompts("in front of all: how would we know?").len(), 1, "one persona alone is asked");
    let heard = table.prompts("- We are two people.");
    let seats = heard.iter().filter(|request| request.prompt().starts_with("You sit in a council")).count();
    assert_eq!((seats, heard.len()), (3, 5), "all hear it, and so do who writes the answer and who dissents");
    assert!(session["councilDiscussions"][1]["topic"].as_str().expect("a text").contains("We are two people."));
    assert_eq!(said[1]["text"], "We are two people.");
    assert_eq!((&session["metadata"]["outcome"], &session["debateCycles"]), (&"stopped".into(), &2.into()));
    assert_eq!((&session["extendedDebateRequested"], &session["status"]), (&true.into(), &"completed".into()));
}

#[test]
fn a_persona_that_fails_is_named_and_the_others_go_on() {
    let brain = Brain::default();
    let server = ModelServer::start(move |request| match brain.speaker(request) {
        "QA Engineer" => Response::error(400, "not today"),
        _ => brain.answer(request),
    });
    let ended = Table::of(server).hold(&["--no-pause", "--cycles", "2"], &[]);
    let session = ended.result();
    says(&ended, &["QA Engineer could not speak: "]);
    assert_eq!(session["metadata"]["errorCategories"][0]["who"], "QA Engineer");
    assert_eq!(turns(&session, "discussion").len(), 4);
}

/// A point of more letters than are quoted of it.
const LONG: &str =
    "Whoever renames a column of the ledger breaks the nightly export without hearing of it before morning";

#[test]
fn what_is_quoted_ends_with_a_whole_word_and_an_answers_schema_names_no_point() {
    let brain = Brain { stand: stuck, ..Brain::default() };
    let server = ModelServer::start(move |request| {
        let mut value = brain.reply(request);
        if !value["sure"].is_null() {
            value["points"] = serde_json::json!([LONG]);
        }
        Response::text(value.to_string())
    });
    let table = Table { model: super::table::LARGE, ..Table::of(server) };
    let ended = table.hold(&["--no-pause", "--cycles", "2"], &[]);
    let said = super::table::said(&ended);
    let quotes: Vec<&str> =
        said.split("(\"").skip(1).filter_map(|rest| rest.split_once("…\")").map(|(quote, _)| quote)).collect();
    assert!(quotes.iter().any(|quote| LONG.starts_with(quote)), "{quotes:?}");
    for quote in quotes.into_iter().filter(|quote| LONG.starts_with(quote)) {
        assert!(LONG[quote.len()..].starts_with(' '), "cut within a word: {quote}");
    }
    let written = table.prompts("The debate is over");
    let schema = written[0].schema().to_string();
    assert!(!schema.contains("\"P1\"") && schema.len() < 5000, "{} {schema}", schema.len());
}

/// New facts make members revise what they said themselves: figures that others build on must not vanish.
#[test]
fn what_goes_on_from_a_point_of_ones_own_or_answers_one_twice_is_said_all_the_same() {
    let brain = Brain { stand: stuck, ..Brain::default() };
    let server = ModelServer::start(move |request| {
        let mut value = brain.reply(request);
        let schema = request.schema();
        let ids = schema["properties"]["responds"]["items"]["properties"]["to"]["enum"].as_array().cloned();
        if let (Some(ids), Some(first)) = (ids, value["responds"].get(0).cloned()) {
            let mut all = vec![first.clone()];
            for id in ids.iter().filter(|id| **id != first["to"]) {
                all.push(serde_json::json!({"to": id, "how": "builds_on", "why": format!("What follows from {} in figures", id)}));
            }
            all.push(serde_json::json!({"to": first["to"], "how": "builds_on", "why": "And the same point bears a second look"}));
            value["responds"] = all.into();
        }
        Response::text(value.to_string())
    });
    let table = Table { model: super::table::LARGE, ..Table::of(server) };
    let session = table.hold(&["--no-pause", "--cycles", "2"], &[]).result();
    let spoken = turns(&session, "discussion");
    for turn in &spoken[3..] {
        let content = turn["content"].as_str().expect("a turn has words");
        for id in ["P1", "P2", "P3"] {
            let whole = content.contains(&format!("What follows from \"{id}\" in figures"));
            let answered = list(&turn["metadata"]["responds"])[0]["to"] == id;
            assert!(whole || answered, "{id}: {content}");
        }
        assert!(content.contains("And the same point bears a second look"), "{content}");
        let own =
            list(&turn["metadata"]["responds"]).iter().filter(|one| one["name"] == turn["sender"]["name"]).count();
        assert_eq!(own, 0, "nobody answers themselves: {turn}");
    }
}
