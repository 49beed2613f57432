//! An earlier journal that a run takes outcomes from: the cassette that a test replays, or the run that this one was
//! forked from. Replayed outcomes are written into the run's own journal, so that it needs the replay source no longer.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use crate::engine::history::{DeliverySlot, History, RecordedQuestion, RecordedState};
use crate::error::{Code, Failure, Result};
use crate::journal::entries;
use crate::journal::key::{EffectKey, EffectKeys};
use crate::model::difference::{PATIENCE, differences, likeness};
use crate::model::effect::ReplayClass;
use crate::model::text::excerpt;

/// How many unused lines a report names.
const NAMED: usize = 10;

/// Which effects are taken from a replay source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayMode {
    /// All effects.
    Everything,
    /// Replies of models, answers of people, time and randomness: what was paid for, and what results depend on.
    /// Documents, files, git and commands are performed anew, in another folder.
    WhatWasSaid,
    /// What was paid for and asked: replies of models, and answers of people and servers. All else happens anew, among the documents that
    /// the other run has left, so time and randomness do, too: no two rows have one id.
    WhatWasPaidFor,
    /// All effects but those on documents, which are performed anew in an empty folder. Files, git and commands would find
    /// nothing there: if the replay source does not have such an effect, that is an error.
    AllButDocuments,
}

/// An earlier journal, and which of its outcomes were taken.
pub struct ReplaySource {
    path: PathBuf,
    history: History,
    mode: ReplayMode,
    /// Whether a missing effect is an error instead of being performed.
    exclusive: bool,
    replayed: HashSet<EffectKey>,
    /// What the flow asked for and the journal does not have, where that is only to be told.
    missed: Option<Vec<Failure>>,
}

/// A request that the journal has recorded.
struct RecordedRequest {
    seq: u64,
    key: EffectKey,
    kind: String,
    scope: String,
    request: Value,
}

impl ReplaySource {
    /// Opens a replay source; the run performs what `mode` does not take from it, or what it does not have.
    ///
    /// # Errors
    ///
    /// As [`History::read`].
    pub fn new(path: &Path, mode: ReplayMode) -> Result<ReplaySource> {
        let history = History::read_as_it_was(path)?;
        Ok(ReplaySource {
            path: path.to_owned(),
            history,
            mode,
            exclusive: false,
            replayed: HashSet::new(),
            missed: None,
        })
    }

    /// Opens the run that another is forked from. The failures that it ended with are tried
    /// again, and so are replies that could not be used.
    ///
    /// # Errors
    ///
    /// As [`History::read`].
    pub fn for_fork(path: &Path, mode: ReplayMode) -> Result<ReplaySource> {
        let (mut history, _) = History::read(path)?;
        history.forget_unusable();
        Ok(ReplaySource {
            path: path.to_owned(),
            history,
            mode,
            exclusive: false,
            replayed: HashSet::new(),
            missed: None,
        })
    }

    /// Opens a cassette: it must have every effect, and nothing is performed.
    ///
    /// # Errors
    ///
    /// As [`History::read`].
    pub fn cassette(path: &Path) -> Result<ReplaySource> {
        Ok(ReplaySource { exclusive: true, ..ReplaySource::new(path, ReplayMode::Everything)? })
    }

    /// Performs nothing, as a cassette: what the flow asks for and the journal does not have is noted, and waited for as for an
    /// answer that nobody gives, while tasks beside it go on.
    pub fn into_plan(self) -> ReplaySource {
        ReplaySource { exclusive: true, missed: Some(Vec::new()), ..self }
    }

    /// Returns what was noted of effects that the journal does not have.
    pub fn missed(&self) -> &[Failure] {
        self.missed.as_deref().unwrap_or_default()
    }

    /// Notes an effect that the journal does not have. Returns the failure that its task waits with.
    ///
    /// # Errors
    ///
    /// The missing effect itself, where it is not to be waited for.
    pub(super) fn miss(&mut self, kind: &str, scope: &str, request: &Value) -> Result<Failure> {
        let failure = self.describe_miss(kind, scope, request)?;
        let Some(missed) = &mut self.missed else { return Err(failure) };
        missed.push(failure);
        Ok(Failure::new(Code::AnswerMissing, "it is not recorded"))
    }

    /// Tells whether effects of this class may come from this replay source only.
    pub fn is_exclusive_for(&self, class: ReplayClass) -> bool {
        self.exclusive || self.mode == ReplayMode::AllButDocuments && class == ReplayClass::Surroundings
    }

