//! What a round of voices is about, how it is heard, and that nothing said in it or to it is lost.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::ledger::entries;
use super::model::{Brain, sentences};
use super::table::{TOPIC, Table, prompts, read, said, says, task};
use crate::support::env::Env;
use crate::support::model_server::{Gate, ModelServer, Request, Response};

const QUIET: [&str; 5] = [TOPIC, "--no-clarify", "--no-hmw", "--no-technique", "--no-suggest"];

/// A table whose model answers as usual, but for what this changes.
fn changed(change: impl Fn(&Request, &mut Value) + Send + Sync + 'static) -> Table {
    let server = ModelServer::start(move |request| {
        let mut value = Brain::default().reply(request);
        change(request, &mut value);
        Response::text(value.to_string())
    });
    Table { env: Env::with(&server), server }
}

/// The question in a prompt, without its number and suggestions.
fn question(prompt: &str) -> &str {
    prompt.split("**").nth(1).unwrap_or_default()
}

/// What each voice said, as it was shown.
fn shown(table_said: &[Value]) -> Vec<(String, String)> {
    let text = |event: &Value, name: &str| event[name].as_str().unwrap_or_default().to_owned();
    let voices = table_said.iter().filter(|event| !event["from"].is_null());
    voices.map(|event| (text(event, "from"), text(event, "markdown"))).collect()
}

#[test]
fn a_round_and_a_dive_are_about_the_question_on_the_screen_which_is_the_last_one() {
    let table = Table::new();
    let lines =
        ["the ledger keeps orders", "party", "a day at most", "/dive", "/party focus security", "a week", "quit"];
    let ended = table.begin(&lines).exits(0);
    let asked = prompts(&ended);
    let numbered: Vec<&str> =
        asked.iter().filter(|one| one.contains("Question 2 of")).map(|one| question(one)).collect();
    // Before and after the party, then another one, before and after the voice that spoke alone.
    let (second, other) = (numbered[0], numbered[2]);
    assert_eq!(numbered, [second, second, other, other], "{asked:#?}");
    let session = table.session();
    assert_eq!(session["party_history"][0]["topic"], second);
    assert_eq!(session["party_history"][1]["topic"], other, "what is on the screen no more is not taken up");
    let dive = format!("Ask only about this, whatever phase the session is in: {second}");
    assert!(table.server.requests().iter().any(|request| task(request).contains(&dive)), "{dive}");
    assert_eq!(session["last_question"], other, "asked, and not answered");
    assert_eq!(session["history"][0]["responses"], json!(["the ledger keeps orders"]));
}

#[test]
fn a_round_before_an_iteration_is_about_what_is_open_and_not_about_what_was_answered() {
    let table = Table::new();
    let lines = ["party", "a day at most", "the ledger keeps orders", "", "", "the worker retries them", "", ""];
    table.talk(QUIET, &[&lines[..], &["two days", "quit"]].concat()).exits(0);
    let session = table.session();
    assert_eq!(session["party_history"][1]["topic"], "Keeping the order, against refusing it", "{session:#}");
    assert_eq!(session["iteration"], 3);
}

#[test]
fn voices_are_heard_as_they_have_spoken_and_what_answers_others_stands_behind_their_names() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = ModelServer::start(move |request| {
        let reply = Response::text(Brain::default().reply(request).to_string());
        if task(request).contains("The others said just now") { reply.held_by(&held) } else { reply }
    });
    let table = Table { env: Env::with(&server), server };
    let mut running = table.call([TOPIC, "--no-clarify", "--no-hmw"]).spawn();
    running.say("party\n");
    // While one still thinks about what it answers, the others can be read.
    let mut early = BTreeSet::new();
    while early.len() < 2 {
        let event = running.wait_for("said");
        early.extend(event["from"].as_str().map(str::to_owned));
    }
    gate.open();
    running.say("a day\nquit\n");
    running.close();
    let voices = shown(&running.end().exits(0).of_type("said"));
    assert_eq!(voices.len(), 3, "{voices:?}");
    let (last, text) = voices.last().expect("three");
    assert!(!early.contains(last) && voices[..2].iter().all(|(_, text)| !text.contains('→')), "{voices:?}");
    let (own, answer) = text.split_once("\n\n→ ").expect("what it says for itself, and whom it answers");
    let (names, answer) = answer.split_once("\n\n").expect("the names stand alone");
    assert!(own.starts_with("- P") && own.contains(" · Point ") && answer.contains("- P4 · Point "), "{text}");
    assert_eq!(names.split(", ").collect::<BTreeSet<_>>(), early.iter().map(String::as_str).collect(), "{text}");
}

