//! Metrics of a worker, as text for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::error::{Code, Failure, Result};
use crate::store::postgres::Server;

/// How long a scraper may take to ask.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a worker has done since it began.
#[derive(Default)]
pub(super) struct Metrics {
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    taken: u64,
    lost: u64,
    ended: BTreeMap<String, u64>,
}

impl Metrics {
    fn change(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn taken(&self) {
        self.change(|counts| counts.taken += 1);
    }

    /// Counts a sign of life that the store did not get.
    pub(super) fn lost(&self) {
        self.change(|counts| counts.lost += 1);
    }

    pub(super) fn ended(&self, how: &str) {
        let known = ["done", "failed", "waiting", "cancelled", "stuck", "fenced", "handed on"];
        let how = known.into_iter().find(|name| *name == how).unwrap_or("left");
        self.change(|counts| *counts.ended.entry(how.to_owned()).or_default() += 1);
    }

    fn text(&self, servers: &[Server]) -> String {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let ended: u64 = counts.ended.values().sum();
        let mut text = format!(
            "# HELP nietz_worker_runs_taken_total Runs that this worker has taken from the queue.\n\
             # TYPE nietz_worker_runs_taken_total counter\nnietz_worker_runs_taken_total {}\n\
             # HELP nietz_worker_runs Runs that this worker holds now.\n# TYPE nietz_worker_runs gauge\nnietz_worker_runs {}\n\
             # HELP nietz_worker_store_failures_total Calls of this worker that the store did not answer.\n\
             # TYPE nietz_worker_store_failures_total counter\nnietz_worker_store_failures_total {}\n\
             # HELP nietz_worker_runs_left_total Runs that this worker has left, by how.\n\
             # TYPE nietz_worker_runs_left_total counter\n",
            counts.taken,
            counts.taken.saturating_sub(ended),
            counts.lost
        );
        for (how, count) in &counts.ended {
            let _ = writeln!(text, "nietz_worker_runs_left_total{{how=\"{how}\"}} {count}");
        }
        drop(counts);
        text +=
            "# HELP nietz_queue_length Messages in a queue, by workspace and tag.\n# TYPE nietz_queue_length gauge\n";
        for server in servers {
            // A store that does not answer has no figures; the worker's own are there all the same.
            for (tag, length, visible) in server.queues().unwrap_or_default() {
                let name = server.name.replace(['"', '\\', '\n'], "_");
                let _ =
                    writeln!(text, "nietz_queue_length{{workspace=\"{name}\",tag=\"{tag}\",state=\"all\"}} {length}");
                let _ =
                    writeln!(text, "nietz_queue_length{{workspace=\"{name}\",tag=\"{tag}\",state=\"due\"}} {visible}");
            }
            for (status, count) in server.counts().unwrap_or_default() {
                let name = server.name.replace(['"', '\\', '\n'], "_");
                let _ = writeln!(text, "nietz_runs{{workspace=\"{name}\",status=\"{status}\"}} {count}");
            }
        }
        text
    }
}

/// Answers at an address, on a thread of its own. Returns the address, with the port that it got.
///
/// # Errors
///
/// `usage` if nothing can listen there.
pub(super) fn serve(metrics: Arc<Metrics>, servers: Vec<Server>, address: SocketAddr) -> Result<SocketAddr> {
    let failed = |error: std::io::Error| Failure::new(Code::Usage, format!("cannot listen at {address}: {error}"));
    let listener = TcpListener::bind(address).map_err(failed)?;
    let at = listener.local_addr().map_err(failed)?;
    let work = move || {
        for stream in listener.incoming().flatten() {
            // Who goes away before the answer gets none.
            let _ = answer(stream, &metrics, &servers);
        }
    };
    std::thread::Builder::new().name("metrics".to_owned()).spawn(work).map_err(failed)?;
    Ok(at)
}

fn answer(mut stream: TcpStream, metrics: &Metrics, servers: &[Server]) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut first = String::new();
    BufReader::new(std::io::Read::take(&stream, 8 << 10)).read_line(&mut first)?;
    let (status, body) = match first.split(' ').nth(1) {
        Some("/metrics") => ("200 OK", metrics.text(servers)),
        _ => ("404 Not Found", "metrics are at /metrics\n".to_owned()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}
