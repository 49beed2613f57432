//! The schema: numbered scripts, each run once and in order, and the queue that they use.

use super::Server;
use crate::error::{Code, Failure, Result};

/// A script of the schema.
struct Migration {
    number: i32,
    name: &'static str,
    /// The lowest number that a program must know to work with the schema after it.
    oldest: i32,
    text: &'static str,
}

macro_rules! migrations {
    ($($number:literal $name:literal $oldest:literal),+ $(,)?) => {
        &[$(Migration {
            number: $number, name: $name, oldest: $oldest, text: include_str!(concat!("sql/", $name, ".sql")),
        }),+]
    };
}

const MIGRATIONS: &[Migration] = migrations! {
    1 "001_tables" 1,
    2 "002_rights" 2,
    3 "003_runs" 3,
    4 "004_answers" 4,
    5 "005_documents" 5,
    6 "006_grants" 6,
    7 "007_aside" 7,
};

/// The queue's own script, as its authors have published it, and its version.
const PGMQ: &str = include_str!("sql/pgmq.sql");
const PGMQ_VERSION: &str = "1.12.0";
/// What makes a version of an earlier one, as published, too.
const UPGRADES: &[(&str, &str, &str)] = &[("1.12.0", "1.13.0", include_str!("sql/pgmq--1.12.0--1.13.0.sql"))];
/// What is noted at the queue's schema together with its script: one whose row was not written yet is known by it.
const PGMQ_NOTE: &str = "made by nietz store migrate: pgmq 1.12.0";
/// The versions of the queue that were tried.
const TRIED: [(u64, u64); 2] = [(1, 12), (1, 13)];

/// The number of the schema that this program brings about.
pub(crate) fn newest() -> i32 {
    MIGRATIONS.iter().map(|migration| migration.number).max().unwrap_or_default()
}

/// What stands on the server.
#[derive(Clone, Debug, Default)]
pub(crate) struct SchemaState {
    /// The number of the schema; `None` where there is none.
    pub(crate) number: Option<i32>,
    /// The lowest number that a program must know.
    pub(crate) oldest: i32,
    /// The version of the queue, and how it came there.
    pub(crate) queue: Option<(String, String)>,
    /// The version of the server.
    pub(crate) server: String,
}

impl SchemaState {
    /// Refuses what this program cannot work with.
    ///
    /// # Errors
    ///
    /// `store-version`.
    pub(crate) fn check(&self) -> Result<()> {
        let (known, refused) = (newest(), |message: String| Failure::new(Code::StoreVersion, message));
        match self.number {
            None => Err(refused("there is no schema of nietz on this server yet".to_owned())
                .hint("`nietz store migrate` makes it")),
            Some(number) if known < self.oldest => {
                let message = format!("the store has schema {number}, and this nietz knows schemas up to {known}");
                Err(refused(message).hint("update nietz on this machine"))
            }
            Some(number) if number < known => {
                let message = format!("the store has schema {number}, and this nietz needs {known}");
                Err(refused(message)
                    .hint("`nietz store migrate` brings it up to date; older programs are told when they are too old"))
            }
            Some(_) => self.check_queue(),
        }
    }

    fn check_queue(&self) -> Result<()> {
        let Some((version, way)) = &self.queue else {
            return Err(Failure::new(Code::StoreVersion, "it is not known which version of pgmq this server has")
                .hint("somebody else's script made it: drop the schema pgmq if nothing uses it, then `nietz store migrate`"));
        };
        if is_tried(version).is_some() {
            return Ok(());
        }
        let [(first, second), (third, fourth)] = TRIED;
        let message = format!("pgmq {version} ({way}): this nietz was tried with {first}.{second} to {third}.{fourth}");
        Err(Failure::new(Code::StoreVersion, message)
            .hint("update nietz, or bring the extension to one of these versions"))
    }
}

