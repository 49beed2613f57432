//! Machines of a team, for tests: each an environment of its own, all with one store.

use std::collections::BTreeMap;

use nietz::model::digest::Digest;
use serde_json::Value;

use crate::support::env::{Env, RUN};
use crate::support::journal::Journal;
use crate::support::model_server::ModelServer;
use crate::support::postgres::Database;

/// Gives a machine the team's store.
pub(crate) fn on(database: &Database<'_>, env: Env) -> Env {
    env.var("NIETZ_STORE", &database.url()).var("NIETZ_STORE_WORKSPACE", "team")
}

/// A machine with this flow and a service of models.
pub(crate) fn host(database: &Database<'_>, server: &ModelServer, flow: (&str, &str)) -> Env {
    on(database, Env::with(server).flow(flow.0, flow.1))
}

/// The journal of a run, whose digests are looked at on the way; by its name.
pub(crate) fn journal(database: &Database<'_>, run: &str) -> Journal {
    let rows = database.session().get(&format!(
        "SELECT l.body FROM nietz.line l JOIN nietz.run r ON r.id = l.run WHERE r.name = '{run}' ORDER BY l.seq"
    ));
    let mut prev = String::new();
    let mut lines: Vec<Value> = Vec::new();
    for (at, row) in rows.lines().enumerate() {
        let value: Value = serde_json::from_str(row).unwrap_or_else(|error| panic!("{row}: {error}"));
        let body = row.rsplit_once(",\"sum\":").expect("each line has its digest").0;
        assert_eq!(value["seq"], at + 1, "{run}");
        assert_eq!(value["prev"], prev.as_str(), "{run}: line {}", at + 1);
        assert_eq!(value["sum"], Digest::of(body.as_bytes()).to_string(), "{run}: line {}", at + 1);
        prev = value["sum"].as_str().unwrap_or_default().to_owned();
        lines.push(value);
    }
    Journal { lines }
}

/// The documents of the workspace by scope and path, with their texts, or their rows.
pub(crate) fn documents(database: &Database<'_>) -> BTreeMap<String, String> {
    let rows = database.session().get(
        "SELECT scope || ':' || path, coalesce(encode(d.body, 'escape'), (SELECT string_agg(r.body, E'\\n' ORDER BY r.at) \
         FROM nietz.document_row r WHERE r.workspace = d.workspace AND r.scope = d.scope AND r.path = d.path)) \
         FROM nietz.document d WHERE workspace = 1 ORDER BY 1",
    );
    let mut found = BTreeMap::new();
    let mut name = String::new();
    for row in rows.lines() {
        match row.split_once('|').filter(|(name, _)| name.contains(':') && !name.contains(' ')) {
            Some((path, text)) => {
                name = path.to_owned();
                found.insert(name.clone(), text.to_owned());
            }
            None => found.entry(name.clone()).or_default().push_str(&format!("\n{row}")),
        }
    }
    found
}

/// Lets the time pass that a run is held for.
pub(crate) fn expire(database: &Database<'_>, run: &str) {
    database.session().get(&format!(
        "SELECT count(*) FROM nietz.run r, pgmq.set_vt(r.queue, r.message, 0) WHERE r.name = '{run}' AND r.message IS NOT NULL"
    ));
}

pub(crate) fn status(database: &Database<'_>, run: &str) -> String {
    database.session().get(&format!("SELECT status FROM nietz.run WHERE name = '{run}'"))
}

/// The run of a test, unless it says another.
pub(crate) const R1: &str = RUN;
