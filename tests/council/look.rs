//! Members look into the project before they speak: where a file was given, with the tools that their persona has, so often and no
//! more; it is shown, told to all where it is cited, and kept.

use serde_json::{Value, json};

use super::model::{Brain, stuck, whole};
use super::table::{LARGE, Table, each, list, says, turns};
use crate::support::model_server::{ModelServer, Request, Response};

/// The names of the tools that a request offers.
fn tools(request: &Request) -> Vec<&str> {
    let all = request.body["tools"].as_array().map_or(&[][..], Vec::as_slice);
    all.iter().filter_map(|tool| tool["function"]["name"].as_str()).collect()
}

/// What tools have answered in a request's conversation.
fn results(request: &Request) -> Vec<String> {
    let all = list(&request.body["messages"]).iter().filter(|message| message["role"] == "tool");
    all.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The request without what was looked up since.
fn before(request: &Request) -> Request {
    let mut before = request.clone();
    let messages = before.body["messages"].as_array_mut().expect("messages");
    messages.retain(|message| message["role"] != "tool" && message["tool_calls"].is_null());
    before
}

/// The requests, looks included, of positions in this cycle.
fn positions(table: &Table, cycle: usize) -> Vec<Request> {
    let asked = format!("\nCycle {cycle}.");
    table.server.requests().into_iter().filter(|request| before(request).prompt().contains(&asked)).collect()
}

/// A table where the QA Engineer makes these calls, one a reply, and then says this.
fn looking(calls: &'static [(&'static str, &'static str)], says: &'static str) -> Table {
    let brain = Brain { stand: stuck, ..Brain::default() };
    let server = ModelServer::start(move |request| {
        let asked = before(request);
        if brain.speaker(&asked) != "QA Engineer" || !asked.prompt().contains("\nCycle ") || tools(request).is_empty() {
            return brain.answer(request);
        }
        if let Some((name, arguments)) = calls.get(results(request).len()) {
            return Response::text("").tool_call("c", name, arguments);
        }
        let mut value = brain.reply(&asked);
        value["points"] = json!([says]);
        Response::text(value.to_string())
    });
    let mut table = Table { model: LARGE, ..Table::of(server) };
    table.env = table
        .env
        .file("plan.md", "Fees are charged once.\nNobody has counted them.\n")
        .file("src/fees.rs", "pub fn fee() -> u32 {\n    charge_twice(250)\n}\n")
        .file("src/.env", "KEY=1\n");
    table
}

const CALLS: [(&str, &str); 3] = [
    ("grep", r#"{"pattern": "charge_\\w+"}"#),
    ("read", r#"{"path": "src/fees.rs"}"#),
    ("read", r#"{"path": "fees.rs"}"#),
];

#[test]
fn what_a_member_looked_up_is_shown_told_to_all_where_it_is_cited_and_kept() {
    let table = looking(&CALLS, "The fee is charged twice already, see src/fees.rs:2, and src/other.rs:7 hides it");
    let ended = table.hold(&["--no-pause", "--cycles", "2", "--control", "--context", "@plan.md"], &[]);
    let session = ended.result();
    let shown = positions(&table, 1).iter().map(results).max_by_key(Vec::len).expect("QA looked");
    assert_eq!(shown[0], "src/fees.rs:2:     charge_twice(250)");
    assert_eq!(shown[1], "1\tpub fn fee() -> u32 {\n2\t    charge_twice(250)\n3\t}");
    assert_eq!(shown[2], "error: fees.rs does not exist; did you mean src/fees.rs?");
    says(&ended, &[r#"*QA Engineer looked:* `grep "charge_\w+"`, `read src/fees.rs`, `read fees.rs`"#]);
    let turn =
        turns(&session, "discussion").into_iter().find(|turn| turn["sender"]["name"] == "QA Engineer").expect("one");
    let looked = list(&turn["metadata"]["looked"]);
    assert_eq!(each(looked, "tool"), ["grep", "read", "read"]);
    assert_eq!((&looked[1]["lines"], &looked[2]["lines"]), (&json!(3), &Value::Null), "a failure shows nothing");
    assert_eq!(turn["metadata"]["cites"], json!(["src/fees.rs:2"]), "a line that nobody was shown is none");
    let line = "src/fees.rs:2\t    charge_twice(250)";
    let told = positions(&table, 2);
    assert!(!told.is_empty() && told.iter().all(|request| whole(request).contains(line)), "all hear the line");
    for begins in ["of the person who asks this", "Two answers to one request"] {
        let found = table.prompts(begins);
        assert!(!found.is_empty() && found.iter().all(|request| request.prompt().contains(line)), "{begins}");
    }
    assert!(list(&session["metadata"]["featureFlags"]).contains(&"look".into()));
    table.env.write("kept.json", session.to_string());
    table.env.nietz(["check", "--as", "council:sessions", "kept.json"]).go().exits(0);
}

#[test]
fn a_member_looks_with_the_tools_of_its_persona_where_a_file_was_given_and_nowhere_else() {
    let persona = "---\nname: Billing Clerk\nsummary: Knows each exception\ntags: [council]\ntools: [grep]\n---\nYou are the clerk.\n";
    let offered = |options: &[&str]| {
        let mut table = looking(&[], "It is so");
        table.env = table.env.file("personas/billing-clerk.md", persona);
        let wish = ["--no-pause", "--cycles", "1", "--personas", "Billing Clerk, Culture Lead, QA Engineer"];
        table.hold(&[&wish[..], options].concat(), &[]).result();
        let of = |name: &str| {
            let begins = format!("You are {name}");
            let found = positions(&table, 1).into_iter().find(|request| request.prompt().starts_with(&begins));
            tools(&found.expect("it was asked")).join(" ")
        };
        (of("Billing Clerk"), of("Culture Lead"), of("QA Engineer"))
    };
    let all = ("grep".to_owned(), String::new(), "find grep read".to_owned());
    let none = <(String, String, String)>::default();
    assert_eq!(offered(&["--context", "@plan.md"]), all);
    assert_eq!(offered(&["--look", "always"]), all);
    assert_eq!(offered(&[]), none, "nothing was given");
    assert_eq!(offered(&["--context", "It is a shop."]), none, "a sentence is no project");
    assert_eq!(offered(&["--context", "@plan.md", "--look", "never"]), none);
    let mut small = looking(&[], "It is so");
    small.model = super::table::SMALL;
    small.hold(&["--no-pause", "--cycles", "1", "--context", "@plan.md"], &[]).result();
    assert!(small.server.requests().iter().all(|request| tools(request).is_empty()), "a small mind would drown");
}

#[test]
fn looks_are_counted_and_secrets_are_not_shown() {
    const MANY: [(&str, &str); 7] = [
        ("read", r#"{"path": "src/.env"}"#),
        ("grep", r#"{"pattern": "KEY"}"#),
        ("read", r#"{"path": "../outside.md"}"#),
        ("read", r#"{"path": "plan.md"}"#),
        ("read", r#"{"path": "src/fees.rs"}"#),
        ("read", r#"{"path": "src/fees.rs"}"#),
        ("read", r#"{"path": "src/fees.rs"}"#),
    ];
    let table = looking(&MANY, "It is so");
    let ended = table.hold(&["--no-pause", "--cycles", "1", "--context", "@plan.md"], &[]);
    let session = ended.result();
    let shown = positions(&table, 1).iter().map(results).max_by_key(Vec::len).expect("QA looked");
    assert!(shown[0].starts_with("error:") && shown[0].contains("secrets") && !shown[0].contains("KEY=1"), "{shown:?}");
    assert_eq!(shown[1], "(none)");
    assert!(shown[2].starts_with("error: `../outside.md` is outside of the workspace"), "{shown:?}");
    assert_eq!(shown[4], "error: no look is left. Answer now, from what you have seen");
    assert_eq!(shown.len(), 5, "whoever goes on all the same is ended");
    says(&ended, &["(QA Engineer: the model's reply could not be used.)"]);
    let spoke =
        turns(&session, "discussion").into_iter().map(|turn| turn["sender"]["name"].clone()).collect::<Vec<_>>();
    assert_eq!(spoke, ["Senior Architect", "Devil's Advocate"], "the others are heard");
}
