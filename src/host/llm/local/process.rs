//! The child process with the engine in it, as a thing that takes orders and tells news.

use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use super::broken;
use super::child::{News, Order};
use super::settings::Settings;
use crate::error::{Failure, Result};
use crate::model::text;

pub(super) struct Engine {
    pub(super) threads: usize,
    child: Child,
    orders: ChildStdin,
    news: Lines<BufReader<ChildStdout>>,
    /// The end of what it wrote to standard error: a panic's message, if it had one.
    complaint: JoinHandle<String>,
}

impl Engine {
    /// Starts a child and has it load the model. Dropping this kills the child.
    pub(super) async fn start(settings: &Settings, threads: usize, model: &str, weights: &Path) -> Result<Engine> {
        let mut command = Command::new(&settings.exe);
        command.args(&settings.arguments).env_clear().kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Two libraries of the engine read their own name, once, when they start.
        let count = threads.max(1).to_string();
        command.env("RAYON_NUM_THREADS", &count).env("CANDLE_NUM_THREADS", &count);
        let mut child =
            command.spawn().map_err(|error| broken(format!("cannot start {}: {error}", settings.exe.display())))?;
        let (Some(orders), Some(news), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(broken("it has no pipes"));
        };
        let news = BufReader::new(news).lines();
        let mut engine = Engine { threads, child, orders, news, complaint: tokio::spawn(complaint(errors)) };
        engine.order(&Order::Load { model: model.to_owned(), path: weights.to_owned() }).await?;
        match engine.news().await? {
            News::Loaded => Ok(engine),
            news => Err(broken(format!("it began with {news:?}"))),
        }
    }

    pub(super) async fn order(&mut self, order: &Order) -> Result<()> {
        let mut line = serde_json::to_vec(order).map_err(broken)?;
        line.push(b'\n');
        match self.orders.write_all(&line).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.autopsy().await),
        }
    }

    /// Waits for the next news; safe to drop in between.
    pub(super) async fn news(&mut self) -> Result<News> {
        match self.news.next_line().await {
            Ok(Some(line)) => serde_json::from_str(&line).map_err(broken),
            Ok(None) | Err(_) => Err(self.autopsy().await),
        }
    }

    /// Returns what the child died of.
    async fn autopsy(&mut self) -> Failure {
        let _ = self.child.start_kill();
        let status = self.child.wait().await;
        let last = (&mut self.complaint).await.unwrap_or_default();
        let failure = match status {
            Ok(status) => broken(format!("it ended unexpectedly ({status})")),
            Err(error) => broken(error),
        };
        let failure = match last.trim() {
            "" => failure,
            last => failure.because(text::clean(last)),
        };
        failure.hint("the next call starts it again; if the machine was out of memory, choose a smaller model")
    }
}

async fn complaint(mut errors: ChildStderr) -> String {
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
    left_of(num_cpus::get_physical(), load.unwrap_or(0.0))
}

fn left_of(cores: usize, load: f64) -> usize {
    cores.saturating_sub((load + 0.25).floor() as usize).max(1)
}

#[cfg(test)]
mod tests {
    use super::left_of;

    #[test]
    fn cores_that_others_use_are_left_to_them() {
        assert_eq!(left_of(2, 0.3), 2);
        assert_eq!(left_of(2, 0.8), 1);
        assert_eq!(left_of(2, 9.0), 1);
        assert_eq!(left_of(8, 3.1), 5);
    }
}
