//! `flows/.ejected.yaml`: which originals a project's overriding files were made from.
//!
//! It has their whole texts, because only they tell what an original has become since: a digest tells that it changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::disk::{self, Links};
use crate::error::Result;
use crate::pack::lock;
use crate::pack::tree::OverridingFile;
use crate::schema::builtin;

const VERSION: u32 = 1;
const HEAD: &str = "# Which originals the files here were made from. `nietz eject` writes it; commit it with them.\n";

/// The originals of a project's overriding files.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ejected {
    version: u32,
    #[serde(default)]
    pub files: BTreeMap<String, Original>,
}

/// The original of one file.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Original {
    /// What it came from, with its version: `nietz 0.1.0`, `pack retro 1.0.0`.
    pub from: String,
    pub text: String,
}

/// What became of the original of an overriding file.
#[derive(Clone, Copy)]
pub(crate) enum OriginalState<'a> {
    /// The original of now is the one that the file was made from.
    Same(&'a Original),
    Changed(&'a Original),
    /// The flow has no such file any more.
    Gone(&'a Original),
    /// The file was not ejected: nobody knows which original it was made from.
    Unknown,
}

impl Ejected {
    pub(crate) fn path(workspace: &Path) -> PathBuf {
        workspace.join("flows/.ejected.yaml")
    }

    /// Reads the project's file; a project without one has ejected nothing.
    ///
    /// # Errors
    ///
    /// `config-invalid` if the file is wrong or of an unknown version.
    pub(crate) fn read(workspace: &Path) -> Result<Ejected> {
        let read = lock::read(&Ejected::path(workspace), Links::Below(workspace), &builtin::EJECTED)?;
        Ok(read.unwrap_or(Ejected { version: VERSION, files: BTreeMap::new() }))
    }

    /// Writes the project's file.
    ///
    /// # Errors
    ///
    /// `disk-failed` if it cannot be written; `path-refused` if its folder is a link out of the project.
    pub(crate) fn write(&self, workspace: &Path) -> Result<()> {
        disk::make_folder(workspace, &workspace.join("flows"))?;
        lock::write(&Ejected::path(workspace), HEAD, self, 0o666)
    }

    /// Returns what became of the original of a file.
    pub(crate) fn state(&self, file: &OverridingFile) -> OriginalState<'_> {
        match (self.files.get(&file.path), &file.original) {
            (None, _) => OriginalState::Unknown,
            (Some(was), None) => OriginalState::Gone(was),
            (Some(was), Some(now)) if was.text == **now => OriginalState::Same(was),
            (Some(was), Some(_)) => OriginalState::Changed(was),
        }
    }
}
