//! Shows what changed file by file, with the hunks of each. Git lists the files first, and its patch is read beside that list:
//! names are taken from the list, which separates them by NUL, and never from the patch.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::Repository;
use super::branches::{AS_PATCH, MOST_PATCH};
use super::call::GitCall;
use crate::error::{Code, Failure, Result};
use crate::model::hunks::{ChangedFile, ChangedFiles, ComparedTrees, FileChangeKind, Hunk, Uncommitted};
use crate::model::text::excerpt;

/// The most files of one answer.
const MOST_FILES: usize = 1000;

/// The options of the list of files: with all names whole, and renames found.
const AS_LIST: [&str; 4] = ["--raw", "-z", "-M", "--no-abbrev"];

/// Which files of a change are wanted, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct HunkQuery<'a> {
    /// Only this file, or those in this folder.
    pub path: Option<&'a str>,
    /// Only those behind this file.
    pub after: Option<&'a str>,
    /// How many lines around what differs.
    pub context: usize,
}

impl Repository {
    /// Returns the files that differ with their hunks, as many as there is room for.
    pub(super) fn hunks(&self, compared: &ComparedTrees, query: HunkQuery<'_>) -> Result<ChangedFiles> {
        match compared {
            ComparedTrees::Revisions { from, to } => {
                let (from, to) = (self.need_commit(from)?, self.need_commit(to)?);
                query
                    .answer(&|options| Ok(self.read_only_call()?.args(["diff-tree", "-r"]).add(options)), &[&from, &to])
            }
            ComparedTrees::Uncommitted { uncommitted: Uncommitted::Staged } => {
                let head = self.head()?.commit;
                self.with_index(|call| {
                    query.answer(&|options| Ok(call()?.args(["diff-index", "--cached"]).add(options)), &[&head])
                })
            }
            ComparedTrees::Uncommitted { uncommitted: Uncommitted::Unstaged } => {
                self.head()?;
                self.with_index(|call| {
                    // As in `Repository::unstaged`.
                    call()?.args(["update-index", "-q", "--refresh"]).output()?;
                    query.answer(&|options| Ok(call()?.args(["diff-files"]).add(options)), &[])
                })
            }
        }
    }
}

