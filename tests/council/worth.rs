//! What of a user's facts reaches the answer: six cases of somebody who has not seen the prompts (`tests/worth/council`), played with
//! a model that works from what it reads alone. It passes over every third thing, and when it reads its answer over every twelfth of
//! what it is asked about; it tells figures that nobody said, and quotes what nobody said: so what reaches the answer all the same, and
//! what does not, is the mode's doing.
//!
//! `NIETZ_WORTH_FLOW=FILE` plays another council.lua, and `--nocapture` shows the figures.

use std::path::Path;

use regex::{Regex, RegexBuilder};
use serde_json::{Value, json};

use super::model::{points, whole};
use super::table::list;
use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Request, Response};

/// What a case came to: held facts and those that must be there, each with how many reached the answer; the rest are counts.
#[derive(Debug, Default)]
struct Figures {
    held: (usize, usize),
    must: (usize, usize),
    revoked: usize,
    invented: usize,
    traps: usize,
}

fn cases() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/worth/council");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("there are cases").map(|file| file.expect("one").path()).collect();
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).expect("it is text");
        nietz::schema::source::parse(&text, nietz::model::collection::Format::Yaml, "case").expect("it can be read")
    };
    files.iter().map(read).collect()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// The clauses of a line: a comma between digits ends none.
fn clauses(line: &str) -> Vec<String> {
    let ends = Regex::new(r"[,;:.!?]+\s+").expect("it is one");
    ends.split(line)
        .map(|piece| piece.trim_end_matches(['.', '!', '?', ',']).to_owned())
        .filter(|piece| piece.split(' ').count() > 1)
        .collect()
}

/// What the user said, as the model reads it, without what it reads to hold no longer.
fn read(conversation: &str) -> Vec<String> {
    let said = Regex::new(r"(?m)^(?:U\d+: |Facts: |- )(.*)$").expect("it is one");
    let struck: Vec<&str> =
        conversation.lines().filter_map(|line| line.strip_prefix("They hold no longer: ")).collect();
    let all = said.captures_iter(conversation).flat_map(|found| clauses(&found[1]));
    all.filter(|clause| !struck.iter().any(|words| clause.contains(words) || words.contains(clause.as_str()))).collect()
}

/// What its reader misses: of what it is asked to judge all but every twelfth, and never more than it may.
fn misses(prompt: &str) -> Vec<String> {
    let listed = Regex::new(r"(?m)^- ([UQ]\d+)\b").expect("it is one");
    let ids = listed.captures_iter(prompt).map(|found| found[1].to_owned()).enumerate();
    ids.filter(|(place, _)| place % 12 != 11).map(|(_, id)| id).take(24).collect()
}

/// The memo that stands behind a heading of the conversation, up to what ends it.
fn told<'a>(conversation: &'a str, heading: &str, end: &str) -> Option<&'a str> {
    let (_, out) = conversation.rsplit_once(heading)?;
    let (_, memo) = out.split_once("\n\nTitle: ")?.1.split_once("\n\n")?;
    Some(memo.split_once(end)?.0)
}

/// What a final memo begins with, and what one that is mended does.
const DRAFT: (&str, &str) = ("# A first draft of the answer", "\n\nThe debate decides for ");
const ANSWER: (&str, &str) = ("# The answer as it would go out", "\n\nI have read all of it.");

/// How it writes a memo anew: it tells what its reader missed, and a figure that nobody said.
fn mended(prompt: &str, conversation: &str, (heading, end): (&str, &str)) -> Value {
    let memo = told(conversation, heading, end).expect("a memo");
    let missed = Regex::new(r"(?m)^- (?:\[(U\d+)\] )?(.*)$").expect("it is one");
    let (_, listed) = prompt.split_once("misses in it.").unwrap_or_default();
    let (listed, _) = listed.split_once("\n\nFound by").unwrap_or((listed, ""));
    let told: Vec<String> = missed
        .captures_iter(listed)
        .map(|found| format!("- {} [{}]", &found[2], found.get(1).map_or("P1", |id| id.as_str())))
        .collect();
    let memo = format!("{memo}\n\n## And\n\n{}\n\n- They pay 123,456 for it.", told.join("\n"));
    json!({"memo": memo, "decision": "", "title": "", "holes": [{"id": "H1", "how": "mended", "why": ""}]})
}

