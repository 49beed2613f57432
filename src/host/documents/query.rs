//! Queries in SQL: rows become tables of a database in memory, which a query can only read.

use std::time::Duration;

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, params_from_iter};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::index::{self, NAMED, UnreadableDocument};
use super::sqlite::{cell, confine, quoted};
use super::{Store, sql};
use crate::cpu::{CpuLimit, Overrun, ThreadClock, run_within};
use crate::error::{Code, Failure, Result};
use crate::model::collection::{Collection, DocumentKey, Format};
use crate::model::document::{MigratedDocument, OlderDocument, VersionStatus};
use crate::model::path_template::PathTemplate;
use crate::model::text::excerpt;
use crate::schema::properties;

/// How long a query may take, and how much it may return.
const PATIENCE: Duration = Duration::from_secs(10);
const MOST_ROWS: usize = 10_000;
const MOST_TEXT: usize = 3 << 20;
/// The most documents of older versions that a flow migrates for a query, of each collection.
const MOST_OLDER: usize = 1000;
/// The longest text, in bytes, that a query can make: as long as the longest text of a flow. Some of SQLite's functions
/// take time proportional to the product of two texts' lengths.
const LONGEST: i32 = 4 << 20;
/// The longest pattern of `LIKE`, which SQLite tries at each place of a text.
const LIKE: i32 = 1000;
/// The most memory, in bytes, that a query may use.
const MEMORY: i64 = 256 << 20;

/// The extra time before a query is abandoned that does not reach the next look at the clock.
const GRACE: Duration = Duration::from_secs(1);
/// After how many of SQLite's steps a query looks at the clock: each step may go through a text of [`LONGEST`] bytes.
const LOOK: i32 = 1000;

/// The result of a query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryResult {
    pub columns: Vec<String>,
    /// Numbers, texts and null.
    pub rows: Vec<Vec<Value>>,
    /// Whether there are more rows than these.
    pub cut: bool,
    /// The first few documents of indexed collections that cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<UnreadableDocument>,
    /// Documents of older versions. If there are any, the query was not run: it is to be asked again with what they are once
    /// they are brought up to date.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub older: Vec<OlderDocument>,
}

impl Store {
    /// Runs a query. Each collection of rows is a table of its name, with the columns of its schema; `key` fills the
    /// placeholders of its path. Each collection of documents provides the tables of its index. `migrated` stand in place of
    /// documents of older versions.
    ///
    /// # Errors
    ///
    /// `request-invalid` if the query is wrong, `permission-refused` if it would write, `timed-out` if it takes too long.
    pub fn query(
        &self,
        collections: &[Collection],
        key: &DocumentKey,
        query: &str,
        bind: &[Value],
        migrated: &[MigratedDocument],
    ) -> Result<QueryResult> {
        let (mut database, broken) = match self.database(collections, key, migrated)? {
            QueryDatabase::Open(database, broken) => (database, broken),
            QueryDatabase::Older(older) => {
                return Ok(QueryResult {
                    columns: Vec::new(),
                    rows: Vec::new(),
                    cut: false,
                    broken: Vec::new(),
                    older,
                });
            }
        };
        let query = sql::quote_names(query)?;
        let (collections, bind) = (collections.to_vec(), bind.to_vec());
        // Between two looks at the clock, a function of SQLite's (`instr`, `replace`, `trim`, a long `LIKE`) can go on
        // for hours.
        let work = move || run_query(&mut database, &collections, &query, &bind, broken);
        run_within(PATIENCE + GRACE, work).unwrap_or_else(|Overrun| Err(too_long()))
    }

