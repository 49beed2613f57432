//! What a journal says has happened: outcomes by key, intents without an outcome, texts.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::{Code, Failure, Result};
use crate::journal::key::Key;
use crate::journal::reader::{self, Whole};
use crate::journal::texts::{Texts, Unfold};
use crate::journal::v1::{End, Open, Read};
use crate::journal::writer::Tail;
use crate::model::event::EndStatus;

/// An outcome as it stands in the journal; parsed when it is needed.
#[derive(Clone, Debug)]
enum Recorded {
    Ok(Range<usize>),
    Failed(Box<Failure>),
}

/// The recorded part of a run.
#[derive(Default)]
pub struct Past {
    bytes: Vec<u8>,
    outcomes: HashMap<Key, (u64, Recorded)>,
    /// Intents without an outcome, and what was prepared for them.
    open: HashMap<Key, Option<Value>>,
    unfold: Unfold,
    pub first: Option<Box<Open>>,
    pub end: Option<Box<End>>,
    pub whole: Whole,
    /// Whether lines behind a broken one were given up: what they recorded may have happened.
    pub cut: bool,
    /// Effects that the journal holds an outcome of.
    pub effects: usize,
}

/// What became of an effect, as the journal has it.
#[derive(Clone, Debug, PartialEq)]
pub enum Before {
    /// It never began.
    Never,
    /// It began, and nobody knows whether it happened.
    Began(Option<Value>),
    /// It has an outcome, written in this line.
    Ended(u64, Result<Value>),
}

impl Past {
    /// Reads the journal at `path`, and where the writer that continues it goes on.
    pub fn read(path: &Path) -> Result<(Past, Tail)> {
        Past::read_with(path, false)
    }

    /// Reads a journal that nobody continues: what it says is given back as it was, the failure that ended it too.
    pub fn read_as_it_was(path: &Path) -> Result<Past> {
        Past::read_with(path, true).map(|(past, _)| past)
    }

    fn read_with(path: &Path, as_it_was: bool) -> Result<(Past, Tail)> {
        let bytes = reader::text(path)?;
        let mut past = Past::default();
        let mut texts = Texts::default();
        let mut scopes: HashMap<Key, String> = HashMap::new();
        let mut active: HashMap<String, u64> = HashMap::new();
        let mut failures: Vec<Key> = Vec::new();
        let base = bytes.as_ptr() as usize;
        let place = |raw: &RawValue| {
            let start = raw.get().as_ptr() as usize - base;
            start..start + raw.get().len()
        };
        let whole = reader::read(path, &bytes, |seq, record| {
            match record {
                Read::Open(open) => past.first = Some(open),
                Read::Resume(_) => past.end = None,
                Read::End(end) => past.end = Some(end),
                Read::Text(text) => {
                    texts.learn(parse_key(path, seq, text.id)?);
                    let plain = serde_json::from_str(text.text.get()).map_err(|error| damaged(path, seq, &error))?;
                    past.unfold.learn(text.id, plain);
                }
                Read::Intent(intent) => {
                    let key = parse_key(path, seq, intent.key)?;
                    let prepared = intent.prepared.map(|raw| serde_json::from_str(raw.get()));
                    let prepared = prepared.transpose().map_err(|error| damaged(path, seq, &error))?;
                    past.open.insert(key, prepared);
                    note_activity(&mut active, &intent.scope, seq);
                    scopes.insert(key, intent.scope.into_owned());
                }
                Read::Outcome(outcome) => {
                    let key = parse_key(path, seq, outcome.key)?;
                    let interrupted = outcome.failure.as_ref().is_some_and(|it| it.code == Code::Interrupted);
                    if interrupted {
                        // Older journals have these. Nobody knows how far such an effect came.
                        return Ok(());
                    }
                    past.open.remove(&key);
                    let recorded = match (outcome.ok, outcome.failure) {
                        (Some(raw), None) => Recorded::Ok(place(raw)),
                        (None, Some(failure)) => {
                            failures.push(key);
                            Recorded::Failed(Box::new(failure))
                        }
                        _ => return Err(damaged(path, seq, &"an outcome is either ok or a failure")),
                    };
                    past.outcomes.insert(key, (seq, recorded));
                }
                Read::Effect(done) => {
                    let key = parse_key(path, seq, done.key)?;
                    note_activity(&mut active, &done.scope, seq);
                    past.outcomes.insert(key, (seq, Recorded::Ok(place(done.ok))));
                }
            }
            Ok(())
        })?;
        // A run that is done went on after each of its failures, even after the last.
        let done = past.end.as_ref().is_some_and(|end| end.status == EndStatus::Done);
        for key in failures.into_iter().filter(|_| !done && !as_it_was) {
            past.forget_unless_handled(key, scopes.get(&key).map_or("/", String::as_str), &active);
        }
        past.effects = past.outcomes.len();
        past.whole = whole.clone();
        past.bytes = bytes;
        Ok((past, Tail { seq: whole.lines, prev: whole.sum, length: whole.length, texts }))
    }

