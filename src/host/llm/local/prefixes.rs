//! Beginnings of prompts that were computed before, kept on disk beside the weights: what a flow tells a persona stays the
//! same from run to run.
//!
//! A file has the keys and values of the first tokens of a prompt, as the transformer had them: nothing is rounded, so a reply is the
//! same with it and without. Its name is the digest of the weights, of the engine and of the tokens; what is in it is held
//! against a digest at its end, so that a torn file or somebody else's is never used. Files are written whole and
//! renamed. Together they have at most [`MOST`] bytes; those that were not used for longest go first.

use std::fs::{File, FileTimes};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::transformer::{CHUNK, Transformer};
use crate::error::Result;

/// The folder, in that of the weights.
const FOLDER: &str = "prefixes";
/// The most bytes of all files together.
const MOST: u64 = 200_000_000;
/// To be counted up whenever the same tokens give other numbers, or stand otherwise in a file.
const FORMAT: &str = "nietz prefix 1";
/// How the name of a file begins that is being written, or was when its process was killed.
const UNFINISHED: &str = ".unfinished-";

/// Where beginnings are kept, and by which program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Place {
    /// The folder of the weights.
    pub(super) models: PathBuf,
    /// The engine's program: another build may compute in another order.
    pub(super) program: PathBuf,
}

/// The kept beginnings for one model file.
pub(super) struct Prefixes {
    folder: PathBuf,
    /// The digest of what the numbers depend on beside the tokens.
    engine: blake3::Hash,
    /// The tokens that are to be kept when they are computed.
    due: Vec<u32>,
    /// A file is written while the reply is: the process may be ended as soon as that is out.
    writing: Option<JoinHandle<()>>,
    most: u64,
}

