//! The store on a server: first its SQL by itself, from many sessions at once; then the program on it.

mod answers;
mod aside;
mod asked;
mod backup;
mod budget;
mod cassettes;
mod chain;
mod children;
mod clocks;
mod documents;
mod exported;
mod histories;
mod history;
mod hosts;
mod keeping;
mod kills;
mod network;
mod networks;
mod packs;
mod parent;
mod rights;
mod runs;
mod schema;
mod secrets;
mod spread;
mod stopped;
mod telling;
mod versions;
mod walk;
mod whereabouts;
mod workers;

use crate::support::postgres::Session;

/// Queues a run, and returns its id.
fn queue(session: &mut Session, name: &str) -> String {
    let begun = session.get(&format!("SELECT (nietz.enqueue(1, '{name}', 'flow', '{{open}}', '{{}}')).run"));
    assert!(!begun.is_empty());
    begun
}

/// Takes the next run as this worker, and returns its id and claim; nothing if none is due.
fn take(session: &mut Session, worker: &str) -> Option<(String, String)> {
    let taken = session.get(&format!("SELECT run, claim FROM nietz.take(1, '{{\"\"}}', 15, '{worker}')"));
    let (run, claim) = taken.split_once('|')?;
    Some((run.to_owned(), claim.to_owned()))
}

/// Queues a run and takes it.
fn held(session: &mut Session, name: &str) -> (String, String) {
    let queued = queue(session, name);
    let taken = take(session, "w1").expect("it is due");
    assert_eq!(taken.0, queued);
    taken
}

/// Makes what was taken be due again, as time would.
fn expire(session: &mut Session, run: &str) {
    let queue = session.get(&format!("SELECT queue || ' ' || message FROM nietz.run WHERE id = {run}"));
    let (queue, message) = queue.split_once(' ').expect("it has a message");
    session.get(&format!("SELECT msg_id FROM pgmq.set_vt('{queue}', {message}::bigint, 0)"));
}

/// How many messages the queue of the workspace has.
fn messages(session: &mut Session) -> String {
    session.get("SELECT count(*) FROM pgmq.q_nietz_1")
}

fn status(session: &mut Session, run: &str) -> String {
    session.get(&format!("SELECT status FROM nietz.run WHERE id = {run}"))
}

/// The lines of a run, with `,` between them.
fn lines(session: &mut Session, run: &str) -> String {
    session.get(&format!("SELECT string_agg(body, ',' ORDER BY seq) FROM nietz.line WHERE run = {run}"))
}
