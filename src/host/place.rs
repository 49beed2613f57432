//! Where a command runs: its worktree, and what it finds there of the project around it.

use std::path::{Path, PathBuf};

use crate::error::{Failure, Result};

/// Where a command runs.
pub(crate) struct CommandPlace {
    /// The worktree.
    pub folder: PathBuf,
    /// Where in the worktree the command starts.
    pub start: PathBuf,
    /// The folder that dependencies are from.
    pub project: PathBuf,
    /// The worktree's folder for builds.
    pub builds: Option<PathBuf>,
    /// Where the worktree keeps what its commands have written to dependencies.
    pub written: Option<PathBuf>,
    /// What the command sees of the repository.
    pub git: Option<GitView>,
}

impl CommandPlace {
    /// Returns a place that is a folder and nothing else.
    pub(crate) fn only(folder: &Path) -> CommandPlace {
        let (start, project) = (folder.to_owned(), folder.to_owned());
        CommandPlace { folder: folder.to_owned(), start, project, builds: None, written: None, git: None }
    }
}

/// What a git folder for a command is made of.
#[derive(Clone, Debug)]
pub(crate) struct GitView {
    /// The folder of the repository's objects, which the command reads.
    pub(in crate::host) objects: PathBuf,
    /// What stands in `HEAD`.
    pub(in crate::host) head: String,
    /// All branches and tags, in the form of a file of packed references.
    pub(in crate::host) references: Vec<u8>,
    /// The worktree's own index.
    pub(in crate::host) index: PathBuf,
    /// The commits without parents of a shallow clone.
    pub(in crate::host) shallow: Option<Vec<u8>>,
    /// Whether the objects have digests of 256 bits.
    pub(in crate::host) sha256: bool,
}

/// Where the objects are found from the view's folder.
pub(in crate::host) const OBJECTS: &str = "repository-objects";

impl GitView {
    /// Makes the git folder, which does not exist yet.
    pub(in crate::host) fn write(&self, folder: &Path) -> Result<()> {
        for part in ["objects/info", "refs/heads", "refs/tags", OBJECTS] {
            let part = folder.join(part);
            std::fs::create_dir_all(&part).map_err(|error| Failure::io(&part, "create", &error))?;
        }
        let objects = folder.join(OBJECTS);
        let config = match self.sha256 {
            true => "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tobjectformat = sha256\n",
            false => "[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
        };
        let alternates = format!("{}\n", objects.display());
        let files: [(&str, &[u8]); 4] = [
            ("config", config.as_bytes()),
            ("HEAD", self.head.as_bytes()),
            ("packed-refs", &self.references),
            ("objects/info/alternates", alternates.as_bytes()),
        ];
        for (name, text) in files.into_iter().chain(self.shallow.as_deref().map(|text| ("shallow", text))) {
            let file = folder.join(name);
            std::fs::write(&file, text).map_err(|error| Failure::io(&file, "write", &error))?;
        }
        // A worktree without an index has nothing that git knows.
        match std::fs::copy(&self.index, folder.join("index")) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Failure::io(&self.index, "copy", &error)),
            _ => Ok(()),
        }
    }
}
