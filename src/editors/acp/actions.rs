//! What a run does beside talking, as tool calls: commands, and work on files and branches. Events do not tell it, so it is read
//! from the run's journal as that grows.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::{
    ContentBlock, Diff, SessionUpdate, TextContent, ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use serde_json::Value;

use crate::model::text::{clean, excerpt, shell};
use crate::report::{LiveRun, RecordedEffect};

/// The most of a command's output that is shown, in letters.
const MOST_OUTPUT: usize = 4000;
/// The largest text that is shown as a difference, in bytes.
const LARGEST: usize = 256 << 10;

/// The tool calls of one run.
pub(super) struct Actions {
    run: LiveRun,
    /// Where worktrees are, by their names.
    trees: HashMap<String, PathBuf>,
    /// The effects that are shown, by their keys, and whether each is over.
    shown: HashMap<String, bool>,
    /// Whether what is recorded by now is passed over: it was shown when it happened.
    passes_over: bool,
}

/// What is shown of an effect when it begins.
struct Action {
    title: String,
    kind: ToolKind,
    places: Vec<PathBuf>,
    diff: Option<Diff>,
}

impl Actions {
    /// Begins at the first line of a journal; with `resumed`, behind those that are there by now.
    pub(super) fn of(journal: &Path, resumed: bool) -> Actions {
        let (trees, shown) = (HashMap::new(), HashMap::new());
        Actions { run: LiveRun::new(journal), trees, shown, passes_over: resumed }
    }

    /// Returns what was recorded since the last time.
    pub(super) fn more(&mut self) -> Vec<SessionUpdate> {
        // Whoever is at the run tells what is wrong with its journal.
        let changed = self.run.effects().unwrap_or_default();
        let passes_over = std::mem::take(&mut self.passes_over);
        let mut updates = Vec::new();
        for (place, _) in changed {
            let effect = &self.run.history().effects[place];
            let (ok, request) = (&effect.outcome, &effect.request);
            if effect.kind == "git" && request["op"] == "worktree" {
                let made = request["name"].as_str().zip(ok["path"].as_str());
                self.trees.extend(made.map(|(name, path)| (name.to_owned(), PathBuf::from(path))));
            }
            if passes_over {
                continue;
            }
            if !self.shown.contains_key(&effect.key)
                && let Some(action) = self.action(&effect.kind, request)
            {
                updates.push(SessionUpdate::ToolCall(action.call(&effect.key)));
                self.shown.insert(effect.key.clone(), false);
            }
            if effect.ended.is_some()
                && let Some(is_over) = self.shown.get_mut(&effect.key).filter(|is_over| !**is_over)
            {
                *is_over = true;
                updates.push(SessionUpdate::ToolCallUpdate(end(effect)));
            }
        }
        updates
    }

    fn action(&self, kind: &str, request: &Value) -> Option<Action> {
        let text = |name: &str| request[name].as_str().unwrap_or_default();
        let tree = self.trees.get(text("tree"));
        let at = |path: &str| tree.map(|tree| tree.join(path));
        let plain =
            |title: String, kind: ToolKind| Action { title: excerpt(&title), kind, places: Vec::new(), diff: None };
        let placed = |title: String, kind: ToolKind| {
            let places = at(text("path")).into_iter().collect();
            Action { places, ..plain(title, kind) }
        };
        let differs = |title: String, old: Option<&str>, new: &str| {
            let is_small = old.map_or(0, str::len) + new.len() <= LARGEST;
            let path = at(text("path")).filter(|_| is_small);
            let diff = path.map(|path| Diff::new(path, new).old_text(old.map(str::to_owned)));
            Action { diff, ..placed(title, ToolKind::Edit) }
        };
        let path = text("path");
        Some(match (kind, text("op")) {
            ("exec", _) => plain(command(&request["run"]), ToolKind::Execute),
            ("tree", "write") => differs(format!("Write {path}"), None, text("text")),
            ("tree", "replace") => differs(format!("Edit {path}"), Some(text("old")), text("new")),
            ("tree", "read") => placed(format!("Read {path}"), ToolKind::Read),
            ("tree", "find") => plain(format!("Find {}", text("glob")), ToolKind::Search),
            ("tree", "grep") => plain(format!("Search for {}", text("pattern")), ToolKind::Search),
            ("tree", "delete") => placed(format!("Delete {path}"), ToolKind::Delete),
            ("tree", "rename") => plain(format!("Move {} to {}", text("from"), text("to")), ToolKind::Move),
            ("tree", "apply") => plain(format!("Apply a patch in {}", text("tree")), ToolKind::Edit),
            ("tree", "commit") => plain(format!("Commit {}", text("message")), ToolKind::Other),
            ("git", "worktree") => plain(format!("Make the worktree {}", text("name")), ToolKind::Other),
            ("git", "branch") => plain(format!("Make the branch {}", text("name")), ToolKind::Other),
            ("git", "diff") => plain("Show what changed".to_owned(), ToolKind::Read),
            ("git", "merge") => plain(format!("Merge {} into {}", text("from"), text("into")), ToolKind::Other),
            _ => return None,
        })
    }
}

impl Action {
    fn call(self, key: &str) -> ToolCall {
        ToolCall::new(key.to_owned(), self.title)
            .kind(self.kind)
            .status(ToolCallStatus::InProgress)
            .locations(self.places.into_iter().map(ToolCallLocation::new).collect())
            .content(self.diff.into_iter().map(ToolCallContent::Diff).collect())
    }
}

/// Returns how an effect has ended.
fn end(effect: &RecordedEffect) -> ToolCallUpdate {
    let (ok, failure) = (&effect.outcome, &effect.failure);
    let has_failed = !failure.is_null() || ok["exit"].as_i64().is_some_and(|exit| exit != 0);
    let status = if has_failed { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
    let mut fields = ToolCallUpdateFields::new().status(status);
    let text = ok["output"].as_str().or(ok["patch"].as_str()).or(failure["message"].as_str());
    let text = text.map(end_of).unwrap_or_default();
    if !text.is_empty() {
        fields = fields.content(vec![ContentBlock::Text(TextContent::new(text)).into()]);
    }
    ToolCallUpdate::new(effect.key.clone(), fields)
}

/// Returns a command line as people write it.
fn command(run: &Value) -> String {
    match run["program"].as_array() {
        Some(words) => words.iter().filter_map(Value::as_str).map(shell).collect::<Vec<_>>().join(" "),
        None => run["shell"].as_str().unwrap_or("a command").to_owned(),
    }
}

/// Returns the end of an output.
fn end_of(text: &str) -> String {
    let text = clean(text.trim_end());
    match text.char_indices().rev().nth(MOST_OUTPUT) {
        Some((at, _)) => format!("…{}", &text[at..]),
        None => text,
    }
}
