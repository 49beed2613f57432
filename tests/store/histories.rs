//! The promise, in histories drawn by chance: whatever happens to workers, connections and the server, each run ends once, nothing that
//! was recorded is done again, no line is lost that was acknowledged, and all who saw an outcome saw the same.
//!
//! The workers are threads that do in SQL what a worker does, so that a history takes moments. `NIETZ_TEST_CASES` says how many
//! (`.ci/long store`: 1,000), `NIETZ_TEST_SEED` where they begin.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::history::Noted;
use crate::support::kills::Chance;
use crate::support::postgres::{self, Database, Server, Session};

const RUNS: u64 = 4;
const WORKERS: u64 = 3;
const STEPS: u64 = 6;
/// After which step a run asks.
const ASKS: u64 = 3;

/// What makes histories differ.
struct World<'a> {
    database: &'a Database<'a>,
    noted: Noted,
    nonce: AtomicU64,
    /// All runs are over.
    over: AtomicBool,
}

/// Why a worker lets go of a run.
enum Gone {
    /// It is parked, over, or somebody else's.
    Off,
    /// As if the process were dead: it tells nobody.
    Dead,
}

/// A session that is opened again when it is lost, and then repeats what it was at.
struct Stubborn<'a> {
    url: String,
    session: Option<Session>,
    world: &'a World<'a>,
}

impl Stubborn<'_> {
    fn say(&mut self, sql: &str) -> Result<String, String> {
        loop {
            if self.session.is_none() {
                self.session = Session::open(&self.url).ok();
            }
            let Some(session) = self.session.as_mut() else {
                std::thread::yield_now();
                continue;
            };
            match session.say(sql) {
                // What has no SQLSTATE is the connection's, and class 57 the server's.
                Err(code) if code.len() != 5 || code.starts_with("57") || code.starts_with("08") => self.session = None,
                // The order of locks is one and the same; so a deadlock is a failure of the test.
                said => return said,
            }
        }
    }

    /// The same, and sometimes the first answer is lost: by a broken connection, or on its way.
    fn say_unsure(&mut self, chance: &mut Chance, sql: &str) -> Result<String, String> {
        match chance.below(12) {
            0 => drop(self.say(sql)),
            1 => {
                // Ended from elsewhere at any moment of the call.
                let pid = self.say("SELECT pg_backend_pid()")?;
                let url = self.world.database.url();
                std::thread::scope(|scope| {
                    scope.spawn(move || {
                        let end = format!("SELECT pg_terminate_backend({pid})");
                        Session::open(&url).ok().map(|mut other| other.say(&end))
                    });
                    drop(self.session.as_mut().map(|session| session.say(sql)));
                });
            }
            _ => {}
        }
        self.say(sql)
    }
}

