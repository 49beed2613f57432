//! What documents need of a place: a folder of this machine (`folder`), or a server (`server`). A place knows paths and bytes; what
//! makes a document valid is none of its business.

use std::fmt;

use super::disk::TempFile;
use crate::error::Result;
use crate::model::path_template::PathTemplate;

/// Where one document is.
#[derive(Clone, Copy, Debug)]
pub(super) struct At<'a> {
    /// Below the workspace, with `/`.
    pub(super) path: &'a str,
    /// Whether all runs of the workspace see it; on a server, others are seen by the runs of who began them.
    pub(super) shared: bool,
}

/// What becomes of a document, given what is there.
pub(super) enum Change {
    /// It is as it should be.
    Nothing,
    /// It is written. What was there is first kept beside it under this name, if there is one.
    Write {
        backup: Option<String>,
    },
    Remove,
}

/// Text that is on its way to the disk already, while it is looked whether it may stay there.
pub(super) type Staged = Option<TempFile>;

/// A row that was appended.
pub(super) struct NewRow {
    /// The byte at which it starts.
    pub(super) at: u64,
    /// The beginning of a torn row that was cut off first.
    pub(super) torn: Option<String>,
}

/// What is told of each file of a walk: its path, and a text that is another one once the file changes, empty where that cannot be
/// told.
pub(super) type Seen<'s> = dyn FnMut(&str, &dyn Fn() -> String) + 's;

/// Where the documents of one workspace are.
pub(super) trait DocumentPlace: fmt::Debug + Send + Sync {
    /// Refuses a path that leads out of the workspace, or to what is no document.
    fn check(&self, at: At<'_>) -> Result<()>;

    /// Returns the bytes of a document, or `None` if there is none.
    fn read(&self, at: At<'_>) -> Result<Option<Vec<u8>>>;

    /// Passes each file that could be a document of this pattern, in no order.
    fn walk(&self, shared: bool, pattern: &PathTemplate, seen: &mut Seen<'_>) -> Result<()>;

    /// Begins to write a text, if the place can do that before it is known whether it may.
    fn stage(&self, at: At<'_>, text: &[u8]) -> Result<Staged>;

    /// Asks `decide` what becomes of a document, given its bytes, and does it: nobody else changes it in between. What is removed
    /// with it are backups of these names beside it. Returns whether there was a document.
    fn change(
        &self,
        at: At<'_>,
        text: Option<(&[u8], Staged)>,
        backups: &[String],
        decide: &mut dyn FnMut(Option<&[u8]>) -> Result<Change>,
    ) -> Result<bool>;

    /// Removes backups of these names beside a document, if there are any.
    fn clear(&self, at: At<'_>, backups: &[String]) -> Result<()>;

    /// Appends a line, with its line end, to rows that have at most `most` bytes then. With `from`, the same line at or behind that
    /// byte is the one that is meant, and nothing is written.
    fn append(&self, at: At<'_>, line: &str, from: Option<u64>, most: u64) -> Result<NewRow>;

    /// Returns the byte at or behind `from` where this line stands.
    fn find(&self, at: At<'_>, line: &str, from: u64) -> Result<Option<u64>>;

    /// Returns the byte at which the next row will start.
    fn rows_end(&self, at: At<'_>) -> Result<u64>;
}
