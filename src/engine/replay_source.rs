//! An earlier journal that a run takes outcomes from: the cassette that a test replays, or the run that another
//! is forked from. What is taken is written into the run's own journal, so that the run needs its donor no more.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use crate::engine::history::{DeliverySlot, History, RecordedState};
use crate::error::{Code, Failure, Result};
use crate::journal::entries;
use crate::journal::key::{EffectKey, EffectKeys};
use crate::model::difference::{PATIENCE, differences, likeness};
use crate::model::effect::ReplayClass;

/// How many lines that nobody asked for are named.
const NAMED: usize = 10;

/// Which effects are taken from a donor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayMode {
    /// All of them.
    Everything,
    /// What models and people said, time and chance: what was paid for, and what a result depends on. Documents, files,
    /// git and commands happen anew, in another folder.
    WhatWasSaid,
    /// All but documents, which happen anew in an empty folder. Files, git and commands would find nothing there: what
    /// the donor does not have of them is an error.
    AllButDocuments,
}

/// A journal that outcomes are taken from.
pub struct ReplaySource {
    path: PathBuf,
    history: History,
    mode: ReplayMode,
    /// Only this donor answers: what it does not have is an error, and the world is never asked.
    exclusive: bool,
    replayed: HashSet<EffectKey>,
}

/// A recorded request.
struct RecordedRequest {
    seq: u64,
    key: EffectKey,
    kind: String,
    scope: String,
    request: Value,
}

impl ReplaySource {
    /// Returns a donor that a run may also go on without.
    pub fn new(path: &Path, takes: ReplayMode) -> Result<ReplaySource> {
        let past = History::read_as_it_was(path)?;
        Ok(ReplaySource {
            path: path.to_owned(),
            history: past,
            mode: takes,
            exclusive: false,
            replayed: HashSet::new(),
        })
    }

    /// Returns the run that another is forked from. What it ended with is tried again.
    pub fn for_fork(path: &Path) -> Result<ReplaySource> {
        let (past, _) = History::read(path)?;
        Ok(ReplaySource {
            path: path.to_owned(),
            history: past,
            mode: ReplayMode::Everything,
            exclusive: false,
            replayed: HashSet::new(),
        })
    }

    /// Returns a cassette: the only one who answers.
    pub fn cassette(path: &Path) -> Result<ReplaySource> {
        Ok(ReplaySource { exclusive: true, ..ReplaySource::new(path, ReplayMode::Everything)? })
    }

    /// Tells whether nobody but this donor answers such an effect.
    pub fn is_exclusive_for(&self, source: ReplayClass) -> bool {
        self.exclusive || self.mode == ReplayMode::AllButDocuments && source == ReplayClass::Surroundings
    }

    /// Forgets the effect in this line, and all that were asked for after it.
    pub fn forget_from(&mut self, line: u64) -> Result<()> {
        for entry in self.entries()?.into_iter().filter(|entry| entry.seq >= line) {
            self.history.forget(entry.key);
        }
        Ok(())
    }

    /// Returns how many effects were taken so far.
    pub fn replayed_count(&self) -> usize {
        self.replayed.len()
    }

    /// Tells whether the effect with this key was taken.
    pub fn has_replayed(&self, key: EffectKey) -> bool {
        self.replayed.contains(&key)
    }

    /// Tells whether effects are looked for by their keys of the first format, too.
    pub fn has_first_format(&self) -> bool {
        self.history.first_format
    }

    /// Returns the outcome of an effect and when the flow is given it, if it is there and is taken.
    pub fn take(&mut self, keys: EffectKeys, source: ReplayClass) -> Result<Option<(DeliverySlot, Result<Value>)>> {
        let taken = match (source, self.mode) {
            _ if self.exclusive => true,
            (ReplayClass::Shown, _) => false,
            (ReplayClass::Said, _) | (_, ReplayMode::Everything) => true,
            (ReplayClass::Surroundings, takes) => takes == ReplayMode::AllButDocuments,
            (ReplayClass::Documents, _) => false,
        };
        if !taken {
            return Ok(None);
        }
        let (key, before) = self.history.state_of_either(keys)?;
        Ok(match before {
            RecordedState::Ended(turn, outcome) => {
                self.replayed.insert(key);
                Some((turn.for_replay(), outcome))
            }
            RecordedState::Never | RecordedState::Began(_) => None,
        })
    }

