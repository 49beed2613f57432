//! What runs that are over have left in the repository and beside it: their branches, and worktrees that nobody removed.

use std::path::Path;

use super::Repository;
use super::worktrees::{builds_folder, removal_folder};
use crate::error::{Code, Failure, Result};
use crate::host::sweep::remove_folder;
use crate::model::effect::git::Remains;
use crate::model::git::PREFIX;
use crate::model::text::excerpt;

impl Repository {
    /// Returns the branches and worktrees whose names are a run's, or begin with it and a hyphen.
    pub(super) fn remains(&self, run: &str) -> Result<Remains> {
        check_run(run)?;
        let own = format!("{PREFIX}{run}");
        let listed = ["for-each-ref", "--format=%(refname:short)", &format!("refs/heads/{PREFIX}")];
        let listed = self.read_only_call()?.args(listed).text()?;
        let with = format!("{own}-");
        let branches = listed.lines().filter(|name| *name == own || name.starts_with(&with)).map(str::to_owned);
        let mut remains = Remains { branches: branches.collect(), worktrees: Vec::new() };
        let failed = |error: std::io::Error| Failure::io(&self.worktrees, "list", &error);
        let entries = match std::fs::read_dir(&self.worktrees) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(remains),
            entries => entries.map_err(failed)?,
        };
        let with = format!("{run}-");
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            // The remains of a removal, and what was built, belong to the worktree that is named without an ending.
            let name = name.split('.').next().unwrap_or_default();
            if let Some(name) = name.strip_prefix(&with).filter(|_| entry.path().is_dir())
                && !remains.worktrees.iter().any(|known| known == name)
            {
                remains.worktrees.push(name.to_owned());
            }
        }
        remains.worktrees.sort();
        Ok(remains)
    }

    /// Returns the branches of a run.
    ///
    /// # Errors
    ///
    /// `git-missing` without a repository, `git-failed` if git fails.
    pub fn branches_of(&self, run: &str) -> Result<Vec<String>> {
        Ok(self.for_new_request().remains(run)?.branches)
    }

    /// Removes a worktree of another run, with what is not committed there. Returns whether it was there.
    pub(super) fn discard(&self, run: &str, name: &str) -> Result<bool> {
        check_run(run)?;
        if run == self.run {
            let message = "a run removes its own worktrees by their handles";
            return Err(Failure::new(Code::RequestInvalid, message).hint("tree:remove({ discard = true })"));
        }
        let theirs = Repository { run: run.to_owned(), ..self.clone() };
        let (folder, git_dir) = theirs.place(name)?;
        let _alone = self.lock_worktrees()?;
        let linked = std::fs::read_to_string(git_dir.join("gitdir")).unwrap_or_default();
        let there = folder.exists() || Path::new(linked.trim_end()) == folder.join(".git");
        // A git folder of this name that leads elsewhere is somebody else's.
        if Path::new(linked.trim_end()) == folder.join(".git") {
            remove_folder(&git_dir)?;
        }
        for left in [&folder, &removal_folder(&folder), &builds_folder(&folder)] {
            remove_folder(left)?;
        }
        Ok(there)
    }
}

/// Refuses what is no run's name: it becomes part of paths.
fn check_run(run: &str) -> Result<()> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !run.is_empty() && run.len() <= 200 && run.chars().all(fine) && !run.starts_with(['.', '-']) {
        return Ok(());
    }
    Err(Failure::new(Code::RequestInvalid, format!("`{}` is not a run's name", excerpt(run))))
}
