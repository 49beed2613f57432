//! Reads some lines of a file of any usual size without holding all of it: the file is gone through once, and what is asked for is
//! kept. Long files are logs and traces, which are not always whole UTF-8, so that stray bytes are shown as `�`.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use sha2::{Digest, Sha256};

use super::confined::invalid;
use crate::error::{Failure, Result};

/// The largest file that is gone through.
const LARGEST_MEGABYTES: u64 = 1024;
/// How many lines are returned at most, and how many bytes.
pub(super) const MOST_LINES: u64 = 10_000;
const MOST_BYTES: usize = 2 << 20;
/// Of a longer line the beginning is returned.
const LONGEST_LINE: u64 = 16 << 10;
/// A zero in the first bytes says that a file is no text, as for git.
const LOOKED_AT: usize = 8000;

/// Lines of a file, and what the whole of it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReadLines {
    pub text: String,
    pub first: u64,
    pub count: u64,
    pub cut: bool,
    pub lines: u64,
    pub bytes: u64,
    pub sha256: String,
}

/// The lines that are kept while the file is gone through.
#[derive(Default)]
struct Kept {
    lines: VecDeque<(u64, String, bool)>,
    bytes: usize,
}

impl Kept {
    fn push(&mut self, number: u64, line: String, is_whole: bool) {
        self.bytes += line.len() + 1;
        self.lines.push_back((number, line, is_whole));
    }

    fn drop_first(&mut self) {
        self.bytes -= self.lines.pop_front().map_or(0, |(_, line, _)| line.len() + 1);
    }
}

/// Returns `count` lines of an opened file, beginning with line `from`, or `-from` lines before its end. Messages call the file
/// `path`, and `failed` makes the failure of an IO error.
///
/// # Errors
///
/// `request-invalid` if it is no plain file of text within the limit; what `failed` makes.
pub(super) fn read(
    file: File,
    (path, from, count): (&str, i64, u64),
    failed: impl Fn(std::io::Error) -> Failure,
) -> Result<ReadLines> {
    let metadata = file.metadata().map_err(&failed)?;
    if !metadata.is_file() {
        return Err(invalid(path, if metadata.is_dir() { "is a folder" } else { "is not a plain file" }));
    }
    if metadata.len() > LARGEST_MEGABYTES << 20 {
        return Err(invalid(path, &format!("is larger than {LARGEST_MEGABYTES} MB")));
    }
    let found = go_through(BufReader::new(file.take(LARGEST_MEGABYTES << 20)), from, count.min(MOST_LINES));
    found.map_err(failed)?.ok_or_else(|| invalid(path, "is no text: it has zeros"))
}

/// Returns the lines, or `None` where this is no text.
fn go_through(mut reader: impl BufRead, from: i64, count: u64) -> std::io::Result<Option<ReadLines>> {
    let wanted = from.unsigned_abs();
    let mut kept = Kept::default();
    let (mut hasher, mut lines, mut bytes, mut full) = (Sha256::new(), 0, 0, false);
    let (mut line, mut rest) = (Vec::new(), Vec::new());
    loop {
        line.clear();
        if reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if bytes == 0 && line.iter().take(LOOKED_AT).any(|byte| *byte == 0) {
            return Ok(None);
        }
        hasher.update(&line);
        bytes += line.len() as u64;
        lines += 1;
        let mut is_whole = true;
        let mut ended = line.ends_with(b"\n");
        while !ended {
            rest.clear();
            if reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut rest)? == 0 {
                break;
            }
            hasher.update(&rest);
            bytes += rest.len() as u64;
            ended = rest.ends_with(b"\n");
            is_whole = is_whole && rest == b"\n";
        }
        let is_wanted = if from > 0 { lines >= wanted && lines - wanted < count } else { true };
        if !is_wanted || full {
            continue;
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches('\n');
        kept.push(lines, text.strip_suffix('\r').unwrap_or(text).to_owned(), is_whole);
        if from > 0 {
            full = kept.bytes > MOST_BYTES;
        } else {
            while kept.lines.len() as u64 > wanted || kept.bytes > MOST_BYTES {
                kept.drop_first();
            }
        }
    }
    if from < 0 {
        kept.lines.truncate(usize::try_from(count).unwrap_or(usize::MAX));
    }
    // What was asked for and exists.
    let begin = if from > 0 { wanted } else { (lines + 1).saturating_sub(wanted).max(1) };
    let there = count.min((lines + 1).saturating_sub(begin));
    let first = kept.lines.front().map_or(begin, |(number, ..)| *number);
    let cut = (kept.lines.len() as u64) < there || kept.lines.iter().any(|(.., is_whole)| !is_whole);
    let texts: Vec<&str> = kept.lines.iter().map(|(_, text, _)| text.as_str()).collect();
    Ok(Some(ReadLines {
        text: texts.join("\n"),
        first,
        count: texts.len() as u64,
        cut,
        lines,
        bytes,
        sha256: hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect(),
    }))
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_LINE, MOST_BYTES, ReadLines, go_through};

    fn lines(text: &[u8], from: i64, count: u64) -> ReadLines {
        go_through(text, from, count).unwrap().unwrap()
    }

    #[test]
    fn lines_are_counted_from_both_ends() {
        let text = b"one\r\ntwo\nthree\nfo\xffur";
        for (from, count, expected, first) in [
            (1, 2, "one\ntwo", 1),
            (3, 10, "three\nfo\u{fffd}ur", 3),
            (-1, 5, "fo\u{fffd}ur", 4),
            (-3, 2, "two\nthree", 2),
            (-9, 1, "one", 1),
            (5, 1, "", 5),
        ] {
            let found = lines(text, from, count);
            assert_eq!((found.text.as_str(), found.first), (expected, first), "{from} {count}");
            assert_eq!((found.lines, found.bytes, found.cut), (4, 20, false), "{from} {count}");
        }
        assert_eq!(lines(b"", 1, 3).lines, 0);
        assert_eq!(&lines(b"abc", 1, 1).sha256[..8], "ba7816bf");
        assert_eq!(go_through(&b"a\0b"[..], 1, 1).unwrap(), None);
    }

    #[test]
    fn of_what_is_too_long_the_beginning_is_returned_or_the_end_and_that_is_said() {
        let long = vec![b'x'; usize::try_from(LONGEST_LINE).unwrap() * 3];
        let found = lines(&long, 1, 1);
        assert_eq!((found.text.len() as u64, found.lines, found.cut), (LONGEST_LINE, 1, true));
        let many = "0123456789\n".repeat(MOST_BYTES / 5);
        let found = lines(many.as_bytes(), 1, u64::MAX);
        assert!(found.cut && found.first == 1 && found.text.len() < MOST_BYTES + 100);
        let found = lines(many.as_bytes(), -i64::MAX, u64::MAX);
        assert!(found.cut && found.first > 1 && found.first + found.count == found.lines + 1);
    }
}
