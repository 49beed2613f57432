//! The promise: members of one council speak on several machines. The machine that the council itself is on is lost in the middle, then one
//! that a member speaks on; the council is the one that it would have been on one machine, and nothing that was recorded is asked again.

use super::children::end;
use super::hosts::{expire, journal, on, status};
use super::workers::lose;
use crate::council::model::Brain;
use crate::council::spread::{asked, is_position, of_one_run, service};
use crate::council::table::{REQUEST, SMALL};
use crate::support::env::Env;
use crate::support::model_server::{Gate, Request};
use crate::support::postgres::{self, Database};
use crate::support::process::Running;

const RUN: &str = "council-1";

/// Whether the moderator is asked who sits in the council.
fn is_selection(request: &Request) -> bool {
    !request.schema()["properties"]["kind"].is_null()
}

/// Starts a worker, and returns it with its name.
fn worker(env: &Env) -> (Running, String) {
    let mut running = env.nietz(["worker"]).patient().spawn();
    running.close();
    let said = running.line();
    let name = said.strip_prefix("worker ").and_then(|rest| rest.split(" takes runs").next());
    let name = name.unwrap_or_else(|| panic!("{said}")).to_owned();
    (running, name)
}

fn until(database: &Database<'_>, sql: &str, wanted: &str) {
    let mut session = database.session();
    while session.get(sql) != wanted {
        let ended = session.get("SELECT count(*) FROM nietz.run WHERE status IN ('failed', 'stuck', 'cancelled')");
        assert_eq!(ended, "0", "while {sql} is not {wanted}");
        std::thread::yield_now();
    }
}

/// Which of these workers has a run, and which run that is.
fn holder(database: &Database<'_>, which: &str, workers: &mut Vec<(Running, String)>) -> (Running, String) {
    let row = database.session().get(&format!("SELECT worker, name FROM nietz.run WHERE {which} ORDER BY id LIMIT 1"));
    let (worker, run) = row.split_once('|').expect("somebody has it");
    let at = workers.iter().position(|(_, name)| name == worker).unwrap_or_else(|| panic!("who is {worker}?"));
    (workers.remove(at).0, run.to_owned())
}

#[test]
fn members_of_one_council_speak_on_several_machines_two_of_which_are_lost() {
    let Some(database) = postgres::database() else { return };
    database.session().get("SELECT nietz.sign(1, 'folder', '[\"*\"]')");
    let (expected, once) = of_one_run(SMALL, |server| Env::with(server).var("NIETZ_RUN", RUN));
    let (chosen, spoken) = (Gate::default(), Gate::default());
    let gates = (chosen.clone(), spoken.clone());
    let models = service(Brain::default(), move |request| {
        let selects = is_selection(request).then(|| gates.0.clone());
        selects.or_else(|| is_position(request).then(|| gates.1.clone()))
    });
    let came = |is: fn(&Request) -> bool| models.requests().iter().filter(|request| is(request)).count();
    let machines: Vec<Env> = (0..4).map(|_| on(&database, Env::with(&models))).collect();
    let asks = &machines[3];
    let words = ["run", "--queue", "--seed", "1", "--model", SMALL, "council", REQUEST, "--no-pause", "--spread"];
    asks.nietz(words).var("NIETZ_RUN", RUN).go().exits(0);
    let mut workers = vec![worker(&machines[0]), worker(&machines[1])];

    // The machine that the council is on is lost while the moderator is asked.
    while came(is_selection) == 0 {
        assert_ne!(status(&database, RUN), "stuck");
    }
    let (lost, _) = holder(&database, &format!("name = '{RUN}'"), &mut workers);
    lose(lost);
    chosen.open();
    expire(&database, RUN);
    workers.push(worker(&machines[2]));

    // Two machines do a member each, and the council is on none of them. One of them is lost.
    let of_members =
        "SELECT count(DISTINCT worker), count(*) FROM nietz.run WHERE parent IS NOT NULL AND status = 'running'";
    until(&database, of_members, "2|2");
    assert_eq!(status(&database, RUN), "waiting");
    while came(is_position) < 2 {
        assert_eq!(status(&database, RUN), "waiting");
    }
    let (lost, member) = holder(&database, "parent IS NOT NULL AND status = 'running'", &mut workers);
    lose(lost);
    spoken.open();
    expire(&database, &member);
    until(&database, &format!("SELECT status FROM nietz.run WHERE name = '{RUN}'"), "done");
    workers.into_iter().for_each(|(worker, _)| end(worker));

    let whole = journal(&database, RUN).lines;
    assert_eq!(whole.last().expect("it has lines")["is"]["end"]["result"], expected);
    let names = database.session().get("SELECT name FROM nietz.run ORDER BY id");
    assert!(names.lines().count() > 7, "{names}");
    for name in names.lines() {
        let ends = journal(&database, name).lines.iter().filter(|line| line["is"]["end"]["status"] == "done").count();
        assert_eq!((ends, status(&database, name).as_str()), (1, "done"), "{name}");
        asks.nietz(["verify", name]).go().exits(0);
    }
    let calls = asked(&models);
    assert!(calls.keys().eq(once.keys()), "what is asked is the same to the letter");
    let again: Vec<usize> = calls.into_values().filter(|times| *times > 1).collect();
    assert_eq!(again, [2, 2], "who sits there, and what that member thinks: both were under way on what was lost");
    let mut session = database.session();
    assert_eq!(session.get("SELECT count(*) FROM pgmq.q_nietz_1"), "0", "no message is left");
}