impl World<'_> {
    fn stubborn(&self) -> Stubborn<'_> {
        Stubborn { url: self.database.url(), session: None, world: self }
    }

    /// Lets the time pass that a run is held for.
    fn expire(&self, run: &str) {
        let sql = format!(
            "SELECT count(*) FROM nietz.run r, pgmq.set_vt('nietz_1', r.message, 0) WHERE r.id = {run} AND r.message IS NOT NULL"
        );
        self.stubborn().say(&sql).expect("the owner may do that");
    }

    fn work(&self, worker: u64, chance: &mut Chance) {
        let mut session = self.stubborn();
        while !self.over.load(Ordering::SeqCst) {
            // The answer to this one may be lost as well: then the run is held by nobody until its time is over.
            let taken = session.say(&format!("SELECT run, claim FROM nietz.take(1, '{{\"\"}}', 15, 'w{worker}')"));
            let taken = taken.expect("taking never fails");
            let Some((run, claim)) = taken.split_once('|') else {
                std::thread::yield_now();
                continue;
            };
            if chance.below(15) == 0 {
                self.expire(run);
                continue;
            }
            if matches!(self.segment(&mut session, chance, run, claim), Gone::Dead) {
                session.session = None;
                self.expire(run);
            }
        }
    }

    /// Does what is left of a run, as its lines say.
    fn segment(&self, session: &mut Stubborn<'_>, chance: &mut Chance, run: &str, claim: &str) -> Gone {
        let lines = session.say(&format!("SELECT body FROM nietz.lines({run})")).expect("a worker may read");
        let mut seq = lines.lines().count() as u64 + 1;
        let mut done = 0;
        for line in lines.lines() {
            if let Some((step, outcome)) = line.strip_prefix("o:").and_then(|line| line.split_once(':')) {
                done = step.parse().expect("a number");
                self.noted.saw(run, done, outcome);
            }
        }
        // As a process does that goes on: before anything else.
        let append = |session: &mut Stubborn<'_>, chance: &mut Chance, seq: &mut u64, bodies: &[String]| {
            if chance.below(20) == 0 {
                return Err(Gone::Dead);
            }
            if chance.below(12) == 0 {
                // Stopped for longer than it is held; another one may take it, or not.
                self.expire(run);
                (0..chance.below(30)).for_each(|_| std::thread::yield_now());
            }
            let sql = format!("SELECT nietz.append({run}, {claim}, {seq}, '{{{}}}')", bodies.join(","));
            match session.say_unsure(chance, &sql) {
                Ok(_) => {
                    for body in bodies {
                        self.noted.acknowledged(run, *seq, body);
                        *seq += 1;
                    }
                    Ok(())
                }
                Err(code) => {
                    assert!(["NZ001", "NZ002", "NZ003"].contains(&code.as_str()), "{sql}: {code}");
                    Err(Gone::Off)
                }
            }
        };
        // Lines of one worker differ from those of another, as they do not always in life.
        let resumed = if chance.below(2) == 0 { "resume".to_owned() } else { format!("resume {claim}") };
        if let Err(gone) = append(session, chance, &mut seq, &[resumed]) {
            return gone;
        }
        for step in done + 1..=STEPS {
            if step == ASKS + 1 {
                let key = "SELECT count(*) FROM nietz.answers";
                if session.say(&format!("{key}({run})")).expect("a worker may read") == "0" {
                    let sql =
                        format!("SELECT nietz.park({run}, {claim}, {seq}, '{{wait}}', '[{{\"key\": \"k\"}}]', '{{}}')");
                    match session.say_unsure(chance, &sql).as_deref() {
                        Ok("t") => {
                            self.noted.acknowledged(run, seq, "wait");
                            return Gone::Off;
                        }
                        Ok(_) => {}
                        Err(_) => return Gone::Off,
                    }
                }
            }
            if let Err(gone) = append(session, chance, &mut seq, &[format!("i:{step}")]) {
                return gone;
            }
            let outcome = self.nonce.fetch_add(1, Ordering::SeqCst).to_string();
            if let Err(gone) = append(session, chance, &mut seq, &[format!("o:{step}:{outcome}")]) {
                return gone;
            }
            self.noted.saw(run, step, &outcome);
            match chance.below(25) {
                0 => {
                    drop(session.say_unsure(chance, &format!("SELECT nietz.release({run}, {claim})")));
                    return Gone::Off;
                }
                1 => {
                    drop(session.say(&format!("SELECT nietz.beat({run}, {claim}, 15)")));
                }
                _ => {}
            }
        }
        if chance.below(6) == 0 {
            // Stopped before the last line.
            self.expire(run);
            (0..chance.below(30)).for_each(|_| std::thread::yield_now());
        }
        let sql = format!("SELECT nietz.finish({run}, {claim}, {seq}, '{{end}}', 'done', '{{}}')");
        match session.say_unsure(chance, &sql) {
            Ok(_) => self.noted.acknowledged(run, seq, "end"),
            Err(code) => assert!(["NZ001", "NZ002", "NZ003"].contains(&code.as_str()), "{sql}: {code}"),
        }
        Gone::Off
    }
}