    /// Forgets the effect in this line and all effects that were requested after it.
    ///
    /// # Errors
    ///
    /// As [`entries::read`], because the journal is read again.
    pub fn forget_from(&mut self, line: u64) -> Result<()> {
        for entry in self.entries()?.into_iter().filter(|entry| entry.seq >= line) {
            self.history.forget(entry.key);
        }
        Ok(())
    }

    /// Forgets all model calls, so that they are made anew.
    ///
    /// # Errors
    ///
    /// As [`entries::read`], because the journal is read again.
    pub fn forget_calls(&mut self) -> Result<()> {
        for entry in self.entries()?.into_iter().filter(|entry| entry.kind == "chat") {
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

    /// Tells whether effects must be looked up by their keys of the first format as well.
    pub fn has_first_format(&self) -> bool {
        self.history.first_format
    }

    /// Returns the questions that the journal has recorded.
    pub(super) fn questions(&self) -> &HashMap<EffectKey, RecordedQuestion> {
        self.history.questions()
    }

    /// Returns a recorded question by one of its keys.
    pub(super) fn question(&self, keys: EffectKeys) -> Option<&RecordedQuestion> {
        self.history.question(keys)
    }

    /// Returns the recorded answer to a question, without taking it.
    ///
    /// # Errors
    ///
    /// `journal-broken` if the answer cannot be expanded.
    pub(super) fn answer(&mut self, keys: EffectKeys) -> Result<Option<Value>> {
        Ok(match self.history.state_of_either(keys)?.1 {
            RecordedState::Ended(_, Ok(answer)) => Some(answer),
            RecordedState::Ended(_, Err(_)) | RecordedState::Never | RecordedState::Began(_) => None,
        })
    }

    /// Returns the outcome of an effect and when it is delivered, if the mode takes this class and the journal has it.
    ///
    /// # Errors
    ///
    /// `journal-broken` if the outcome cannot be expanded.
    pub fn take(&mut self, keys: EffectKeys, class: ReplayClass) -> Result<Option<(DeliverySlot, Result<Value>)>> {
        let taken = match (class, self.mode) {
            _ if self.exclusive => true,
            (ReplayClass::Shown, _) => false,
            (ReplayClass::Said, _) | (_, ReplayMode::Everything) => true,
            (ReplayClass::Chance, mode) => mode != ReplayMode::WhatWasPaidFor,
            (ReplayClass::Surroundings, mode) => mode == ReplayMode::AllButDocuments,
            (ReplayClass::Documents, _) => false,
        };
        if !taken {
            return Ok(None);
        }
        let (key, state) = self.history.state_of_either(keys)?;
        Ok(match state {
            RecordedState::Ended(slot, outcome) => {
                self.replayed.insert(key);
                Some((slot.for_replay(), outcome))
            }
            RecordedState::Never | RecordedState::Began(_) => None,
        })
    }

    /// Returns the failure for an effect that is not recorded: how its request differs from the nearest recorded one.
    ///
    /// # Errors
    ///
    /// As [`entries::read`], because the journal is read again.
    pub fn describe_miss(&self, kind: &str, scope: &str, request: &Value) -> Result<Failure> {
        let entries = self.entries()?;
        let here = if scope == "/" { String::new() } else { format!(" in {scope}") };
        let failure = Failure::new(
            Code::CassetteMissed,
            format!("the flow asks for {} `{kind}`{here} that {} does not have", article(kind), self.path.display()),
        )
        .hint(match self.exclusive {
            true if first_read_of_before(&self.path)?.is_some() => {
                "it began with documents: where the change is as it should be, run the flow where they are, then nietz test \
                 --from-run RUN --name NAME"
            }
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
                _ if !self.history.has(twin.key) => format!("line {} is done anew", twin.seq),
                _ => format!("line {} has the same request, made when other things had been changed before", twin.seq),
            }));
        }
        let until = Instant::now() + PATIENCE;
        let nearest = same
            .into_iter()
            .map(|entry| {
                // An unused request in the same scope is most likely the earlier version of this one.
                let unused = if self.replayed.contains(&entry.key) { 0.0 } else { 1.0 };
                let place = if entry.scope == scope { 0.25 } else { 0.0 };
                (likeness(&entry.request, request, until) + unused + place, entry)
            })
            .max_by(|(left, _), (right, _)| left.total_cmp(right));
        let Some((_, nearest)) = nearest else {
            let content = differences(&json!({}), request).join("\n");
            return Ok(failure.because(format!("no `{kind}` is recorded; it asks for\n{content}")));
        };
        let changes = differences(&nearest.request, request).join("\n");
        Ok(failure
            .because(format!("the nearest is line {}; from it to what is asked for now:\n{changes}", nearest.seq)))
    }

