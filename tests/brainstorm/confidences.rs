//! What the user says in confidence is in no brief and no journal, and that is said; the session keeps their answers as they gave them.

use serde_json::{Value, json};

use super::ledger::{entries, taking_down};
use super::model::{Brain, sentences};
use super::table::{FULL, SLUG, Table, said, says};
use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Request, Response};

/// The line about it at the end.
const STANDS_NOWHERE: &str = "What you said in confidence stands in neither; the session still has your answers as you gave them \
    (`.project-memory/brainstorm-sessions/checkout-that-survives-a-payment-outage.yaml`).";

fn document(table: &Table, name: &str) -> String {
    table.env.read(&format!("docs/briefs/{SLUG}/{name}-2026-01-09.md"))
}

#[test]
fn what_is_said_in_confidence_is_in_no_brief_and_no_journal_and_the_session_has_it() {
    let table = taking_down(|said| {
        json!({"said": [{"quote": said[0], "kind": "idea", "text": "Orders stay with us"}], "decided": [],
               "private": [said[1].trim_end_matches('.')]})
    });
    let answer = "Orders stay in our own ledger. Between you and me: Zoe may leave us in May. Mails go out daily.";
    let ended = table.begin(&[answer, "", "", "finish"]).exits(0);
    let texts: Vec<Value> = entries(&table).iter().map(|entry| entry["text"].clone()).collect();
    assert_eq!(texts, ["Orders stay with us", "Mails go out daily."], "it is no sentence that the model passed over");
    let (brief, journal) = (document(&table, "brief"), document(&table, "journal"));
    assert!(brief.contains("Mails go out daily.") && !brief.contains("Zoe"), "{brief}");
    assert!(journal.contains("\n  Orders stay in our own ledger. […]. Mails go out daily.\n"), "{journal}");
    assert!(!journal.contains("Zoe"), "{journal}");
    assert_eq!(table.session()["history"][0]["responses"][0], answer);
    assert_eq!(table.own()["private"], json!(["Between you and me: Zoe may leave us in May"]));
    says(&ended, &[STANDS_NOWHERE]);
}

#[test]
fn it_is_kept_once_and_struck_from_all_that_the_user_said_in_whatever_spelling() {
    let table = taking_down(
        |_| json!({"said": [], "decided": [], "private": ["Zoe may leave us in May", "Zoe has found something else"]}),
    );
    let note = "A day at most. But ZOE may leave us in May, I fear. Ask Bob for it.";
    let ended = table.begin(&["party", note, "Zoe may leave us in May, so write it down.", "", "", "finish"]).exits(0);
    assert_eq!(table.own()["private"], json!(["Zoe may leave us in May"]), "what nobody said is nobody's confidence");
    let (brief, journal) = (document(&table, "brief"), document(&table, "journal"));
    assert!(!brief.to_lowercase().contains("zoe"), "{brief}");
    for part in [
        "\n- _user_: How long may an order stay pending? → A day at most. But […], I fear. Ask Bob for it.\n",
        "\n  […], so write it down.\n",
    ] {
        assert!(journal.contains(part), "{part:?} is not in\n{journal}");
    }
    says(&ended, &[STANDS_NOWHERE]);
}

#[test]
fn where_nothing_was_said_in_confidence_nothing_is_said_of_it() {
    let table = taking_down(|_| json!({"private": ["Zoe may leave us in May"]}));
    let ended = table.begin(&[FULL, "", "", "finish"]).exits(0);
    assert_eq!(table.own()["private"], Value::Null);
    assert!(!said(&ended).contains("in confidence"), "{}", said(&ended));
}

