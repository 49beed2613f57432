//! The promise: a run has one message and one writer; what was acknowledged stands, and what is stale fails whole.

use std::sync::Barrier;

use super::{expire, held, lines, messages, queue, status, take};
use crate::support::postgres::{self, Session};

const FENCED: &str = "NZ001";
const CANCELLED: &str = "NZ002";
const OVER: &str = "NZ003";

#[test]
fn a_run_is_queued_taken_written_and_finished() {
    let Some(database) = postgres::database() else { return };
    let mut session = database.session();
    let run = queue(&mut session, "r1");
    assert_eq!(session.say("SELECT nietz.enqueue(1, 'r1', 'flow', '{open}', '{}')"), Err("NZ010".to_owned()));
    assert_eq!((status(&mut session, &run).as_str(), messages(&mut session).as_str()), ("queued", "1"));
    let taken = session.get("SELECT name, deliveries, last_seq, answered FROM nietz.take(1, '{gpu,\"\"}', 15, 'w1')");
    assert_eq!(taken, "r1|1|1|0");
    assert_eq!(take(&mut session, "w2"), None, "nobody else gets it");
    let claim = session.get("SELECT claim FROM nietz.run");
    assert_eq!(session.get(&format!("SELECT nietz.append({run}, {claim}, 2, '{{a,b}}')")), "3");
    assert_eq!(
        session.say(&format!("SELECT nietz.append({run}, {claim}, 6, '{{d}}')")),
        Err("NZ011".to_owned()),
        "a gap"
    );
    // As a worker passes it.
    let number = |text: &str| text.parse::<i64>().expect("a number");
    session.append(number(&run), number(&claim), 4, "c");
    assert_eq!(
        session.get(&format!("SELECT nietz.finish({run}, {claim}, 5, '{{end}}', 'done', '{{\"calls\": 1}}')")),
        ""
    );
    assert_eq!(session.get("SELECT status, summary->>'calls', message, worker FROM nietz.run"), "done|1||");
    assert_eq!(messages(&mut session), "0");
    assert_eq!(lines(&mut session, &run), "open,a,b,c,end");
    let after = session.say(&format!("SELECT nietz.append({run}, {claim}, 6, '{{d}}')"));
    assert_eq!(after, Err(OVER.to_owned()));
    assert_eq!(session.say(&format!("SELECT nietz.hold({run}, 'me')")), Err(OVER.to_owned()));
}

#[test]
fn who_was_paused_writes_nothing_whatever_its_clock_says() {
    let Some(database) = postgres::database() else { return };
    let (mut stale, mut live) = (database.session(), database.session());
    let (run, old) = held(&mut stale, "r1");
    stale.get(&format!("SELECT nietz.append({run}, {old}, 2, '{{a}}')"));
    expire(&mut live, &run);
    let (again, new) = take(&mut live, "w2").expect("it is due again");
    assert_eq!(again, run);
    let kept = |session: &mut Session| {
        session.get("SELECT status, claim, worker, message FROM nietz.run") + "/" + &messages(session)
    };
    let before = kept(&mut live);
    for stale_call in [
        format!("append({run}, {old}, 3, '{{x}}')"),
        format!("park({run}, {old}, 3, '{{x}}', '[{{\"key\": \"k\"}}]', '{{}}')"),
        format!("finish({run}, {old}, 3, '{{x}}', 'done', '{{}}')"),
        format!("finish({run}, {old}, 3, '{{x}}', 'failed', '{{}}')"),
        format!("release({run}, {old})"),
        format!("asked({run}, {old}, '[]')"),
        format!("refuse({run}, {old}, 'k')"),
    ] {
        assert_eq!(stale.say(&format!("SELECT nietz.{stale_call}")), Err(FENCED.to_owned()), "{stale_call}");
    }
    assert_eq!(stale.get(&format!("SELECT nietz.beat({run}, {old}, 15), nietz.state({run}, {old})")), "f|fenced");
    assert_eq!(kept(&mut live), before, "none of it has left anything");
    assert_eq!(live.get(&format!("SELECT nietz.beat({run}, {new}, 15), nietz.state({run}, {new})")), "t|held");
    live.get(&format!("SELECT nietz.append({run}, {new}, 3, '{{b}}')"));
    assert_eq!(lines(&mut live, &run), "open,a,b");
}