    /// Returns a read-only database with all rows.
    fn database(
        &self,
        collections: &[Collection],
        key: &DocumentKey,
        migrated: &[MigratedDocument],
    ) -> Result<QueryDatabase> {
        let failed = |error: Error| Failure::new(Code::Internal, format!("the rows cannot be asked: {error}"));
        let mut database = Connection::open_in_memory().map_err(failed)?;
        confine(&database).map_err(failed)?;
        database.pragma_update(None, "hard_heap_limit", MEMORY).map_err(failed)?;
        // Temporary tables count towards the memory limit and fill no disk.
        database.pragma_update(None, "temp_store", "MEMORY").map_err(failed)?;
        let (mut broken, mut older) = (Vec::new(), Vec::new());
        for collection in collections {
            if collection.format != Format::Jsonl {
                let (index, left_out) = self.index(collection)?;
                if migrated.is_empty() {
                    older.extend(self.older_documents(collection, &left_out.older)?);
                }
                broken.extend(left_out.broken);
                let read_only = format!("file:{}?mode=ro", uri(&index));
                database
                    .execute(&format!("ATTACH ? AS {}", quoted(&format!("{} index", collection.name))), [read_only])
                    .map_err(failed)?;
                for path in &left_out.older {
                    let named = |one: &&MigratedDocument| one.collection == collection.name && one.path == *path;
                    let message = match migrated.iter().find(named) {
                        Some(MigratedDocument { value: Some(_), .. }) => continue,
                        Some(MigratedDocument { problem: Some(problem), .. }) => problem.clone(),
                        _ => "it is of an older version; `nietz documents migrate` brings all of them up to date"
                            .to_owned(),
                    };
                    broken.push(UnreadableDocument { path: path.clone(), message });
                }
                add_migrated(&database, collection, &left_out.older, migrated).map_err(failed)?;
                continue;
            }
            let mut own_key = DocumentKey::new();
            for placeholder in PathTemplate::of(collection)?.placeholders() {
                own_key.extend(key.get(placeholder).map(|value| (placeholder.to_owned(), value.clone())));
            }
            let rows = self.rows(collection, &own_key)?;
            fill(&mut database, collection, &rows).map_err(failed)?;
        }
        if !older.is_empty() {
            return Ok(QueryDatabase::Older(older));
        }
        broken.truncate(NAMED);
        database.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0).map_err(failed)?;
        database.set_limit(Limit::SQLITE_LIMIT_LENGTH, LONGEST).map_err(failed)?;
        database.set_limit(Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, LIKE).map_err(failed)?;
        database
            .authorizer(Some(|context: AuthContext<'_>| match context.action {
                AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => Authorization::Allow,
                AuthAction::Function { function_name } if function_name != "load_extension" => Authorization::Allow,
                _ => Authorization::Deny,
            }))
            .map_err(failed)?;
        Ok(QueryDatabase::Open(database, broken))
    }

    /// Reads documents of older versions, as many as a run's journal can take.
    fn older_documents(&self, collection: &Collection, paths: &[String]) -> Result<Vec<OlderDocument>> {
        let (mut older, mut size) = (Vec::new(), 0);
        for path in paths.iter().take(MOST_OLDER) {
            let Some(key) = PathTemplate::of(collection)?.matches(path) else { continue };
            // A document that has changed since is read by the next query.
            let Ok(Some(loaded)) = self.load(collection, &key) else { continue };
            let VersionStatus::Older(version) = loaded.standing else { continue };
            size += loaded.value.to_string().len();
            if size > MOST_TEXT {
                break;
            }
            older.push(OlderDocument {
                collection: collection.name.clone(),
                path: path.clone(),
                version,
                value: loaded.value,
            });
        }
        Ok(older)
    }
}

/// A database to ask, or the documents that are to be migrated before.
enum QueryDatabase {
    Open(Connection, Vec<UnreadableDocument>),
    Older(Vec<OlderDocument>),
}

/// Lets a collection's tables have the rows of documents that were migrated in memory, too.
fn add_migrated(
    database: &Connection,
    collection: &Collection,
    older: &[String],
    migrated: &[MigratedDocument],
) -> rusqlite::Result<()> {
    let named = |one: &&MigratedDocument| one.collection == collection.name && older.contains(&one.path);
    let documents: Vec<_> =
        migrated.iter().filter(named).filter_map(|one| Some((&one.path, one.value.as_ref()?))).collect();
    if documents.is_empty() {
        return Ok(());
    }
    for table in &collection.index {
        let columns: String = table.columns.iter().map(|(name, _)| format!(", {}", quoted(name))).collect();
        let (name, own) = (quoted(&table.name), quoted(&format!("{} migrated", table.name)));
        let index = quoted(&format!("{} index", collection.name));
        // A view of the connection's own comes before a table of an attached index.
        database.execute_batch(&format!(
            "CREATE TABLE {own} (document{columns});
             CREATE TEMP VIEW {name} AS SELECT document{columns} FROM {index}.{name}
             UNION ALL SELECT document{columns} FROM main.{own}"
        ))?;
        let placeholders = ", ?".repeat(table.columns.len());
        let mut insert = database.prepare(&format!("INSERT INTO {own} VALUES (?{placeholders})"))?;
        for (path, document) in &documents {
            for row in index::rows(table, document) {
                let path = rusqlite::types::Value::Text((*path).clone());
                insert.execute(params_from_iter(std::iter::once(path).chain(row)))?;
            }
        }
    }
    Ok(())
}

