//! What a flow can ask of the workspace's repository, and of the worktrees that it makes beside it.

use serde::Deserialize;

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
pub struct GitLimits {
    pub seconds: u64,
    /// Of what it writes: names of files, mostly.
    pub megabytes: u64,
}

impl Default for GitLimits {
    fn default() -> GitLimits {
        GitLimits { seconds: 1800, megabytes: 256 }
    }
}
