//! The promise: the parts of a run are runs of their own, which whichever worker is free does; each ends once, and the run goes on when
//! they are over, whoever is killed.

use std::time::Duration;

use super::hosts::{expire, journal, on, status};
use crate::cli::children::{self, service, steps};
use crate::support::env::Env;
use crate::support::kills::points;
use crate::support::model_server::{Gate, ModelServer};
use crate::support::postgres::{Database, shared};
use crate::support::process::Running;

const LONG: Duration = Duration::from_secs(120);

pub(super) struct Team<'a> {
    pub(super) database: Database<'a>,
    pub(super) server: ModelServer,
}

impl<'a> Team<'a> {
    pub(super) fn new(gate: Option<Gate>) -> Option<Team<'a>> {
        let database = shared()?.database();
        database.session().get("SELECT nietz.sign(1, 'folder', '[\"*\"]')");
        Some(Team { database, server: service(gate) })
    }

    pub(super) fn machine(&self) -> Env {
        on(&self.database, children::env(&self.server))
    }

    pub(super) fn queue(&self, env: &Env, words: &[&str]) {
        let call = env.nietz(["run", "--queue", "--seed", "1", "--model", "openai/test", "whole"]);
        call.args(words.iter().copied()).var("NIETZ_RUN", "r1").go().exits(0);
    }

    pub(super) fn worker(&self, env: &Env, more: &[&str]) -> Running {
        let mut running = env.nietz(["worker"]).args(more.iter().copied()).patient().spawn();
        running.close();
        let said = running.line();
        assert!(said.contains("takes runs"), "{said}");
        running
    }

    pub(super) fn ask(&self, sql: &str) -> String {
        self.database.session().get(sql)
    }

    pub(super) fn until(&self, sql: &str, wanted: &str) {
        while self.ask(sql) != wanted {
            std::thread::yield_now();
        }
    }

    /// Waits for the end, and checks that each run has one, and that the session's result is that of its parts.
    pub(super) fn check(&self, env: &Env) {
        self.until("SELECT status FROM nietz.run WHERE name = 'r1'", "done");
        let names = self.ask("SELECT name FROM nietz.run ORDER BY id");
        assert_eq!(names.lines().count(), 4, "{names}");
        for name in names.lines() {
            let lines = journal(&self.database, name).lines;
            let ends = lines.iter().filter(|line| line["is"]["end"]["status"] == "done").count();
            assert_eq!((ends, status(&self.database, name).as_str()), (1, "done"), "{name}");
            env.nietz(["verify", name]).go().exits(0);
        }
        let whole = journal(&self.database, "r1").lines;
        let result = &whole.last().expect("it has lines")["is"]["end"]["result"];
        for part in result.as_array().into_iter().flatten() {
            let child = journal(&self.database, part[0].as_str().expect("a name")).lines;
            assert_eq!(child.last().expect("it has lines")["is"]["end"]["result"], part[1]);
        }
        assert_eq!(self.ask("SELECT count(*) FROM pgmq.q_nietz_1"), "0", "no message is left");
    }

    pub(super) fn expire_all(&self) {
        for name in self.ask("SELECT name FROM nietz.run WHERE status = 'running'").lines() {
            expire(&self.database, name);
        }
    }
}

pub(super) fn end(worker: Running) {
    worker.terminate();
    worker.end().exits(0);
}

#[test]
fn several_machines_share_one_session() {
    let gate = Gate::default();
    let Some(team) = Team::new(Some(gate.clone())) else { return };
    let (one, other) = (team.machine(), team.machine());
    team.queue(&one, &[]);
    let workers = [team.worker(&one, &[]), team.worker(&other, &[])];
    // Each does one thing at a time, and the run itself is none of them.
    team.until(
        "SELECT count(DISTINCT worker), count(*) FROM nietz.run WHERE parent IS NOT NULL AND status = 'running'",
        "2|2",
    );
    assert_eq!(status(&team.database, "r1"), "waiting");
    assert!(team.server.wait_for_calls(4, LONG), "two parts are in their second step");
    gate.open();
    team.check(&one);
    workers.into_iter().for_each(end);
    assert!(steps(&team.server).values().all(|times| *times == 1), "{:?}", steps(&team.server));
}

#[test]
fn a_machine_that_is_lost_loses_no_part() {
    let gate = Gate::default();
    let Some(team) = Team::new(Some(gate.clone())) else { return };
    let (one, other) = (team.machine(), team.machine());
    team.queue(&one, &[]);
    let lost = team.worker(&one, &["--parallel", "4"]);
    assert!(team.server.wait_for_calls(6, LONG), "three parts are in their second step");
    super::workers::lose(lost);
    team.expire_all();
    gate.open();
    let worker = team.worker(&other, &[]);
    team.check(&other);
    end(worker);
    assert_eq!(steps(&team.server).values().sum::<usize>(), 12, "what was under way is asked again, and nothing else");
}

#[test]
fn processes_killed_at_every_line_come_to_the_same_end() {
    let lines = 12;
    for line in points(lines, 4) {
        let Some(team) = Team::new(None) else { return };
        let asks = team.machine();
        team.queue(&asks, &[]);
        let machine = team.machine().var("NIETZ_FAULT", &format!("kill@{line}"));
        let worker = team.worker(&machine, &["--parallel", "2"]);
        while status(&team.database, "r1") != "done" {
            // A process that is dead is missed at once.
            if super::workers::children(worker.id()).is_empty() {
                team.expire_all();
            }
        }
        team.check(&asks);
        end(worker);
        let more: Vec<_> = steps(&team.server).into_iter().filter(|(_, times)| *times > 2).collect();
        assert!(more.is_empty(), "line {line}: {more:?}");
    }
}

#[test]
fn cancelling_the_session_cancels_its_parts() {
    let gate = Gate::default();
    let Some(team) = Team::new(Some(gate.clone())) else { return };
    let one = team.machine();
    team.queue(&one, &[]);
    let worker = team.worker(&one, &["--parallel", "4"]);
    assert!(team.server.wait_for_calls(6, LONG), "three parts are in their second step");
    one.nietz(["cancel", "r1"]).go().exits(0);
    assert_eq!(team.ask("SELECT string_agg(DISTINCT status, ',') FROM nietz.run"), "cancelled");
    while !super::workers::children(worker.id()).is_empty() {
        std::thread::yield_now();
    }
    gate.open();
    end(worker);
    assert_eq!(steps(&team.server).len(), 6, "none of them went on");
}

#[test]
fn a_part_that_asks_is_answered_from_anywhere_and_one_in_front_waits_for_its_parts() {
    let Some(team) = Team::new(None) else { return };
    let (one, other) = (team.machine(), team.machine());
    let worker = team.worker(&other, &["--parallel", "2"]);
    let call = one.run(["whole", "--asks"]).patient();
    let running = call.var("NIETZ_RUN", "r1").spawn();
    for _ in 0..3 {
        let waiting = "SELECT name FROM nietz.run WHERE status = 'waiting' AND jsonb_array_length(questions) > 0 ORDER BY id LIMIT 1";
        while team.ask(waiting).is_empty() {
            std::thread::yield_now();
        }
        let child = team.ask(waiting);
        other.nietz(["answer", &child, "apples"]).go().exits(0);
        team.until(&format!("SELECT status IN ('waiting', 'queued') FROM nietz.run WHERE name = '{child}'"), "f");
    }
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    team.check(&one);
    end(worker);
    assert!(steps(&team.server).values().all(|times| *times == 1), "{:?}", steps(&team.server));
}
