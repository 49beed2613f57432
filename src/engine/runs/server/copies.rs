//! Copies of journals in the user's cache, so that what was read once is not fetched again. Lines never change, so that only new
//! ones are fetched; a copy of another run, or one that was torn, is made anew.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::disk::{self, Links};
use crate::error::{Failure, Result};
use crate::journal::reader::MAX_BYTES;
use crate::model::digest::Digest;
use crate::store::postgres::Server;
use crate::store::postgres::runs::StoredRun;

/// The copies of the journals of one workspace.
pub(super) struct Copies {
    folder: PathBuf,
}

impl Copies {
    /// Expects the folder of all copies, and what the workspace is called.
    pub(super) fn new(all: &Path, place: &Path) -> Copies {
        Copies { folder: all.join(Digest::of(place.as_os_str().as_encoded_bytes()).to_string()) }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn path(&self, run: &str) -> PathBuf {
        self.folder.join(format!("{run}.jsonl"))
    }

    /// Returns the path of the copy of a run that is not there, which must not be there either.
    pub(super) fn missing(&self, run: &str) -> PathBuf {
        self.remove(run);
        self.path(run)
    }

    pub(super) fn remove(&self, run: &str) {
        // One that stays is looked at before it is used.
        let _ = std::fs::remove_file(self.path(run));
    }

    /// Fetches the lines that a copy lacks, and returns its path.
    pub(super) fn bring_up(&self, server: &Server, run: &StoredRun) -> Result<PathBuf> {
        let path = self.path(&run.name);
        let failed = |error: std::io::Error| Failure::io(&path, "write the copy of a journal", &error);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(failed)?;
        let known = disk::read(&path, Links::NotLast, MAX_BYTES)?.unwrap_or_default();
        let whole = memchr::memrchr(b'\n', &known).map_or(0, |end| end + 1);
        let lines = i64::try_from(memchr::memchr_iter(b'\n', &known[..whole]).count()).unwrap_or(i64::MAX);
        let last =
            known[..whole].strip_suffix(b"\n").map(|text| &text[memchr::memrchr(b'\n', text).map_or(0, |at| at + 1)..]);
        // The last line is fetched once more: it holds the digest of all before it, so that the copy is of this run, whole.
        let mut fetched = server.lines(run.id, (lines - 1).max(0))?;
        let fits = match (&last, fetched.first()) {
            (Some(last), Some((seq, body))) => *seq == lines && body.as_bytes() == *last,
            (None, _) => true,
            (Some(_), None) => false,
        };
        let keep = if !fits {
            fetched = server.lines(run.id, 0)?;
            0
        } else if last.is_some() {
            fetched.remove(0);
            whole
        } else {
            0
        };
        if fetched.is_empty() && keep == known.len() && path.is_file() {
            return Ok(path);
        }
        let flags = OFlags::NOFOLLOW.bits().cast_signed();
        let mut options = std::fs::File::options();
        let file = options.create(true).truncate(false).write(true).mode(0o600).custom_flags(flags).open(&path);
        let mut file = file.map_err(failed)?;
        file.set_len(keep as u64).map_err(failed)?;
        std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(keep as u64)).map_err(failed)?;
        let text: String = fetched.into_iter().map(|(_, body)| body + "\n").collect();
        file.write_all(text.as_bytes()).map_err(failed)?;
        Ok(path)
    }
}
