//! A journal as a stranger reads it: lines of JSON, by the published format and nothing else.

use std::collections::BTreeMap;
use std::path::Path;

use nietz::model::digest::Digest;
use serde_json::Value;

/// The whole lines of a journal.
pub(crate) struct Journal {
    pub(crate) lines: Vec<Value>,
}

/// An effect as the journal has it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorded {
    pub(crate) kind: String,
    pub(crate) request: Value,
    /// `ok` or `failure`; null while there is none.
    pub(crate) outcome: Value,
}

impl Recorded {
    pub(crate) fn finished(&self) -> bool {
        self.outcome.get("ok").is_some()
    }

    pub(crate) fn failed(&self) -> bool {
        self.outcome.get("failure").is_some()
    }
}

impl Journal {
    pub(crate) fn read(path: &Path) -> Journal {
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        Journal { lines: whole.lines().map(parse).collect() }
    }

    /// The effects with an intent, by their keys.
    pub(crate) fn effects(&self) -> BTreeMap<String, Recorded> {
        let mut effects: BTreeMap<String, Recorded> = BTreeMap::new();
        for line in &self.lines {
            let is = &line["is"];
            if let Some(intent) = is.get("intent") {
                let effect = effects.entry(text(&intent["key"])).or_default();
                effect.kind = text(&intent["kind"]);
                effect.request = intent["request"].clone();
            } else if let Some(outcome) = is.get("outcome") {
                effects.entry(text(&outcome["key"])).or_default().outcome = outcome.clone();
            }
        }
        effects
    }

    /// The effects of one kind.
    pub(crate) fn of_kind(&self, kind: &str) -> Vec<Recorded> {
        self.effects().into_values().filter(|effect| effect.kind == kind).collect()
    }

    /// The ids of the questions whose answers are recorded.
    pub(crate) fn answered(&self) -> Vec<String> {
        let asks = self.of_kind("ask").into_iter().filter(Recorded::finished);
        asks.map(|ask| text(&ask.request["id"])).collect()
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The lines of a journal with other digests: as a program would have written them that wrote just this.
pub(crate) fn sealed(lines: &[Value]) -> String {
    let mut prev = String::new();
    let mut text = String::new();
    for line in lines {
        let is = &line["is"];
        let body = format!("{{\"v\":{},\"seq\":{},\"prev\":\"{prev}\",\"is\":{is}", line["v"], line["seq"]);
        prev = Digest::of(body.as_bytes()).to_string();
        text.push_str(&format!("{body},\"sum\":\"{prev}\"}}\n"));
    }
    text
}
