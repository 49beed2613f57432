//! What people set for a flow in their configuration: checked by what the flow declares, the same for a whole run.

use serde_json::json;

use crate::support::env::Env;

const FLOW: &str = r#"
local nietz = require("@nietz")
local ui = require("@nietz/ui")
return nietz.flow {
  name = "tea", summary = "Tea",
  settings = {
    cups = { type = "integer", default = 4, min = 1, limit = true, help = "The most cups" },
    kind = { type = "string", default = "green" },
    note = { type = "string" },
  },
  run = function(ctx)
    ui.ask { id = "wait", prompt = "Ready?" }
    return { cups = ctx.settings.cups, kind = ctx.settings.kind, note = ctx.settings.note == nil }
  end,
}
"#;

fn env(user: &str, project: &str) -> Env {
    let text = |text: &str| if text.is_empty() { "{}".to_owned() } else { text.to_owned() };
    Env::new().flow("tea", FLOW).config(&text(user)).file("nietz.yaml", text(project))
}

#[test]
fn a_flow_sees_what_the_users_file_and_the_projects_file_set() {
    for (user, project, expected) in [
        ("", "", json!({"cups": 4, "kind": "green", "note": true})),
        ("flows: {tea: {cups: 9, kind: black}}", "", json!({"cups": 9, "kind": "black", "note": true})),
        (
            "flows: {tea: {cups: 9}}",
            "flows: {tea: {cups: 7, kind: white}}",
            json!({"cups": 7, "kind": "white", "note": true}),
        ),
        // A checkout cannot raise a limit.
        ("", "flows: {tea: {cups: 100}, other: {x: 1}}", json!({"cups": 4, "kind": "green", "note": true})),
    ] {
        let ended = env(user, project).run(["tea"]).stdin("yes\n").go();
        assert_eq!(ended.result(), expected, "{user} {project}");
    }
}

#[test]
fn a_resumed_run_keeps_the_settings_that_it_began_with() {
    let env = env("flows: {tea: {cups: 9}}", "");
    env.run(["tea"]).go().exits(7);
    let env = env.config("flows: {tea: {cups: 2}}");
    let ended = env.resume().stdin("yes\n").go();
    assert_eq!(ended.result()["cups"], 9);
}

#[test]
fn a_wrong_setting_is_refused_before_the_run_begins() {
    for (user, message, hint) in [
        (
            "flows: {tea: {cupps: 9}}",
            "config.yaml:1:15: /flows/tea/cupps: this flow has no such setting; did you mean `cups`?",
            "cups, kind, note",
        ),
        ("flows: {tea: {cups: many}}", "config.yaml:1:15: /flows/tea/cups: must be of type integer", ""),
        ("flows: {tea: {cups: 0}}", "config.yaml:1:15: /flows/tea/cups: must be at least 1", ""),
    ] {
        let env = env(user, "");
        let ended = env.run(["tea"]).go().exits(1);
        assert!(ended.stderr.contains(message) && ended.stderr.contains(hint), "{ended:?}");
        assert!(!env.journal_path().exists());
    }
    let plan = env("flows: {tea: {cups: 9}}", "").nietz(["run", "tea", "--plan"]).go().exits(0);
    assert!(plan.stdout.contains("cups: 9"), "{}", plan.stdout);
}

#[test]
fn a_setting_is_declared_with_care() {
    for (declared, message) in [
        ("{ type = \"string\", limit = true }", "a limit is a number with a default"),
        ("{ type = \"string\", positional = true }", "`positional` is for params"),
        ("{ type = \"integer\", default = \"x\" }", "must be of type integer"),
    ] {
        let flow = format!(
            "return require('@nietz').flow {{ name = 'x', summary = 'x', settings = {{ a = {declared} }}, run = function() end }}"
        );
        let ended = Env::new().flow("x", &flow).run(["x"]).go();
        assert!(ended.stderr.contains(message) && ended.code != Some(0), "{ended:?}");
    }
}

/// What a reader copies from the page is valid for whoever looks at it: a run, `check`, an editor.
#[test]
fn every_configuration_on_the_page_is_valid() {
    let mut pages = vec![include_str!("../../README.md").to_owned()];
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/docs")).expect("they are there") {
        pages.push(std::fs::read_to_string(entry.unwrap().path()).unwrap());
    }
    let of_page = |page: &str| -> Vec<String> {
        page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default().to_owned()).collect()
    };
    let blocks: Vec<String> = pages.iter().flat_map(|page| of_page(page)).collect();
    assert!(blocks.len() >= 5, "{blocks:?}");
    for block in &blocks {
        let env = Env::new().config(block);
        let file = env.home().join("config.yaml").display().to_string();
        env.nietz(["check", &file]).go().exits(0);
        env.nietz(["models"]).go().exits(0);
    }
    // What is not known is still refused by both.
    let env = Env::new().config("models:\n  window: { lab/qwen: 3 }\n");
    let file = env.home().join("config.yaml").display().to_string();
    assert_ne!(env.nietz(["check", &file]).go().code, Some(0));
    env.nietz(["models"]).go().exits(1);
}
