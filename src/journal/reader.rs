//! Reads a journal line by line and checks of each line its number, the digest of the line before, and its own digest.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde::Deserialize;

use crate::disk::{self, Links};
use crate::error::{Code, Failure, Result};
use crate::journal::lines::{OLDEST, ReadRecord, VERSION};
use crate::model::digest::Digest;

/// How many bytes `sum` adds to a line: `,"sum":"` + 32 hex digits + `"}`.
const SUM: usize = 8 + 32 + 2;

/// The part of a journal that is intact, and where it ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntactPrefix {
    /// How many lines are intact.
    pub lines: u64,
    /// Their length in bytes.
    pub length: u64,
    /// The digest of the last intact line.
    pub sum: String,
    /// How many bytes of a torn last line follow.
    pub torn: u64,
}

#[derive(Deserialize)]
struct ParsedLine<'a> {
    v: u32,
    seq: u64,
    prev: &'a str,
    #[serde(borrow)]
    is: ReadRecord<'a>,
    sum: &'a str,
}

#[derive(Deserialize)]
struct OnlyVersion {
    v: u32,
}

/// The largest journal, in bytes. It is read into memory as a whole, and nothing is appended beyond this size.
pub const MAX_BYTES: u64 = 256 << 20;

/// Reads the bytes of a journal. A link at its path is not followed.
///
/// # Errors
///
/// As [`disk::read`], and `disk-failed` if there is no such file.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    let missing = || Failure::io(path, "read the journal", &std::io::ErrorKind::NotFound.into());
    disk::read(path, Links::NotLast, MAX_BYTES)?.ok_or_else(missing)
}

/// Returns the bytes of a journal behind a place; none if there are no more.
///
/// # Errors
///
/// As [`read_bytes`], and `journal-broken` if the file is shorter than it was.
pub fn read_added(path: &Path, from: u64) -> Result<Vec<u8>> {
    let failed = |error: std::io::Error| Failure::io(path, "read the journal", &error);
    let missing = || Failure::io(path, "read the journal", &std::io::ErrorKind::NotFound.into());
    let mut file = disk::open(path, Links::NotLast)?.ok_or_else(missing)?;
    let length = file.metadata().map_err(failed)?.len();
    if length < from {
        let message = format!("{} is shorter than it was: what was read of it is gone", path.display());
        return Err(Failure::new(Code::JournalBroken, message));
    }
    let mut added = Vec::new();
    file.seek(SeekFrom::Start(from)).map_err(failed)?;
    file.take(MAX_BYTES.saturating_sub(from)).read_to_end(&mut added).map_err(failed)?;
    Ok(added)
}

/// Returns the first line with its line end; empty if no line is complete.
pub fn first_line(bytes: &[u8]) -> &[u8] {
    memchr::memchr(b'\n', bytes).map_or(&[], |end| &bytes[..=end])
}

/// The number and format of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineHeader {
    /// From 1.
    pub seq: u64,
    /// The version of its format.
    pub v: u32,
}

/// Passes each line to `each`, and returns where the intact part ends.
///
/// A last line without its line end is torn: it was being written when the process died, so nobody has acted on it.
///
/// # Errors
///
/// `journal-broken` names the first other line that was changed after it was written, `journal-version` one whose
/// format is unknown; also the failures of `each`.
pub fn read<'a>(
    path: &Path,
    bytes: &'a [u8],
    each: impl FnMut(LineHeader, ReadRecord<'a>) -> Result<()>,
) -> Result<IntactPrefix> {
    let mut intact = IntactPrefix::default();
    read_on(path, bytes, &mut intact, each).map(|()| intact)
}

/// Like [`read`], for the bytes that were added behind the part that was read before; moves its end.
///
/// # Errors
///
/// As [`read`].
pub fn read_more<'a>(
    path: &Path,
    added: &'a [u8],
    intact: &mut IntactPrefix,
    each: impl FnMut(LineHeader, ReadRecord<'a>) -> Result<()>,
) -> Result<()> {
    read_on(path, added, intact, each)
}

