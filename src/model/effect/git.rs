//! Effects on the repository: branches of the run, commits and what they contain, merges, new worktrees.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::resources::{branch_resource, tree_resource};
use super::{Dependencies, EffectFacts, Recovery, ReplayClass, plain};
use crate::model::brings::MergeRisk;
use crate::model::effect::files::FoundFiles;
use crate::model::hunks::{ChangedFiles, ComparedTrees};
use crate::model::permission::Permission;
use crate::model::redact::Cleaner;

/// A request to the repository itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum GitOp {
    /// Returns where the repository is, its current commit and its branch.
    Head,
    /// Returns the commit of a branch.
    Commit { branch: String },
    /// Makes a branch at a commit.
    Branch { name: String, commit: String },
    /// Deletes a branch of the run.
    Delete { name: String },
    /// Makes a commit of the workspace as it is now, on no branch.
    Snapshot,
    /// Returns the commit that a revision names.
    Resolve { revision: String },
    /// Returns the best common ancestor of two revisions.
    MergeBase { one: String, other: String },
    /// Returns the commits that `to` reaches and `from` does not, newest first.
    Log {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        to: String,
        /// Only those that change this file or folder.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        most: usize,
    },
    /// Returns the difference between the commit that is checked out and what is staged.
    Staged {
        /// Only of this file or folder; here and below.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
    /// Returns the difference between what is staged and the files of the workspace.
    Unstaged {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
    /// Returns the difference between two commits as a patch.
    Diff {
        from: String,
        to: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
    /// Returns the files that differ, with their hunks.
    Hunks {
        compared: ComparedTrees,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        /// Only those behind this file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
        /// How many lines around what differs.
        context: usize,
    },
    /// Returns the paths that differ between two commits.
    Changed { from: String, to: String },
    /// Returns how many lines each file that differs has gained and lost.
    Stat { from: String, to: String },
    /// Returns the merge risks of the change from one commit to another: files that start by themselves.
    Brings { from: String, to: String },
    /// Finds the files of a commit whose paths match a glob.
    Files { commit: String, glob: String },
    /// Merges one branch into another, in memory.
    Merge {
        from: String,
        into: String,
        message: String,
        /// Makes one commit of what the branch brings, which does not name it as a parent.
        #[serde(default, skip_serializing_if = "is_false")]
        squash: bool,
        /// `Name <address>`; the run itself where nobody is named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        author: Option<String>,
    },
    /// Lists the branches and worktrees that a run has left.
    Remains { run: String },
    /// Removes a worktree that another run has left, with what is not committed there.
    Discard { run: String, name: String },
    /// Makes a worktree on a branch.
    Worktree { name: String, branch: String },
    /// Finds the folders of dependencies that git ignores, in the user's checkout or in a worktree.
    Dependencies {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<String>,
    },
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum GitOutcome {
    Head(Head),
    /// `None` if there is no such commit.
    Commit(Option<String>),
    Log(Commits),
    Branch(NewBranch),
    Deleted,
    Snapshot(Committed),
    Diff(Patch),
    Hunks(ChangedFiles),
    Changed(Vec<String>),
    Stat(ChangeStat),
    Brings(MergeRisks),
    Files(FoundFiles),
    Merge(Merged),
    Worktree(NewWorktree),
    Remains(Remains),
    /// Whether it was there.
    Discarded(bool),
    Dependencies(FoundDependencies),
}

/// Folders of dependencies, which git ignores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundDependencies {
    pub folders: Vec<DependencyFolder>,
    /// Whether there are more.
    pub cut: bool,
}

/// A folder of dependencies, as it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DependencyFolder {
    pub path: String,
    pub files: u64,
    pub bytes: u64,
    /// A digest of the paths, sizes and times of its files.
    pub digest: String,
    /// What in it leads back to the project by a whole path: editable installs, and links of a workspace.
    pub editable: Vec<String>,
}

/// Where the repository is, and what is checked out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Head {
    pub top: PathBuf,
    pub commit: String,
    /// `None` if the head is detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// If it is detached: the branch that the remote `origin` calls its own, or `main` or `master`, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_branch: Option<String>,
}

