//! The promise: clocks of machines mean nothing. One is an hour ahead and another one an hour behind, and a run has one history.

use std::time::Duration;

use super::hosts::{R1, expire, journal, status};
use super::kills::{machine, with_a_note};
use crate::cli::kill_matrix::{ANSWERS, script};
use crate::support::model_server::{Gate, ModelServer};
use crate::support::postgres::{self, skip};
use crate::support::process::Call;

/// Where Debian's `libfaketime` has its library.
fn library() -> Option<String> {
    let folders = std::fs::read_dir("/usr/lib").ok()?.flatten();
    let found = folders.map(|entry| entry.path().join("faketime/libfaketime.so.1")).find(|path| path.is_file());
    if found.is_none() {
        skip("there is no libfaketime here (apt-get install libfaketime)");
    }
    Some(found?.display().to_string())
}

/// Starts a call on a machine whose clock is off by so much.
fn off(call: Call, library: &str, by: &str) -> Call {
    call.var("LD_PRELOAD", library).var("FAKETIME", by).var("FAKETIME_DONT_FAKE_MONOTONIC", "1")
}

#[test]
fn machines_whose_clocks_are_an_hour_off_take_turns_at_one_run() {
    let (Some(database), Some(library)) = (postgres::database(), library()) else { return };
    with_a_note(&database);
    let gate = Gate::default();
    let hold = gate.clone();
    let models = ModelServer::start(move |request| match request.prompt().starts_with("look") {
        true => script(request).held_by(&hold),
        false => script(request),
    });
    let machine = || machine(&database, &models).without("NIETZ_CLOCK");
    let (ahead, behind, right) = (machine(), machine(), machine());
    let killed = off(ahead.run(["everything"]).stdin(ANSWERS).var("NIETZ_FAULT", "kill@12"), &library, "+1h").go();
    assert_eq!(killed.signal, Some(9), "{killed:?}");
    let first = journal(&database, R1).lines[0]["is"]["open"]["at"].clone();
    let began =
        database.session().get("SELECT to_char(began AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24') FROM nietz.run");
    assert!(!first.as_str().is_some_and(|at| at.starts_with(&began)), "its clock is off: {first} and {began}");
    // Held as long as the server says, whatever time it is on a machine.
    let refused = off(behind.resume().stdin(ANSWERS), &library, "+1h").go();
    assert_eq!(refused.code, Some(1), "{refused:?}");
    expire(&database, R1);
    let mut paused = off(behind.resume().stdin(ANSWERS), &library, "-1h").spawn();
    paused.close();
    assert!(models.wait_for_calls(4, Duration::from_secs(60)), "{} calls came", models.calls());
    paused.freeze();
    expire(&database, R1);
    gate.open();
    right.resume().stdin(ANSWERS).go().result();
    let after = journal(&database, R1).lines;
    paused.thaw();
    assert_ne!(paused.end().code, Some(0));
    assert_eq!(journal(&database, R1).lines, after);
    assert_eq!(status(&database, R1), "done");
}
