//! Appends lines to a journal and syncs them on demand.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde_json::Value;

use crate::disk::is_at;
use crate::error::{Code, Failure, Result};
use crate::journal::fault_injection::{InjectedFault, kill_this_process};
use crate::journal::lines::{JournalLine, Record, TextRecord, VERSION};
use crate::journal::reader::MAX_BYTES;
use crate::journal::texts::{self, InternedTexts, PrefixDigests};
use crate::model::digest::Digest;

/// Beyond this length only the end record is still appended, in bytes: the reader's limit, less room for that record.
const LONGEST: u64 = MAX_BYTES - (1 << 20);

/// Writes to the end of a journal. The lock on a run's journal ensures that only one process does so at a time.
pub struct JournalWriter {
    path: PathBuf,
    file: File,
    /// Whether the file has no path: nobody goes on with what it holds.
    unnamed: bool,
    seq: u64,
    prev: String,
    length: u64,
    /// How many bytes are synced to the disk.
    synced: u64,
    texts: InternedTexts,
    syncs: bool,
    /// Another file, to be synced together with the first lines.
    companion: Option<File>,
    fault: Option<InjectedFault>,
    buffer: Vec<u8>,
}

/// Where a writer continues a journal, as the reader found it.
#[derive(Default)]
pub struct JournalTail {
    pub seq: u64,
    pub prev: String,
    pub length: u64,
    pub texts: InternedTexts,
}

