//! A model for brainstorms: it answers each prompt by the names in the schema that comes with it, validly and the same
//! way each time. Which words it uses depends on what it was sent alone.

use serde_json::{Value, json};

use super::table::{last_words, task};
use crate::support::model_server::{ModelServer, Request, Response};

/// How the model judges, and what it says in a round.
#[derive(Clone, Copy)]
pub(crate) struct Brain {
    /// What it claims for each axis.
    pub(super) claims: u64,
    /// Whether the voices of a round disagree.
    pub(super) contested: bool,
}

impl Default for Brain {
    fn default() -> Brain {
        Brain { claims: 40, contested: true }
    }
}

impl Brain {
    pub(super) fn serve(self) -> ModelServer {
        ModelServer::start(move |request| Response::text(self.reply(request).to_string()))
    }

    /// The reply to a request, without its steps of thought.
    pub(crate) fn reply(self, request: &Request) -> Value {
        let schema = request.schema();
        let properties = &schema["properties"];
        let mut reply = self.reply_to(properties, request);
        if !properties["_steps"].is_null() {
            reply["_steps"] = json!(["The ledger comes first"]);
        }
        reply
    }

    fn reply_to(self, properties: &Value, request: &Request) -> Value {
        let has = |name: &str| !properties[name].is_null();
        if has("said") {
            self.minutes(properties, request)
        } else if has("changes") {
            no_changes(properties)
        } else if has("brief") {
            json!({"brief": "Keep orders in the ledger.\n\n## Why\n\nThe customer leaves."})
        } else if has("parts") {
            in_parts(draft(request), properties)
        } else if has("approaches") {
            json!({"approaches": [
                {"name": "Ledger first", "how": "Orders wait in our ledger.", "price": "A worker to watch."},
                {"name": "Second provider", "how": "Pay elsewhere meanwhile.", "price": "A contract."}],
                "why": "The ledger is ours already.", "recommended": 1})
        } else if has("prompts") {
            let count = properties["prompts"]["minItems"].as_u64().unwrap_or(1);
            json!({"prompts": (1..=count).map(|step| format!("What of the ledger at step {step}?")).collect::<Vec<_>>()})
        } else if has("groups") {
            json!({"groups": [{"ids": [1], "name": "The ledger"}]})
        } else if has("how_might_we") {
            json!({"how_might_we": ["How might we keep selling while nobody can pay?"],
                   "restated": "You want a checkout that survives an outage of payments."})
        } else if has("questions") {
            json!({"questions": questions(properties, request)})
        } else if has("clarity") {
            self.judgement(properties)
        } else if has("points") {
            voice(properties, request)
        } else if has("agreed") {
            let contested = if self.contested { json!(["Keeping the order, against refusing it"]) } else { json!([]) };
            json!({"agreed": ["Customers must not pay twice"], "contested": contested,
                   "question": "How long may an order stay pending?"})
        } else if has("risks") {
            json!({"risks": [
                {"risk": "The ledger fills up unnoticed", "mitigation": "Alert on its age", "probability": 3, "impact": 2},
                {"risk": "Support is not told", "mitigation": "Write the page first", "probability": 1, "impact": 2}]})
        } else if has("threats") {
            json!({"threats": [{"threat": "Somebody replays a payment", "defence": "One key for each attempt"}]})
        } else if has("verdict") {
            json!({"verdict": "GO", "why": "The key is there already; a duplicate charge would change that."})
        } else if has("stories") {
            json!({"stories": [
                {"story": "A customer keeps the order in our ledger during an outage", "priority": "must", "effort": "M", "iteration": 1},
                {"story": "Support sees pending orders", "priority": "could", "effort": "S", "iteration": 1}]})
        } else if has("steps") {
            json!({"steps": [{"step": "Write down the ledger's key"}]})
        } else if has("problem") {
            json!({"problem": "When the provider is down, the ledger has no order and the customer leaves.",
                   "users": ["customers at the ledger"]})
        } else if has("rivals") {
            json!({"rivals": [{"name": "A second provider", "strength": "Takes over at once", "weak_point": "it costs twice"}]})
        } else if has("lookups") {
            json!({"lookups": [{"where": "The provider's API", "question": "How long does an idempotency key live?"}]})
        } else {
            panic!("no reply is known for {properties}")
        }
    }

