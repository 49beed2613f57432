//! A mechanical writer for `worth.rs`: it does what a careful model does without understanding anything. From its prompt alone it takes
//! each sentence of the last answers as an entry, sees by words such as "forget" or "instead" that something is taken back, and finds by
//! shared words which entry that is. It knows no case.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::model::in_parts;
use super::table::{last_words, read, task};
use crate::support::model_server::Request;

/// The reply to a request of a brainstorm, by the names in its schema.
pub(super) fn reply(request: &Request) -> Value {
    let schema = request.schema();
    let properties = &schema["properties"];
    let prompt = read(request);
    let has = |name: &str| !properties[name].is_null();
    if has("said") {
        let mut value = minutes(request, &prompt);
        for axis in ["clarity", "depth", "coverage", "decisions", "action"] {
            if has(axis) {
                value[axis] = json!({"evidence": "", "score": 30});
            }
        }
        value
    } else if has("changes") {
        changes(request)
    } else if has("brief") {
        json!({"brief": "Nothing was taken down yet."})
    } else if has("parts") {
        brief(properties, &prompt)
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
        json!({"steps": [{"step": "Begin with the first story"}]})
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
    "won't",
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

/// Those of them that judge what was said, where others say that a thing is out: what holds is told without them.
const JUDGED: &[&str] =
    &["sorry", "was wrong", "correction", "dreaming", "insane", "too cheap", "too much", "impossible"];

/// Words that two sentences may share by chance.
const COMMON: &[&str] = &[
    "what", "that", "with", "from", "this", "said", "have", "just", "they", "them", "will", "there", "which",
    "because", "about", "donc", "pour", "avec", "dans", "mais", "cest",
];

/// What was said last: the subject where it is to be taken down, too, and the sentences of the answers.
fn said_last(request: &Request) -> Vec<String> {
    let mut found = Vec::new();
    for line in last_words(request).iter().flat_map(|words| words.lines()) {
        let line = line.trim();
        let line = line.strip_prefix("- ").unwrap_or(line);
        let mut open = String::new();
        for word in line.split(' ') {
            if !open.is_empty() {
                open.push(' ');
            }
            open.push_str(word);
            if word.ends_with(['.', '!', '?', ';']) && word.chars().count() > 3 || word.ends_with("...") {
                found.push(std::mem::take(&mut open));
            }
        }
        found.push(open);
    }
    let bare = |one: String| one.trim().trim_end_matches([',', ';']).to_owned();
    found.into_iter().map(bare).filter(|one| one.chars().any(char::is_alphanumeric)).collect()
}

/// The parts of a sentence: it is cut behind a comma or a colon, and before "and", "but" and "because".
fn clauses(sentence: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for word in sentence.split(' ') {
        let cut = found.last().is_some_and(|open| open.ends_with([',', ':']))
            || ["and", "et", "but", "because"].contains(&word);
        if cut && found.last().is_some_and(|open| !open.is_empty()) {
            found.push(String::new());
        }
        let open = found.last_mut().expect("there is one");
        if !open.is_empty() {
            open.push(' ');
        }
        open.push_str(word);
    }
    found
}

fn trimmed(clause: &str) -> String {
    clause.trim_matches([' ', ',', ';', ':']).to_owned()
}

/// The words of a text that carry something: long ones by their beginning, and figures.
fn words(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    let split = lower.split(|letter: char| !letter.is_alphanumeric() && letter != '%');
    let carries = |word: &&str| {
        word.chars().count() > 3 && !COMMON.contains(word) || word.chars().any(|letter| letter.is_ascii_digit())
    };
    split.filter(carries).map(|word| word.chars().take(6).collect()).collect()
}

/// How much two texts have in common; a figure counts for three words.
fn common(one: &str, other: &str) -> usize {
    let weight = |word: &String| if word.chars().any(|letter| letter.is_ascii_digit()) { 3 } else { 1 };
    words(one).intersection(&words(other)).map(weight).sum()
}

fn kind(sentence: &str) -> &'static str {
    let lower = sentence.to_lowercase();
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
    kinds(prompt).into_iter().map(|(id, _, text)| (id, text)).collect()
}

/// The same with the kind of each.
fn kinds(prompt: &str) -> Vec<(u64, String, String)> {
    let mut found: Vec<(u64, String, String)> = Vec::new();
    for line in prompt.lines() {
        let Some((number, rest)) = line.strip_prefix('#').and_then(|line| line.split_once(' ')) else { continue };
        let Ok(number) = number.parse::<u64>() else { continue };
        if let Some(gone) = rest.strip_prefix("takes away #") {
            let gone: String = gone.chars().take_while(char::is_ascii_digit).collect();
            found.retain(|(id, ..)| id.to_string() != gone);
        } else if let Some((kind, text)) = rest.split_once(": ") {
            found.push((number, kind.to_owned(), text.to_owned()));
        }
    }
    found
}

/// What a sentence refuses, up to its no.
fn refusal(sentence: &str) -> Option<String> {
    let no = regex::Regex::new(r"(?i)^.*?: non?(?:[.,]|$)").expect("a regular expression");
    no.find(sentence).map(|found| found.as_str().trim_end_matches(['.', ',']).to_owned())
}

fn takes_back(clause: &str) -> bool {
    let lower = clause.to_lowercase();
    refusal(clause).is_some() || BACK.iter().any(|word| lower.contains(word))
}

/// Whether a sentence begins by taking back the one before it.
fn corrects(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    ["no, sorry", "no sorry", "sorry, we", "no, we", "non, on", "non, c"].iter().any(|start| lower.starts_with(start))
}

/// What is taken down: words of the user, and what holds of them.
struct Taken {
    quote: String,
    text: String,
}

impl Taken {
    fn whole(words: String) -> Taken {
        Taken { text: words.clone(), quote: words }
    }
}

/// The parts of a sentence that say what holds now, where it takes back `old`: without those that only judge the old figure, or say
/// that it is not that one.
fn holding(parts: &[String], old: &str) -> Vec<String> {
    let figures = |text: &str| -> BTreeSet<String> {
        words(text).into_iter().filter(|word| word.chars().any(|letter| letter.is_ascii_digit())).collect()
    };
    let is_old = |part: &&String| {
        let lower = part.to_lowercase();
        let against =
            JUDGED.iter().any(|word| lower.contains(word)) || ["not ", "pas "].iter().any(|no| lower.starts_with(no));
        against && !figures(part).is_disjoint(&figures(old))
    };
    let kept: Vec<String> = parts.iter().filter(|part| !is_old(part)).cloned().collect();
    // What stands before a no that goes on ("we thought of it, but finally no: …") is what was.
    let no = kept
        .iter()
        .rposition(|part| ["no:", "no :", "non:", "non :"].iter().any(|end| part.to_lowercase().ends_with(end)));
    no.filter(|at| at + 1 < kept.len()).map_or(kept.clone(), |at| kept[at..].to_vec())
}

fn minutes(request: &Request, prompt: &str) -> Value {
    let mut known = entries(prompt);
    let (mut revoked, mut nothing, mut taken) = (Vec::new(), Vec::new(), Vec::<Taken>::new());
    for sentence in said_last(request) {
        if corrects(&sentence) {
            nothing.extend(taken.pop().map(|one| one.quote));
        }
        let mut parts = clauses(&sentence);
        // "And paper: no." is one refusal, though a colon parts it.
        let refusal = refusal(&sentence).map(|words| vec![words]);
        for clause in refusal.unwrap_or_else(|| clauses(&sentence)).iter().filter(|clause| takes_back(clause)) {
            let about = if words(clause).is_empty() { &sentence } else { clause };
            let weight = |text: &str| common(text, about) * 10 + common(text, &sentence);
            let earlier = known.iter().map(|(id, text)| (weight(text), false, *id, text.clone()));
            let now = taken
                .iter()
                .enumerate()
                .map(|(index, one)| (weight(&one.quote), true, index as u64, one.quote.clone()));
            let Some((_, is_new, id, text)) = earlier.chain(now).max() else { continue };
            if common(&text, &sentence) == 0 {
                continue;
            }
            // What is left of it is taken down again, in the words of then.
            let left = clauses(&text);
            let gone = left.iter().max_by_key(|part| weight(part)).cloned().unwrap_or_default();
            if is_new {
                taken.retain(|one| one.quote != text);
                nothing.push(text.clone());
            } else {
                revoked.push(json!({"id": id, "quote": trimmed(clause)}));
                known.retain(|(one, _)| *one != id);
            }
            let rest = left.iter().filter(|part| **part != gone && !words(part).is_empty());
            taken.extend(rest.map(|part| Taken::whole(trimmed(part))));
            nothing.push(trimmed(&gone));
            parts = holding(&parts, &text);
        }
        match trimmed(&parts.join(" ")) {
            text if text.is_empty() => nothing.push(sentence),
            text => taken.push(Taken { quote: sentence, text }),
        }
    }
    let (mut said, mut decided) = (Vec::new(), Vec::new());
    for Taken { quote, text } in &taken {
        let lower = quote.to_lowercase();
        let plain = ["decided", "we will", "c'est décidé", "rejected"].iter().any(|word| lower.contains(word));
        if plain && !lower.contains("not decided") {
            decided.push(json!({"quote": quote, "text": text, "why": "", "rejected": ""}));
        } else {
            said.push(json!({"quote": quote, "kind": kind(quote), "text": text}));
        }
    }
    json!({"said": said, "decided": decided, "planned": [], "revoked": revoked, "private": [], "nothing": nothing})
}

/// In which section of a brief an entry of a kind is told.
fn section(kind: &str) -> &'static str {
    match kind {
        "constraint" => "constraints",
        "goal" => "goals",
        "user" => "users",
        "scope" | "out" => "scope",
        "decision" => "decisions",
        "idea" => "options",
        "risk" => "risks",
        "step" => "steps",
        "open" | "contested" => "open",
        _ => "constraints",
    }
}