/// Plays one history, and returns what is wrong with it.
fn play(server: &Server, seed: u64, kills: bool) -> Vec<String> {
    let database = server.database();
    let world =
        World { database: &database, noted: Noted::default(), nonce: AtomicU64::new(1), over: AtomicBool::new(false) };
    let mut owner = world.stubborn();
    owner
        .say(&format!(
            "SELECT count(nietz.enqueue(1, 'r' || i, 'f', '{{open}}', '{{}}')) FROM generate_series(1, {RUNS}) i"
        ))
        .expect("it is new");
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let world = &world;
            scope.spawn(move || world.work(worker, &mut Chance(seed * 100 + worker)));
        }
        let mut chance = Chance(seed * 100 + 50);
        let (cancels, restarts) = (chance.below(4) == 0, kills && chance.below(3) == 0);
        let mut rounds = 0;
        // Answers come at any time, also before anybody asks, and twice.
        loop {
            rounds += 1;
            let run = 1 + chance.below(RUNS);
            if chance.below(3) == 0 {
                let answered = owner.say(&format!("SELECT result FROM nietz.answer({run}, 'k', '{rounds}')"));
                assert!(!answered.as_ref().is_err_and(|code| !code.starts_with("NZ")), "{answered:?}");
            }
            if cancels && rounds == 40 {
                drop(owner.say(&format!("SELECT nietz.cancel({run})")));
            }
            if restarts && rounds == 20 {
                server.tell("kill");
                server.tell("start");
            }
            // What a dead worker or a lost answer left behind is taken up when its time is over.
            if rounds % 200 == 0 {
                let all = "SELECT count(*) FROM pgmq.q_nietz_1 q, pgmq.set_vt('nietz_1', q.msg_id, 0)";
                owner.say(all).expect("the owner may do that");
            }
            let left = owner.say("SELECT count(*), count(*) FILTER (WHERE status = 'stuck') FROM nietz.run WHERE status NOT IN ('done', 'cancelled')");
            let left = left.expect("the owner may read");
            if left.starts_with("0|") {
                break;
            }
            // A run that was taken from its workers too often is stuck, as it should be: somebody looks, and lets it go on.
            if !left.ends_with("|0") {
                owner
                    .say("SELECT count(nietz.requeue(id)) FROM nietz.run WHERE status = 'stuck'")
                    .expect("it is not over");
            }
        }
        world.over.store(true, Ordering::SeqCst);
    });
    let mut session = database.session();
    let mut wrong = world.noted.judge(&mut session, STEPS);
    let deadlocks = session.get("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()");
    if deadlocks != "0" {
        wrong.push(format!("{deadlocks} deadlocks"));
    }
    drop((session, owner));
    server.drop_database(&database);
    wrong
}

#[test]
fn histories_drawn_by_chance_have_one_end_and_one_outcome_for_each_step() {
    let Some(server) = Server::start(&[]) else { return };
    let number = |name: &str, usual: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual);
    let (cases, first) = (number("NIETZ_TEST_CASES", 60), number("NIETZ_TEST_SEED", 1));
    for seed in first..first + cases {
        let wrong = play(&server, seed, true);
        assert!(wrong.is_empty(), "history {seed}: {wrong:#?}");
    }
}

/// The judge is not one that finds nothing.
#[test]
fn what_is_wrong_in_a_history_is_found() {
    let Some(database) = postgres::database() else { return };
    let mut session = database.session();
    session.get("SELECT nietz.enqueue(1, 'r1', 'f', '{open}', '{}')");
    let taken = session.get("SELECT run, claim FROM nietz.take(1, '{\"\"}', 15, 'w')");
    let (run, claim) = taken.split_once('|').expect("it is due");
    let noted = Noted::default();
    let lines = ["i:1", "o:1:7", "end"];
    session.get(&format!("SELECT nietz.append({run}, {claim}, 2, '{{i:1,o:1:7}}')"));
    session.get(&format!("SELECT nietz.finish({run}, {claim}, 4, '{{end}}', 'done', '{{}}')"));
    for (at, line) in lines.iter().enumerate() {
        noted.acknowledged(run, at as u64 + 2, line);
    }
    noted.saw(run, 1, "7");
    assert_eq!(noted.judge(&mut session, 1), [""; 0]);
    for (change, back) in [
        ("DELETE FROM nietz.line WHERE seq = 3", "INSERT INTO nietz.line VALUES (1, 3, 'o:1:7', 1)"),
        ("UPDATE nietz.line SET body = 'o:1:8' WHERE seq = 3", "UPDATE nietz.line SET body = 'o:1:7' WHERE seq = 3"),
        ("INSERT INTO nietz.line VALUES (1, 5, 'i:1', 1)", "DELETE FROM nietz.line WHERE seq = 5"),
        ("INSERT INTO nietz.line VALUES (1, 5, 'end', 1)", "DELETE FROM nietz.line WHERE seq = 5"),
        ("INSERT INTO nietz.line VALUES (1, 5, 'o:1:9', 1)", "DELETE FROM nietz.line WHERE seq = 5"),
        ("SELECT pgmq.send('nietz_1', '{}')", "SELECT pgmq.purge_queue('nietz_1')"),
        ("UPDATE nietz.run SET status = 'failed'", "UPDATE nietz.run SET status = 'done'"),
    ] {
        session.get(change);
        assert!(!noted.judge(&mut session, 1).is_empty(), "{change}");
        session.get(back);
    }
    noted.saw(run, 1, "8");
    assert!(!noted.judge(&mut session, 1).is_empty());
}
