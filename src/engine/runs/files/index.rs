//! Summaries of the runs of one workspace, so that a list of them does not read all of their journals.
//!
//! The file is in the user's cache, because anybody may have written what stands in a workspace. Each line is the summary of
//! one run, and of several the last counts. A journal always counts more: a summary is used only while its file is the same by
//! inode, length, times and last bytes, and else made anew. So the file can be cut, lost or deleted at any time.

use std::collections::HashMap;
use std::fs::{DirBuilder, File};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::disk::temp_file::{TempFile, parent_folder};
use crate::disk::{self, Links};
use crate::engine::runs::summary::RunSummary;
use crate::model::digest::Digest;

/// The version of the lines.
const VERSION: u32 = 1;
/// The largest file that is read, in bytes. A larger one is written anew.
const LARGEST: u64 = 64 << 20;
/// How much of a journal's end is looked at, in bytes: more than the digest of its last line.
const TAIL: usize = 64;
/// A file that changed less than this ago may change again without a new time.
const FRESH: Duration = Duration::from_millis(100);
/// How many lines of runs that were replaced or are gone are kept, at least.
const SPARE: usize = 200;

/// The index of one workspace.
pub(super) struct RunIndex {
    /// Where it is kept, if anywhere.
    path: Option<PathBuf>,
    known: HashMap<String, (JournalState, RunSummary)>,
    /// How many lines the file has.
    lines: usize,
    added: Vec<IndexLine>,
}

/// By what a journal's file is known again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JournalState {
    inode: u64,
    pub(super) length: u64,
    /// Seconds and nanoseconds since 1970: of its text, and of all that is known of it.
    modified: (i64, i64),
    changed: (i64, i64),
    tail: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct IndexLine {
    v: u32,
    run: String,
    journal: JournalState,
    summary: RunSummary,
}

impl JournalState {
    pub(super) fn of(journal: &File) -> std::io::Result<JournalState> {
        let found = journal.metadata()?;
        let mut tail = [0; TAIL];
        let size = TAIL.min(usize::try_from(found.len()).unwrap_or(TAIL));
        journal.read_exact_at(&mut tail[..size], found.len() - size as u64)?;
        Ok(JournalState {
            inode: found.ino(),
            length: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
            tail: Digest::of(&tail[..size]).to_string(),
        })
    }

    fn is_fresh(&self) -> bool {
        let (Ok(seconds), Ok(nanos)) = (u64::try_from(self.changed.0), u32::try_from(self.changed.1)) else {
            return true;
        };
        let changed = UNIX_EPOCH + Duration::new(seconds, nanos);
        SystemTime::now().duration_since(changed).map_or(true, |age| age < FRESH)
    }
}

impl RunIndex {
    /// Reads the index of a workspace from the folder of all; without a folder, it is empty and is not kept.
    pub(super) fn open(folder: Option<&Path>, workspace: &Path) -> RunIndex {
        let path = folder.map(|folder| place(folder, workspace));
        let mut index = RunIndex { path, known: HashMap::new(), lines: 0, added: Vec::new() };
        let read = index.path.as_deref().map(|path| disk::read(path, Links::NotLast, LARGEST));
        let bytes = match read {
            Some(Ok(Some(bytes))) => bytes,
            Some(Ok(None)) | None => return index,
            // What is no index is replaced by the next one.
            Some(Err(_)) => {
                index.lines = usize::MAX / 4;
                return index;
            }
        };
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            index.lines += 1;
            if let Ok(line) = serde_json::from_slice::<IndexLine>(line)
                && line.v == VERSION
            {
                index.known.insert(line.run, (line.journal, line.summary));
            }
        }
        index
    }

    /// Returns the summary of a run whose journal is as it was.
    pub(super) fn get(&self, run: &str, journal: &JournalState) -> Option<&RunSummary> {
        self.known.get(run).filter(|(known, _)| known == journal).map(|(_, summary)| summary)
    }

    /// Keeps a summary, unless the journal may still change within the same moment.
    pub(super) fn add(&mut self, run: &str, journal: JournalState, summary: RunSummary) {
        if !journal.is_fresh() {
            self.added.push(IndexLine { v: VERSION, run: run.to_owned(), journal, summary });
        }
    }

    /// Keeps the summary of a journal that whoever calls has just written.
    pub(super) fn append(folder: Option<&Path>, workspace: &Path, line: (&str, JournalState, RunSummary)) {
        let Some(path) = folder.map(|folder| place(folder, workspace)) else { return };
        let line = IndexLine { v: VERSION, run: line.0.to_owned(), journal: line.1, summary: line.2 };
        append(&path, &[line]);
    }

    /// Writes what was added, and what is still needed of all the rest if that is little. What cannot be written is made anew
    /// the next time.
    pub(super) fn write(mut self, is_there: impl Fn(&str) -> bool) {
        let Some(path) = self.path.take() else { return };
        if self.lines.saturating_add(self.added.len()) <= 2 * self.known.len() + SPARE {
            append(&path, &self.added);
            return;
        }
        let mut kept = self.known;
        kept.extend(self.added.into_iter().map(|line| (line.run, (line.journal, line.summary))));
        let kept = kept.into_iter().filter(|(run, _)| is_there(run));
        let kept = kept.map(|(run, (journal, summary))| IndexLine { v: VERSION, run, journal, summary });
        let text = text(&kept.collect::<Vec<_>>());
        let _ = TempFile::with_mode(&path, text.as_bytes(), 0o600).and_then(|file| file.publish(&path));
    }
}

