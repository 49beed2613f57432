//! Records of the runs that this user began. They are kept outside the workspaces, where neither a checkout nor a model
//! can write.
//!
//! What a journal's first line grants and names (permissions, models, the flow) is valid only if the same user wrote
//! that line in that place. The record proves it: it is found by the run and its place, and holds a MAC of the line, with
//! a key that only the user can read. A journal that came with a checkout, or was copied, moved or replaced, has no
//! record, and its run is foreign.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde_json::{Value, json};

use crate::disk::{self, Links};
use crate::error::{Code, Failure, Result};
use crate::model::digest::Digest;

/// The folder of records below the user's folder for state, and the file with the key in it.
const FOLDER: &str = "runs";
const KEY: &str = "key";
/// The folders of answers and of tags, beside that of records.
const ANSWERS: &str = "answers";
const TAGS: &str = "tags";
/// Domain separation: key and MACs are valid for this purpose only.
const KEY_CONTEXT: &str = "nietz 2026-11 key of records of runs";
const RECORD_CONTEXT: &str = "nietz 2026-11 record of a run";

/// The largest record, in bytes: it holds the path of a folder.
const LARGEST_RECORD: u64 = 64 << 10;

type MacKey = [u8; 32];

/// Whether a run is the user's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// This user began it in this place.
    Own,
    /// Anybody may have written its journal; holds why there is no proof to the contrary.
    Foreign(String),
}

/// Where a run is. Links in the paths are resolved, so that each place has one path only.
pub struct RunLocation<'a> {
    pub workspace: &'a Path,
    pub folder: &'a Path,
    pub run: &'a str,
}

/// The records of one user.
#[derive(Clone, Debug)]
pub struct RunRecords {
    folder: PathBuf,
}

/// The records, while many runs are looked at.
pub struct OpenRecords<'a> {
    records: &'a RunRecords,
    key: OnceCell<Result<Option<MacKey>>>,
}

impl RunRecords {
    /// Expects the user's folder for state.
    pub fn new(state: &Path) -> RunRecords {
        RunRecords { folder: state.join(FOLDER) }
    }

    /// Returns the folder of the records, and of the key.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the folder of the tags of runs.
    pub(super) fn tags(&self) -> PathBuf {
        self.folder.with_file_name(TAGS)
    }

    /// Tells by its name whether a file of that folder is a record.
    pub fn is_record(name: &str) -> bool {
        name != KEY && !name.starts_with('.')
    }

    /// Records a run before its first line is written, so that a run which is killed in between is the user's own as well.
    /// Returns the record's file, to be synced together with that line. `everywhere` are the paths of those of the flow's documents
    /// that are read in all folders.
    ///
    /// # Errors
    ///
    /// `disk-failed` if the record cannot be written, `config-invalid` if others can read the key, or it is no key.
    pub fn add(&self, place: &RunLocation<'_>, first_line: &[u8], everywhere: &[&str]) -> Result<File> {
        let failed = |error: std::io::Error| Failure::io(&self.folder, "write a record of the run below", &error);
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(failed)?;
        let key = match self.key()? {
            Some(key) => key,
            None => self.make_key()?,
        };
        let mac = mac(&key, place, first_line).to_hex();
        let mut record = json!({ "run": place.run, "folder": place.folder.display().to_string(), "mac": mac.as_str() });
        if !everywhere.is_empty() {
            record["workspace"] = json!(place.workspace.display().to_string());
            record["everywhere"] = json!(everywhere);
        }
        // Readable by the user only. If a kill tears the record, the first line does not exist either.
        let flags = OFlags::NOFOLLOW.bits().cast_signed();
        let mut options = File::options();
        options.create(true).truncate(true).write(true).mode(0o600).custom_flags(flags);
        let mut file = options.open(self.record(place)).map_err(failed)?;
        file.write_all(format!("{record}\n").as_bytes()).map_err(failed)?;
        Ok(file)
    }

    /// Removes the record of a run that is gone. One that stays behind does no harm: it is of one line in one place.
    pub fn remove(&self, place: &RunLocation<'_>) {
        let _ = std::fs::remove_file(self.record(place));
        let _ = std::fs::remove_dir_all(self.answers(place));
    }

    /// Tells whether the user began the run whose journal begins with this line.
    pub fn origin(&self, place: &RunLocation<'_>, first_line: &[u8]) -> Origin {
        self.open().origin(place, first_line)
    }

