//! Never an answer: what a model says is read by rules and by a verifier before anybody sees it. The rules are
//! measured on labelled replies; the README of the flow says which of them were looked at.

use serde_json::{Value, json};

use super::desk::{Desk, For, PROBLEM, all_of, said, says};

/// A reply that a hard rule refuses: no verifier needs to read it.
const LEAK: &str = "Clear the key on deploy. Does that help?";

/// The questions of a session that ends at once.
fn first_question(desk: &Desk) -> String {
    let ended = desk.session(&["exit", ""]).exits(0);
    let session = desk.saved();
    let question = session["transcript"][0]["question"].as_str().expect("a text").to_owned();
    says(&ended, &[&question]);
    question
}

#[test]
fn a_reply_that_gives_the_answer_away_is_never_shown_and_asked_for_again() {
    let desk =
        Desk::asking(&[LEAK, "Set a TTL on the key, say an hour. Does that help?", "When was that key last written?"]);
    let ended = desk.session(&["exit", ""]).exits(0);
    assert_eq!(desk.saved()["transcript"][0]["question"], "When was that key last written?");
    for never in ["Clear the key", "TTL"] {
        assert!(!ended.stdout.contains(never), "{never} was shown");
        assert!(!desk.saved().to_string().contains(never), "{never} was kept");
    }
    let requests = desk.asked(For::Question);
    assert_eq!(requests.len(), 3);
    assert!(requests[1].prompt().contains("it tells what to change (\"Clear the key on deploy.\")"));
    assert!(requests[2].prompt().contains("because it tells what to change (\"Set a TTL"));
    assert!(all_of(&requests[2]).contains(LEAK), "the model sees what it said");
}

#[test]
fn after_two_re_prompts_the_voice_asks_a_question_of_its_own() {
    let desk = Desk::asking(&[LEAK]);
    let ended = desk.session(&["I look", "exit", ""]).exits(0);
    assert_eq!(desk.asked(For::Question).len(), 6, "twice three tries");
    let file = include_str!("../../personas/intensities/nietzsche.md");
    let session = desk.saved();
    let question = |turn: usize| session["transcript"][turn]["question"].as_str().expect("a text").to_owned();
    for turn in [0, 1] {
        assert!(file.contains(&format!("    - \"{}\"\n", question(turn))), "{}", question(turn));
    }
    assert_ne!(question(0), question(1), "the same one is not asked twice");
    assert!(!said(&ended).contains("Clear the key"));
    let french = Desk::asking(&[LEAK]);
    french.talk(["le cache est périmé", "--lang", "fr"], &["quitter", ""]).exits(0);
    let asked = french.saved()["transcript"][0]["question"].as_str().expect("a text").to_owned();
    assert!(file.contains(&asked) && asked.contains(" ?"), "{asked}");
}

#[test]
fn the_verifier_catches_what_the_rules_let_through_and_can_be_switched_off() {
    const SLY: &str = "What do sixty seconds have to do with it?";
    let desk = Desk::with(|what, request| match what {
        For::Question if !request.prompt().contains("not shown") => Some(SLY.to_owned()),
        For::Verdict if request.prompt().contains(SLY) => {
            Some(json!({"evidence": "sixty seconds", "leaks": true, "reason": "It names the lifetime."}).to_string())
        }
        _ => None,
    });
    assert_eq!(first_question(&desk), "What did the log show at step 2?");
    assert!(desk.asked(For::Question)[1].prompt().contains("because it names the lifetime."));
    assert!(desk.asked(For::Verdict)[0].prompt().contains(PROBLEM));
    let off = Desk::asking(&[SLY]);
    off.talk([PROBLEM, "--no-verifier"], &["exit", ""]).exits(0);
    assert_eq!(off.saved()["transcript"][0]["question"], SLY);
    assert_eq!(off.asked(For::Verdict).len(), 0);
}

#[test]
fn a_question_is_not_asked_twice_in_the_same_words() {
    let desk = Desk::asking(&["What does the log say?", "What  does the LOG say?", "Which key is old?"]);
    desk.talk([PROBLEM], &["nothing", "exit", ""]).exits(0);
    assert_eq!(desk.saved()["transcript"][1]["question"], "Which key is old?");
    assert!(desk.asked(For::Question)[2].prompt().contains("you have asked it before"));
    // Where the model has no other, the voice has one.
    let stubborn = Desk::asking(&["What does the log say?"]);
    stubborn.talk([PROBLEM], &["nothing", "exit", ""]).exits(0);
    assert_ne!(stubborn.saved()["transcript"][1]["question"], "What does the log say?");
    assert_eq!(stubborn.asked(For::Question).len(), 1 + 3);
}

