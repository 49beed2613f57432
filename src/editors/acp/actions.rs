//! What a run does beside talking, as tool calls: commands, and work on files and branches. Events do not tell it, so it is read
//! from the run's journal as that grows.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::{
    ContentBlock, Diff, SessionUpdate, TextContent, ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use serde_json::Value;

use crate::journal::entries::Follower;
use crate::model::text::{clean, excerpt, shell};

/// The most of a command's output that is shown, in letters.
const MOST_OUTPUT: usize = 4000;
/// The largest text that is shown as a difference, in bytes.
const LARGEST: usize = 256 << 10;

/// The tool calls of one run.
pub(super) struct Actions {
    follower: Follower,
    /// Where worktrees are, by their names.
    trees: HashMap<String, PathBuf>,
    /// The effects that are shown and not over: by their keys, the worktree that one makes, if it makes one.
    open: HashMap<String, Option<String>>,
    /// Whether what is recorded before this process went on is passed over.
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
    /// Begins at the first line of a journal; with `resumed`, behind the last line that an earlier process wrote.
    pub(super) fn of(journal: &Path, resumed: bool) -> Actions {
        Actions { follower: Follower::new(journal), trees: HashMap::new(), open: HashMap::new(), passes_over: resumed }
    }

    /// Returns what was recorded since the last time.
    pub(super) fn more(&mut self) -> Vec<SessionUpdate> {
        let mut entries = Vec::new();
        // Whoever is at the run tells what is wrong with its journal.
        let _ = self.follower.more(|entry| entries.push(entry));
        let shown_from = match entries.iter().rposition(|entry| entry["type"] == "resume") {
            Some(last) if self.passes_over => last,
            None if self.passes_over => entries.len(),
            _ => 0,
        };
        self.passes_over &= shown_from == entries.len();
        let mut updates = Vec::new();
        for (number, entry) in entries.iter().enumerate() {
            let update = self.update(entry);
            updates.extend(update.filter(|_| number >= shown_from));
        }
        updates
    }

    fn update(&mut self, entry: &Value) -> Option<SessionUpdate> {
        let key = entry["key"].as_str()?.to_owned();
        match entry["type"].as_str()? {
            "intent" => {
                let (kind, request) = (entry["kind"].as_str()?, &entry["request"]);
                let action = self.action(kind, request)?;
                let makes = (kind == "git" && request["op"] == "worktree").then(|| request["name"].as_str()).flatten();
                self.open.insert(key.clone(), makes.map(str::to_owned));
                let locations = action.places.into_iter().map(ToolCallLocation::new).collect();
                let call = ToolCall::new(key, action.title)
                    .kind(action.kind)
                    .status(ToolCallStatus::InProgress)
                    .locations(locations)
                    .content(action.diff.into_iter().map(ToolCallContent::Diff).collect());
                Some(SessionUpdate::ToolCall(call))
            }
            "outcome" => {
                let makes = self.open.remove(&key)?;
                let (ok, failure) = (&entry["ok"], &entry["failure"]);
                self.trees.extend(makes.zip(ok["path"].as_str().map(PathBuf::from)));
                let has_failed = !failure.is_null() || ok["exit"].as_i64().is_some_and(|exit| exit != 0);
                let status = if has_failed { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
                let mut fields = ToolCallUpdateFields::new().status(status);
                let text = ok["output"].as_str().or(ok["patch"].as_str()).or(failure["message"].as_str());
                let text = text.map(end_of).unwrap_or_default();
                if !text.is_empty() {
                    fields = fields.content(vec![ContentBlock::Text(TextContent::new(text)).into()]);
                }
                Some(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(key, fields)))
            }
            _ => None,
        }
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
