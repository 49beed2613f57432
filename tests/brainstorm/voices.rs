//! Party and panel: each voice in a call of its own, real references, the contrarian, what is recorded.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use super::model::Brain;
use super::table::{TOPIC, Table, prompts, says, task};
use crate::support::env::Env;
use crate::support::model_server::{Gate, ModelServer, Request, Response};

fn names(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().filter_map(Value::as_str).collect()
}

/// The prompts of the voices, in the order of their calls.
fn spoken(table: &Table, beginning: &str) -> Vec<String> {
    table.server.requests().iter().map(task).filter(|task| task.starts_with(beginning)).collect()
}

#[test]
fn a_party_speaks_blind_first_and_then_one_takes_up_what_another_said() {
    // Nobody is answered until three have been asked: voices that waited for each other would wait for ever.
    let (together, asked) = (Gate::default(), AtomicUsize::new(0));
    let server = ModelServer::start(move |request| {
        let reply = Response::text(Brain::default().reply(request).to_string());
        if !task(request).starts_with("The team is asked") {
            return reply;
        }
        if asked.fetch_add(1, Ordering::SeqCst) == 2 {
            together.open();
        }
        reply.held_by(&together)
    });
    let table = Table { env: Env::with(&server), server };
    let ended = table.begin(&["party", "a day at most", "quit"]).exits(0);
    let session = table.session();
    assert_eq!((&session["mode"], &session["party_active"]), (&"party".into(), &true.into()));
    let round = &session["party_history"][0];
    assert_eq!((&round["round"], &round["user_question"]), (&1.into(), &"How long may an order stay pending?".into()));
    let selected = names(&round["personas_selected"]);
    assert!(selected.len() == 3 && selected.contains(&"Architect"), "{selected:?}");
    let calls = spoken(&table, "The team is asked");
    assert_eq!(calls.len(), 4);
    assert!(calls[..3].iter().all(|prompt| !prompt.contains("The others said")), "the first words are said blind");
    assert!(calls[3].contains("The others said") && calls[3].contains("at least one"), "{}", calls[3]);
    assert_eq!(table.server.most_at_once(), 3, "side by side");
    let who = |request: &Request| request.prompt().split("# Who you are now").nth(1).unwrap_or_default().to_owned();
    let voices: std::collections::BTreeSet<String> = table.server.requests().iter().map(who).collect();
    assert!(voices.len() >= 5, "each voice has its own persona");
    let contributions = round["contributions"].as_array().expect("a list");
    let referring: Vec<&Value> = contributions.iter().filter(|one| !names(&one["references"]).is_empty()).collect();
    assert_eq!(referring.len(), 1);
    for one in contributions {
        assert!(!names(&one["key_points"]).is_empty());
        for name in names(&one["references"]) {
            assert!(selected.contains(&name) && name != one["persona"], "{one}");
        }
    }
    says(
        &ended,
        &[
            "Party, round 1:",
            "Speaking: Architect",
            "**Agreed**\n\n- Customers must not pay twice",
            "**Open tensions**\n\n- Keeping the order, against refusing it",
            "The party speaks before each iteration, until `party exit`.",
        ],
    );
    assert!(
        prompts(&ended).iter().any(|prompt| prompt.starts_with("**For you:** How long may an order stay pending?"))
    );
    assert_eq!(table.own()["notes"][0]["text"], "a day at most");
}

#[test]
fn a_party_grows_focuses_goes_on_with_each_iteration_and_ends() {
    let table = Table::new();
    let lines = [
        "/party add qa",
        "/party add nobody",
        "party",
        "one day",
        "the ledger",
        "",
        "",
        "the worker",
        "",
        "",
        "no",
        "two days",
        "/party focus security",
        "yes",
        "party exit",
        "quit",
    ];
    let ended = table.begin(&lines);
    says(
        &ended,
        &[
            "QA joins.",
            "Nobody called `nobody` is here. Available: Architect",
            "Next, Security has the floor.",
            "Back to the standard session.",
        ],
    );
    let session = table.session();
    let history = session["party_history"].as_array().expect("a list");
    assert!(names(&history[0]["personas_selected"]).contains(&"QA"), "{history:?}");
    let focused = history.iter().find(|round| names(&round["personas_selected"]) == ["Security"]);
    let focused = focused.expect("one voice alone");
    assert!(!names(&focused["contributions"][0]["references"]).is_empty(), "it answers the round before");
    assert_eq!((&session["mode"], &session["party_active"]), (&"standard".into(), &false.into()));
    assert_eq!(history.len(), 3, "the third iteration began with a round of its own");
    let refused = table.go_on(&["party exit", "quit"]).exits(0);
    says(&refused, &["There is no Party now."]);
}

