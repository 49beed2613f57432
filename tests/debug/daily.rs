//! What is typed in place of an answer, day by day: it costs nothing that it need not cost, and nothing that was typed by mistake
//! stays.

use serde_json::{Value, json};

use super::desk::{Desk, For, PROBLEM, said, says};
use super::growth::{id, session};

/// The responses that a session keeps.
fn responses(session: &Value) -> Vec<String> {
    let turns = session["transcript"].as_array().expect("turns");
    turns.iter().map(|turn| turn["response"].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn help_recap_and_hint_typed_alone_are_commands_and_no_answers() {
    for line in ["help", "/help", "recap", "/recap", "hint", "/hint", "indice", "undo", "/undo", "annuler"] {
        let desk = Desk::new();
        desk.session(&[line, "exit", ""]).exits(0);
        let session = desk.saved();
        assert_eq!(responses(&session), [""], "{line}: the question stays open");
        assert!(desk.asked(For::Tags).is_empty(), "{line} is not read as an answer");
        assert_eq!(desk.asked(For::Question).len(), 1, "{line} costs nothing");
    }
    for line in ["give up", "give up?", "/give up"] {
        let desk = Desk::new();
        says(&desk.session(&[line, "exit", ""]).exits(0), &["[Lifeline"]);
    }
    for line in ["the hint is in the log", "help me to read it", "we recap daily", "undo of the deploy changed nothing"]
    {
        let desk = Desk::new();
        desk.session(&[line, "exit", ""]).exits(0);
        assert_eq!(responses(&desk.saved()), [line, ""], "an answer that begins like a command");
    }
}

#[test]
fn a_recap_tells_the_problem_the_turns_and_the_open_question() {
    let desk = Desk::new();
    let ended = desk.session(&["the key is old", "written\nbefore the deploy", "recap", "exit", ""]).exits(0);
    let told = said(&ended);
    let from = told.find("**The problem:**").expect("it is told");
    let recap: Vec<&str> = told[from..].lines().take(6).collect();
    insta::assert_snapshot!(recap.join("\n"), @"
    **The problem:** the cache returns stale prices after a deploy

    **[Turn 4]** What did the log show at step 4?

    **Before that:**
    ");
}

#[test]
fn an_answer_can_be_taken_back_with_all_that_came_of_it() {
    let desk = Desk::new();
    let lines = ["the key is old", "just tell me the answer", "/undo", "it is written once", "exit", ""];
    let ended = desk.talk([PROBLEM, "--intensity", "socrates"], &lines).exits(0);
    says(&ended, &["Your answer to question 2 is taken back", "is paid for"]);
    let session = desk.saved();
    assert_eq!(responses(&session), ["the key is old", "it is written once", ""]);
    assert!(!session.to_string().contains("asked-for-answer"), "its tag is gone: {session}");
    assert_eq!(session["nietz"]["escalatedTo"], Value::Null, "and so is what it raised");
    let speakers: Vec<Value> = ended.of_type("said").iter().filter_map(|event| event.get("from").cloned()).collect();
    assert_eq!(speakers, ["Socrates", "Socrates", "Nietzsche", "Socrates", "Socrates"]);
    assert!(!desk.asked(For::Scores)[0].prompt().contains("just tell me"), "and nobody scores it");
    // A lifeline that was taken back is there again, several answers can be taken back, and then there is none.
    let desk = Desk::new();
    let ended = desk.session(&["a", "I give up", "undo", "undo", "undo", "exit", ""]).exits(0);
    says(&ended, &["There is no answer to take back."]);
    let session = desk.saved();
    assert_eq!((responses(&session), &session["nietz"]["lifelineUsed"]), (vec![String::new()], &Value::Null));
}

#[test]
fn an_answer_that_was_taken_back_stays_so_when_the_run_goes_on() {
    let desk = Desk::new();
    assert_eq!(desk.session(&["the key is old", "undo"]).code, Some(7));
    desk.env.resume().stdin("it is written once\nexit\n\n").go().exits(0);
    assert_eq!(responses(&desk.saved()), ["it is written once", ""]);
}

#[test]
fn a_sentence_that_says_it_is_solved_is_asked_about_before_anything_is_paid() {
    for line in [
        "fixed it",
        "I found the bug: it is the unit",
        "found it: the key has no version",
        "ok, I fixed it by versioning the key",
        "that fixed it",
        "the problem is solved now",
        "j'ai trouvé le bug : la clé n'a pas de version",
        "c'est corrigé.",
    ] {
        let desk = Desk::new();
        let ended = desk.session(&["I look", line, "y", "", "look at the key first"]).exits(0);
        assert_eq!(ended.asked(), ["answer", "answer", "count-as-solved", "explains-all", "reflection"], "{line}");
        assert_eq!(ended.result()["outcome"], "solved", "{line}");
        assert_eq!(responses(&desk.saved()), ["I look", line], "it is kept as the explanation");
        assert_eq!(desk.asked(For::Question).len(), 2, "{line}: no question was paid for");
    }
    // A no makes an answer of it, and is not asked for again.
    let desk = Desk::new();
    let ended = desk.session(&["fixed it", "n", "fixed it", "exit", ""]).exits(0);
    assert_eq!(responses(&desk.saved()), ["fixed it", "fixed it", ""]);
    assert_eq!(ended.asked(), ["answer", "count-as-solved", "answer", "answer", "reflection"]);
    // None of these says it.
    let lines = [
        "found it hard to reproduce",
        "I found it hard to reproduce",
        "is it solved?",
        "I solved nothing",
        "I thought I fixed it yesterday",
        "it is not fixed",
        "if I fixed it, the log would be empty",
        "how is it fixed elsewhere",
        "je n'ai pas trouvé le bug",
        "exit",
        "",
    ];
    let asked = Desk::new().session(&lines).exits(0).asked();
    assert_eq!(asked.iter().filter(|id| *id == "answer").count(), lines.len() - 1, "{asked:?}");
    assert_eq!(asked.len(), lines.len(), "{asked:?}");
}

#[test]
fn before_the_scores_the_cause_has_to_explain_all_that_was_seen_and_that_is_asked_once() {
    let desk = Desk::new();
    let lines =
        "the key is old\n/solved the key has no version\nn\nthe log has two writers\nsolved\nlook at the writers\n";
    let ended = desk.call([PROBLEM]).stdin(lines).go().exits(0);
    assert_eq!(ended.asked(), ["answer", "answer", "explains-all", "answer", "answer", "reflection"]);
    let session = desk.saved();
    assert_eq!(responses(&session), ["the key is old", "the key has no version", "the log has two writers", "solved"]);
    let asked = desk.asked(For::Question);
    assert!(asked[2].prompt().contains("does not explain all that they saw"), "{}", asked[2].prompt());
    assert_eq!(desk.asked(For::Scores).len(), 1, "scored at the end alone");
    // Who said nothing has nothing to explain.
    assert_eq!(Desk::new().session(&["solved", ""]).exits(0).asked(), ["answer", "reflection"]);
}

#[test]
fn an_empty_line_is_no_answer_and_is_not_said_to_be_one() {
    let desk = Desk::new();
    let flow = concat!(env!("CARGO_MANIFEST_DIR"), "/flows/debug.lua");
    let ended =
        desk.env.nietz(["run", flow, PROBLEM, "--answers", "-"]).stdin("\nthe key is old\nexit\n\n").go().exits(0);
    assert!(!ended.stdout.contains("Your answer [↵]") && !ended.stdout.contains("()"), "{}", ended.stdout);
    assert_eq!(responses(&desk.saved()), ["the key is old", ""]);
}

/// The screen may be another one, so that nothing that was said before is on it.
#[test]
fn who_comes_back_sees_the_problem_the_turns_and_the_open_question() {
    let desk = Desk::new();
    assert_eq!(desk.session(&["the key is old", "it is written once"]).code, Some(7));
    let resumed = desk.env.resume().stdin("exit\n\n").go().exits(0);
    let first = resumed.of_type("said")[0]["markdown"].as_str().expect("a text").to_owned();
    insta::assert_snapshot!(first, @"
    **The problem:** the cache returns stale prices after a deploy

    **[Turn 3]** What did the log show at step 3?

    **Before that:**

    - **1.** What did the log show at step 1? → the key is old
    - **2.** What did the log show at step 2? → it is written once
    ");
    assert_eq!(said(&resumed).matches("[Turn 3]").count(), 1, "the open question is said once");
}

#[test]
fn a_session_that_is_open_is_counted_apart_and_one_without_an_answer_has_no_scores() {
    let desk = Desk::new();
    for (number, outcome, state, score) in [
        (1, "solved", "ended", 8.0),
        (2, "abandoned", "open", 1.0),
        (3, "abandoned", "unscored", 2.0),
        (4, "solved", "ended", 6.0),
    ] {
        let mut document = session(number, &format!("2026-01-0{number}T10:00:00Z"), outcome, score);
        document["nietz"] = json!({"version": 1, "state": state, "scoredBy": "tags"});
        desk.env.write(&format!(".nietzschian/sessions/{}.json", id(number)), document.to_string());
    }
    let ended = desk.talk(["profile"], &[]).exits(0);
    says(&ended, &["3 sessions total | 2 solved | 1 abandoned | 1 open | 1 without an answer"]);
    let found = ended.result();
    assert_eq!(
        (&found["totalSessions"], &found["openCount"], &found["averageScores"]["rootCauseSpeed"]),
        (&json!(3), &json!(1), &json!(7))
    );
    says(
        &desk.talk(["profile", "--lang", "fr"], &[]).exits(0),
        &["3 sessions en tout | 2 résolues | 1 abandonnée | 1 ouverte"],
    );
}

#[test]
fn a_session_that_ends_without_an_answer_says_so_and_pays_for_no_score() {
    for line in ["solved", "exit"] {
        let desk = Desk::new();
        let ended = desk.session(&[line, ""]).exits(0);
        says(&ended, &["Not scored: it ended without an answer.", "1 question"]);
        let session = desk.saved();
        assert_eq!(
            (&session["nietz"]["state"], &session["skillScores"]["rootCauseSpeed"]),
            (&json!("unscored"), &json!(5))
        );
        assert!(desk.asked(For::Scores).is_empty());
    }
    // An explanation is an answer.
    let desk = Desk::new();
    desk.session(&["/solved the key has no version", ""]).exits(0);
    assert_eq!(desk.saved()["nietz"]["state"], "ended");
    // While it goes on it is open, and counted nowhere.
    let desk = Desk::new();
    assert_eq!(desk.session(&["a"]).code, Some(7));
    assert_eq!(desk.saved()["nietz"]["state"], "open");
    says(&desk.call(["profile"]).var("NIETZ_RUN", "r2").go().exits(0), &["0 sessions total", "1 open"]);
}
