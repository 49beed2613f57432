//! What a journal has recorded: outcomes by key, intents without an outcome, long texts.

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

/// In how many of the latest texts a new text is searched for repeated parts.
const LAST_TEXTS: usize = 16;

/// The kind of questions in journals.
const QUESTION: &str = "ask";

/// A recorded outcome: the byte range of its JSON in the journal, parsed only when needed, or its failure.
#[derive(Clone, Debug)]
enum StoredOutcome {
    Ok(Range<usize>),
    Failed(Box<Failure>),
}

/// When a recorded outcome is delivered to the flow, relative to other outcomes that the flow waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeliverySlot {
    /// Together with all other outcomes delivered at line `with`, ordered by `place`.
    Given { with: u64, place: u64 },
    /// The process ended before delivery: the outcome is delivered now, with all others in this state, ordered by line.
    Held { line: u64 },
    /// As in the replay source, but after all outcomes of the run's own journal.
    Taken { with: u64, place: u64 },
}

impl DeliverySlot {
    /// Tells whether both outcomes are delivered together, before the flow goes on.
    pub fn is_with(self, other: DeliverySlot) -> bool {
        match (self, other) {
            (DeliverySlot::Given { with, .. }, DeliverySlot::Given { with: other, .. })
            | (DeliverySlot::Taken { with, .. }, DeliverySlot::Taken { with: other, .. }) => with == other,
            (DeliverySlot::Held { .. }, DeliverySlot::Held { .. }) => true,
            _ => false,
        }
    }

    /// Returns the slot that this becomes in a run that uses this journal as its replay source.
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
    /// Intents without an outcome, with what was prepared for them.
    unfinished: HashMap<EffectKey, Option<Value>>,
    expander: TextExpander,
    pub first: Option<Box<OpenRecord>>,
    pub end: Option<Box<EndRecord>>,
    pub whole: IntactPrefix,
    /// Whether lines from a broken one on were cut off: the effects that they recorded may have happened.
    pub truncated: bool,
    /// How many effects have an outcome.
    pub effects: usize,
    /// Whether the journal has lines of the first format, whose keys are made differently.
    pub first_format: bool,
    /// Whether effects ran concurrently in lines of the first format, which do not record what was delivered together.
    pub unordered: bool,
    times: EffectTimes,
    questions: HashMap<EffectKey, RecordedQuestion>,
}

/// A question that the journal has recorded, and lines about it; 0 where there is none.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordedQuestion {
    pub(super) scope: String,
    /// Where it was asked in place of what was recorded before.
    pub(super) anew: u64,
    pub(super) answered: u64,
}

/// The state of an effect, as its journal has recorded it.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordedState {
    /// The effect never began.
    Never,
    /// The effect began, with what was prepared for it; whether it happened is unknown.
    Began(Option<Value>),
    /// The effect has an outcome.
    Ended(DeliverySlot, Result<Value>),
}

impl History {
    /// Reads the journal at `path`; also returns the tail that a writer needs to continue it.
    ///
    /// # Errors
    ///
    /// As [`reader::read_bytes`] and [`reader::read`].
    pub fn read(path: &Path) -> Result<(History, JournalTail)> {
        History::read_with(path, false)
    }

    /// Reads a journal that is not continued: all its outcomes are kept, also the failures that it ended with.
    ///
    /// # Errors
    ///
    /// As [`History::read`].
    pub fn read_as_it_was(path: &Path) -> Result<History> {
        History::read_with(path, true).map(|(history, _)| history)
    }

