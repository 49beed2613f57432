//! A model for councils: it answers each prompt by the names in the schema that comes with it. Who it speaks for it tells
//! by the persona's prompt; where each stands in which cycle is the test's to say.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::model_server::{ModelServer, Request, Response};

/// Where somebody stands in a cycle: option and confidence.
pub(super) type Stand = fn(name: &str, cycle: usize) -> (&'static str, u64);

/// How the model judges, and what it says.
#[derive(Clone)]
pub(crate) struct Brain {
    /// By round: the questions, each with the default that it suggests.
    pub(crate) rounds: Vec<Vec<(&'static str, &'static str)>>,
    pub(crate) seats: Vec<&'static str>,
    pub(crate) stand: Stand,
    /// Whether everybody says the same in each cycle.
    pub(crate) repeats: bool,
    /// What somebody proposes in a cycle.
    pub(crate) proposal: fn(name: &str, cycle: usize) -> Option<Value>,
    /// Whether who stood elsewhere would still decide otherwise, and the hole that reviewers find in the answer.
    pub(crate) dissents: bool,
    pub(crate) hole: &'static str,
    /// Which options the moderator says are one.
    pub(crate) alike: fn(prompt: &str) -> Value,
    /// Where its first reader stumbles, and what of the user's it misses, by the prompt.
    pub(crate) stumbles: Vec<Value>,
    pub(crate) misses: fn(prompt: &str) -> Vec<String>,
    /// How the moderator mends the answer: by the prompt, and the ids of what is to be settled. What it does not say stays.
    pub(crate) mend: fn(prompt: &str, ids: &[&str]) -> Value,
    /// Whether a council is worth it.
    pub(crate) worth: &'static str,
    /// Which answer the judge prefers, by what it reads first.
    pub(crate) judge: fn(first: &str, second: &str) -> &'static str,
    /// How often each persona has spoken.
    pub(crate) spoken: Arc<Mutex<BTreeMap<String, usize>>>,
    pub(crate) names: BTreeMap<String, String>,
}

/// The architect and QA for A; the contrarian for B, and in the second cycle less sure of it.
fn drifting(name: &str, cycle: usize) -> (&'static str, u64) {
    match (name, cycle) {
        ("Devil's Advocate", 1) => ("B", 80),
        ("Devil's Advocate", _) => ("B", 30),
        _ => ("A", 80),
    }
}

/// Two sides that never move.
pub(super) fn stuck(name: &str, _: usize) -> (&'static str, u64) {
    if name == "Devil's Advocate" { ("B", 70) } else { ("A", 70) }
}

/// Everybody has another opinion in each cycle.
pub(super) fn restless(name: &str, cycle: usize) -> (&'static str, u64) {
    let options = ["A", "B"];
    (options[(name.len() + cycle) % 2], 70)
}

impl Default for Brain {
    fn default() -> Brain {
        Brain {
            rounds: Vec::new(),
            seats: vec!["Senior Architect", "QA Engineer"],
            stand: drifting,
            repeats: false,
            proposal: |_, _| None,
            dissents: true,
            hole: "",
            stumbles: Vec::new(),
            alike: |_| json!([]),
            misses: |_| Vec::new(),
            mend: |_, ids| {
                let holes: Vec<Value> = ids.iter().map(|id| json!({"id": id, "how": "mended", "why": ""})).collect();
                let step = "| Ask for a way out | Ann *(suggested)* | May *(suggested)* |";
                let memo =
                    if holes.is_empty() { String::new() } else { memo("P1").replace(STEP, &format!("{STEP}\n{step}")) };
                json!({"memo": memo, "holes": holes})
            },
            worth: "council",
            judge: |_, _| "equal",
            spoken: Arc::default(),
            names: names(),
        }
    }
}

/// Names of personas by the beginning of their prompts.
fn names() -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("personas/council");
    let files = std::fs::read_dir(folder).expect("there are personas");
    files
        .map(|file| std::fs::read_to_string(file.expect("it can be listed").path()).expect("it is text"))
        .map(|text| {
            let (front, body) = text.split_once("\n---\n\n").or(text.split_once("\n---\n")).expect("front matter");
            let name = front.lines().find_map(|line| line.strip_prefix("name: ")).expect("a name");
            (body.trim().chars().take(60).collect(), name.to_owned())
        })
        .collect()
}

