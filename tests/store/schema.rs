//! The promise: `nietz store migrate` makes what the scripts say, twice as well as once, from several machines at once.

use std::process::Command;

use super::hosts::on;
use crate::support::env::Env;
use crate::support::postgres::{self, Database};

/// Everything in the database but rows of workspaces, which have names of their own.
fn dump(database: &Database<'_>) -> String {
    let binaries = postgres::binaries().expect("a server runs");
    let printed = Command::new(binaries.join("pg_dump"))
        .args(["--schema-only", "--no-comments", &database.url()])
        .output()
        .expect("it is beside the server");
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    // Newer versions print a key of their own choice.
    let text = String::from_utf8_lossy(&printed.stdout).into_owned();
    text.lines()
        .filter(|line| !line.starts_with("\\restrict") && !line.starts_with("\\unrestrict"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn migrating_makes_what_the_scripts_say_once() {
    let Some(server) = postgres::shared() else { return };
    let (made, reference) = (server.empty_database(), server.database());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| on(&made, Env::new()).nietz(["store", "migrate"]).go().exits(0));
        }
    });
    assert_eq!(dump(&made), dump(&reference));
    let what = "SELECT string_agg(number || name || oldest, ',' ORDER BY number), (SELECT max(version || way) FROM nietz.engine) FROM nietz.migration";
    assert_eq!(made.session().get(what), reference.session().get(what));
    let checked = on(&made, Env::new()).nietz(["store", "check"]).go().exits(0).stdout;
    assert!(checked.contains("pgmq 1.13.0 (script)"), "the queue's version is named: {checked}");
    made.session().get("UPDATE nietz.engine SET version = '1.99.0'");
    let refused = on(&made, Env::new()).nietz(["store", "check"]).go();
    assert!(refused.code != Some(0) && refused.stderr.contains("store-version"), "{refused:?}");
    made.session().get("UPDATE nietz.engine SET version = '1.13.0'; INSERT INTO nietz.migration VALUES (900, '900_later', 900, 'a later one')");
    let refused = on(&made, Env::new()).nietz(["runs"]).go();
    assert!(refused.code != Some(0) && refused.stderr.contains("store-version"), "{refused:?}");
}
