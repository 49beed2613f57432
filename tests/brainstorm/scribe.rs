//! A mechanical writer for `worth.rs`: it does what a careful model does without understanding anything. From its prompt alone it takes
//! each clause of the last answers as an entry, sees by words such as "forget" or "instead" that something is taken back, and finds by
//! shared words which entry that is. It knows no case.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::model_server::Request;

/// The reply to a request of a brainstorm, by the names in its schema.
pub(super) fn reply(request: &Request) -> Value {
    let schema = request.schema();
    let properties = &schema["properties"];
    let prompt = request.prompt();
    let has = |name: &str| !properties[name].is_null();
    if has("said") {
        let mut value = minutes(&prompt);
        for axis in ["clarity", "depth", "coverage", "decisions", "action"] {
            if has(axis) {
                value[axis] = json!({"evidence": "", "score": 30});
            }
        }
        value
    } else if has("stories") && has("problem") {
        brief(&prompt)
    } else if has("questions") {
        let count = properties["questions"]["maxItems"].as_u64().unwrap_or(1) as usize;
        let ask = |index: usize| {
            json!({"question": format!("What else is there to say, part {}?", letters(request.number * 4 + index)),
                   "replies": ["Nothing more", "It is open"], "urgency": "important"})
        };
        json!({"questions": (0..count).map(ask).collect::<Vec<_>>()})
    } else if has("clarity") {
        pieces(properties, &prompt)
    } else if has("stories") {
        let line = prompt.lines().find(|line| line.starts_with("- (iteration"));
        let story = line.and_then(|line| line.split(") ").nth(1)).unwrap_or("It is built as it was said");
        json!({"stories": [{"story": story, "priority": "must", "effort": "M", "iteration": 1}]})
    } else if has("steps") {
        json!({"steps": [{"step": "Begin with the first story", "iteration": 1}]})
    } else if has("problem") {
        let answers = prompt.lines().filter_map(|line| line.strip_prefix("- ")?.split(" → ").nth(1));
        json!({"problem": answers.take(2).collect::<Vec<_>>().join(" "), "users": []})
    } else if has("risks") {
        json!({"risks": [{"risk": "It is not used", "mitigation": "Ask those who should", "probability": 1, "impact": 1}]})
    } else {
        panic!("no reply is known for {properties}")
    }
}

/// A number in letters, so that no figure comes into anything.
fn letters(number: usize) -> String {
    number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
}

/// Words by which something is taken back, in English and French.
const BACK: &[&str] = &[
    "forget",
    "scrap",
    "drop that",
    "drop it",
    "no longer",
    "anymore",
    "sorry",
    "was wrong",
    "correction",
    "dreaming",
    "insane",
    "too cheap",
    "too much",
    "is out",
    "are out",
    "it becomes",
    "not renewed",
    "oublie",
    "finalement non",
    "impossible",
    "a coupé",
    "instead",
    "rejected",
    "no deposit",
];

/// The clauses of the answers that are to be taken down, as they stand there.
fn clauses(prompt: &str) -> Vec<String> {
    let new = prompt.split("Take down what the user said last:").nth(1).unwrap_or_default();
    let new = new.split("\n\nsaid:").next().unwrap_or_default();
    let mut found = Vec::new();
    for line in new.lines().filter(|line| !line.starts_with("Q: ")) {
        let line = line.trim().trim_start_matches("A: ").trim_start_matches("- ");
        let mut open = String::new();
        for word in line.split(' ') {
            if !open.is_empty() {
                open.push(' ');
            }
            open.push_str(word);
            let ends = word.ends_with(['.', '!', '?', ';']) && word.len() > 3 || word.ends_with("...");
            let long = word.ends_with(',') && open.split(' ').count() >= 7;
            if ends || long {
                found.push(std::mem::take(&mut open));
            }
        }
        found.push(open);
    }
    let bare = |clause: String| clause.trim().trim_end_matches([',', ';']).to_owned();
    found.into_iter().map(bare).filter(|clause| clause.chars().any(char::is_alphanumeric)).collect()
}

/// The words of a text that carry something: figures count too.
fn words(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    let split = lower.split(|letter: char| !letter.is_alphanumeric() && letter != '%');
    split
        .filter(|word| word.chars().count() > 4 || word.chars().any(|letter| letter.is_ascii_digit()))
        .map(stem)
        .collect()
}

