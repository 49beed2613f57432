//! The promise: nietz's functions do the same on each version of the queue that `store check` accepts, and the queue's script is the
//! one that its authors made.

use std::process::Command;

use super::{held, messages, queue, take};
use crate::support::postgres::{self, Database};

/// What makes the newest accepted version of the oldest.
const UPGRADE: &str = include_str!("../samples/store/pgmq--1.12.0--1.13.0.sql");
/// `pgmq.sql` of the crate `pgmq` 0.34.0-alpha.6, whose control file says 1.12.0.
const SCRIPT: &str = "fb58c48626f068d170f37fa012ffbe5aee59ad209e9d3ac742d9dce2f3bb2993";

fn migrated<'a>(database: Database<'a>, upgraded: bool) -> Database<'a> {
    let mut session = database.session();
    for (at, file) in postgres::migrations().iter().enumerate() {
        let sql = std::fs::read_to_string(file).expect("it was listed");
        session.get(&format!("BEGIN; {sql}; COMMIT"));
        if at == 0 && upgraded {
            session.get(&format!("BEGIN; {UPGRADE}; COMMIT"));
        }
    }
    session.get("SELECT nietz.workspace('team', true)");
    database
}

#[test]
fn each_accepted_version_of_the_queue_carries_runs() {
    let Some(server) = postgres::shared() else { return };
    for upgraded in [false, true] {
        let database = migrated(server.empty_database(), upgraded);
        let mut session = database.session();
        let newest = session.get("SELECT count(*) FROM pg_attribute WHERE attname = 'default_partition_length'");
        assert_eq!(newest, if upgraded { "1" } else { "0" }, "it is the version that is meant");
        let (run, claim) = held(&mut session, "r1");
        let parked = format!("SELECT nietz.park({run}, {claim}, 2, '{{wait}}', '[{{\"key\": \"k\"}}]', '{{}}')");
        assert_eq!(session.get(&parked), "t");
        assert_eq!(session.get(&format!("SELECT result FROM nietz.answer({run}, 'k', '1')")), "queued");
        let (_, claim) = take(&mut session, "w1").expect("it goes on");
        assert_eq!(session.get(&format!("SELECT nietz.beat({run}, {claim}, 15)")), "t");
        session.get(&format!("SELECT nietz.release({run}, {claim})"));
        let (_, claim) = take(&mut session, "w1").expect("it goes on");
        session.get(&format!("SELECT nietz.finish({run}, {claim}, 3, '{{end}}', 'done', '{{}}')"));
        queue(&mut session, "r2");
        assert_eq!(session.get("SELECT tag, length, visible FROM nietz.queue_metrics(1)"), "|1|1");
        assert_eq!(messages(&mut session), "1");
    }
}

#[test]
fn the_script_of_the_queue_is_unchanged() {
    let file = &postgres::migrations()[0];
    let printed = Command::new("sha256sum").arg(file).output().expect("it is on every Debian");
    assert!(String::from_utf8_lossy(&printed.stdout).starts_with(SCRIPT), "{}", file.display());
}