/// How many lines a change adds and deletes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChangeStat {
    /// The first of them, by path.
    pub files: Vec<FileStat>,
    /// How many files there are in all, and their lines.
    pub count: usize,
    pub added: u64,
    pub deleted: u64,
}

/// One file of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileStat {
    /// Bytes that are not UTF-8 are shown as replacement characters.
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_path: Option<String>,
    /// `None` if it is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted: Option<u64>,
}

/// What a run has left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Remains {
    pub branches: Vec<String>,
    /// The names of worktrees.
    pub worktrees: Vec<String>,
}

/// A branch that was made, with its commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NewBranch {
    pub name: String,
    pub commit: String,
}

/// A new commit, or the old one if nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Committed {
    pub commit: String,
    pub changed: bool,
    /// The tree object, for a commit of a worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
}

/// Commits, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Commits {
    pub commits: Vec<LoggedCommit>,
    /// Whether there are more.
    pub cut: bool,
}

/// What a commit says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoggedCommit {
    pub commit: String,
    pub parents: Vec<String>,
    pub author: String,
    /// When it was written, in seconds since 1970.
    pub time: i64,
    pub message: String,
}

/// The difference between two commits, as a patch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Patch {
    pub patch: String,
    /// Whether the patch was cut.
    pub cut: bool,
}

/// What a branch brings that starts by itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MergeRisks {
    pub things: Vec<MergeRiskLine>,
    pub cut: bool,
}

/// One of the risks of a merge.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MergeRiskLine {
    #[serde(flatten)]
    pub brought: MergeRisk,
    /// The line that people read.
    pub text: String,
}

/// The commits of two branches, and their merge or the conflicts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Merged {
    /// `None` if there are conflicts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    pub from: String,
    pub into: String,
    #[serde(flatten)]
    pub conflicts: Option<Conflicts>,
}

/// The paths in conflict, and what git said about them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conflicts {
    pub conflicts: Vec<String>,
    pub messages: Vec<String>,
}

/// A worktree that was made, with its branch and commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NewWorktree {
    pub path: PathBuf,
    pub branch: String,
    pub commit: String,
}

/// What an intent records, to find out after a crash whether the request happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum GitBefore {
    /// The commits of both branches.
    Merge {
        from: String,
        into: String,
    },
    Nothing {},
}

impl GitOp {
    /// Returns the branches that the request depends on, and the one that it moves.
    fn branches(&self) -> (Vec<&str>, Option<&str>) {
        match self {
            GitOp::Head
            | GitOp::Snapshot
            | GitOp::Staged { .. }
            | GitOp::Unstaged { .. }
            | GitOp::Hunks { compared: ComparedTrees::Uncommitted { .. }, .. } => (Vec::new(), None),
            GitOp::Diff { from, to, .. }
            | GitOp::Hunks { compared: ComparedTrees::Revisions { from, to }, .. }
            | GitOp::Changed { from, to }
            | GitOp::Stat { from, to }
            | GitOp::Brings { from, to } => (named([from, to]), None),
            GitOp::Files { commit, .. } => (named([commit]), None),
            GitOp::Resolve { revision } => (named([revision]), None),
            GitOp::MergeBase { one, other } => (named([one, other]), None),
            GitOp::Log { from, to, .. } => (named(from.iter().chain([to])), None),
            GitOp::Delete { name } => (vec![name], Some(name)),
            GitOp::Commit { branch } => (vec![branch], None),
            GitOp::Branch { name, .. } => (vec![name], Some(name)),
            GitOp::Merge { from, into, .. } => (vec![into, from], Some(into)),
            GitOp::Worktree { branch, .. } => (vec![branch], None),
            GitOp::Dependencies { .. } | GitOp::Remains { .. } | GitOp::Discard { .. } => (Vec::new(), None),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// Returns the branches that revisions may name. A hash names none: what it leads to never changes.
fn named<'a>(revisions: impl IntoIterator<Item = &'a String>) -> Vec<&'a str> {
    let name = |revision: &'a String| revision.split(['~', '^']).next().unwrap_or_default();
    let is_hash = |name: &&str| matches!(name.len(), 40 | 64) && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    revisions.into_iter().map(name).filter(|name| !is_hash(name)).collect()
}

impl EffectFacts for GitOp {
    fn kind(&self) -> &'static str {
        "git"
    }

