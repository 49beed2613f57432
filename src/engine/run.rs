//! Runs on disk: `.nietz/runs/<run>/` with the journal and the lock. Opens, locks and lists them.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use crate::engine::past::Past;
use crate::error::{Code, Failure, Result, nearest};
use crate::journal::reader;
use crate::journal::v1::{End, Open, Read};
use crate::journal::writer::Tail;

/// The folder of runs below a workspace.
const RUNS: &str = ".nietz/runs";
const JOURNAL: &str = "journal.jsonl";

/// The runs of one workspace.
pub struct Runs {
    folder: PathBuf,
}

/// One run's folder, held by this process while the lock lives.
pub struct Locked {
    pub id: String,
    pub journal: PathBuf,
    _lock: File,
}

/// What `nietz runs` shows of a run.
pub struct Summary {
    pub id: String,
    pub open: Option<Box<Open>>,
    pub end: Option<Box<End>>,
    /// Whether a process is at it now.
    pub busy: bool,
    pub failure: Option<Failure>,
}

impl Runs {
    pub fn new(workspace: &Path) -> Runs {
        Runs { folder: workspace.join(RUNS) }
    }

    /// Makes the folder of a new run and takes its lock. A run that is there keeps its place and its journal.
    pub fn create(&self, id: &str) -> Result<Locked> {
        let folder = self.folder.join(id);
        std::fs::create_dir_all(&folder).map_err(|error| Failure::io(&folder, "create", &error))?;
        // Journals hold what people said: they are not committed by accident.
        let ignore = self.folder.join(".gitignore");
        if !ignore.exists() {
            std::fs::write(&ignore, "*\n").map_err(|error| Failure::io(&ignore, "write", &error))?;
        }
        let locked = self.lock(id)?;
        match std::fs::metadata(&locked.journal) {
            Ok(found) if found.len() > 0 => Err(Failure::new(Code::Usage, format!("there is a run {id} already"))
                .hint(format!("go on with it: nietz resume {id}"))),
            _ => Ok(locked),
        }
    }

    /// Takes the lock of a run that is there.
    pub fn lock(&self, id: &str) -> Result<Locked> {
        let folder = self.folder.join(id);
        let path = folder.join("lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|error| Failure::io(&path, "open", &error))?;
        match file.try_lock() {
            Ok(()) => Ok(Locked { id: id.to_owned(), journal: folder.join(JOURNAL), _lock: file }),
            Err(TryLockError::WouldBlock) => {
                Err(Failure::new(Code::RunBusy, format!("another process is at run {id}"))
                    .hint("wait for it or end it; two processes never write one journal"))
            }
            Err(TryLockError::Error(error)) => Err(Failure::io(&path, "lock", &error)),
        }
    }

    /// Returns the id of the run that `wanted` names: whole, by a beginning that only one has, or the latest
    /// that is not done.
    pub fn find(&self, wanted: Option<&str>) -> Result<String> {
        let ids = self.ids();
        let Some(wanted) = wanted else {
            return ids
                .iter()
                .rev()
                .find(|id| self.summary(id).end.is_none_or(|end| end.status != crate::model::event::EndStatus::Done))
                .cloned()
                .ok_or_else(|| {
                    Failure::new(Code::RunNotFound, "there is no run here that is not done")
                        .hint("`nietz runs` lists all; name one to replay it")
                });
        };
        if ids.iter().any(|id| id == wanted) {
            return Ok(wanted.to_owned());
        }
        let fits: Vec<&String> = ids.iter().filter(|id| !wanted.is_empty() && id.contains(wanted)).collect();
        match fits.as_slice() {
            [one] => Ok((*one).clone()),
            [] => {
                let failure = Failure::new(
                    Code::RunNotFound,
                    format!("there is no run `{}` here", crate::model::text::excerpt(wanted)),
                );
                Err(match nearest(wanted, ids.iter().map(String::as_str)) {
                    Some(near) => failure.hint(format!("did you mean `{near}`?")),
                    None => failure.hint("`nietz runs` lists them"),
                })
            }
            several => {
                let names: Vec<&str> = several.iter().map(|id| id.as_str()).collect();
                Err(Failure::new(Code::RunNotFound, format!("`{wanted}` could be {}", names.join(", "))))
            }
        }
    }

    /// Returns the ids of all runs, oldest first.
    pub fn ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = std::fs::read_dir(&self.folder)
            .map(|entries| {
                entries
                    .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
                    .filter(|name| self.folder.join(name).join(JOURNAL).is_file())
                    .collect()
            })
            .unwrap_or_default();
        ids.sort();
        ids
    }

    pub fn journal(&self, id: &str) -> PathBuf {
        self.folder.join(id).join(JOURNAL)
    }

    /// Returns how a run began and ended.
    pub fn summary(&self, id: &str) -> Summary {
        let mut summary = Summary { id: id.to_owned(), open: None, end: None, busy: false, failure: None };
        let path = self.journal(id);
        let read = reader::text(&path).and_then(|bytes| {
            reader::read(&path, &bytes, |_, record| {
                match record {
                    Read::Open(open) => summary.open = Some(open),
                    Read::End(end) => summary.end = Some(end),
                    Read::Resume(_) => summary.end = None,
                    Read::Text(_) | Read::Intent(_) | Read::Outcome(_) | Read::Effect(_) => {}
                }
                Ok(())
            })
        });
        summary.failure = read.err();
        summary.busy = matches!(self.lock(id), Err(Failure { code: Code::RunBusy, .. }));
        summary
    }
}

impl Locked {
    /// Reads what the run has done so far. With `whole`, a broken journal is kept beside and cut to the part
    /// before the first broken line.
    pub fn past(&self, whole: bool) -> Result<(Past, Tail)> {
        let (mut past, tail) = match Past::read(&self.journal) {
            Err(failure) if whole && failure.code == Code::JournalBroken => {
                self.keep_whole_part()?;
                Past::read(&self.journal)?
            }
            other => other?,
        };
        past.cut = self.broken(1).exists();
        Ok((past, tail))
    }

    /// Returns where a broken journal is kept.
    fn broken(&self, number: u32) -> PathBuf {
        self.journal.with_file_name(format!("journal.broken-{number}.jsonl"))
    }

    fn keep_whole_part(&self) -> Result<()> {
        let bytes = reader::text(&self.journal)?;
        let mut length = 0;
        let mut from = 0;
        // The longest beginning of whole lines that reads well.
        while let Some(end) = memchr::memchr(b'\n', &bytes[from..]) {
            from += end + 1;
            if reader::read(&self.journal, &bytes[..from], |_, _| Ok(())).is_err() {
                break;
            }
            length = from;
        }
        let kept = (1..)
            .map(|number| self.broken(number))
            .find(|path| !path.exists())
            .unwrap_or_else(|| self.journal.with_extension("broken"));
        std::fs::rename(&self.journal, &kept).map_err(|error| Failure::io(&kept, "write", &error))?;
        std::fs::write(&self.journal, &bytes[..length]).map_err(|error| Failure::io(&self.journal, "write", &error))
    }
}
