//! Performs the document requests of a flow with the store's methods.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Store;
use super::elsewhere::OtherFolder;
use super::query::QueryResult;
use super::rows::Appended;
use crate::error::{Code, Failure, Result};
use crate::model::collection::{Collection, Format};
use crate::model::document::{ListedDocument, LoadedDocument, Page, SavedDocument};
use crate::model::effect::documents::DocumentOp;

/// The result of a request.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum DocumentOutcome {
    Loaded(Option<LoadedDocument>),
    Saved(SavedDocument),
    Listed(Vec<ListedDocument>),
    Page(Page),
    Appended(Appended),
    Rows(Vec<Value>),
    Folders(Vec<OtherFolder>),
    Answer(QueryResult),
    Deleted,
}

/// What the intent of a request records. For an append, this is the byte at which the row will start.
#[derive(Debug, Serialize, Deserialize)]
pub struct DocumentBefore {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<u64>,
}

impl Store {
    /// Performs a request; `again` says that an earlier process may have begun it. `named` returns the collection that the
    /// flow declares under a name.
    ///
    /// # Errors
    ///
    /// The failure of `named`, or of the method that performs the request.
    pub fn perform(
        &self,
        op: DocumentOp,
        again: bool,
        named: &impl Fn(&str) -> Result<Collection>,
    ) -> Result<DocumentOutcome> {
        Ok(match op {
            DocumentOp::Load { collection, key } => DocumentOutcome::Loaded(self.load(&named(&collection)?, &key)?),
            DocumentOp::Save { collection, key, value, expect, migrated } => {
                let collection = named(&collection)?;
                DocumentOutcome::Saved(match migrated {
                    Some(_) => self.save_migrated(&collection, &key, value, &expect)?,
                    None if again => self.save_again(&collection, &key, value, &expect)?,
                    None => self.save(&collection, &key, value, &expect)?,
                })
            }
            DocumentOp::List { collection } => DocumentOutcome::Listed(self.list(&named(&collection)?)?),
            DocumentOp::Scan { collection, fields, after, folder } => {
                let (collection, fields, after) = (named(&collection)?, fields.as_ref(), after.as_deref());
                DocumentOutcome::Page(match folder {
                    None => self.scan(&collection, fields, after)?,
                    Some(folder) => self.scan_elsewhere(&collection, Path::new(&folder), fields, after)?,
                })
            }
            DocumentOp::Folders { collection } => DocumentOutcome::Folders(self.other_folders(&named(&collection)?)?),
            DocumentOp::Append { collection, key, row } => {
                DocumentOutcome::Appended(self.append(&named(&collection)?, &key, &row, None)?)
            }
            DocumentOp::Rows { collection, key } => DocumentOutcome::Rows(self.rows(&named(&collection)?, &key)?),
            DocumentOp::Query { sql, bind, collections, key, migrated } => {
                let collections: Vec<Collection> = collections.iter().map(|name| named(name)).collect::<Result<_>>()?;
                DocumentOutcome::Answer(self.query(&collections, &key, &sql, &bind, &migrated)?)
            }
            DocumentOp::Delete { collection, key, expect } => {
                self.delete(&named(&collection)?, &key, &expect)?;
                DocumentOutcome::Deleted
            }
        })
    }

    /// Returns what [`Store::probe`] needs after a crash to find out whether a request happened.
    ///
    /// # Errors
    ///
    /// As [`Store::rows_end`], for an append.
    pub fn prepare(&self, op: &DocumentOp, named: &impl Fn(&str) -> Result<Collection>) -> Result<DocumentBefore> {
        let at = match op {
            DocumentOp::Append { collection, key, .. } => Some(self.rows_end(&named(collection)?, key)?),
            DocumentOp::Load { .. }
            | DocumentOp::Save { .. }
            | DocumentOp::List { .. }
            | DocumentOp::Scan { .. }
            | DocumentOp::Folders { .. }
            | DocumentOp::Rows { .. }
            | DocumentOp::Delete { .. }
            | DocumentOp::Query { .. } => None,
        };
        Ok(DocumentBefore { at })
    }

    /// Returns the outcome of a request whose intent was written, if it happened.
    pub fn probe(
        &self,
        op: &DocumentOp,
        before: &DocumentBefore,
        named: &impl Fn(&str) -> Result<Collection>,
    ) -> Option<Result<DocumentOutcome>> {
        match op {
            DocumentOp::Append { collection, key, row } => {
                let collection = named(collection).ok()?;
                let found = self.append_settled(&collection, key, row, before.at?).ok()??;
                Some(Ok(DocumentOutcome::Appended(found)))
            }
            DocumentOp::Load { .. }
            | DocumentOp::Save { .. }
            | DocumentOp::List { .. }
            | DocumentOp::Scan { .. }
            | DocumentOp::Folders { .. }
            | DocumentOp::Rows { .. }
            | DocumentOp::Delete { .. }
            | DocumentOp::Query { .. } => None,
        }
    }

    /// Validates the document of a replayed save against the current schema, since a replay does not save again.
    ///
    /// # Errors
    ///
    /// `document-invalid` with every violation.
    pub fn still_valid(&self, op: &DocumentOp, named: &impl Fn(&str) -> Result<Collection>) -> Result<()> {
        let DocumentOp::Save { collection, value, .. } = op else { return Ok(()) };
        let declared = named(collection)?;
        if !matches!(declared.format, Format::Yaml | Format::Json) {
            return Ok(());
        }
        let violations = self.validate(&declared, value)?;
        if violations.is_empty() {
            return Ok(());
        }
        let failure =
            Failure::new(Code::DocumentInvalid, format!("a document of `{collection}` is not valid any more"))
                .hint("correct the schema or what the flow saves");
        Err(violations.iter().fold(failure, |failure, violation| {
            failure.because(format!("{}: {}", violation.pointer, violation.message))
        }))
    }
}