/// An answer of a large mind: of what it reads it passes over every third thing, and tells figures and quotes that nobody said.
fn written(properties: &Value, conversation: &str) -> Value {
    let said = Regex::new(r"(?m)^(U\d+): (.*)$").expect("it is one");
    let struck: Vec<&str> =
        conversation.lines().filter_map(|line| line.strip_prefix("They hold no longer: ")).collect();
    let holds = |clause: &String| !struck.iter().any(|words| clause.contains(words) || words.contains(clause.as_str()));
    let mut why = String::from("Do it, as far as it was said.\n\n## Why\n\n");
    let mut first = String::new();
    for (place, (id, clause)) in said
        .captures_iter(conversation)
        .flat_map(|found| clauses(&found[2]).into_iter().filter(holds).map(move |clause| (found[1].to_owned(), clause)))
        .enumerate()
    {
        if place % 3 != 2 {
            why.push_str(&format!("- {clause} [{id}]\n"));
        }
        if first.is_empty() {
            first = clause;
        }
    }
    why.push_str("- It costs 987,654 euros.\n");
    why.push_str(&format!("- {first}. That is 123,456 in all (1,000 × 12)."));
    let mut value = json!({"taken_back": [{"quote": first, "by": "nobody ever said these words"}],
        "option": properties["option"]["enum"][0], "against": "Nobody knows.", "rejected": [], "tradeoffs": ["It costs."],
        "assumptions": [], "next_steps": ["Begin"], "memo": why, "decision": "Do it, as far as it was said.", "title": "What to do"});
    value.as_object_mut().expect("an object").retain(|name, _| !properties[name].is_null());
    value
}

/// A reply by the schema: lists of lines hold what was read, as far as it fits.
fn reply(request: &Request) -> Value {
    let conversation = whole(request);
    let schema = request.schema();
    let has = |name: &str| !schema["properties"][name].is_null();
    if has("ambiguous") {
        return json!({"because": ["It is clear."], "ambiguous": false, "questions": []});
    } else if has("kind") {
        let seats = ["Senior Architect", "Financial Officer"].map(|name| json!({"name": name, "reason": "it knows"}));
        let options =
            [("Do it", "Do what was asked"), ("Leave it", "Leave it as it is"), ("A part", "Try a part of it first")];
        let options = options.map(|(name, text)| json!({"name": name, "text": text}));
        return json!({"kind": "general", "topic": "What is to be done here?", "options": options, "personas": seats});
    } else if has("stumbles") {
        return json!({"misses": misses(&request.prompt()), "stumbles": []});
    } else if has("memo") && !has("against") {
        return mended(&request.prompt(), &conversation, ANSWER);
    } else if has("memo") && has("option") && conversation.contains(DRAFT.0) {
        let mut value = written(&schema["properties"], &conversation);
        let anew = mended(&request.prompt(), &conversation, DRAFT);
        value["memo"] = anew["memo"].clone();
        if has("holes") {
            value["holes"] = anew["holes"].clone();
        }
        return value;
    }
    let facts = read(&conversation);
    let number = request.number;
    if has("sure") {
        let point = |place: usize| facts.get((number * 3 + place) % facts.len().max(1)).cloned().unwrap_or_default();
        let stance = ["A", "B"][number % 2];
        let mut value = json!({"points": [format!("It matters that {}", point(0))], "recommends": "Look at the figures first", "stance": stance, "sure": 60});
        if let Some(ids) = schema["properties"]["responds"]["items"]["properties"]["to"]["enum"].as_array() {
            let turn = |id: &str| {
                conversation.split("\n## ").find(|turn| points(turn).iter().any(|own| own == id)).map(str::to_owned)
            };
            let own = |id: &Value| {
                turn(id.as_str().unwrap_or_default()).is_some_and(|turn| {
                    request.prompt().contains(&format!("You are {}", turn.split(" stands").next().unwrap_or_default()))
                })
            };
            let to = ids.iter().find(|id| !own(id));
            value["responds"] = json!([{"to": to, "how": "challenges", "why": format!("But {}", point(1))}]);
        }
        if has("proposals") {
            value["proposals"] = json!([]);
        }
        return value;
    } else if has("report") {
        let mut value = json!({"report": "The figures speak against it.", "would_convince": "Other figures."});
        if has("dissents") {
            (value["dissents"], value["hole"]) = (true.into(), "Nobody has said who begins.".into());
        }
        return value;
    }
    written(&schema["properties"], &conversation)
}

fn matches(fact: &Value, text: &str) -> bool {
    list(&fact["find"]).iter().all(|pattern| {
        let pattern = pattern.as_str().unwrap_or_default();
        RegexBuilder::new(pattern)
            .case_insensitive(true)
            .build()
            .unwrap_or_else(|why| panic!("{pattern}: {why}"))
            .is_match(text)
    })
}

