//! Shows what of the workspace is not committed: what is staged, and what is not. The user's index is only read.

use super::Repository;
use super::branches::{AS_PATCH, patch_of};
use super::call::GitCall;
use crate::error::{Failure, Result};
use crate::model::effect::git::Patch;

impl Repository {
    /// Returns the patch from the commit that is checked out to the index.
    pub(super) fn staged(&self, path: Option<&str>) -> Result<Patch> {
        let head = self.head()?.commit;
        self.with_index(|call| {
            call()?.args(["diff-index", "--cached"]).args(AS_PATCH).args([head.as_str()]).only(path).patch()
        })
    }

    /// Returns the patch from the index to the files of the workspace; files that git does not know are no part of it.
    pub(super) fn unstaged(&self, path: Option<&str>) -> Result<Patch> {
        self.head()?;
        self.with_index(|call| {
            // Files that were touched and not changed would otherwise stand in the patch, without a line. Status 1 means
            // that some files have changed.
            call()?.args(["update-index", "-q", "--refresh"]).output()?;
            call()?.args(["diff-files"]).args(AS_PATCH).only(path).patch()
        })
    }

    /// Calls git with a copy of the user's index. The copy is as old as the index is: by its time, git tells which files
    /// it has to look into.
    pub(super) fn with_index<T>(&self, run: impl FnOnce(&dyn Fn() -> Result<GitCall>) -> Result<T>) -> Result<T> {
        let _alone = self.lock_worktrees()?;
        let folder =
            tempfile::tempdir_in(&self.worktrees).map_err(|error| Failure::io(&self.worktrees, "use", &error))?;
        let own = self.git_folders()?.own.clone();
        let (index, copy) = (own.join("index"), folder.path().join("index"));
        let copied = std::fs::copy(&index, &copy).and_then(|_| {
            let time = std::fs::metadata(&index)?.modified()?;
            std::fs::File::options().write(true).open(&copy)?.set_modified(time)
        });
        match copied {
            // A repository without an index has nothing staged, and no file that git knows.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            copied => copied.map_err(|error| Failure::io(&index, "copy", &error))?,
        }
        let call = || Ok(self.call_at(&own)?.work_tree(&self.workspace).index(&copy));
        self.tell_filters(&own, &self.workspace, call)?;
        run(&call)
    }
}

impl GitCall {
    fn patch(self) -> Result<Patch> {
        patch_of(|limit| self.limit_output(limit).bytes())
    }
}
