//! `nietz.lock`: which packs a project uses, from where, and exactly which content.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::disk::temp_file::{self, TempFile};
use crate::disk::{self, Links};
use crate::error::{Code, Failure, Result};
use crate::model::collection::Format;
use crate::model::text::excerpt;
use crate::schema::builtin::{self, BuiltinSchema};
use crate::schema::{report, source, text};

/// The version of the lock file, and of the file with what the user trusts.
const VERSION: u32 = 1;
const HEAD: &str = "# Which packs this project uses, and exactly which content. `nietz pack` writes it; commit it.\n";

/// The packs of a project.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Lockfile {
    version: u32,
    #[serde(default)]
    pub packs: BTreeMap<String, LockedPack>,
}

/// One pack of a project.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LockedPack {
    pub version: String,
    /// The source as it was given to `nietz pack add`.
    pub source: String,
    /// The full commit, for a source in git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The digest of the installed tree: of paths, modes and contents.
    pub sha256: String,
}

impl LockedPack {
    /// Returns the folder in which the tree is installed.
    pub fn folder(&self, packs: &Path, name: &str) -> PathBuf {
        packs.join(format!("{name}-{}", self.sha256.get(..16).unwrap_or(&self.sha256)))
    }
}

impl Lockfile {
    /// Returns the path of a project's lock.
    pub fn path(workspace: &Path) -> PathBuf {
        workspace.join("nietz.lock")
    }

    /// Reads the project's lock; a project without one has no packs.
    ///
    /// # Errors
    ///
    /// `config-invalid` if the file is wrong or of an unknown version.
    pub fn read(workspace: &Path) -> Result<Lockfile> {
        Ok(read(&Lockfile::path(workspace), Links::Below(workspace), &builtin::LOCK)?
            .unwrap_or(Lockfile { version: VERSION, packs: BTreeMap::new() }))
    }

    /// Writes the project's lock.
    ///
    /// # Errors
    ///
    /// `disk-failed` if the file cannot be written.
    pub fn write(&self, workspace: &Path) -> Result<()> {
        write(&Lockfile::path(workspace), HEAD, self, 0o666)
    }

    /// Returns a pack of the project.
    ///
    /// # Errors
    ///
    /// `pack-not-found` if the project has no such pack.
    pub fn get(&self, name: &str) -> Result<&LockedPack> {
        self.packs.get(name).ok_or_else(|| {
            let shown = excerpt(name);
            let failure = Failure::new(Code::PackNotFound, format!("this project has no pack `{shown}`"));
            match crate::error::nearest(name, self.packs.keys().map(String::as_str)) {
                Some(near) => failure.hint(format!("did you mean `{near}`?")),
                None => failure.hint("`nietz pack list` shows those that it has"),
            }
        })
    }
}

/// Refuses a file of an unknown version, whatever else it holds.
///
/// # Errors
///
/// `config-invalid` if the version is not known.
pub fn known_version(value: &serde_json::Value, file: &str) -> Result<()> {
    match value["version"].as_u64() {
        Some(version) if version != u64::from(VERSION) => {
            let message = format!("{file}: version {version} is not known; this nietz knows {VERSION}");
            Err(Failure::new(Code::ConfigInvalid, message).hint("use a newer nietz"))
        }
        _ => Ok(()),
    }
}

/// Reads a file, if there is one. Its names and digests become parts of paths, so its schema allows only safe ones.
pub(super) fn read<T: serde::de::DeserializeOwned>(
    path: &Path,
    links: Links<'_>,
    schema: &BuiltinSchema,
) -> Result<Option<T>> {
    disk::read(path, links, disk::SETTINGS)?.map_or(Ok(None), |bytes| parse(path, &bytes, schema))
}

/// Returns the content of a file that meets its schema, unless the file is empty.
pub(super) fn parse<T: serde::de::DeserializeOwned>(
    path: &Path,
    bytes: &[u8],
    schema: &BuiltinSchema,
) -> Result<Option<T>> {
    let name = path.display().to_string();
    let wrong = |failure: Failure| {
        Failure { code: Code::ConfigInvalid, hint: None, ..failure }
            .hint("take it from version control, or remove it; `nietz check` shows each place")
    };
    let text = source::decode(bytes, &name).map_err(wrong)?;
    let (value, located) = builtin::check(schema, text, &name)?;
    known_version(&value, &name)?;
    if !located.is_empty() {
        return Err(wrong(report::failure(&name, &located)));
    }
    if value.is_null() {
        return Ok(None);
    }
    serde_json::from_value(value)
        .map(Some)
        .map_err(|error| wrong(Failure::new(Code::ConfigInvalid, format!("{name}: {error}"))))
}

/// Writes a file so that there is always a complete one: the old or the new. `mode` is for a new file.
pub(super) fn write(path: &Path, head: &str, value: &impl Serialize, mode: u32) -> Result<()> {
    let value = serde_json::to_value(value).map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
    let text = format!("{head}{}", text::to_text(&value, Format::Yaml));
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|error| Failure::io(folder, "create", &error))?;
    temp_file::remove_stale(folder);
    TempFile::with_mode(path, text.as_bytes(), mode)?.publish(path)
}
