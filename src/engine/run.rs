//! Runs on disk: `.nietz/runs/<run>/` with the journal and the lock. Opens, locks and lists them.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use crate::engine::own::{Origin, OwnRuns, Place};
use crate::engine::past::Past;
use crate::error::{Code, Failure, Result, nearest};
use crate::journal::lines::{End, Open, Read};
use crate::journal::reader;
use crate::journal::writer::Tail;
use crate::model::event::EndStatus;
use crate::model::text::excerpt;

/// The folder of runs below a workspace.
const RUNS: &str = ".nietz/runs";
const JOURNAL: &str = "journal.jsonl";
/// The longest name of a run.
const LONGEST_NAME: usize = 100;

/// The runs of one workspace.
pub struct Runs {
    workspace: PathBuf,
    folder: PathBuf,
    own: OwnRuns,
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
    pub origin: Origin,
    pub failure: Option<Failure>,
}

impl Runs {
    /// `workspace` is a whole path without links; `own` is which runs the user began.
    pub fn new(workspace: &Path, own: OwnRuns) -> Runs {
        Runs { workspace: workspace.to_owned(), folder: workspace.join(RUNS), own }
    }

    /// Makes the folder of a new run and takes its lock. A run that is there keeps its place and its journal.
    pub fn create(&self, id: &str) -> Result<Locked> {
        check_name(id)?;
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

    /// Records that the user begins this run here, with this first line. Its folder is there.
    pub fn note_own(&self, id: &str, first_line: &[u8]) -> Result<File> {
        let folder = self.resolved(id).map_err(|error| Failure::io(&self.folder.join(id), "find", &error))?;
        self.own.add(&self.place(id, &folder), first_line)
    }

    /// Tells whose the run is whose journal has this first line.
    pub fn origin(&self, id: &str, first_line: &[u8]) -> Origin {
        match self.resolved(id) {
            Ok(folder) => self.own.origin(&self.place(id, &folder), first_line),
            Err(error) => Origin::Foreign(format!("its folder cannot be found: {error}")),
        }
    }

    fn resolved(&self, id: &str) -> std::io::Result<PathBuf> {
        self.folder.join(id).canonicalize()
    }

    fn place<'a>(&'a self, run: &'a str, folder: &'a Path) -> Place<'a> {
        Place { workspace: &self.workspace, folder, run }
    }

    /// Returns the id of the run that `wanted` names: whole, by a part that only one has, or the latest of the
    /// user's own that can go on.
    pub fn find(&self, wanted: Option<&str>) -> Result<String> {
        let ids = self.ids();
        let Some(wanted) = wanted else { return self.latest(&ids) };
        if ids.iter().any(|id| id == wanted) {
            return Ok(wanted.to_owned());
        }
        let fits: Vec<&String> = ids.iter().filter(|id| !wanted.is_empty() && id.contains(wanted)).collect();
        match fits.as_slice() {
            [one] => Ok((*one).clone()),
            [] => {
                let failure = Failure::new(Code::RunNotFound, format!("there is no run `{}` here", excerpt(wanted)));
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

    /// Returns the run that a person means who names none: the latest of their own that can go on, and that no process
    /// is at. Whatever else a checkout brings is only named.
    fn latest(&self, ids: &[String]) -> Result<String> {
        let (mut foreign, mut busy) = (Vec::new(), None);
        for id in ids.iter().rev() {
            let summary = self.summary(id);
            if summary.end.as_deref().is_some_and(is_over) {
                continue;
            }
            match summary.origin {
                Origin::Own if !summary.busy => return Ok(id.clone()),
                Origin::Own => busy = busy.or_else(|| Some(id.clone())),
                Origin::Foreign(_) => foreign.push(excerpt(id)),
            }
        }
        if let Some(id) = busy {
            return Ok(id);
        }
        let failure = Failure::new(Code::RunNotFound, "there is no run of yours here that can go on");
        if foreign.is_empty() {
            return Err(failure.hint("`nietz runs` lists all; name one to replay it"));
        }
        let failure = failure.because(format!("not begun by you in this folder: {}", foreign.join(", ")));
        Err(failure.hint("nothing that a foreign run grants or names holds: `nietz explain run-foreign`"))
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
        let origin = Origin::Foreign("its journal cannot be read".to_owned());
        let mut summary = Summary { id: id.to_owned(), open: None, end: None, busy: false, origin, failure: None };
        let path = self.journal(id);
        let read = reader::text(&path).and_then(|bytes| {
            summary.origin = self.origin(id, reader::first_line(&bytes));
            reader::read(&path, &bytes, |_, record| {
                match record {
                    Read::Open(open) => summary.open = Some(open),
                    Read::End(end) => summary.end = Some(end),
                    Read::Resume(_) => summary.end = None,
                    Read::Text(_) | Read::Intent(_) | Read::Outcome(_) | Read::Effect(_) | Read::Given(_) => {}
                }
                Ok(())
            })
        });
        summary.failure = read.err();
        summary.busy = matches!(self.lock(id), Err(Failure { code: Code::RunBusy, .. }));
        summary
    }
}

/// Tells whether nothing comes of going on: the run is done, or it was called wrongly, and would be again.
fn is_over(end: &End) -> bool {
    end.status == EndStatus::Done || end.failure.as_ref().is_some_and(|failure| failure.code == Code::Usage)
}

/// Refuses what is no name of a run: it becomes part of paths and of branches.
pub fn check_name(id: &str) -> Result<()> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let whole = !id.is_empty() && id.len() <= LONGEST_NAME && id.chars().all(fine);
    if whole && !id.starts_with(['.', '-']) && !id.ends_with('.') && !id.contains("..") {
        return Ok(());
    }
    Err(Failure::new(Code::Usage, format!("`{}` is no name of a run", excerpt(id)))
        .hint(format!("a name is letters, digits, `-`, `_` and `.`, up to {LONGEST_NAME}; never a path")))
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
