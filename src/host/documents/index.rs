//! Tables of the contents of documents, so that one query can cover thousands of them.
//!
//! Each collection and declaration has one index: a database in the user's cache, because files in a workspace may come
//! from anybody. Each use brings the index up to date: it reads and validates new and changed files again and drops the
//! entries of deleted ones. An index can always be rebuilt from its documents. That happens when the file is deleted,
//! broken, a link, or holds anything that nietz did not make. Triggers and views in the file never run.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::Value as Cell;
use rusqlite::{Connection, Error, OpenFlags, Transaction, TransactionBehavior, params_from_iter};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::list::DocumentFile;
use super::sqlite::{cell, confine, quoted};
use super::{PATIENCE, Store, disk};
use crate::error::{Code, Failure, Result};
use crate::model::collection::{Collection, IndexPath, IndexTable};
use crate::model::document::VersionStatus;

/// The version of the layout of an index file.
const VERSION: &str = "1";
/// The most broken documents that are named.
pub(super) const NAMED: usize = 20;
/// With fewer files than this, one thread reads all of them.
const FEW: usize = 32;

/// How the fault of a document begins that is of an older version, which the flow can migrate.
const OLDER: &str = "it is of the older version ";

/// What an index does not have rows of.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    /// The first few documents that cannot be read.
    pub(super) broken: Vec<UnreadableDocument>,
    /// The paths of all documents of older versions.
    pub(super) older: Vec<String>,
}

/// A document that cannot be read, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnreadableDocument {
    pub path: String,
    pub message: String,
}

/// The entry of a file in the index: its rows for each table, or why the file cannot be read.
type IndexEntry = std::result::Result<Vec<Vec<Vec<Cell>>>, String>;

impl Store {
    /// Brings the index of a collection up to date. Returns the index's path and the documents that are not in it.
    pub(super) fn index(&self, collection: &Collection) -> Result<(PathBuf, LeftOut)> {
        let files = self.files(collection)?;
        let place = self.index_place(collection)?;
        match self.bring_up(collection, &files, &place) {
            Ok(broken) => Ok((place, broken)),
            Err(error) if is_damaged(&error) => {
                for ending in ["", "-journal"] {
                    disk::remove(&PathBuf::from(format!("{}{ending}", place.display())))?;
                }
                let broken = self.bring_up(collection, &files, &place);
                broken.map(|broken| (place.clone(), broken)).map_err(|error| failed(&place, &error))
            }
            Err(error) => Err(failed(&place, &error)),
        }
    }

    fn index_place(&self, collection: &Collection) -> Result<PathBuf> {
        let declared = format!("{VERSION} {} {} {:?}", collection.path, collection.schema, collection.index);
        let digest = disk::digest(declared.as_bytes());
        let name = format!("{}-{}.db", collection.name, &digest[..12]);
        disk::make_folders(&self.indexes.join(&name))?;
        // SQLite is told to follow no links, so the path must not contain any.
        let folder = disk::canonical(&self.indexes)?;
        let place = folder.join(name);
        let ignore = folder.join(".gitignore");
        if disk::kind(&ignore)? == disk::PathKind::Absent {
            disk::replace(&ignore, b"*\n")?;
        }
        Ok(place)
    }

    fn bring_up(&self, collection: &Collection, files: &[DocumentFile], place: &Path) -> rusqlite::Result<LeftOut> {
        let mut database = open(place)?;
        let Some(Changes { stale, gone }) = changes(&database, files)? else { return left_out(&database) };
        // Files are read before the database is locked. Rows that another process writes meanwhile are just as good, and
        // are written over.
        let entries = self.read_all(collection, &stale);
        let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
        prepare(&transaction, &collection.index)?;
        let mut writer = IndexWriter::new(&transaction, &collection.index)?;
        for path in &gone {
            writer.forget(path)?;
        }
        for ((file, stamp), entry) in stale.iter().zip(entries) {
            writer.forget(&file.path)?;
            // A file that has vanished has no entry.
            if let Some(entry) = entry {
                writer.write(&file.path, stamp, &entry)?;
            }
        }
        drop(writer);
        transaction.commit()?;
        left_out(&database)
    }