impl Prefixes {
    /// Returns those for weights, of which the beginning of the file up to the tensors is looked at, its size and its time.
    pub(super) fn new(place: &Place, weights: &Path, header: &[u8]) -> std::io::Result<Prefixes> {
        let mut hash = blake3::Hasher::new();
        let mut add = |bytes: &[u8]| {
            hash.update(&(bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        add(FORMAT.as_bytes());
        add(format!("{:?}", super::dot::Kernels::detect()).as_bytes());
        add(header);
        for path in [weights, &place.program] {
            let about = std::fs::metadata(path)?;
            add(format!("{} {} {}", about.size(), about.mtime(), about.mtime_nsec()).as_bytes());
        }
        Ok(Prefixes {
            folder: folder(&place.models),
            engine: hash.finalize(),
            due: Vec::new(),
            writing: None,
            most: MOST,
        })
    }

    fn path(&self, tokens: &[u32]) -> PathBuf {
        let mut hash = blake3::Hasher::new_keyed(self.engine.as_bytes());
        for token in tokens {
            hash.update(&token.to_le_bytes());
        }
        self.folder.join(format!("{}.kv", hash.finalize().to_hex()))
    }

    /// Gives the transformer the longest kept beginning of a prompt whose first `stable` tokens may come again, if it has no
    /// longer one itself.
    pub(super) fn restore(&mut self, prompt: &[u32], stable: usize, transformer: &mut Transformer) {
        // At least the last token is computed again.
        let whole = stable.min(prompt.len().saturating_sub(1)) / CHUNK * CHUNK;
        self.due = prompt[..whole].to_vec();
        let known = transformer.known(prompt);
        for end in (1..=whole / CHUNK).rev().map(|chunks| chunks * CHUNK).take_while(|end| *end > known) {
            let path = self.path(&prompt[..end]);
            let Ok(file) = File::open(&path) else { continue };
            match read(file, transformer.numbers_of(end)) {
                Some(numbers) => {
                    transformer.insert(&prompt[..end], &numbers);
                    if end == whole {
                        self.due = Vec::new();
                    }
                    touch(&path);
                    return;
                }
                // It is of no use to anybody.
                None => drop(std::fs::remove_file(&path)),
            }
        }
    }

    /// Keeps the beginning of the prompt that was just computed, if it was not kept. What fails here costs time the next time, and
    /// nothing else.
    pub(super) fn keep(&mut self, transformer: &Transformer) {
        let due = std::mem::take(&mut self.due);
        if due.is_empty() {
            return;
        }
        let path = self.path(&due);
        let Some(numbers) = transformer.numbers(&due).filter(|_| !path.exists()) else { return };
        self.finish();
        let (folder, most) = (self.folder.clone(), self.most);
        self.writing = Some(std::thread::spawn(move || drop(write(&folder, most, &path, &numbers))));
    }

    /// Waits for a file that is being written.
    pub(super) fn finish(&mut self) {
        if let Some(writing) = self.writing.take() {
            let _ = writing.join();
        }
    }
}

fn write(folder: &Path, most: u64, path: &Path, numbers: &[f32]) -> std::io::Result<()> {
    let size = (numbers.len() * 4 + blake3::OUT_LEN) as u64;
    if size > most {
        return Ok(());
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    make_room(folder, most - size)?;
    let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?;
    // Whoever finds it unlocked knows that nobody writes it any more.
    file.as_file().lock()?;
    let mut bytes = Vec::with_capacity(numbers.len() * 4);
    numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    file.write_all(&bytes)?;
    file.write_all(blake3::hash(&bytes).as_bytes())?;
    file.persist(path)?;
    Ok(())
}

/// Returns the folder of kept beginnings, in the folder of the weights.
fn folder(models: &Path) -> PathBuf {
    models.join(FOLDER)
}

/// Returns how many bytes are kept.
pub(crate) fn size(models: &Path) -> u64 {
    files(&folder(models)).iter().map(|file| file.size).sum()
}

/// The most bytes that are kept.
pub(crate) fn limit() -> u64 {
    MOST
}

/// Removes all that is kept.
///
/// # Errors
///
/// `disk-failed` if a file cannot be removed.
pub(crate) fn remove(models: &Path) -> Result<u64> {
    let mut removed = 0;
    for file in files(&folder(models)) {
        match std::fs::remove_file(&file.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(crate::error::Failure::io(&file.path, "remove", &error));
            }
            _ => removed += file.size,
        }
    }
    Ok(removed)
}

struct Kept {
    path: PathBuf,
    size: u64,
    used: SystemTime,
}

fn files(folder: &Path) -> Vec<Kept> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let kept = entries.filter_map(|entry| {
        let about = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
        Some(Kept { path: entry.path(), size: about.len(), used: about.modified().ok()? })
    });
    kept.collect()
}

/// Removes those that were not used for longest, until all have at most this many bytes, and what a killed process left half
/// written.
fn make_room(folder: &Path, most: u64) -> std::io::Result<()> {
    let mut kept = files(folder);
    kept.sort_by_key(|file| file.used);
    let mut total: u64 = kept.iter().map(|file| file.size).sum();
    for file in kept {
        let is_unfinished = file.path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(UNFINISHED));
        let is_left = is_unfinished && File::open(&file.path).is_ok_and(|file| file.try_lock().is_ok());
        if (total > most && !is_unfinished) || is_left {
            std::fs::remove_file(&file.path)?;
            total -= file.size;
        }
    }
    Ok(())
}

fn touch(path: &Path) {
    let file = File::options().write(true).open(path);
    let _ = file.and_then(|file| file.set_times(FileTimes::new().set_modified(SystemTime::now())));
}

/// Reads exactly so many numbers; `None` if the file is not whole.
fn read(file: File, count: usize) -> Option<Vec<f32>> {
    let size = count * 4 + blake3::OUT_LEN;
    if file.metadata().ok()?.len() != size as u64 {
        return None;
    }
    let mut bytes = Vec::with_capacity(size);
    file.take(size as u64).read_to_end(&mut bytes).ok()?;
    let (numbers, digest) = bytes.split_last_chunk::<{ blake3::OUT_LEN }>()?;
    (blake3::hash(numbers) == *digest)
        .then(|| numbers.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn place(models: &Path) -> Place {
        Place { models: models.to_owned(), program: models.join("program") }
    }

    fn prefixes(models: &Path, most: u64) -> Prefixes {
        std::fs::write(models.join("program"), "y").expect("writable");
        let weights = models.join("weights");
        std::fs::write(&weights, "x").expect("writable");
        Prefixes { most, ..Prefixes::new(&place(models), &weights, b"header").expect("it is there") }
    }

    fn kept(prefixes: &Prefixes, tokens: &[u32], count: usize) -> Option<Vec<f32>> {
        read(File::open(prefixes.path(tokens)).ok()?, count)
    }

    #[test]
    fn what_is_torn_or_changed_is_not_read_and_names_depend_on_all_that_counts() {
        let models = tempfile::tempdir().expect("a folder");
        let prefixes = prefixes(models.path(), MOST);
        let (tokens, numbers) = ([1, 2, 3], [1.5, -2.0, f32::MIN_POSITIVE]);
        let path = prefixes.path(&tokens);
        write(&prefixes.folder, MOST, &path, &numbers).expect("it is written");
        assert_eq!(kept(&prefixes, &tokens, 3).expect("it is whole"), numbers);
        assert_eq!(kept(&prefixes, &tokens, 4), None, "of another model");
        let whole = std::fs::read(&path).expect("it is there");
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] ^= 1;
            std::fs::write(&path, &other).expect("writable");
            assert_eq!(kept(&prefixes, &tokens, 3), None, "changed at {at}");
            std::fs::write(&path, &whole[..at]).expect("writable");
            assert_eq!(kept(&prefixes, &tokens, 3), None, "cut at {at}");
        }
        assert_ne!(prefixes.path(&[1, 2]), path);
        let other =
            Prefixes::new(&place(models.path()), &models.path().join("weights"), b"other").expect("it is there");
        assert_ne!(other.path(&tokens), path);
        std::fs::write(models.path().join("weights"), "other").expect("writable");
        let other =
            Prefixes::new(&place(models.path()), &models.path().join("weights"), b"header").expect("it is there");
        assert_ne!(other.path(&tokens), path);
    }

