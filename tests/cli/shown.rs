//! The promise: what there is can be looked at: one flow, one persona with its text, and in a check of a project first what
//! its people wrote.

use serde_json::Value;

use crate::support::env::Env;

#[test]
fn a_persona_is_shown_with_its_text_and_written_out_to_be_changed() {
    let env = Env::new();
    let told = env.nietz(["personas", "security"]).go().exits(0).stdout;
    for part in
        ["security: Looks for who", "personas/roles/security.md", "party", "no names", "You are a security engineer."]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    let ended = env.nietz(["personas", "secrity"]).go();
    assert!(ended.code != Some(0) && ended.stderr.contains("did you mean `security`?"), "{ended:?}");
    let ended = env.nietz(["eject", "security"]).go();
    assert!(ended.stderr.contains("nietz eject personas/security.md"), "{ended:?}");

    let told = env.nietz(["eject", "personas/security.md"]).go().exits(0).stdout;
    assert!(told.contains("wrote personas/security.md"), "{told}");
    env.nietz(["check", "personas/security.md"]).go().exits(0);
    let text = env.read("personas/security.md").replace("You are a security engineer.", "You guard {{ what }}.");
    env.write("personas/security.md", text);
    let told = env.nietz(["personas", "security", "--json"]).go().exits(0).stdout;
    let told: Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(told["needs"], serde_json::json!(["what"]), "{told:#}");
    assert!(told["hides"][0].as_str().is_some_and(|hidden| hidden.contains("roles/security.md")), "{told:#}");
    // It is not written over.
    env.nietz(["eject", "personas/security.md"]).go().exits(2);
    assert!(env.read("personas/security.md").contains("You guard"));
}

#[test]
fn a_flow_is_shown_with_what_it_takes_and_may_do() {
    let told = Env::new().nietz(["flows", "council"]).go().exits(0).stdout;
    for part in ["council: ", "bundled:flows/council.lua", "bundled/council", "request", "calls models"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let told = Env::new().nietz(["flows", "council", "--json"]).go().exits(0).stdout;
    let told: Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(told["full_name"], "bundled/council", "{told:#}");
    assert!(told["permissions"].as_array().is_some_and(|all| all.iter().any(|one| one == "llm")), "{told:#}");
    let ended = Env::new().nietz(["flows", "concil"]).go();
    assert!(ended.code != Some(0) && ended.stderr.contains("did you mean `council`?"), "{ended:?}");
}

#[test]
fn a_check_tells_what_people_wrote_and_counts_the_journals_of_runs() {
    let flow = r#"return require("@nietz").flow { name = "mine", summary = "Mine", run = function() return 1 end }"#;
    let env = Env::new().flow("mine", flow);
    for run in ["r1", "r2", "r3"] {
        env.run(["mine"]).var("NIETZ_RUN", run).go().exits(0);
    }
    let told = env.nietz(["check"]).go().exits(0).stdout;
    assert_eq!(told, "./flows/mine.lua: valid\n3 journals valid\n");
    // One that is wrong is told by its name, behind what people wrote.
    let path = ".nietz/runs/r2/journal.jsonl";
    env.write(path, env.read(path).replace("\"Mine\"", "\"Yours\"").replacen("\"seq\":2", "\"seq\":7", 1));
    let told = env.nietz(["check"]).go().exits(4).stdout;
    assert!(
        told.starts_with("./flows/mine.lua: valid\n") && told.contains(path) && told.ends_with("2 journals valid\n"),
        "{told}"
    );
    // One that is asked for is told.
    let told = env.nietz(["check", ".nietz/runs/r1/journal.jsonl"]).go().exits(0).stdout;
    assert_eq!(told, ".nietz/runs/r1/journal.jsonl: valid\n");
}