impl Brain {
    pub(super) fn serve(mut self) -> ModelServer {
        self.spoken = Arc::default();
        ModelServer::start(move |request| self.answer(request))
    }

    /// A reply with a count of tokens that grows with what is read and written.
    pub(crate) fn answer(&self, request: &Request) -> Response {
        let text = self.reply(request).to_string();
        let read = request.prompt().len() + request.system().len();
        Response::text(text.clone()).usage(read as u64 / 4, text.len() as u64 / 4)
    }

    /// The persona that a request speaks as; empty where it is nobody.
    pub(super) fn speaker(&self, request: &Request) -> &str {
        let system: String = request.system().trim().chars().take(60).collect();
        let prompt = request.prompt();
        let told = |name: &&String| {
            prompt
                .strip_prefix("You are ")
                .and_then(|rest| rest.strip_prefix(name.as_str()))
                .is_some_and(|rest| rest.starts_with([',', '.']))
        };
        self.names.get(&system).or_else(|| self.names.values().find(told)).map_or("", String::as_str)
    }

    pub(super) fn reply(&self, request: &Request) -> Value {
        let properties = &request.schema()["properties"];
        let has = |name: &str| !properties[name].is_null();
        if has("ambiguous") {
            self.judgement(&whole(request))
        } else if has("worth") {
            json!({"because": "Two sides can be argued.", "reversible": false, "dominated": false, "worth": self.worth})
        } else if has("kind") {
            let options = [
                ("Split now", "Split billing out now"),
                ("Leave it", "Leave billing where it is"),
                ("Boundary first", "Draw the boundary inside the monolith first"),
            ];
            let named = properties["options"]["items"]["type"] == "object";
            let options: Vec<Value> = options
                .iter()
                .map(|(name, text)| if named { json!({"name": name, "text": text}) } else { json!(text) })
                .collect();
            let mut value = json!({"kind": "architecture", "topic": "Shall billing become its own service this quarter?", "options": options});
            if has("personas") {
                let seats = self.seats.iter().map(|name| json!({"name": name, "reason": "knows where billing hurts"}));
                value["personas"] = seats.collect();
            }
            value
        } else if has("sure") {
            self.position(request, properties)
        } else if has("report") {
            let mut value = json!({"report": "Nobody has shown that two deployments are cheaper than one.",
                   "would_convince": "A month of deploys with the time each of them took."});
            if has("dissents") {
                value["dissents"] = self.dissents.into();
                value["hole"] = self.hole.into();
            }
            value
        } else if has("stumbles") {
            json!({"misses": (self.misses)(&request.prompt()), "stumbles": self.stumbles})
        } else if has("one") {
            json!({"one": (self.alike)(&request.prompt())})
        } else if has("memo") {
            self.memo(request, properties)
        } else if has("would_decide") {
            let line = |text: &str| json!({"text": text, "from": ["P1"]});
            json!({"because": line("Nobody has counted the outages."), "would_decide": [line("A month of outages, counted.")], "next_steps": [line("Count them.")]})
        } else if has("option") {
            answer(properties)
        } else if has("decision") {
            json!({"decision": "Split it, alone.", "tradeoffs": ["Two deployments"], "assumptions": ["The team stays"],
                   "rejected": ["Waiting: it costs more each month"], "next_steps": ["Write the contract tests"]})
        } else if has("taken_back") {
            json!({"taken_back": []})
        } else if has("better") {
            let prompt = whole(request);
            let (first, second) = prompt.split_once("=== Second answer").expect("two answers");
            let mut value = json!({"because": "It begins sooner.", "better": (self.judge)(first, second)});
            if has("first") {
                let scores = json!({"grounded": 7, "decisive": 7, "risks": 6, "dissent": 5, "next_step": 8});
                (value["first"], value["second"]) = (scores.clone(), scores);
            }
            value
        } else {
            panic!("no reply is known for {properties}")
        }
    }

