//! The digest of an installed tree, and the check of it before anything of the tree is read.

use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use crate::error::{Code, Failure, Result};

/// What an installed tree must be.
#[derive(Debug)]
pub struct Seal {
    pub pack: String,
    pub version: String,
    pub sha256: String,
    checked: OnceLock<Result<()>>,
}

impl Seal {
    pub fn new(pack: &str, version: &str, sha256: &str) -> Seal {
        Seal { pack: pack.to_owned(), version: version.to_owned(), sha256: sha256.to_owned(), checked: OnceLock::new() }
    }

    /// Checks the tree, once in the life of a process.
    pub fn check(&self, root: &Path) -> Result<()> {
        self.checked
            .get_or_init(|| {
                if digest(root)? == self.sha256 {
                    return Ok(());
                }
                let message =
                    format!("the files of the pack {} are not those of nietz.lock: {}", self.pack, root.display());
                Err(Failure::new(Code::PackChanged, message)
                    .hint(format!("remove that folder, and install it anew: nietz pack add --locked {}", self.pack)))
            })
            .clone()
    }
}

/// Returns the SHA-256 of a tree in hex: over the path, mode and content of each file, and the path and target of each
/// link, sorted by path. Lengths stand before what they measure, so that no two trees have the same text.
pub fn digest(root: &Path) -> Result<String> {
    let mut whole = Sha256::new();
    let mut part = |kind: &[u8], path: &[u8], content: &[u8]| {
        for bytes in [kind, path, content] {
            whole.update((bytes.len() as u64).to_le_bytes());
            whole.update(bytes);
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
            let about = entry.metadata().map_err(|error| Failure::new(Code::DiskFailed, error.to_string()))?;
            let content = std::fs::read(entry.path()).map_err(io)?;
            part(if is_executable(&about) { b"exec" } else { b"file" }, &path, &content);
        } else if entry.file_type().is_dir() {
            part(b"folder", &path, b"");
        } else {
            part(b"other", &path, b"");
        }
    }
    Ok(whole.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

pub fn is_executable(about: &Metadata) -> bool {
    about.permissions().mode() & 0o111 != 0
}
