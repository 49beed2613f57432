//! What is asked of a search through files, and what it finds: in a worktree, or in the workspace.

use serde::{Deserialize, Serialize};

/// Which part of what a search finds is returned, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SearchPart {
    /// How many lines (or files) that match are left out at the beginning.
    #[serde(skip_serializing_if = "is_zero")]
    pub skip: usize,
    /// The most lines (or files) that match: 200 unless it says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most: Option<usize>,
    /// How many lines around each are shown.
    #[serde(skip_serializing_if = "is_zero")]
    pub context: usize,
    /// Returns the files that have such lines, with how many, in place of the lines.
    #[serde(skip_serializing_if = "is_false")]
    pub by_file: bool,
}

impl SearchPart {
    pub(super) fn is_usual(&self) -> bool {
        *self == SearchPart::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// The lines that a search found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Matches {
    pub lines: Vec<MatchedLine>,
    /// By file, where that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<MatchedFile>,
    pub cut: bool,
}

/// A line that matches a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MatchedLine {
    pub path: String,
    /// From 1.
    pub line: usize,
    pub text: String,
    /// It does not match, and stands beside one that does.
    #[serde(skip_serializing_if = "is_false")]
    pub beside: bool,
}

/// A file with lines that match a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MatchedFile {
    pub path: String,
    /// How many.
    pub lines: usize,
}
