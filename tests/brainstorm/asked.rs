//! What a large mind is asked, and what of its replies is put to the user: its questions as it wrote them, and schemas in which what
//! must be thought of first is written first.

use serde_json::{Value, json};

use super::model::Brain;
use super::table::{FULL, TOPIC, Table, prompts, task};
use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};

#[test]
fn questions_keep_their_order_and_suggestions_may_be_in_the_users_own_words() {
    let server = ModelServer::start(|request| {
        let mut value = Brain::default().reply(request);
        if task(request).starts_with("Ask the user") {
            value["questions"] = json!([
                {"question": format!("Which orders wait, in round {}?", request.number), "urgency": "info",
                 "replies": ["Orders stay in our own ledger first.", "Which orders?", "Those of that day"]},
                {"question": format!("And who looks at them then, in round {}?", request.number), "urgency": "critical",
                 "replies": ["Support people see pending orders daily.", "Nobody"]}]);
        }
        Response::text(value.to_string())
    });
    let table = Table { env: Env::with(&server), server };
    let ended = table.talk([TOPIC, "--no-clarify", "--no-hmw"], &[FULL, "", "b", "quit"]).exits(0);
    let asked = prompts(&ended);
    let second: Vec<&String> = asked.iter().filter(|prompt| prompt.contains("in round 3?")).collect();
    assert!(second[0].contains("Which orders wait") && second[1].contains("And who looks at them then"), "{asked:#?}");
    assert!(second[0].contains("- **a** Orders stay in our own ledger first."), "{}", second[0]);
    assert_eq!(table.session()["history"][1]["responses"][0], "Which orders?");
}

/// All objects in a schema that have both of these members.
fn with_both<'a>(schema: &'a Value, names: [&str; 2], found: &mut Vec<Vec<&'a str>>) {
    if let Some(required) = schema["required"].as_array() {
        let required: Vec<&str> = required.iter().filter_map(Value::as_str).collect();
        if names.iter().all(|name| required.contains(name)) {
            found.push(required);
        }
    }
    match schema {
        Value::Object(members) => members.values().for_each(|value| with_both(value, names, found)),
        Value::Array(items) => items.iter().for_each(|value| with_both(value, names, found)),
        _ => {}
    }
}

#[test]
fn what_must_be_thought_of_first_is_written_first() {
    let table = Table::new();
    let lines = [
        FULL,
        "",
        "",
        "party",
        "a day",
        "premortem",
        "security-check",
        "/spike 1d does it hold?",
        "approaches",
        "a",
        "finish",
    ];
    table.begin(&lines).exits(0);
    let schemas: Vec<Value> = table.server.requests().iter().map(|request| request.schema()).collect();
    for names in [
        ["risk", "mitigation"],
        ["threat", "defence"],
        ["why", "verdict"],
        ["quote", "text"],
        ["evidence", "score"],
        ["question", "replies"],
        ["name", "price"],
        ["approaches", "recommended"],
        ["parts", "lead"],
        ["heading", "text"],
        ["agreed", "question"],
        ["refers", "points"],
    ] {
        let mut found = Vec::new();
        schemas.iter().for_each(|schema| with_both(schema, names, &mut found));
        assert!(!found.is_empty(), "nobody was asked for {names:?}");
        for required in found {
            let place = |name| required.iter().position(|one| *one == name);
            assert!(place(names[0]) < place(names[1]), "{names:?}: {required:?}");
        }
    }
}