/// What a model notes of it all the same, and what gave way because of it, would tell it.
#[test]
fn what_rests_on_a_confidence_and_what_gave_way_to_it_are_in_neither() {
    let table = taking_down(|said| match said.iter().position(|one| one.contains("Zoe leaves")) {
        Some(at) => json!({
            "said": [{"quote": "let Bob lead it", "kind": "goal", "text": "Bob leads"},
                     {"quote": "Zoe leaves us", "kind": "fact", "text": "Zoe leaves"}],
            "decided": [], "revoked": [{"id": 1, "quote": said[at].trim_end_matches('.')}],
            "private": ["Zoe  leaves us in May"]}),
        None => json!({"said": [{"quote": said[0], "kind": "fact", "text": "Zoe leads the worker"}], "decided": []}),
    });
    let lines = [
        "Zoe leads the worker.",
        "",
        "",
        "Zoe\tleaves us in May, so let Bob lead it. Zoe leaves us in May.",
        "",
        "",
        "finish",
    ];
    table.begin(&lines).exits(0);
    let (brief, journal) = (document(&table, "brief"), document(&table, "journal"));
    assert!(!brief.contains("leaves us") && brief.contains("Bob leads"), "{brief}");
    assert!(!journal.contains("leaves us") && !journal.contains("~~"), "{journal}");
}

/// A writer who tells it all the same is told so, and what still tells it then goes: in its very words, or in most of them with one
/// that was said nowhere else. What stands beside it, and what it rested on, stays.
#[test]
fn a_brief_that_tells_a_confidence_is_mended_or_goes_without_it() {
    let server = ModelServer::start(|request| {
        let mut value = Brain::default().reply(request);
        if value.get("said").is_some() && sentences(request).iter().any(|one| one.contains("Zoe")) {
            value["said"] = json!([{"quote": "Bob learns the worker", "kind": "constraint", "text": "Bob learns the worker by 30 April"}]);
            value["decided"] = json!([]);
            value["private"] = json!(["Zoe may leave us in May for her sister's farm"]);
        }
        if let Some(parts) = value.get_mut("parts").and_then(Value::as_array_mut) {
            parts.retain(|part| part["of"] != "risks");
            parts.push(json!({"of": "risks", "heading": "Risks", "text":
                "| Risk | Answer |\n|---|---|\n| Zoe leaves us for the farm of her sister in May | Bob learns the worker by 30 April [1] |\n\
                 | Zoe is ill in May | Bob |"}));
            value["lead"] = json!(
                "Keep orders. Zoe may leave us in May for her sister’s farm, so Bob learns the worker [1]. Ann pays."
            );
        }
        Response::text(value.to_string())
    });
    let table = Table { env: Env::with(&server), server };
    let answer =
        "Bob learns the worker by 30 April. Between you and me: Zoe may leave us in May for her sister's farm.";
    table.begin(&[answer, "", "", "finish"]).exits(0);
    let asked = table.server.requests();
    let told: Vec<String> =
        asked.iter().map(Request::prompt).filter(|one| one.contains("in confidence; leave it out")).collect();
    assert_eq!(told.len(), 1);
    for section in ["lead", "risks"] {
        assert!(told[0].contains(&format!("- {section}: tells what was said in confidence")), "{}", told[0]);
    }
    assert!(!told[0].contains("Zoe is ill"), "{}", told[0]);
    let brief = document(&table, "brief");
    assert!(!brief.contains("farm") && !brief.contains("leave us"), "{brief}");
    for part in ["\nKeep orders. Ann pays.\n", "| Zoe is ill in May | Bob |\n", "- Bob learns the worker by 30 April."]
    {
        assert!(brief.contains(part), "{part:?} is not in\n{brief}");
    }
}

/// Somebody says later that it was said in confidence: what was noted of it is told no more.
#[test]
fn what_is_said_to_be_a_confidence_later_is_one_and_no_entry_of_it_is_told() {
    let table = taking_down(|said| match said.iter().any(|one| one.contains("between us")) {
        true => json!({"said": [], "decided": [], "private": ["Zoe leaves us in May"]}),
        false => json!({"said": [{"quote": said[0], "kind": "fact", "text": "Zoe leaves in May"}], "decided": []}),
    });
    let lines = ["Zoe leaves us in May.", "", "", "What I said of Zoe stays between us.", "", "", "finish"];
    let ended = table.begin(&lines).exits(0);
    let (brief, journal) = (document(&table, "brief"), document(&table, "journal"));
    assert!(!brief.contains("Zoe leaves"), "{brief}");
    assert!(!journal.contains("Zoe leaves"), "{journal}");
    says(&ended, &[STANDS_NOWHERE]);
}
