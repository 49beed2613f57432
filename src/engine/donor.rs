//! An earlier journal that a run takes outcomes from: the cassette that a test replays, or the run that another
//! is forked from. What is taken is written into the run's own journal, so that the run needs its donor no more.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use crate::engine::past::{Before, Past, Turn};
use crate::error::{Code, Failure, Result};
use crate::journal::entries;
use crate::journal::key::{Key, Keys};
use crate::model::difference::{PATIENCE, differences, likeness};
use crate::model::effect::Source;

/// How many lines that nobody asked for are named.
const NAMED: usize = 10;

/// Which effects are taken from a donor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
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
pub struct Donor {
    path: PathBuf,
    past: Past,
    takes: Takes,
    /// Only this donor answers: what it does not have is an error, and the world is never asked.
    alone: bool,
    used: HashSet<Key>,
}

/// A recorded request.
struct Entry {
    seq: u64,
    key: Key,
    kind: String,
    scope: String,
    request: Value,
}

impl Donor {
    /// Returns a donor that a run may also go on without.
    pub fn new(path: &Path, takes: Takes) -> Result<Donor> {
        let past = Past::read_as_it_was(path)?;
        Ok(Donor { path: path.to_owned(), past, takes, alone: false, used: HashSet::new() })
    }

    /// Returns the run that another is forked from. What it ended with is tried again.
    pub fn forked(path: &Path) -> Result<Donor> {
        let (past, _) = Past::read(path)?;
        Ok(Donor { path: path.to_owned(), past, takes: Takes::Everything, alone: false, used: HashSet::new() })
    }

    /// Returns a cassette: the only one who answers.
    pub fn alone(path: &Path) -> Result<Donor> {
        Ok(Donor { alone: true, ..Donor::new(path, Takes::Everything)? })
    }

    /// Tells whether nobody but this donor answers such an effect.
    pub fn is_alone_for(&self, source: Source) -> bool {
        self.alone || self.takes == Takes::AllButDocuments && source == Source::Surroundings
    }

    /// Forgets the effect in this line, and all that were asked for after it.
    pub fn cut(&mut self, line: u64) -> Result<()> {
        for entry in self.entries()?.into_iter().filter(|entry| entry.seq >= line) {
            self.past.forget(entry.key);
        }
        Ok(())
    }

    /// Returns how many effects were taken so far.
    pub fn taken(&self) -> usize {
        self.used.len()
    }

    /// Tells whether the effect with this key was taken.
    pub fn gave(&self, key: Key) -> bool {
        self.used.contains(&key)
    }

    /// Tells whether effects are looked for by their keys of the first format, too.
    pub fn has_first_format(&self) -> bool {
        self.past.first_format
    }

    /// Returns the outcome of an effect and when the flow is given it, if it is there and is taken.
    pub fn take(&mut self, keys: Keys, source: Source) -> Result<Option<(Turn, Result<Value>)>> {
        let taken = match (source, self.takes) {
            _ if self.alone => true,
            (Source::Shown, _) => false,
            (Source::Said, _) | (_, Takes::Everything) => true,
            (Source::Surroundings, takes) => takes == Takes::AllButDocuments,
            (Source::Documents, _) => false,
        };
        if !taken {
            return Ok(None);
        }
        let (key, before) = self.past.of_either(keys)?;
        Ok(match before {
            Before::Ended(turn, outcome) => {
                self.used.insert(key);
                Some((turn.taken(), outcome))
            }
            Before::Never | Before::Began(_) => None,
        })
    }

    /// Says that an effect is not recorded: what it asks for, and how that differs from the nearest request that is.
    pub fn missed(&self, kind: &str, scope: &str, request: &Value) -> Result<Failure> {
        let entries = self.entries()?;
        let here = if scope == "/" { String::new() } else { format!(" in {scope}") };
        let failure = Failure::new(
            Code::CassetteMissed,
            format!("the flow asks for {} `{kind}`{here} that {} does not have", article(kind), self.path.display()),
        )
        .hint(match self.alone {
            true => "if that is as it should be, record it anew: nietz test --record",
            false => "a recording is made in an empty folder, without files, git and commands of its own: where the flow asks \
                 for others, run it, then nietz test --from-run RUN --name NAME",
        });
        let same: Vec<&Entry> = entries.iter().filter(|entry| entry.kind == kind).collect();
        if let Some(twin) = same.iter().find(|entry| entry.request == *request) {
            let count = same.iter().filter(|entry| entry.request == *request && entry.scope == scope).count();
            return Ok(failure.because(match count {
                0 => format!("line {} has the same request, in the scope {}", twin.seq, twin.scope),
                _ if self.used.contains(&twin.key) => {
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
                let unused = if self.used.contains(&entry.key) { 0.0 } else { 1.0 };
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
    pub fn left(&self) -> Result<Vec<String>> {
        let mut entries = self.entries()?;
        entries.retain(|entry| self.past.has(entry.key) && !self.used.contains(&entry.key));
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

    fn entries(&self) -> Result<Vec<Entry>> {
        entries_of(&self.path)
    }
}

/// Returns the first line of a donor that read documents and got others than the run that took from it: those were there
/// before the donor's run, and not before this one.
pub fn read_otherwise(donor: &Path, run: &Path) -> Result<Option<u64>> {
    let (mut before, mut now) = (Past::read_as_it_was(donor)?, Past::read_as_it_was(run)?);
    for entry in entries_of(donor)? {
        let reads = matches!(entry.kind.as_str(), "load" | "list" | "scan" | "rows" | "query");
        let (true, Before::Ended(_, was), Before::Ended(_, is)) = (reads, before.of(entry.key)?, now.of(entry.key)?)
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

fn entries_of(journal: &Path) -> Result<Vec<Entry>> {
    let mut found = Vec::new();
    entries::read(journal, |mut entry| {
        if let Some(key) = entry["key"].as_str().and_then(Key::parse)
            && matches!(entry["type"].as_str(), Some("intent" | "effect"))
        {
            found.push(Entry {
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