/// How many entries it writes down before it passes over one.
const BEFORE_ONE_IS_LOST: usize = 2;

/// Of these, those that it does not pass over.
fn attended<T>(all: Vec<T>) -> Vec<T> {
    let lost = |index: &usize| index % (BEFORE_ONE_IS_LOST + 1) == BEFORE_ONE_IS_LOST;
    all.into_iter().enumerate().filter(|(index, _)| !lost(index)).map(|(_, one)| one).collect()
}

/// A brief that adds nothing: its problem is the first entry, and of the others it passes over each third.
fn brief(properties: &Value, prompt: &str) -> Value {
    let mut value = json!({});
    let held = attended(kinds(prompt));
    for (place, (id, kind, text)) in held.into_iter().enumerate() {
        let section = if place == 0 { "problem" } else { section(&kind) };
        let before = value[section].as_str().unwrap_or_default();
        let line = if place == 0 { format!("{text} [{id}]") } else { format!("{before}- {text} [{id}]\n") };
        value[section] = json!(line);
    }
    if value["problem"].is_null() {
        value["problem"] = json!("Nothing was said");
    }
    value["lead"] = value["problem"].clone();
    value["title"] = json!("What is to be made");
    in_parts(value, properties)
}

/// The changes to it: what it is told that it left out, but for each third of that, as the last word of the brief.
fn changes(request: &Request) -> Value {
    let line = regex::Regex::new(r"(?m)^- (?:S\d+ )?\[(\d+)\] (?:\(lacks .*?\) )?(.*)$").expect("a regular expression");
    let task = task(request);
    let missing: Vec<_> = line.captures_iter(&task).collect();
    let lines = attended(missing).into_iter().map(|found| format!("- {} [{}]\n", &found[2], &found[1]));
    let mut value = json!({"changes": [{"section": "closing", "text": lines.collect::<String>()}]});
    if !request.schema()["properties"]["chatter"].is_null() {
        value["chatter"] = json!([]);
    }
    value
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