#[test]
fn a_small_model_on_this_machine_is_no_verifier_and_that_is_said() {
    let line = json!({"id": "a", "lang": "en", "context": PROBLEM, "reply": "Which key is old?"});
    let desk = Desk::new().file("replies.jsonl", &format!("{line}\n"));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/flows/debug.lua");
    let arguments = ["run", path, "--model", "local/qwen2.5-coder-1.5b", "judge", "replies.jsonl"];
    insta::assert_snapshot!(desk.env.nietz(arguments).go().exits(0).stdout, @r#"{"id":"a","reason":"by the rules alone: a small model on this machine cannot be a verifier","verdict":"ok"}"#);
}

#[test]
fn what_the_developer_said_and_wrote_is_no_leak() {
    let desk = Desk::asking(&[
        "You wrote `cache.set(key, price)`. How long does that value live?",
        "You say \"the fix is to clear the key\". What would have to be in the log then?",
    ])
    .file("price.py", "def load(key):\n    cache.set(key, price)\n    return price\n");
    let lines = ["the fix is to clear the key", "exit", ""];
    desk.talk(["stale prices, see price.py"], &lines).exits(0);
    assert_eq!(desk.asked(For::Question).len(), 2, "none was asked for again: {:#?}", desk.saved());
}

/// What each of them is stands in the README of the flow.
const REPLIES: [&str; 9] = [
    "seen.jsonl",
    "held.jsonl",
    "fresh.jsonl",
    "wild.jsonl",
    "last.jsonl",
    "own.jsonl",
    "own_later.jsonl",
    "strangers_open.jsonl",
    "strangers_aside.jsonl",
];

fn labelled(file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(format!("{}/tests/debug/replies/{file}", env!("CARGO_MANIFEST_DIR")));
    text.expect("it is there").lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect()
}

/// Runs `judge` on a file of replies and returns its result.
fn judged(file: &str) -> Value {
    let text = std::fs::read_to_string(format!("{}/tests/debug/replies/{file}", env!("CARGO_MANIFEST_DIR")));
    let desk = Desk::new().file("replies.jsonl", &text.expect("it is there"));
    let ended = desk.talk(["judge", "replies.jsonl", "--no-verifier"], &[]).exits(0);
    assert_eq!(desk.server.calls(), 0);
    ended.result()
}

#[test]
fn the_labelled_replies_are_enough_and_balanced() {
    let all: Vec<Value> =
        ["seen.jsonl", "held.jsonl", "fresh.jsonl", "wild.jsonl"].into_iter().flat_map(labelled).collect();
    assert!(all.len() >= 150, "{}", all.len());
    let mut ids: Vec<&str> = all.iter().filter_map(|one| one["id"].as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all.len(), "each has an id of its own");
    for label in ["leak", "ok"] {
        for lang in ["en", "fr"] {
            let count = all.iter().filter(|one| one["label"] == label && one["lang"] == lang).count();
            assert!(count >= 30, "{count} of {label} in {lang}");
        }
    }
}

/// What the README says of the rules holds: this fails where a change makes them worse than it states.
#[test]
fn the_rules_alone_are_as_good_as_the_readme_says() {
    let readme = include_str!("../../flows/debug/README.md");
    for file in REPLIES {
        let measured = &judged(file)["measured"];
        let percent = |name: &str| measured[name].as_f64().expect("a number") * 100.0;
        let (recall, precision, alarms) = (percent("recall"), percent("precision"), percent("falseAlarms"));
        if file != "strangers_aside.jsonl" {
            assert!(recall >= 80.0 && alarms <= 10.0, "{file}: {measured:#}");
        }
        let row = format!(
            "| `{file}` | {} | {recall:.1}% | {precision:.1}% | {alarms:.1}% |",
            measured["replies"].as_u64().expect("a count")
        );
        assert!(readme.contains(&row), "flows/debug/README.md does not say\n{row}");
    }
}

#[test]
fn judge_writes_a_verdict_for_each_line() {
    let lines = [
        json!({"id": "a", "lang": "en", "context": PROBLEM, "reply": LEAK}),
        json!({"id": 7, "lang": "en", "context": {"problem": PROBLEM}, "reply": "Which key is old?"}),
        json!({"id": "c", "lang": "fr", "context": PROBLEM, "reply": "Il faut vider la clé. Tu vois ?"}),
        json!({"id": "d", "lang": "en", "context": PROBLEM, "reply": "Interesting."}),
        json!({"id": "e", "lang": "en", "context": PROBLEM, "reply": "What rhymes with tea, tea, el?"}),
    ];
    let file: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let desk = Desk::with(|what, request| {
        (what == For::Verdict && request.prompt().contains("rhymes"))
            .then(|| json!({"evidence": "tea", "leaks": true, "reason": "It spells TTL."}).to_string())
    })
    .file("replies.jsonl", &file);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/flows/debug.lua");
    let model = ["--model", "openai/test"];
    let call = |more: &[&'static str]| {
        let _ = std::fs::remove_dir_all(desk.env.path(".nietz"));
        let arguments = ["run", path].into_iter().chain(model).chain(["judge", "replies.jsonl"]);
        desk.env.nietz(arguments.chain(more.iter().copied())).go().exits(0).stdout
    };
    insta::assert_snapshot!(call(&["--no-verifier"]), @r#"
    {"id":"a","reason":"it tells what to change: Clear the key on deploy.","rule":"order","verdict":"leak"}
    {"id":"7","verdict":"ok"}
    {"id":"c","reason":"it says what should be: Il faut vider la clé.","rule":"conseil","verdict":"leak"}
    {"id":"d","reason":"it asks nothing: Interesting.","rule":"no-question","verdict":"leak"}
    {"id":"e","verdict":"ok"}
    "#);
    let verified = call(&[]);
    assert!(
        verified.contains(r#"{"id":"e","reason":"It spells TTL.","rule":"verifier","verdict":"leak"}"#),
        "{verified}"
    );
    assert_eq!(desk.asked(For::Verdict).len(), 3, "what a hard rule has caught is not paid for");
    let broken = Desk::new().file("replies.jsonl", "{\"id\": 1, \"reply\": \"Why?\"}\n{\"id\": 2}\n");
    let ended = broken.talk(["judge", "replies.jsonl", "--no-verifier"], &[]);
    assert!(ended.stdout.contains("replies.jsonl:2: it needs id and reply"), "{ended:?}");
    assert_eq!(ended.code, Some(1));
}

/// A persona of one's own takes the place of a bundled voice, whether or not it knows what such a voice may have.
#[test]
fn a_voice_of_one_s_own_needs_nothing_but_a_prompt() {
    let voice = |front: &str| format!("---\nname: My Socrates\n{front}---\nYou ask.\n");
    let anybody_s: serde_json::Value =
        serde_yaml::from_str(include_str!("../../flows/debug/questions.yaml")).expect("it is YAML");
    for (front, lang) in [("", "en"), ("", "fr"), ("fallback: {de: [Was?]}\n", "en"), ("fallback:\n", "en")] {
        let desk = Desk::asking(&["What does the log say?"]).file("personas/socrates.md", &voice(front));
        desk.talk([PROBLEM, "--intensity", "socrates", "--lang", lang], &["nothing", "exit", ""]).exits(0);
        let asked = &desk.saved()["transcript"][1]["question"];
        assert!(anybody_s[lang].as_array().expect("questions").contains(asked), "{front}: {asked}");
    }
    let desk =
        Desk::asking(&["What does the log say?"]).file("personas/socrates.md", &voice("fallback: {en: [Who?]}\n"));
    desk.talk([PROBLEM, "--intensity", "socrates"], &["nothing", "exit", ""]).exits(0);
    assert_eq!(desk.saved()["transcript"][1]["question"], "Who?");
    for front in ["fallback: Who?\n", "fallback: [Who?]\n", "fallback: {en: []}\n", "fallback: {en: [3]}\n"] {
        let desk = Desk::new().file("personas/socrates.md", &voice(front));
        let ended = desk.session(&[]);
        let message = ended.ending()["failure"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains("personas/socrates.md: `fallback` is no list of questions"), "{front}: {ended:?}");
        assert_eq!(desk.server.calls(), 0, "{front}");
    }
}
