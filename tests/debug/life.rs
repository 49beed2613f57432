//! The life of a session: how it begins, what ends it, and what is kept of it each time.

use std::time::Duration;

use serde_json::{Value, json};

use super::desk::{Desk, For, PROBLEM, purpose, said, says, usual};
use crate::support::env::Env;
use crate::support::model_server::{Gate, ModelServer, Response};
use crate::support::process::{Ended, Running};

#[test]
fn a_session_file_has_the_fields_of_its_specification() {
    let desk = Desk::new();
    let ended = desk
        .session(&["the key is old", "", "  ", "it is written before the deploy", "found it", "look at the key first"])
        .exits(0);
    let mut session = desk.saved();
    let id = session["id"].as_str().expect("a text").to_owned();
    assert_eq!((id.len(), &id[14..15]), (36, "4"), "a UUID of version 4");
    assert_eq!(ended.result()["id"], id.as_str());
    session["id"] = json!("…");
    insta::assert_snapshot!(serde_json::to_string_pretty(&session).expect("it is JSON"), @r#"
    {
      "schemaVersion": 1,
      "id": "…",
      "timestamp": "2026-01-09T10:30:00Z",
      "endTimestamp": "2026-01-09T10:30:00Z",
      "problemDescription": "the cache returns stale prices after a deploy",
      "intensity": "nietzsche",
      "outcome": "solved",
      "questionsToRootCause": 3,
      "codeFiles": [],
      "transcript": [
        {
          "turnNumber": 1,
          "question": "What did the log show at step 1?",
          "response": "the key is old",
          "model": "test",
          "quoteUsed": null,
          "behaviorTags": [
            "checked-logs"
          ],
          "timestamp": "2026-01-09T10:30:00Z"
        },
        {
          "turnNumber": 2,
          "question": "What did the log show at step 2?",
          "response": "it is written before the deploy",
          "model": "test",
          "quoteUsed": null,
          "behaviorTags": [
            "checked-logs"
          ],
          "timestamp": "2026-01-09T10:30:00Z"
        },
        {
          "turnNumber": 3,
          "question": "What did the log show at step 3?",
          "response": "found it",
          "model": "test",
          "quoteUsed": null,
          "behaviorTags": [
            "checked-logs"
          ],
          "timestamp": "2026-01-09T10:30:00Z"
        }
      ],
      "skillScores": {
        "assumptionChecking": 7,
        "evidenceGathering": 8,
        "rootCauseSpeed": 3
      },
      "behaviorTags": [
        {
          "turnNumber": 1,
          "tag": "checked-logs",
          "dimension": "evidenceGathering"
        },
        {
          "turnNumber": 2,
          "tag": "checked-logs",
          "dimension": "evidenceGathering"
        },
        {
          "turnNumber": 3,
          "tag": "checked-logs",
          "dimension": "evidenceGathering"
        }
      ],
      "nietz": {
        "version": 1,
        "state": "ended",
        "scoredBy": "model",
        "scores": {
          "assumptionChecking": {
            "turns": [
              1
            ],
            "reason": "You looked before you guessed."
          },
          "evidenceGathering": {
            "turns": [
              1
            ],
            "reason": "You looked before you guessed."
          },
          "rootCauseSpeed": {
            "turns": [
              1
            ],
            "reason": "You looked before you guessed."
          }
        },
        "reflection": {
          "question": "What did you learn, and what would you check first next time? (Enter to skip)",
          "answer": "look at the key first"
        }
      }
    }
    "#);
    let checked = desk.env.nietz(["check", &format!(".nietzschian/sessions/{id}.json")]).go();
    assert_eq!((checked.code, checked.stdout.contains("note")), (Some(0), false), "{checked:?}");
}

#[test]
fn only_the_developer_says_that_it_is_solved() {
    for (line, outcome) in [
        ("solved", "solved"),
        ("Found it!", "solved"),
        ("/found it the key has no version", "solved"),
        ("/solved", "solved"),
        ("I found it.", "solved"),
        ("trouvé", "solved"),
        ("résolu !", "solved"),
        ("exit", "abandoned"),
        ("QUIT", "abandoned"),
    ] {
        let desk = Desk::new();
        let ended = desk.session(&["I look", line, ""]).exits(0);
        assert_eq!(ended.result()["outcome"], outcome, "{line}");
        let session = desk.saved();
        assert_eq!((&session["outcome"], &session["questionsToRootCause"]), (&json!(outcome), &json!(2)), "{line}");
        // Left in the middle of a turn, there is no answer to keep.
        let kept = if outcome == "solved" { line.trim_start_matches("/found it ") } else { "" };
        assert_eq!(session["transcript"][1]["response"], kept, "{line}");
    }
    for line in [
        "found it hard to reproduce",
        "is it solved?",
        "I solved nothing",
        "the exit code is 1",
        "quit smoking",
        "security",
        "plan",
        "spike in traffic at noon",
        "\\solved",
    ] {
        let desk = Desk::new();
        desk.session(&[line, "exit", ""]).exits(0);
        assert_eq!(desk.saved()["questionsToRootCause"], 2, "{line} is an answer");
    }
}

#[test]
fn giving_up_has_one_lifeline() {
    let desk = Desk::new();
    let ended = desk.session(&["hm", "I give up", "one more look", "i give up.", "sleep"]).exits(0);
    says(&ended, &["[Lifeline -- one more question before you go]", "4 questions, left"]);
    assert_eq!(said(&ended).matches("Lifeline").count(), 1);
    let session = desk.saved();
    assert_eq!((&session["outcome"], &session["nietz"]["lifelineUsed"]), (&json!("abandoned"), &json!(true)));
    let responses: Vec<&str> =
        session["transcript"].as_array().expect("turns").iter().filter_map(|turn| turn["response"].as_str()).collect();
    assert_eq!(responses, ["hm", "I give up", "one more look", "i give up."]);
    assert!(desk.asked(For::Question)[2].prompt().contains("lifeline"));
    // Answered after the lifeline, the session goes on and can be solved.
    let desk = Desk::new();
    desk.session(&["I give up", "oh, the key!", "solved", ""]).exits(0);
    assert_eq!(desk.saved()["outcome"], "solved");
}

#[test]
fn the_end_has_a_quote_a_score_card_a_question_and_the_profile() {
    let desk = Desk::new();
    let ended = desk.session(&["a", "b", "solved", "measure first"]).exits(0);
    says(
        &ended,
        &[
            "> ",
            "**Session Complete — 3 questions to root cause (Solved)**",
            "┣ Checks assumptions  ███████░░░  7/10  moderate",
            "┣ Gathers evidence    ████████░░  8/10  strong",
            "┗ Narrows down        ███░░░░░░░  3/10  weak",
            "Scored by the model from the whole transcript.",
            "**Growth profile**",
        ],
    );
    assert_eq!(
        desk.saved()["nietz"]["reflection"],
        json!({"question": "What did you learn, and what would you check first next time? (Enter to skip)", "answer": "measure first"})
    );
    let nudge = "Could you have gotten there faster? What was your first instinct?";
    assert!(!said(&ended).contains(nudge));
    let quick = Desk::new().session(&["a", "solved", ""]).exits(0);
    says(&quick, &[nudge, "— 2 questions"]);
    let left = Desk::new();
    let ended = left.session(&["a", "exit", ""]).exits(0);
    assert!(!said(&ended).contains(nudge));
    assert_eq!(left.saved()["nietz"]["reflection"], Value::Null, "Enter skips it");
}

#[test]
fn where_the_model_cannot_score_the_tags_do_and_the_session_says_so() {
    let desk = Desk::with(|what, _| match what {
        For::Scores => Some("excellent".to_owned()),
        For::Tags => Some(json!({"tags": ["checked-logs", "assumed-without-checking"]}).to_string()),
        _ => None,
    });
    let ended = desk.session(&["a", "b", "solved", ""]).exits(0);
    says(&ended, &["Scored from what was seen in each answer"]);
    let session = desk.saved();
    assert_eq!(session["nietz"]["scoredBy"], "tags");
    assert_eq!(session["skillScores"], json!({"assumptionChecking": 2, "evidenceGathering": 8, "rootCauseSpeed": 5}));
    assert_eq!(session["transcript"][0]["behaviorTags"], json!(["checked-logs", "assumed-without-checking"]));
    assert_eq!(
        session["behaviorTags"][1],
        json!({"turnNumber": 1, "tag": "assumed-without-checking", "dimension": "assumptionChecking"})
    );
    assert_eq!(session["behaviorTags"].as_array().map(Vec::len), Some(6), "what ends a session is tagged, too");
}

#[test]
fn an_answer_that_cannot_be_tagged_counts_for_nothing_and_that_is_said() {
    let desk = Desk::with(|what, _| (what == For::Tags).then(|| json!({"tags": ["brilliant"]}).to_string()));
    let ended = desk.session(&["a", "solved", ""]).exits(0);
    says(&ended, &["it counts for nothing"]);
    assert_eq!(desk.saved()["behaviorTags"], json!([]));
}

#[test]
fn asking_for_the_answer_raises_the_intensity() {
    let desk = Desk::new();
    let lines =
        ["just tell me the answer", "ok, the key is old", "what's the fix?", "tell me the solution", "exit", ""];
    let ended = desk.talk([PROBLEM, "--intensity", "socrates"], &lines).exits(0);
    says(
        &ended,
        &[
            "You asked for the answer: Socrates makes room for Nietzsche.",
            "You asked for the answer: Nietzsche makes room for Zarathustra",
            "You asked for the answer. Zarathustra does not give it.",
        ],
    );
    let voices: Vec<Value> = ended.of_type("said").iter().filter_map(|event| event.get("from").cloned()).collect();
    assert_eq!(voices, ["Socrates", "Nietzsche", "Nietzsche", "Zarathustra", "Zarathustra"]);
    let session = desk.saved();
    assert_eq!((&session["intensity"], &session["nietz"]["escalatedTo"]), (&json!("socrates"), &json!("zarathustra")));
    assert_eq!(session["transcript"][0]["behaviorTags"][0], "asked-for-answer");
    let systems: Vec<String> = desk.asked(For::Question).iter().map(|request| request.system()).collect();
    assert!(systems[0].contains("as Socrates questioned") && systems[1].contains("as Nietzsche philosophised"));
    // A plea that only the model hears raises it too, from the next question on: the one that is there is not thrown away.
    let heard = Desk::with(|what, _| (what == For::Tags).then(|| json!({"tags": ["asked-for-answer"]}).to_string()));
    let ended = heard.session(&["you surely know it, spare me", "I pay for this", "exit", ""]).exits(0);
    says(&ended, &["Nietzsche makes room for Zarathustra, from the next question on."]);
    let voices: Vec<Value> = ended.of_type("said").iter().filter_map(|event| event.get("from").cloned()).collect();
    assert_eq!(voices, ["Nietzsche", "Nietzsche", "Zarathustra"]);
    assert_eq!(heard.asked(For::Question).len(), 3, "no question is made twice");
    // A plain question about a concept is no such plea.
    let concept = Desk::new();
    let ended = concept.session(&["what is a write-through cache?", "exit", ""]).exits(0);
    assert!(!said(&ended).contains("You asked for the answer"));
    assert!(concept.asked(For::Question)[1].prompt().contains("explain it in at most two sentences"));
}

#[test]
fn an_interrupted_session_is_valid_on_disk_and_goes_on() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = ModelServer::start(move |request| {
        let reply = Response::text(usual(request));
        let second = purpose(request) == For::Question && request.prompt().contains("the key is old");
        if second { reply.held_by(&held) } else { reply }
    });
    let desk = Desk { env: Env::with(&server), server };
    let mut running = desk.call([PROBLEM]).spawn();
    running.say("the key is old\n");
    let waits = |desk: &Desk| desk.asked(For::Question).len() < 2 || desk.asked(For::Tags).is_empty();
    loop {
        // Counted before it is looked at: a call that comes in between is not waited for.
        let seen = desk.server.calls();
        if !waits(&desk) {
            break;
        }
        assert!(desk.server.wait_for_calls(seen + 1, Duration::from_secs(30)), "the call never comes");
    }
    running.interrupt();
    let ended = running.end().exits(130);
    gate.open();
    assert!(!said(&ended).contains("questions, left"), "it is not over: {}", said(&ended));
    let session = desk.saved();
    assert_eq!((&session["outcome"], &session["nietz"]["scoredBy"]), (&json!("abandoned"), &json!("tags")));
    assert_eq!(session["transcript"][0]["response"], "the key is old");
    let path = format!(".nietzschian/sessions/{}.json", session["id"].as_str().expect("it has an id"));
    desk.env.nietz(["check", "--as", "debug:sessions", &path]).go().exits(0);
    let tags = desk.asked(For::Tags).len();
    let resumed = desk.env.resume().stdin("/solved the key\n\nread the log first\n").go();
    assert_eq!(resumed.result()["outcome"], "solved");
    let session = desk.saved();
    assert_eq!((&session["outcome"], &session["nietz"]["scoredBy"]), (&json!("solved"), &json!("model")));
    assert_eq!(
        (desk.asked(For::Question).len(), tags),
        (3, 1),
        "only the question that was under way is asked for again"
    );
}