/// Runs a query on a read-only database.
fn run_query(
    database: &mut Connection,
    collections: &[Collection],
    query: &str,
    bind: &[Value],
    broken: Vec<UnreadableDocument>,
) -> Result<QueryResult> {
    let wrong = |error: &Error| query_failure(error, collections);
    // The limit counts the CPU time of this thread.
    let limit = CpuLimit::new(ThreadClock::current(), PATIENCE);
    database.progress_handler(LOOK, Some(move || limit.is_over())).map_err(|error| wrong(&error))?;
    let mut statement = database.prepare(query).map_err(|error| wrong(&error))?;
    let placeholders = statement.parameter_count();
    if placeholders != bind.len() {
        let message = format!("placeholders in the query: {placeholders}; values that are bound: {}", bind.len());
        return Err(Failure::new(Code::RequestInvalid, message).hint("bind one value for each `?`, in their order"));
    }
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut answer = QueryResult { rows: Vec::new(), cut: false, columns, broken, older: Vec::new() };
    let mut text = 0;
    let mut rows = statement.query(params_from_iter(bind.iter().map(cell))).map_err(|error| wrong(&error))?;
    while let Some(row) = rows.next().map_err(|error| wrong(&error))? {
        let mut cells = Vec::with_capacity(answer.columns.len());
        for index in 0..answer.columns.len() {
            let value = json_value(row.get_ref(index).map_err(|error| wrong(&error))?);
            text += value.as_str().map_or(8, str::len);
            cells.push(value);
        }
        if answer.rows.len() == MOST_ROWS || text > MOST_TEXT {
            answer.cut = true;
            break;
        }
        answer.rows.push(cells);
    }
    drop(rows);
    Ok(answer)
}

/// Makes a table from a collection's rows. Fields that the schema does not name become columns, too.
fn fill(database: &mut Connection, collection: &Collection, rows: &[Value]) -> rusqlite::Result<()> {
    let mut columns: Vec<(&str, &str)> = Vec::new();
    for (name, schema) in properties(&collection.schema) {
        columns.push((name, affinity(schema)));
    }
    for name in rows.iter().filter_map(Value::as_object).flat_map(|row| row.keys()) {
        if !columns.iter().any(|(known, _)| known == name) {
            columns.push((name, ""));
        }
    }
    if columns.is_empty() {
        return Ok(());
    }
    let table = quoted(&collection.name);
    let declared: Vec<String> = columns.iter().map(|(name, affinity)| format!("{} {affinity}", quoted(name))).collect();
    database.execute_batch(&format!("CREATE TABLE {table} ({})", declared.join(", ")))?;
    let placeholders = vec!["?"; columns.len()].join(", ");
    let transaction = database.transaction()?;
    {
        let mut insert = transaction.prepare(&format!("INSERT INTO {table} VALUES ({placeholders})"))?;
        for row in rows {
            insert.execute(params_from_iter(columns.iter().map(|(name, _)| cell(&row[*name]))))?;
        }
    }
    transaction.commit()
}

/// Returns the column type that makes `id = '3'` and `id = 3` mean the same.
fn affinity(schema: &Value) -> &'static str {
    let of = |name: &str| match name {
        "integer" | "boolean" => "INTEGER",
        "number" => "REAL",
        "string" => "TEXT",
        _ => "",
    };
    match &schema["type"] {
        Value::String(name) => of(name),
        Value::Array(names) => {
            names.iter().filter_map(Value::as_str).map(of).find(|found| !found.is_empty()).unwrap_or("")
        }
        _ => "",
    }
}

/// Returns a path as written in a URI.
fn uri(path: &std::path::Path) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(byte);
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.iter().map(|byte| if plain(byte) { char::from(*byte).to_string() } else { format!("%{byte:02x}") }).collect()
}

fn json_value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::from(number),
        ValueRef::Real(number) => serde_json::Number::from_f64(number).map_or(Value::Null, Value::Number),
        ValueRef::Text(text) => Value::from(String::from_utf8_lossy(text)),
        ValueRef::Blob(bytes) => Value::from(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}

fn too_long() -> Failure {
    let message = format!("the query takes longer than {} seconds", PATIENCE.as_secs());
    Failure::new(Code::TimedOut, message)
        .hint("ask for less: a recursion needs an end, and long texts cannot be searched")
}

