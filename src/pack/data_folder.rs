//! A folder of a flow whose files it reads all, and what each of them must be, by their paths alone.

use serde::Deserialize;

use crate::error::{Code, Failure, Result};
use crate::model::text::excerpt;
use crate::pack::path::join;

/// How the names of the files end.
pub(super) const ENDING: &str = ".yaml";

/// What the files of a folder must be.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileRule {
    /// The path of their schema, as the flow names it.
    pub schema: Option<String>,
    /// The name of the file whose members every other one has: `en`.
    pub like: Option<String>,
}

/// A folder whose files a flow reads all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DataFolder {
    /// `flows/hello/rooms`.
    pub path: String,
    /// The schema's path in the pack.
    pub(super) schema: Option<String>,
    /// The path in the pack of the file that every other one is like.
    pub(super) like: Option<String>,
}

impl DataFolder {
    /// Returns the folder that the file `from` names `relative`, with the rule that it gives.
    ///
    /// # Errors
    ///
    /// `path-refused` if a path leads out of the pack.
    pub(crate) fn named(from: &str, relative: &str, rule: &FileRule) -> Result<DataFolder> {
        let within = |relative: &str| {
            join(from, relative).ok_or_else(|| {
                let message = format!("`{}` is not a path in this pack", excerpt(relative));
                Failure::new(Code::PathRefused, message)
                    .hint("give it relative to the file that it stands in: `./rooms`")
            })
        };
        let path = within(relative)?.trim_end_matches('/').to_owned();
        let schema = rule.schema.as_deref().map(within).transpose()?;
        let like = rule.like.as_ref().map(|name| format!("{path}/{name}{ENDING}"));
        Ok(DataFolder { path, schema, like })
    }

    /// Tells whether a file, by its path in the pack, is one of those that are read.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.name(path).is_some()
    }

    /// Returns the path of the file with this name.
    pub(crate) fn file(&self, name: &str) -> String {
        format!("{}/{name}{ENDING}", self.path)
    }

    pub(super) fn name<'a>(&self, path: &'a str) -> Option<&'a str> {
        let name = path.strip_prefix(self.path.as_str())?.strip_prefix('/')?.strip_suffix(ENDING)?;
        (!name.is_empty() && !name.contains('/')).then_some(name)
    }
}