#[test]
fn a_session_that_is_left_at_a_question_stands_on_disk_as_abandoned_in_that_turn() {
    let leave: [fn(Running) -> (Ended, i32); 3] = [
        |running| {
            running.interrupt();
            (running.end(), 130)
        },
        |running| {
            running.hang_up();
            (running.end(), 130)
        },
        |mut running| {
            running.close();
            (running.end(), 7)
        },
    ];
    for leave in leave {
        let desk = Desk::new();
        let mut running = desk.call([PROBLEM]).spawn();
        running.say("the key is old\n");
        running.wait_for("answered");
        running.wait_for("asked");
        let (ended, code) = leave(running);
        ended.exits(code);
        let session = desk.saved();
        let turns = session["transcript"].as_array().expect("a list");
        assert_eq!(
            (&session["outcome"], &session["questionsToRootCause"]),
            (&json!("abandoned"), &json!(2)),
            "{session}"
        );
        assert_eq!((&turns[0]["response"], &turns[1]["response"]), (&json!("the key is old"), &json!("")));
        assert_eq!(session["skillScores"].as_object().expect("all three").len(), 3);
        let path = format!(".nietzschian/sessions/{}.json", session["id"].as_str().expect("it has an id"));
        desk.env.nietz(["check", "--as", "debug:sessions", &path]).go().exits(0);
        let resumed = desk.env.resume().stdin("/solved the key\n\nread the log first\n").go();
        assert_eq!(resumed.result()["questionsToRootCause"], 2);
    }
}

