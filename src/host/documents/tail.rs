//! The end of a file of rows: where the last complete row ends, and how the next row is added.
//!
//! Only the end is read, so that an append costs the same however many rows there are.

use std::fs::File;
use std::io::{Read as _, Result, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

use crate::disk::{self, Links};
use crate::model::collection::Format;
use crate::model::text::excerpt;
use crate::schema::source;

/// How many bytes of the end are read at first; more are read if the last row is longer.
const WINDOW: u64 = 64 * 1024;

/// How a file of rows ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RowsTail {
    /// The length of the file in bytes.
    pub length: u64,
    /// How many of the bytes are complete rows; the rest is a torn row.
    pub complete_length: u64,
    /// Whether the last complete row lacks its line end, as an editor may leave it.
    pub lacks_line_end: bool,
    /// The beginning of the torn row.
    pub torn: Option<String>,
}

impl RowsTail {
    /// Reads the end of a file. A missing file counts as empty.
    pub(super) fn of_file(path: &Path) -> Result<RowsTail> {
        let Some(mut file) = open(path)? else { return Ok(RowsTail::of(&[], 0)) };
        let length = file.metadata()?.len();
        let mut window = WINDOW;
        loop {
            let start = length.saturating_sub(window);
            let bytes = read(&mut file, start)?;
            if start == 0 || bytes.contains(&b'\n') {
                return Ok(RowsTail::of(&bytes, start));
            }
            window *= 8;
        }
    }

    /// Examines the end of bytes that start at an offset in their file.
    pub(super) fn of(bytes: &[u8], offset: u64) -> RowsTail {
        let start = memchr::memrchr(b'\n', bytes).map_or(0, |end| end + 1);
        let last = &bytes[start..];
        let length = offset + count(bytes);
        let is_row = std::str::from_utf8(last).is_ok_and(|line| {
            source::read(line.trim_start_matches('\u{feff}'), Format::Jsonl).is_ok_and(|row| row.is_object())
        });
        match last {
            [] => RowsTail { length, complete_length: length, lacks_line_end: false, torn: None },
            _ if is_row => RowsTail { length, complete_length: length, lacks_line_end: true, torn: None },
            torn => {
                let torn = Some(excerpt(&String::from_utf8_lossy(torn)));
                RowsTail { length, complete_length: offset + count(&bytes[..start]), lacks_line_end: false, torn }
            }
        }
    }

    /// Returns the byte at which the next row will start.
    pub(super) fn next(&self) -> u64 {
        self.complete_length + u64::from(self.lacks_line_end)
    }

    /// Writes a line in place of the torn row, with one write, and waits until it is on the disk.
    pub(super) fn extend(&self, path: &Path, line: &str) -> Result<()> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let mut file = File::options().create(true).truncate(false).write(true).custom_flags(flags).open(path)?;
        if self.complete_length < self.length {
            file.set_len(self.complete_length)?;
        }
        file.seek(SeekFrom::Start(self.complete_length))?;
        let bytes = if self.lacks_line_end { format!("\n{line}") } else { line.to_owned() };
        let written = file.write_all(bytes.as_bytes()).and_then(|()| file.sync_data());
        if written.is_err() {
            // Half a row is worse than none; if even this fails, the next append cuts it off.
            let _ = file.set_len(self.complete_length);
        }
        written
    }
}

/// Returns the position of a line at or after byte `at`, which must start a row.
pub(super) fn find(path: &Path, line: &str, at: u64) -> Result<Option<u64>> {
    let Some(mut file) = open(path)? else { return Ok(None) };
    let row = line.trim_end().as_bytes();
    let mut start = at;
    for found in read(&mut file, at)?.split(|byte| *byte == b'\n') {
        if found.strip_suffix(b"\r").unwrap_or(found) == row {
            return Ok(Some(start));
        }
        start += count(found) + 1;
    }
    Ok(None)
}

fn open(path: &Path) -> Result<Option<File>> {
    disk::open(path, Links::NotLast).map_err(std::io::Error::other)
}

fn read(file: &mut File, start: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(start))?;
    file.take(source::MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn count(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_large_file_is_found_without_reading_it_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(200_000));
        std::fs::write(&path, format!("{{}}\n{long}\n{long}")).unwrap();
        let tail = RowsTail::of_file(&path).unwrap();
        assert!(tail.lacks_line_end && tail.complete_length == tail.length);
        std::fs::write(&path, format!("{{}}\n{long}\n{}", &long[..150_000])).unwrap();
        let tail = RowsTail::of_file(&path).unwrap();
        assert_eq!(tail.complete_length, 3 + count(long.as_bytes()) + 1);
        assert!(tail.torn.is_some_and(|torn| torn.starts_with("{\"a\":\"xx")));
    }
}