    fn read_with(path: &Path, as_it_was: bool) -> Result<(History, JournalTail)> {
        let bytes = reader::read_bytes(path)?;
        let mut history = History::default();
        let mut texts = InternedTexts::default();
        let mut process = Process::default();
        let mut last_texts = VecDeque::new();
        let base = bytes.as_ptr() as usize;
        let place = |raw: &RawValue| {
            let start = raw.get().as_ptr() as usize - base;
            start..start + raw.get().len()
        };
        let intact = reader::read(path, &bytes, |line, record| {
            let seq = line.seq;
            match record {
                ReadRecord::Open(open) => history.first = Some(open),
                ReadRecord::Resume(_) => {
                    history.close_process(std::mem::take(&mut process), as_it_was);
                    history.end = None;
                }
                ReadRecord::End(end) => history.end = Some(end),
                ReadRecord::Text(text) => {
                    let id = parse_key(path, seq, text.id)?;
                    texts.add_known(id);
                    last_texts.push_back((id, text.id));
                    if last_texts.len() > LAST_TEXTS {
                        last_texts.pop_front();
                    }
                    text.add_to(&mut history.expander).map_err(|why| damaged(path, seq, &why))?;
                }
                ReadRecord::Intent(intent) => {
                    let key = parse_key(path, seq, intent.key)?;
                    let prepared = intent.prepared.map(|raw| serde_json::from_str(raw.get()));
                    let prepared = prepared.transpose().map_err(|error| damaged(path, seq, &error))?;
                    history.unfinished.insert(key, prepared);
                    if intent.kind == QUESTION {
                        let question = history.questions.entry(key).or_default();
                        question.scope = intent.scope.clone().into_owned();
                        question.anew = if intent.anew { seq } else { question.anew };
                    }
                    process.note_activity(&intent.scope, seq);
                    if line.v == 1 {
                        process.first_format = true;
                        history.unordered = history.unordered || process.is_beside_another(&intent.scope);
                    }
                    process.begin(key, intent.kind, intent.scope.into_owned(), intent.at);
                }
                ReadRecord::Outcome(outcome) => {
                    let key = parse_key(path, seq, outcome.key)?;
                    let interrupted = outcome.failure.as_ref().is_some_and(|it| it.code == Code::Interrupted);
                    if interrupted {
                        // Only older journals have these outcomes. How far such an effect came is unknown.
                        return Ok(());
                    }
                    history.unfinished.remove(&key);
                    if let Some(question) = history.questions.get_mut(&key).filter(|_| outcome.ok.is_some()) {
                        question.answered = seq;
                    }
                    let recorded = match (outcome.ok, outcome.failure) {
                        (Some(raw), None) => StoredOutcome::Ok(place(raw)),
                        (None, Some(failure)) => {
                            process.note_failure(key, failure.code, seq);
                            StoredOutcome::Failed(Box::new(failure))
                        }
                        _ => return Err(damaged(path, seq, &"an outcome is either ok or a failure")),
                    };
                    history.outcomes.insert(key, (DeliverySlot::Held { line: seq }, recorded));
                    history.times.add(process.close_effect(key, outcome.at));
                    process.held.push(key);
                    if !outcome.held {
                        history.give(process.held.drain(..), seq);
                    }
                }
                ReadRecord::Given(given) => {
                    let keys: Vec<EffectKey> =
                        given.keys.iter().map(|key| parse_key(path, seq, key)).collect::<Result<_>>()?;
                    history.give(keys, seq);
                }
                ReadRecord::Effect(done) => {
                    let key = parse_key(path, seq, done.key)?;
                    process.first_format |= line.v == 1;
                    process.note_activity(&done.scope, seq);
                    process.at = done.at;
                    history
                        .outcomes
                        .insert(key, (DeliverySlot::Given { with: seq, place: 0 }, StoredOutcome::Ok(place(done.ok))));
                }
            }
            Ok(())
        })?;
        if let Some(first) = &mut history.first {
            first.unfold(&mut history.expander).map_err(|why| damaged(path, 1, &why))?;
        }
        history.close_process(process, as_it_was);
        for (id, name) in last_texts {
            if history.expander.length(name).is_some_and(|length| length <= parts::LONGEST) {
                history.expander.text(name).iter().for_each(|text| texts.keep(id, text));
            }
        }
        history.effects = history.outcomes.len();
        history.whole = intact.clone();
        history.bytes = bytes;
        Ok((history, JournalTail { seq: intact.lines, prev: intact.sum, length: intact.length, texts }))
    }

    /// Notes that outcomes were delivered to the flow together.
    fn give(&mut self, keys: impl IntoIterator<Item = EffectKey>, with: u64) {
        for (place, key) in (0..).zip(keys) {
            if let Some((slot, _)) = self.outcomes.get_mut(&key) {
                *slot = DeliverySlot::Given { with, place };
            }
        }
    }

