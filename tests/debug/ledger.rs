//! The promise: what is known of the bug is kept in the developer's own words, the next question follows from it, and who gets no
//! further is helped by steps, without a cause and without a fix.

use serde_json::{Value, json};

use super::desk::{Desk, For, PROBLEM, response, said, says};
use crate::support::git::init;
use crate::support::model_server::Request;

/// A desk whose model reads responses so: by a part of the response, what it says of it.
fn reading(script: Vec<(&'static str, Value)>) -> Desk {
    Desk::with(move |what, request| {
        let heard = response(request);
        (what == For::Tags).then(|| {
            let found = script.iter().find(|(part, _)| heard.contains(part));
            found.map_or_else(|| json!({"tags": []}), |(_, found)| found.clone()).to_string()
        })
    })
}

fn believed(quote: &str) -> Value {
    json!({"what": "believed", "quote": quote})
}

fn seen(quote: &str) -> Value {
    json!({"what": "seen", "quote": quote})
}

/// The notes that the last message of a request has for the model.
fn notes(request: &Request) -> Vec<String> {
    let plain = request.prompt();
    plain.lines().filter(|line| line.starts_with('[')).map(str::to_owned).collect()
}

/// The notes of all questions, one line for each.
fn all_notes(desk: &Desk) -> String {
    let all = desk.asked(For::Question);
    all.iter().map(|request| notes(request).join(" ")).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_was_seen_believed_and_ruled_out_is_kept_in_the_developers_words_alone() {
    let desk = reading(vec![
        (
            "every deploy",
            json!({"tags": ["assumed-without-checking"], "entries": [
                believed("the cache is emptied by every deploy"),
                seen("return cache[sku]"),
                // Nobody has said this: it is the model's own guess at the cause.
                believed("the key has no version"),
                seen("stale prices"),
            ]}),
        ),
        (
            "no line",
            json!({"tags": ["checked-logs"], "entries": [seen("the log has  NO line about it")],
                   "moved": [{"id": "k1", "to": "contradicted", "quote": "no line about it"}]}),
        ),
        (
            "primary",
            json!({"tags": ["narrowed-scope"], "entries": [
                {"what": "ruled_out", "quote": "it is not the replica"}, believed("the ttl is an hour")],
                   "moved": [{"id": "k9", "to": "seen", "quote": "the ttl is an hour"},
                             {"id": "k1", "to": "ruled_out", "quote": "nobody said this"}],
                   "apart": [{"one": "k1", "other": "the ttl is an hour"}, {"one": "k1", "other": "k1"}]}),
        ),
        ("not emptied", json!({"tags": [], "moved": [{"id": "k1", "to": "ruled_out", "quote": "It is not emptied"}]})),
    ])
    .file("src/price.py", "def load(sku):\n    return cache[sku]\n");
    let lines = [
        "I think the cache is emptied by every deploy, see src/price.py",
        "hm, the log has no line about it",
        "it is not the replica, the primary says the same; the ttl is an hour",
        "It is not emptied, redis says so",
        "exit",
        "",
    ];
    desk.session(&lines).exits(0);
    insta::assert_snapshot!(serde_json::to_string_pretty(&desk.saved()["nietz"]["ledger"]).expect("it is JSON"), @r#"
    {
      "seen": [
        {
          "id": "k2",
          "turn": 1,
          "quote": "return cache[sku]",
          "evidence": "src/price.py:2"
        },
        {
          "id": "k3",
          "turn": 0,
          "quote": "stale prices"
        },
        {
          "id": "k4",
          "turn": 2,
          "quote": "the log has NO line about it"
        }
      ],
      "believed": [
        {
          "id": "k6",
          "turn": 3,
          "quote": "the ttl is an hour",
          "weak": "unchecked",
          "asked": 1
        }
      ],
      "ruled_out": [
        {
          "id": "k5",
          "turn": 3,
          "quote": "it is not the replica"
        },
        {
          "id": "k1",
          "turn": 1,
          "quote": "the cache is emptied by every deploy",
          "by": "It is not emptied",
          "moved": 4,
          "asked": 2
        }
      ],
      "open": [],
      "dropped": 4,
      "last": 7
    }
    "#);
}

#[test]
fn the_next_question_goes_for_the_belief_on_which_most_rests_then_for_what_is_contradicted_then_for_two_apart() {
    let desk = reading(vec![
        ("the cache is new", json!({"tags": [], "entries": [believed("the cache is new")]})),
        (
            "so the worker ran",
            json!({"tags": [], "entries": [{"what": "believed", "quote": "so the worker ran", "rests_on": []},
                                           {"what": "believed", "quote": "the key changed", "rests_on": ["so the worker ran"]}]}),
        ),
        (
            "an old pid",
            json!({"tags": [], "entries": [seen("an old pid")],
                              "moved": [{"id": "k2", "to": "contradicted", "quote": "an old pid"}]}),
        ),
        (
            "I restarted it",
            json!({"tags": [], "moved": [{"id": "k2", "to": "ruled_out", "quote": "I restarted it"}],
                                  "apart": [{"one": "k1", "other": "k3"}]}),
        ),
    ]);
    let lines = [
        "the cache is new",
        "so the worker ran, the key changed",
        "ps shows an old pid",
        "I restarted it",
        "hm",
        "exit",
        "",
    ];
    desk.session(&lines).exits(0);
    insta::assert_snapshot!(all_notes(&desk), @"
    [Open with the one question whose answer would narrow the field most.]

    [Not checked: “the cache is new”. Unless just settled, ask what they would see if it were false.]
    [Not checked: “so the worker ran”. Unless just settled, ask what they would see if it were false.] [No progress: remind them, within your question, of what they have said and not looked at.]
    [They believe “so the worker ran”, and “an old pid” speaks against it. Unless just settled, ask how both can be.]
    [Not both can hold: “the cache is new” and “the key changed”. Unless just settled, ask for the one observation that tells which.]
    ");
}

#[test]
fn turns_without_progress_climb_the_ladder_of_hints_and_progress_leaves_it() {
    let desk = reading(vec![
        ("I believe", json!({"tags": [], "entries": [believed("I believe in src/price.py:2")]})),
        ("the key is old", json!({"tags": [], "entries": [seen("the key is old")]})),
    ])
    .file("src/price.py", "def load(sku):\n    return cache[sku]\n");
    let lines =
        ["I believe in src/price.py:2", "hm", "so", "well", "yes", "perhaps", "the key is old", "and so", "exit", ""];
    desk.session(&lines).exits(0);
    let of_hints = |line: &str| {
        line.split_inclusive(']').find(|note| note.contains("No progress")).unwrap_or("-").trim().to_owned()
    };
    let steps: Vec<String> = all_notes(&desk).lines().map(of_hints).collect();
    insta::assert_snapshot!(steps.join("\n"), @"
    -
    -
    -
    [No progress: remind them, within your question, of what they have said and not looked at.]
    [No progress: point at one line or claim of their own, and ask about that alone.]
    [No progress: name where to look, a file, function or log of theirs such as src/price.py:2, src/price.py, and not what is wrong there.]
    [No progress: step back, and ask what they know of the general mechanism that their words touch, apart from their bug.]
    [No progress: step back, and ask what they know of the general mechanism that their words touch, apart from their bug.]
    ");
}

#[test]
fn who_does_not_know_for_the_third_time_gets_a_hint_at_once() {
    let desk = reading(vec![("the key", json!({"tags": [], "entries": [seen("the key is old")]}))]);
    let lines = ["I don't know", "the key is old", "no idea", "I don't know", "exit", ""];
    desk.session(&lines).exits(0);
    let notes = all_notes(&desk);
    assert!(notes.lines().all(|line| !line.contains("No progress")), "progress counts anew:\n{notes}");
    let desk = reading(vec![]);
    desk.session(&["I don't know", "no idea", "je ne sais pas", "exit", ""]).exits(0);
    let notes = all_notes(&desk);
    let hinted: Vec<bool> = notes.lines().map(|line| line.contains("No progress")).collect();
    assert_eq!(hinted, [false, false, false, true], "{notes}");
}

#[test]
fn three_turns_with_progress_bring_back_the_milder_voice_and_none_below_the_first() {
    let answers = ["a is 1", "b is 2", "c is 3", "d is 4", "e is 5", "f is 6", "g is 7", "h is 8"];
    let mut script: Vec<(&'static str, Value)> =
        answers.iter().map(|line| (*line, json!({"tags": ["checked-logs"], "entries": [seen(line)]}))).collect();
    script.push(("tell me", json!({"tags": ["asked-for-answer"]})));
    let desk = reading(script);
    let mut lines = vec!["just tell me the answer"];
    lines.extend(answers);
    lines.extend(["exit", ""]);
    let ended = desk.talk([PROBLEM, "--intensity", "socrates"], &lines).exits(0);
    says(&ended, &["Three answers that led on: Nietzsche makes room for Socrates."]);
    assert_eq!(said(&ended).matches("makes room").count(), 2, "never below where it began:\n{}", said(&ended));
    let voices: Vec<Value> = ended.of_type("said").iter().filter_map(|event| event.get("from").cloned()).collect();
    assert_eq!(voices[..5], ["Socrates", "Nietzsche", "Nietzsche", "Nietzsche", "Nietzsche"]);
    assert!(voices[5..].iter().all(|voice| voice == "Socrates"), "{voices:?}");
    assert_eq!(desk.saved()["nietz"]["escalatedTo"], "nietzsche", "the hardest that it came to");
}

#[test]
fn a_plea_that_the_reading_does_not_find_is_taken_back() {
    let desk = reading(vec![]);
    let lines = ["just tell me the answer, says the log, and no more", "hm", "exit", ""];
    let ended = desk.talk([PROBLEM, "--intensity", "socrates"], &lines).exits(0);
    says(&ended, &["Socrates makes room for Nietzsche", "That was no plea for the answer: Socrates goes on."]);
    let session = desk.saved();
    assert_eq!((&session["behaviorTags"], &session["transcript"][0]["behaviorTags"]), (&json!([]), &json!([])));
    assert_eq!(session["nietz"]["escalatedTo"], Value::Null);
    let voices: Vec<Value> = ended.of_type("said").iter().filter_map(|event| event.get("from").cloned()).collect();
    assert_eq!(voices, ["Socrates", "Nietzsche", "Socrates"]);
}

#[test]
fn scores_name_their_turns_and_the_tags_are_shown_with_theirs() {
    let desk = Desk::with(|what, request| match what {
        For::Scores => {
            let score = |turns: &[u8], reason: &str| json!({"turns": turns, "reason": reason, "score": 6});
            Some(
                json!({"assumptionChecking": score(&[2, 9, 2], "You doubted the deploy."),
                       "evidenceGathering": score(&[1, 2], "You read the log first."),
                       "rootCauseSpeed": score(&[], "Each answer led on.")})
                .to_string(),
            )
        }
        For::Tags if response(request).contains("the log") => {
            Some(json!({"tags": ["checked-logs", "narrowed-scope"]}).to_string())
        }
        For::Tags => Some(json!({"tags": ["checked-logs"]}).to_string()),
        _ => None,
    });
    let ended = desk.session(&["the log says noon", "redis says so", "/solved the ttl", ""]).exits(0);
    let told = said(&ended);
    let card =
        told.split("Scored by the model").nth(1).and_then(|rest| rest.split("**Growth").next()).unwrap_or_default();
    insta::assert_snapshot!(card, @"
     from the whole transcript.

    - Checks assumptions: You doubted the deploy. (turn 2)
    - Gathers evidence: You read the log first. (turns 1, 2)
    - Narrows down: Each answer led on. (no turn named)
    - Seen in your answers: looked at what there is (turns 1, 2, 3); narrowed it down (turn 1)
    ");
    let session = desk.saved();
    assert_eq!(session["skillScores"], json!({"assumptionChecking": 6, "evidenceGathering": 6, "rootCauseSpeed": 6}));
    assert_eq!(
        session["nietz"]["scores"]["assumptionChecking"]["turns"],
        json!([2]),
        "turns that there are, each once"
    );
}

#[test]
fn a_reason_that_gives_the_cause_away_is_not_shown_where_it_was_not_found() {
    let scores = || {
        let score = |reason: &str| json!({"turns": [1], "reason": reason, "score": 4});
        json!({"assumptionChecking": score("You took your first idea for a fact."),
               "evidenceGathering": score("Set the ttl to 60 in the cache client."),
               "rootCauseSpeed": score("You came nearer with each answer.")})
    };
    let shown = |last: &str| {
        let desk = Desk::with(move |what, _| (what == For::Scores).then(|| scores().to_string()));
        let told = said(&desk.session(&["the key is old", last, ""]).exits(0));
        ["You took your first idea", "Set the ttl", "You came nearer"].map(|reason| told.contains(reason))
    };
    assert_eq!(shown("exit"), [true, false, true]);
    assert_eq!(shown("solved"), [true, true, true]);
}

#[test]
fn the_last_response_is_read_like_any_other() {
    let all_tags = |desk: &Desk| -> Vec<Value> {
        let session = desk.saved();
        session["transcript"].as_array().expect("turns").iter().map(|turn| turn["behaviorTags"].clone()).collect()
    };
    let solved = reading(vec![("old keys", json!({"tags": ["narrowed-scope"], "entries": [seen("old keys")]}))]);
    solved.session(&["hm", "/solved old keys are never written again", ""]).exits(0);
    assert_eq!(all_tags(&solved), [json!([]), json!(["narrowed-scope"])]);
    assert_eq!(solved.saved()["nietz"]["ledger"]["seen"][0]["quote"], "old keys");
    let left = reading(vec![("give up", json!({"tags": ["went-broad-unnecessarily"]}))]);
    left.session(&["I give up", "hm", "I give up", ""]).exits(0);
    let broad = json!(["went-broad-unnecessarily"]);
    assert_eq!(all_tags(&left), [broad.clone(), json!([]), broad]);
    let refuted = reading(vec![("surely", json!({"tags": ["guessed-without-evidence"]}))]);
    init(&refuted.env.workspace());
    refuted.talk([PROBLEM, "--verify", "exit 1"], &["/solved surely the cache", "no", "exit", ""]).exits(0);
    assert_eq!(all_tags(&refuted), [json!(["guessed-without-evidence"]), json!([])]);
    // Where the model is gone by then, the session ends all the same.
    let gone = Desk::with(|what, _| (what == For::Tags).then(|| "nothing".to_owned()));
    assert_eq!(gone.session(&["solved", ""]).exits(0).result()["outcome"], "solved");
}

#[test]
fn a_ledger_stays_small_and_says_what_it_has_folded() {
    let desk = Desk::with(|what, request| {
        (what == For::Tags).then(|| json!({"tags": [], "entries": [seen(response(request).trim())]}).to_string())
    });
    let lines: Vec<String> = (1..=11).map(|number| format!("value {number} is right")).collect();
    let mut lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    lines.extend(["exit", ""]);
    desk.session(&lines).exits(0);
    let ledger = &desk.saved()["nietz"]["ledger"];
    assert_eq!(ledger["seen"].as_array().map(Vec::len), Some(8));
    assert_eq!(ledger["folded"], json!({"count": 3, "line": "value 1 is right; value 2 is right; value 3 is right"}));
}

#[test]
fn a_response_costs_three_calls_and_a_model_that_gives_tags_alone_keeps_no_ledger() {
    let desk = Desk::new();
    desk.session(&["a", "b", "c", "exit", ""]).exits(0);
    // A question and its check before, question, check and reading for each response, the scores.
    assert_eq!(desk.server.calls(), 2 + 3 * 3 + 1);
    assert_eq!(desk.saved()["nietz"]["ledger"], Value::Null);
    let notes = all_notes(&desk);
    assert!(!notes.contains("They believe") && !notes.contains("No progress"), "{notes}");
}

#[test]
fn a_session_that_is_left_and_taken_up_again_knows_what_it_knew() {
    let script = || {
        vec![
            ("the cache", json!({"tags": [], "entries": [believed("the cache is new")]})),
            ("it is not", json!({"tags": [], "moved": [{"id": "k1", "to": "ruled_out", "quote": "it is not"}]})),
        ]
    };
    let whole = reading(script());
    whole.session(&["the cache is new", "hm", "it is not", "exit", ""]).exits(0);
    let left = reading(script());
    left.call([PROBLEM]).stdin("the cache is new\nhm\n").go().exits(7);
    left.env.resume().stdin("it is not\nexit\n\n").go().exits(0);
    assert_eq!(left.saved()["nietz"]["ledger"], whole.saved()["nietz"]["ledger"]);
    assert_eq!(whole.saved()["nietz"]["ledger"]["ruled_out"][0]["by"], "it is not");
}
