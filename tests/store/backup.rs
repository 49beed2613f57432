//! The promise: a backup is Postgres's own. What was restored goes on: runs that wait, that are queued, that were held.

use std::process::Command;

use super::children::{Team, end};
use super::hosts::{journal, on, status};
use crate::cli::children::{self, steps};
use crate::support::postgres::{Database, binaries};

/// As OPERATIONS.md says it, into a database with nothing in it.
fn restored<'a>(from: &Database<'a>) -> Database<'a> {
    let into = from.server.empty_database();
    let tool = |name: &str| Command::new(binaries().expect("a server runs").join(name));
    let dumped =
        tool("pg_dump").args(["-n", "nietz", "-n", "pgmq", &from.url()]).output().expect("it is beside the server");
    assert!(dumped.status.success(), "{}", String::from_utf8_lossy(&dumped.stderr));
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), dumped.stdout).expect("it can be written");
    let mut psql = tool("psql");
    let done = psql
        .args(["-q", "-v", "ON_ERROR_STOP=1", "-f"])
        .arg(file.path())
        .arg(into.url())
        .output()
        .expect("it is there");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    into
}

#[test]
fn runs_of_a_backup_go_on_in_the_database_that_it_was_restored_into() {
    let Some(team) = Team::new(None) else { return };
    let env = team.machine();
    // One waits for an answer, one is done, one is held by a process that was killed, and nobody has taken the last one yet.
    env.run(["part", "1", "--asks"]).go().exits(7);
    env.run(["part", "2"]).var("NIETZ_RUN", "r2").go().exits(0);
    env.run(["part", "3"]).var("NIETZ_RUN", "r3").var("NIETZ_FAULT", "kill@3").go();
    assert_eq!(status(&team.database, "r3"), "running");
    env.nietz(["run", "--queue", "--model", "openai/test", "part", "4"]).var("NIETZ_RUN", "r4").go().exits(0);
    let copy = restored(&team.database);
    let before: Vec<_> = ["r1", "r2", "r3", "r4"].map(|run| journal(&team.database, run).lines).into();

    // The original goes on, and knows nothing of the other.
    env.nietz(["answer", "r1", "pears"]).go().exits(0);
    let there = Team { database: copy, server: children::service(None) };
    let other = on(&there.database, children::env(&there.server));
    other.nietz(["store", "check"]).go().exits(0);
    let inbox = other.nietz(["inbox"]).go().exits(0).stdout;
    assert!(inbox.contains("r1 (part): waiting") && inbox.contains("More for 1?"), "{inbox}");
    other.nietz(["answer", "r1", "apples"]).go().exits(0);
    there.expire_all();
    let worker = there.worker(&other, &["--parallel", "3"]);
    there.until("SELECT count(*) FROM nietz.run WHERE status = 'done'", "4");
    end(worker);
    for (run, before) in ["r1", "r2", "r3", "r4"].into_iter().zip(before) {
        let after = journal(&there.database, run).lines;
        assert!(after.starts_with(&before), "{run}: a line was lost or written anew");
        other.nietz(["verify", run]).go().exits(0);
    }
    assert!(journal(&there.database, "r1").lines.iter().any(|line| line.to_string().contains("apples")));
    assert_eq!(there.ask("SELECT count(*) FROM pgmq.q_nietz_1"), "0");
    // Of r1 two steps were left, of r3 what its last line says, of r4 all: what was recorded is not asked again.
    let asked = steps(&there.server);
    assert!(asked.values().all(|times| *times == 1), "{asked:?}");
    assert!(!asked.contains_key("1.1") && !asked.keys().any(|step| step.starts_with("2.")), "{asked:?}");
    assert!(!asked.contains_key("3.1"), "{asked:?}");
}