/// Options of a call.
type Options<'a> = &'a [&'a OsStr];

impl GitCall {
    fn add(self, options: Options<'_>) -> GitCall {
        options.iter().fold(self, |call, option| call.path(Path::new(option)))
    }
}

impl HunkQuery<'_> {
    /// Asks git for the list and for the patch of what `call` compares; `what` are the commits.
    fn answer(self, call: &dyn Fn(Options<'_>) -> Result<GitCall>, what: &[&str]) -> Result<ChangedFiles> {
        let list = call(&AS_LIST.map(OsStr::new))?.args(what.iter().copied()).bytes()?;
        let all = listed(&list);
        let is_wanted = |change: &ListedChange<'_>| self.wants(change.path);
        let behind = self.behind(&all)?;
        let Some(start) = (behind..all.len()).find(|at| is_wanted(&all[*at])) else {
            return Ok(ChangedFiles { files: Vec::new(), cut: false });
        };
        // A file that became a folder may have others between itself and what is in the folder: those are the next answer.
        let end = start + all[start..].iter().take_while(|change| is_wanted(change)).count();
        // Renames are looked for among all files, whichever are wanted: `--skip-to` leaves files out behind that.
        let mut skip = b"--skip-to=".to_vec();
        skip.extend_from_slice(all[start].path);
        let context = format!("-U{}", self.context);
        let mut options: Vec<&OsStr> = AS_PATCH.map(OsStr::new).to_vec();
        options.extend([&context, "--src-prefix=a/", "--dst-prefix=b/"].map(OsStr::new));
        options.push(OsStr::from_bytes(&skip));
        let patch = call(&options)?.args(what.iter().copied()).limit_output(MOST_PATCH + 1).bytes()?;
        let is_cut = patch.len() > MOST_PATCH;
        let most = end.min(start + MOST_FILES);
        let mut reader = PatchReader { rest: &patch[..patch.len().min(MOST_PATCH)], is_cut, all: &all, at: start };
        let files = reader.files(most)?;
        Ok(ChangedFiles { cut: all[reader.at..].iter().any(is_wanted), files })
    }

    fn wants(self, path: &[u8]) -> bool {
        self.path.is_none_or(|wanted| {
            let rest = path.strip_prefix(wanted.strip_suffix('/').unwrap_or(wanted).as_bytes());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        })
    }

    /// Returns where in the list the files begin that stand behind the one that is named.
    fn behind(self, all: &[ListedChange<'_>]) -> Result<usize> {
        let Some(after) = self.after else { return Ok(0) };
        let at = all.iter().rposition(|change| change.shown_path() == after).ok_or_else(|| {
            let message = format!("git.hunks: after: `{}` is no file of this change", excerpt(after));
            Failure::new(Code::RequestInvalid, message)
                .hint("give the path of the last file that you have, as git.hunks gave it")
        })?;
        Ok(at + 1)
    }
}

/// A file in git's list of what differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ListedChange<'p> {
    status: u8,
    old_mode: &'p [u8],
    new_mode: &'p [u8],
    old_path: &'p [u8],
    path: &'p [u8],
}

/// Reads what git lists with [`AS_LIST`]: for each file `:MODE MODE HASH HASH STATUS`, then its path, or its two paths.
fn listed(list: &[u8]) -> Vec<ListedChange<'_>> {
    let mut parts = list.split(|byte| *byte == 0);
    let mut changes = Vec::new();
    while let Some(facts) = parts.next().and_then(|facts| facts.strip_prefix(b":")) {
        let mut facts = facts.split(|byte| *byte == b' ');
        let (Some(old_mode), Some(new_mode), Some(status)) = (facts.next(), facts.next(), facts.nth(2)) else { break };
        let status = status.first().copied().unwrap_or_default();
        let Some(old_path) = parts.next() else { break };
        let path = if status == b'R' { parts.next().unwrap_or(old_path) } else { old_path };
        changes.push(ListedChange { status, old_mode, new_mode, old_path, path });
    }
    changes
}

impl ListedChange<'_> {
    fn shown_path(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.path)
    }

    /// Returns the line with which git begins the patch of this file.
    fn head(&self) -> Vec<u8> {
        [b"diff --git ", quoted(b"a/", self.old_path).as_slice(), b" ", &quoted(b"b/", self.path), b"\n"].concat()
    }

    /// Returns the file without any hunk.
    fn file(&self) -> ChangedFile {
        let mode = |mode: &[u8]| (mode != b"000000").then(|| String::from_utf8_lossy(mode).into_owned());
        let is_renamed = self.status == b'R';
        ChangedFile {
            path: self.shown_path().into_owned(),
            old_path: is_renamed.then(|| String::from_utf8_lossy(self.old_path).into_owned()),
            kind: match self.status {
                b'A' => FileChangeKind::Added,
                b'D' => FileChangeKind::Deleted,
                b'R' => FileChangeKind::Renamed,
                b'U' => FileChangeKind::Unmerged,
                _ => FileChangeKind::Modified,
            },
            old_mode: mode(self.old_mode),
            new_mode: mode(self.new_mode),
            binary: false,
            hunks: Vec::new(),
            cut: false,
        }
    }
}

