//! Benchmarks of whole processes, each beside its floor in the same run: `cargo bench`.
//!
//! A floor is the least that the same work can cost: this binary calls itself as a process that does only
//! that. Both take turns, so that a machine that slows down slows both; the ratio is taken pair by pair, and
//! its median is what counts. The aims stand in the last column. `cargo bench -- --quick` runs fewer pairs, and
//! names of [`SECTIONS`] (`cargo bench -- saves local`) only those rows.

#![allow(
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints what it measures, and may end in one word"
)]

#[path = "../support/model_server.rs"]
mod model_server;

#[cfg(feature = "postgres")]
#[path = "../support/postgres.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod postgres;

mod attempts;
mod council;
#[cfg(feature = "editors")]
mod editors;
mod floor;
mod lists;
mod local;
mod measure;
mod memory;
mod peers;
mod profile;
mod session;
mod starts;
#[cfg(feature = "postgres")]
mod store;
mod subject;

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use measure::{Row, pairs, print};
use model_server::{ModelServer, Response};
use subject::Subject;

fn main() {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    if words.first().is_some_and(|word| word == "git-recorded") {
        session::recorded(&words[1..]);
    }
    let arguments: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    match arguments.first().map(String::as_str) {
        Some("floor") => return floor::main(&arguments[1..]),
        Some("serve") => return serve(),
        _ => {}
    }
    // `cargo test --benches` and editors call with other words; only a bench run measures.
    if !arguments.iter().any(|word| word == "--bench") {
        return;
    }
    let count = if arguments.iter().any(|word| word == "--quick") { 3 } else { 9 };
    let named = |name: &str| arguments.iter().any(|word| word == name);
    let all = !SECTIONS.iter().any(|(name, _)| named(name));
    let rows = SECTIONS.iter().filter(|(name, _)| all || named(name)).flat_map(|(_, rows)| rows(count));
    print(&rows.collect::<Vec<Row>>());
}

/// Measures a part with so many pairs of runs.
type Section = fn(usize) -> Vec<Row>;

/// The parts that can be measured alone, by the names they are called by.
const SECTIONS: &[(&str, Section)] = &[
    ("debates", debates),
    ("peers", peers::rows),
    ("starts", starts::rows),
    ("runs", runs),
    ("saves", |count| vec![subject::saves(count * 40)]),
    ("council", |count| vec![council::row(count)]),
    ("local", local::rows),
    ("attempts", |count| attempts::rows(count).into()),
    ("memory", |count| memory::rows(count).into()),
    ("profile", profile::rows),
    ("lists", lists::rows),
    ("session", session::rows),
    #[cfg(feature = "editors")]
    ("editors", editors::rows),
    #[cfg(feature = "postgres")]
    ("store", store::rows),
];

fn debates(count: usize) -> Vec<Row> {
    let server = Server::start();
    let subject = Subject::new(&server.url);
    let mut rows = Vec::new();
    for (flow, floor, how) in [("debate", "calls", "messages"), ("joined", "joined", "one joined prompt")] {
        for calls in [40, 400] {
            let (ours, floors) =
                pairs(count, || subject.calls(flow, calls), || subject.floor(&[floor, &calls.to_string()]));
            let aim = if calls == 40 { 1.35 } else { 1.25 };
            rows.push(Row::ratio(&format!("{calls} calls of a debate, {how}, journal on"), &ours, &floors, aim));
            if calls == 400 {
                rows.push(Row::memory(&format!("memory of the 400-call run, {how}"), &ours, 20.0));
                rows.push(Row::size(&format!("its journal, {how}"), subject.journal(flow, calls), 0.8));
            }
        }
    }
    let (ours, floors) = pairs(count, || subject.side_by_side(100), || subject.floor(&["sleep", "200"]));
    rows.push(Row::ratio("100 calls side by side at 200 ms", &ours, &floors, 1.1));
    rows
}

/// Starting, going again through a finished run, and resuming one.
fn runs(count: usize) -> Vec<Row> {
    let server = Server::start();
    let subject = Subject::new(&server.url);
    let mut rows = Vec::new();
    let (ours, floors) = pairs(count * 3, || subject.calls("debate", 1), || subject.floor(&["calls", "1"]));
    rows.push(Row::ratio("start to the first reply", &ours, &floors, 1.5));
    for (flow, how) in [("debate", "messages"), ("joined", "one joined prompt")] {
        let replay = subject.replay_of(flow, 400);
        let (ours, floors) = pairs(count, || replay.run(), || subject.floor(&["parse", &replay.journal()]));
        rows.push(Row::wall(&format!("replay of the finished 400-call run, {how}"), &ours, 50.0));
        rows.push(Row::ratio("the same, beside parsing its journal", &ours, &floors, f64::INFINITY));
    }
    let resume = subject.effects(10_000);
    let (ours, floors) = pairs(count, || resume.run(), || subject.floor(&["parse", &resume.journal()]));
    rows.push(Row::ratio("resume over 10,000 effects", &ours, &floors, 3.0));
    rows
}

/// The model server, in a process of its own: what it keeps of its calls is nobody else's memory.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    fn start() -> Server {
        let this = std::env::current_exe().expect("this program has a path");
        let mut command = Command::new(this);
        let mut process =
            command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it can be started again");
        let mut url = String::new();
        let stdout = process.stdout.take().expect("its output is a pipe");
        BufReader::new(stdout).read_line(&mut url).expect("it says where it listens");
        Server { process, url: url.trim().to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn serve() {
    let server = ModelServer::start(|request| {
        let text =
            format!("Point {}: {}", request.number, "a retry needs an idempotency key, or it pays twice. ".repeat(2));
        let slow = request.prompt().contains("slowly");
        Response::text(text).delay(Duration::from_millis(if slow { 200 } else { 0 }))
    });
    println!("{}", server.url());
    // Until the parent goes away.
    let _ = std::io::stdin().read_line(&mut String::new());
}