fn one_line(said: &str) -> String {
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Plays a case: the first turn is there from the beginning, the others are said between the cycles, and at the end the user strikes
/// what they took back.
fn play(case: &Value) -> Value {
    let own = std::env::var("NIETZ_WORTH_FLOW").ok();
    let flow = own.clone().unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/flows/council.lua").to_owned());
    let server = ModelServer::start(|request| Response::text(reply(request).to_string()));
    let env = Env::with(&server);
    let turns: Vec<String> = list(&case["script"]).iter().map(|turn| one_line(text(turn, "says"))).collect();
    let middle = turns.len().div_ceil(2);
    // Nothing more before the debate begins; another flow does not ask.
    let mut lines: Vec<String> = if own.is_none() { vec![String::new()] } else { Vec::new() };
    lines.extend(turns[1..middle].iter().cloned());
    lines.push(String::new());
    lines.extend(turns[middle..].iter().cloned());
    if own.is_none() {
        let revoked = list(&case["facts"]).iter().filter(|fact| fact["status"] == "revoked");
        lines.extend(revoked.map(|fact| format!("/strike {}", one_line(text(fact, "quote")))));
    }
    // Nothing more, before the answer is written and behind it.
    lines.extend([String::new(), String::new(), String::new()]);
    let mut arguments = vec![
        flow.as_str(),
        text(case, "topic"),
        "--context",
        turns[0].as_str(),
        "--cycles",
        "3",
        "--lang",
        text(case, "lang"),
    ];
    if own.is_none() {
        arguments.extend(["--consider", "never"]);
    }
    let stdin: String = lines.iter().map(|line| format!("{line}\n")).collect();
    env.run(arguments).stdin(stdin).go().result()
}

fn figures(case: &Value, answer: &str) -> Figures {
    let facts = list(&case["facts"]);
    let mut found = Figures::default();
    let mut missing = Vec::new();
    for fact in facts.iter().filter(|fact| fact["status"] != "revoked") {
        found.held.1 += 1;
        let must = list(&case["must_contain"]).contains(&fact["id"]);
        found.must.1 += usize::from(must);
        if matches(fact, answer) {
            found.held.0 += 1;
            found.must.0 += usize::from(must);
        } else {
            missing.push(text(fact, "text"));
        }
    }
    // What the user said when they took it back, or later, is the correction, and not what was corrected.
    let source = Regex::new(r" ?\*?\([^)]*#\d+[^)]*\)\*?$|\*\*|^- |[“”]").expect("it is one");
    for fact in facts.iter().filter(|fact| fact["status"] == "revoked") {
        let from = facts
            .iter()
            .find(|other| other["id"] == fact["revoked_by"])
            .map_or(u64::MAX, |by| by["turn"].as_u64().unwrap_or(0));
        let turns = list(&case["script"]).iter().filter(|turn| turn["turn"].as_u64() >= Some(from));
        let later: String = turns.map(|turn| one_line(text(turn, "says"))).collect();
        let rest = |line: &str| {
            let line = source.replace_all(line, "").into_owned();
            clauses(&line).into_iter().filter(|clause| !later.contains(clause.as_str())).collect::<Vec<_>>().join(", ")
        };
        let back: Vec<&str> = answer.lines().filter(|line| matches(fact, &rest(line))).collect();
        found.revoked += usize::from(!back.is_empty());
        if !back.is_empty() {
            println!("  revoked: {} in {back:?}", text(fact, "text"));
        }
    }
    found.invented = ["987,654", "123,456"].iter().filter(|figure| answer.contains(**figure)).count();
    let hit = |trap: &&Value| list(&trap["find"]).iter().any(|pattern| matches(&json!({"find": [pattern]}), answer));
    for trap in list(&case["traps"]).iter().filter(hit) {
        found.traps += 1;
        println!("  trap: {}", text(trap, "text"));
    }
    println!("{}: {found:?}, missing: {missing:?}", text(case, "name"));
    found
}

#[test]
fn what_the_user_says_reaches_the_answer_and_what_they_took_back_does_not() {
    let all = cases();
    assert_eq!(all.len(), 6);
    let mut sum = Figures::default();
    for case in &all {
        let session = play(case);
        let found = figures(case, text(&session, "finalAnswer"));
        sum.held = (sum.held.0 + found.held.0, sum.held.1 + found.held.1);
        sum.must = (sum.must.0 + found.must.0, sum.must.1 + found.must.1);
        sum.revoked += found.revoked;
        sum.invented += found.invented;
        sum.traps += found.traps;
    }
    println!("sum: {sum:?}");
    if std::env::var_os("NIETZ_WORTH_FLOW").is_none() {
        assert!(sum.must.0 * 100 >= 95 * sum.must.1 && sum.held.0 * 100 >= 95 * sum.held.1, "{sum:?}");
        assert_eq!((sum.revoked, sum.invented), (0, 0), "{sum:?}");
    }
}