    /// Opens the records for many runs: the key is read once.
    pub fn open(&self) -> OpenRecords<'_> {
        OpenRecords { records: self, key: OnceCell::new() }
    }

    /// Returns the folder for answers to the questions of a run that are given elsewhere: beside the records, because anybody
    /// may have written what stands in a workspace.
    pub fn answers(&self, place: &RunLocation<'_>) -> PathBuf {
        self.folder.with_file_name(ANSWERS).join(Digest::of(&fields(place)).to_string())
    }

    /// Returns the workspaces in which the user began a run of a flow that reads the documents at this path everywhere, by their
    /// paths. They may be gone.
    pub fn workspaces_with(&self, path: &str) -> BTreeSet<PathBuf> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = entries.filter(|entry| entry.file_name().to_str().is_some_and(RunRecords::is_record));
        names
            .filter_map(|entry| {
                let text = disk::read(&entry.path(), Links::NotLast, LARGEST_RECORD).ok()??;
                let record: Value = serde_json::from_slice(&text).ok()?;
                let has_it = record["everywhere"].as_array()?.iter().any(|one| one == path);
                record["workspace"].as_str().filter(|_| has_it).map(PathBuf::from)
            })
            .filter(|workspace| workspace.is_absolute())
            .collect()
    }

    fn record(&self, place: &RunLocation<'_>) -> PathBuf {
        self.folder.join(Digest::of(&fields(place)).to_string())
    }

    /// Returns the user's key, if there is one.
    fn key(&self) -> Result<Option<MacKey>> {
        let path = self.folder.join(KEY);
        let Some(mut file) = disk::open(&path, Links::NotLast)? else { return Ok(None) };
        let wrong = |what: &str| {
            Failure::new(Code::ConfigInvalid, format!("{} {what}", path.display()))
                .hint("remove it: a new one is made, and runs that were begun before are foreign then")
        };
        let metadata = file.metadata().map_err(|error| Failure::io(&path, "read", &error))?;
        if metadata.uid() != rustix::process::geteuid().as_raw() || metadata.mode() & 0o077 != 0 {
            return Err(wrong("is not a file that only you can read and write"));
        }
        let mut key = MacKey::default();
        match file.read_exact(&mut key) {
            Ok(()) if metadata.len() == key.len() as u64 => Ok(Some(key)),
            _ => Err(wrong("is not a valid key")),
        }
    }

    /// Makes the key. If several processes do so at once, one wins, and all use its key.
    fn make_key(&self) -> Result<MacKey> {
        let path = self.folder.join(KEY);
        let failed = |error: std::io::Error| Failure::io(&path, "make", &error);
        let mut hasher = blake3::Hasher::new_derive_key(KEY_CONTEXT);
        // Each UUID holds 122 random bits from the system.
        for _ in 0..4 {
            hasher.update(uuid::Uuid::new_v4().as_bytes());
        }
        let mut file = tempfile::NamedTempFile::new_in(&self.folder).map_err(failed)?;
        file.write_all(hasher.finalize().as_bytes()).map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        match file.persist_noclobber(&path) {
            Ok(_) => {}
            Err(error) if error.error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(error.error)),
        }
        self.key()?.ok_or_else(|| failed(ErrorKind::NotFound.into()))
    }
}

impl OpenRecords<'_> {
    /// As [`RunRecords::origin`].
    pub fn origin(&self, place: &RunLocation<'_>, first_line: &[u8]) -> Origin {
        match self.has(place, first_line) {
            Ok(true) => Origin::Own,
            Ok(false) => Origin::Foreign(format!("{} has no record of it", self.records.folder.display())),
            Err(failure) => Origin::Foreign(failure.message),
        }
    }

    fn has(&self, place: &RunLocation<'_>, first_line: &[u8]) -> Result<bool> {
        let path = self.records.record(place);
        let Some(text) = disk::read(&path, Links::NotLast, LARGEST_RECORD)? else { return Ok(false) };
        let Some(key) = self.key.get_or_init(|| self.records.key()).clone()? else { return Ok(false) };
        // A record torn by a power cut does not count.
        let record: Value = serde_json::from_slice(&text).unwrap_or_default();
        let recorded = record["mac"].as_str().and_then(|mac| blake3::Hash::from_hex(mac).ok());
        // `blake3::Hash` compares in constant time.
        Ok(recorded == Some(mac(&key, place, first_line)))
    }
}

fn mac(key: &MacKey, place: &RunLocation<'_>, first_line: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(RECORD_CONTEXT.as_bytes()).update(&fields(place)).update(first_line);
    hasher.finalize()
}