/// Returns where the part before the first broken line ends.
pub fn intact_prefix(path: &Path, bytes: &[u8]) -> IntactPrefix {
    let mut intact = IntactPrefix::default();
    // The caller has seen the failure already.
    let _ = read_on(path, bytes, &mut intact, |_, _| Ok(()));
    intact
}

fn read_on<'a>(
    path: &Path,
    bytes: &'a [u8],
    intact: &mut IntactPrefix,
    mut each: impl FnMut(LineHeader, ReadRecord<'a>) -> Result<()>,
) -> Result<()> {
    let mut rest = bytes;
    while let Some(end) = memchr::memchr(b'\n', rest) {
        let line = &rest[..end];
        rest = &rest[end + 1..];
        let seq = intact.lines + 1;
        let parsed = parse(line, seq, &intact.sum).map_err(|why| line_failure(path, seq, why))?;
        each(LineHeader { seq, v: parsed.v }, parsed.is)?;
        intact.lines = seq;
        intact.length += end as u64 + 1;
        parsed.sum.clone_into(&mut intact.sum);
    }
    intact.torn = rest.len() as u64;
    Ok(())
}

/// Why a line cannot be read.
enum LineError {
    Changed(&'static str),
    Version(u32),
}

fn parse<'a>(line: &'a [u8], seq: u64, prev: &str) -> Result<ParsedLine<'a>, LineError> {
    let text = std::str::from_utf8(line).map_err(|_| LineError::Changed("it is not UTF-8"))?;
    if let Ok(OnlyVersion { v }) = version(text)
        && !(OLDEST..=VERSION).contains(&v)
    {
        return Err(LineError::Version(v));
    }
    let parsed: ParsedLine =
        serde_json::from_str(text).map_err(|_| LineError::Changed("it is not a line of a journal"))?;
    let body = line.len().checked_sub(SUM).map(|end| &line[..end]).ok_or(LineError::Changed("it is too short"))?;
    if Digest::parse(parsed.sum) != Some(Digest::of(body)) {
        return Err(LineError::Changed("its text does not match its digest"));
    }
    if parsed.seq != seq {
        return Err(LineError::Changed("its number is not the next one"));
    }
    if parsed.prev != prev {
        return Err(LineError::Changed("it does not follow the line before it"));
    }
    // Only the first line may define the run: a later one could replace what the first one grants.
    if seq > 1 && matches!(parsed.is, ReadRecord::Open(_)) {
        return Err(LineError::Changed("it begins a run, and is not the first"));
    }
    Ok(parsed)
}

/// Parses only the beginning `{"v":N,`, and the whole line if it begins in another way.
fn version(text: &str) -> serde_json::Result<OnlyVersion> {
    match text.as_bytes() {
        [b'{', b'"', b'v', b'"', b':', digit @ b'1'..=b'9', b',', ..] => Ok(OnlyVersion { v: u32::from(digit - b'0') }),
        _ => serde_json::from_str(text),
    }
}