    /// What is taken down for a large mind: each axis rests on another sentence of the answers, as long as there is one.
    fn minutes(self, properties: &Value, request: &Request) -> Value {
        let said = sentences(request);
        let quote = |index: usize| said.get(index).cloned().unwrap_or_default();
        let mut value = json!({"said": [{"quote": quote(0), "kind": "idea", "text": "Orders stay in our own ledger"}],
            "decided": [{"quote": quote(0), "text": "Orders stay in our ledger", "why": "", "rejected": ""}],
            "planned": [], "revoked": [], "private": [], "nothing": []});
        for (index, axis) in ["clarity", "depth", "coverage", "decisions", "action"].iter().enumerate() {
            if !properties[*axis].is_null() {
                value[*axis] = json!({"evidence": quote(index), "score": self.claims});
            }
        }
        if !properties["questions"].is_null() {
            value["questions"] = json!(questions(properties, request));
        }
        value
    }

    /// Each axis points to another piece of what the user said, as long as there is one.
    fn judgement(self, properties: &Value) -> Value {
        let mut value = json!({"ideas": [], "decided": []});
        for (index, axis) in ["clarity", "depth", "coverage", "decisions", "action"].iter().enumerate() {
            let ids = properties[axis]["properties"]["evidence"]["enum"].as_array().expect("the ids of the pieces");
            let id = if index + 1 < ids.len() { &ids[index] } else { ids.last().expect("at least none") };
            value[*axis] = json!({"evidence": id, "score": self.claims});
        }
        let first = &properties["clarity"]["properties"]["evidence"]["enum"][0];
        value["ideas"] = json!([{"from": first, "idea": "Orders stay in our own ledger", "score": 8}]);
        value["decided"] = json!([{"from": first, "decision": "Orders stay in our ledger"}]);
        value
    }
}

/// The sentences of the answers that are to be taken down.
pub(super) fn sentences(request: &Request) -> Vec<String> {
    let mut answers = last_words(request);
    let task = task(request);
    if task.lines().next().is_some_and(|line| line.contains("what the subject says")) {
        answers.remove(0);
    }
    let text = answers.join("\n").replace(". ", ".\n");
    text.lines().filter(|one| !one.is_empty()).map(str::to_owned).collect()
}

/// The brief of a large mind, which rests on the first entry that holds. Risks and approaches that it is shown are its own.
fn draft(request: &Request) -> Value {
    let task = task(request);
    let found = |pattern: &str| regex::Regex::new(pattern).expect("a regular expression");
    let first = found(r"Each of these is told: (\d+)").captures(&task).map(|held| format!("[{}]", &held[1]));
    let from = first.unwrap_or_default();
    let mut risks: Vec<String> = found(r"(?m)^- (.*) \(probability \d, impact \d\): (.*)$")
        .captures_iter(&task)
        .map(|risk| format!("| {} | {} *(suggested)* | none yet |", &risk[1], &risk[2]))
        .collect();
    if risks.is_empty() {
        risks.push(format!("| The ledger fills up unnoticed {from} | Alert on its age | none yet |"));
    }
    let chosen = found("the user chose \"(.*?)\"").captures(&task).map(|name| name[1].to_owned());
    let standing = |name: &str| match &chosen {
        Some(one) if one == name => " (chosen)",
        _ => "",
    };
    let mut options: Vec<String> = found(r"(?m)^- (.*): (.*) Its price: (.*)$")
        .captures_iter(&task)
        .map(|one| format!("| **{}**{} | {} {from} | {} |", &one[1], standing(&one[1]), &one[2], &one[3]))
        .collect();
    if options.is_empty() {
        options.push(format!("| **Ledger first** | Orders wait {from} | A worker |"));
    }
    json!({"problem": format!("When the provider is down, the ledger has no order and the customer leaves {from}."),
        "users": format!("- customers at the ledger {from}"),
        "other": "Nobody has asked the bank. *(suggested)*",
        "options": format!("| Option | What | Price |\n|---|---|---|\n{}", options.join("\n")),
        "risks": format!("| Risk | Response | Owner |\n|---|---|---|\n{}", risks.join("\n")),
        "stories": format!("1. **A customer keeps the order in our ledger during an outage** {from}\n   - The order is there\n2. **Support sees pending orders** {from}"),
        "steps": format!("| What | Who | By |\n|---|---|---|\n| Write down the ledger's key {from} | Ann *(suggested)* | Friday *(suggested)* |"),
        "lead": format!("Keep orders in the ledger {from}."), "title": "Checkout that survives a payment outage"})
}

