//! Searches files for the lines that match a regular expression, within a limit on CPU time.

use std::time::Duration;

use regex::bytes::{Regex, RegexBuilder};

use crate::cpu::{CpuLimit, Overrun, ThreadClock, run_within};
use crate::error::{Code, Failure, Result};
use crate::model::effect::search::{MatchedFile, MatchedLine, Matches, SearchPart};
use crate::model::regexes::CompiledRegex;
use crate::model::text::excerpt;

/// The most lines that one search returns unless it says otherwise, and the most that it can say.
const MOST_LINES: (usize, usize) = (200, 1000);
/// The most lines around one that matches.
const MOST_CONTEXT: usize = 20;
/// How many characters of a line are shown.
const LINE: usize = 300;

/// How much CPU time one search may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Files up to this length, in bytes, are searched on this thread: no expression takes long for them.
const AT_ONCE: usize = 16 << 10;

/// Returns the lines that match in these files, in their order; `read` returns the bytes of a file, or `None` for one that is skipped. Binary
/// files are skipped, too.
///
/// # Errors
///
/// `request-invalid` for a wrong expression, `timed-out` where the search takes too long.
pub(super) fn grep_files(
    paths: impl Iterator<Item = String>,
    pattern: &str,
    part: &SearchPart,
    read: impl Fn(&str) -> Option<Vec<u8>>,
) -> Result<Matches> {
    let regex = RegexBuilder::new(pattern).multi_line(true).size_limit(1 << 20).build().map_err(|error| {
        let message = format!("`{}` is not a valid regular expression", excerpt(pattern));
        Failure::new(Code::RequestInvalid, message).because(excerpt(&error.to_string()))
    })?;
    let size = CompiledRegex::new(pattern).ok();
    let too_long = |path: &str| {
        let message = format!("searching for `{}` takes too long; it came to `{path}`", excerpt(pattern));
        Failure::new(Code::TimedOut, message).hint("search in fewer files, or for a text that repeats nothing")
    };
    let limit = CpuLimit::new(ThreadClock::current(), PATIENCE);
    CpuLimit::hold(Some(limit));
    let _released = LimitGuard;
    let most = part.most.unwrap_or(MOST_LINES.0).min(MOST_LINES.1);
    let context = part.context.min(MOST_CONTEXT);
    let mut skipped = 0;
    let mut matched = Matches { lines: Vec::new(), files: Vec::new(), cut: false };
    let mut count = 0;
    for path in paths {
        if limit.is_over() {
            return Err(too_long(&path));
        }
        let Some(bytes) = read(&path) else { continue };
        if memchr::memchr(0, &bytes[..bytes.len().min(8000)]).is_some() {
            continue;
        }
        let found = if bytes.len() <= AT_ONCE {
            matches(&regex, &bytes, context)
        } else if size.as_ref().is_some_and(|size| size.is_too_large_for(bytes.len())) {
            return Err(too_long(&path));
        } else {
            let regex = regex.clone();
            run_within(PATIENCE, move || matches(&regex, &bytes, context)).map_err(|Overrun| too_long(&path))?
        };
        if found.is_empty() {
            continue;
        }
        if part.by_file {
            if skipped < part.skip {
                skipped += 1;
            } else if matched.files.len() == most {
                matched.cut = true;
                return Ok(matched);
            } else {
                let lines = found.iter().filter(|line| !line.beside).count();
                matched.files.push(MatchedFile { path, lines });
            }
            continue;
        }
        for line in found {
            if skipped < part.skip {
                skipped += usize::from(!line.beside);
                continue;
            }
            if !line.beside {
                count += 1;
            }
            if count > most {
                matched.cut = true;
                return Ok(matched);
            }
            matched.lines.push(MatchedLine { path: path.clone(), ..line });
        }
    }
    Ok(matched)
}

/// Removes the thread's CPU limit when dropped.
struct LimitGuard;

impl Drop for LimitGuard {
    fn drop(&mut self) {
        CpuLimit::hold(None);
    }
}

/// Returns the matching lines of a file, without its path, and so many lines around each.
fn matches(regex: &Regex, bytes: &[u8], context: usize) -> Vec<MatchedLine> {
    if !regex.is_match(bytes) {
        return Vec::new();
    }
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let shown =
        |line: &[u8]| String::from_utf8_lossy(line).chars().take(LINE).collect::<String>().trim_end().to_owned();
    let at = |index: usize, beside: bool| MatchedLine {
        path: String::new(),
        line: index + 1,
        text: shown(lines[index]),
        beside,
    };
    let mut found = Vec::new();
    let mut next = 0;
    let hits: Vec<usize> = (0..lines.len()).filter(|index| regex.is_match(lines[*index])).collect();
    for (number, hit) in hits.iter().copied().enumerate() {
        found.extend((hit.saturating_sub(context).max(next)..hit).map(|index| at(index, true)));
        found.push(at(hit, false));
        let end = hits.get(number + 1).copied().unwrap_or(lines.len()).min(hit + 1 + context);
        found.extend((hit + 1..end).map(|index| at(index, true)));
        next = end;
    }
    found
}
