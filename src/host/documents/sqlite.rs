//! What queries and indexes share of SQLite: names, values, and a connection that runs no code of an opened database.

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::types::Value as Cell;
use serde_json::Value;

/// Keeps a connection from running triggers, views and functions that an opened database contains.
pub(super) fn confine(database: &Connection) -> rusqlite::Result<()> {
    for (setting, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
    ] {
        database.set_db_config(setting, on)?;
    }
    Ok(())
}

/// Returns a name quoted for a query.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns a value as SQLite stores it: lists and objects as JSON text, which SQLite's JSON functions can read.
pub(super) fn cell(value: &Value) -> Cell {
    match value {
        Value::Null => Cell::Null,
        Value::Bool(flag) => Cell::Integer(i64::from(*flag)),
        Value::Number(number) => match number.as_i64() {
            Some(number) => Cell::Integer(number),
            None => Cell::Real(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cell::Text(text.clone()),
        Value::Array(_) | Value::Object(_) => Cell::Text(value.to_string()),
    }
}