#[test]
fn the_key_of_a_line_fences_by_itself() {
    let Some(database) = postgres::database() else { return };
    let mut session = database.session();
    let (run, claim) = held(&mut session, "r1");
    // As somebody would who went around the claims.
    session.get(&format!("INSERT INTO nietz.line VALUES ({run}, 2, 'theirs', 0)"));
    for (call, body) in [("append", ""), ("finish", ", 'done', '{}'"), ("park", ", '[{\"key\": \"k\"}]', '{}'")] {
        let failed = session.say(&format!("SELECT nietz.{call}({run}, {claim}, 2, '{{mine,more}}'{body})"));
        assert_eq!(failed, Err(FENCED.to_owned()), "{call}");
        // The same text by somebody else is no repeated call.
        let failed = session.say(&format!("SELECT nietz.{call}({run}, {claim}, 2, '{{theirs}}'{body})"));
        assert_eq!(failed, Err(FENCED.to_owned()), "{call}");
    }
    assert_eq!(lines(&mut session, &run), "open,theirs", "a batch is written whole or not at all");
    assert_eq!((status(&mut session, &run).as_str(), messages(&mut session).as_str()), ("running", "1"));
}

#[test]
fn a_call_that_is_made_again_after_its_answer_was_lost_finds_its_own_work() {
    let Some(database) = postgres::database() else { return };
    let mut session = database.session();
    let (run, claim) = held(&mut session, "r1");
    for _ in 0..2 {
        assert_eq!(session.get(&format!("SELECT nietz.append({run}, {claim}, 2, '{{a,b}}')")), "3");
    }
    // The first call may have come to less than what is sent again.
    assert_eq!(session.get(&format!("SELECT nietz.append({run}, {claim}, 3, '{{b,c}}')")), "4");
    for _ in 0..2 {
        let parked = format!("SELECT nietz.park({run}, {claim}, 5, '{{wait}}', '[{{\"key\": \"k\"}}]', '{{}}')");
        assert_eq!(session.get(&parked), "t");
    }
    session.get(&format!("SELECT nietz.answer({run}, 'k', '1')"));
    let (_, claim) = take(&mut session, "w1").expect("it goes on");
    for _ in 0..2 {
        assert_eq!(session.get(&format!("SELECT nietz.finish({run}, {claim}, 6, '{{end}}', 'done', '{{}}')")), "");
    }
    assert_eq!(lines(&mut session, &run), "open,a,b,c,wait,end");
}

#[test]
fn of_two_that_finish_at_once_one_does() {
    let Some(database) = postgres::database() else { return };
    let mut owner = database.session();
    for round in 0..50 {
        let (run, old) = held(&mut owner, &format!("r{round}"));
        expire(&mut owner, &run);
        let both = Barrier::new(2);
        let ends = std::thread::scope(|scope| {
            let stale = scope.spawn(|| {
                let mut session = database.session();
                both.wait();
                session.say(&format!("SELECT nietz.finish({run}, {old}, 2, '{{stale}}', 'done', '{{}}')"))
            });
            let live = scope.spawn(|| {
                let mut session = database.session();
                both.wait();
                let (run, claim) = take(&mut session, "w2")?;
                Some(session.say(&format!("SELECT nietz.finish({run}, {claim}, 2, '{{live}}', 'done', '{{}}')")))
            });
            (stale.join().expect("it does not panic"), live.join().expect("it does not panic"))
        });
        let written = lines(&mut owner, &run);
        match ends {
            (Ok(_), None) => assert_eq!(written, "open,stale"),
            (Err(code), Some(Ok(_))) => assert_eq!((code.as_str(), written.as_str()), (FENCED, "open,live")),
            other => panic!("{other:?}: {written}"),
        }
        assert_eq!(messages(&mut owner), "0");
        assert_eq!(status(&mut owner, &run), "done");
    }
}