    /// Says that an effect is not recorded: what it asks for, and how that differs from the nearest request that is.
    pub fn describe_miss(&self, kind: &str, scope: &str, request: &Value) -> Result<Failure> {
        let entries = self.entries()?;
        let here = if scope == "/" { String::new() } else { format!(" in {scope}") };
        let failure = Failure::new(
            Code::CassetteMissed,
            format!("the flow asks for {} `{kind}`{here} that {} does not have", article(kind), self.path.display()),
        )
        .hint(match self.exclusive {
            true => "if that is as it should be, record it anew: nietz test --record",
            false => "a recording is made in an empty folder, without files, git and commands of its own: where the flow asks \
                 for others, run it, then nietz test --from-run RUN --name NAME",
        });
        let same: Vec<&RecordedRequest> = entries.iter().filter(|entry| entry.kind == kind).collect();
        if let Some(twin) = same.iter().find(|entry| entry.request == *request) {
            let count = same.iter().filter(|entry| entry.request == *request && entry.scope == scope).count();
            return Ok(failure.because(match count {
                0 => format!("line {} has the same request, in the scope {}", twin.seq, twin.scope),
                _ if self.replayed.contains(&twin.key) => {
                    format!("line {} has the same request; it is recorded {count}×, and asked for once more", twin.seq)
                }
                _ => format!("line {} has the same request, made when other things had been changed before", twin.seq),
            }));
        }
        let until = Instant::now() + PATIENCE;
        let nearest = same
            .into_iter()
            .map(|entry| {
                // One that nobody asked for yet, at the same place, is most likely what this one was.
                let unused = if self.replayed.contains(&entry.key) { 0.0 } else { 1.0 };
                let place = if entry.scope == scope { 0.25 } else { 0.0 };
                (likeness(&entry.request, request, until) + unused + place, entry)
            })
            .max_by(|(one, _), (other, _)| one.total_cmp(other));
        let Some((_, nearest)) = nearest else {
            let asked = differences(&json!({}), request).join("\n");
            return Ok(failure.because(format!("no `{kind}` is recorded; it asks for\n{asked}")));
        };
        let told = differences(&nearest.request, request).join("\n");
        Ok(failure.because(format!("the nearest is line {}; from it to what is asked for now:\n{told}", nearest.seq)))
    }

    /// Returns a line for each effect that is recorded and that nobody asked for.
    pub fn unused(&self) -> Result<Vec<String>> {
        let mut entries = self.entries()?;
        entries.retain(|entry| self.history.has(entry.key) && !self.replayed.contains(&entry.key));
        let mut seen = HashSet::new();
        entries.retain(|entry| seen.insert(entry.key));
        let count = entries.len();
        let mut told: Vec<String> = entries
            .into_iter()
            .take(NAMED)
            .map(|entry| {
                let request = crate::model::text::excerpt(&entry.request.to_string());
                format!("line {}: {} in {} {request}", entry.seq, entry.kind, entry.scope)
            })
            .collect();
        if count > NAMED {
            told.push(format!("… and {} more", count - NAMED));
        }
        Ok(told)
    }

    fn entries(&self) -> Result<Vec<RecordedRequest>> {
        entries_of(&self.path)
    }
}

/// Returns the first line of a donor that read documents and got others than the run that took from it: those were there
/// before the donor's run, and not before this one.
pub fn first_different_read(donor: &Path, run: &Path) -> Result<Option<u64>> {
    let (mut before, mut now) = (History::read_as_it_was(donor)?, History::read_as_it_was(run)?);
    for entry in entries_of(donor)? {
        let reads = matches!(entry.kind.as_str(), "load" | "list" | "scan" | "rows" | "query");
        let (true, RecordedState::Ended(_, was), RecordedState::Ended(_, is)) =
            (reads, before.state_of(entry.key)?, now.state_of(entry.key)?)
        else {
            continue;
        };
        let same = match (was, is) {
            (Ok(was), Ok(is)) => without_digests(was) == without_digests(is),
            (was, is) => was.map_err(|failure| failure.code) == is.map_err(|failure| failure.code),
        };
        if !same {
            return Ok(Some(entry.seq));
        }
    }
    Ok(None)
}

/// Returns what documents say, however their files are written.
fn without_digests(mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => {
            members.remove("digest");
            members.values_mut().for_each(|member| *member = without_digests(member.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_digests(item.take())),
        _ => {}
    }
    value
}

fn entries_of(journal: &Path) -> Result<Vec<RecordedRequest>> {
    let mut found = Vec::new();
    entries::read(journal, |mut entry| {
        if let Some(key) = entry["key"].as_str().and_then(EffectKey::parse)
            && matches!(entry["type"].as_str(), Some("intent" | "effect"))
        {
            found.push(RecordedRequest {
                seq: entry["seq"].as_u64().unwrap_or_default(),
                key,
                kind: entry["kind"].as_str().unwrap_or_default().to_owned(),
                scope: entry["scope"].as_str().unwrap_or_default().to_owned(),
                request: entry["request"].take(),
            });
        }
    })?;
    Ok(found)
}

fn article(kind: &str) -> &'static str {
    if kind.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" }
}