    /// Handles the end of a process: removes its void failures, so that their effects are tried again. The void failures are
    /// those that the process ended with, one that nothing followed, and those of documents that the disk refused: there may
    /// be room by now, and repeating the save loses nothing. All other failures are replayed: the flow went on after them.
    ///
    /// The first format does not record the void failures: there a failure is void if nothing followed it in its scope,
    /// around it or inside it. In a run that is done no failure is void.
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
            // The user was not told of the doubt and cannot have decided: the command stays in doubt.
            let in_doubt = |failure: &Failure| failure.code.is_in_doubt() && !void.contains(&key);
            if matches!(self.outcomes.get(&key), Some((_, StoredOutcome::Failed(failure))) if in_doubt(failure)) {
                self.unfinished.insert(key, Some(Value::Object(serde_json::Map::new())));
            }
            void.push(key);
        }
        void.extend(&process.refused);
        for key in void {
            self.outcomes.remove(&key);
        }
    }

    /// Forgets the replies of a run that is done that could not be used, so that a fork asks for them again.
    pub fn forget_unusable(&mut self) {
        let void = self.end.iter().flat_map(|end| &end.void).filter_map(|key| EffectKey::parse(key));
        for key in void.collect::<Vec<_>>() {
            self.outcomes.remove(&key);
        }
    }

    /// Returns the bytes of the first line.
    pub fn first_line(&self) -> &[u8] {
        reader::first_line(&self.bytes)
    }

    /// Returns how long effects in a scope took in all processes so far, without the time spent waiting for a person.
    pub fn used_time(&self, scope: &str) -> Duration {
        self.times.used_time(scope)
    }

    /// Tells whether the effect with this key has an outcome.
    pub fn has(&self, key: EffectKey) -> bool {
        self.outcomes.contains_key(&key)
    }

    /// Forgets an effect, as if the flow had never requested it.
    pub fn forget(&mut self, key: EffectKey) {
        self.outcomes.remove(&key);
        self.unfinished.remove(&key);
        self.questions.remove(&key);
    }

    /// Returns the questions that the journal has recorded, by their keys.
    pub(super) fn questions(&self) -> &HashMap<EffectKey, RecordedQuestion> {
        &self.questions
    }

    /// Returns a recorded question by one of its keys.
    pub(super) fn question(&self, keys: EffectKeys) -> Option<&RecordedQuestion> {
        let first = || self.questions.get(&keys.first.filter(|_| self.first_format)?);
        self.questions.get(&keys.key).or_else(first)
    }

    /// Returns the state of an effect, and the one of its keys under which the journal has it.
    ///
    /// # Errors
    ///
    /// `journal-broken` if the outcome cannot be expanded.
    pub fn state_of_either(&mut self, keys: EffectKeys) -> Result<(EffectKey, RecordedState)> {
        match (self.state_of(keys.key)?, keys.first.filter(|_| self.first_format)) {
            (RecordedState::Never, Some(first)) => Ok((first, self.state_of(first)?)),
            (before, _) => Ok((keys.key, before)),
        }
    }

    /// Returns the state of the effect with this key.
    ///
    /// # Errors
    ///
    /// `journal-broken` if the outcome cannot be expanded.
    pub fn state_of(&mut self, key: EffectKey) -> Result<RecordedState> {
        match self.outcomes.get(&key) {
            Some((slot, StoredOutcome::Failed(failure))) => Ok(RecordedState::Ended(*slot, Err((**failure).clone()))),
            Some((slot, StoredOutcome::Ok(range))) => {
                let slot = *slot;
                let line = match slot {
                    DeliverySlot::Given { with: line, .. }
                    | DeliverySlot::Taken { with: line, .. }
                    | DeliverySlot::Held { line } => line,
                };
                let value: Value = serde_json::from_slice(&self.bytes[range.clone()])
                    .map_err(|error| damaged(Path::new("journal"), line, &error))?;
                let value = self.expander.expand(value).map_err(|why| damaged(Path::new("journal"), line, &why))?;
                Ok(RecordedState::Ended(slot, Ok(value)))
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

    /// Earlier versions told the flow of an interruption, and the flow may have gone on after it.
    #[test]
    fn an_interruption_that_an_older_journal_calls_an_outcome_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let mut writer = JournalWriter::open(&path, JournalTail::default(), None).unwrap();
        let (interrupted, failed) = ("1".repeat(32), "2".repeat(32));
        for (key, code) in [(&interrupted, Code::Interrupted), (&failed, Code::FlowError)] {
            let (request, prepared) = (json!({}), json!({ "from": "here" }));
            let intent = IntentRecord {
                key,
                kind: "git",
                scope: "/",
                request: &request,
                prepared: Some(&prepared),
                anew: false,
                label: None,
                shown: false,
                at: 1,
            };
            writer.append(&Record::Intent(intent)).unwrap();
            let failure = Failure::new(code, "it ended");
            writer
                .append(&Record::Outcome(OutcomeRecord {
                    key,
                    ok: None,
                    failure: Some(&failure),
                    held: false,
                    by: None,
                    at: 2,
                }))
                .unwrap();
        }
        writer.sync().unwrap();
        for mut history in [History::read(&path).unwrap().0, History::read_as_it_was(&path).unwrap()] {
            let before = history.state_of(EffectKey::parse(&interrupted).unwrap()).unwrap();
            assert_eq!(before, RecordedState::Began(Some(json!({ "from": "here" }))));
        }
    }
}
