//! Reading files of the workspace and of folders that the user grants.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::search::{Matches, SearchPart};
use super::{EffectFacts, Recovery, ReplayClass, plain};
use crate::model::attachment::AttachedFile;
use crate::model::permission::Permission;
use crate::model::redact::Cleaner;

/// A request to read files of the workspace, or of folders that the user grants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum FileOp {
    /// Reads the text of a file.
    Read { path: String },
    /// Reads some lines of a text file of any usual size; a negative `from` counts from the end.
    ReadLines { path: String, from: i64, count: u64 },
    /// Reads a file that is to go with a message; an image or a PDF is kept beside the journal.
    Attach { path: String },
    /// Finds the files of the workspace whose paths match a glob.
    Find { glob: String },
    /// Finds the lines that match a regular expression in the files that `Find` finds.
    Grep {
        pattern: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        glob: Option<String>,
        #[serde(default, skip_serializing_if = "SearchPart::is_usual")]
        part: SearchPart,
    },
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum FileOutcome {
    /// `None` if there is no such file.
    Read(Option<FileText>),
    /// `None` if there is no such file.
    ReadLines(Option<FileLines>),
    /// `None` if there is no such file.
    Attach(Option<AttachedFile>),
    Find(FoundFiles),
    Grep(Matches),
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileText {
    pub path: String,
    pub text: String,
}

/// Some lines of a file, and what the whole file is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileLines {
    pub path: String,
    pub text: String,
    /// The number of the first line that `text` has.
    pub first: u64,
    /// How many lines `text` has.
    pub count: u64,
    /// Whether fewer lines are there than were asked for and exist, or a line is not whole.
    pub cut: bool,
    /// How many lines and bytes the file has.
    pub lines: u64,
    pub bytes: u64,
    /// The SHA-256 of the file's bytes, in hex.
    pub sha256: String,
}

/// The paths that match a glob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundFiles {
    pub paths: Vec<String>,
    /// Whether there are more paths than these.
    pub cut: bool,
}

impl EffectFacts for FileOp {
    fn kind(&self) -> &'static str {
        "file"
    }

    fn recovery(&self) -> Recovery {
        Recovery::Retry
    }

    fn only_looks(&self) -> bool {
        true
    }

    fn replay_class(&self) -> ReplayClass {
        ReplayClass::Surroundings
    }

    fn required_permissions(&self) -> &'static [Permission] {
        &[Permission::Files]
    }

    fn lasts(&self) -> bool {
        true
    }

    fn request(&self) -> Value {
        plain(self)
    }

    fn redact(&mut self, cleaner: &Cleaner) {
        match self {
            FileOp::Read { path: text }
            | FileOp::ReadLines { path: text, .. }
            | FileOp::Attach { path: text }
            | FileOp::Find { glob: text } => cleaner.text(text),
            FileOp::Grep { pattern, glob, .. } => {
                cleaner.text(pattern);
                glob.iter_mut().for_each(|glob| cleaner.text(glob));
            }
        }
    }
}