    /// Writes an answer, or mends it: as the moderator, as a model without a council, or where nobody stands for an option.
    fn memo(&self, request: &Request, properties: &Value) -> Value {
        let has = |name: &str| !properties[name].is_null();
        let ids = properties["holes"]["items"]["properties"]["id"]["enum"].as_array().cloned().unwrap_or_default();
        let ids: Vec<&str> = ids.iter().filter_map(Value::as_str).collect();
        let mut value = if has("option") {
            // What was found in the draft is mended in the memo.
            let mut value = written(properties, request);
            let anew = (self.mend)(&request.prompt(), &ids);
            for name in ["memo", "decision", "title"] {
                if anew[name].as_str().is_some_and(|text| !text.is_empty()) {
                    value[name] = anew[name].clone();
                }
            }
            if !ids.is_empty() {
                value["holes"] = anew["holes"].clone();
            }
            value
        } else if has("next_steps") {
            json!({"next_steps": ["Count the outages, Ann, this week"], "decision": "Nobody has counted the outages [P1].",
                   "title": "No decision on billing yet",
                   "memo": "Nobody has counted the outages [P1].\n\n## What would decide it\n\nA month of outages, counted."})
        } else if has("against") {
            json!({"against": "Two people are few.", "memo": "Split it, alone.\n\n## Why\n\nIt halves the outages.",
                   "decision": "Split it, alone.", "title": "Split it?"})
        } else {
            let mut value = (self.mend)(&request.prompt(), &ids);
            for name in ["memo", "decision", "title"] {
                if value[name].is_null() {
                    value[name] = "".into();
                }
            }
            if ids.is_empty() {
                value.as_object_mut().expect("an object").remove("holes");
            }
            value
        };
        if has("taken_back") && value["taken_back"].is_null() {
            value["taken_back"] = json!([]);
        }
        value
    }

    /// Asks the questions of the round that comes next, by how many are settled.
    fn judgement(&self, prompt: &str) -> Value {
        let marks = ["→", "- Assuming:", "- Left open", "Assumed, because the user did not answer"];
        let settled: usize = marks.iter().map(|mark| prompt.matches(mark).count()).sum();
        let mut before = 0;
        for round in &self.rounds {
            if before == settled {
                let question = |(question, default): &(&str, &str)| json!({"question": question, "default": default, "about": "scope", "why": "It changes the costs."});
                let questions: Vec<Value> = round.iter().map(question).collect();
                return json!({"ambiguous": true, "because": ["The scope is open."], "questions": questions});
            }
            before += round.len();
        }
        json!({"ambiguous": false, "because": ["Nothing that matters is missing."], "questions": []})
    }

    fn position(&self, request: &Request, properties: &Value) -> Value {
        let name = self.speaker(request);
        let asked = request.prompt().contains("The user asks you");
        let mut spoken = self.spoken.lock().expect("nobody panics while it is held");
        let cycle = spoken.entry(name.to_owned()).or_default();
        *cycle += usize::from(!asked);
        let (option, sure) = (self.stand)(name, *cycle);
        let said = |kind: &str| {
            if self.repeats {
                return "The nightly export breaks whenever somebody renames columns".to_owned();
            }
            let words: Vec<String> = (0..4).map(|place| word(&format!("{name} {kind} {cycle} {place}"))).collect();
            words.join(" ")
        };
        let mut value = json!({"points": [said("alpha")], "recommends": format!("Begin with the contract tests of {name}"), "stance": option, "sure": sure});
        if let Some(ids) = properties["responds"]["items"]["properties"]["to"]["enum"].as_array() {
            let to = ids.iter().find(|id| is_of_another(request, name, id.as_str().unwrap_or_default()));
            value["responds"] = json!([{"to": to, "how": "challenges", "why": said("omega")}]);
        }
        if !properties["proposals"].is_null() {
            let proposed = (self.proposal)(name, *cycle);
            value["proposals"] = proposed.clone().into_iter().collect();
            if proposed.is_some() {
                value["stance"] = "proposal".into();
            }
        }
        value
    }
}

