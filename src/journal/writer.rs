//! Composes the lines of a journal and hands each to where it is kept.

use std::borrow::Cow;
use std::fs::File;
use std::path::Path;

use serde_json::Value;

use crate::error::{Code, Failure, Result};
use crate::journal::fault_injection::{InjectedFault, kill_this_process, stop_this_process};
use crate::journal::journal_file::JournalFile;
use crate::journal::line_store::{Ending, LineStore};
use crate::journal::lines::{JournalLine, Record, TextRecord, VERSION};
use crate::journal::reader::MAX_BYTES;
use crate::journal::texts::{self, InternedTexts, PrefixDigests};
use crate::model::digest::Digest;

/// Beyond this length only the end record is still appended, in bytes: the reader's limit, less room for that record.
const LONGEST: u64 = MAX_BYTES - (1 << 20);

/// Writes to the end of a journal. Only one process does so at a time.
pub struct JournalWriter {
    store: Box<dyn LineStore>,
    seq: u64,
    prev: String,
    length: u64,
    /// Whether a line was appended since the last sync.
    unsynced: bool,
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
        let file = JournalFile::open(path, tail.length, fault)?;
        Ok(JournalWriter::over(Box::new(file), tail, fault))
    }

    /// Continues a journal that is open already behind its last intact line, and cuts off the rest.
    ///
    /// # Errors
    ///
    /// `disk-failed` if the file cannot be cut.
    pub fn from_file(
        path: &Path,
        file: File,
        tail: JournalTail,
        fault: Option<InjectedFault>,
    ) -> Result<JournalWriter> {
        let file = JournalFile::from_file(path, file, tail.length, fault)?;
        Ok(JournalWriter::over(Box::new(file), tail, fault))
    }

    /// Opens a journal that is gone when the process ends.
    ///
    /// # Errors
    ///
    /// `disk-failed` if there is no place for it.
    pub fn unnamed(fault: Option<InjectedFault>) -> Result<JournalWriter> {
        let file = JournalFile::unnamed(fault)?;
        Ok(JournalWriter::over(Box::new(file), JournalTail::default(), fault).without_sync())
    }

    /// Continues a journal that is kept there.
    pub fn over(store: Box<dyn LineStore>, tail: JournalTail, fault: Option<InjectedFault>) -> JournalWriter {
        let JournalTail { seq, prev, length, texts } = tail;
        let (companion, buffer) = (None, Vec::new());
        JournalWriter { store, seq, prev, length, unsynced: false, texts, syncs: true, companion, fault, buffer }
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

    /// Writes one line and returns its number. In a file, it survives a killed process then; [`JournalWriter::sync`] makes it survive a
    /// power cut, and on a server a killed process.
    ///
    /// # Errors
    ///
    /// `budget-used-up` if the journal is too long for anything but its end, and those of [`LineStore::append`].
    pub fn append(&mut self, record: &Record<'_>) -> Result<u64> {
        self.write(record, |store, seq, line| store.append(seq, line).map(|()| true))?;
        Ok(self.seq)
    }

    /// Writes the last line of this process, and waits until all lines outlive a power cut. Returns `false`, and has written
    /// nothing of it, where the run would wait for an answer that is there by now.
    ///
    /// # Errors
    ///
    /// As [`JournalWriter::append`].
    pub fn end(&mut self, record: &Record<'_>, ending: &Ending) -> Result<bool> {
        if !self.syncs {
            return self.append(record).map(|_| true);
        }
        self.sync_companion();
        let written = self.write(record, |store, seq, line| store.end(seq, line, ending))?;
        self.unsynced = self.unsynced && !written;
        Ok(written)
    }

    /// Notes that the lines that say what the run is are written.
    ///
    /// # Errors
    ///
    /// As [`JournalWriter::append`].
    pub fn begun(&mut self) -> Result<()> {
        self.store.begun()
    }

    /// Tells whether model calls are held to what a team may use.
    pub fn is_limited(&self) -> bool {
        self.store.is_limited()
    }

    /// Notes what a call may use at most or has used of what a team may use.
    pub fn spend(&mut self, money: Value) {
        self.store.spend(money);
    }

    /// Lets others see what the run asks now.
    ///
    /// # Errors
    ///
    /// As [`JournalWriter::append`].
    pub fn asks(&mut self, questions: &[Value]) -> Result<()> {
        self.store.asks(questions)
    }

    fn write(
        &mut self,
        record: &Record<'_>,
        take: impl FnOnce(&mut dyn LineStore, u64, &[u8]) -> Result<bool>,
    ) -> Result<bool> {
        if self.length > LONGEST && !matches!(record, Record::End(_)) {
            let message = format!("the journal of this run is longer than {} MB", LONGEST >> 20);
            return Err(Failure::new(Code::BudgetUsedUp, message)
                .hint("a flow that writes so much may never come to an end; begin another run"));
        }
        let (seq, sum) = self.render(record)?;
        if self.length + self.buffer.len() as u64 > MAX_BYTES {
            let message = format!("{} would become larger than {} MB", self.store.name(), MAX_BYTES >> 20);
            return Err(Failure::new(Code::DiskFailed, message).hint("begin a new run"));
        }
        if self.fault == Some(InjectedFault::StopBefore(seq)) {
            stop_this_process();
        }
        if !take(&mut *self.store, seq, &self.buffer)? {
            return Ok(false);
        }
        self.seq = seq;
        self.prev = sum;
        self.length += self.buffer.len() as u64;
        self.unsynced = true;
        if matches!(self.fault, Some(InjectedFault::KillAfter(at) | InjectedFault::PowerCutAfter(at)) if at == seq) {
            kill_this_process();
        }
        Ok(true)
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

    /// Waits until all appended lines outlive a power cut.
    ///
    /// # Errors
    ///
    /// `disk-failed` if the journal cannot be synced.
    pub fn sync(&mut self) -> Result<()> {
        if self.unsynced && self.syncs {
            self.sync_companion();
            self.store.sync()?;
            self.unsynced = false;
        }
        Ok(())
    }

    fn sync_companion(&mut self) {
        if let Some(companion) = self.companion.take() {
            // If this fails, a power cut can only leave a run that is not known as the user's own.
            let _ = companion.sync_all();
        }
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