/// Returns the bytes of a place, each part with its length, so that no two places have the same bytes.
fn fields(place: &RunLocation<'_>) -> Vec<u8> {
    let parts = [place.run.as_bytes(), path(place.workspace), path(place.folder)];
    parts
        .into_iter()
        .flat_map(|part| (part.len() as u64).to_le_bytes().into_iter().chain(part.iter().copied()))
        .collect()
}

fn path(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn place<'a>(workspace: &'a str, run: &'a str) -> RunLocation<'a> {
        RunLocation { workspace: Path::new(workspace), folder: Path::new("/w/.nietz/runs/r1"), run }
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_record_is_of_one_line_in_one_place_and_of_one_user() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let records = RunRecords::new(&one.path().join("state"));
        records.add(&place("/w", "r1"), b"line\n", &[]).unwrap();
        assert_eq!(records.origin(&place("/w", "r1"), b"line\n"), Origin::Own);
        let foreign =
            |records: &RunRecords, place: &RunLocation<'_>, line: &[u8]| records.origin(place, line) != Origin::Own;
        assert!(foreign(&records, &place("/w", "r1"), b"Line\n"));
        assert!(foreign(&records, &place("/w", "r2"), b"line\n"));
        assert!(foreign(&records, &place("/x", "r1"), b"line\n"));
        // The same record in another user's folder with another key, as if somebody had copied it there.
        let theirs = RunRecords::new(other.path());
        theirs.add(&place("/w", "r0"), b"line\n", &[]).unwrap();
        std::fs::copy(records.record(&place("/w", "r1")), theirs.record(&place("/w", "r1"))).unwrap();
        assert!(foreign(&theirs, &place("/w", "r1"), b"line\n"));
        assert_eq!(mode(&records.folder), 0o700);
    }

    #[test]
    fn the_key_and_the_records_are_for_the_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let records = RunRecords::new(folder.path());
        records.add(&place("/w", "r1"), b"line\n", &[]).unwrap();
        let key = records.folder.join(KEY);
        assert_eq!((mode(&key), mode(&records.record(&place("/w", "r1")))), (0o600, 0o600));
        // A key that others could have read proves nothing and is not used for new records.
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
        let Origin::Foreign(why) = records.origin(&place("/w", "r1"), b"line\n") else { panic!("it is taken") };
        assert!(why.contains("only you can read"), "{why}");
        assert_eq!(records.add(&place("/w", "r2"), b"line\n", &[]).unwrap_err().code, Code::ConfigInvalid);
        std::fs::remove_file(&key).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &key).unwrap();
        assert!(records.add(&place("/w", "r2"), b"line\n", &[]).is_err());
    }

    #[test]
    fn a_workspace_is_found_by_the_documents_that_are_read_everywhere_and_by_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let records = RunRecords::new(folder.path());
        let found = |path: &str| records.workspaces_with(path).into_iter().collect::<Vec<_>>();
        assert_eq!(found("notes/{id}.json"), [] as [PathBuf; 0]);
        records.add(&place("/w", "r1"), b"line\n", &["notes/{id}.json"]).unwrap();
        records.add(&place("/w", "r2"), b"line\n", &["notes/{id}.json"]).unwrap();
        records.add(&place("/x", "r1"), b"line\n", &["other/{id}.json"]).unwrap();
        records.add(&place("/y", "r1"), b"line\n", &[]).unwrap();
        std::fs::write(records.folder.join("torn"), "{\"workspace\": \"/z\", \"every").unwrap();
        std::fs::write(records.folder.join("odd"), r#"{"workspace": "z", "everywhere": ["notes/{id}.json"]}"#).unwrap();
        assert_eq!(found("notes/{id}.json"), [Path::new("/w")]);
        assert_eq!(found("other/{id}.json"), [Path::new("/x")]);
    }

    #[test]
    fn processes_that_begin_at_once_agree_on_one_key() {
        let folder = tempfile::tempdir().unwrap();
        let records = RunRecords::new(folder.path());
        let names: Vec<String> = (0..16).map(|number| format!("r{number}")).collect();
        std::thread::scope(|scope| {
            for name in &names {
                scope.spawn(|| records.add(&place("/w", name), b"line\n", &[]).unwrap());
            }
        });
        for name in &names {
            assert_eq!(records.origin(&place("/w", name), b"line\n"), Origin::Own, "{name}");
        }
    }
}
