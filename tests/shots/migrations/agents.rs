//! Scripted agents of three strengths. Each knows what the migration comes to; they differ in how much of it they do in one
//! attempt, in how many calls, and in what they forget or break. They go by what their prompts say: which goal is theirs,
//! whether it is to be broken down, and whether something was tried before.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::super::basics::{step, task};
use super::project::{Migration, Part};
use crate::support::model_server::{Request, Response};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Strength {
    /// Does all that is asked in a few calls.
    Strong,
    /// Forgets each fourth file; not in its third attempt of a session, not when it is told what was tried before, and not in
    /// a part.
    Middling,
    /// Reads and writes one file a turn, breaks the sixth and says that it is done.
    Weak,
}

impl Strength {
    pub(super) const ALL: [Strength; 3] = [Strength::Strong, Strength::Middling, Strength::Weak];

    pub(super) fn name(self) -> &'static str {
        match self {
            Strength::Strong => "strong",
            Strength::Middling => "middling",
            Strength::Weak => "weak",
        }
    }
}

/// The most files that a weak agent gets right in one attempt.
const MOST_OF_WEAK: usize = 5;

/// How many files are read or deleted in one call.
const AT_ONCE: usize = 20;

pub(super) struct Agent {
    pub(super) migration: Arc<Migration>,
    pub(super) strength: Strength,
    /// The attempts at the whole goal that have begun.
    begun: AtomicUsize,
}

impl Agent {
    pub(super) fn new(migration: Arc<Migration>, strength: Strength) -> Agent {
        Agent { migration, strength, begun: AtomicUsize::new(0) }
    }

    pub(super) fn reply(&self, request: &Request) -> Response {
        let step = step(request);
        if request.schema().to_string().contains("sub_goals") {
            return self.break_down(step);
        }
        // Which attempt this is, is kept in the conversation itself: in the names of its calls.
        let attempt = match step {
            0 => self.begun.fetch_add(1, Ordering::SeqCst) + 1,
            _ => attempt_of(request),
        };
        match self.calls(&task(request), attempt).get(step) {
            Some((name, arguments)) => called(&format!("n{attempt}"), name, arguments),
            None => said("All of it is done.".to_owned()),
        }
    }

    /// The parts, after a look at the files.
    fn break_down(&self, step: usize) -> Response {
        if step == 0 {
            return called("t", "list_folder", &json!({ "path": "." }));
        }
        let part = |part: &Part| json!({ "goal": part.goal, "validation": part.validation });
        let parts: Vec<Value> = self.migration.parts.iter().map(part).collect();
        said(json!({ "sub_goals": parts }).to_string())
    }

    /// The part that a prompt is about: the goal that comes first in it is the prompt's own.
    fn part(&self, task: &str) -> Option<&Part> {
        let at = |goal: &str| task.find(goal).unwrap_or(usize::MAX);
        let first = self.migration.parts.iter().min_by_key(|part| at(&part.goal))?;
        (at(&first.goal) <= at(self.migration.goal)).then_some(first)
    }

    /// All calls of an attempt, in their order.
    fn calls(&self, task: &str, attempt: usize) -> Vec<(&'static str, Value)> {
        let part = self.part(task);
        let (mut write, mut delete) = self.migration.changes(part.map(|part| part.below.as_slice()));
        let whole = part.is_none();
        if self.strength == Strength::Middling && whole && !attempt.is_multiple_of(3) && !task.contains("tried before")
        {
            write = most(&write);
            delete = most(&delete);
        }
        let edits = part.map(|part| part.edits.as_slice()).unwrap_or_default();
        match self.strength {
            Strength::Weak => {
                let mut calls = self.one_by_one(&write, &delete, whole);
                calls.extend(edits.iter().flat_map(|edit| [read(&edit[0]), replace(edit)]));
                calls
            }
            Strength::Strong | Strength::Middling => self.together(&write, &delete, edits, part),
        }
    }

    fn is_there(&self, path: &&&str) -> bool {
        self.migration.before.contains_key(**path)
    }

    fn text(&self, path: &str) -> &str {
        &self.migration.after[path]
    }

    /// Looks, reads all, writes all, and runs what validates.
    fn together(
        &self,
        write: &[&str],
        delete: &[&str],
        edits: &[[String; 3]],
        part: Option<&Part>,
    ) -> Vec<(&'static str, Value)> {
        let mut calls = vec![("list_folder", json!({ "path": "." }))];
        let there: Vec<&&str> = write.iter().filter(|path| self.is_there(path)).collect();
        calls.extend(there.chunks(AT_ONCE).map(|paths| ("read_files", json!({ "paths": paths }))));
        let file = |path: &&str| json!({ "path": path, "text": self.text(path) });
        let files: Vec<Value> = write.iter().map(file).collect();
        calls.extend(files.chunks(AT_ONCE).map(|files| ("write_files", json!({ "files": files }))));
        calls.extend(delete.chunks(AT_ONCE).map(|paths| ("delete", json!({ "paths": paths }))));
        calls.extend(edits.iter().flat_map(|edit| [read(&edit[0]), replace(edit)]));
        let validate = part.map_or(&self.migration.validate, |part| &part.validation);
        calls.extend(validate.iter().map(|command| ("run", json!({ "command": command }))));
        calls
    }

    /// Reads a file, writes it, takes the next one; of the whole goal it breaks the sixth.
    fn one_by_one(&self, write: &[&str], delete: &[&str], whole: bool) -> Vec<(&'static str, Value)> {
        let mut calls = Vec::new();
        for (index, path) in write.iter().enumerate() {
            let text = self.text(path);
            let breaks = whole && index == MOST_OF_WEAK;
            if self.is_there(&path) {
                calls.push(read(path));
            }
            let text = if breaks { half(text) } else { text };
            calls.push(("write_file", json!({ "path": path, "text": text })));
            if breaks {
                return calls;
            }
        }
        calls.extend(delete.iter().map(|path| ("delete", json!({ "paths": [path] }))));
        calls
    }
}

fn read(path: &str) -> (&'static str, Value) {
    ("read_file", json!({ "path": path }))
}

fn replace([path, old, new]: &[String; 3]) -> (&'static str, Value) {
    ("replace_in_file", json!({ "path": path, "old": old, "new": new }))
}

/// A reply by a call of a tool. A token is four bytes, as it is for the server, which counts what comes in.
fn called(id: &str, name: &str, arguments: &Value) -> Response {
    let arguments = arguments.to_string();
    Response::text("").usage(0, arguments.len() as u64 / 4 + 1).tool_call(id, name, &arguments)
}

/// A reply in words.
fn said(text: String) -> Response {
    let tokens = text.len() as u64 / 4 + 1;
    Response::text(text).usage(0, tokens)
}

/// All but each fourth.
fn most<'a>(paths: &[&'a str]) -> Vec<&'a str> {
    paths.iter().enumerate().filter(|(index, _)| index % 4 != 3).map(|(_, path)| *path).collect()
}

/// The first half of a text, in the middle of something.
fn half(text: &str) -> &str {
    let middle = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..middle]
}

/// The number of the attempt that a conversation is.
fn attempt_of(request: &Request) -> usize {
    let messages = request.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let named = messages.iter().flat_map(|message| message["tool_calls"].as_array().into_iter().flatten());
    named.filter_map(|call| call["id"].as_str()?.strip_prefix('n')?.parse().ok()).next().unwrap_or(0)
}
