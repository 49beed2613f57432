//! What a change does to files: which, how, and the hunks of each with the numbers of their lines.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What is compared with what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ComparedTrees {
    Revisions { from: String, to: String },
    Uncommitted { uncommitted: Uncommitted },
}

/// A part of what is not committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Uncommitted {
    /// From the commit that is checked out to the index.
    Staged,
    /// From the index to the files of the workspace.
    Unstaged,
}

/// Files that differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangedFiles {
    pub files: Vec<ChangedFile>,
    /// Whether there are more behind the last one.
    pub cut: bool,
}

/// A file that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangedFile {
    pub path: String,
    /// The path that it had before, if that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_path: Option<String>,
    pub kind: FileChangeKind,
    /// Git's mode before and after, if the file was there and if it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_mode: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub binary: bool,
    pub hunks: Vec<Hunk>,
    /// Whether it has more lines that differ than its hunks have.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChangeKind {
    Added,
    Modified,
    Deleted,
    Renamed,
    /// A merge has left it in conflict.
    Unmerged,
}

/// Lines that differ, with some around them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hunk {
    pub old_start: u64,
    pub old_count: u64,
    pub new_start: u64,
    pub new_count: u64,
    /// The line that git takes for the heading of what follows, such as the name of a function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heading: Option<String>,
    /// The lines as a patch has them.
    pub text: String,
}

/// Adds to each hunk of an outcome its lines one by one, each with its numbers. The journal has them once, as text.
pub fn with_lines(mut changed: Value) -> Value {
    for file in changed["files"].as_array_mut().into_iter().flatten() {
        for hunk in file["hunks"].as_array_mut().into_iter().flatten() {
            hunk["lines"] = numbered_lines(hunk).into();
        }
    }
    changed
}

fn numbered_lines(hunk: &Value) -> Vec<Value> {
    let start = |name: &str| hunk[name].as_u64().unwrap_or_default();
    let (mut old, mut new) = (start("old_start"), start("new_start"));
    let mut lines: Vec<Value> = Vec::new();
    let next = |number: &mut u64| std::mem::replace(number, *number + 1);
    for line in hunk["text"].as_str().unwrap_or_default().split_inclusive('\n') {
        let line = line.strip_suffix('\n').unwrap_or(line);
        let text = line.get(1..).unwrap_or_default();
        lines.push(match line.as_bytes().first() {
            Some(b'+') => json!({ "kind": "added", "text": text, "new_line": next(&mut new) }),
            Some(b'-') => json!({ "kind": "deleted", "text": text, "old_line": next(&mut old) }),
            Some(b'\\') => {
                if let Some(last) = lines.last_mut() {
                    last["no_newline"] = true.into();
                }
                continue;
            }
            _ => {
                let (old, new) = (next(&mut old), next(&mut new));
                json!({ "kind": "context", "text": text, "old_line": old, "new_line": new })
            }
        });
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_on_both_sides() {
        let text = " same\n-old\n\\ No newline at end of file\n+new\n+\n";
        let value = json!({ "files": [{ "hunks": [{ "old_start": 7, "new_start": 9, "text": text }] }], "cut": false });
        assert_eq!(
            with_lines(value)["files"][0]["hunks"][0]["lines"],
            json!([
                { "kind": "context", "text": "same", "old_line": 7, "new_line": 9 },
                { "kind": "deleted", "text": "old", "old_line": 8, "no_newline": true },
                { "kind": "added", "text": "new", "new_line": 10 },
                { "kind": "added", "text": "", "new_line": 11 },
            ])
        );
    }
}