    /// A failure that the flow went on after was handled, and is given back as it was. One that nothing
    /// followed, in its scope or around it, ended the run: it is tried again.
    fn forget_unless_handled(&mut self, key: Key, scope: &str, active: &HashMap<String, u64>) {
        let Some((seq, Recorded::Failed(_))) = self.outcomes.get(&key) else { return };
        let handled = around(scope).any(|scope| active.get(scope).is_some_and(|last| last > seq));
        if !handled {
            self.outcomes.remove(&key);
        }
    }

    /// Returns the first line as it was read.
    pub fn first_line(&self) -> &[u8] {
        reader::first_line(&self.bytes)
    }

    /// Tells whether there is an outcome of the effect with this key.
    pub fn has(&self, key: Key) -> bool {
        self.outcomes.contains_key(&key)
    }

    /// Forgets the outcome of an effect, as if it had never been asked for.
    pub fn forget(&mut self, key: Key) {
        self.outcomes.remove(&key);
        self.open.remove(&key);
    }

    /// Returns what became of the effect with this key.
    pub fn of(&mut self, key: Key) -> Result<Before> {
        match self.outcomes.get(&key) {
            Some((seq, Recorded::Failed(failure))) => Ok(Before::Ended(*seq, Err((**failure).clone()))),
            Some((seq, Recorded::Ok(range))) => {
                let seq = *seq;
                let value: Value = serde_json::from_slice(&self.bytes[range.clone()])
                    .map_err(|error| damaged(Path::new("journal"), seq, &error))?;
                let value = self.unfold.value(value).map_err(|id| {
                    damaged(Path::new("journal"), seq, &format!("it refers to a text {id} that is not there"))
                })?;
                Ok(Before::Ended(seq, Ok(value)))
            }
            None => Ok(self.open.get(&key).map_or(Before::Never, |prepared| Before::Began(prepared.clone()))),
        }
    }
}

/// Returns a scope and all scopes around it.
fn around(scope: &str) -> impl Iterator<Item = &str> {
    let mut next = Some(scope);
    std::iter::from_fn(move || {
        let scope = next?;
        next = match scope.rfind('/') {
            Some(0) if scope.len() > 1 => Some("/"),
            Some(0) | None => None,
            Some(at) => Some(&scope[..at]),
        };
        Some(scope)
    })
}

fn note_activity(active: &mut HashMap<String, u64>, scope: &str, seq: u64) {
    match active.get_mut(scope) {
        Some(last) => *last = seq,
        None => {
            active.insert(scope.to_owned(), seq);
        }
    }
}

fn parse_key(path: &Path, seq: u64, hex: &str) -> Result<Key> {
    Key::parse(hex).ok_or_else(|| damaged(path, seq, &"its key is not 32 hex digits"))
}

fn damaged(path: &Path, seq: u64, why: &dyn std::fmt::Display) -> Failure {
    Failure::new(Code::JournalBroken, format!("{}:{seq}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Before, Past, around};
    use crate::error::{Code, Failure};
    use crate::journal::key::Key;
    use crate::journal::v1::{Intent, Outcome, Record};
    use crate::journal::writer::{Tail, Writer};

    /// Programs before this one told the flow of an interruption, which may have gone on after it.
    #[test]
    fn an_interruption_that_an_older_journal_calls_an_outcome_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let mut writer = Writer::open(&path, Tail::default(), None).unwrap();
        let (interrupted, failed) = ("1".repeat(32), "2".repeat(32));
        for (key, code) in [(&interrupted, Code::Interrupted), (&failed, Code::FlowError)] {
            let (request, prepared) = (json!({}), json!({ "from": "here" }));
            let intent = Intent { key, kind: "git", scope: "/", request: &request, prepared: Some(&prepared), at: 1 };
            writer.append(&Record::Intent(intent)).unwrap();
            let failure = Failure::new(code, "it ended");
            writer.append(&Record::Outcome(Outcome { key, ok: None, failure: Some(&failure), at: 2 })).unwrap();
        }
        writer.sync().unwrap();
        for mut past in [Past::read(&path).unwrap().0, Past::read_as_it_was(&path).unwrap()] {
            let before = past.of(Key::parse(&interrupted).unwrap()).unwrap();
            assert_eq!(before, Before::Began(Some(json!({ "from": "here" }))));
        }
    }

    #[test]
    fn the_scopes_around_a_scope_end_at_the_root() {
        assert_eq!(around("/a/b#2").collect::<Vec<_>>(), ["/a/b#2", "/a", "/"]);
        assert_eq!(around("/").collect::<Vec<_>>(), ["/"]);
    }
}
