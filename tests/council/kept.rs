//! Nothing is lost: a reply that cannot be used never loses a council, an answer is kept whole, what was concluded stays on record.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::model::{Brain, restless, stuck, whole};
use super::table::{LARGE, Table, each, list, said, says, turns};
use crate::support::model_server::{ModelServer, Request, Response};

/// A council of a model that talks instead of answering where `refuses` says so.
fn stubborn(brain: Brain, model: &'static str, refuses: fn(&Request) -> bool) -> Table {
    let server = ModelServer::start(move |request| {
        let reply = brain.answer(request);
        if refuses(request) { Response::text("I would rather not.") } else { reply }
    });
    Table { model, ..Table::of(server) }
}

#[test]
fn a_moderator_that_cannot_write_the_answer_loses_no_council() {
    for model in [super::table::SMALL, LARGE] {
        let brain = Brain { stand: stuck, ..Brain::default() };
        let table = stubborn(brain, model, writes_the_answer);
        let ended = table.hold(&["--no-pause", "--save", "kept.json"], &[]);
        let session = ended.result();
        assert_eq!(session["status"], "completed");
        let decision = &session["metadata"]["decision"];
        assert_eq!((&decision["composed"], &decision["option"]), (&true.into(), &"A".into()));
        says(&ended, &["this answer is composed from the positions and from what was said"]);
        let answer = session["finalAnswer"].as_str().expect("an answer");
        assert!(answer.contains("Split billing out now. Begin with the contract tests of QA Engineer"), "{answer}");
        assert!(answer.contains("composed from the positions"), "{answer}");
        assert_eq!(each(list(&session["metadata"]["errorCategories"]), "code"), ["reply-invalid"]);
        table.env.nietz(["check", "--as", "council:sessions", "kept.json"]).go().exits(0);
        let report = table.env.nietz(["report", crate::support::env::RUN, "--markdown"]).go();
        assert!(report.stdout.contains("composed from the positions"), "{report:?}");
    }
}

#[test]
fn the_moderator_can_be_asked_again_for_the_answer() {
    let asked = AtomicUsize::new(0);
    let brain = Brain { stand: stuck, ..Brain::default() };
    let server = ModelServer::start(move |request| {
        let reply = brain.answer(request);
        let writes = writes_the_answer(request);
        // Three replies cannot be used, the fourth can.
        if writes && asked.fetch_add(1, Ordering::SeqCst) < 3 { Response::text("No.") } else { reply }
    });
    let table = Table { model: LARGE, ..Table::of(server) };
    let session = table.hold(&["--consider", "never", "--cycles", "1"], &["", "", "again", ""]).result();
    assert!(session["metadata"]["decision"]["composed"].is_null());
    assert_eq!(session["nietz"]["former"][0]["decision"]["composed"], true);
}

#[test]
fn a_judge_or_a_control_that_cannot_answer_loses_no_session() {
    type Refuses = fn(&Request) -> bool;
    let bad: [(Refuses, &str); 2] = [
        (|request| whole(request).contains("Two answers to one request"), "**not found out**"),
        (|request| whole(request).contains("of the person who asks this"), "No usable answer came for the control"),
    ];
    for (refuses, words) in bad {
        let table = stubborn(Brain::default(), LARGE, refuses);
        let ended = table.hold(&["--no-pause", "--control", "--save", "d.yaml"], &[]);
        assert_eq!(ended.result()["status"], "completed");
        says(&ended, &[words]);
        assert!(table.env.documents().contains_key("d.yaml"));
    }
    // A service that fails behind the answer takes nothing with it, either.
    let brain = Brain::default();
    let asked = AtomicUsize::new(0);
    let server = ModelServer::start(move |request| {
        // The first of these is the draft of the answer itself.
        let is_plain = whole(request).contains("of the person who asks this");
        match is_plain && asked.fetch_add(1, Ordering::SeqCst) > 0 {
            true => Response::error(400, "not today"),
            false => brain.answer(request),
        }
    });
    let table = Table { model: LARGE, ..Table::of(server) };
    let ended = table.hold(&["--no-pause", "--control", "--save", "d.yaml"], &[]);
    says(&ended, &["The answer stands; whether the council was worth it was not found out: "]);
    assert!(table.env.documents().contains_key("d.yaml"));
}

