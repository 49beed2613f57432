//! The repository itself: branches of a run's own, and what its commits hold.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::resources::{branch_resource, tree_resource};
use super::{Dependencies, EffectFacts, Recovery, ReplayClass, plain};
use crate::model::brings::MergeRisk;
use crate::model::file::FoundFiles;
use crate::model::permission::Permission;
use crate::model::redact::Cleaner;

/// A request to the repository itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum GitOp {
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

/// What is given back for a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum GitOutcome {
    Head(Head),
    /// Nothing where there is no such branch.
    Commit(Option<String>),
    Branch(NewBranch),
    Deleted,
    Snapshot(Committed),
    Diff(Patch),
    Changed(Vec<String>),
    Brings(MergeRisks),
    Files(FoundFiles),
    Merge(Merged),
    Worktree(NewWorktree),
}

/// Where the repository is, and what is checked out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Head {
    pub top: PathBuf,
    pub commit: String,
    /// Nothing where no branch is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NewBranch {
    pub name: String,
    pub commit: String,
}

/// A commit that was made, or the one that was there where nothing is changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Committed {
    pub commit: String,
    pub changed: bool,
    /// Of a worktree's commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Patch {
    pub patch: String,
    /// Whether there is more than is given.
    pub cut: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MergeRisks {
    pub things: Vec<MergeRiskLine>,
    pub cut: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MergeRiskLine {
    #[serde(flatten)]
    pub brought: MergeRisk,
    /// As people are told of it.
    pub text: String,
}

/// The commits of two branches, and the merge of them or what is in its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Merged {
    /// Nothing where there are conflicts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    pub from: String,
    pub into: String,
    #[serde(flatten)]
    pub conflicts: Option<Conflicts>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conflicts {
    pub conflicts: Vec<String>,
    pub messages: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NewWorktree {
    pub path: PathBuf,
    pub branch: String,
    pub commit: String,
}

/// What an intent notes, so that it can be told after a crash whether the request happened.
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
    /// Returns the branches that this builds on, and the one that it moves.
    fn branches(&self) -> (Vec<&str>, Option<&str>) {
        match self {
            GitOp::Head
            | GitOp::Snapshot
            | GitOp::Diff { .. }
            | GitOp::Changed { .. }
            | GitOp::Brings { .. }
            | GitOp::Files { .. } => (Vec::new(), None),
            GitOp::Delete { name } => (vec![name], Some(name)),
            GitOp::Commit { branch } => (vec![branch], None),
            GitOp::Branch { name, .. } => (vec![name], Some(name)),
            GitOp::Merge { from, into, .. } => (vec![into, from], Some(into)),
            GitOp::Worktree { branch, .. } => (vec![branch], None),
        }
    }
}

impl EffectFacts for GitOp {
    fn kind(&self) -> &'static str {
        "git"
    }

    /// A worktree whose intent is there is made anew.
    fn recovery(&self) -> Recovery {
        match self {
            GitOp::Branch { .. } | GitOp::Merge { .. } => Recovery::Probe,
            GitOp::Head
            | GitOp::Commit { .. }
            | GitOp::Diff { .. }
            | GitOp::Changed { .. }
            | GitOp::Brings { .. }
            | GitOp::Files { .. }
            | GitOp::Snapshot
            | GitOp::Delete { .. }
            | GitOp::Worktree { .. } => Recovery::Retry,
        }
    }

    fn replay_class(&self) -> ReplayClass {
        ReplayClass::Surroundings
    }

    fn required_permissions(&self) -> &'static [Permission] {
        &[Permission::Git]
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
        Dependencies { reads: on.into_iter().map(branch_resource).collect(), writes }
    }

    fn request(&self) -> Value {
        plain(self)
    }

    fn redact(&mut self, cleaner: &Cleaner) {
        match self {
            GitOp::Merge { message, .. } => cleaner.text(message),
            // Nothing free in them: names of branches and commits, globs.
            GitOp::Head
            | GitOp::Commit { .. }
            | GitOp::Branch { .. }
            | GitOp::Delete { .. }
            | GitOp::Snapshot
            | GitOp::Diff { .. }
            | GitOp::Changed { .. }
            | GitOp::Brings { .. }
            | GitOp::Files { .. }
            | GitOp::Worktree { .. } => {}
        }
    }
}
