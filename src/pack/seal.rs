//! The digest of an installed tree. The tree is read once, and compared with its digest before anything of it is used.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use crate::error::{Code, Failure, Result};
use crate::pack::path::below;

/// What an installed tree must be.
#[derive(Debug)]
pub struct Seal {
    pub pack: String,
    pub version: String,
    pub sha256: String,
    checked: OnceLock<Result<Contents>>,
}

/// The files of a tree, by their paths with `/` between the parts.
pub type Contents = BTreeMap<String, Vec<u8>>;

impl Seal {
    pub fn new(pack: &str, version: &str, sha256: &str) -> Seal {
        Seal { pack: pack.to_owned(), version: version.to_owned(), sha256: sha256.to_owned(), checked: OnceLock::new() }
    }

    /// Returns the files of the tree. A process reads and compares all of them once, and reads none of them again, so
    /// that a later change of the tree has no effect.
    ///
    /// # Errors
    ///
    /// `pack-changed` if the tree does not have this digest; `disk-failed` if the tree cannot be read.
    pub fn contents(&self, root: &Path) -> Result<&Contents> {
        let checked = self.checked.get_or_init(|| {
            let (sha256, contents) = read(root)?;
            if sha256 == self.sha256 {
                return Ok(contents);
            }
            let message =
                format!("the files of the pack {} are not those of nietz.lock: {}", self.pack, root.display());
            Err(Failure::new(Code::PackChanged, message)
                .hint(format!("remove that folder, and install it anew: nietz pack add --locked {}", self.pack)))
        });
        checked.as_ref().map_err(Failure::clone)
    }
}

/// Returns the SHA-256 of a tree in hex.
///
/// # Errors
///
/// `disk-failed` if the tree cannot be read.
pub fn digest(root: &Path) -> Result<String> {
    read(root).map(|(sha256, _)| sha256)
}

/// Returns the files of a tree as they are now.
///
/// # Errors
///
/// `disk-failed` if the tree cannot be read.
pub fn files(root: &Path) -> Result<Contents> {
    read(root).map(|(_, contents)| contents)
}

/// Reads a tree, and returns its SHA-256 in hex: over the path, mode and content of each file, and the path and target of each
/// link, sorted by path. Its length stands before each part, so that no two trees hash the same bytes.
fn read(root: &Path) -> Result<(String, Contents)> {
    let mut contents = Contents::new();
    let mut hasher = Sha256::new();
    let mut part = |kind: &[u8], path: &[u8], content: &[u8]| {
        for bytes in [kind, path, content] {
            hasher.update((bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        }
    };
    for entry in walkdir::WalkDir::new(root).min_depth(1).sort_by_file_name() {
        let entry = entry
            .map_err(|error| Failure::new(Code::DiskFailed, format!("cannot read {}: {error}", root.display())))?;
        let path = entry.path().strip_prefix(root).unwrap_or(entry.path()).as_os_str().as_bytes().to_vec();
        let io = |error: std::io::Error| Failure::io(entry.path(), "read", &error);
        if entry.path_is_symlink() {
            let target = std::fs::read_link(entry.path()).map_err(io)?;
            part(b"link", &path, target.as_os_str().as_bytes());
        } else if entry.file_type().is_file() {
            let metadata = entry.metadata().map_err(|error| Failure::new(Code::DiskFailed, error.to_string()))?;
            let content = std::fs::read(entry.path()).map_err(io)?;
            part(if is_executable(&metadata) { b"exec" } else { b"file" }, &path, &content);
            // A path that is not UTF-8 was never taken in, so it is in no tree that has the right digest.
            if let Some(path) = below(root, entry.path()) {
                contents.insert(path, content);
            }
        } else if entry.file_type().is_dir() {
            part(b"folder", &path, b"");
        } else {
            part(b"other", &path, b"");
        }
    }
    let sha256 = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((sha256, contents))
}

/// Tells whether the owner of a file can execute it.
pub fn is_executable(metadata: &Metadata) -> bool {
    metadata.permissions().mode() & 0o111 != 0
}
