//! Documents of a team, on a server. Queries in SQL run on a copy of the rows in a database of this machine, as for files.

use super::disk;
use super::place::{At, Change, DocumentPlace, NewRow, Seen, Staged};
use crate::error::{Code, Failure, Result};
use crate::model::path_template::{self, PathTemplate};
use crate::store::postgres::Server;

/// How often a change is tried again that somebody else was faster than.
const TRIES: usize = 20;

/// The documents of one workspace that one run sees.
#[derive(Debug)]
pub(super) struct ServerPlace {
    server: Server,
    /// Where what is not shared stands: the role of who began the run.
    scope: String,
    run: Option<i64>,
}

impl ServerPlace {
    pub(super) fn new(server: Server, scope: &str, run: Option<i64>) -> ServerPlace {
        ServerPlace { server, scope: scope.to_owned(), run }
    }

    fn scope(&self, shared: bool) -> &str {
        if shared { "" } else { &self.scope }
    }
}

impl DocumentPlace for ServerPlace {
    fn check(&self, at: At<'_>) -> Result<()> {
        match path_template::is_of_others(at.path) {
            true => {
                let message = format!("{} leads to files of the repository or of nietz itself", at.path);
                Err(Failure::new(Code::PathRefused, message))
            }
            false => Ok(()),
        }
    }

    fn read(&self, at: At<'_>) -> Result<Option<Vec<u8>>> {
        self.server.document(self.scope(at.shared), at.path)
    }

    fn walk(&self, shared: bool, pattern: &PathTemplate, seen: &mut Seen<'_>) -> Result<()> {
        let folder = pattern.folder();
        let start = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        for (path, stamp) in self.server.documents(self.scope(shared), &start)? {
            seen(&path, &|| stamp.clone());
        }
        Ok(())
    }

    fn stage(&self, _: At<'_>, _: &[u8]) -> Result<Staged> {
        Ok(None)
    }

    /// What is there is read, and replaced only if it is still the same.
    fn change(
        &self,
        at: At<'_>,
        text: Option<(&[u8], Staged)>,
        _: &[String],
        decide: &mut dyn FnMut(Option<&[u8]>) -> Result<Change>,
    ) -> Result<bool> {
        let scope = self.scope(at.shared);
        let text = text.map(|(text, _)| text);
        for _ in 0..TRIES {
            let present = self.server.document(scope, at.path)?;
            let before = present.as_deref().map(disk::digest);
            let done = match (decide(present.as_deref())?, text) {
                (Change::Nothing, _) | (Change::Write { .. }, None) => Ok(()),
                (Change::Write { .. }, Some(text)) => {
                    let digest = disk::digest(text);
                    self.server.save_document((scope, at.path), (text, &digest), before.as_deref(), self.run)
                }
                (Change::Remove, _) => self.server.remove_document(scope, at.path, before.as_deref()),
            };
            match done {
                Ok(()) => return Ok(present.is_some()),
                // Somebody else was faster: what is there now decides.
                Err(failure) if failure.code == Code::DocumentChanged => {}
                Err(failure) => return Err(failure),
            }
        }
        let message = format!("{} is changed by others again and again", at.path);
        Err(Failure::new(Code::DocumentBusy, message).hint("try again when the other runs have saved"))
    }

    /// A document is replaced in one step, so that there are none.
    fn clear(&self, _: At<'_>, _: &[String]) -> Result<()> {
        Ok(())
    }

    fn append(&self, at: At<'_>, line: &str, from: Option<u64>, most: u64) -> Result<NewRow> {
        let scope = self.scope(at.shared);
        let row = line.trim_end_matches('\n');
        let length = self.server.rows_length(scope, at.path)?;
        if length + line.len() as u64 > most {
            let message = format!("{} would become larger than {} MB", at.path, most / 1024 / 1024);
            return Err(Failure::new(Code::DiskFailed, message).hint("start a new file of rows"));
        }
        let at = self.server.append_row((scope, at.path), row, (from, length), self.run)?;
        Ok(NewRow { at, torn: None })
    }

    fn find(&self, at: At<'_>, line: &str, from: u64) -> Result<Option<u64>> {
        self.server.find_row(self.scope(at.shared), at.path, line.trim_end_matches('\n'), from)
    }

    fn rows_end(&self, at: At<'_>) -> Result<u64> {
        self.server.rows_length(self.scope(at.shared), at.path)
    }
}