    #[test]
    fn what_was_not_used_for_longest_makes_room_and_nothing_half_written_stays() {
        let models = tempfile::tempdir().expect("a folder");
        // Three of 100 numbers each have room.
        let prefixes = prefixes(models.path(), 3 * 432 + 10);
        let hours_ago = |path: &Path, hours: u64| {
            let time = SystemTime::now() - Duration::from_secs(hours * 3600);
            let file = File::options().write(true).open(path).expect("it is there");
            file.set_times(FileTimes::new().set_modified(time)).expect("it is ours");
        };
        for token in 1..=3 {
            write(&prefixes.folder, prefixes.most, &prefixes.path(&[token]), &[0.0; 100]).expect("it is written");
            hours_ago(&prefixes.path(&[token]), 10 - u64::from(token));
        }
        touch(&prefixes.path(&[1]));
        let unfinished = prefixes.folder.join(format!("{UNFINISHED}x"));
        std::fs::write(&unfinished, "half").expect("writable");
        let written = prefixes.folder.join(format!("{UNFINISHED}y"));
        let writer = File::create(&written).expect("writable");
        writer.lock().expect("nobody else has it");
        write(&prefixes.folder, prefixes.most, &prefixes.path(&[4]), &[0.0; 100]).expect("it is written");
        let left: Vec<u32> = (1..=4).filter(|token| prefixes.path(&[*token]).exists()).collect();
        assert_eq!(left, [1, 3, 4]);
        assert!(!unfinished.exists() && written.exists(), "only what nobody writes is taken away");
        assert_eq!(size(models.path()), 3 * 432);
        write(&prefixes.folder, prefixes.most, &prefixes.path(&[5]), &[0.0; 1000]).expect("it is passed over");
        assert!(!prefixes.path(&[5]).exists());
        assert_eq!((remove(models.path()).expect("they are ours"), size(models.path())), (3 * 432, 0));
    }
}
