//! A journal, read into what a report shows: who asked for what, what was said, and each effect with its outcome.

use std::collections::HashMap;
use std::path::Path;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::Result;
use crate::journal::entries;
use crate::model::budget::Spent;
use crate::model::chat::{Retry, Usage};
use crate::model::param;

/// What a run did.
#[derive(Debug, Default, Serialize)]
pub(crate) struct RunHistory {
    pub run: String,
    pub flow: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What the run was asked, as the journal has it.
    pub params: Value,
    pub lang: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub seed: u64,
    pub host: String,
    /// The files of the flow, each with its digest.
    #[serde(skip)]
    pub files: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub grants: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub budget: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub fork: Value,
    /// When it began: ISO 8601, UTC.
    pub started: String,
    /// How the latest process ended: `done`, `failed`, `waiting` or `interrupted`; `stopped` where it wrote no end.
    pub status: String,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub verdict: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub failure: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub result: Value,
    /// What the latest process used, by model and persona.
    pub spent: Vec<Spent>,
    /// How often the run went on after it had ended.
    pub resumes: u64,
    pub effects: Vec<RecordedEffect>,
    /// Bytes of a torn last line.
    pub torn: u64,
    /// The number of the last line.
    #[serde(skip)]
    pub lines: u64,
}

/// An effect, as its lines in the journal tell it.
#[derive(Debug, Serialize)]
pub(crate) struct RecordedEffect {
    /// The line of its request, which is also its address in the report.
    pub line: u64,
    /// The digest by which it is found again.
    #[serde(skip)]
    pub key: String,
    pub kind: String,
    /// The task that asked for it; `/` is the flow itself.
    pub scope: String,
    /// For whom a model speaks in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Whether people saw what the model said.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shown: bool,
    pub request: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub outcome: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub failure: Value,
    /// Milliseconds since 1970.
    pub began: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
}

impl RunHistory {
    /// Reads a journal, whose digest chain is checked on the way.
    ///
    /// # Errors
    ///
    /// As [`entries::read`].
    pub(crate) fn read(path: &Path) -> Result<RunHistory> {
        let mut run = RunHistory { status: "stopped".to_owned(), ..RunHistory::default() };
        let mut open: HashMap<String, usize> = HashMap::new();
        let intact = entries::read(path, |entry| {
            run.take(entry, &mut open);
        })?;
        run.torn = intact.torn as u64;
        run.lines = intact.lines;
        Ok(run)
    }

    /// Takes a line, and returns the effect that it is of.
    pub(super) fn take(&mut self, mut entry: Value, open: &mut HashMap<String, usize>) -> Option<usize> {
        match entry["type"].as_str().unwrap_or_default() {
            "open" => self.open(entry["open"].take()),
            "resume" => {
                self.resumes += 1;
                self.status = "stopped".to_owned();
            }
            "end" => self.end(entry["end"].take()),
            "intent" => {
                open.insert(text(&entry["key"]), self.effects.len());
                self.effects.push(effect(entry));
                return Some(self.effects.len() - 1);
            }
            "effect" => {
                let (outcome, at) = (entry["ok"].take(), entry["at"].as_u64());
                self.effects.push(RecordedEffect { outcome, ended: at, ..effect(entry) });
                return Some(self.effects.len() - 1);
            }
            "outcome" => {
                let index = *open.get(entry["key"].as_str().unwrap_or_default())?;
                let effect = &mut self.effects[index];
                effect.outcome = entry["ok"].take();
                effect.failure = entry["failure"].take();
                effect.ended = entry["at"].as_u64();
                return Some(index);
            }
            _ => {}
        }
        None
    }

    fn open(&mut self, mut open: Value) {
        self.run = text(&open["run"]);
        self.flow = text(&open["flow"]);
        self.command = open["command"].as_str().map(str::to_owned);
        self.lang = text(&open["lang"]);
        self.model = open["model"].as_str().map(str::to_owned);
        self.seed = open["seed"].as_u64().unwrap_or_default();
        self.host = text(&open["host"]);
        self.started = text(&open["at"]);
        (self.params, self.grants, self.files) = (open["params"].take(), open["grants"].take(), open["files"].take());
        (self.budget, self.fork) = (open["budget"].take(), open["fork"].take());
        if let Value::String(run) = &open["anew_of"] {
            self.fork = json!({ "run": run });
        }
    }

    fn end(&mut self, mut end: Value) {
        self.status = text(&end["status"]);
        self.spent = Deserialize::deserialize(&end["spent"]).unwrap_or_default();
        (self.result, self.failure, self.verdict) =
            (end["result"].take(), end["failure"].take(), end["verdict"].take());
    }

