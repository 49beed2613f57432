//! A team's store beside files and beside what Postgres itself can do, on a server that syncs.

use std::io::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::measure::{Cost, Row, cost, pairs};
use crate::postgres::{Database, Server, Session, binaries};
use crate::subject::Subject;

/// Lines of one measurement.
const LINES: usize = 300;
/// Who writes at once.
const WORKERS: usize = 8;

pub(crate) fn rows(count: usize) -> Vec<Row> {
    let Some(server) = Server::start(&["fsync=on"]) else { return Vec::new() };
    let database = server.database();
    let mut rows = vec![append(&database, count), at_once(&database, count)];
    rows.extend(processes(&database, count));
    rows.push(listed(&database, count));
    rows.push(answered(&server));
    rows.extend(idle(&server));
    rows
}

/// From an answer that is acknowledged to the claim of an idle worker. What the worker does then is not counted: starting a process.
fn answered(server: &Server) -> Row {
    const TIMES: usize = 20;
    let database = server.database();
    let mut owner = database.session();
    owner.get(&format!(
        "SELECT count(nietz.park((b).run, (b).claim, 2, '{{wait}}', '[{{\"key\": \"k\"}}]', '{{}}')) FROM (SELECT nietz.enqueue(1, 'waits-' || i, \
         'f', '{{open}}', '{{}}', held_by => 'bench') b FROM generate_series(1, {TIMES}) i OFFSET 0) begun"
    ));
    let subject = Subject::new("http://127.0.0.1:1/v1");
    let mut command = subject.nietz();
    command
        .args(["worker", "--parallel", "256"])
        .env("NIETZ_STORE", database.url())
        .env("NIETZ_STORE_WORKSPACE", "team");
    let mut worker = command.stdout(std::process::Stdio::piped()).spawn().expect("the program is there");
    let mut out = std::io::BufReader::new(worker.stdout.take().expect("it was asked for"));
    std::io::BufRead::read_line(&mut out, &mut String::new()).expect("it can be read");
    // What it says is read, so that it can go on.
    std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
    let costs: Vec<Cost> = (1..=TIMES)
        .map(|at| {
            // Idle again: what it took before is put aside, because nobody has such a flow.
            while owner.get("SELECT count(*) FROM nietz.run WHERE status IN ('queued', 'running')") != "0" {}
            timed(|| {
                owner.get(&format!("SELECT nietz.answer(id, 'k', '1') FROM nietz.run WHERE name = 'waits-{at}'"));
                let claim =
                    format!("SELECT worker IS NOT NULL OR status = 'stuck' FROM nietz.run WHERE name = 'waits-{at}'");
                while owner.get(&claim) != "t" {}
            })
        })
        .collect();
    worker.kill().and_then(|()| worker.wait()).expect("it runs");
    Row::wall("from an answer to the claim of an idle worker", &costs, 50.0)
}

/// What a worker costs beside a thousand runs that wait, and as many that are due tomorrow.
fn idle(server: &Server) -> Vec<Row> {
    const WINDOW: Duration = Duration::from_secs(20);
    let database = server.database();
    let mut owner = database.session();
    owner.get(
        "SELECT count(nietz.enqueue(1, 'later-' || i, 'f', '{open}', '{}', at => now() + interval '1 day')) FROM generate_series(1, 1000) i; \
         SELECT count(nietz.park((b).run, (b).claim, 2, '{wait}', '[{\"key\": \"k\"}]', '{}')) FROM (SELECT nietz.enqueue(1, 'waits-' || i, 'f', \
         '{open}', '{}', held_by => 'bench') b FROM generate_series(1, 1000) i OFFSET 0) begun",
    );
    let subject = Subject::new("http://127.0.0.1:1/v1");
    let mut command = subject.nietz();
    command.arg("worker").env("NIETZ_STORE", database.url()).env("NIETZ_STORE_WORKSPACE", "team");
    let mut worker = command.stdout(std::process::Stdio::piped()).spawn().expect("the program is there");
    let mut said = String::new();
    let out = worker.stdout.take().expect("it was asked for");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut said).expect("it can be read");
    let ticks = |pid: u32| -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        [11, 12].iter().filter_map(|at| fields.get(*at)?.parse::<f64>().ok()).sum()
    };
    let before = ticks(worker.id());
    std::thread::sleep(WINDOW);
    // A hundred a second.
    let share = (ticks(worker.id()) - before) / WINDOW.as_secs_f64();
    let status = std::fs::read_to_string(format!("/proc/{}/status", worker.id())).expect("it runs");
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok());
    worker.kill().and_then(|()| worker.wait()).expect("it runs");
    vec![
        Row::figure("a worker beside 1,000 waiting runs (% of a core)", share, 1.0),
        Row::figure("its memory (MB)", peak.unwrap_or(f64::NAN) / 1024.0, 100.0),
    ]
}

fn taken(session: &mut Session, name: &str) -> (i64, i64) {
    let begun = session.get(&format!(
        "SELECT (b).run, (b).claim FROM nietz.enqueue(1, '{name}', 'f', '{{open}}', '{{}}', held_by => 'bench', vt => 3600) b"
    ));
    let (run, claim) = begun.split_once('|').expect("two columns");
    (run.parse().expect("a number"), claim.parse().expect("a number"))
}

/// A line of 1 kB, acknowledged, beside one that is written to a file and synced.
fn append(database: &Database<'_>, count: usize) -> Row {
    let line = "x".repeat(1000);
    let mut session = database.session();
    let (run, claim) = taken(&mut session, "append");
    let mut seq = 1;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut file = std::fs::File::create(folder.path().join("journal")).expect("a file");
    let (ours, floors) = pairs(
        count,
        || {
            timed(|| {
                for _ in 0..LINES {
                    seq += 1;
                    session.append(run, claim, seq, &line);
                }
            })
        },
        || {
            timed(|| {
                for _ in 0..LINES {
                    file.write_all(line.as_bytes()).and_then(|()| file.sync_data()).expect("it can be written");
                }
            })
        },
    );
    Row::ratio(&format!("{LINES} lines of 1 kB, beside a file"), &ours, &floors, 2.0)
}