#[test]
fn a_round_in_which_nobody_adds_anything_says_so_and_is_none() {
    let table = changed(|_, value| {
        if value.get("points").is_some() {
            value["points"] = json!(["Orders wait in the ledger until support decides"]);
        }
    });
    let lines = ["party", "", "party", "party exit", "panel", "", "panel", "panel exit", "quit"];
    let ended = table.begin(&lines).exits(0);
    says(&ended, &["Architect has nothing to add."]);
    assert_eq!(said(&ended).matches("Nobody had anything new to say.").count(), 2, "{}", said(&ended));
    let session = table.session();
    for history in ["party_history", "panel_history"] {
        assert_eq!(session[history].as_array().map(Vec::len), Some(1), "{history}");
    }
}

#[test]
fn ids_of_points_are_in_no_record_and_the_end_of_a_round_knows_what_the_user_said() {
    let table = changed(|request, value| {
        if task(request).contains("The others said just now") {
            let other = request.schema()["properties"]["refers"]["items"]["enum"][0].clone();
            value["points"] = json!([format!("{} forgets the refunds", other.as_str().expect("an id"))]);
        } else if value.get("agreed").is_some() {
            value["agreed"] = json!(["P2 is right"]);
        }
    });
    let ended = table.begin(&["the ledger keeps orders", "party", "a day", "finish"]).exits(0);
    let session = table.session();
    let text = session["party_history"].to_string();
    let bare = regex::Regex::new(r"\bP\d").expect("a regular expression");
    assert!(!bare.is_match(&text) && text.contains(") forgets the refunds") && text.contains(") is right"), "{text}");
    for entry in entries(&table) {
        assert!(!bare.is_match(entry["text"].as_str().expect("a text")), "{entry}");
    }
    assert!(said(&ended).contains(") forgets the refunds"), "{}", said(&ended));
    let requests = table.server.requests();
    let summed: Vec<String> =
        requests.iter().map(read).filter(|all| all.contains("Draw this discussion together")).collect();
    assert!(summed.len() == 1 && summed[0].contains(": the ledger keeps orders\n"), "{summed:?}");
    // Whoever writes the brief has both lists.
    let contested = entries(&table).into_iter().find(|entry| entry["kind"] == "contested").expect("one is open");
    let brief = requests.iter().find(|request| !request.schema()["properties"]["parts"].is_null()).expect("a brief");
    let holds = task(brief).split("These hold as well").nth(1).and_then(|rest| rest.lines().next().map(str::to_owned));
    assert!(holds.expect("others have said things").contains(&format!(" {}", contested["id"])));
    assert!(read(brief).contains("contested, party 1: Keeping the order, against refusing it"));
}

/// Longer than anything that was ever cut.
fn long(beginning: &str) -> String {
    let parts: Vec<String> = (0..30).map(|part| format!("part {part} of it in a ledger")).collect();
    format!("{beginning}. It has {}.", parts.join(", "))
}

#[test]
fn what_the_user_answers_a_round_is_told_uncut_noted_and_weighed_once() {
    const FIRST: &str = "No order may wait longer than one whole night";
    const SECOND: &str = "Whoever signs first pays for all refunds afterwards";
    let table = changed(|request, value| {
        if value.get("clarity").is_some() {
            let all = read(request);
            let quote = |text: &str| if all.contains(text) { text.to_owned() } else { String::new() };
            value["clarity"] = json!({"evidence": quote(FIRST), "score": 100});
            value["depth"] = json!({"evidence": quote(SECOND), "score": 100});
        }
        if value.get("said").is_some() {
            // A quote of each, so that it is seen where it stands.
            let quote = sentences(request)[0].clone();
            value["said"] = json!([{"quote": quote, "kind": "fact", "text": quote}]);
            value["decided"] = json!([]);
        }
    });
    let (first, second) = (long(FIRST), long(SECOND));
    let lines = ["party", &first, "the ledger keeps orders", "", "", "the worker retries them", "", "", &second];
    table.talk(QUIET, &[&lines[..], &["the mails go out", "", "", "three days", "quit"]].concat()).exits(0);
    let own = table.own();
    assert_eq!((&own["evidence"]["clarity"], &own["evidence"]["depth"]), (&FIRST.into(), &SECOND.into()));
    // By 25, where it was weighed; where nothing new carries it, by 5.
    let clarity: Vec<&Value> =
        own["iterations"].as_array().expect("a list").iter().map(|one| &one["axes"]["clarity"]).collect();
    assert_eq!(clarity[..3], [&json!(30), &json!(55), &json!(60)], "{clarity:?}");
    let depth: Vec<&Value> =
        own["iterations"].as_array().expect("a list").iter().map(|one| &one["axes"]["depth"]).collect();
    assert_eq!(depth[1..4], [&json!(20), &json!(25), &json!(50)], "{depth:?}");
    let noted: Vec<Value> = entries(&table).iter().map(|entry| entry["text"].clone()).collect();
    let last = read(table.server.requests().last().expect("one"));
    for (quote, whole) in [(FIRST, &first), (SECOND, &second)] {
        assert!(noted.iter().any(|text| text.as_str().is_some_and(|text| text.starts_with(quote))), "{noted:?}");
        assert!(last.contains(&format!(": {whole}\n")), "{whole} is not in {last}");
    }
}