    /// Describes each recorded effect that was not used, one line each.
    ///
    /// # Errors
    ///
    /// As [`entries::read`], because the journal is read again.
    pub fn unused(&self) -> Result<Vec<String>> {
        let mut entries = self.entries()?;
        entries.retain(|entry| self.history.has(entry.key) && !self.replayed.contains(&entry.key));
        let mut seen = HashSet::new();
        entries.retain(|entry| seen.insert(entry.key));
        let count = entries.len();
        let mut lines: Vec<String> = entries
            .into_iter()
            .take(NAMED)
            .map(|entry| {
                let request = excerpt(&entry.request.to_string());
                format!("line {}: {} in {} {request}", entry.seq, entry.kind, entry.scope)
            })
            .collect();
        if count > NAMED {
            lines.push(format!("… and {} more", count - NAMED));
        }
        Ok(lines)
    }

    fn entries(&self) -> Result<Vec<RecordedRequest>> {
        entries_of(&self.path)
    }
}

/// Returns the first line of a replay source that read documents with another result than the run replaying it: those
/// documents existed before the recorded run, and not before this one.
///
/// # Errors
///
/// As [`History::read`].
pub(crate) fn first_different_read(source: &Path, run: &Path) -> Result<Option<u64>> {
    let (mut before, mut now) = (History::read_as_it_was(source)?, History::read_as_it_was(run)?);
    for entry in entries_of(source)? {
        let reads = matches!(entry.kind.as_str(), "load" | "list" | "scan" | "folders" | "rows" | "query");
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

/// Returns the first line of a journal that read a document, or rows, that the run had not written before: they existed before
/// it began, so that an empty folder is no place to record it in.
///
/// # Errors
///
/// As [`entries::read`].
pub(crate) fn first_read_of_before(journal: &Path) -> Result<Option<u64>> {
    let (mut asked, mut written, mut first) = (HashMap::new(), HashSet::new(), None);
    entries::read(journal, |entry| {
        let key = entry["key"].as_str().unwrap_or_default().to_owned();
        if matches!(entry["type"].as_str(), Some("intent" | "effect")) {
            let named = json!([entry["request"]["collection"], entry["request"]["key"]]).to_string();
            let seq = entry["seq"].as_u64().unwrap_or_default();
            asked.insert(key.clone(), (entry["kind"].as_str().unwrap_or_default().to_owned(), seq, named));
        }
        let (Some((kind, seq, named)), Some(ok)) = (asked.get(&key), entry.get("ok")) else { return };
        let was_there = |path: &Value| !written.contains(path.as_str().unwrap_or_default());
        let is_before = match kind.as_str() {
            "save" | "append" => {
                written.insert(ok["path"].as_str().unwrap_or_default().to_owned());
                written.insert(named.clone());
                false
            }
            "load" => !ok.is_null() && was_there(&ok["path"]),
            "list" => ok.as_array().into_iter().flatten().any(|listed| was_there(&listed["path"])),
            "scan" => ok["entries"].as_array().into_iter().flatten().any(|scanned| was_there(&scanned["path"])),
            "folders" => ok.as_array().is_some_and(|folders| !folders.is_empty()),
            "rows" => ok.as_array().is_some_and(|rows| !rows.is_empty()) && !written.contains(named),
            _ => false,
        };
        if is_before && first.is_none() {
            first = Some(*seq);
        }
    })?;
    Ok(first)
}

/// Returns a value without the digests of files: what documents say, however their files are formatted.
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
    let mut requests = Vec::new();
    entries::read(journal, |mut entry| {
        if let Some(key) = entry["key"].as_str().and_then(EffectKey::parse)
            && matches!(entry["type"].as_str(), Some("intent" | "effect"))
        {
            requests.push(RecordedRequest {
                seq: entry["seq"].as_u64().unwrap_or_default(),
                key,
                kind: entry["kind"].as_str().unwrap_or_default().to_owned(),
                scope: entry["scope"].as_str().unwrap_or_default().to_owned(),
                request: entry["request"].take(),
            });
        }
    })?;
    Ok(requests)
}

fn article(kind: &str) -> &'static str {
    if kind.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" }
}