    /// Reads files on all processors. Returns one entry per file, in their order; `None` for a file that is gone.
    fn read_all(&self, collection: &Collection, stale: &[(&DocumentFile, String)]) -> Vec<Option<IndexEntry>> {
        let threads = if stale.len() < FEW { 1 } else { thread::available_parallelism().map_or(1, usize::from).min(8) };
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some((file, ..)) = stale.get(at) else { return done };
                done.push((at, self.entry(collection, file)));
            }
        };
        let mut entries: Vec<Option<IndexEntry>> = stale.iter().map(|_| None).collect();
        thread::scope(|scope| {
            let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut done = work();
            done.extend(helpers.into_iter().filter_map(|helper| helper.join().ok()).flatten());
            for (at, entry) in done {
                entries[at] = entry;
            }
        });
        entries
    }

    fn entry(&self, collection: &Collection, file: &DocumentFile) -> Option<IndexEntry> {
        match self.load(collection, &file.key) {
            Ok(Some(loaded)) => Some(match loaded.standing {
                VersionStatus::Older(version) => Err(format!("{OLDER}\"{version}\"")),
                VersionStatus::Current | VersionStatus::Newer(_) => {
                    Ok(collection.index.iter().map(|table| rows(table, &loaded.value)).collect())
                }
            }),
            Ok(None) => None,
            Err(failure) => Some(Err(failure.message)),
        }
    }
}

/// Opens an index for writing. Whatever else the file holds, only tables are read and written.
fn open(place: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut database = Connection::open_with_flags(place, flags)?;
    database.busy_timeout(PATIENCE)?;
    confine(&database)?;
    // An index that a crash damages is rebuilt.
    database.pragma_update(None, "synchronous", "OFF")?;
    database.authorizer(Some(|context: AuthContext<'_>| match (context.accessor, context.action) {
        // The accessor is set when a trigger or a view runs the statement.
        (Some(_), _) => Authorization::Deny,
        (
            None,
            AuthAction::Select
            | AuthAction::Read { .. }
            | AuthAction::Insert { .. }
            | AuthAction::Update { .. }
            | AuthAction::Delete { .. }
            | AuthAction::CreateTable { .. }
            | AuthAction::CreateIndex { .. }
            | AuthAction::Reindex { .. }
            | AuthAction::Transaction { .. },
        ) => Authorization::Allow,
        (None, AuthAction::Function { function_name: "count" }) => Authorization::Allow,
        _ => Authorization::Deny,
    }))?;
    let foreign = "SELECT count(*) FROM sqlite_schema WHERE type NOT IN ('table', 'index')";
    match database.query_row(foreign, [], |row| row.get::<_, i64>(0))? {
        0 => Ok(database),
        _ => Err(Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT), None)),
    }
}

/// What has changed since the index was made: changed files with their stamp, and paths of deleted files.
#[derive(Default)]
struct Changes<'f> {
    stale: Vec<(&'f DocumentFile, String)>,
    gone: Vec<String>,
}

/// Compares the files with the index. Returns `None` if nothing has changed.
fn changes<'f>(database: &Connection, files: &'f [DocumentFile]) -> rusqlite::Result<Option<Changes<'f>>> {
    let made: bool =
        database.query_row("SELECT count(*) FROM sqlite_schema WHERE name = ' files'", [], |row| row.get(0))?;
    let mut known: HashMap<String, String> = HashMap::with_capacity(files.len());
    if made {
        let mut statement = database.prepare("SELECT path, stamp FROM \" files\"")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            known.insert(row.get(0)?, row.get(1)?);
        }
    }
    let mut changes = Changes::default();
    for file in files {
        let before = known.remove(&file.path);
        let stamp = file.stamp.clone();
        if stamp.is_empty() || before.as_ref() != Some(&stamp) {
            changes.stale.push((file, stamp));
        }
    }
    changes.gone = known.into_keys().collect();
    Ok((!made || !changes.stale.is_empty() || !changes.gone.is_empty()).then_some(changes))
}

