//! Takes a stranger's files in, from a folder or an archive into an empty folder of ours, and checks every path, kind and
//! size first. A refused pack leaves nothing behind, because the folder is thrown away.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use unicode_normalization::UnicodeNormalization;

use crate::error::{Code, Failure, Result};
use crate::model::text::excerpt;
use crate::pack::seal::is_executable;

/// The most files and folders, bytes in one file, bytes in all, parts of a path, and bytes of such a part.
const FILES: usize = 2_000;
const LARGEST: u64 = 4 * 1024 * 1024;
const ALL: u64 = 32 * 1024 * 1024;
const DEEPEST: usize = 16;
const LONGEST: usize = 200;

/// What belongs to a pack at the top of a folder. Everything else there is left out.
const FOLDERS: &[&str] = &["flows", "personas", "quotes", "tests"];
const TEXTS: &[&str] = &["pack.yaml", "README", "LICENSE", "LICENCE", "COPYING", "CHANGELOG", "NOTICE"];

/// A folder that is being filled.
pub struct Intake<'a> {
    into: &'a Path,
    /// Every path and every folder above it, by the form that file systems without case compare.
    seen: HashMap<String, String>,
    count: usize,
    bytes: u64,
    /// The bytes of all files that were announced.
    expected: u64,
}

/// Copies what belongs to a pack from a folder.
///
/// # Errors
///
/// `pack-invalid` if a path, kind or size is refused; `disk-failed` if a file cannot be read or written.
pub fn copy_folder(from: &Path, into: &Path) -> Result<()> {
    let mut intake = Intake::new(into);
    let walk = walkdir::WalkDir::new(from).min_depth(1).sort_by_file_name().into_iter();
    let wanted =
        |entry: &walkdir::DirEntry| entry.depth() > 1 || is_part(entry.file_name().to_str().unwrap_or_default());
    for entry in walk.filter_entry(wanted) {
        let entry = entry.map_err(|error| refused(format!("a file cannot be read: {error}")))?;
        let path = entry.path().strip_prefix(from).unwrap_or(entry.path());
        let kind = entry.file_type();
        let plain = intake.path(
            path,
            kind.is_file() || kind.is_dir(),
            if kind.is_symlink() { "a link" } else { "a device" },
        )?;
        if kind.is_file() {
            let file = File::open(entry.path()).map_err(|error| Failure::io(entry.path(), "read", &error))?;
            let metadata = file.metadata().map_err(|error| Failure::io(entry.path(), "read", &error))?;
            intake.file(&plain, is_executable(&metadata), metadata.len(), file)?;
        }
    }
    Ok(())
}

/// Unpacks a whole archive; [`copy_folder`] takes the pack out of the result.
///
/// # Errors
///
/// `pack-invalid` if a path, kind or size is refused, or the archive is broken; `disk-failed` if a file cannot be written.
pub fn unpack_archive(archive: impl Read, into: &Path) -> Result<()> {
    let mut intake = Intake::new(into);
    let bounded = BoundedReader { inner: archive, left: 2 * ALL };
    let mut tar = tar::Archive::new(bounded);
    let broken = |error: std::io::Error| refused(format!("the archive cannot be read: {error}"));
    for entry in tar.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let kind = entry.header().entry_type();
        if kind.is_pax_global_extensions() {
            continue;
        }
        let path = entry.path().map_err(broken)?.into_owned();
        let what = match kind {
            tar::EntryType::Symlink | tar::EntryType::Link => "a link",
            tar::EntryType::Char | tar::EntryType::Block | tar::EntryType::Fifo => "a device",
            _ => "of an unknown kind",
        };
        if path == Path::new("./") || path == Path::new(".") {
            continue;
        }
        let plain = intake.path(&path, kind.is_file() || kind.is_dir(), what)?;
        if kind.is_file() {
            let executable = entry.header().mode().is_ok_and(|mode| mode & 0o111 != 0);
            let length = entry.size();
            intake.file(&plain, executable, length, &mut entry)?;
        }
    }
    Ok(())
}

/// Returns the folder of a pack in an unpacked archive: its top, or the one folder that it holds.
pub fn top(unpacked: &Path) -> PathBuf {
    if unpacked.join("pack.yaml").is_file() {
        return unpacked.to_owned();
    }
    let entries: Vec<PathBuf> = std::fs::read_dir(unpacked)
        .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
        .unwrap_or_default();
    match entries.as_slice() {
        [one] if one.is_dir() => one.clone(),
        _ => unpacked.to_owned(),
    }
}

/// Tells whether something at the top of a folder belongs to a pack.
pub fn is_part(name: &str) -> bool {
    FOLDERS.contains(&name)
        || TEXTS.iter().any(|text| name == *text || name.strip_prefix(text).is_some_and(|rest| rest.starts_with('.')))
}

