//! A brainstorm with data of the user's own: a technique, a bias, a language, a facilitator, an expert.

use super::model::Brain;
use super::table::{SLUG, TOPIC, path, says, yaml};
use crate::support::env::Env;
use crate::support::process::Ended;

const TECHNIQUE: &str = "category: wild\nphase: divergent\naxes: [coverage]\ndifficulty: easy\n\
                         name: { en: Coffee break }\nen: \"Leave the room and come back with three ideas.\"\n";
const BIAS: &str = "signals: [blue moon, pink elephant]\nname: { en: Colour bias }\nen: \"Would it hold in grey?\"\n";
const ENGLISH: &str = include_str!("../../flows/brainstorm/lang/en.yaml");

/// Runs the bundled brainstorm here and types these lines.
fn talk(env: &Env, arguments: &[&str], lines: &[&str]) -> Ended {
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    env.run(["brainstorm", TOPIC, "--no-clarify", "--no-hmw"].into_iter().chain(arguments.iter().copied()))
        .stdin(lines)
        .go()
}

#[test]
fn a_technique_of_ones_own_is_used_and_recorded() {
    let server = Brain::default().serve();
    let env = Env::with(&server).file("flows/brainstorm/techniques/coffee-break.yaml", TECHNIQUE);
    let ended = talk(&env, &["--lang", "fr"], &["/technique coffee-break", "quit"]).exits(0);
    // What it does not say in French is said in English.
    says(&ended, &["**Coffee break**", "Leave the room and come back"]);
    let session = yaml(&env.read(&path(SLUG)))["session"].clone();
    assert_eq!(session["techniques_history"][0]["technique_slug"], "coffee-break");
    env.nietz(["check"]).go().exits(0);
    env.write("flows/brainstorm/techniques/coffee-break.yaml", TECHNIQUE.replace("[coverage]", "[covrage]"));
    let ended = env.nietz(["check", "flows/brainstorm/techniques/coffee-break.yaml"]).go().exits(4);
    assert!(ended.stdout.contains("coffee-break.yaml:3:8"), "{ended:?}");
}

#[test]
fn a_bias_of_ones_own_is_named() {
    let server = Brain::default().serve();
    let env = Env::with(&server).file("flows/brainstorm/biases/colour.yaml", BIAS);
    let lines = [
        "once in a blue moon a customer pays twice",
        "",
        "",
        "the pink elephant is the ledger",
        "",
        "",
        "no",
        "support sees the orders daily",
        "",
        "",
        "1",
        "refunds go out after two days",
        "",
        "",
        "quit",
    ];
    says(&talk(&env, &[], &lines), &["Colour bias", "Would it hold in grey?"]);
}

#[test]
fn a_language_of_ones_own_is_spoken_when_it_is_whole() {
    let server = Brain::default().serve();
    let german = ENGLISH.replacen("language: English", "language: Deutsch", 1).replace("Your choice", "Deine Wahl");
    let env = Env::with(&server).file("flows/brainstorm/lang/de.yaml", &german);
    let begun = german.replace("Session saved", "Sitzung gespeichert");
    env.write("flows/brainstorm/lang/de.yaml", begun);
    talk(&env, &["--lang", "de"], &["quit"]).exits(0);
    assert!(
        server
            .requests()
            .iter()
            .any(|request| request.prompt().contains("Deutsch") || request.system().contains("Deutsch"))
    );
    // A language that lacks a text is refused when it is wanted, before anything is asked, and harms no other one.
    env.write("flows/brainstorm/lang/de.yaml", german.replacen("\nrule:", "\nruler:", 1));
    let asked = server.requests().len();
    let ended = env.run(["brainstorm", TOPIC, "--lang", "de"]).var("NIETZ_RUN", "r2").go();
    assert_ne!(ended.code, Some(0));
    let told = ended.ending()["failure"]["message"].to_string();
    assert!(told.contains("de.yaml lacks /rule"), "{told}");
    assert_eq!(server.requests().len(), asked);
    let ended = env.nietz(["check", "flows/brainstorm/lang/de.yaml"]).go().exits(4);
    assert!(ended.stdout.contains("lacks /rule, which en.yaml has"), "{ended:?}");
    env.run(["brainstorm", "sessions"]).var("NIETZ_RUN", "r3").go().exits(0);
}

#[test]
fn facilitators_and_experts_of_ones_own_are_checked_for_what_they_need() {
    let server = Brain::default().serve();
    let persona = |front: &str| format!("---\nname: Muse\n{front}---\nYou muse.\n");
    let env = Env::with(&server).file("personas/muse.md", persona("tags: [facilitator]\nsummary: Muses\n"));
    env.nietz(["check", "personas/muse.md"]).go().exits(0);
    says(&talk(&env, &["--persona", "muse"], &["modes", "quit"]).exits(0), &["`muse` Muse: Muses ←"]);
    env.write("personas/muse.md", persona("tags: [panel]\nsummary: Muses\n"));
    let ended = env.nietz(["check", "personas/muse.md"]).go().exits(4);
    assert!(ended.stdout.contains("framework"), "{ended:?}");
}