#[test]
fn a_cycle_in_which_nobody_can_be_understood_ends_the_debate_with_what_was_said() {
    let table =
        stubborn(Brain { stand: restless, ..Brain::default() }, LARGE, |request| whole(request).contains("\nCycle 2."));
    let ended = table.hold(&["--no-pause"], &[]);
    let session = ended.result();
    assert_eq!((&session["metadata"]["outcome"], &session["status"]), (&"silent".into(), &"completed".into()));
    says(&ended, &["**Nobody could speak.**"]);
}

#[test]
fn an_answer_that_begins_like_an_address_is_whole() {
    let rounds = vec![vec![("Who pays for outages today?", "")]];
    let table = Table::large(Brain { rounds, ..Brain::default() });
    let typed = "@alice in finance says two people, and one contractor";
    let session = table.hold(&["--cycles", "1", "--consider", "never"], &[typed, "", "", ""]).result();
    assert_eq!(session["clarificationQuestions"][0]["userAnswer"]["answer"], typed);
    assert!(table.reads(typed).len() >= 4, "all read it");
}

#[test]
fn revisiting_debates_once_more_and_keeps_what_was_concluded_before() {
    let rounds = vec![vec![("Which deadline binds the migration?", "None before June")]];
    let table = Table::large(Brain { rounds, stand: stuck, ..Brain::default() });
    let lines = ["skip", "", "stop", "revisit", "In May", "/fact The auditor comes on 3 June.", ""];
    let ended = table.hold(&["--consider", "never"], &lines);
    let session = ended.result();
    assert_eq!((&session["debateCycles"], &session["status"]), (&3.into(), &"completed".into()), "one more each time");
    assert_eq!(list(&session["nietz"]["former"]).len(), 2);
    let written = table.prompts("The debate is over");
    assert_eq!(written.len(), 3);
    assert!(!whole(&written[0]).contains("In May") && whole(&written[1]).contains("In May"));
    assert!(whole(&written[2]).contains("The auditor comes on 3 June."));
    let answers: Vec<_> =
        turns(&session, "conclusion").into_iter().filter(|turn| turn["metadata"]["status"] == "final").collect();
    assert_eq!(answers.len(), 1);
    assert!(!said(&ended).contains("limit of"), "there was room");
    // Where the limit is reached nobody debates, and the answer is written anew all the same.
    let ended = table.hold(&["--consider", "never", "--cycles", "1"], &["skip", "", "", "revisit", "In May", ""]);
    assert_eq!(ended.result()["debateCycles"], 1);
    says(&ended, &["The limit of 1 cycles is reached, so nobody debates again"]);
}

/// Whoever comes to think otherwise by new facts is counted as they stand now, and not as they stood when it was first answered.
#[test]
fn after_a_revisit_the_decision_is_that_of_the_positions_now() {
    let rounds = vec![vec![("Which deadline binds the migration?", "None before June")]];
    let stand: super::model::Stand = |_, cycle| if cycle < 3 { ("A", 80) } else { ("B", 90) };
    let table = Table::large(Brain { rounds, stand, ..Brain::default() });
    let session = table.hold(&["--consider", "never"], &["skip", "", "", "", "revisit", "In May", ""]).result();
    assert_eq!((&session["debateCycles"], &session["status"]), (&3.into(), &"completed".into()));
    let former = &session["nietz"]["former"][0]["decision"];
    assert_eq!((&former["option"], &former["carried"]["confidence"]), (&"A".into(), &80.into()));
    let decision = &session["metadata"]["decision"];
    assert_eq!((&decision["option"], &decision["carried"]["confidence"]), (&"B".into(), &90.into()));
    assert_eq!(session["councilDiscussions"][2]["messageTurns"].as_array().map(Vec::len), Some(3));
}

