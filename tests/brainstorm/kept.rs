//! What the user says is kept, however much it is and whatever its words are: decisions, steps with their people and days, and all of a
//! long session.

use serde_json::{Value, json};

use super::ledger::{entries, taking_down};
use super::model::{Brain, sentences};
use super::table::{SLUG, TOPIC, Table, read, task};
use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};

const QUIET: [&str; 5] = [TOPIC, "--no-clarify", "--no-hmw", "--no-technique", "--no-suggest"];

fn brief(table: &Table) -> String {
    table.env.read(&format!("docs/briefs/{SLUG}/brief-2026-01-09.md"))
}

const SUGGESTED: &str = "For 1 September photos arrive safely; checklists stay as they are";

/// What was said, and what was taken down of it: in other words, with other endings, and of pieces between commas.
const DECISIONS: [(&str, &str); 8] = [
    ("photos arrive safely; checklists stay as they are", "The first release covers pictures only"),
    ("a supervisor signs with the gaps named", "Missing images never hold up a signature"),
    ("Photos are listed on the tablet at the shutter", "There is a list of pictures on the device"),
    ("No chunks in the first version", "Uploads are whole at the beginning"),
    ("Rooms (heating, electrics, fire) have lists of their own", "One for each trade"),
    ("We will pay Bob", "Bob gets money"),
    ("Ann tests it", "Testing is hers"),
    ("Files keep their names", "Nothing is renamed"),
];

#[test]
fn each_decision_is_kept_whatever_its_words_are_and_however_many_there_are() {
    let server = ModelServer::start(|request| {
        let mut value = Brain::default().reply(request);
        if let Some(questions) = value.get_mut("questions").and_then(Value::as_array_mut) {
            questions[0]["replies"] = json!([SUGGESTED, "Nobody knows"]);
        }
        if value.get("said").is_some() {
            let words = sentences(request).join(" ");
            let decided = DECISIONS.iter().filter(|(quote, _)| words.contains(quote));
            value["said"] = json!([{"quote": "Signing is never blocked", "kind": "idea", "text": "An inspection turns green anyway"}]);
            value["decided"] =
                decided.map(|(quote, text)| json!({"quote": quote, "text": text, "why": "", "rejected": ""})).collect();
        }
        Response::text(value.to_string())
    });
    let table = Table { env: Env::with(&server), server };
    let lines = [
        "a",
        "Signing is never blocked: with photos missing, a supervisor signs with the gaps named. Photos are listed on the tablet at the \
         shutter, with a hash. No chunks in the first version. Rooms (heating, electrics, fire) have lists of their own.",
        "We will pay Bob. Ann tests it. Files keep their names.",
        "finish",
    ];
    table.talk(QUIET, &lines).exits(0);
    let all = entries(&table);
    let texts: Vec<&str> =
        all.iter().filter(|one| one["kind"] == "decision").filter_map(|one| one["text"].as_str()).collect();
    assert_eq!(texts, DECISIONS.map(|(_, text)| text));
    assert_eq!(table.session()["ideas"][0]["content"], "An inspection turns green anyway");
    let mut asked = table.server.requests();
    asked.retain(|request| task(request).starts_with("Ask the user"));
    let (asked, brief) = (read(asked.last().expect("questions")), brief(&table));
    for text in texts {
        assert!(asked.contains(&format!("decision: {text}")), "{text:?} is not in\n{asked}");
        assert!(brief.contains(text), "{text:?} is not in\n{brief}");
    }
}

#[test]
fn a_large_mind_is_told_all_that_holds_and_weighs_the_end_of_a_long_answer() {
    let server = ModelServer::start(|request| {
        let mut value = Brain::default().reply(request);
        if value.get("clarity").is_some() {
            value["clarity"] = json!({"evidence": sentences(request).last(), "score": 100});
        }
        Response::text(value.to_string())
    });
    let table = Table { env: Env::with(&server), server };
    let mut noted: Vec<String> = Vec::new();
    for kind in ["idea", "decide", "open", "fact"] {
        noted.extend((0..9).map(|number| format!("/{kind} This {kind} is number {number} of them")));
    }
    let long: Vec<String> = (0..16).map(|part| format!("Sentence {part} speaks of the ledger and its night")).collect();
    let long = format!("{}.", long.join(". "));
    let lines: Vec<&str> = noted.iter().map(String::as_str).chain([long.as_str(), "", "", "quit"]).collect();
    table.talk(QUIET, &lines).exits(0);
    let own = table.own();
    assert_eq!(own["evidence"]["clarity"], "Sentence 15 speaks of the ledger and its night.");
    assert_eq!(own["axes"]["clarity"], 55, "{}", own["axes"]);
    let last = read(table.server.requests().last().expect("one"));
    for line in &noted {
        let (_, text) = line.split_once(' ').expect("a command and its text");
        assert!(last.contains(&format!(": {text}\n")), "{text:?} is not in\n{last}");
    }
}

#[test]
fn a_brief_is_written_from_the_first_answer_on_and_has_who_does_the_first_steps_and_by_when() {
    let table = taking_down(|said| {
        let first = said.iter().any(|one| one.starts_with("Jonas writes"));
        let step = json!({"quote": "Jonas writes the manifest by 1 August", "kind": "step", "text": "Write the manifest",
            "owner": "Jonas", "date": "by 1 August"});
        json!({"said": [], "decided": [], "planned": if first { json!([step]) } else { json!([]) }})
    });
    let mut answers: Vec<String> =
        (0..24).map(|number| format!("Part {number} is kept in a place of its own")).collect();
    answers[0] = "Photos get lost on the way. Jonas writes the manifest by 1 August".to_owned();
    answers.push("finish".to_owned());
    let table = table.file("answers.yaml", &json!({"answer": answers, "energy": "go on"}).to_string());
    table.call(QUIET.into_iter().chain(["--answers", "answers.yaml"])).go().exits(0);
    let asked: Vec<String> = table
        .server
        .requests()
        .iter()
        .filter(|request| ["brief", "parts"].iter().any(|name| !request.schema()["properties"][*name].is_null()))
        .map(read)
        .collect();
    assert_eq!(asked.len(), 2, "one who drafts it, and one who writes it");
    for (number, answer) in answers[..24].iter().enumerate() {
        assert!(asked.iter().all(|all| all.contains(&format!(": {answer}\n"))), "answer {number} is left out");
    }
    let text = brief(&table);
    for part in ["Photos get lost on the way", "Write the manifest. Jonas. by 1 August.", "Part 23 is kept"] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let steps: Vec<Value> = entries(&table).into_iter().filter(|entry| entry["kind"] == "step").collect();
    assert_eq!((&steps[0]["owner"], &steps[0]["date"]), (&"Jonas".into(), &"by 1 August".into()));
}