#[test]
fn eight_workers_take_each_run_once() {
    let Some(database) = postgres::database() else { return };
    let mut owner = database.session();
    owner.get("SELECT count(nietz.enqueue(1, 'r' || i, 'flow', '{open}', '{}')) FROM generate_series(1, 400) i");
    let taken: Vec<String> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8)
            .map(|worker| {
                let database = &database;
                scope.spawn(move || {
                    let mut session = database.session();
                    let mut mine = Vec::new();
                    while let Some((run, claim)) = take(&mut session, &format!("w{worker}")) {
                        session.get(&format!("SELECT nietz.finish({run}, {claim}, 2, '{{end}}', 'done', '{{}}')"));
                        mine.push(run);
                    }
                    mine
                })
            })
            .collect();
        all.into_iter().flat_map(|one| one.join().expect("it does not panic")).collect()
    });
    assert_eq!(taken.len(), 400);
    assert_eq!(owner.get("SELECT count(*) FROM nietz.run WHERE status = 'done'"), "400");
    assert_eq!(owner.get("SELECT count(*), count(DISTINCT run) FROM nietz.line WHERE body = 'end'"), "400|400");
    assert_eq!(messages(&mut owner), "0");
}

/// Who takes a message holds it while it waits for the run's row, which who finishes has: a circle, if the order were not the same.
#[test]
fn taking_and_finishing_never_wait_for_each_other() {
    let Some(database) = postgres::database() else { return };
    let mut owner = database.session();
    owner.get("ALTER SYSTEM SET deadlock_timeout = '50ms'");
    owner.get("SELECT pg_reload_conf()");
    let (run, claim) = held(&mut owner, "r1");
    let both = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut session = database.session();
            for seq in 2..300 {
                if seq == 2 {
                    both.wait();
                }
                // The run's row is locked, and then the message is asked for.
                session.get(&format!(
                    "BEGIN; SELECT nietz.append({run}, {claim}, {seq}, '{{a}}'); SELECT msg_id FROM pgmq.set_vt('nietz_1', \
                     (SELECT message FROM nietz.run WHERE id = {run}), 0); COMMIT"
                ));
            }
        });
        scope.spawn(|| {
            let mut session = database.session();
            both.wait();
            for _ in 0..300 {
                let taken = format!("SELECT run FROM nietz.take(1, '{{\"\"}}', 15, 'w1', '{{{run}}}')");
                assert_eq!(session.say(&taken), Ok(String::new()), "it is left to who holds it");
            }
        });
    });
    assert_eq!(owner.get("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"), "0");
    assert_eq!(owner.get(&format!("SELECT nietz.state({run}, {claim})")), "held");
}

#[test]
fn a_cancelled_run_takes_no_line_and_leaves_the_queue() {
    let Some(database) = postgres::database() else { return };
    let mut session = database.session();
    let (run, claim) = held(&mut session, "r1");
    assert_eq!(session.get(&format!("SELECT nietz.cancel({run})")), "running");
    for refused in [
        format!("append({run}, {claim}, 2, '{{x}}')"),
        format!("park({run}, {claim}, 2, '{{x}}', '[{{\"key\": \"k\"}}]', '{{}}')"),
        format!("finish({run}, {claim}, 2, '{{x}}', 'done', '{{}}')"),
        format!("hold({run}, 'me')"),
        format!("requeue({run})"),
        format!("answer({run}, 'k', '1')"),
    ] {
        assert_eq!(session.say(&format!("SELECT nietz.{refused}")), Err(CANCELLED.to_owned()), "{refused}");
    }
    assert_eq!(
        session.get(&format!("SELECT nietz.beat({run}, {claim}, 15), nietz.state({run}, {claim})")),
        "f|cancelled"
    );
    assert_eq!(session.get(&format!("SELECT nietz.cancel({run})")), "cancelled");
    assert_eq!((lines(&mut session, &run).as_str(), messages(&mut session).as_str()), ("open", "0"));
    let queued = queue(&mut session, "r2");
    assert_eq!(session.get(&format!("SELECT nietz.cancel({queued})")), "queued");
    assert_eq!(take(&mut session, "w1"), None);
}