/// The sections of a brief, and what the scripted models call them.
const HEADINGS: [(&str, &str); 12] = [
    ("problem", "Problem"),
    ("users", "Who is touched by it"),
    ("goals", "Goals and success"),
    ("scope", "Scope"),
    ("constraints", "Constraints"),
    ("decisions", "Decisions"),
    ("options", "Options"),
    ("stories", "Stories"),
    ("risks", "Risks"),
    ("open", "Open questions"),
    ("steps", "Next steps, in this order"),
    ("other", "More"),
];

/// A brief in the form that is asked for: its sections as parts, in their order, if the schema has them and something stands in them.
pub(super) fn in_parts(sections: Value, properties: &Value) -> Value {
    let kinds = properties["parts"]["items"]["properties"]["of"]["enum"].as_array().expect("the kinds of parts");
    let text = |of: &str| sections[of].as_str().unwrap_or_default().to_owned();
    let wanted = HEADINGS.iter().filter(|(of, _)| kinds.contains(&json!(of)) && !text(of).is_empty());
    let parts: Vec<Value> =
        wanted.map(|(of, heading)| json!({"of": of, "heading": heading, "text": text(of)})).collect();
    let mut value = json!({"parts": parts, "lead": sections["lead"], "title": sections["title"]});
    if !properties["came_about"].is_null() {
        value["came_about"] = json!("");
    }
    value
}

/// No changes to a brief.
pub(super) fn no_changes(properties: &Value) -> Value {
    match properties["chatter"].is_null() {
        true => json!({"changes": []}),
        false => json!({"changes": [], "chatter": []}),
    }
}

const SUBJECTS: [&str; 12] = [
    "ledger",
    "retries",
    "support",
    "refunds",
    "alerts",
    "invoices",
    "backups",
    "deadlines",
    "budgets",
    "metrics",
    "tokens",
    "owners",
];
const ASPECTS: [&str; 7] = ["night", "holiday", "migration", "audit", "launch", "outage", "handover"];

/// Returns a pair of words that differs from call to call. 12 and 7 have no divisor in common: it repeats after 84.
fn pair(number: usize) -> (&'static str, &'static str) {
    (SUBJECTS[number % 12], ASPECTS[number % 7])
}

/// Questions that differ from call to call, as many as are wanted.
fn questions(properties: &Value, request: &Request) -> Value {
    let count = properties["questions"]["maxItems"].as_u64().unwrap_or(1) as usize;
    let urgencies = ["info", "critical", "important"];
    let all = (0..count).map(|index| {
        let (subject, aspect) = pair(request.number * 3 + index);
        json!({"question": format!("Which {subject} for which {aspect}?"), "urgency": urgencies[index % 3],
               "replies": [format!("The {subject} stop"), format!("The {subject} wait for a person")]})
    });
    all.collect()
}

/// What one voice says; it takes up as many points as it may.
fn voice(properties: &Value, request: &Request) -> Value {
    let (subject, aspect) = pair(request.number);
    let mut value = json!({"points": [format!("Point {}: {subject} break at {aspect}", request.number)]});
    if let Some(ids) = properties["refers"]["items"]["enum"].as_array() {
        value["refers"] = json!(ids.iter().take(2).collect::<Vec<_>>());
    }
    value
}
