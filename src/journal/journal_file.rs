//! A journal that is a file: lines are written to its end, and synced on demand.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::disk::is_at;
use crate::error::{Code, Failure, Result};
use crate::journal::fault_injection::InjectedFault;
use crate::journal::line_store::LineStore;

/// The end of a file with a journal. The lock on a run's journal ensures that only one process writes there at a time.
pub(super) struct JournalFile {
    path: PathBuf,
    file: File,
    /// Whether the file has no path: nobody goes on with what it holds.
    unnamed: bool,
    length: u64,
    /// How many bytes are synced to the disk.
    synced: u64,
    fault: Option<InjectedFault>,
}

impl JournalFile {
    /// Opens the file behind `length` bytes and cuts off the rest. A link is not followed.
    pub(super) fn open(path: &Path, length: u64, fault: Option<InjectedFault>) -> Result<JournalFile> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = File::options().create(true).truncate(false).read(true).write(true).custom_flags(flags).open(path);
        JournalFile::from_file(
            path,
            file.map_err(|error| Failure::io(path, "open the journal", &error))?,
            length,
            fault,
        )
    }

    /// Goes on in a file that is open already behind `length` bytes, and cuts off the rest.
    pub(super) fn from_file(
        path: &Path,
        mut file: File,
        length: u64,
        fault: Option<InjectedFault>,
    ) -> Result<JournalFile> {
        let io = |error: std::io::Error| Failure::io(path, "open the journal", &error);
        if file.metadata().map_err(io)?.len() != length {
            file.set_len(length).map_err(io)?;
        }
        file.seek(SeekFrom::Start(length)).map_err(io)?;
        let path = path.to_owned();
        Ok(JournalFile { path, file, unnamed: false, length, synced: length, fault })
    }

    /// Opens a file that is gone when the process ends.
    pub(super) fn unnamed(fault: Option<InjectedFault>) -> Result<JournalFile> {
        let place = PathBuf::from("the folder for temporary files");
        let file = tempfile::tempfile().map_err(|error| Failure::io(&place, "open a journal in", &error))?;
        Ok(JournalFile { unnamed: true, ..JournalFile::from_file(&place, file, 0, fault)? })
    }
}

impl LineStore for JournalFile {
    fn append(&mut self, seq: u64, line: &[u8]) -> Result<()> {
        // Another process may have begun another journal at this path.
        if !self.unnamed && !is_at(&self.file, &self.path) {
            let message = format!("{} was moved, removed or replaced while the run went on", self.path.display());
            return Err(Failure::new(Code::DiskFailed, message).hint(
                "nothing more is written; put its folder back, then resume the run: `nietz runs` lists what is there",
            ));
        }
        let written = if self.fault == Some(InjectedFault::FullAt(seq)) {
            let _ = self.file.write_all(&line[..line.len() / 2]);
            Err(std::io::ErrorKind::StorageFull.into())
        } else {
            self.file.write_all(line)
        };
        written.map_err(|error| {
            // Removes a half-written line, so that no later line follows it.
            let _ = self.file.set_len(self.length);
            let _ = self.file.seek(SeekFrom::Start(self.length));
            Failure::io(&self.path, "write the journal", &error)
        })?;
        self.length += line.len() as u64;
        if self.fault == Some(InjectedFault::PowerCutAfter(seq)) {
            let _ = self.file.set_len(self.synced);
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync_data().map_err(|error| Failure::io(&self.path, "sync the journal", &error))?;
        self.synced = self.length;
        Ok(())
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }
}