    /// Returns the run as the flow's own `report` function gets it: what it was asked, what came out, and the documents that it
    /// wrote, each as it was at the end.
    pub(crate) fn for_flow(&self) -> Value {
        let mut documents: IndexMap<&str, IndexMap<String, Value>> = IndexMap::new();
        let written = self.effects.iter().filter(|effect| effect.failure.is_null() && effect.ended.is_some());
        for effect in written {
            let request = &effect.request;
            let (Some(collection), key) = (request["collection"].as_str(), request["key"].to_string()) else {
                continue;
            };
            let of_collection = documents.entry(collection).or_default();
            if effect.kind == "delete" {
                of_collection.shift_remove(&key);
                continue;
            }
            let document = match effect.kind.as_str() {
                "save" | "append" => of_collection.entry(key).or_insert_with(|| json!({ "key": request["key"] })),
                _ => continue,
            };
            if effect.kind == "save" {
                document["value"] = request["value"].clone();
            } else if let Some(rows) = document["rows"].as_array_mut() {
                rows.push(request["row"].clone());
            } else {
                document["rows"] = json!([request["row"]]);
            }
        }
        let documents: serde_json::Map<String, Value> = documents
            .into_iter()
            .map(|(name, all)| (name.to_owned(), Value::Array(all.into_values().collect())))
            .collect();
        json!({
            "run": self.run, "command": self.command, "params": self.params, "lang": self.lang, "started": self.started,
            "status": self.status, "result": self.result, "documents": documents, "scanned": self.scanned(),
        })
    }

    /// Returns what the last walk through each collection found.
    fn scanned(&self) -> Value {
        let mut scanned: IndexMap<&str, Vec<Value>> = IndexMap::new();
        for effect in self.effects.iter().filter(|effect| effect.kind == "scan") {
            let (Some(collection), Some(entries)) =
                (effect.request["collection"].as_str(), effect.outcome["entries"].as_array())
            else {
                continue;
            };
            let of_collection = scanned.entry(collection).or_default();
            // A walk goes on where its last piece ended.
            if effect.request["after"].is_null() {
                of_collection.clear();
            }
            of_collection.extend(entries.iter().filter(|entry| entry["value"].is_object()).cloned());
        }
        scanned
            .into_iter()
            .map(|(name, all)| (name.to_owned(), Value::Array(all)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }

    /// Returns what the run's calls cost in US dollars, if all prices are known.
    pub(crate) fn paid(&self) -> Option<f64> {
        let calls = self.effects.iter().filter(|effect| effect.kind == "chat" && !effect.outcome.is_null());
        calls.map(|effect| effect.outcome["cost"].as_f64()).sum()
    }

    /// Returns how long the run's calls took together, in milliseconds.
    pub(crate) fn call_time(&self) -> u64 {
        self.effects.iter().filter(|effect| effect.kind == "chat").map(RecordedEffect::duration).sum()
    }

    /// Returns what each call used, with the model that was asked.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (&str, Usage)> {
        self.effects.iter().filter_map(|effect| Some((effect.model(), effect.usage()?)))
    }

    /// Returns what the run is about: the longest text that it was asked.
    pub(crate) fn topic(&self) -> &str {
        param::topic(&self.params)
    }
}

impl RecordedEffect {
    /// Returns when, how long and why a call waited before it was made again. Journals that do not say it tell the attempts
    /// whose replies broke off.
    pub(crate) fn retries(&self) -> impl Iterator<Item = Retry> + '_ {
        let told: Vec<Retry> = Deserialize::deserialize(&self.outcome["retries"]).unwrap_or_default();
        let lost = self.outcome["lost"]["attempts"].as_u64().unwrap_or_default() as usize;
        let untold = lost.saturating_sub(told.len());
        told.into_iter().chain(std::iter::repeat_n(Retry::default(), untold))
    }

    /// Returns the model that was asked; an empty text for what is no call.
    pub(crate) fn model(&self) -> &str {
        self.request["model"].as_str().unwrap_or_default()
    }

    /// Returns what a call used, if it is one that brought a reply.
    pub(crate) fn usage(&self) -> Option<Usage> {
        (self.kind == "chat").then(|| Deserialize::deserialize(&self.outcome["usage"]).ok()).flatten()
    }

    /// How long it took, in milliseconds; 0 while it has no outcome.
    pub(crate) fn duration(&self) -> u64 {
        self.ended.map_or(0, |ended| ended.saturating_sub(self.began))
    }
}

fn effect(mut entry: Value) -> RecordedEffect {
    RecordedEffect {
        line: entry["seq"].as_u64().unwrap_or_default(),
        key: text(&entry["key"]),
        kind: text(&entry["kind"]),
        scope: text(&entry["scope"]),
        label: entry["label"].as_str().map(str::to_owned),
        shown: entry["shown"] == true,
        request: entry["request"].take(),
        outcome: Value::Null,
        failure: Value::Null,
        began: entry["at"].as_u64().unwrap_or_default(),
        ended: None,
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