/// Returns a version of the queue as numbers, if it was tried.
fn is_tried(version: &str) -> Option<(u64, u64, u64)> {
    let mut parts = version.split('.').map(|part| part.parse::<u64>().ok());
    let (first, second) = (parts.next()??, parts.next()??);
    let third = parts.next().flatten().unwrap_or_default();
    TRIED.contains(&(first, second)).then_some((first, second, third))
}

/// Returns a script as one transaction, which fails as a whole where this is not so any more: somebody else may have done it since.
fn once(first: &str, text: &str) -> String {
    format!(
        "BEGIN; SELECT pg_advisory_xact_lock(27, 1);
         DO $check$ BEGIN IF NOT ({first}) THEN RAISE EXCEPTION 'done' USING ERRCODE = '55P03'; END IF; END $check$;
         {text} COMMIT;"
    )
}

impl Server {
    /// Returns what stands on the server.
    ///
    /// # Errors
    ///
    /// `store-unreachable`, `store-refused`.
    pub(crate) fn schema(&self) -> Result<SchemaState> {
        let connection = &self.connection;
        let row = connection.one(
            "SELECT current_setting('server_version'), to_regclass('nietz.migration') IS NOT NULL, to_regclass('nietz.engine') IS NOT NULL",
            &[],
        )?;
        let mut state = SchemaState { server: row.get(0), ..SchemaState::default() };
        if row.get(1) {
            let row = connection.one("SELECT max(number), coalesce(max(oldest), 0) FROM nietz.migration", &[])?;
            (state.number, state.oldest) = (row.get(0), row.get(1));
        }
        if row.get(2) {
            let rows = connection.query(
                "SELECT coalesce((SELECT extversion FROM pg_extension WHERE extname = 'pgmq'), version), way FROM nietz.engine WHERE name = 'pgmq'",
                &[],
            )?;
            state.queue = rows.first().map(|row| (row.get(0), row.get(1)));
        }
        Ok(state)
    }

    /// Refuses a schema that this program cannot work with.
    ///
    /// # Errors
    ///
    /// `store-version`, and those of [`Server::schema`].
    pub(crate) fn check(&self) -> Result<()> {
        self.schema()?.check()
    }

    /// Brings the schema up to date, and returns the names of what was done. Two that do so at once do it once.
    ///
    /// # Errors
    ///
    /// `store-version` if a newer nietz was here or somebody else's queue is, and what the server refuses.
    pub(crate) fn migrate(&self, by: &str) -> Result<Vec<String>> {
        // They take turns; a connection that ends lets the other go on.
        self.connection.query("SELECT pg_advisory_lock(27, 2)", &[])?;
        let done = self.migrate_alone(by);
        let _ = self.connection.query("SELECT pg_advisory_unlock(27, 2)", &[]);
        done
    }

    fn migrate_alone(&self, by: &str) -> Result<Vec<String>> {
        let mut done = Vec::new();
        let before = self.schema()?;
        if before.number.is_some_and(|number| number > newest()) {
            let message =
                format!("the store has schema {}, which a newer nietz made", before.number.unwrap_or_default());
            return Err(Failure::new(Code::StoreVersion, message).hint("update nietz on this machine"));
        }
        let way = self.queue(&before, &mut done)?;
        for migration in
            MIGRATIONS.iter().filter(|migration| before.number.is_none_or(|number| migration.number > number))
        {
            let Migration { number, name, oldest, text } = migration;
            let by = by.replace('\'', "");
            let first = if *number == 1 {
                "to_regclass('nietz.migration') IS NULL".to_owned()
            } else {
                format!("NOT EXISTS (SELECT FROM nietz.migration WHERE number = {number})")
            };
            let text = format!(
                "{text}
                 INSERT INTO nietz.migration (number, name, oldest, by) VALUES ({number}, '{name}', {oldest}, '{by}');"
            );
            if let Err(failure) = self.connection.script(&once(&first, &text)) {
                let _ = self.connection.script("ROLLBACK");
                if self.schema()?.number.is_some_and(|now| now >= *number) {
                    continue;
                }
                return Err(failure.because(format!("at the script {name}")));
            }
            done.push((*name).to_owned());
        }
        if let Some(way) = way {
            self.connection.query(
                "INSERT INTO nietz.engine (name, version, way) VALUES ('pgmq', coalesce((SELECT extversion FROM pg_extension WHERE extname = 'pgmq'), $1), $2)
                 ON CONFLICT (name) DO NOTHING",
                &[&PGMQ_VERSION, &way],
            )?;
        }
        self.upgrade_queue(&mut done)?;
        Ok(done)
    }

