//! The debate in a journaled engine of others, where it was built (`tests/bench/peers`): beside the same floor, in turn with ours.

use std::process::Command;

use crate::Server;
use crate::measure::{Row, cost, pairs};
use crate::subject::Subject;

pub(crate) fn rows(count: usize) -> Vec<Row> {
    let Some(peer) = std::env::var_os("NIETZ_BENCH_MACHI") else {
        println!("skipped: machi-workflow; tests/bench/peers/machi/Cargo.toml says how");
        return Vec::new();
    };
    let server = Server::start();
    let subject = Subject::new(&server.url);
    let mut rows = Vec::new();
    for calls in [40, 400] {
        let number = calls.to_string();
        let floor = || subject.floor(&["joined", &number]);
        let theirs = || cost(Command::new(&peer).args([&number, &server.url]).current_dir(subject.path("")));
        let (theirs, floors) = pairs(count, theirs, floor);
        let name = format!("machi-workflow: {calls} calls of a debate, one joined prompt");
        rows.push(Row::ratio(&name, &theirs, &floors, f64::INFINITY));
        let (ours, floors) = pairs(count, || subject.calls("joined", calls), floor);
        rows.push(Row::ratio("nietz: the same, in the same minutes", &ours, &floors, f64::INFINITY));
    }
    rows
}
