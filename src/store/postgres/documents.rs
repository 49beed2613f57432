//! Documents and rows: the functions of the schema. Scopes: empty for what is shared, else the role of who began the run.

use super::Server;
use crate::error::{Code, Result};

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Server {
    /// Returns the bytes of a document, or all rows that stand at a path, as a file would have them; `None` if there is nothing.
    ///
    /// # Errors
    ///
    /// `store-refused`, `store-unreachable`, `store-version`, here and in all that follows.
    pub(crate) fn document(&self, scope: &str, path: &str) -> Result<Option<Vec<u8>>> {
        let workspace = self.workspace()?.id;
        let rows = self.connection.query(
            "SELECT coalesce(d.body, (SELECT convert_to(string_agg(r.body || E'\\n', '' ORDER BY r.at), 'UTF8') FROM nietz.document_row r
                 WHERE r.workspace = d.workspace AND r.scope = d.scope AND r.path = d.path), '')
             FROM nietz.document d WHERE d.workspace = $1 AND d.scope = $2 AND d.path = $3",
            &[&workspace, &scope, &path],
        )?;
        Ok(rows.first().map(|row| row.get(0)))
    }

    /// Returns the paths below a folder, each with a text that is another one once the document changes.
    pub(crate) fn documents(&self, scope: &str, start: &str) -> Result<Vec<(String, String)>> {
        let workspace = self.workspace()?.id;
        let rows = self.connection.query(
            "SELECT path, digest || ' ' || length FROM nietz.document
             WHERE workspace = $1 AND scope = $2 AND starts_with(path, $3) ORDER BY path",
            &[&workspace, &scope, &start],
        )?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    /// Returns all documents that this role sees: scope, path, who wrote them last and when.
    pub(crate) fn all_documents(&self) -> Result<Vec<(String, String, String, String)>> {
        let workspace = self.workspace()?.id;
        let rows = self.connection.query(
            "SELECT scope, path, who::text, to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') FROM nietz.document
             WHERE workspace = $1 ORDER BY scope, path",
            &[&workspace],
        )?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3))).collect())
    }

    /// Saves a document, if what is there has this digest.
    ///
    /// # Errors
    ///
    /// `document-changed` if it has not.
    pub(crate) fn save_document(
        &self,
        (scope, path): (&str, &str),
        (body, digest): (&[u8], &str),
        expected: Option<&str>,
        run: Option<i64>,
    ) -> Result<()> {
        let workspace = self.workspace()?.id;
        let save = "SELECT nietz.save_document($1, $2, $3, $4, $5, $6, $7, $8)";
        let again = |again: &bool| {
            self.connection.query(save, &[&workspace, &scope, &path, &body, &digest, &expected, &run, again])
        };
        match self.connection.once(save, &[&workspace, &scope, &path, &body, &digest, &expected, &run, &false]) {
            // Whether it was saved is not known: the same text there counts as saved now.
            Err(failure) if failure.code == Code::StoreUnreachable => again(&true).map(drop),
            done => done.map(drop),
        }
    }

    /// Removes a document, if what is there has this digest.
    ///
    /// # Errors
    ///
    /// `document-changed` if it has not.
    pub(crate) fn remove_document(&self, scope: &str, path: &str, expected: Option<&str>) -> Result<()> {
        let workspace = self.workspace()?.id;
        self.connection
            .query("SELECT nietz.remove_document($1, $2, $3, $4)", &[&workspace, &scope, &path, &expected])
            .map(drop)
    }

    /// Returns how many bytes the rows at a path have.
    pub(crate) fn rows_length(&self, scope: &str, path: &str) -> Result<u64> {
        let workspace = self.workspace()?.id;
        let rows = self.connection.query(
            "SELECT length FROM nietz.document WHERE workspace = $1 AND scope = $2 AND path = $3",
            &[&workspace, &scope, &path],
        )?;
        Ok(rows.first().map_or(0, |row| unsigned(row.get(0))))
    }

    /// Appends a row, and returns the byte at which it starts. With `from`, the same row at or behind that byte is the one that is meant;
    /// `length` is how long the rows were before.
    ///
    /// # Errors
    ///
    /// `document-changed` if the rows are shorter than `from`.
    pub(crate) fn append_row(
        &self,
        (scope, path): (&str, &str),
        row: &str,
        (from, length): (Option<u64>, u64),
        run: Option<i64>,
    ) -> Result<u64> {
        let workspace = self.workspace()?.id;
        let append = "SELECT nietz.append_row($1, $2, $3, $4, $5, $6)";
        let from = from.map(signed);
        let done = match from {
            Some(_) => self.connection.query(append, &[&workspace, &scope, &path, &row, &from, &run]),
            None => self.connection.once(append, &[&workspace, &scope, &path, &row, &from, &run]),
        };
        let rows = match done {
            // Whether it was appended is not known; if it was, it stands behind what was there before.
            Err(failure) if from.is_none() && failure.code == Code::StoreUnreachable => {
                let from = Some(signed(length));
                self.connection.query(append, &[&workspace, &scope, &path, &row, &from, &run])?
            }
            other => other?,
        };
        Ok(rows.first().map_or(0, |row| unsigned(row.get(0))))
    }

    /// Returns the byte at or behind `from` where this row stands.
    pub(crate) fn find_row(&self, scope: &str, path: &str, row: &str, from: u64) -> Result<Option<u64>> {
        let workspace = self.workspace()?.id;
        let rows = self.connection.query(
            "SELECT at FROM nietz.document_row WHERE workspace = $1 AND scope = $2 AND path = $3 AND at >= $4 AND body = $5
             ORDER BY at LIMIT 1",
            &[&workspace, &scope, &path, &signed(from), &row],
        )?;
        Ok(rows.first().map(|row| unsigned(row.get(0))))
    }
}