impl JournalWriter {
    /// Opens the journal behind its last intact line and cuts off the rest. A link is not followed.
    ///
    /// # Errors
    ///
    /// `disk-failed` if the file cannot be opened or cut.
    pub fn open(path: &Path, tail: JournalTail, fault: Option<InjectedFault>) -> Result<JournalWriter> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = File::options().create(true).truncate(false).read(true).write(true).custom_flags(flags).open(path);
        JournalWriter::from_file(
            path,
            file.map_err(|error| Failure::io(path, "open the journal", &error))?,
            tail,
            fault,
        )
    }

    /// Continues a journal that is open already behind its last intact line, and cuts off the rest.
    ///
    /// # Errors
    ///
    /// `disk-failed` if the file cannot be cut.
    pub fn from_file(
        path: &Path,
        mut file: File,
        tail: JournalTail,
        fault: Option<InjectedFault>,
    ) -> Result<JournalWriter> {
        let io = |error: std::io::Error| Failure::io(path, "open the journal", &error);
        if file.metadata().map_err(io)?.len() != tail.length {
            file.set_len(tail.length).map_err(io)?;
        }
        file.seek(SeekFrom::Start(tail.length)).map_err(io)?;
        Ok(JournalWriter {
            path: path.to_owned(),
            file,
            unnamed: false,
            seq: tail.seq,
            prev: tail.prev,
            length: tail.length,
            synced: tail.length,
            texts: tail.texts,
            syncs: true,
            companion: None,
            fault,
            buffer: Vec::new(),
        })
    }

    /// Opens a journal that is gone when the process ends.
    ///
    /// # Errors
    ///
    /// `disk-failed` if there is no place for it.
    pub fn unnamed(fault: Option<InjectedFault>) -> Result<JournalWriter> {
        let place = PathBuf::from("the folder for temporary files");
        let file = tempfile::tempfile().map_err(|error| Failure::io(&place, "open a journal in", &error))?;
        let writer = JournalWriter::from_file(&place, file, JournalTail::default(), fault)?;
        Ok(JournalWriter { unnamed: true, syncs: false, ..writer })
    }

    /// Turns off syncing, for a journal that can easily be made again.
    pub fn without_sync(mut self) -> JournalWriter {
        self.syncs = false;
        self
    }

    /// Syncs another file together with the first lines.
    pub fn with_companion(mut self, companion: Option<File>) -> JournalWriter {
        self.companion = companion;
        self
    }

    /// Returns a value with references in place of long texts, after writing the new texts.
    ///
    /// # Errors
    ///
    /// As [`JournalWriter::append`].
    pub fn intern(&mut self, value: Value, lists: bool) -> Result<Value> {
        let mut texts = std::mem::take(&mut self.texts);
        let folded = texts
            .intern(value, lists, &mut |id, parts| self.append(&Record::Text(TextRecord::new(id, parts))).map(|_| ()));
        self.texts = texts;
        folded
    }

    /// Writes texts that the first line refers to.
    ///
    /// # Errors
    ///
    /// As [`JournalWriter::append`].
    pub fn append_texts(&mut self, texts: Vec<String>) -> Result<()> {
        texts.into_iter().try_for_each(|text| self.intern(Value::String(text), false).map(drop))
    }

    /// Like [`JournalWriter::intern`], for an outcome: its lists are not folded, and a small value is not copied.
    ///
    /// # Errors
    ///
    /// As [`JournalWriter::append`].
    pub fn intern_outcome<'v>(&mut self, value: &'v Value) -> Result<Cow<'v, Value>> {
        match texts::is_inline(value) {
            true => Ok(Cow::Borrowed(value)),
            false => self.intern(value.clone(), false).map(Cow::Owned),
        }
    }

    /// Returns a folded list, after writing the new texts; `item` is called only for the new items.
    ///
    /// # Errors
    ///
    /// As [`JournalWriter::append`].
    pub fn intern_list(
        &mut self,
        chain: &PrefixDigests,
        length: usize,
        item: impl FnMut(usize) -> Value,
    ) -> Result<Value> {
        let mut texts = std::mem::take(&mut self.texts);
        let folded = texts.intern_list(chain, length, item, &mut |id, parts| {
            self.append(&Record::Text(TextRecord::new(id, parts))).map(|_| ())
        });
        self.texts = texts;
        folded
    }

    /// Writes one line and returns its number. The operating system has the line then, so that it survives a killed process;
    /// [`JournalWriter::sync`] makes it survive a power cut.
    ///
    /// # Errors
    ///
    /// `budget-used-up` if the journal is too long for anything but its end, `disk-failed` if the file was moved or replaced
    /// or cannot be written.
    pub fn append(&mut self, record: &Record<'_>) -> Result<u64> {
        if self.length > LONGEST && !matches!(record, Record::End(_)) {
            let message = format!("the journal of this run is longer than {} MB", LONGEST >> 20);
            return Err(Failure::new(Code::BudgetUsedUp, message)
                .hint("a flow that writes so much may never come to an end; begin another run"));
        }
        let (seq, sum) = self.render(record)?;
        self.write(seq)?;
        self.seq = seq;
        self.prev = sum;
        self.length += self.buffer.len() as u64;
        if self.fault == Some(InjectedFault::PowerCutAfter(seq)) {
            let _ = self.file.set_len(self.synced);
        }
        if matches!(self.fault, Some(InjectedFault::KillAfter(at) | InjectedFault::PowerCutAfter(at)) if at == seq) {
            kill_this_process();
        }
        Ok(seq)
    }

    /// Returns the line that [`JournalWriter::append`] would write now, without writing it.
    ///
    /// # Errors
    ///
    /// `internal` if the record is no JSON.
    pub fn render_line(&mut self, record: &Record<'_>) -> Result<&[u8]> {
        self.render(record)?;
        Ok(&self.buffer)
    }

    /// Renders a line into the buffer, and returns its number and digest.
    fn render(&mut self, record: &Record<'_>) -> Result<(u64, String)> {
        let seq = self.seq + 1;
        self.buffer.clear();
        let line = JournalLine { v: VERSION, seq, prev: self.prev.clone(), is: record };
        serde_json::to_writer(&mut self.buffer, &line).map_err(|error| {
            Failure::new(Code::Internal, format!("a journal line cannot be written as JSON: {error}"))
        })?;
        self.buffer.pop();
        let sum = Digest::of(&self.buffer).to_string();
        self.buffer.extend_from_slice(b",\"sum\":\"");
        self.buffer.extend_from_slice(sum.as_bytes());
        self.buffer.extend_from_slice(b"\"}\n");
        Ok((seq, sum))
    }

    fn write(&mut self, seq: u64) -> Result<()> {
        // Another process may have begun another journal at this path.
        if !self.unnamed && !is_at(&self.file, &self.path) {
            let message = format!("{} was moved, removed or replaced while the run went on", self.path.display());
            return Err(Failure::new(Code::DiskFailed, message).hint(
                "nothing more is written; put its folder back, then resume the run: `nietz runs` lists what is there",
            ));
        }
        if self.length + self.buffer.len() as u64 > MAX_BYTES {
            let message = format!("{} would become larger than {} MB", self.path.display(), MAX_BYTES >> 20);
            return Err(Failure::new(Code::DiskFailed, message).hint("begin a new run"));
        }
        let written = if self.fault == Some(InjectedFault::FullAt(seq)) {
            let half = self.buffer.len() / 2;
            let _ = self.file.write_all(&self.buffer[..half]);
            Err(std::io::ErrorKind::StorageFull.into())
        } else {
            self.file.write_all(&self.buffer)
        };
        written.map_err(|error| {
            // Removes a half-written line, so that no later line follows it.
            let _ = self.file.set_len(self.length);
            let _ = self.file.seek(SeekFrom::Start(self.length));
            Failure::io(&self.path, "write the journal", &error)
        })
    }

    /// Waits until all appended lines are on the disk.
    ///
    /// # Errors
    ///
    /// `disk-failed` if the journal cannot be synced.
    pub fn sync(&mut self) -> Result<()> {
        if self.synced < self.length && self.syncs {
            if let Some(companion) = self.companion.take() {
                // If this fails, a power cut can only leave a run that is not known as the user's own.
                let _ = companion.sync_all();
            }
            self.file.sync_data().map_err(|error| Failure::io(&self.path, "sync the journal", &error))?;
            self.synced = self.length;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{JournalTail, JournalWriter, LONGEST};
    use crate::error::Code;
    use crate::journal::lines::{GivenRecord, Record};

    #[test]
    fn a_journal_that_is_too_long_is_not_written_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let mut writer =
            JournalWriter::open(&path, JournalTail { length: LONGEST + 1, ..JournalTail::default() }, None).unwrap();
        let failure = writer.append(&Record::Given(GivenRecord { keys: Vec::new() })).unwrap_err();
        assert_eq!(failure.code, Code::BudgetUsedUp);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), LONGEST + 1);
    }
}
