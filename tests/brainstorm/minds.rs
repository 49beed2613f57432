//! Two sizes of mind: a large one reads everything, what all prompts share first; a small one gets its crutches. And what a session
//! costs in calls.

use std::collections::BTreeSet;

use super::model::Brain;
use super::table::{FULL, MORE, SLUG, TOPIC, Table, conversation, read, said, task};
use crate::support::model_server::Request;

fn chats(table: &Table) -> Vec<Request> {
    table.server.requests().into_iter().filter(|request| request.method == "POST").collect()
}

/// An answer longer than anything that a small mind is told.
fn long() -> String {
    let parts: Vec<String> = (0..40).map(|part| format!("Part {part} of it is kept in its own ledger")).collect();
    format!("{}.", parts.join(", "))
}

#[test]
fn a_large_mind_reads_the_whole_conversation_uncut_with_its_questions() {
    let table = Table::new();
    let long = long();
    let lines = [&long, "a and b", "", "the worker", "", "", "the refunds", "", "", "quit"];
    table.talk([TOPIC, "--no-clarify", "--no-hmw", "--no-technique", "--no-suggest"], &lines).exits(0);
    let last = read(chats(&table).last().expect("one"));
    let history = table.session()["history"].clone();
    for iteration in 0..3 {
        for (question, answer) in [(0, 0), (1, 1)] {
            let asked = history[iteration]["questions"][question].as_str().expect("a question");
            let answered = history[iteration]["responses"][answer].as_str().expect("an answer");
            let left = if answered.is_empty() { "(left open)" } else { "U" };
            assert!(last.contains(&format!("Q: {asked}\n{left}")), "{asked}: {last}");
            assert!(answered.is_empty() || last.contains(&format!(": {answered}\n")), "{answered}: {last}");
        }
    }
    assert!(last.contains(&long), "nothing is cut");
}

#[test]
fn each_request_of_a_large_mind_goes_on_from_the_one_before_whoever_speaks() {
    let table = Table::new();
    let lines = [
        FULL,
        "party",
        "a day at most",
        "party exit",
        "",
        "/fact It is a web shop",
        "",
        "premortem",
        MORE,
        "",
        "",
        "quit",
    ];
    table.begin(&lines);
    goes_on(&chats(&table));
    let asked: BTreeSet<String> = chats(&table).iter().map(conversation).collect();
    assert!(asked.len() < chats(&table).len() - 2, "voices of a round share all of it");
    // In another sitting, too: the order in which it was told is in the session.
    table.go_on(&["the worker stops", "", "", "quit"]).exits(0);
    goes_on(&chats(&table));
    // What a `back` leaves is told no more, and all that was before it stands.
    table.go_on(&["back", "continue", "quit"]).exits(0);
    let before = chats(&table).len();
    table.go_on(&["back", "another answer", "", "", "quit"]).exits(0);
    let (former, new) = (chats(&table)[before - 1].clone(), chats(&table)[before].clone());
    let kept = conversation(&new);
    let (kept, _) = kept.rsplit_once("\n\n# Iteration ").expect("the new one");
    assert!(conversation(&former).starts_with(kept) && !conversation(&new).contains("the worker stops"), "{kept}");
}

/// Checks that each request but the first is the one before it, and more: one system message, and nothing told in another way.
#[track_caller]
fn goes_on(requests: &[Request]) {
    let systems: BTreeSet<String> =
        requests.iter().map(|request| request.body["messages"][0]["content"].to_string()).collect();
    assert_eq!(systems.len(), 1, "one system message for all: {systems:?}");
    let told = |request: &Request| {
        let mut all = request.body["messages"].as_array().cloned().expect("a list");
        all.truncate(all.len() - 2);
        all
    };
    for pair in requests.windows(2) {
        let (before, after) = (told(&pair[0]), told(&pair[1]));
        assert!(after.starts_with(&before), "{before:#?}\n-----\n{after:#?}");
        assert!(after.len() <= before.len() + 1, "one piece a call: {after:#?}");
    }
}

#[test]
fn a_small_mind_gets_its_crutches_and_loses_nothing_either() {
    let table = Table::small(Brain::default());
    let long = long();
    let lines = [&long, "", "", "the worker retries orders", "", "", "the refunds wait for Ann", "", "", "finish"];
    table.talk([TOPIC, "--no-clarify", "--no-hmw", "--no-technique", "--no-suggest"], &lines).exits(0);
    let requests = chats(&table);
    let questions: Vec<String> =
        requests.iter().map(Request::prompt).filter(|prompt| prompt.starts_with("Ask the next")).collect();
    assert!(questions.iter().any(|prompt| prompt.contains("An example, about hotel bookings")));
    assert!(questions.iter().all(|prompt| !prompt.contains("Part 39 of it")), "an answer is cut for it");
    assert!(requests.iter().any(|request| request.prompt().starts_with("Judge how mature this idea is")));
    let brief = table.env.read(&format!("docs/briefs/{SLUG}/brief-2026-01-09.md"));
    for part in ["Part 39 of it", "the worker retries orders", "the refunds wait for Ann"] {
        assert!(brief.contains(part), "{part}: {brief}");
    }
}

#[test]
fn a_light_session_costs_one_call_for_three_answers() {
    for flag in ["--lite", "--quick"] {
        let table = Table::new();
        let answers = ["the ledger", "the worker", "the refunds", "the mails", "the alerts", "the owners"];
        let ended = table.talk([TOPIC, "--no-clarify", flag], &[&answers[..], &["quit"]].concat()).exits(0);
        // The first questions, and one call for each three answers, which asks the next ones as well.
        assert_eq!(chats(&table).len(), 3, "{flag}: {:?}", chats(&table).iter().map(task).collect::<Vec<_>>());
        assert!(said(&ended).contains("EMS "), "{}", said(&ended));
        let taken = table.own()["ledger"]["entries"].as_array().expect("a list").len();
        assert!(taken >= answers.len(), "{flag}: {taken}");
    }
}

#[test]
fn questions_that_were_put_away_unseen_may_be_asked_and_those_on_the_screen_stay_after_a_round() {
    let table = Table::new();
    let ended = table.begin(&["party", "a day", "panel", "a week", "panel exit", "quit"]).exits(0);
    let asked: BTreeSet<String> =
        super::table::prompts(&ended).into_iter().filter(|prompt| prompt.contains("Question ")).collect();
    assert_eq!(asked.len(), 1, "the same question before and after: {asked:?}");
    assert_eq!(table.session()["party_history"][0]["topic"], table.session()["history"][0]["questions"][0]);
    assert_eq!(chats(&table).iter().map(task).filter(|task| task.starts_with("Ask the user")).count(), 1);
}