fn stem(word: &str) -> String {
    word.chars().take(6).collect()
}

fn kind(clause: &str) -> &'static str {
    let lower = clause.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if has(&["don't know", "dont know", "not settled", "not decided", "haven't agreed", "unknown", "pas tranché", "?"])
    {
        "open"
    } else if has(&["must", "not ", "never", "no ", "doit", "interdit", "ne "]) {
        "constraint"
    } else if has(&["goal", "target", "objectif", "love to"]) {
        "goal"
    } else {
        "fact"
    }
}

/// The entries that the prompt shows, with their numbers: those that were not taken away yet.
fn entries(prompt: &str) -> Vec<(u64, String)> {
    let mut found: Vec<(u64, String)> = Vec::new();
    for line in prompt.lines() {
        let Some((number, rest)) = line.strip_prefix('#').and_then(|line| line.split_once(' ')) else { continue };
        let Ok(number) = number.parse::<u64>() else { continue };
        if let Some(gone) = rest.strip_prefix("takes away #") {
            let gone: String = gone.chars().take_while(char::is_ascii_digit).collect();
            found.retain(|(id, _)| id.to_string() != gone);
        } else if let Some((_, text)) = rest.split_once(": ") {
            found.push((number, text.to_owned()));
        }
    }
    found
}

/// What a clause takes back: the entry with which it shares most.
fn taken_back(clause: &str, context: &str, known: &[(u64, String)]) -> Option<u64> {
    let lower = clause.to_lowercase();
    if !BACK.iter().any(|word| lower.contains(word)) {
        return None;
    }
    let own = words(context);
    let shared = |text: &str| words(text).intersection(&own).count();
    let best = known.iter().max_by_key(|(id, text)| (shared(text), *id))?;
    (shared(&best.1) > 0).then_some(best.0)
}

fn minutes(prompt: &str) -> Value {
    let known = entries(prompt);
    let (mut said, mut decided, mut revoked) = (Vec::new(), Vec::new(), Vec::new());
    let clauses = clauses(prompt);
    for clause in &clauses {
        if let Some(id) = taken_back(clause, clause, &known) {
            revoked.push(json!({"id": id, "quote": clause}));
        }
        let lower = clause.to_lowercase();
        let plain = ["decided", "we will", "c'est décidé", "rejected"].iter().any(|word| lower.contains(word));
        if plain && !lower.contains("not decided") {
            decided.push(json!({"quote": clause, "text": clause, "why": "", "rejected": ""}));
        } else {
            said.push(json!({"quote": clause, "kind": kind(clause), "text": clause}));
        }
    }
    json!({"said": said, "decided": decided, "planned": [], "revoked": revoked, "nothing": []})
}

/// A brief that adds nothing: its problem is the first entry.
fn brief(prompt: &str) -> Value {
    let known = entries(prompt);
    let first: Vec<u64> = known.iter().take(1).map(|(id, _)| *id).collect();
    let text = known.first().map(|(_, text)| text.clone()).unwrap_or_default();
    json!({"problem": {"from": first, "text": text}, "users": [], "approaches": [], "stories": [], "risks": [], "steps": []})
}

/// What is weighed for a small mind: no ideas; a piece that says so is decided.
fn pieces(properties: &Value, prompt: &str) -> Value {
    let mut decided = Vec::new();
    for line in prompt.lines() {
        let Some((id, text)) = line.split_once(": ") else { continue };
        let is_id = id.strip_prefix('S').is_some_and(|number| number.chars().all(|letter| letter.is_ascii_digit()));
        let lower = text.to_lowercase();
        if is_id && decided.len() < 2 && ["decided", "we will", "décidé"].iter().any(|word| lower.contains(word)) {
            decided.push(json!({"decision": text, "from": id}));
        }
    }
    let mut value = json!({"ideas": [], "decided": decided});
    for axis in ["clarity", "depth", "coverage", "decisions", "action"] {
        let ids = properties[axis]["properties"]["evidence"]["enum"].as_array().expect("the ids of the pieces");
        value[axis] = json!({"evidence": ids.last().expect("at least none"), "score": 30});
    }
    value
}