#[test]
fn what_is_taken_back_is_cut_out_and_all_else_that_was_said_stays() {
    let table = Table::large(Brain { stand: restless, ..Brain::default() });
    let lines = [
        "",
        "We make 410,000 a year and what stays is about 38,000 before we pay ourselves, for 13 years now. The oven is full.",
        "/facts",
        "/strike what stays is about 38,000 before we pay ourselves",
        "/strike 2",
        "/strike nobody said that",
        "stop",
        "",
    ];
    let ended = table.hold(&["--consider", "never"], &lines);
    let session = ended.result();
    let answer = session["finalAnswer"].as_str().expect("an answer");
    assert!(!answer.contains("38,000") && !answer.contains("oven"), "{answer}");
    let left = list(&session["metadata"]["decision"]["leftOut"]);
    assert_eq!(each(left, "text"), ["We make 410,000 a year", "for 13 years now."], "and what was struck is gone");
    says(
        &ended,
        &["- **2** The oven is full.", "It holds no longer: The oven is full.", "You said nothing that holds"],
    );
    assert!(table.reads("They hold no longer: what stays is about 38,000").len() >= 2, "all hear it");
}

#[test]
fn the_writer_takes_back_only_what_later_words_of_the_user_take_back() {
    let brain = Brain { stand: stuck, ..Brain::default() };
    let server = ModelServer::start(move |request| {
        if request.schema()["properties"]["taken_back"].is_null() {
            return brain.answer(request);
        }
        let mut value = brain.reply(request);
        value["taken_back"] = serde_json::json!([
            {"quote": "the rent is 1,450 a month", "by": "It is 1,600 now"},
            {"quote": "The oven is full", "by": "nobody said that"},
            {"quote": "It is 1,600 now", "by": "the rent is 1,450 a month"},
        ]);
        if value["option"].is_null() {
            return Response::text(value.to_string());
        }
        value["memo"] = "The rent is 1,600 a month [U3]. It was 1,450 a month before. The rent is 1,450 a month. It comes to 19,200 a year."
            .into();
        Response::text(value.to_string())
    });
    let table = Table { model: LARGE, ..Table::of(server) };
    let context = "We like the street, the rent is 1,450 a month. The oven is full. It is 1,600 now.";
    let session = table.hold(&["--no-pause", "--cycles", "1", "--context", context], &[]).result();
    let answer = session["finalAnswer"].as_str().expect("an answer");
    let told = "The rent is 1,600 a month. It was 1,450 a month before. It comes to 19,200 a year.";
    assert_eq!(answer, format!("# Billing on its own?\n\n{told}"));
    let left = list(&session["metadata"]["decision"]["leftOut"]);
    assert_eq!(each(left, "text"), ["We like the street", "The oven is full."]);
    assert_eq!(list(&session["nietz"]["takenBack"]).len(), 1);
}

#[test]
fn who_drafts_the_answer_is_told_what_the_user_took_back_as_taken_back() {
    let brain = Brain { stand: restless, ..Brain::default() };
    let server = ModelServer::start(move |request| {
        let mut value = brain.reply(request);
        if request.prompt().contains("what of all that the user said holds no longer") {
            value["taken_back"] = serde_json::json!([{"quote": "1,450 a month", "by": "It is 1,600 now"}]);
        }
        Response::text(value.to_string())
    });
    let table = Table { model: LARGE, ..Table::of(server) };
    let lines = [
        "facts",
        "",
        "We make 410,000 a year and what stays is about 38,000. The oven is full.",
        "/strike what stays is about 38,000",
        "/strike 4",
        "stop",
        "",
    ];
    let context = "The rent is 1,450 a month. It is 1,600 now.";
    table.hold(&["--consider", "never", "--context", context], &lines).exits(0);
    let drafted = table.prompts("You are a wise friend and an experienced adviser of the person who asks this");
    assert_eq!(drafted.len(), 1);
    // A sentence that was struck whole is gone; of others, the words that hold no longer are named.
    let told = "# What the user says\n\nU1: The rent is 1,450 a month.\nU2: It is 1,600 now.\n\
                U3: We make 410,000 a year and what stays is about 38,000.\n\n\
                They hold no longer: 1,450 a month\n\nThey hold no longer: what stays is about 38,000\n\nFirst, for yourself: ";
    assert!(drafted[0].prompt().contains(told), "{}", drafted[0].prompt());
}