/// No line is acknowledged behind a cancellation that was acknowledged.
#[test]
fn cancelling_and_appending_have_an_order() {
    let Some(database) = postgres::database() else { return };
    let mut owner = database.session();
    let (run, claim) = held(&mut owner, "under-way");
    let mut writer = database.session();
    writer.get(&format!("BEGIN; SELECT nietz.append({run}, {claim}, 2, '{{a}}')"));
    owner.get("SET lock_timeout = '50ms'");
    let waits = owner.say(&format!("SELECT nietz.cancel({run})"));
    assert_eq!(waits, Err("55P03".to_owned()), "a line that is under way is waited for");
    owner.get("SET lock_timeout = 0");
    writer.get("COMMIT");
    owner.get(&format!("SELECT nietz.cancel({run})"));
    assert_eq!(lines(&mut owner, &run), "open,a");
    for round in 0..20 {
        let (run, claim) = held(&mut owner, &format!("r{round}"));
        let both = Barrier::new(2);
        let (written, seen) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut session = database.session();
                both.wait();
                let mut last = 1;
                while session.say(&format!("SELECT nietz.append({run}, {claim}, {}, '{{a}}')", last + 1)).is_ok() {
                    last += 1;
                }
                last
            });
            let mut session = database.session();
            both.wait();
            session.get(&format!("SELECT nietz.cancel({run})"));
            let seen = session.get(&format!("SELECT max(seq) FROM nietz.line WHERE run = {run}"));
            (writer.join().expect("it does not panic").to_string(), seen)
        });
        assert_eq!(written, seen, "round {round}");
    }
}

#[test]
fn a_run_that_kills_its_workers_is_stuck_after_five_redeliveries() {
    let Some(database) = postgres::database() else { return };
    let mut session = database.session();
    let run = queue(&mut session, "r1");
    for delivery in 1..=6 {
        assert_eq!(session.get("SELECT deliveries FROM nietz.take(1, '{\"\"}', 15, 'w1')"), delivery.to_string());
        expire(&mut session, &run);
    }
    assert_eq!(take(&mut session, "w1"), None);
    assert_eq!((status(&mut session, &run).as_str(), messages(&mut session).as_str()), ("stuck", "0"));
    assert_eq!(
        session
            .get("SELECT count(*) FROM nietz.run WHERE status IN ('waiting', 'stuck') AND waiting_since IS NOT NULL"),
        "1"
    );
    session.get(&format!("SELECT nietz.requeue({run})"));
    assert_eq!(session.get("SELECT deliveries FROM nietz.take(1, '{\"\"}', 15, 'w1')"), "1");
}

#[test]
fn an_orderly_end_hands_the_run_on_at_once_and_is_no_redelivery() {
    let Some(database) = postgres::database() else { return };
    let mut session = database.session();
    queue(&mut session, "r1");
    for round in 1..=20 {
        let (run, claim) = take(&mut session, &format!("w{round}")).expect("it is due at once");
        session.get(&format!("SELECT nietz.release({run}, {claim})"));
        assert_eq!(messages(&mut session), "1");
    }
    let (run, claim) = take(&mut session, "last").expect("it is due at once");
    session.get(&format!("SELECT nietz.release({run}, {claim}, true)"));
    assert_eq!((status(&mut session, &run).as_str(), messages(&mut session).as_str()), ("stopped", "0"));
}

#[test]
fn a_process_in_the_foreground_holds_its_run_and_goes_on_with_it() {
    let Some(database) = postgres::database() else { return };
    let mut session = database.session();
    let begun =
        session.get("SELECT (b).run, (b).claim FROM nietz.enqueue(1, 'r1', 'f', '{open}', '{}', held_by => 'me') b");
    let (run, claim) = begun.split_once('|').expect("both are there");
    assert_eq!(take(&mut session, "w1"), None, "no worker gets it");
    assert_eq!(session.say(&format!("SELECT nietz.hold({run}, 'other')")), Err("NZ007".to_owned()));
    session.get(&format!("SELECT nietz.append({run}, {claim}, 2, '{{a}}')"));
    session.get(&format!("SELECT nietz.release({run}, {claim}, true)"));
    let claim = session.get(&format!("SELECT nietz.hold({run}, 'me')"));
    session.get(&format!("SELECT nietz.append({run}, {claim}, 3, '{{b}}')"));
    expire(&mut session, run);
    let (_, taken) = take(&mut session, "w1").expect("a process that is gone leaves it to a worker");
    assert_ne!(taken, claim);
    assert_eq!(session.say(&format!("SELECT nietz.append({run}, {claim}, 4, '{{c}}')")), Err(FENCED.to_owned()));
}

