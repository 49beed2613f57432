//! What a flow can ask of the workspace's repository, and of the worktrees that it makes beside it.

use serde::{Deserialize, Serialize};

/// Branches that flows may make and move begin with this: no other is ever touched.
pub const PREFIX: &str = "nietz/";

/// What runs leave in a workspace.
const RUNS: &str = ".nietz";
/// What a project tells nietz.
const PROJECT: &[&str] = &["nietz.yaml", "nietz.lock"];

/// Tells whether a path belongs to nietz itself, wherever it is in a repository: any folder can be a workspace. Upper and
/// lower case are one, as they are on some disks.
pub fn is_reserved(path: &str) -> bool {
    is_of_runs(path) || path.split('/').any(|part| PROJECT.iter().any(|name| part.eq_ignore_ascii_case(name)))
}

/// Tells whether a path belongs to what runs have left.
pub fn is_of_runs(path: &str) -> bool {
    path.split('/').any(|part| part.eq_ignore_ascii_case(RUNS))
}

/// The most that one call of git may take. A repository of 500,000 files is checked out in it at 300 files a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    pub seconds: u64,
    /// Of what it writes: names of files, mostly.
    pub megabytes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { seconds: 1800, megabytes: 256 }
    }
}

/// A request to the repository itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Git {
    /// Where the repository is, its current commit and its branch.
    Head,
    /// The commit that a branch stands at.
    Commit { branch: String },
    /// A new branch.
    Branch { name: String, commit: String },
    /// The end of a branch of a run's own.
    Delete { name: String },
    /// A commit of the workspace as it is now, on no branch.
    Snapshot,
    /// The difference between two commits, as a patch.
    Diff { from: String, to: String },
    /// The paths that differ between two commits.
    Changed { from: String, to: String },
    /// What the change from one commit to another brings that is started by itself.
    Brings { from: String, to: String },
    /// The files of a commit whose paths match a glob.
    Files { commit: String, glob: String },
    /// A merge of one branch into another, made in memory.
    Merge { from: String, into: String, message: String },
    /// A new worktree, on a branch.
    Worktree { name: String, branch: String },
}

/// A request to one worktree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum TreeOp {
    Read {
        path: String,
    },
    Write {
        path: String,
        text: String,
    },
    /// Puts a text in the place of another, which must stand there exactly once.
    Replace {
        path: String,
        old: String,
        new: String,
    },
    /// The entries of a folder.
    List {
        path: String,
    },
    /// The files whose paths match a glob.
    Find {
        glob: String,
    },
    /// The lines that match a regular expression.
    Grep {
        pattern: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        glob: Option<String>,
    },
    /// Commits everything that is not ignored to the worktree's branch.
    Commit {
        branch: String,
        message: String,
    },
    /// Makes the worktree just as its commit is, but for protected files, which come from another commit.
    Restore {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        protect: Option<Protect>,
    },
    /// Removes the worktree.
    Remove {
        discard: bool,
    },
}

/// Files that are taken from a commit of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Protect {
    pub from: String,
    pub globs: Vec<String>,
}

impl Git {
    /// Returns the branches that this builds on, and the one that it moves.
    pub fn branches(&self) -> (Vec<&str>, Option<&str>) {
        match self {
            Git::Head
            | Git::Snapshot
            | Git::Diff { .. }
            | Git::Changed { .. }
            | Git::Brings { .. }
            | Git::Files { .. } => (Vec::new(), None),
            Git::Delete { name } => (vec![name], Some(name)),
            Git::Commit { branch } => (vec![branch], None),
            Git::Branch { name, .. } => (vec![name], Some(name)),
            Git::Merge { from, into, .. } => (vec![into, from], Some(into)),
            Git::Worktree { branch, .. } => (vec![branch], None),
        }
    }
}

impl TreeOp {
    /// Tells whether git goes through the worktree for this.
    pub fn is_by_git(&self) -> bool {
        match self {
            TreeOp::Find { .. }
            | TreeOp::Grep { .. }
            | TreeOp::Commit { .. }
            | TreeOp::Restore { .. }
            | TreeOp::Remove { .. } => true,
            TreeOp::Read { .. } | TreeOp::Write { .. } | TreeOp::Replace { .. } | TreeOp::List { .. } => false,
        }
    }

    /// Tells whether this leaves the worktree as it is.
    pub fn only_reads(&self) -> bool {
        match self {
            TreeOp::Read { .. } | TreeOp::List { .. } | TreeOp::Find { .. } | TreeOp::Grep { .. } => true,
            TreeOp::Write { .. }
            | TreeOp::Replace { .. }
            | TreeOp::Commit { .. }
            | TreeOp::Restore { .. }
            | TreeOp::Remove { .. } => false,
        }
    }
}