fn prepare(database: &Transaction<'_>, tables: &[IndexTable]) -> rusqlite::Result<()> {
    // A flow cannot give a table a name with a space, so no name can clash.
    database.execute_batch(
        "CREATE TABLE IF NOT EXISTS \" files\" (path TEXT PRIMARY KEY, stamp TEXT NOT NULL, fault TEXT) WITHOUT ROWID",
    )?;
    for table in tables {
        let columns: String = table.columns.iter().map(|(name, _)| format!(", {}", quoted(name))).collect();
        let (name, index) = (quoted(&table.name), quoted(&format!("{} of", table.name)));
        database.execute_batch(&format!(
            "CREATE TABLE IF NOT EXISTS {name} (document TEXT NOT NULL{columns});
             CREATE INDEX IF NOT EXISTS {index} ON {name} (document)"
        ))?;
    }
    Ok(())
}

fn left_out(database: &Connection) -> rusqlite::Result<LeftOut> {
    let mut left_out = LeftOut::default();
    let mut statement = database.prepare("SELECT path, fault FROM \" files\" WHERE fault IS NOT NULL ORDER BY path")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (path, message): (String, String) = (row.get(0)?, row.get(1)?);
        if message.starts_with(OLDER) {
            left_out.older.push(path);
        } else if left_out.broken.len() < NAMED {
            left_out.broken.push(UnreadableDocument { path, message });
        }
    }
    Ok(left_out)
}

/// The prepared statements that change an index.
struct IndexWriter<'t> {
    forget: Vec<rusqlite::Statement<'t>>,
    file: rusqlite::Statement<'t>,
    tables: Vec<rusqlite::Statement<'t>>,
}

impl<'t> IndexWriter<'t> {
    fn new(database: &'t Transaction<'_>, tables: &[IndexTable]) -> rusqlite::Result<IndexWriter<'t>> {
        let mut forget = vec![database.prepare("DELETE FROM \" files\" WHERE path = ?")?];
        let mut inserts = Vec::new();
        for table in tables {
            let name = quoted(&table.name);
            forget.push(database.prepare(&format!("DELETE FROM {name} WHERE document = ?"))?);
            let placeholders = ", ?".repeat(table.columns.len());
            inserts.push(database.prepare(&format!("INSERT INTO {name} VALUES (?{placeholders})"))?);
        }
        let file = database.prepare("INSERT INTO \" files\" VALUES (?, ?, ?)")?;
        Ok(IndexWriter { forget, file, tables: inserts })
    }

    fn forget(&mut self, path: &str) -> rusqlite::Result<()> {
        self.forget.iter_mut().try_for_each(|statement| statement.execute([path]).map(|_| ()))
    }

    fn write(&mut self, path: &str, stamp: &str, entry: &IndexEntry) -> rusqlite::Result<()> {
        self.file.execute((path, stamp, entry.as_ref().err()))?;
        let Ok(tables) = entry else { return Ok(()) };
        let document = Cell::Text(path.to_owned());
        for (statement, rows) in self.tables.iter_mut().zip(tables) {
            for row in rows {
                statement.execute(params_from_iter(std::iter::once(&document).chain(row)))?;
            }
        }
        Ok(())
    }
}

/// Returns the rows of a document for a table.
pub(super) fn rows(table: &IndexTable, document: &Value) -> Vec<Vec<Cell>> {
    let mut items = Vec::new();
    match &table.each {
        IndexPath::Names(names) => collect(document, names, &mut items),
        // A list at the end stands for its items.
        IndexPath::Pointer(pointer) => {
            pointer.matches(document).iter().for_each(|place| collect(place.value, &[], &mut items));
        }
    }
    let value = |item: &Value, path: &IndexPath| match path {
        IndexPath::Names(names) => names.iter().try_fold(item, |value, name| value.get(name)).map(cell),
        IndexPath::Pointer(pointer) => pointer.of(item).as_ref().map(cell),
    };
    let row = |item| table.columns.iter().map(|(_, path)| value(item, path).unwrap_or(Cell::Null)).collect();
    items.into_iter().map(row).collect()
}