/// Writes a path as git does in a patch: in quotes if it has a control character, a quote or a backslash.
fn quoted(prefix: &[u8], path: &[u8]) -> Vec<u8> {
    let is_plain = |byte: &u8| !matches!(byte, 0..0x20 | 0x7f | b'"' | b'\\');
    if path.iter().all(is_plain) {
        return [prefix, path].concat();
    }
    let mut out = [b"\"", prefix].concat();
    for byte in path {
        match byte {
            0x07 => out.extend(b"\\a"),
            0x08 => out.extend(b"\\b"),
            b'\t' => out.extend(b"\\t"),
            b'\n' => out.extend(b"\\n"),
            0x0b => out.extend(b"\\v"),
            0x0c => out.extend(b"\\f"),
            b'\r' => out.extend(b"\\r"),
            b'"' | b'\\' => out.extend([b'\\', *byte]),
            plain if is_plain(plain) => out.push(*plain),
            other => out.extend(format!("\\{other:03o}").into_bytes()),
        }
    }
    out.push(b'"');
    out
}

/// Reads a patch beside the list of the files that it is of.
struct PatchReader<'p> {
    rest: &'p [u8],
    /// Whether the patch goes on behind what is here.
    is_cut: bool,
    all: &'p [ListedChange<'p>],
    /// The next file of the list.
    at: usize,
}

impl<'p> PatchReader<'p> {
    /// Returns the files up to one of the list, as far as the patch has all of each. Of a file that is longer than a whole
    /// answer the beginning is returned.
    fn files(&mut self, end: usize) -> Result<Vec<ChangedFile>> {
        let mut files: Vec<ChangedFile> = Vec::new();
        while let Some(line) = self.line() {
            // What stands between the files: of one that is in conflict, git tells the name alone.
            if !line.starts_with(b"diff --git ") {
                continue;
            }
            // A file that became a link, or the other way round, is deleted and added.
            let last = self.at.checked_sub(1).filter(|_| !files.is_empty()).map(|last| &self.all[last]);
            if last.is_some_and(|last| last.status == b'T' && last.head() == line) {
                let whole = self.read_into(files.last_mut().expect("it is not empty"));
                self.end_of_file(&mut files, whole);
                continue;
            }
            let found =
                (self.at..self.all.len()).find(|at| self.all[*at].status != b'U' && self.all[*at].head() == line);
            let Some(found) = found else {
                let line = String::from_utf8_lossy(line).into_owned();
                return Err(Failure::new(Code::GitFailed, "git's patch has a file that its list has not")
                    .because(excerpt(line.trim_end()).to_string()));
            };
            self.without_patch(&mut files, found.min(end));
            if found >= end {
                return Ok(files);
            }
            let mut file = self.all[found].file();
            self.at = found + 1;
            let whole = self.read_into(&mut file);
            files.push(file);
            self.end_of_file(&mut files, whole);
        }
        if !self.is_cut {
            self.without_patch(&mut files, end);
        }
        Ok(files)
    }

    /// Adds the files up to one of the list that have no patch.
    fn without_patch(&mut self, files: &mut Vec<ChangedFile>, end: usize) {
        files.extend(self.all[self.at..end].iter().map(ListedChange::file));
        self.at = end;
    }

    /// Takes the last file back if the patch ends in the middle of it, or marks it if there is no other.
    fn end_of_file(&mut self, files: &mut Vec<ChangedFile>, whole: bool) {
        match (whole, files.as_mut_slice()) {
            (false, [only]) => only.cut = true,
            (false, _) => {
                files.pop();
                self.at -= 1;
            }
            (true, _) => {}
        }
    }

    /// Reads what follows the first line of a file. Returns whether all of it is there.
    fn read_into(&mut self, file: &mut ChangedFile) -> bool {
        while let Some(line) = self.next_line() {
            if line.starts_with(b"diff --git ") || line.starts_with(b"* Unmerged path ") {
                return true;
            }
            self.rest = &self.rest[line.len()..];
            if let Some(head) = line.strip_prefix(b"@@ ") {
                let (hunk, whole) = self.hunk(head);
                file.hunks.extend(hunk.filter(|hunk| !hunk.text.is_empty()));
                if !whole {
                    return false;
                }
            } else if line.starts_with(b"Binary files ") {
                file.binary = true;
            }
        }
        !self.is_cut
    }