#[test]
fn a_model_that_fails_leaves_a_saved_session_that_goes_on_later() {
    let broken = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let state = broken.clone();
    let server = ModelServer::start(move |request| {
        let fails = state.load(std::sync::atomic::Ordering::SeqCst) && request.prompt().contains("the key is old");
        if fails { Response::error(500, "out of order") } else { Response::text(usual(request)) }
    });
    let desk = Desk { env: Env::with(&server), server };
    let ended = desk.call([PROBLEM]).stdin("the key is old\n").go();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert_eq!(desk.saved()["transcript"][0]["response"], "the key is old");
    broken.store(false, std::sync::atomic::Ordering::SeqCst);
    let resumed = desk.env.resume().stdin("solved\n\n\n").go();
    assert_eq!(resumed.result()["outcome"], "solved");
    assert_eq!(desk.saved()["questionsToRootCause"], 2);
}

#[test]
fn nobody_to_answer_is_waiting_and_not_giving_up() {
    let desk = Desk::new();
    let ended = desk.session(&["a"]);
    assert_eq!(ended.code, Some(7), "{ended:?}");
    let resumed = desk.env.resume().stdin("found it\n\nlook\n").go();
    assert_eq!(resumed.result()["questionsToRootCause"], 2);
}

#[test]
fn a_session_without_a_problem_asks_for_it_and_an_empty_one_is_refused() {
    let desk = Desk::new();
    desk.talk([], &["it is slow", "exit", ""]).exits(0);
    assert_eq!(desk.saved()["problemDescription"], "it is slow");
    assert_eq!(Desk::new().talk(["  "], &[]).code, Some(2));
}