    /// Brings a queue that a script has made to the newest version that there is a script for. An extension is its administrator's.
    fn upgrade_queue(&self, done: &mut Vec<String>) -> Result<()> {
        for (from, to, text) in UPGRADES {
            let is_old = |queue: &(String, String)| queue.0 == *from && queue.1 == "script";
            if !self.schema()?.queue.as_ref().is_some_and(is_old) {
                continue;
            }
            let first = format!("EXISTS (SELECT FROM nietz.engine WHERE name = 'pgmq' AND version = '{from}')");
            let text = format!("{text}\n; UPDATE nietz.engine SET version = '{to}' WHERE name = 'pgmq';");
            if let Err(failure) = self.connection.script(&once(&first, &text)) {
                let _ = self.connection.script("ROLLBACK");
                if self.schema()?.queue.as_ref().is_some_and(is_old) {
                    return Err(failure.because(format!("at the script that makes pgmq {to} of {from}")));
                }
                continue;
            }
            done.push(format!("pgmq {to}"));
        }
        Ok(())
    }

    /// Makes the queue where it is not there. Returns how it came there, if that is not noted yet.
    fn queue(&self, before: &SchemaState, done: &mut Vec<String>) -> Result<Option<&'static str>> {
        if before.queue.is_some() {
            return Ok(None);
        }
        let connection = &self.connection;
        let row = connection.one(
            "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'pgmq'),
                    ARRAY(SELECT version FROM pg_available_extension_versions WHERE name = 'pgmq'), to_regclass('pgmq.meta') IS NOT NULL,
                    coalesce(obj_description(to_regnamespace('pgmq'), 'pg_namespace') = $1, false)",
            &[&PGMQ_NOTE],
        )?;
        let (installed, available, there): (bool, Vec<String>, bool) = (row.get(0), row.get(1), row.get(2));
        if installed {
            return Ok(Some("extension"));
        }
        // A migration ended after its script and before the row that says so.
        if there && row.get(3) {
            return Ok(Some("script"));
        }
        if there {
            return Err(Failure::new(
                Code::StoreVersion,
                "somebody else has put pgmq on this server by a script, of a version that is not known",
            )
            .hint(
                "drop the schema pgmq if nothing uses it, or install the extension pgmq; then `nietz store migrate`",
            ));
        }
        // Versions that nobody has tried are passed over.
        let tried = available.into_iter().filter_map(|version| is_tried(&version).map(|number| (number, version)));
        if let Some((_, version)) = tried.max() {
            connection.script(&format!("CREATE EXTENSION pgmq VERSION '{}'", version.replace('\'', "")))?;
            done.push(format!("extension pgmq {version}"));
            return Ok(Some("extension"));
        }
        let script = format!(
            "BEGIN; SELECT pg_advisory_xact_lock(27, 1); {PGMQ}\n; COMMENT ON SCHEMA pgmq IS '{PGMQ_NOTE}'; COMMIT;"
        );
        if let Err(failure) = connection.script(&script) {
            let _ = connection.script("ROLLBACK");
            return Err(failure.because(format!("at the script of pgmq {PGMQ_VERSION}")));
        }
        done.push(format!("pgmq {PGMQ_VERSION}"));
        Ok(Some("script"))
    }
}