/// Collects the values at the end of a path through objects and lists.
fn collect<'v>(value: &'v Value, path: &[String], items: &mut Vec<&'v Value>) {
    match (value, path) {
        (Value::Array(list), _) => list.iter().for_each(|item| collect(item, path, items)),
        (_, []) => items.push(value),
        (_, [step, rest @ ..]) => {
            if let Some(value) = value.get(step) {
                collect(value, rest, items);
            }
        }
    }
}

fn is_damaged(error: &Error) -> bool {
    use rusqlite::ErrorCode as Of;
    // Errors of the disk or of other processes do not mean damage. Any other error means that the file is not as nietz made it.
    let others = [
        Of::DatabaseBusy,
        Of::DatabaseLocked,
        Of::DiskFull,
        Of::OutOfMemory,
        Of::PermissionDenied,
        Of::ReadOnly,
        Of::SystemIoFailure,
    ];
    error.sqlite_error_code().is_some_and(|code| !others.contains(&code))
}

fn failed(place: &Path, error: &Error) -> Failure {
    Failure::new(Code::DiskFailed, format!("the index {} cannot be used: {error}", place.display()))
        .hint("it can be deleted: it is made anew")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::super::testing::{collection, store};
    use super::*;
    use crate::model::collection::DocumentKey;

    fn indexed() -> Collection {
        let table = |name: &str, each: &str, columns: &[(&str, &str)]| IndexTable {
            name: name.to_owned(),
            each: IndexPath::parse(each),
            columns: columns.iter().map(|(name, path)| ((*name).to_owned(), IndexPath::parse(path))).collect(),
        };
        let index = vec![
            table("note", "", &[("slug", "slug"), ("tags", "tags")]),
            table("vote", "rounds.votes", &[("who", "voter.name"), ("points", "points")]),
        ];
        Collection { index, ..collection("data/{slug}.yaml") }
    }

    const FIRST: &str = "slug: a\ntags: [x]\nrounds:\n- votes: [{voter: {name: Ann}, points: 2}, {points: 3}]\n- votes: []\n- votes: [{voter: {name: Bob}, points: 0.5}]\n";

    fn ask(store: &Store, sql: &str) -> (Value, Vec<UnreadableDocument>) {
        let answer = store.query(&[indexed()], &DocumentKey::new(), sql, &[], &[]).unwrap();
        (json!(answer.rows), answer.broken)
    }

    const ALL: &str = "SELECT v.who, v.points, n.tags, v.document FROM vote v JOIN note n USING (document) ORDER BY 2";

    #[test]
    fn documents_are_asked_by_what_stands_in_their_lists() {
        let (folder, store) = store();
        assert_eq!(ask(&store, ALL), (json!([]), vec![]));
        fs::create_dir(folder.path().join("data")).unwrap();
        fs::write(folder.path().join("data/a.yaml"), FIRST).unwrap();
        let path = "data/a.yaml";
        let expected = json!([["Bob", 0.5, "[\"x\"]", path], ["Ann", 2, "[\"x\"]", path], [null, 3, "[\"x\"]", path]]);
        assert_eq!(ask(&store, ALL), (expected, vec![]));
        let refused = store.query(&[indexed()], &DocumentKey::new(), "DELETE FROM vote", &[], &[]).unwrap_err();
        assert_eq!(refused.code, Code::PermissionRefused);
        assert_eq!(fs::read_to_string(folder.path().join(".nietz/index/.gitignore")).unwrap(), "*\n");
    }

    #[test]
    fn processes_that_ask_at_once_all_get_the_whole() {
        let (folder, _) = store();
        fs::create_dir(folder.path().join("data")).unwrap();
        for number in 0..60 {
            let text = FIRST.replace("slug: a", &format!("slug: n{number}"));
            fs::write(folder.path().join(format!("data/n{number}.yaml")), text).unwrap();
        }
        thread::scope(|scope| {
            for _ in 0..4 {
                // Each thread has a connection of its own, as a process has.
                let store = Store::new(folder.path()).unwrap();
                scope.spawn(move || assert_eq!(ask(&store, "SELECT count(*) FROM vote"), (json!([[180]]), vec![])));
            }
        });
    }

    #[test]
    fn the_index_follows_its_files_and_survives_its_own_loss() {
        let (folder, store) = store();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("data")).unwrap();
        fs::write(path("data/a.yaml"), FIRST).unwrap();
        fs::write(path("data/b.yaml"), "slug: [\n").unwrap();
        let count = |store: &Store| ask(store, "SELECT count(*) FROM vote").0[0][0].clone();
        let (rows, broken) = ask(&store, "SELECT slug FROM note");
        assert_eq!(rows, json!([["a"]]));
        assert!(broken.len() == 1 && broken[0].path == "data/b.yaml", "{broken:?}");
        // Written at once and with the same length: only reading the file again shows the change.
        fs::write(path("data/a.yaml"), FIRST.replace("0.5", "9.5")).unwrap();
        assert_eq!(ask(&store, "SELECT max(points) FROM vote").0, json!([[9.5]]));
        fs::write(path("data/b.yaml"), FIRST.replace("slug: a", "slug: b")).unwrap();
        assert_eq!(count(&store), 6);
        fs::remove_file(path("data/a.yaml")).unwrap();
        assert_eq!(count(&store), 3);
        let files: Vec<PathBuf> =
            fs::read_dir(path(".nietz/index")).unwrap().map(|entry| entry.unwrap().path()).collect();
        let index = files.iter().find(|file| file.extension().is_some_and(|ending| ending == "db")).unwrap();
        fs::write(index, "no database at all, and longer than its head").unwrap();
        assert_eq!(count(&store), 3);
        fs::remove_dir_all(path(".nietz/index")).unwrap();
        assert_eq!(count(&store), 3);
    }

    /// An index that somebody else made: with a trigger, with a view in place of a table, or a link to another database.
    #[test]
    fn what_an_index_brings_along_is_never_run() {
        let (folder, store) = store();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("data")).unwrap();
        fs::write(path("data/a.yaml"), FIRST).unwrap();
        let count = || ask(&store, "SELECT count(*) FROM vote").0[0][0].clone();
        assert_eq!(count(), 3);
        let made = fs::read_dir(path(".nietz/index")).unwrap().map(|entry| entry.unwrap().path());
        let index = made.into_iter().find(|file| file.extension().is_some_and(|ending| ending == "db")).unwrap();
        let other = path("other.db");
        Connection::open(&other).unwrap().execute_batch("CREATE TABLE cookies (name TEXT)").unwrap();
        for (number, spoil) in [
            "CREATE TRIGGER t AFTER INSERT ON vote BEGIN INSERT INTO note VALUES ('x', 'x', 'x'); END",
            "CREATE TRIGGER t BEFORE DELETE ON \" files\" BEGIN SELECT RAISE(ABORT, 'no'); END",
            "CREATE VIEW seen AS SELECT * FROM vote",
            "DROP TABLE vote; CREATE VIEW vote AS SELECT 1 AS document, 2 AS who, 3 AS points",
            "ALTER TABLE vote ADD COLUMN more",
        ]
        .into_iter()
        .enumerate()
        {
            Connection::open(&index).unwrap().execute_batch(spoil).unwrap();
            fs::write(path("data/b.yaml"), FIRST.replace("slug: a", &format!("slug: b # {number}"))).unwrap();
            assert_eq!(count(), 6, "{spoil}");
            assert_eq!(ask(&store, "SELECT count(*) FROM note").0, json!([[2]]), "{spoil}");
        }
        fs::remove_file(&index).unwrap();
        std::os::unix::fs::symlink(&other, &index).unwrap();
        assert_eq!(count(), 6);
        assert!(!fs::symlink_metadata(&index).unwrap().is_symlink());
        let tables: i64 = Connection::open(&other)
            .unwrap()
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .unwrap();
        assert_eq!(tables, 1, "another database was written");
    }
}
