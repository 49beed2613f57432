//! What a journal says has happened: outcomes by key, intents without an outcome, texts.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::engine::process::{EffectTimes, Process};
use crate::error::{Code, Failure, Result};
use crate::journal::expander::TextExpander;
use crate::journal::key::{EffectKey, EffectKeys};
use crate::journal::lines::{EndRecord, OpenRecord, ReadRecord};
use crate::journal::parts;
use crate::journal::reader::{self, IntactPrefix};
use crate::journal::texts::InternedTexts;
use crate::journal::writer::JournalTail;
use crate::model::event::EndStatus;

/// How many of the last texts a new one is looked for in.
const LAST_TEXTS: usize = 16;

/// An outcome as it stands in the journal; parsed when it is needed.
#[derive(Clone, Debug)]
enum StoredOutcome {
    Ok(Range<usize>),
    Failed(Box<Failure>),
}

/// When a flow is given a recorded outcome, among others that it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeliverySlot {
    /// Together with all others of this line, by place.
    Given { with: u64, place: u64 },
    /// The process ended before the flow was given it: now, with all others of that kind, by line.
    Held { line: u64 },
    /// As the donor's flow was given it: after all that the run's own journal has.
    Taken { with: u64, place: u64 },
}

impl DeliverySlot {
    /// Tells whether the flow is given both before it goes on after one.
    pub fn is_with(self, other: DeliverySlot) -> bool {
        match (self, other) {
            (DeliverySlot::Given { with, .. }, DeliverySlot::Given { with: other, .. })
            | (DeliverySlot::Taken { with, .. }, DeliverySlot::Taken { with: other, .. }) => with == other,
            (DeliverySlot::Held { .. }, DeliverySlot::Held { .. }) => true,
            _ => false,
        }
    }

    /// Returns the turn that this is in a run which takes from the one that has it.
    #[must_use]
    pub fn for_replay(self) -> DeliverySlot {
        match self {
            DeliverySlot::Given { with, place } | DeliverySlot::Taken { with, place } => {
                DeliverySlot::Taken { with, place }
            }
            DeliverySlot::Held { line } => DeliverySlot::Taken { with: u64::MAX, place: line },
        }
    }
}

/// The recorded part of a run.
#[derive(Default)]
pub struct History {
    bytes: Vec<u8>,
    outcomes: HashMap<EffectKey, (DeliverySlot, StoredOutcome)>,
    /// Intents without an outcome, and what was prepared for them.
    unfinished: HashMap<EffectKey, Option<Value>>,
    expander: TextExpander,
    pub first: Option<Box<OpenRecord>>,
    pub end: Option<Box<EndRecord>>,
    pub whole: IntactPrefix,
    /// Whether lines behind a broken one were given up: what they recorded may have happened.
    pub truncated: bool,
    /// Effects that the journal holds an outcome of.
    pub effects: usize,
    /// Whether it has lines of the first format: their keys are others.
    pub first_format: bool,
    /// Whether work went on side by side in lines of the first format, which do not say what was given together.
    pub unordered: bool,
    times: EffectTimes,
}

/// What became of an effect, as the journal has it.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordedState {
    /// It never began.
    Never,
    /// It began, and nobody knows whether it happened.
    Began(Option<Value>),
    /// It has an outcome.
    Ended(DeliverySlot, Result<Value>),
}

impl History {
    /// Reads the journal at `path`, and where the writer that continues it goes on.
    pub fn read(path: &Path) -> Result<(History, JournalTail)> {
        History::read_with(path, false)
    }

    /// Reads a journal that nobody continues: what it says is given back as it was, the failure that ended it too.
    pub fn read_as_it_was(path: &Path) -> Result<History> {
        History::read_with(path, true).map(|(past, _)| past)
    }