fn line_failure(path: &Path, seq: u64, why: LineError) -> Failure {
    match why {
        LineError::Changed(why) => {
            let hint = if seq > 1 {
                format!(
                    "lines 1 to {} are whole; `nietz resume RUN --whole` goes on from there and keeps the broken file",
                    seq - 1
                )
            } else {
                "no line is whole: start a new run".to_owned()
            };
            Failure::new(
                Code::JournalBroken,
                format!("{}:{seq}: this line was changed after it was written: {why}", path.display()),
            )
            .hint(hint)
        }
        LineError::Version(v) => Failure::new(
            Code::JournalVersion,
            format!(
                "{}:{seq}: this journal has format {v}; this nietz knows formats {OLDEST} to {VERSION}",
                path.display()
            ),
        )
        .hint("use the nietz that wrote it, or a newer one"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::lines::{OpenRecord, Record, TextRecord};
    use crate::journal::writer::{JournalTail, JournalWriter};

    fn journal() -> (tempfile::TempDir, std::path::PathBuf, Vec<u8>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let mut writer = JournalWriter::open(&path, JournalTail::default(), None).unwrap();
        for text in ["one", "two", "three"] {
            writer.append(&Record::Text(TextRecord { id: text, text: Some(text), parts: None })).unwrap();
        }
        writer.sync().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        (folder, path, bytes)
    }

    #[test]
    fn a_journal_cut_anywhere_in_its_last_line_is_whole_up_to_it() {
        let (_folder, path, bytes) = journal();
        let last = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
        for cut in last..bytes.len() {
            let intact = read(&path, &bytes[..cut], |_, _| Ok(())).unwrap();
            assert_eq!((intact.lines, intact.torn), (2, (cut - last) as u64));
        }
        assert_eq!(read(&path, &bytes, |_, _| Ok(())).unwrap().lines, 3);
    }

    #[test]
    fn what_stands_behind_the_last_whole_line_is_cut_off() {
        let (_folder, path, bytes) = journal();
        let length = first_line(&bytes).len() as u64;
        drop(JournalWriter::open(&path, JournalTail { seq: 1, length, ..JournalTail::default() }, None).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), first_line(&bytes));
    }

    #[test]
    fn a_line_of_another_journal_does_not_fit() {
        let (_folder, path, bytes) = journal();
        let lines = |bytes: &[u8]| bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
        let write = |name: &str, tail: JournalTail, texts: &[&str]| {
            let other = path.with_file_name(name);
            let mut writer = JournalWriter::open(&other, tail, None).unwrap();
            for text in texts {
                writer.append(&Record::Text(TextRecord { id: text, text: Some(text), parts: None })).unwrap();
            }
            lines(&std::fs::read(&other).unwrap())
        };
        let why = |bytes: &[u8]| read(&path, bytes, |_, _| Ok(())).unwrap_err().message;
        // Number and digest are right, but it follows another line.
        let (own, other) = (lines(&bytes), write("other", JournalTail::default(), &["uno", "two", "three"]));
        let message = why(&[&own[0][..], &own[1], &other[2]].concat());
        assert!(
            message.contains("journal.jsonl:3: ") && message.ends_with("it does not follow the line before it"),
            "{message}"
        );
        // It follows no line, as the first must, but its number is not 1.
        let message = why(&write("later", JournalTail { seq: 6, ..JournalTail::default() }, &["one"]).concat());
        assert!(
            message.contains("journal.jsonl:1: ") && message.ends_with("its number is not the next one"),
            "{message}"
        );
    }

    #[test]
    fn only_the_first_line_says_what_a_run_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let open: OpenRecord = serde_json::from_value(serde_json::json!({
            "run": "r1", "flow": "f", "source": "f.lua", "params": {}, "lang": "en", "seed": 1, "files": {},
            "host": "nietz", "at": "2026-01-09T10:30:00Z",
        }))
        .unwrap();
        let mut writer = JournalWriter::open(&path, JournalTail::default(), None).unwrap();
        writer.append(&Record::Open(Box::new(open.clone()))).unwrap();
        let first = std::fs::read(&path).unwrap();
        assert_eq!((read(&path, &first, |_, _| Ok(())).unwrap().lines, first_line(&first)), (1, first.as_slice()));
        writer.append(&Record::Open(Box::new(open))).unwrap();
        let both = std::fs::read(&path).unwrap();
        let failure = read(&path, &both, |_, _| Ok(())).unwrap_err();
        assert!(
            failure.message.contains("journal.jsonl:2: ") && failure.message.contains("is not the first"),
            "{failure}"
        );
        assert_eq!(first_line(&both), first);
        assert_eq!(first_line(b"torn"), b"");
    }

    #[test]
    fn any_flipped_bit_is_found_and_its_line_named() {
        let (_folder, path, bytes) = journal();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
                match read(&path, &flipped, |_, _| Ok(())) {
                    Ok(whole) => assert_eq!(at, bytes.len() - 1, "only the last line end may look torn; {whole:?}"),
                    Err(failure) => {
                        assert!(failure.message.contains(&format!("journal.jsonl:{line}:")), "{at}: {failure}");
                    }
                }
            }
        }
    }
}
