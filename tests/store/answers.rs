//! The promise: no answer is lost, whenever it comes, and a question has one.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{held, lines, messages, status, take};
use crate::support::postgres;

/// How many sessions answer at once.
const ANSWERERS: usize = 8;
/// How many park at once.
const WORKERS: usize = 4;

#[test]
fn a_second_answer_is_told_of_the_first() {
    let Some(database) = postgres::database() else { return };
    let mut owner = database.session();
    let (run, claim) = held(&mut owner, "r1");
    let mut ann = database.role("ann", 1, &["asker"]);
    let mut ben = database.role("ben", 1, &["asker"]);
    let parked =
        format!("SELECT nietz.park({run}, {claim}, 2, '{{wait}}', '[{{\"key\": \"k\"}}, {{\"key\": \"l\"}}]', '{{}}')");
    assert_eq!(owner.get(&parked), "t");
    assert_eq!((status(&mut owner, &run).as_str(), messages(&mut owner).as_str()), ("waiting", "0"));
    assert_eq!(ann.say(&format!("SELECT nietz.answer({run}, 'm', '1')")), Err("NZ006".to_owned()), "nobody asked that");
    let first = ann.get(&format!("SELECT result, who, said_as FROM nietz.answer({run}, 'k', '\"yes\"', 'Ann')"));
    assert_eq!(first, format!("queued|ann_{}|Ann", database.name));
    let second = ben.get(&format!("SELECT result, who, said_as FROM nietz.answer({run}, 'k', '\"no\"', 'Ben')"));
    assert_eq!(second, format!("second|ann_{}|Ann", database.name));
    assert_eq!(
        ben.get(&format!("SELECT result FROM nietz.answer({run}, 'l', '2')")),
        "kept",
        "another question, while it is queued"
    );
    assert_eq!(messages(&mut owner), "1");
    let (_, claim) = take(&mut owner, "w1").expect("it goes on");
    let given = owner.get(&format!("SELECT key, value FROM nietz.answers({run}) ORDER BY key"));
    assert_eq!(given, "k|\"yes\"\nl|2");
    // One that fits nothing is not met again.
    owner.get(&format!("SELECT nietz.refuse({run}, {claim}, 'l')"));
    assert_eq!(ben.get(&format!("SELECT result FROM nietz.answer({run}, 'l', '3')")), "kept");
    owner.get(&format!("SELECT nietz.finish({run}, {claim}, 3, '{{end}}', 'done', '{{}}')"));
    assert_eq!(ben.get(&format!("SELECT result FROM nietz.answer({run}, 'k', '4')")), "second", "also when it is over");
    assert_eq!(ben.say(&format!("SELECT nietz.answer({run}, 'n', '4')")), Err("NZ003".to_owned()));
}

/// A thousand runs ask and park while others answer: none is left waiting with its answer there, or queued twice.
#[test]
fn a_thousand_answers_at_the_instant_of_parking_are_all_met() {
    let Some(database) = postgres::database() else { return };
    const RUNS: usize = 1000;
    let mut owner = database.session();
    owner.get(&format!(
        "SELECT count(nietz.enqueue(1, 'r' || i, 'flow', '{{open}}', '{{}}')) FROM generate_series(1, {RUNS}) i"
    ));
    let (parking, answered, raced) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let all = Barrier::new(ANSWERERS + WORKERS);
    std::thread::scope(|scope| {
        for _ in 0..ANSWERERS {
            scope.spawn(|| {
                let mut session = database.session();
                all.wait();
                loop {
                    let next = answered.fetch_add(1, Ordering::SeqCst);
                    if next >= RUNS {
                        break;
                    }
                    // As near to the parking as can be: the worker is at it or has just been, or has not yet begun.
                    while parking.load(Ordering::SeqCst) < next && next > WORKERS {
                        std::thread::yield_now();
                    }
                    let name = format!("r{}", next + 1);
                    let one =
                        format!("SELECT (nietz.answer(id, 'k', '1')).result FROM nietz.run WHERE name = '{name}'");
                    let result = session.get(&one);
                    assert!(["queued", "kept"].contains(&result.as_str()), "{result}");
                }
            });
        }
        for worker in 0..WORKERS {
            let (database, parking, raced, all) = (&database, &parking, &raced, &all);
            scope.spawn(move || {
                let mut session = database.session();
                all.wait();
                loop {
                    let taken = session
                        .get(&format!("SELECT run, claim, last_seq FROM nietz.take(1, '{{\"\"}}', 15, 'w{worker}')"));
                    let Some((run, rest)) = taken.split_once('|') else {
                        // All are over, or wait for an answer that is still to come; one that was lost waits for ever.
                        let all_answered = session.get("SELECT count(*) FROM nietz.answer") == RUNS.to_string();
                        let left = "SELECT count(*) FROM nietz.run WHERE status IN ('queued', 'running')";
                        if all_answered && session.get(left) == "0" {
                            break;
                        }
                        continue;
                    };
                    let (claim, last) = rest.split_once('|').expect("three columns");
                    let seq: u64 = last.parse::<u64>().expect("a number") + 1;
                    if seq == 2 {
                        parking.fetch_add(1, Ordering::SeqCst);
                        let waits = session.get(&format!(
                            "SELECT nietz.park({run}, {claim}, {seq}, '{{wait}}', '[{{\"key\": \"k\"}}]', '{{}}')"
                        ));
                        if waits == "t" {
                            continue;
                        }
                        raced.fetch_add(1, Ordering::SeqCst);
                    }
                    session.get(&format!("SELECT nietz.finish({run}, {claim}, {seq}, '{{end}}', 'done', '{{}}')"));
                }
            });
        }
    });
    assert_eq!(messages(&mut owner), "0");
    let once = owner.get("SELECT count(*), count(DISTINCT run) FROM nietz.line WHERE body = 'end'");
    assert_eq!(once, format!("{RUNS}|{RUNS}"));
    let parked = owner.get("SELECT count(*) FROM nietz.line WHERE body = 'wait'");
    assert_eq!(parked.parse::<usize>().expect("a number") + raced.load(Ordering::SeqCst), RUNS);
    eprintln!("{parked} parked, {} had their answer before", raced.load(Ordering::SeqCst));
}

#[test]
fn of_many_answers_at_once_one_wins_and_the_run_is_queued_once() {
    let Some(database) = postgres::database() else { return };
    let mut owner = database.session();
    let (run, claim) = held(&mut owner, "r1");
    owner.get(&format!("SELECT nietz.park({run}, {claim}, 2, '{{wait}}', '[{{\"key\": \"k\"}}]', '{{}}')"));
    let all = Barrier::new(ANSWERERS);
    let results: Vec<String> = std::thread::scope(|scope| {
        let each: Vec<_> = (0..ANSWERERS)
            .map(|at| {
                let (database, run, all) = (&database, &run, &all);
                scope.spawn(move || {
                    let mut session = database.session();
                    all.wait();
                    session.get(&format!("SELECT (nietz.answer({run}, 'k', '{at}')).result"))
                })
            })
            .collect();
        each.into_iter().map(|one| one.join().expect("it does not panic")).collect()
    });
    let count = |wanted: &str| results.iter().filter(|result| *result == wanted).count();
    assert_eq!((count("queued"), count("second")), (1, ANSWERERS - 1), "{results:?}");
    assert_eq!((messages(&mut owner).as_str(), lines(&mut owner, &run).as_str()), ("1", "open,wait"));
}
