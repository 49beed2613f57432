//! Effects on one worktree: reading and writing its files, committing, restoring and removing it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::resources::{branch_resource, tree_resource};
use super::{Dependencies, EffectFacts, Recovery, ReplayClass, plain};
use crate::model::effect::files::FoundFiles;
use crate::model::effect::git::{Committed, Patch};
use crate::model::effect::search::{Matches, SearchPart};
use crate::model::permission::Permission;
use crate::model::redact::Cleaner;

/// A request to a worktree, with the worktree's name.
#[derive(Clone, Debug, PartialEq)]
pub struct WorktreeOp {
    pub tree: String,
    pub op: TreeOp,
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
    /// Replaces a text, which must occur exactly once.
    Replace {
        path: String,
        old: String,
        new: String,
    },
    /// Lists the entries of a folder.
    List {
        path: String,
    },
    /// Finds the files whose paths match a glob.
    Find {
        glob: String,
    },
    /// Finds the lines that match a regular expression.
    Grep {
        pattern: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        glob: Option<String>,
        #[serde(default, skip_serializing_if = "SearchPart::is_usual")]
        part: SearchPart,
    },
    /// Deletes a file, or a folder with all that is in it.
    Delete {
        path: String,
    },
    /// Moves a file or a folder to a place where nothing is.
    Rename {
        from: String,
        to: String,
    },
    /// Applies a unified diff: all of it or nothing.
    Apply {
        patch: String,
    },
    /// Shows what differs from a commit, committed or not.
    Diff {
        from: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
    /// Commits everything that is not ignored to a branch.
    Commit {
        branch: String,
        message: String,
        /// `Name <address>`; the run itself where nobody is named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        author: Option<String>,
    },
    /// Restores the worktree to its commit, except protected files, which come from another commit.
    Restore {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        protect: Option<Protect>,
    },
    /// Moves the worktree's branch to a commit, and restores the worktree to it.
    MoveTo {
        branch: String,
        commit: String,
    },
    /// Removes the worktree.
    Remove {
        discard: bool,
    },
}

/// Files that are restored from another commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Protect {
    pub from: String,
    pub globs: Vec<String>,
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum TreeOutcome {
    Read(String),
    Write {
        bytes: usize,
    },
    /// The line in which the replaced text began, from 1.
    Replace {
        line: usize,
    },
    List(Entries),
    Find(FoundFiles),
    Grep(Matches),
    /// Deleted or moved.
    Moved {},
    Apply {
        paths: Vec<String>,
    },
    Diff(Patch),
    Commit(Committed),
    /// The protected files that the commit has changed.
    Restore {
        touched: Vec<String>,
    },
    /// It was moved or removed.
    Done,
}

/// The entries of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entries {
    pub entries: Vec<TreeEntry>,
    pub cut: bool,
}

/// An entry of a folder in a worktree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct TreeEntry {
    pub name: String,
    /// `folder`, `file`, `link` or `other`.
    pub kind: &'static str,
}

/// What an intent records, to find out after a crash whether the request happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TreeBefore {
    /// The commit that the worktree is at.
    Commit {
        head: String,
    },
    /// The BLAKE3 of the file after the replacement, in hex, and the line in which the text is replaced.
    Replace {
        after: String,
        line: usize,
    },
    Nothing {},
}

impl TreeOp {
    /// Tells whether git has to scan the worktree for this request.
    pub fn is_by_git(&self) -> bool {
        match self {
            TreeOp::Find { .. }
            | TreeOp::Grep { .. }
            | TreeOp::Apply { .. }
            | TreeOp::Diff { .. }
            | TreeOp::Commit { .. }
            | TreeOp::Restore { .. }
            | TreeOp::MoveTo { .. }
            | TreeOp::Remove { .. } => true,
            TreeOp::Read { .. }
            | TreeOp::Write { .. }
            | TreeOp::Replace { .. }
            | TreeOp::Delete { .. }
            | TreeOp::Rename { .. }
            | TreeOp::List { .. } => false,
        }
    }

    /// Tells whether this leaves the worktree as it is.
    pub fn only_reads(&self) -> bool {
        match self {
            TreeOp::Read { .. }
            | TreeOp::List { .. }
            | TreeOp::Find { .. }
            | TreeOp::Grep { .. }
            | TreeOp::Diff { .. } => true,
            TreeOp::Write { .. }
            | TreeOp::Replace { .. }
            | TreeOp::Delete { .. }
            | TreeOp::Rename { .. }
            | TreeOp::Apply { .. }
            | TreeOp::Commit { .. }
            | TreeOp::Restore { .. }
            | TreeOp::MoveTo { .. }
            | TreeOp::Remove { .. } => false,
        }
    }
}

impl EffectFacts for WorktreeOp {
    fn kind(&self) -> &'static str {
        "tree"
    }

    fn recovery(&self) -> Recovery {
        match self.op {
            TreeOp::Replace { .. } | TreeOp::Commit { .. } => Recovery::Probe,
            TreeOp::Read { .. }
            | TreeOp::Write { .. }
            | TreeOp::List { .. }
            | TreeOp::Find { .. }
            | TreeOp::Grep { .. }
            | TreeOp::Delete { .. }
            | TreeOp::Rename { .. }
            | TreeOp::Apply { .. }
            | TreeOp::Diff { .. }
            | TreeOp::Restore { .. }
            | TreeOp::MoveTo { .. }
            | TreeOp::Remove { .. } => Recovery::Retry,
        }
    }

    fn only_looks(&self) -> bool {
        self.op.only_reads()
    }

    fn replay_class(&self) -> ReplayClass {
        ReplayClass::Surroundings
    }

    fn required_permissions(&self) -> &'static [Permission] {
        &[Permission::Git]
    }

    fn lasts(&self) -> bool {
        true
    }

    fn dependencies(&self) -> Dependencies {
        let mut writes = Vec::new();
        if !self.op.only_reads() {
            writes.push(tree_resource(&self.tree));
        }
        if let TreeOp::Commit { branch: moved, .. } | TreeOp::MoveTo { branch: moved, .. } = &self.op {
            writes.push(branch_resource(moved));
        }
        Dependencies { reads: vec![tree_resource(&self.tree)], writes }
    }

    fn request(&self) -> Value {
        let mut request = plain(&self.op);
        request["tree"] = json!(self.tree);
        request
    }

    fn redact(&mut self, cleaner: &Cleaner) {
        match &mut self.op {
            TreeOp::Write { path, text } => {
                cleaner.text(path);
                cleaner.text(text);
            }
            TreeOp::Replace { path, old, new } => {
                cleaner.text(path);
                cleaner.text(old);
                cleaner.text(new);
            }
            TreeOp::Commit { message, author, .. } => {
                cleaner.text(message);
                author.iter_mut().for_each(|author| cleaner.text(author));
            }
            TreeOp::Grep { pattern, glob, .. } => {
                cleaner.text(pattern);
                glob.iter_mut().for_each(|glob| cleaner.text(glob));
            }
            TreeOp::Rename { from, to } => {
                cleaner.text(from);
                cleaner.text(to);
            }
            TreeOp::Diff { path, .. } => path.iter_mut().for_each(|path| cleaner.text(path)),
            TreeOp::Read { path: text }
            | TreeOp::List { path: text }
            | TreeOp::Find { glob: text }
            | TreeOp::Delete { path: text }
            | TreeOp::Apply { patch: text } => cleaner.text(text),
            TreeOp::Restore { .. } | TreeOp::MoveTo { .. } | TreeOp::Remove { .. } => {}
        }
    }
}
