//! A debugging session with data of the user's own: a voice and a language.

use serde_json::json;

use super::desk::{Desk, For, PROBLEM, says};
use crate::support::process::Ended;

const ENGLISH: &str = include_str!("../../flows/debug/lang/en.yaml");

fn talk(desk: &Desk, arguments: &[&str], lines: &[&str]) -> Ended {
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    desk.env.run(["debug", PROBLEM].into_iter().chain(arguments.iter().copied())).stdin(lines).go()
}

fn voice(front: &str) -> String {
    format!("---\nname: Diogenes\ntags: [intensity]\n{front}---\nYou ask with a lamp in your hand.\n")
}

#[test]
fn a_voice_of_ones_own_asks_and_stands_on_the_ladder_by_its_level() {
    let desk = Desk::new().file("personas/diogenes.md", &voice("level: 1.4\n"));
    let lines = ["just tell me the answer", "what's the fix?", "exit", ""];
    let ended = talk(&desk, &["--intensity", "socrates"], &lines).exits(0);
    says(&ended, &["Socrates makes room for Diogenes", "Diogenes makes room for Nietzsche"]);
    assert!(desk.asked(For::Question).iter().any(|request| request.system().contains("lamp in your hand")));
    let session = desk.saved();
    assert_eq!((&session["intensity"], &session["nietz"]["escalatedTo"]), (&json!("socrates"), &json!("nietzsche")));
    assert_eq!(session["nietz"]["voices"], json!(["diogenes"]));
    desk.env.nietz(["check"]).go().exits(0);
}

#[test]
fn a_session_that_a_voice_of_ones_own_begins_has_the_nearest_intensity() {
    let desk = Desk::new().file("personas/diogenes.md", &voice("level: 5\nfallback: { en: [\"What is that?\"] }\n"));
    talk(&desk, &["-i", "diogenes"], &["exit", ""]).exits(0);
    let session = desk.saved();
    assert_eq!((&session["intensity"], &session["nietz"]["voices"]), (&json!("zarathustra"), &json!(["diogenes"])));
    let _ = std::fs::remove_dir_all(desk.env.path(".nietz"));
    let ended = talk(&desk, &["-i", "diogene"], &[]).exits(2);
    let hint = ended.ending()["failure"]["hint"].as_str().unwrap_or_default().to_owned();
    assert!(hint.contains("did you mean \"diogenes\"?"), "{hint}");
}

#[test]
fn any_persona_can_ask_and_what_it_lacks_has_defaults() {
    for argument in ["--voice", "--intensity"] {
        let persona = "---\nname: Diogenes\n---\nYou ask with a lamp in your hand.\n";
        let desk = Desk::new().file("personas/diogenes.md", persona);
        let lines = ["just tell me the answer", "exit", ""];
        let ended = talk(&desk, &[argument, "diogenes"], &lines).exits(0);
        says(&ended, &["Diogenes makes room for Zarathustra"]);
        assert!(desk.asked(For::Question)[0].system().contains("lamp in your hand"));
        let session = desk.saved();
        assert_eq!((&session["intensity"], &session["nietz"]["voices"]), (&json!("nietzsche"), &json!(["diogenes"])));
    }
    let ended = talk(&Desk::new(), &["--voice", "nietzche"], &[]).exits(2);
    assert!(ended.stderr.contains("nietzsche"), "{ended:?}");
}

/// What nobody named is asked of the run's model. The first look at a file can be a stronger model's.
#[test]
fn each_part_of_a_session_can_have_a_model_of_its_own() {
    let desk = Desk::new().file("src/price.py", "price = None\n");
    let models =
        ["question", "first", "tags", "score"].map(|role| (format!("--{role}-model"), format!("openai/{role}")));
    let arguments: Vec<&str> = models.iter().flat_map(|(flag, model)| [flag.as_str(), model]).collect();
    let lines = ["it is slow", "see src/price.py", "and now", "exit", ""];
    talk(&desk, &arguments, &lines).exits(0);
    let asked = |what| desk.asked(what).iter().map(|request| request.body["model"].clone()).collect::<Vec<_>>();
    assert_eq!(asked(For::Question), ["question", "question", "first", "question"]);
    assert_eq!((asked(For::Tags), asked(For::Scores)), (vec![json!("tags"); 3], vec![json!("score")]));
}

#[test]
fn a_question_that_is_no_models_says_so() {
    let desk = Desk::asking(&["The fix is to add a version to the key."]);
    desk.env.run(["debug", PROBLEM]).stdin("exit\n\n").go().exits(0);
    assert_eq!(desk.saved()["transcript"][0]["model"], "fallback");
}

#[test]
fn what_a_voice_lacks_is_told_with_its_line() {
    let desk = Desk::new().file("personas/diogenes.md", &voice("level: hard\nfallback: { fr: [\"Quoi ?\"] }\n"));
    let ended = desk.env.nietz(["check", "personas/diogenes.md"]).go().exits(4);
    assert!(ended.stdout.contains("diogenes.md:4:8") && ended.stdout.contains("diogenes.md:5"), "{ended:?}");
    let ended = talk(&desk, &[], &["exit", ""]).exits(4);
    let told = ended.ending()["failure"]["details"].to_string();
    assert!(told.contains("/level") && desk.server.requests().is_empty(), "{told}");
}

/// Any persona can be told to ask: what debug reads of it is checked, too, and a session that another one asks does not mind.
#[test]
fn what_is_wrong_with_a_persona_that_has_no_tag_is_told_by_check() {
    let persona = "---\nname: Diogenes\nfallback: { en: Who? }\n---\nYou ask.\n";
    let desk = Desk::new().file("personas/diogenes.md", persona);
    let ended = desk.env.nietz(["check", "personas/diogenes.md"]).go().exits(4);
    assert!(ended.stdout.contains("diogenes.md:3"), "{ended:?}");
    talk(&desk, &[], &["exit", ""]).exits(0);
    let well = "---\nname: Diogenes\nfallback: { fr: [\"Qui ?\"] }\n---\nYou ask.\n";
    Desk::new().file("personas/diogenes.md", well).env.nietz(["check", "personas/diogenes.md"]).go().exits(0);
}

#[test]
fn a_language_of_ones_own_is_spoken() {
    let german = ENGLISH.replacen("language: English", "language: Deutsch", 1).replacen("turn: Turn", "turn: Runde", 1);
    let desk = Desk::new().file("flows/debug/lang/de.yaml", &german);
    says(&talk(&desk, &["--lang", "de"], &["exit", ""]).exits(0), &["Runde"]);
    assert!(desk.asked(For::Question)[0].system().contains("Deutsch"));
}