    /// Reads a hunk whose first line goes on with `-OLD,COUNT +NEW,COUNT @@ HEADING`. Returns whether all of it is there.
    fn hunk(&mut self, head: &[u8]) -> (Option<Hunk>, bool) {
        let head = String::from_utf8_lossy(head).into_owned();
        let Some((old, new, heading)) = ranges(&head) else { return (None, true) };
        let mut text = Vec::new();
        let (mut old_left, mut new_left) = (old.1, new.1);
        while old_left > 0 || new_left > 0 {
            let Some(line) = self.line() else { break };
            match line[0] {
                b'+' => new_left = new_left.saturating_sub(1),
                b'-' => old_left = old_left.saturating_sub(1),
                b'\\' => {}
                _ => (old_left, new_left) = (old_left.saturating_sub(1), new_left.saturating_sub(1)),
            }
            text.extend_from_slice(line);
        }
        let whole = old_left == 0 && new_left == 0;
        if let Some(mark) = self.next_line().filter(|line| whole && line.starts_with(b"\\")) {
            text.extend_from_slice(mark);
            self.rest = &self.rest[mark.len()..];
        }
        let hunk = Hunk {
            old_start: old.0,
            old_count: old.1,
            new_start: new.0,
            new_count: new.1,
            heading: Some(heading.to_owned()).filter(|heading| !heading.is_empty()),
            text: String::from_utf8_lossy(&text).into_owned(),
        };
        (Some(hunk), whole)
    }

    /// Returns the next line, if all of it is there.
    fn next_line(&self) -> Option<&'p [u8]> {
        let end = self.rest.iter().position(|byte| *byte == b'\n')?;
        Some(&self.rest[..=end])
    }

    /// Takes the next line.
    fn line(&mut self) -> Option<&'p [u8]> {
        let line = self.next_line()?;
        self.rest = &self.rest[line.len()..];
        Some(line)
    }
}

/// Where lines begin, and how many there are.
type LineRange = (u64, u64);

/// Reads `-1,2 +3,4 @@ heading`: where lines begin and how many there are, on each side. One line has no count.
fn ranges(head: &str) -> Option<(LineRange, LineRange, &str)> {
    let (ranges, heading) = head.split_once(" @@")?;
    let (old, new) = ranges.strip_prefix('-')?.split_once(" +")?;
    let range = |text: &str| {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    Some((range(old)?, range(new)?, heading.trim_end_matches(['\n', '\r']).trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_as_git_quotes_them() {
        assert_eq!(quoted(b"a/", "ünï b/c".as_bytes()), "a/ünï b/c".as_bytes());
        assert_eq!(quoted(b"b/", b"t\tn\nq\"s\\x\x01\x7f"), b"\"b/t\\tn\\nq\\\"s\\\\x\\001\\177\"");
    }

    #[test]
    fn a_list_has_two_paths_for_a_rename() {
        let list = b":100644 100755 aa bb M\0a b\0:100644 100644 aa aa R100\0old\0new\0:000000 100644 00 bb A\0n\nl\0";
        let changes = listed(list);
        let names: Vec<_> = changes.iter().map(|change| (change.status, change.old_path, change.path)).collect();
        let expected: [(u8, &[u8], &[u8]); 3] =
            [(b'M', b"a b", b"a b"), (b'R', b"old", b"new"), (b'A', b"n\nl", b"n\nl")];
        assert_eq!(names, expected);
    }

    #[test]
    fn the_first_line_of_a_hunk_is_read() {
        assert_eq!(ranges("-1,2 +3,4 @@ fn main() {\n"), Some(((1, 2), (3, 4), "fn main() {")));
        assert_eq!(ranges("-0,0 +1 @@\n"), Some(((0, 0), (1, 1), "")));
        assert_eq!(ranges("-1 +x @@\n"), None);
    }
}
