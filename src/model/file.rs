//! What a flow can ask of the files that are there before it: reading alone.

use serde::{Deserialize, Serialize};

/// A request to files of the workspace, and of folders that the user lets it read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum FileOp {
    /// The text of a file.
    Read { path: String },
    /// The files of the workspace whose paths match a glob.
    Find { glob: String },
}

/// What is given back for a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum FileOutcome {
    /// Nothing where there is no such file.
    Read(Option<FileText>),
    Find(FoundFiles),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileText {
    pub path: String,
    pub text: String,
}

/// The paths that match a glob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundFiles {
    pub paths: Vec<String>,
    /// Whether there are more than are given.
    pub cut: bool,
}
