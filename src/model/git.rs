//! Names that are reserved in the workspace's repository, and the limits on calls of git.

use serde::Deserialize;

/// The prefix of the branches that flows may make and move; nietz never touches other branches.
pub const PREFIX: &str = "nietz/";

/// The folder of nietz in a workspace, with its runs.
const RUNS: &str = ".nietz";
/// The files that configure nietz in a project.
const PROJECT: &[&str] = &["nietz.yaml", "nietz.lock"];

/// Tells whether a path belongs to nietz itself, anywhere in a repository, because any folder can be a workspace. Case is
/// ignored, as on some disks.
pub fn is_reserved(path: &str) -> bool {
    is_of_runs(path) || path.split('/').any(|part| PROJECT.iter().any(|name| part.eq_ignore_ascii_case(name)))
}

/// Tells whether a path is in a folder of nietz with its runs.
pub fn is_of_runs(path: &str) -> bool {
    path.split('/').any(|part| part.eq_ignore_ascii_case(RUNS))
}

/// Limits on one call of git. The default is enough to check out 500,000 files at 300 files a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GitLimits {
    pub seconds: u64,
    /// Limit on its output, which is mostly names of files.
    pub megabytes: u64,
}

impl Default for GitLimits {
    fn default() -> GitLimits {
        GitLimits { seconds: 1800, megabytes: 256 }
    }
}