/// Returns the failure that says what is wrong with a query.
fn query_failure(error: &Error, collections: &[Collection]) -> Failure {
    use rusqlite::ErrorCode;
    let of = |collection: &Collection| match collection.format {
        Format::Jsonl => vec![collection.name.clone()],
        _ => collection.index.iter().map(|table| table.name.clone()).collect(),
    };
    let tables: Vec<String> = collections.iter().flat_map(of).collect();
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => too_long(),
        Some(ErrorCode::AuthorizationForStatementDenied) => {
            Failure::new(Code::PermissionRefused, "a query can only read").hint("begin it with SELECT or WITH")
        }
        _ => Failure::new(Code::RequestInvalid, format!("the query is wrong: {}", excerpt(&error.to_string())))
            .hint(format!("tables: {}", tables.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{rows, store};
    use super::*;

    fn ask(query: &str, bind: &[Value]) -> Result<QueryResult> {
        let (_folder, store) = store();
        let mut calls = rows();
        calls.name = "call".to_owned();
        calls.path = "rows/{group}/call.jsonl".to_owned();
        calls.schema = json!({"type": "object", "properties": {
            "id": {"type": "integer"}, "order": {"type": ["integer", "null"]}, "name": {"type": "string"},
            "input": {"type": "object"}, "done": {"type": "boolean"}, "late": {"type": "integer"},
        }});
        let mut others = calls.clone();
        others.name = "other".to_owned();
        others.path = "rows/other.jsonl".to_owned();
        let key = DocumentKey::from([("group".to_owned(), "g".to_owned())]);
        for row in [
            json!({"id": 1, "order": 2, "name": "b", "input": {"path": "x"}, "done": true}),
            json!({"id": 2, "order": 1, "name": "a", "input": {}, "done": false, "more": 1.5}),
        ] {
            store.append(&calls, &key, &row, None).unwrap();
        }
        store.query(&[calls, others], &key, query, bind, &[])
    }

    #[test]
    fn rows_are_asked_as_tables() {
        let answer = ask("SELECT c.id, c.order, c.name FROM call c ORDER BY c.order", &[]).unwrap();
        assert_eq!(answer.columns, ["id", "order", "name"]);
        assert_eq!(json!(answer.rows), json!([[2, 1, "a"], [1, 2, "b"]]));
        for (query, bind, expected) in [
            ("SELECT more, late, done FROM call WHERE id = ?", vec![json!("2")], json!([[1.5, null, 0]])),
            ("SELECT input ->> 'path' FROM call WHERE done", vec![], json!([["x"]])),
            ("SELECT count(*) FROM other", vec![], json!([[0]])),
            ("SELECT name FROM call WHERE name = ? OR id = ?", vec![json!("a"), json!(1)], json!([["b"], ["a"]])),
        ] {
            assert_eq!(json!(ask(query, &bind).unwrap().rows), expected, "{query}");
        }
    }

    #[test]
    fn a_query_can_do_nothing_but_read() {
        for query in [
            "ATTACH 'x.db' AS x",
            "INSERT INTO call (id) VALUES (3)",
            "DELETE FROM call",
            "DROP TABLE call",
            "CREATE TABLE x (a)",
            "CREATE TEMP TABLE x (a)",
            "PRAGMA journal_mode",
            "VACUUM INTO 'x.db'",
            "SELECT load_extension('x')",
            "BEGIN",
        ] {
            let failure = ask(query, &[]).unwrap_err();
            let refused = [Code::PermissionRefused, Code::RequestInvalid].contains(&failure.code);
            assert!(refused, "{query}: {failure:?}");
        }
        assert!(!std::path::Path::new("x.db").exists());
    }

    #[test]
    fn what_is_wrong_is_said_and_what_is_too_much_is_ended() {
        for (query, code, part) in [
            ("SELECT x FROM nowhere", Code::RequestInvalid, "nowhere"),
            ("SELECT ? FROM call", Code::RequestInvalid, "in the query: 1; values that are bound: 0"),
            ("SELECT zeroblob(100000000)", Code::RequestInvalid, "too big"),
            ("SELECT instr(printf('%.*c', 9000000, 'a'), 'b')", Code::RequestInvalid, "too big"),
            ("SELECT 'a' LIKE printf('%.*c', 2000, '%')", Code::RequestInvalid, "too complex"),
            (
                "WITH RECURSIVE n(i, t) AS (SELECT 1, '' UNION SELECT i + 1, printf('%.*c', 4000000, 'a') || i FROM n \
                 WHERE i < 99) SELECT count(t) FROM n",
                Code::RequestInvalid,
                "out of memory",
            ),
            ("SELEC", Code::RequestInvalid, "syntax error"),
        ] {
            let failure = ask(query, &[]).unwrap_err();
            assert!(failure.code == code && failure.message.contains(part), "{query}: {failure:?}");
        }
        let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
        let answer = ask(endless, &[]).unwrap();
        assert!(answer.cut && answer.rows.len() == MOST_ROWS);
    }
}