    fn read_with(path: &Path, as_it_was: bool) -> Result<(History, JournalTail)> {
        let bytes = reader::read_bytes(path)?;
        let mut past = History::default();
        let mut texts = InternedTexts::default();
        let mut process = Process::default();
        let mut last_texts = VecDeque::new();
        let base = bytes.as_ptr() as usize;
        let place = |raw: &RawValue| {
            let start = raw.get().as_ptr() as usize - base;
            start..start + raw.get().len()
        };
        let whole = reader::read(path, &bytes, |line, record| {
            let seq = line.seq;
            match record {
                ReadRecord::Open(open) => past.first = Some(open),
                ReadRecord::Resume(_) => {
                    past.close_process(std::mem::take(&mut process), as_it_was);
                    past.end = None;
                }
                ReadRecord::End(end) => past.end = Some(end),
                ReadRecord::Text(text) => {
                    let id = parse_key(path, seq, text.id)?;
                    texts.add_known(id);
                    last_texts.push_back((id, text.id));
                    if last_texts.len() > LAST_TEXTS {
                        last_texts.pop_front();
                    }
                    text.add_to(&mut past.expander).map_err(|why| damaged(path, seq, &why))?;
                }
                ReadRecord::Intent(intent) => {
                    let key = parse_key(path, seq, intent.key)?;
                    let prepared = intent.prepared.map(|raw| serde_json::from_str(raw.get()));
                    let prepared = prepared.transpose().map_err(|error| damaged(path, seq, &error))?;
                    past.unfinished.insert(key, prepared);
                    process.note_activity(&intent.scope, seq);
                    if line.v == 1 {
                        process.first_format = true;
                        past.unordered = past.unordered || process.is_beside_another(&intent.scope);
                    }
                    process.begin(key, intent.kind, intent.scope.into_owned(), intent.at);
                }
                ReadRecord::Outcome(outcome) => {
                    let key = parse_key(path, seq, outcome.key)?;
                    let interrupted = outcome.failure.as_ref().is_some_and(|it| it.code == Code::Interrupted);
                    if interrupted {
                        // Older journals have these. Nobody knows how far such an effect came.
                        return Ok(());
                    }
                    past.unfinished.remove(&key);
                    let recorded = match (outcome.ok, outcome.failure) {
                        (Some(raw), None) => StoredOutcome::Ok(place(raw)),
                        (None, Some(failure)) => {
                            process.note_failure(key, failure.code, seq);
                            StoredOutcome::Failed(Box::new(failure))
                        }
                        _ => return Err(damaged(path, seq, &"an outcome is either ok or a failure")),
                    };
                    past.outcomes.insert(key, (DeliverySlot::Held { line: seq }, recorded));
                    past.times.add(process.close_effect(key, outcome.at));
                    process.held.push(key);
                    if !outcome.held {
                        past.give(process.held.drain(..), seq);
                    }
                }
                ReadRecord::Given(given) => {
                    let keys: Vec<EffectKey> =
                        given.keys.iter().map(|key| parse_key(path, seq, key)).collect::<Result<_>>()?;
                    past.give(keys, seq);
                }
                ReadRecord::Effect(done) => {
                    let key = parse_key(path, seq, done.key)?;
                    process.first_format |= line.v == 1;
                    process.note_activity(&done.scope, seq);
                    process.at = done.at;
                    past.outcomes
                        .insert(key, (DeliverySlot::Given { with: seq, place: 0 }, StoredOutcome::Ok(place(done.ok))));
                }
            }
            Ok(())
        })?;
        past.close_process(process, as_it_was);
        for (id, name) in last_texts {
            if past.expander.length(name).is_some_and(|length| length <= parts::LONGEST) {
                past.expander.text(name).iter().for_each(|text| texts.keep(id, text));
            }
        }
        past.effects = past.outcomes.len();
        past.whole = whole.clone();
        past.bytes = bytes;
        Ok((past, JournalTail { seq: whole.lines, prev: whole.sum, length: whole.length, texts }))
    }

    /// Notes that a flow was given outcomes together.
    fn give(&mut self, keys: impl IntoIterator<Item = EffectKey>, with: u64) {
        for (place, key) in (0..).zip(keys) {
            if let Some((turn, _)) = self.outcomes.get_mut(&key) {
                *turn = DeliverySlot::Given { with, place };
            }
        }
    }

    /// A process is over. The failures that it ended with are void, and so is one that nothing at all followed: what
    /// failed is tried again. So is every document that the disk refused: there may be room by now, and doing it again
    /// loses nothing. Any other failure is given back: the flow went on after it.
    ///
    /// In the first format nobody wrote down which they were: there a failure is void that nothing followed in its
    /// scope, around it or inside of it. A run that is done went on even after its last failure.
    fn close_process(&mut self, mut process: Process, as_it_was: bool) {
        self.first_format |= process.first_format;
        let spans = process.close_remaining();
        spans.into_iter().for_each(|span| self.times.add(Some(span)));
        let done = self.end.as_ref().is_some_and(|end| end.status == EndStatus::Done);
        if done || as_it_was {
            return;
        }
        let mut void: Vec<EffectKey> = match &self.end {
            Some(end) => end.void.iter().filter_map(|key| EffectKey::parse(key)).collect(),
            None => Vec::new(),
        };
        let first = process.first_format;
        let nothing_followed = |(key, seq): &(EffectKey, u64)| match first {
            true => !process.went_on(process.scopes.get(key).map_or("/", String::as_str), *seq),
            false => !process.went_on("/", *seq),
        };
        for key in process.failures.iter().filter(|failure| nothing_followed(failure)).map(|(key, _)| *key) {
            // Nobody was told of the doubt, so that nobody has decided: what was begun is in doubt as before.
            let in_doubt = |failure: &Failure| failure.code == Code::CommandInDoubt && !void.contains(&key);
            if matches!(self.outcomes.get(&key), Some((_, StoredOutcome::Failed(failure))) if in_doubt(failure)) {
                self.unfinished.insert(key, Some(Value::Object(serde_json::Map::new())));
            }
            void.push(key);
        }
        void.extend(&process.refused);
        for key in void {
            if matches!(self.outcomes.get(&key), Some((_, StoredOutcome::Failed(_)))) {
                self.outcomes.remove(&key);
            }
        }
    }