/// Returns where the index of a workspace is, in the folder of all.
fn place(folder: &Path, workspace: &Path) -> PathBuf {
    folder.join(format!("{}.jsonl", Digest::of(workspace.as_os_str().as_encoded_bytes())))
}

fn text(lines: &[IndexLine]) -> String {
    lines.iter().filter_map(|line| serde_json::to_string(line).ok()).map(|line| line + "\n").collect()
}

fn append(path: &Path, lines: &[IndexLine]) {
    if lines.is_empty() || DirBuilder::new().recursive(true).mode(0o700).create(parent_folder(path)).is_err() {
        return;
    }
    let mut options = File::options();
    options.create(true).append(true).mode(0o600).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    // One write, so that lines of two processes do not mix; a line that was torn before it ends here.
    let text = format!("\n{}", text(lines));
    let _ = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(folder: &Path, text: &str) -> JournalState {
        let path = folder.join("journal");
        std::fs::write(&path, text).unwrap();
        // As if it had been written long ago.
        let state = JournalState::of(&File::open(&path).unwrap()).unwrap();
        JournalState { changed: (1, 0), ..state }
    }

    fn summary(flow: &str) -> RunSummary {
        RunSummary { flow: flow.to_owned(), ..RunSummary::default() }
    }

    #[test]
    fn a_summary_counts_while_its_journal_is_the_same_and_the_last_one_wins() {
        let folder = tempfile::tempdir().unwrap();
        let (work, kept) = (Path::new("/w"), folder.path().join("runs"));
        let open = || RunIndex::open(Some(&kept), work);
        let (one, two) = (journal(folder.path(), "one"), journal(folder.path(), "two, longer"));
        for (state, flow) in [(&one, "a"), (&two, "b")] {
            let mut index = open();
            index.add("r1", state.clone(), summary(flow));
            index.write(|_| true);
        }
        assert_eq!((open().get("r1", &one), open().get("r1", &two)), (None, Some(&summary("b"))));
        assert_eq!(RunIndex::open(Some(&kept), Path::new("/other")).get("r1", &two), None);
        // Of a file that was torn or has foreign lines, what is whole counts.
        let path = open().path.unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.truncate(bytes.len() - 9);
        bytes.splice(0..0, b"{\"v\":1}\nnonsense\n".iter().copied());
        std::fs::write(&path, bytes).unwrap();
        assert_eq!((open().get("r1", &one), open().get("r1", &two)), (Some(&summary("a")), None));
    }

    #[test]
    fn what_is_replaced_or_gone_does_not_fill_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let state = journal(folder.path(), "one");
        let open = || RunIndex::open(Some(folder.path()), Path::new("/w"));
        for round in 0..3 * SPARE {
            let mut index = open();
            index.add(["r1", "r2"][round % 2], state.clone(), summary("a"));
            index.write(|run| run == "r1");
        }
        let index = open();
        assert!(index.lines <= 2 * SPARE && index.get("r1", &state).is_some(), "{}", index.lines);
        // A link in its place is not followed, and what it leads to stays.
        let (path, other) = (index.path.clone().unwrap(), folder.path().join("other"));
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&other, "mine").unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        let mut index = open();
        index.add("r1", state.clone(), summary("c"));
        index.write(|_| true);
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "mine");
        assert_eq!(open().get("r1", &state), Some(&summary("c")));
    }

    #[test]
    fn a_journal_that_has_just_changed_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let (seconds, nanos) =
            SystemTime::now().duration_since(UNIX_EPOCH).map(|it| (it.as_secs(), it.subsec_nanos())).unwrap();
        let changed = (seconds.cast_signed() + 60, i64::from(nanos));
        let fresh = JournalState { changed, ..journal(folder.path(), "one") };
        let mut index = RunIndex::open(Some(folder.path()), Path::new("/w"));
        index.add("r1", fresh.clone(), summary("a"));
        index.write(|_| true);
        assert_eq!(RunIndex::open(Some(folder.path()), Path::new("/w")).get("r1", &fresh), None);
    }
}