/// Eight that write at once, beside as many of Postgres's own that insert the same.
fn at_once(database: &Database<'_>, count: usize) -> Row {
    let line = "x".repeat(1000);
    let mut owner = database.session();
    owner.get("CREATE TABLE public.plain (run bigint, seq bigint, body text, claim bigint, PRIMARY KEY (run, seq)); CREATE SEQUENCE public.plain_seq");
    let script = tempfile::NamedTempFile::new().expect("a temporary file");
    let insert = format!("INSERT INTO public.plain VALUES (:client_id, nextval('public.plain_seq'), '{line}', 1);\n");
    std::fs::write(script.path(), insert).expect("it can be written");
    let mut writers: Vec<(Session, i64, i64, i64)> = (0..WORKERS)
        .map(|at| {
            let mut session = database.session();
            let (run, claim) = taken(&mut session, &format!("at-once-{at}"));
            (session, run, claim, 1)
        })
        .collect();
    let (ours, floors) = pairs(
        count,
        || {
            timed(|| {
                std::thread::scope(|scope| {
                    for (session, run, claim, seq) in &mut writers {
                        let line = &line;
                        scope.spawn(move || {
                            for _ in 0..LINES {
                                *seq += 1;
                                session.append(*run, *claim, *seq, line);
                            }
                        });
                    }
                });
            })
        },
        || {
            let program = binaries().expect("a server runs").join("pgbench");
            let mut command = Command::new(program);
            command.args([
                "-n",
                "-M",
                "prepared",
                "-j",
                "8",
                "-c",
                &WORKERS.to_string(),
                "-t",
                &LINES.to_string(),
                "-f",
            ]);
            let printed = command.arg(script.path()).arg(database.url()).output().expect("it is beside the server");
            let text = String::from_utf8_lossy(&printed.stdout).into_owned();
            let rate = text.lines().find_map(|line| line.strip_prefix("tps = ")).unwrap_or_else(|| {
                panic!("{text}{}", String::from_utf8_lossy(&printed.stderr));
            });
            let rate: f64 = rate.split(' ').next().and_then(|rate| rate.parse().ok()).expect("a number");
            #[allow(clippy::cast_precision_loss)]
            let wall = Duration::from_secs_f64((WORKERS * LINES) as f64 / rate);
            Cost { wall, memory: 0.0 }
        },
    );
    Row::ratio(&format!("{WORKERS} writers of {LINES} lines, beside pgbench"), &ours, &floors, 2.0)
}

/// Whole runs on the server, beside the same in files.
fn processes(database: &Database<'_>, count: usize) -> Vec<Row> {
    let served = crate::Server::start();
    let subject = Subject::new(&served.url);
    let on_server = |mut command: Command| {
        command.env("NIETZ_STORE", database.url()).env("NIETZ_STORE_WORKSPACE", "team");
        cost(&mut command)
    };
    let mut number = 0;
    let mut debate = || {
        number += 1;
        let mut command = subject.nietz();
        command.args(["run", "debate", "--calls", "400"]).env("NIETZ_RUN", format!("debate-{number}"));
        on_server(command)
    };
    let (ours, floors) = pairs(count, &mut debate, || subject.calls("debate", 400));
    let mut rows = vec![Row::ratio("400 calls of a debate, beside files", &ours, &floors, 2.0)];
    let mut owner = database.session();
    let mut command = subject.nietz();
    command.args(["run", "effects", "--count", "10000"]).env("NIETZ_RUN", "effects");
    on_server(command);
    let in_files = subject.effects(10_000);
    let resume = || {
        // As it was before its last line.
        owner.get(
            "WITH r AS (UPDATE nietz.run SET status = 'stopped' WHERE name = 'effects' RETURNING id) \
             DELETE FROM nietz.line l USING r WHERE l.run = r.id AND l.body LIKE '%\"is\":{\"end\":%' \
             OR l.run = r.id AND l.body LIKE '%\"is\":{\"resume\":%'",
        );
        let mut command = subject.nietz();
        command.args(["resume", "effects"]);
        on_server(command)
    };
    let (ours, floors) = pairs(count, resume, || in_files.run());
    rows.push(Row::ratio("resume over 10,000 effects, beside files", &ours, &floors, 2.0));
    rows
}

fn listed(database: &Database<'_>, count: usize) -> Row {
    let subject = Subject::new("http://127.0.0.1:1/v1");
    let summary = "{\"flow\": \"f\", \"topic\": \"Something to talk about\", \"started\": \"2026-01-09T10:30:00Z\", \"calls\": 3, \"usage\": {\"input\": 10, \"output\": 5}, \"end\": \"done\"}";
    database.session().get(&format!(
        "SELECT count(nietz.keep(1, 'listed-' || i, 'f', 'done', '{{open}}', '{summary}')) FROM generate_series(1, 10000) i"
    ));
    let list = || {
        let mut command = subject.nietz();
        command.arg("runs").env("NIETZ_STORE", database.url()).env("NIETZ_STORE_WORKSPACE", "team");
        cost(&mut command)
    };
    let (ours, _) = pairs(count, list, || subject.floor(&["sleep", "0"]));
    Row::wall("a list of 10,000 runs on a server", &ours, 100.0)
}

fn timed(work: impl FnOnce()) -> Cost {
    let start = Instant::now();
    work();
    Cost { wall: start.elapsed(), memory: 0.0 }
}
