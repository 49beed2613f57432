//! The promise, with real workers: whatever is killed, paused or cut off, each run ends once, and nothing that was recorded is called
//! again.

use std::process::Command;

use super::chain::{Calls, FLOW};
use super::hosts::{expire, host, status};
use crate::support::env::Env;
use crate::support::kills::{Chance, points};
use crate::support::model_server::Gate;
use crate::support::postgres::{Database, Server};
use crate::support::process::Running;

/// How many runs a round has, and how many workers.
const RUNS: usize = 5;
const WORKERS: usize = 2;

/// Nothing is held for longer, as on a disk that is full.
const REFUSE_BEATS: &str = "CREATE FUNCTION public.no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
    IF NEW.read_ct = OLD.read_ct AND NEW.vt > clock_timestamp() + interval '1 second' THEN \
    RAISE EXCEPTION 'no' USING ERRCODE = 'disk_full'; END IF; RETURN NEW; END $$; \
    CREATE TRIGGER no BEFORE UPDATE ON pgmq.q_nietz_1 FOR EACH ROW EXECUTE FUNCTION public.no()";
const ACCEPT_BEATS: &str = "DROP FUNCTION public.no() CASCADE";

/// A team with its store, its models and its machines.
struct Team<'a> {
    database: Database<'a>,
    calls: Calls,
}

/// What can happen to it.
#[derive(Clone, Copy, Debug)]
enum Blow {
    /// The worker and all that it started, as when a machine is lost.
    Machine,
    /// The worker alone: the processes that it started go on, and nobody says that they live.
    Worker,
    /// The processes of runs alone.
    Processes,
    /// The worker is stopped for longer than it holds a run, and wakes.
    PauseWorker,
    /// So are the processes of runs, with the worker.
    PauseMachine,
    /// The worker is asked to end, and another one comes.
    Terminate,
    /// The server is killed and comes back with runs held.
    Server,
    /// All connections are broken.
    Connections,
    /// Saying that a run lives fails, until it is too late.
    Beats,
}

const BLOWS: [Blow; 9] = [
    Blow::Machine,
    Blow::Worker,
    Blow::Processes,
    Blow::PauseWorker,
    Blow::PauseMachine,
    Blow::Terminate,
    Blow::Server,
    Blow::Connections,
    Blow::Beats,
];

