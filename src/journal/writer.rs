//! Appends lines to a journal, and syncs them when it is told to.

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

/// The longest journal that is written on, in bytes: what a reader takes, with room for its end.
const LONGEST: u64 = MAX_BYTES - (1 << 20);

/// The end of a journal that is being written. One process has it at a time: the lock on a run's journal sees to that.
pub struct JournalWriter {
    path: PathBuf,
    file: File,
    seq: u64,
    prev: String,
    length: u64,
    /// How much of it is on the disk.
    synced: u64,
    texts: InternedTexts,
    syncs: bool,
    /// What has to survive a power cut as the first lines do.
    companion: Option<File>,
    fault: Option<InjectedFault>,
    buffer: Vec<u8>,
}

/// Where a writer goes on: what the reader found.
#[derive(Default)]
pub struct JournalTail {
    pub seq: u64,
    pub prev: String,
    pub length: u64,
    pub texts: InternedTexts,
}

impl JournalWriter {
    /// Opens the journal behind its last whole line; what stands after it is cut off. A link is not followed.
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

    /// Goes on with a journal that is open already, behind its last whole line; what stands after it is cut off.
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

    /// Waits for no disk: for a journal that can be made again at once.
    pub fn without_sync(mut self) -> JournalWriter {
        self.syncs = false;
        self
    }

    /// Has another file synced with the first lines.
    pub fn with_companion(mut self, beside: Option<File>) -> JournalWriter {
        self.companion = beside;
        self
    }

    /// Takes the long texts out of a value and writes those that are new.
    pub fn intern(&mut self, value: Value, lists: bool) -> Result<Value> {
        let mut texts = std::mem::take(&mut self.texts);
        let folded = texts
            .intern(value, lists, &mut |id, parts| self.append(&Record::Text(TextRecord::new(id, parts))).map(|_| ()));
        self.texts = texts;
        folded
    }

    /// Returns an outcome as it is written: the same, or without its long texts, of which new ones are written first.
    pub fn intern_outcome<'v>(&mut self, value: &'v Value) -> Result<Cow<'v, Value>> {
        match texts::is_inline(value) {
            true => Ok(Cow::Borrowed(value)),
            false => self.intern(value.clone(), false).map(Cow::Owned),
        }
    }

    /// Takes what was written before out of a list; `item` is called for the items that are new.
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

    /// Writes one line and returns its number. It is in the hands of the operating system then, which
    /// survives a killed process; [`JournalWriter::sync`] makes it survive a power cut.
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

    /// Returns the line that [`JournalWriter::append`] would write now.
    pub fn render_line(&mut self, record: &Record<'_>) -> Result<&[u8]> {
        self.render(record)?;
        Ok(&self.buffer)
    }

    /// Puts a line into the buffer, and returns its number and its digest.
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
        // Another process may have begun a history of its own at this path, which knows nothing of this one.
        if !is_at(&self.file, &self.path) {
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
            // What was written of the line is taken back, so that a later line does not follow half of one.
            let _ = self.file.set_len(self.length);
            let _ = self.file.seek(SeekFrom::Start(self.length));
            Failure::io(&self.path, "write the journal", &error)
        })
    }

    /// Waits until everything that was appended is on the disk.
    pub fn sync(&mut self) -> Result<()> {
        if self.synced < self.length && self.syncs {
            if let Some(beside) = self.companion.take() {
                // Without it a power cut leaves a run that is not known as the user's own, and loses nothing of it.
                let _ = beside.sync_all();
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
