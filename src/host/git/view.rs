//! What a command sees of the repository: its history and the worktree's own index, in a git folder of its own. It has none
//! of the repository's configuration, remotes and hooks, and nothing that is written there comes back.

use super::Repository;
use crate::error::Result;
use crate::host::place::GitView;

impl Repository {
    /// Returns what a command in a worktree may see of the repository.
    pub(super) fn view(&self, tree: &str) -> Result<GitView> {
        let tree = self.tree(tree)?;
        let common = &self.git_folders()?.common;
        let format = "--format=%(objectname) %(refname)%(if)%(*objectname)%(then)\n^%(*objectname)%(end)";
        let listed = self.read_only_call()?.args(["for-each-ref", format, "refs/heads", "refs/tags"]).bytes()?;
        let mut references = b"# pack-refs with: peeled fully-peeled sorted \n".to_vec();
        references.extend(listed);
        let head = tree.head()?;
        Ok(GitView {
            objects: common.join("objects"),
            sha256: head.len() == 64,
            head: tree
                .read_only_call()
                .args(["symbolic-ref", "-q", "HEAD"])
                .line()
                .map_or(head, |name| format!("ref: {name}")),
            references,
            index: tree.git_dir.join("index"),
            shallow: std::fs::read(common.join("shallow")).ok(),
        })
    }
}