    /// Returns the first line as it was read.
    pub fn first_line(&self) -> &[u8] {
        reader::first_line(&self.bytes)
    }

    /// Returns how long effects in a scope took so far, in all processes; waiting for a person is not counted.
    pub fn used_time(&self, scope: &str) -> Duration {
        self.times.used_time(scope)
    }

    /// Tells whether there is an outcome of the effect with this key.
    pub fn has(&self, key: EffectKey) -> bool {
        self.outcomes.contains_key(&key)
    }

    /// Forgets the outcome of an effect, as if it had never been asked for.
    pub fn forget(&mut self, key: EffectKey) {
        self.outcomes.remove(&key);
        self.unfinished.remove(&key);
    }

    /// Returns what became of an effect, and under which of its keys that stands.
    pub fn state_of_either(&mut self, keys: EffectKeys) -> Result<(EffectKey, RecordedState)> {
        match (self.state_of(keys.key)?, keys.first.filter(|_| self.first_format)) {
            (RecordedState::Never, Some(first)) => Ok((first, self.state_of(first)?)),
            (before, _) => Ok((keys.key, before)),
        }
    }

    /// Returns what became of the effect with this key.
    pub fn state_of(&mut self, key: EffectKey) -> Result<RecordedState> {
        match self.outcomes.get(&key) {
            Some((turn, StoredOutcome::Failed(failure))) => Ok(RecordedState::Ended(*turn, Err((**failure).clone()))),
            Some((turn, StoredOutcome::Ok(range))) => {
                let turn = *turn;
                let line = match turn {
                    DeliverySlot::Given { with: line, .. }
                    | DeliverySlot::Taken { with: line, .. }
                    | DeliverySlot::Held { line } => line,
                };
                let value: Value = serde_json::from_slice(&self.bytes[range.clone()])
                    .map_err(|error| damaged(Path::new("journal"), line, &error))?;
                let value = self.expander.expand(value).map_err(|why| damaged(Path::new("journal"), line, &why))?;
                Ok(RecordedState::Ended(turn, Ok(value)))
            }
            None => Ok(self
                .unfinished
                .get(&key)
                .map_or(RecordedState::Never, |prepared| RecordedState::Began(prepared.clone()))),
        }
    }
}

fn parse_key(path: &Path, seq: u64, hex: &str) -> Result<EffectKey> {
    EffectKey::parse(hex).ok_or_else(|| damaged(path, seq, &"its key is not 32 hex digits"))
}

fn damaged(path: &Path, seq: u64, why: &dyn std::fmt::Display) -> Failure {
    Failure::new(Code::JournalBroken, format!("{}:{seq}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{History, RecordedState};
    use crate::error::{Code, Failure};
    use crate::journal::key::EffectKey;
    use crate::journal::lines::{IntentRecord, OutcomeRecord, Record};
    use crate::journal::writer::{JournalTail, JournalWriter};

    /// Programs before this one told the flow of an interruption, which may have gone on after it.
    #[test]
    fn an_interruption_that_an_older_journal_calls_an_outcome_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let mut writer = JournalWriter::open(&path, JournalTail::default(), None).unwrap();
        let (interrupted, failed) = ("1".repeat(32), "2".repeat(32));
        for (key, code) in [(&interrupted, Code::Interrupted), (&failed, Code::FlowError)] {
            let (request, prepared) = (json!({}), json!({ "from": "here" }));
            let intent =
                IntentRecord { key, kind: "git", scope: "/", request: &request, prepared: Some(&prepared), at: 1 };
            writer.append(&Record::Intent(intent)).unwrap();
            let failure = Failure::new(code, "it ended");
            writer
                .append(&Record::Outcome(OutcomeRecord { key, ok: None, failure: Some(&failure), held: false, at: 2 }))
                .unwrap();
        }
        writer.sync().unwrap();
        for mut past in [History::read(&path).unwrap().0, History::read_as_it_was(&path).unwrap()] {
            let before = past.state_of(EffectKey::parse(&interrupted).unwrap()).unwrap();
            assert_eq!(before, RecordedState::Began(Some(json!({ "from": "here" }))));
        }
    }
}