impl Intake<'_> {
    pub fn new(into: &Path) -> Intake<'_> {
        Intake { into, seen: HashMap::new(), count: 0, bytes: 0, expected: 0 }
    }

    /// Announces a file of `length` bytes, so that files that are too large together are refused before any is read.
    ///
    /// # Errors
    ///
    /// `pack-invalid` if this file, or all announced files together, are too large.
    pub fn expects(&mut self, length: u64) -> Result<()> {
        self.expected = self.expected.saturating_add(length);
        match length > LARGEST || self.expected > ALL {
            true => Err(refused(format!(
                "it has a file of more than {} MiB, or more than {} MiB in all",
                LARGEST >> 20,
                ALL >> 20
            ))),
            false => Ok(()),
        }
    }

    /// Checks a path, and returns it with `/` between its parts. `plain` says that it is a file or a folder; otherwise
    /// `kind` says what it is.
    ///
    /// # Errors
    ///
    /// `pack-invalid` if the path is refused.
    pub fn path(&mut self, path: &Path, plain: bool, kind: &str) -> Result<String> {
        let shown = excerpt(&path.display().to_string());
        let Some(text) = path.to_str() else { return Err(refused(format!("the path `{shown}` is not UTF-8"))) };
        if text.is_empty() || text.contains('\\') || text.chars().any(char::is_control) {
            return Err(refused(format!("the path `{shown}` has characters that no path of a pack has")));
        }
        let mut parts = Vec::new();
        for part in path.components() {
            match part {
                Component::Normal(name) => parts.push(name.to_str().unwrap_or_default()),
                Component::CurDir => {}
                Component::ParentDir => return Err(refused(format!("the path `{shown}` leads out of the pack"))),
                Component::RootDir | Component::Prefix(_) => {
                    return Err(refused(format!("the path `{shown}` is absolute")));
                }
            }
        }
        if !plain {
            return Err(refused(format!("`{shown}` is {kind}; a pack has files and folders only")));
        }
        if parts.is_empty() || parts.len() > DEEPEST || parts.iter().any(|part| part.len() > LONGEST) {
            return Err(refused(format!("the path `{shown}` is too deep or too long")));
        }
        self.count += 1;
        if self.count > FILES {
            return Err(refused(format!("it has more than {FILES} files and folders")));
        }
        let joined = parts.join("/");
        for end in 1..=parts.len() {
            let part = parts[..end].join("/");
            let folded: String = part.nfkc().flat_map(char::to_lowercase).collect();
            match self.seen.get(&folded) {
                Some(other) if *other != part => {
                    let other = excerpt(other);
                    return Err(refused(format!(
                        "`{other}` and `{shown}` differ only in case or form: one would hide the other"
                    )));
                }
                Some(_) => {}
                None => {
                    self.seen.insert(folded, part);
                }
            }
        }
        Ok(joined)
    }

    /// Writes a file whose path was checked.
    ///
    /// # Errors
    ///
    /// `pack-invalid` if the file is too large or is bytecode; `disk-failed` if it cannot be written.
    pub fn file(&mut self, path: &str, executable: bool, length: u64, from: impl Read) -> Result<()> {
        if length > LARGEST {
            return Err(refused(format!("`{}` is larger than {} MiB", excerpt(path), LARGEST >> 20)));
        }
        let mut content = Vec::new();
        from.take(LARGEST + 1)
            .read_to_end(&mut content)
            .map_err(|error| refused(format!("`{}`: {error}", excerpt(path))))?;
        self.bytes += content.len() as u64;
        if content.len() as u64 > LARGEST || self.bytes > ALL {
            return Err(refused(format!("it has more than {} MiB", ALL >> 20)));
        }
        if (path.ends_with(".lua") || path.ends_with(".luau")) && !is_source(&content) {
            return Err(refused(format!("`{}` is not source text: bytecode is not run", excerpt(path))));
        }
        let full = self.into.join(path);
        let folder = full.parent().unwrap_or(self.into);
        std::fs::create_dir_all(folder).map_err(|_| clash(path))?;
        let mode = if executable { 0o755 } else { 0o644 };
        let opened = File::options().write(true).create_new(true).mode(mode).open(&full);
        let mut file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Err(clash(path)),
            Err(error) => return Err(Failure::io(&full, "write", &error)),
        };
        file.write_all(&content).map_err(|error| Failure::io(&full, "write", &error))
    }
}

/// Tells whether a file is source: text without control characters. Bytecode of any Lua begins with one.
fn is_source(content: &[u8]) -> bool {
    std::str::from_utf8(content).is_ok_and(|text| !text.chars().any(|c| c.is_control() && !"\t\n\r\u{c}".contains(c)))
}

fn clash(path: &str) -> Failure {
    refused(format!("`{}` is there twice, or is a file and a folder", excerpt(path)))
}

fn refused(why: String) -> Failure {
    Failure::new(Code::PackInvalid, why).hint("nothing was installed")
}

/// A reader that fails if an archive unpacks to more than a pack may be.
struct BoundedReader<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self
            .left
            .checked_sub(read as u64)
            .ok_or_else(|| std::io::Error::other(format!("it unpacks to more than {} MiB", (2 * ALL) >> 20)))?;
        Ok(read)
    }
}
