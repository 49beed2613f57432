//! The child process with the engine in it, as a thing that takes orders and tells news.

use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use super::child::{EngineEvent, EngineRequest};
use super::engine_failure;
use super::settings::EngineSettings;
use crate::error::{Failure, Result};
use crate::model::text;

pub(super) struct EngineProcess {
    pub(super) threads: usize,
    child: Child,
    requests: ChildStdin,
    events: Lines<BufReader<ChildStdout>>,
    /// The end of what it wrote to standard error: a panic's message, if it had one.
    stderr_tail: JoinHandle<String>,
}

impl EngineProcess {
    /// Starts a child and has it load the model. Dropping this kills the child.
    pub(super) async fn start(
        settings: &EngineSettings,
        threads: usize,
        model: &str,
        weights: &Path,
    ) -> Result<EngineProcess> {
        let mut command = Command::new(&settings.exe);
        command.args(&settings.arguments).env_clear().kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Two libraries of the engine read their own name, once, when they start.
        let count = threads.max(1).to_string();
        command.env("RAYON_NUM_THREADS", &count).env("CANDLE_NUM_THREADS", &count);
        let mut child = command
            .spawn()
            .map_err(|error| engine_failure(format!("cannot start {}: {error}", settings.exe.display())))?;
        let (Some(orders), Some(news), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(engine_failure("it has no pipes"));
        };
        let news = BufReader::new(news).lines();
        let mut engine = EngineProcess {
            threads,
            child,
            requests: orders,
            events: news,
            stderr_tail: tokio::spawn(stderr_tail(errors)),
        };
        engine.send(&EngineRequest::Load { model: model.to_owned(), path: weights.to_owned() }).await?;
        match engine.next_event().await? {
            EngineEvent::Loaded => Ok(engine),
            news => Err(engine_failure(format!("it began with {news:?}"))),
        }
    }

    pub(super) async fn send(&mut self, order: &EngineRequest) -> Result<()> {
        let mut line = serde_json::to_vec(order).map_err(engine_failure)?;
        line.push(b'\n');
        match self.requests.write_all(&line).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.exit_error().await),
        }
    }

    /// Waits for the next news; safe to drop in between.
    pub(super) async fn next_event(&mut self) -> Result<EngineEvent> {
        match self.events.next_line().await {
            Ok(Some(line)) => serde_json::from_str(&line).map_err(engine_failure),
            Ok(None) | Err(_) => Err(self.exit_error().await),
        }
    }

    /// Returns what the child died of.
    async fn exit_error(&mut self) -> Failure {
        let _ = self.child.start_kill();
        let status = self.child.wait().await;
        let last = (&mut self.stderr_tail).await.unwrap_or_default();
        let failure = match status {
            Ok(status) => engine_failure(format!("it ended unexpectedly ({status})")),
            Err(error) => engine_failure(error),
        };
        let failure = match last.trim() {
            "" => failure,
            last => failure.because(text::clean(last)),
        };
        failure.hint("the next call starts it again; if the machine was out of memory, choose a smaller model")
    }
}

async fn stderr_tail(mut errors: ChildStderr) -> String {
    const KEPT: usize = 2_000;
    let mut kept = Vec::new();
    let mut buffer = [0; 1024];
    while let Ok(read) = errors.read(&mut buffer).await {
        if read == 0 {
            break;
        }
        kept.extend_from_slice(&buffer[..read]);
        kept.drain(..kept.len().saturating_sub(KEPT));
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// Returns how many threads to use: as many as there are cores that other programs leave free.
///
/// The threads of the engine wait for each other many times a token. One that has no core of its own
/// makes all wait: with both of two cores taken, two threads were four times slower than one.
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
