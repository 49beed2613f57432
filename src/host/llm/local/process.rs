//! The child process with the engine, as the parent sees it: it takes requests and sends events.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use super::child::{EngineEvent, EngineRequest};
use super::engine_failure;
use super::prefixes::Place;
use super::settings::EngineSettings;
use crate::error::{Failure, Result};
use crate::model::text;

pub(super) struct EngineProcess {
    pub(super) threads: usize,
    child: Child,
    requests: ChildStdin,
    events: Lines<BufReader<ChildStdout>>,
    /// The end of the child's standard error: the message of a panic, if there was one.
    stderr_tail: JoinHandle<String>,
}

impl EngineProcess {
    /// Starts a child and makes it load the model. Dropping the `EngineProcess` kills the child.
    pub(super) async fn start(
        settings: &EngineSettings,
        threads: usize,
        model: &str,
        weights: &Path,
    ) -> Result<EngineProcess> {
        let mut command = Command::new(&settings.exe);
        command.args(&settings.arguments).env_clear().kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Two libraries of the engine read their variable once, when they start.
        let count = threads.max(1).to_string();
        command.env("RAYON_NUM_THREADS", &count).env("CANDLE_NUM_THREADS", &count);
        let mut child = command
            .spawn()
            .map_err(|error| engine_failure(format!("cannot start {}: {error}", settings.exe.display())))?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(engine_failure("it has no pipes"));
        };
        let stdout = BufReader::new(stdout).lines();
        let mut engine = EngineProcess {
            threads,
            child,
            requests: stdin,
            events: stdout,
            stderr_tail: tokio::spawn(stderr_tail(stderr)),
        };
        engine
            .send(&EngineRequest::Load {
                model: model.to_owned(),
                path: weights.to_owned(),
                kept: Some(Place { models: settings.dir.clone(), program: settings.exe.clone() }),
            })
            .await?;
        match engine.next_event().await? {
            EngineEvent::Loaded => Ok(engine),
            event => Err(engine_failure(format!("it began with {event:?}"))),
        }
    }

    pub(super) async fn send(&mut self, request: &EngineRequest) -> Result<()> {
        let mut line = serde_json::to_vec(request).map_err(engine_failure)?;
        line.push(b'\n');
        match self.requests.write_all(&line).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.exit_error().await),
        }
    }

    /// Waits for the next event. The future may be dropped without losing an event.
    pub(super) async fn next_event(&mut self) -> Result<EngineEvent> {
        match self.events.next_line().await {
            Ok(Some(line)) => serde_json::from_str(&line).map_err(engine_failure),
            Ok(None) | Err(_) => Err(self.exit_error().await),
        }
    }

    /// Returns the failure of a child that ended.
    async fn exit_error(&mut self) -> Failure {
        let _ = self.child.start_kill();
        let status = self.child.wait().await;
        let stderr = (&mut self.stderr_tail).await.unwrap_or_default();
        let failure = match status {
            Ok(status) => engine_failure(format!("it ended unexpectedly ({status})")),
            Err(error) => engine_failure(error),
        };
        let failure = match stderr.trim() {
            "" => failure,
            stderr => failure.because(text::clean(stderr)),
        };
        failure.hint("the next call starts it again; if the machine was out of memory, choose a smaller model")
    }
}

async fn stderr_tail(mut errors: ChildStderr) -> String {
    const KEPT: usize = 2_000;
    let mut tail = Vec::new();
    let mut buffer = [0; 1024];
    while let Ok(read) = errors.read(&mut buffer).await {
        if read == 0 {
            break;
        }
        tail.extend_from_slice(&buffer[..read]);
        tail.drain(..tail.len().saturating_sub(KEPT));
    }
    String::from_utf8_lossy(&tail).into_owned()
}

/// How long the machine is looked at before an engine starts.
const LOOK: Duration = Duration::from_millis(100);

/// Returns how many threads to use: as many as there are cores that other programs leave free now. (The load of the last minute says
/// little of now: behind a build it is high for minutes.)
///
/// The threads of the engine wait for each other many times a token, so one thread without a core of its
/// own delays all: with both of two cores taken, two threads were four times slower than one.
pub(super) async fn free_cores() -> usize {
    let before = CoreTimes::now();
    tokio::time::sleep(LOOK).await;
    cores_left(num_cpus::get_physical(), CoreTimes::now().busy_since(before))
}

/// How long all cores together have worked and have had nothing to do since the machine started, in ticks.
#[derive(Clone, Copy, Default)]
struct CoreTimes {
    worked: u64,
    idle: u64,
}

impl CoreTimes {
    /// Reads Linux's statistics. On other systems all times are zero, so that nothing counts as busy.
    fn now() -> CoreTimes {
        CoreTimes::read(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// Its first line: user, nice, system, idle, waiting for disks, interrupts of two kinds, stolen.
    fn read(text: &str) -> CoreTimes {
        let line = text.lines().next().unwrap_or_default();
        let mut times = CoreTimes::default();
        for (at, ticks) in line.split_whitespace().skip(1).take(8).enumerate() {
            let ticks: u64 = ticks.parse().unwrap_or_default();
            *(if matches!(at, 3 | 4) { &mut times.idle } else { &mut times.worked }) += ticks;
        }
        times
    }

    /// Returns how many cores were busy since then.
    fn busy_since(self, before: CoreTimes) -> f64 {
        let worked = self.worked.saturating_sub(before.worked) as f64;
        let all = worked + self.idle.saturating_sub(before.idle) as f64;
        if all == 0.0 { 0.0 } else { worked / all * num_cpus::get() as f64 }
    }
}

fn cores_left(cores: usize, busy: f64) -> usize {
    cores.saturating_sub((busy + 0.25).floor() as usize).max(1)
}

#[cfg(test)]
mod tests {
    use super::{CoreTimes, cores_left};

    #[test]
    fn cores_that_others_use_are_left_to_them() {
        assert_eq!(cores_left(2, 0.3), 2);
        assert_eq!(cores_left(2, 0.8), 1);
        assert_eq!(cores_left(2, 9.0), 1);
        assert_eq!(cores_left(8, 3.1), 5);
    }
    /// What the machine did before the engine starts, a build for minutes, keeps no core from it.
    #[test]
    fn a_core_is_taken_by_what_runs_now() {
        let before = CoreTimes::read("cpu  90000 10 5000 1000 20 0 30 0 0 0\ncpu0 1 1 1 1\n");
        let quiet = CoreTimes::read("cpu  90000 10 5001 1018 21 0 30 0 0 0\n");
        let half = CoreTimes::read("cpu  90009 10 5001 1010 20 0 30 0 0 0\n");
        let cores = num_cpus::get() as f64;
        assert!((quiet.busy_since(before) - cores * 0.05).abs() < 1e-9);
        assert!((half.busy_since(before) - cores * 0.5).abs() < 1e-9);
        assert_eq!(before.busy_since(before), 0.0);
    }
}
