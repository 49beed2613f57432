//! The promise: whoever is stopped before the last line of a run, for longer than the run is held, wakes into a run that somebody else has
//! finished. It writes nothing, it notices, and the run has one end.

use super::children::{Team, end};
use super::hosts::{expire, journal, status};
use super::workers::children;
use crate::support::process::Running;

/// How many lines a run of `part` has that a worker does: each has as many.
fn lines_of_a_run(team: &Team<'_>) -> u64 {
    let env = team.machine();
    let worker = team.worker(&env, &[]);
    queue(team, "reference", 1);
    team.until("SELECT status FROM nietz.run WHERE name = 'reference'", "done");
    end(worker);
    journal(&team.database, "reference").lines.len() as u64
}

fn queue(team: &Team<'_>, run: &str, number: u8) {
    let env = team.machine();
    let call = env.nietz(["run", "--queue", "--seed", "1", "--model", "openai/test", "part", &number.to_string()]);
    call.var("NIETZ_RUN", run).go().exits(0);
}

fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
}

fn wake(pid: u32) {
    std::process::Command::new("kill").args(["-CONT", &pid.to_string()]).status().expect("it is on every Debian");
}

/// Reads what a worker says, up to a line with this in it.
fn heard(worker: &mut Running, part: &str) -> String {
    loop {
        let said = worker.line();
        assert!(!said.is_empty(), "the worker has ended before it said {part:?}");
        if said.contains(part) {
            return said;
        }
    }
}

#[test]
fn a_worker_that_is_stopped_before_the_last_line_finds_the_run_ended_by_another() {
    let Some(team) = Team::new(None) else { return };
    let last = lines_of_a_run(&team);
    let (one, other) = (team.machine().var("NIETZ_FAULT", &format!("stop@{last}")), team.machine());
    let calls = team.server.chats();
    let mut first = team.worker(&one, &[]);
    queue(&team, "r1", 2);
    let process = loop {
        if let Some(pid) = children(first.id()).into_iter().find(|pid| is_stopped(*pid)) {
            break pid;
        }
        std::thread::yield_now();
    };
    // The machine is asleep as a whole: the process of the run, and the worker that says that it lives.
    first.freeze();
    assert_eq!(
        (journal(&team.database, "r1").lines.len() as u64, status(&team.database, "r1").as_str()),
        (last - 1, "running")
    );
    expire(&team.database, "r1");
    let second = team.worker(&other, &[]);
    team.until("SELECT status FROM nietz.run WHERE name = 'r1'", "done");
    end(second);
    let before = journal(&team.database, "r1").lines;

    wake(process);
    first.thaw();
    // It is not told as this worker's doing.
    heard(&mut first, "r1: taken");
    let said = heard(&mut first, "r1: ");
    assert!(said.contains("fenced"), "{said}");
    while !children(first.id()).is_empty() {
        std::thread::yield_now();
    }
    first.terminate();
    first.end().exits(0);
    assert_eq!(journal(&team.database, "r1").lines, before, "it has written nothing");
    let ends = before.iter().filter(|line| line["is"]["end"]["status"] == "done").count();
    assert_eq!((ends, status(&team.database, "r1").as_str()), (1, "done"));
    assert_eq!(team.server.chats() - calls, 3, "nothing is asked twice");
    assert_eq!(team.ask("SELECT count(*) FROM pgmq.q_nietz_1"), "0");
    other.nietz(["verify", "r1"]).go().exits(0);
}

/// The same without a worker: the process holds the run by itself.
#[test]
fn a_process_that_is_stopped_before_the_last_line_says_that_the_run_was_taken() {
    let Some(team) = Team::new(None) else { return };
    let env = team.machine();
    env.run(["part", "1"]).var("NIETZ_RUN", "reference").go().exits(0);
    let last = journal(&team.database, "reference").lines.len() as u64;
    let (one, other) = (team.machine().var("NIETZ_FAULT", &format!("stop@{last}")), team.machine());
    let mut first = one.run(["part", "2"]).spawn();
    first.close();
    let pid = first.id();
    first.until(|| is_stopped(pid));
    expire(&team.database, "r1");
    let result = other.resume().go().result();
    let before = journal(&team.database, "r1").lines;
    first.thaw();
    let stale = first.end().exits(1);
    assert_eq!(stale.failure(), "run-taken", "{stale:?}");
    assert_eq!(journal(&team.database, "r1").lines, before, "it has written nothing");
    let ends: Vec<_> = before.iter().filter_map(|line| line["is"]["end"].get("result")).collect();
    assert_eq!(ends, [&result], "the run has one end, which is that of who went on");
    assert_eq!(status(&team.database, "r1"), "done");
    assert_eq!(team.server.chats(), 6, "nothing is asked twice");
}