#[test]
fn a_run_of_a_later_time_is_not_due_before_and_goes_on_by_itself() {
    let Some(database) = postgres::database() else { return };
    let mut session = database.session();
    session.get("SELECT nietz.enqueue(1, 'late', 'f', '{open}', '{}', at => now() + interval '1 hour')");
    assert_eq!(take(&mut session, "w1"), None);
    assert_eq!(session.get("SELECT status, message IS NOT NULL, wake > now() FROM nietz.run"), "queued|t|t");
    let run = session.get("SELECT id FROM nietz.run");
    expire(&mut session, &run);
    let (_, claim) = take(&mut session, "w1").expect("its time has come");
    // Asks, and goes on by itself at a time: there is one message, whoever is first.
    let parked = "'[{\"key\": \"k\"}]', '{}', wake => now() + interval '1 hour'";
    assert_eq!(session.get(&format!("SELECT nietz.park({run}, {claim}, 2, '{{wait}}', {parked})")), "t");
    assert_eq!((status(&mut session, &run).as_str(), messages(&mut session).as_str()), ("waiting", "1"));
    assert_eq!(session.get(&format!("SELECT result FROM nietz.answer({run}, 'k', '1')")), "queued");
    assert_eq!(messages(&mut session), "1");
    assert!(take(&mut session, "w1").is_some(), "an answer is sooner");
}

#[test]
fn tags_are_queues_of_their_own() {
    let Some(database) = postgres::database() else { return };
    let mut session = database.session();
    session.get("SELECT nietz.enqueue(1, 'g', 'f', '{open}', '{}', tag => 'gpu')");
    assert_eq!(take(&mut session, "w1"), None);
    assert_eq!(session.get("SELECT name FROM nietz.take(1, '{other,gpu}', 15, 'w1')"), "g");
    for tag in ["GPU", "a b", "a--b", "x'y", "abcdefghijklmnopqrstuvwxyz", "-a", "a;b"] {
        let tag = tag.replace('\'', "''");
        let refused = session.say(&format!("SELECT nietz.enqueue(1, 'x', 'f', '{{open}}', '{{}}', tag => '{tag}')"));
        assert_eq!(refused, Err("NZ011".to_owned()), "{tag}");
    }
    assert_eq!(session.get("SELECT tag, length, visible FROM nietz.queue_metrics(1)"), "gpu|1|0");
}

#[test]
fn a_line_is_on_the_disk_whatever_the_session_has_set() {
    let Some(database) = postgres::database() else { return };
    let mut session = database.session();
    let (run, claim) = held(&mut session, "r1");
    session.get("SET synchronous_commit = off");
    let within = format!("BEGIN; SELECT nietz.append({run}, {claim}, 2, '{{a}}'); SHOW synchronous_commit; COMMIT");
    assert_eq!(session.get(&within), "2\non");
    assert_eq!(session.get("SHOW synchronous_commit"), "off");
}

#[test]
fn runs_are_taken_in_removed_and_pruned() {
    let Some(database) = postgres::database() else { return };
    let mut session = database.session();
    let kept = session.get("SELECT nietz.keep(1, 'old', 'f', 'done', '{open,\"{\\\"a\\\": 1}\",end}', '{}')");
    assert_eq!(session.get(&format!("SELECT seq, body FROM nietz.lines({kept}, 1)")), "2|{\"a\": 1}\n3|end");
    let (run, _) = held(&mut session, "r1");
    assert_eq!(session.say(&format!("SELECT nietz.remove({run})")), Err("NZ007".to_owned()));
    session.get(&format!("SELECT nietz.cancel({run})"));
    assert_eq!(session.get("SELECT nietz.prune(1, now() - interval '1 day')"), "0");
    assert_eq!(session.get("SELECT nietz.prune(1, now() + interval '1 day')"), "2");
    assert_eq!(session.get("SELECT (SELECT count(*) FROM nietz.run), (SELECT count(*) FROM nietz.line)"), "0|0");
}
