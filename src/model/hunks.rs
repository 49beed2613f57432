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
        let is_cut = file["cut"] == true;
        let hunks = file["hunks"].as_array_mut().map(Vec::as_mut_slice).unwrap_or_default();
        let whole = hunks.len() - usize::from(is_cut && !hunks.is_empty());
        for (at, hunk) in hunks.iter_mut().enumerate() {
            hunk["lines"] = numbered_lines(hunk, at < whole).into();
        }
    }
    changed
}

/// Returns the lines of a hunk. `is_whole` says that it has as many as it says.
fn numbered_lines(hunk: &Value, is_whole: bool) -> Vec<Value> {
    let text = hunk["text"].as_str().unwrap_or_default();
    let mut lines: Vec<HunkLine<'_>> = Vec::new();
    for line in text.split_inclusive('\n').map(|line| line.strip_suffix('\n').unwrap_or(line)) {
        match (line.as_bytes().first(), lines.last_mut()) {
            (Some(b'\\'), Some(last)) => last.ends_file = true,
            _ => lines.push(HunkLine::of(line)),
        }
    }
    let number = |name: &str| hunk[name].as_u64().unwrap_or_default();
    let lacks = |lines: &[HunkLine<'_>]| {
        let old = lines.iter().filter(|line| line.is_old()).count() as u64;
        let new = lines.iter().filter(|line| line.is_new()).count() as u64;
        (number("old_count").saturating_sub(old), number("new_count").saturating_sub(new))
    };
    // A secret of several lines that was taken out is one line, which may have lost its sign. What follows keeps its numbers.
    let secret = lines.iter().rposition(|line| line.text.contains(REDACTED)).filter(|_| is_whole);
    if let Some(at) = secret.filter(|at| lines[*at].kind == UNSIGNED) {
        lines[at].kind = match lacks(&lines) {
            (0, _) => ADDED,
            (_, 0) => DELETED,
            _ => CONTEXT,
        };
    }
    let lacking = lacks(&lines);
    let (mut old, mut new) = (number("old_start"), number("new_start"));
    let mut numbered = Vec::with_capacity(lines.len());
    for (at, line) in lines.iter().enumerate() {
        let kind = if line.kind == UNSIGNED { CONTEXT } else { line.kind };
        let mut value = json!({ "kind": kind, "text": line.text });
        for (is_on, name, next) in [(line.is_old(), "old_line", &mut old), (line.is_new(), "new_line", &mut new)] {
            if is_on {
                value[name] = (*next).into();
                *next += 1;
            }
        }
        if line.ends_file {
            value["no_newline"] = true.into();
        }
        if secret == Some(at) {
            (old, new) = (old + lacking.0, new + lacking.1);
        }
        numbered.push(value);
    }
    numbered
}

/// A line of a hunk without its sign.
struct HunkLine<'t> {
    kind: &'static str,
    text: &'t str,
    ends_file: bool,
}

/// How what stands in the place of a secret begins.
const REDACTED: &str = "[redacted";

const ADDED: &str = "added";
const DELETED: &str = "deleted";
const CONTEXT: &str = "context";
/// What begins with no sign: an empty line without its blank is of both sides, and a secret is whatever is lacking.
const UNSIGNED: &str = "";

impl<'t> HunkLine<'t> {
    fn of(line: &'t str) -> HunkLine<'t> {
        let (kind, text) = match line.as_bytes().first() {
            Some(b'+') => (ADDED, &line[1..]),
            Some(b'-') => (DELETED, &line[1..]),
            Some(b' ') => (CONTEXT, &line[1..]),
            None => (CONTEXT, line),
            Some(_) => (UNSIGNED, line),
        };
        HunkLine { kind, text, ends_file: false }
    }

    fn is_old(&self) -> bool {
        matches!(self.kind, CONTEXT | DELETED)
    }

    fn is_new(&self) -> bool {
        matches!(self.kind, CONTEXT | ADDED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_on_both_sides() {
        let text = " same\n-old\n\\ No newline at end of file\n+new\n+\n";
        let hunk = json!({ "old_start": 7, "old_count": 2, "new_start": 9, "new_count": 3, "text": text });
        let value = json!({ "files": [{ "hunks": [hunk] }], "cut": false });
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

    #[test]
    fn what_follows_a_secret_of_several_lines_keeps_its_numbers() {
        let lines = |text: &str, (old_count, new_count): (u64, u64), cut: bool| -> Vec<Value> {
            let hunk =
                json!({ "old_start": 1, "old_count": old_count, "new_start": 1, "new_count": new_count, "text": text });
            let changed = with_lines(json!({ "files": [{ "hunks": [hunk], "cut": cut }] }));
            changed["files"][0]["hunks"][0]["lines"].as_array().cloned().unwrap_or_default()
        };
        // Five lines of a key were added between two others; with its sign and without.
        for secret in ["+[redacted]", "[redacted]"] {
            let found = lines(&format!(" a\n{secret}\n b\n"), (2, 7), false);
            assert_eq!(found[1], json!({ "kind": "added", "text": "[redacted]", "new_line": 2 }));
            assert_eq!(found[2], json!({ "kind": "context", "text": "b", "old_line": 2, "new_line": 7 }));
        }
        let gone = lines("[redacted]\n b\n", (6, 1), false);
        assert_eq!(gone[0], json!({ "kind": "deleted", "text": "[redacted]", "old_line": 1 }));
        assert_eq!(gone[1], json!({ "kind": "context", "text": "b", "old_line": 6, "new_line": 1 }));
        // A secret within its line changes no number, and neither does the end of what was cut.
        assert_eq!(lines("+k = [redacted]\n+b\n", (0, 2), false)[1]["new_line"], 2);
        assert_eq!(lines("+k = [redacted]\n+b\n", (0, 90), true)[1]["new_line"], 2);
    }
}