/// A word that nobody knows, another one for each seed.
fn word(seed: &str) -> String {
    let syllables = ["ba", "do", "ki", "lu", "me", "no", "pa", "ri", "so", "tu", "va", "we", "xi", "yo", "zu", "fe"];
    let number =
        seed.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    (0..4).map(|place| syllables[(number >> (20 + 4 * place)) as usize % 16]).collect()
}

/// All that a request says to the model.
pub(crate) fn whole(request: &Request) -> String {
    let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
    let texts = messages.iter().map(|message| match &message["content"] {
        Value::String(text) => text.clone(),
        blocks => blocks
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|block| block["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n\n"),
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

/// The ids of all points in a conversation, in their order.
pub(crate) fn points(conversation: &str) -> Vec<String> {
    let begins = |line: &&str| line.starts_with('P') && line[1..].starts_with(|letter: char| letter.is_ascii_digit());
    let id = |line: &str| line.split([':', ' ']).next().unwrap_or_default().to_owned();
    conversation.lines().filter(begins).map(id).collect()
}

/// Whether a point was made by somebody else: in a conversation each turn stands below its speaker's name.
fn is_of_another(request: &Request, name: &str, id: &str) -> bool {
    let whole = whole(request);
    let turn = whole.split("\n## ").find(|turn| points(turn).iter().any(|own| own == id));
    turn.is_none_or(|turn| !turn.starts_with(name))
}

/// A step of an answer.
pub(super) const STEP: &str = "| Write the contract tests | The team | May *(suggested)* |";

/// The memo of a moderator, with marks of a point.
pub(super) fn memo(point: &str) -> String {
    format!(
        "Split billing out, behind contract tests [{point}].\n\n\
         ## Why\n\n- The tests pin what both sides mean [{point}].\n\n\
         ## What you do\n\n| What | Who | By |\n|---|---|---|\n{STEP}\n\n\
         ## What speaks against it\n\nWho is called at night counts nights, others do not [{point}].\n\n\
         ## What nobody knows\n\nWhether two people can work on nothing else [{point}]."
    )
}

/// An answer of a large mind: its notes and its memo, with marks of the last point.
fn written(properties: &Value, request: &Request) -> Value {
    let points = points(&whole(request));
    let last = points.last().expect("somebody said something");
    let others =
        properties["rejected"]["items"]["properties"]["option"]["enum"].as_array().cloned().unwrap_or_default();
    let rejected: Vec<Value> = others
        .iter()
        .map(|other| json!({"option": other, "why": format!("It only moves the problem [{last}].")}))
        .collect();
    json!({
        "option": properties["option"]["enum"][0], "against": "Two people are few.", "rejected": rejected,
        "tradeoffs": [format!("Two deployments instead of one [{last}].")],
        "assumptions": ["Two people can work on nothing else."],
        "next_steps": ["Write the contract tests, the team, May"],
        "memo": memo(last), "title": "Billing on its own?",
        "decision": format!("Split billing out, behind contract tests [{last}]."),
    })
}

/// An answer of a small mind, line by line.
fn answer(properties: &Value) -> Value {
    let option = &properties["option"]["enum"][0];
    let ids = &properties["decision"]["properties"]["from"]["items"]["enum"];
    let last = ids.as_array().and_then(|ids| ids.last()).expect("somebody said something");
    let all = properties["rejected"]["items"]["properties"]["option"]["enum"].as_array().expect("options");
    let rejected = all.iter().filter(|other| *other != option);
    let rejected: Vec<Value> =
        rejected.map(|other| json!({"option": other, "why": "It only moves the problem.", "from": [ids[0]]})).collect();
    json!({
        "option": option, "decision": {"text": "Split billing out, behind contract tests.", "from": [ids[0], last]},
        "tradeoffs": [{"text": "Two deployments instead of one.", "from": [last]}],
        "assumptions": [{"text": "Two people can work on nothing else.", "from": [ids[0]]}],
        "rejected": rejected,
        "next_steps": [{"text": "Write the contract tests.", "from": [ids[0]]}],
    })
}