#[test]
fn in_french_all_that_is_said_is_french() {
    let desk = Desk::with(|what, _| (what == For::Question).then(|| "Que montre le journal ?".to_owned()));
    let lines = ["dis-moi la solution", "j'abandonne", "je regarde", "trouvé", "regarder la clé"];
    let ended = desk.talk(["le cache est périmé", "--lang", "fr"], &lines).exits(0);
    says(
        &ended,
        &[
            "[Tour 1]",
            "Tu as demandé la réponse",
            "[Perche",
            "Session terminée — 4 questions",
            "Profil de progression",
            "Vérifie ses suppositions",
        ],
    );
    for english in ["Turn", "Session Complete", "Growth", "You asked", "Scored", "saved"] {
        assert!(!said(&ended).contains(english), "{english:?} in:\n{}", said(&ended));
    }
    assert!(desk.asked(For::Question).iter().all(|request| request.system().contains("Write in French")));
    // So is what nietz itself says of the end.
    let flow = concat!(env!("CARGO_MANIFEST_DIR"), "/flows/debug.lua");
    let piped = Desk::new();
    let ended =
        piped.env.nietz(["run", flow, PROBLEM, "--lang", "fr", "--answers", "-"]).stdin("quitter\n\n").go().exits(0);
    assert!(ended.stderr.contains("terminé en") && !ended.stderr.contains("done in"), "{}", ended.stderr);
    // So are help, and yes and no.
    let piped = Desk::new();
    let lines = "/help\nla clé est vieille\n/résolu la clé n'a pas de version\noui\n\n";
    let ended = piped.env.nietz(["run", flow, PROBLEM, "--lang", "fr", "--answers", "-"]).stdin(lines).go().exits(0);
    for french in ["Tout texte est une réponse, sauf ces commandes", "tout ce que tu as vu ? (O/n)", "(Résolu)"] {
        assert!(ended.stdout.contains(french), "{french:?} in {}", ended.stdout);
    }
}

/// A past failure is a question, and never the fix that it had.
#[test]
fn the_memory_of_other_sessions_asks_and_can_be_switched_off() {
    let (path, text) = crate::debug_memory::asked::file(1, "2026-01-05", "passed", "TypeError", "src/price.py", None);
    let desk = Desk::new().file(&path, &text).file("src/price.py", "price = None\n");
    let problem = "a TypeError in src/price.py after the deploy";
    let with = desk.call([problem]).stdin("exit\nread the log first\n").go().exits(0);
    let told = said(&with);
    assert!(told.contains("On 2026-01-05 a TypeError like this one, in src/price.py"), "{told}");
    assert!(!told.contains("check the value"), "{told}");
    for folder in [".nietz/runs", ".nietzschian"] {
        std::fs::remove_dir_all(desk.env.path(folder)).expect("it can be removed");
    }
    let without = desk.call([problem, "--no-memory"]).stdin("exit\nread the log first\n").go().exits(0);
    assert!(!said(&without).contains("2026-01-05"));
}
