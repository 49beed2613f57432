//! A council of a team: begun on one machine, asked on a second one, answered on a third, and taken to its end on a fourth, after the
//! first two were lost.

use std::time::Duration;

use super::hosts::{expire, on, status};
use crate::council::model::Brain;
use crate::support::env::Env;
use crate::support::model_server::{Gate, ModelServer};
use crate::support::postgres::{self, Database};
use crate::support::process::Running;

const RUN: &str = "council-1";

fn worker(env: &Env) -> Running {
    let mut running = env.nietz(["worker"]).in_a_group().patient().spawn();
    running.close();
    let said = running.line();
    assert!(said.contains("takes runs"), "{said}");
    running
}

/// Ends a worker and all that it has started, as when the machine is lost.
fn lose(worker: Running) {
    let pid = worker.id();
    let children = std::process::Command::new("pgrep").args(["-P", &pid.to_string()]).output().expect("it is there");
    worker.kill();
    for child in String::from_utf8_lossy(&children.stdout).lines() {
        std::process::Command::new("kill").args(["-KILL", child]).stderr(std::process::Stdio::null()).status().ok();
    }
}

fn until(database: &Database<'_>, wanted: &[&str]) -> String {
    loop {
        let now = status(database, RUN);
        if wanted.contains(&now.as_str()) {
            return now;
        }
        assert!(!["failed", "stuck", "cancelled"].contains(&now.as_str()), "{now}");
        std::thread::yield_now();
    }
}

#[test]
fn a_council_is_begun_asked_answered_and_finished_on_four_machines() {
    let Some(database) = postgres::database() else { return };
    database.session().get("SELECT nietz.sign(1, 'folder', '[\"*\"]')");
    let gate = Gate::default();
    let held = gate.clone();
    let brain = Brain {
        rounds: vec![vec![
            ("Which deadline binds the migration?", "None before June"),
            ("Who pays for outages today?", ""),
        ]],
        ..Brain::default()
    };
    let first = std::sync::atomic::AtomicBool::new(true);
    // The first call of the first machine is never answered.
    let models = ModelServer::start(move |request| match first.swap(false, std::sync::atomic::Ordering::SeqCst) {
        true => brain.answer(request).held_by(&held),
        false => brain.answer(request),
    });
    let machine = || on(&database, Env::with(&models)).var("NIETZ_RUN", RUN);
    let (a, b, c, d) = (machine(), machine(), machine(), machine());

    // A: begun, and lost in the middle of its first call.
    let request = "Should we split billing into its own service this quarter?";
    let queued =
        a.nietz(["run", "--queue", "--seed", "1", "--model", "openai/test", "council", request, "--no-pause"]).go();
    assert_eq!(queued.code, Some(0), "{queued:?}");
    let on_a = worker(&a);
    assert!(models.wait_for_calls(1, Duration::from_secs(60)), "its first call came");
    lose(on_a);
    gate.open();
    expire(&database, RUN);

    // B: goes on, asks, and is lost.
    let on_b = worker(&b);
    until(&database, &["waiting"]);
    lose(on_b);
    let calls = models.calls();

    // C: sees what is asked and answers; nobody works now.
    let inbox = c.nietz(["inbox", "--json"]).go().exits(0);
    assert!(inbox.stdout.contains(RUN) && inbox.stdout.contains("Which deadline binds"), "{inbox:?}");
    c.nietz(["answer", RUN, "None before June"]).go().exits(0);
    let second = c.nietz(["answer", RUN, "Never mind"]).go();
    assert_ne!(second.code, Some(0), "whoever answers second is told: {second:?}");
    assert_eq!((status(&database, RUN).as_str(), models.calls()), ("queued", calls));

    // D: takes it to its end; C answers what it asks on the way.
    let on_d = worker(&d);
    while until(&database, &["waiting", "done"]) == "waiting" {
        c.nietz(["answer", RUN, "The shop does"]).go();
    }
    on_d.terminate();
    on_d.end().exits(0);
    let verified = d.nietz(["verify", RUN]).go();
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let report = c.nietz(["report", RUN, "--markdown"]).go().exits(0);
    assert!(report.stdout.contains("None before June"), "{report:?}");
    eprintln!("{}\n{}", inbox.stdout, verified.stdout);
    let workers = database.session().get(&format!(
        "SELECT count(DISTINCT l.claim) FROM nietz.line l JOIN nietz.run r ON r.id = l.run WHERE r.name = '{RUN}' AND l.claim > 0"
    ));
    assert!(workers.parse::<u32>().is_ok_and(|workers| workers >= 3), "three machines have written: {workers}");
}
