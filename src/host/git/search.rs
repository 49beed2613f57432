//! Searches a worktree: all files that git tracks or would add, without ignored files.

use std::collections::BTreeSet;
use std::time::Duration;

use regex::bytes::{Regex, RegexBuilder};

use super::call::names;
use super::files;
use super::worktree::Worktree;
use crate::cpu::{CpuLimit, Overrun, ThreadClock, run_within};
use crate::error::{Code, Failure, Result};
use crate::host::confined::ConfinedDir;
use crate::host::globs::{globs, limit_files};
use crate::model::effect::files::FoundFiles;
use crate::model::effect::worktree::{MatchedLine, Matches};
use crate::model::regexes::CompiledRegex;
use crate::model::text::excerpt;

/// The most lines that one search returns.
const MOST_LINES: usize = 200;
/// How many characters of a line are shown.
const LINE: usize = 300;

/// How much CPU time one search may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Files up to this length, in bytes, are searched on this thread: no expression takes long for them.
const AT_ONCE: usize = 16 << 10;

fn all(tree: &Worktree<'_>) -> Result<BTreeSet<String>> {
    let list = tree.read_only_call().of_user(tree.patterns()?, &[]);
    let list = list.args(["ls-files", "-z", "-c", "-o", "--exclude-standard"]).bytes()?;
    let deleted = tree.read_only_call().args(["ls-files", "-z", "-d"]).bytes()?;
    let mut all: BTreeSet<String> = names(&list).filter(|path| !path.ends_with('/')).map(str::to_owned).collect();
    for path in names(&deleted) {
        all.remove(path);
    }
    Ok(all)
}

pub(super) fn find(tree: &Worktree<'_>, glob: &str) -> Result<FoundFiles> {
    let matcher = globs(&[glob.to_owned()])?;
    Ok(limit_files(all(tree)?.into_iter().filter(|path| matcher.is_match(path)).collect()))
}

pub(super) fn grep(tree: &Worktree<'_>, pattern: &str, glob: Option<&str>) -> Result<Matches> {
    let regex = RegexBuilder::new(pattern).multi_line(true).size_limit(1 << 20).build().map_err(|error| {
        let message = format!("`{}` is not a valid regular expression", excerpt(pattern));
        Failure::new(Code::RequestInvalid, message).because(excerpt(&error.to_string()))
    })?;
    let size = CompiledRegex::new(pattern).ok();
    let matcher = globs(&[glob.unwrap_or("**").to_owned()])?;
    let folder = ConfinedDir::open(tree.folder())?;
    let too_long = |path: &str| {
        let message = format!("searching for `{}` takes too long; it came to `{path}`", excerpt(pattern));
        Failure::new(Code::TimedOut, message).hint("search in fewer files, or for a text that repeats nothing")
    };
    let limit = CpuLimit::new(ThreadClock::current(), PATIENCE);
    CpuLimit::hold(Some(limit));
    let _released = LimitGuard;
    let mut lines = Vec::new();
    for path in all(tree)?.into_iter().filter(|path| matcher.is_match(path)) {
        if limit.is_over() {
            return Err(too_long(&path));
        }
        // A file that was deleted or is too large is skipped; so is a binary one.
        let Ok(bytes) = files::bytes(&folder, &path) else { continue };
        if memchr::memchr(0, &bytes[..bytes.len().min(8000)]).is_some() {
            continue;
        }
        let found = if bytes.len() <= AT_ONCE {
            matches(&regex, &bytes)
        } else if size.as_ref().is_some_and(|size| size.is_too_large_for(bytes.len())) {
            return Err(too_long(&path));
        } else {
            let regex = regex.clone();
            run_within(PATIENCE, move || matches(&regex, &bytes)).map_err(|Overrun| too_long(&path))?
        };
        for (line, text) in found {
            if lines.len() == MOST_LINES {
                return Ok(Matches { lines, cut: true });
            }
            lines.push(MatchedLine { path: path.clone(), line, text });
        }
    }
    Ok(Matches { lines, cut: false })
}

/// Removes the thread's CPU limit when dropped.
struct LimitGuard;

impl Drop for LimitGuard {
    fn drop(&mut self) {
        CpuLimit::hold(None);
    }
}

/// Returns the matching lines of a file with their numbers: at most one more than is shown, which says that there are more.
fn matches(regex: &Regex, bytes: &[u8]) -> Vec<(usize, String)> {
    if !regex.is_match(bytes) {
        return Vec::new();
    }
    let lines = bytes.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| regex.is_match(line));
    let shown =
        |line: &[u8]| String::from_utf8_lossy(line).chars().take(LINE).collect::<String>().trim_end().to_owned();
    lines.take(MOST_LINES + 1).map(|(index, line)| (index + 1, shown(line))).collect()
}