#[test]
fn a_contrarian_joins_when_all_agree() {
    let table = Table::with(Brain { contested: false, ..Brain::default() });
    let ended = table.begin(&["party", "", "quit"]).exits(0);
    says(&ended, &["Contrarian joins."]);
    let round = &table.session()["party_history"][0];
    let last = round["contributions"].as_array().expect("a list").last().expect("one");
    assert_eq!(last["persona"], "Contrarian");
    assert!(!names(&last["references"]).is_empty() && names(&round["personas_selected"]).contains(&"Contrarian"));
    assert!(!Table::new().begin(&["party", "", "quit"]).stdout.contains("Contrarian joins"));
}

#[test]
fn a_panel_discusses_debates_and_ends_in_questions() {
    let table = Table::new();
    let ended = table.begin(&["panel", "", "panel debate", "a day", "panel socratic", "", "panel exit", "quit"]);
    let session = table.session();
    let rounds = session["panel_history"].as_array().expect("a list");
    assert_eq!(
        rounds.iter().map(|round| &round["phase"]).collect::<Vec<_>>(),
        ["discussion", "debate", "socratic"],
        "{ended:?}"
    );
    for round in rounds {
        assert_eq!(names(&round["experts_selected"]).len(), 3);
        assert_eq!(names(&round["synthesis"]["convergent"]), ["Customers must not pay twice"]);
        assert_eq!(names(&round["synthesis"]["tensions"]), ["Keeping the order, against refusing it"]);
        assert_eq!(round["topic"], rounds[0]["topic"], "one panel is about one thing");
        for one in round["contributions"].as_array().expect("a list") {
            assert!(
                !one["framework"].as_str().unwrap_or_default().is_empty()
                    && !one["position"].as_str().unwrap_or_default().is_empty()
            );
        }
    }
    assert!(
        rounds[1]["contributions"].as_array().expect("a list").iter().all(|one| !names(&one["references"]).is_empty())
    );
    let calls = spoken(&table, "The panel is asked");
    assert!(calls[0].contains("Take a position by your framework") && !calls[0].contains("The others said"));
    assert!(calls.iter().any(|prompt| prompt.contains("Debate: name the position that you cannot accept")));
    assert!(calls.last().expect("one").contains("Ask only: one or two open questions"));
    assert!(prompts(&ended).iter().any(|prompt| prompt.starts_with("**Your verdict?**")));
    assert_eq!((&session["mode"], &session["panel_active"]), (&"standard".into(), &false.into()));
}

#[test]
fn a_session_can_begin_with_a_party_or_a_panel_and_remembers_it() {
    for (flag, history) in [("--party", "party_history"), ("--panel", "panel_history")] {
        let table = Table::new();
        table.talk([TOPIC, "--no-clarify", "--no-hmw", flag], &["", "quit"]).exits(0);
        let session = table.session();
        assert_eq!(session["mode"], flag.trim_start_matches('-'));
        assert_eq!(session[history][0]["topic"], TOPIC);
        assert_eq!(session["ems"], 22, "EMS keeps running");
        assert_eq!(session[history].as_array().map(Vec::len), Some(1));
    }
}

#[test]
fn a_voice_that_fails_is_named_and_the_others_go_on() {
    let brain = Brain::default();
    let server = ModelServer::start(move |request| {
        if request.prompt().contains("security engineer") {
            return Response::error(400, "not today");
        }
        Response::text(brain.reply(request).to_string())
    });
    let table = Table { env: Env::with(&server), server };
    let ended = table.begin(&["/party add security", "party", "", "quit"]).exits(0);
    says(&ended, &["Security could not speak: "]);
    let round = &table.session()["party_history"][0];
    assert!(!names(&round["personas_selected"]).contains(&"Security") && names(&round["personas_selected"]).len() >= 2);
}
