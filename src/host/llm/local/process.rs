//! The child process with the engine, as the parent sees it: it takes requests and sends events.

use std::path::Path;
use std::process::Stdio;

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

/// Returns how many threads to use: as many as there are cores that other programs leave free.
///
/// The threads of the engine wait for each other many times a token, so one thread without a core of its
/// own delays all: with both of two cores taken, two threads were four times slower than one.
pub(super) fn free_cores() -> usize {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().and_then(|load| load.parse().ok());
    cores_left(num_cpus::get_physical(), load.unwrap_or(0.0))
}

fn cores_left(cores: usize, load: f64) -> usize {
    cores.saturating_sub((load + 0.25).floor() as usize).max(1)
}

#[cfg(test)]
mod tests {
    use super::cores_left;

    #[test]
    fn cores_that_others_use_are_left_to_them() {
        assert_eq!(cores_left(2, 0.3), 2);
        assert_eq!(cores_left(2, 0.8), 1);
        assert_eq!(cores_left(2, 9.0), 1);
        assert_eq!(cores_left(8, 3.1), 5);
    }
}