    /// After a crash, a worktree is simply made anew.
    fn recovery(&self) -> Recovery {
        match self {
            GitOp::Branch { .. } | GitOp::Merge { .. } => Recovery::Probe,
            GitOp::Head
            | GitOp::Commit { .. }
            | GitOp::Resolve { .. }
            | GitOp::MergeBase { .. }
            | GitOp::Log { .. }
            | GitOp::Staged { .. }
            | GitOp::Unstaged { .. }
            | GitOp::Diff { .. }
            | GitOp::Hunks { .. }
            | GitOp::Changed { .. }
            | GitOp::Brings { .. }
            | GitOp::Files { .. }
            | GitOp::Snapshot
            | GitOp::Delete { .. }
            | GitOp::Stat { .. }
            | GitOp::Remains { .. }
            | GitOp::Discard { .. }
            | GitOp::Dependencies { .. }
            | GitOp::Worktree { .. } => Recovery::Retry,
        }
    }

    fn only_looks(&self) -> bool {
        // A snapshot adds an object, though nobody sees it.
        self.required_permissions() == [Permission::GitRead] && !matches!(self, GitOp::Snapshot)
    }

    fn replay_class(&self) -> ReplayClass {
        ReplayClass::Surroundings
    }

    fn required_permissions(&self) -> &'static [Permission] {
        match self {
            // A snapshot is an object on no branch: nothing that anybody looks at has changed.
            GitOp::Head
            | GitOp::Commit { .. }
            | GitOp::Resolve { .. }
            | GitOp::MergeBase { .. }
            | GitOp::Log { .. }
            | GitOp::Staged { .. }
            | GitOp::Unstaged { .. }
            | GitOp::Diff { .. }
            | GitOp::Hunks { .. }
            | GitOp::Changed { .. }
            | GitOp::Brings { .. }
            | GitOp::Files { .. }
            | GitOp::Stat { .. }
            | GitOp::Remains { .. }
            | GitOp::Dependencies { .. }
            | GitOp::Snapshot => &[Permission::GitRead],
            GitOp::Branch { .. }
            | GitOp::Delete { .. }
            | GitOp::Merge { .. }
            | GitOp::Discard { .. }
            | GitOp::Worktree { .. } => &[Permission::Git],
        }
    }

    fn needs_intent(&self) -> bool {
        self.recovery() == Recovery::Probe || matches!(self, GitOp::Worktree { .. })
    }

    fn lasts(&self) -> bool {
        true
    }

    fn dependencies(&self) -> Dependencies {
        let (on, moved) = self.branches();
        let mut writes: Vec<String> = moved.into_iter().map(branch_resource).collect();
        if let GitOp::Worktree { name, .. } = self {
            writes.push(tree_resource(name));
        }
        let mut reads: Vec<String> = on.into_iter().map(branch_resource).collect();
        if let GitOp::Dependencies { tree: Some(tree) } = self {
            reads.push(tree_resource(tree));
        }
        Dependencies { reads, writes }
    }

    fn request(&self) -> Value {
        plain(self)
    }

    fn redact(&mut self, cleaner: &Cleaner) {
        match self {
            GitOp::Merge { message, author, .. } => {
                cleaner.text(message);
                author.iter_mut().for_each(|author| cleaner.text(author));
            }
            // They hold no free text: only names of branches, commits and files, and globs.
            GitOp::Head
            | GitOp::Commit { .. }
            | GitOp::Branch { .. }
            | GitOp::Delete { .. }
            | GitOp::Snapshot
            | GitOp::Resolve { .. }
            | GitOp::MergeBase { .. }
            | GitOp::Log { .. }
            | GitOp::Staged { .. }
            | GitOp::Unstaged { .. }
            | GitOp::Diff { .. }
            | GitOp::Hunks { .. }
            | GitOp::Changed { .. }
            | GitOp::Brings { .. }
            | GitOp::Files { .. }
            | GitOp::Stat { .. }
            | GitOp::Remains { .. }
            | GitOp::Discard { .. }
            | GitOp::Dependencies { .. }
            | GitOp::Worktree { .. } => {}
        }
    }
}