/// A council of a large mind that talks instead of answering where `refuses` says so, until it has come to its senses.
fn once_stubborn(refuses: fn(&Request) -> bool) -> (Table, std::sync::Arc<std::sync::atomic::AtomicBool>) {
    let sensible = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (now, brain) = (sensible.clone(), Brain { stand: stuck, ..Brain::default() });
    let server = ModelServer::start(move |request| {
        let reply = brain.answer(request);
        let bad = refuses(request) && !now.load(std::sync::atomic::Ordering::SeqCst);
        if bad { Response::text("I would rather not.") } else { reply }
    });
    (Table { model: LARGE, ..Table::of(server) }, sensible)
}

/// The session of a fork of the council that was just held, which the model answers well.
fn forked(table: &Table, sensible: &std::sync::atomic::AtomicBool) -> (serde_json::Value, usize) {
    sensible.store(true, std::sync::atomic::Ordering::SeqCst);
    let before = table.server.calls();
    let ended = table.env.nietz(["fork", crate::support::env::RUN, "--json"]).var("NIETZ_RUN", "again").go();
    (ended.result(), table.server.calls() - before)
}

fn writes_the_answer(request: &Request) -> bool {
    let members = &request.schema()["properties"];
    // A small mind writes it in parts.
    (!members["memo"].is_null() && !members["option"].is_null())
        || (members["memo"].is_null() && !members["tradeoffs"].is_null())
}

#[test]
fn a_fork_asks_a_moderator_again_whose_reply_could_not_be_used() {
    let (table, sensible) = once_stubborn(writes_the_answer);
    let held = table.hold(&["--no-pause"], &[]).result();
    assert_eq!(held["metadata"]["decision"]["composed"], true);
    let (session, calls) = forked(&table, &sensible);
    assert!(session["metadata"]["decision"]["composed"].is_null(), "{session}");
    assert_eq!(calls, 1, "the answer alone: its draft was read already");
    // What was done stays as it was: only a fork is another run.
    let again = table.env.nietz(["resume", crate::support::env::RUN, "--json"]).go().result();
    assert_eq!(again["metadata"]["decision"]["composed"], true);
}

#[test]
fn a_fork_asks_a_judge_again_whose_reply_could_not_be_used() {
    let (table, sensible) = once_stubborn(|request| !request.schema()["properties"]["better"].is_null());
    let held = table.hold(&["--no-pause", "--control"], &[]).result();
    assert_eq!(held["metadata"]["control"]["verdict"], "none");
    let (session, calls) = forked(&table, &sensible);
    assert_eq!((&session["metadata"]["control"]["verdict"], calls), (&"equal".into(), 4));
}

fn is_qa_in_the_second_cycle(request: &Request) -> bool {
    let prompt = whole(request);
    prompt.contains("You are QA Engineer") && prompt.contains("\nCycle 2.")
}

#[test]
fn a_fork_asks_a_member_again_whose_reply_could_not_be_used() {
    let (table, sensible) = once_stubborn(is_qa_in_the_second_cycle);
    let spoke = |session: &serde_json::Value| {
        turns(session, "discussion").iter().filter(|turn| turn["relatedCycleOrRound"]["number"] == 2).count()
    };
    let held = table.hold(&["--no-pause", "--cycles", "2"], &[]).result();
    assert_eq!(spoke(&held), 2);
    assert_eq!(spoke(&forked(&table, &sensible).0), 3);
}

#[test]
fn a_council_in_which_nobody_could_speak_is_resumed_with_those_who_can() {
    let (table, sensible) = once_stubborn(|request| !request.schema()["properties"]["sure"].is_null());
    let ended = table.hold(&["--no-pause"], &[]).exits(1);
    assert_eq!(ended.failure(), "reply-invalid");
    sensible.store(true, std::sync::atomic::Ordering::SeqCst);
    let session = table.env.resume().go().result();
    assert_eq!(session["status"], "completed", "all three are asked again, and the debate is held");
}