impl<'a> Team<'a> {
    fn new(server: &'a Server) -> Team<'a> {
        Team::with(server, None)
    }

    fn with(server: &'a Server, gate: Option<Gate>) -> Team<'a> {
        let database = server.database();
        // What a person has signed off.
        database.session().get("SELECT nietz.sign(1, 'folder', '[\"*\"]')");
        let calls = Calls::held(&database.url(), gate);
        Team { database, calls }
    }

    fn machine(&self) -> Env {
        host(&self.database, &self.calls.server, FLOW)
    }

    fn queue(&self, env: &Env, run: &str) {
        let call = env.nietz(["run", "--queue", "--seed", "1", "--model", "openai/test", "chain", run]);
        call.var("NIETZ_RUN", run).go().exits(0);
    }

    /// Starts a worker, which has said that it takes runs when this returns.
    fn worker(&self, env: &Env, more: &[&str]) -> Running {
        let mut running = env.nietz(["worker"]).args(more.iter().copied()).patient().spawn();
        running.close();
        let said = running.line();
        assert!(said.contains("takes runs"), "{said}");
        running
    }

    /// Answers what is asked, whoever asks it.
    fn answer(&self) {
        // While the server is away nobody answers.
        let Ok(mut session) = crate::support::postgres::Session::open(&self.database.url()) else { return };
        drop(session.say(
            "SELECT nietz.answer(id, questions->0->>'key', '\"yes\"') FROM nietz.run \
             WHERE status = 'waiting' AND jsonb_array_length(questions) > 0",
        ));
    }

    fn are_over(&self, runs: &[String]) -> bool {
        let Ok(mut session) = crate::support::postgres::Session::open(&self.database.url()) else { return false };
        let names = runs.join("','");
        session.say(&format!("SELECT count(*) FROM nietz.run WHERE name IN ('{names}') AND status = 'done'"))
            == Ok(runs.len().to_string())
    }

    fn strike(&self, blow: Blow, env: &Env, worker: Running) -> (Running, usize) {
        let pid = worker.id();
        let processes = children(pid);
        let all = |name: &str, pids: &[u32]| pids.iter().for_each(|pid| signal(*pid, name));
        match blow {
            Blow::Machine => {
                all("KILL", &processes);
                worker.kill();
                self.expire_all();
                return (self.worker(env, &["--parallel", "3"]), 0);
            }
            Blow::Worker => {
                worker.kill();
                self.expire_all();
                return (self.worker(env, &["--parallel", "3"]), processes.len());
            }
            Blow::Processes => {
                all("KILL", &processes);
                // What nobody does any more is missed.
                self.expire_all();
            }
            Blow::PauseWorker | Blow::PauseMachine => {
                let paused = if matches!(blow, Blow::PauseMachine) { processes.clone() } else { Vec::new() };
                worker.freeze();
                all("STOP", &paused);
                self.expire_all();
                // Somebody else may have taken some of them by now, or not.
                let before = self.calls.count();
                (0..200).take_while(|_| self.calls.count() < before + 3).for_each(|_| self.answer());
                all("CONT", &paused);
                worker.thaw();
                return (worker, processes.len());
            }
            Blow::Terminate => {
                worker.terminate();
                worker.end();
                return (self.worker(env, &["--parallel", "3"]), 0);
            }
            Blow::Server => {
                self.database.server.tell("kill");
                self.database.server.tell("start");
            }
            Blow::Connections => {
                let others = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() \
                              AND datname = current_database()";
                drop(self.database.session().say(others));
            }
            Blow::Beats => {
                // The server refuses to hold anything for longer, and its time passes.
                self.database.session().get(REFUSE_BEATS);
                self.expire_all();
                (0..20).for_each(|_| self.answer());
                self.database.session().get(ACCEPT_BEATS);
                return (worker, processes.len());
            }
        }
        (worker, 0)
    }

    fn expire_all(&self) {
        let all =
            "SELECT count(*) FROM pgmq.q_nietz_1 q, pgmq.set_vt('nietz_1', q.msg_id, 0) WHERE q.vt > clock_timestamp()";
        // A queue that nobody has used is not there.
        drop(self.database.session().say(all));
    }
}

/// Ends a worker and all that it has started, as when a machine is lost.
pub(super) fn lose(worker: Running) {
    let processes = children(worker.id());
    worker.kill();
    processes.iter().for_each(|pid| signal(*pid, "KILL"));
}

pub(super) fn children(pid: u32) -> Vec<u32> {
    let printed = Command::new("pgrep").args(["-P", &pid.to_string()]).output().expect("it is on every Debian");
    String::from_utf8_lossy(&printed.stdout).lines().filter_map(|line| line.parse().ok()).collect()
}

fn signal(pid: u32, name: &str) {
    Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .stderr(std::process::Stdio::null())
        .status()
        .ok();
}

/// One round: runs, workers, and blows drawn by chance. Returns what is wrong.
fn round(server: &Server, seed: u64) -> Vec<String> {
    let team = Team::new(server);
    let machines: Vec<Env> = (0..WORKERS).map(|_| team.machine()).collect();
    let asks = team.machine();
    let runs: Vec<String> = (1..=RUNS).map(|at| format!("r{at}")).collect();
    runs.iter().for_each(|run| team.queue(&asks, run));
    let mut workers: Vec<Option<Running>> =
        machines.iter().map(|env| Some(team.worker(env, &["--parallel", "3"]))).collect();
    let mut chance = Chance(seed);
    let (mut paused, mut told) = (0, Vec::new());
    for _ in 0..4 {
        // A few calls further on, wherever that is.
        let wanted = team.calls.count() + 1 + usize::try_from(chance.below(4)).expect("it is small");
        while team.calls.count() < wanted && !team.are_over(&runs) {
            team.answer();
        }
        let at = usize::try_from(chance.below(WORKERS as u64)).expect("it is small");
        let blow = BLOWS[usize::try_from(chance.below(BLOWS.len() as u64)).expect("it is small")];
        told.push(blow);
        let worker = workers[at].take().expect("each has one");
        let (worker, more) = team.strike(blow, &machines[at], worker);
        workers[at] = Some(worker);
        paused += more;
    }
    let mut rounds = 0_u32;
    while !team.are_over(&runs) {
        team.answer();
        rounds += 1;
        // Whom nobody misses by a time that passes in a test is missed now, and so are those who live: on a busy machine such a one
        // may be on its way to a model, as a paused one is.
        if rounds.is_multiple_of(400) {
            paused += workers.iter().flatten().map(|worker| children(worker.id()).len()).sum::<usize>();
            team.expire_all();
        }
        let stuck = "SELECT count(nietz.requeue(id)) FROM nietz.run WHERE status IN ('stuck', 'failed')";
        if rounds.is_multiple_of(100) {
            drop(crate::support::postgres::Session::open(&team.database.url()).map(|mut session| session.say(stuck)));
        }
    }
    for worker in workers.into_iter().flatten() {
        worker.terminate();
        worker.end();
    }
    let mut wrong = team.calls.judge(&team.database, &runs, paused);
    let mut session = team.database.session();
    for (what, sql) in [
        ("messages are left", "SELECT count(*) FROM pgmq.q_nietz_1"),
        ("runs have failed", "SELECT count(*) FROM nietz.line WHERE body LIKE '%\"status\":\"failed\"%'"),
    ] {
        let count = session.get(sql);
        if count != "0" {
            wrong.push(format!("{count} {what}"));
        }
    }
    if !wrong.is_empty() {
        wrong.push(format!("{told:?}"));
    }
    wrong
}

#[test]
fn runs_of_real_workers_end_once_whatever_happens() {
    let Some(server) = Server::start(&[]) else { return };
    let number = |name: &str, usual: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual);
    let (wanted, first) = (number("NIETZ_TEST_RUNS", 30), number("NIETZ_TEST_SEED", 1));
    for seed in first..first + wanted.div_ceil(RUNS as u64) {
        let wrong = round(&server, seed);
        assert!(wrong.is_empty(), "round {seed}: {wrong:#?}");
    }
}

/// A worker whose processes are killed at the same line each time goes on behind it the next time.
#[test]
fn a_worker_killed_at_every_line_takes_the_run_to_its_end() {
    let Some(server) = crate::support::postgres::shared() else { return };
    let team = Team::new(server);
    let asks = team.machine();
    let lines = 24;
    for (at, line) in points(lines, 6).into_iter().enumerate() {
        let run = format!("k{at}");
        team.queue(&asks, &run);
        let machine = team.machine().var("NIETZ_FAULT", &format!("kill@{line}"));
        let worker = team.worker(&machine, &[]);
        while status(&team.database, &run) != "done" {
            team.answer();
            // The process is dead, and its worker waits for the store to deliver the run again.
            if children(worker.id()).is_empty() {
                expire(&team.database, &run);
            }
        }
        worker.terminate();
        worker.end();
        let wrong = team.calls.judge(&team.database, &[run], 0);
        assert!(wrong.is_empty(), "line {line}: {wrong:#?}");
    }
}

#[test]
fn a_worker_that_ends_hands_its_runs_on_at_once() {
    let Some(server) = crate::support::postgres::shared() else { return };
    let team = Team::new(server);
    let (one, other) = (team.machine(), team.machine());
    let worker = team.worker(&one, &[]);
    team.queue(&one, "r1");
    while team.calls.count() == 0 {
        std::thread::yield_now();
    }
    worker.terminate();
    let ended = worker.end().exits(0);
    assert!(["queued", "waiting"].contains(&status(&team.database, "r1").as_str()), "{ended:?}");
    let worker = team.worker(&other, &[]);
    while status(&team.database, "r1") != "done" {
        team.answer();
    }
    worker.terminate();
    worker.end().exits(0);
    let wrong = team.calls.judge(&team.database, &["r1".to_owned()], 0);
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(team.database.session().get("SELECT count(*) FROM nietz.run WHERE status = 'stuck'"), "0");
}

/// It says so each time, and when the time is over for which it holds the run, it ends what it has begun.
#[test]
fn a_worker_that_cannot_say_that_it_lives_is_loud_and_lets_the_run_go() {
    let Some(server) = crate::support::postgres::shared() else { return };
    let gate = Gate::default();
    let team = Team::with(server, Some(gate.clone()));
    let (one, other) = (team.machine(), team.machine());
    team.queue(&one, "r1");
    let mut worker = team.worker(&one, &[]);
    while team.calls.count() < 2 {
        std::thread::yield_now();
    }
    team.database.session().get(REFUSE_BEATS);
    let (mut loud, mut said) = (0, String::new());
    while !said.contains("ended here") {
        said = worker.line();
        assert!(!said.is_empty(), "the worker has ended");
        loud += usize::from(said.contains("cannot be told that it lives"));
    }
    assert!(loud >= 2, "it says so as often as it fails: {loud}");
    while !children(worker.id()).is_empty() {
        std::thread::yield_now();
    }
    team.database.session().get(ACCEPT_BEATS);
    worker.terminate();
    worker.end();
    gate.open();
    let worker = team.worker(&other, &[]);
    expire(&team.database, "r1");
    while status(&team.database, "r1") != "done" {
        team.answer();
    }
    worker.terminate();
    worker.end();
    let wrong = team.calls.judge(&team.database, &["r1".to_owned()], 0);
    assert!(wrong.is_empty(), "{wrong:#?}");
}
