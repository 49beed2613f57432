//! The server's process: started, waited for, watched.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

use super::super::engine_failure;
use super::super::settings::EngineSettings;
use super::choice::Server;
use super::wire::Wire;
use super::{VERB, listener};
use crate::error::{Failure, Result};
use crate::host::CallEvent;
use crate::model::text;

/// How long loading may take: weights of many gigabytes come from a slow disk.
const LOADING: Duration = Duration::from_secs(600);
/// How often a server that loads is asked whether it is ready.
const ASKED: Duration = Duration::from_millis(50);
/// How long a process may take to be gone whose connection broke.
const ENDING: Duration = Duration::from_secs(2);
/// How many ports are tried.
const PORTS: usize = 4;
/// How much of the server's log is kept for a failure.
const LOG: usize = 4_000;

/// What is loaded.
pub(super) struct Load<'a> {
    pub(super) weights: &'a Path,
    /// The most tokens of a conversation.
    pub(super) context: usize,
    pub(super) threads: usize,
}

/// A server that is ready. Dropping it kills the process.
pub(super) struct ServerProcess {
    child: Child,
    log: Log,
    pub(super) wire: Wire,
    /// The time that it had computed when it was looked at last.
    computed: std::cell::Cell<u64>,
}

impl ServerProcess {
    /// Starts a server and waits until it has loaded the weights.
    ///
    /// # Errors
    ///
    /// `model-broken`, with the end of the server's log.
    pub(super) async fn start(
        settings: &EngineSettings,
        server: &Server,
        load: &Load<'_>,
        report: &mut dyn FnMut(CallEvent<'_>),
    ) -> Result<ServerProcess> {
        let mut taken = None;
        for _ in 0..PORTS {
            let port = listener::free_port().map_err(engine_failure)?;
            let mut process = ServerProcess::spawn(settings, server, load, port)?;
            match process.ready(port, report).await? {
                Ready::Yes => return Ok(process),
                Ready::PortTaken => taken = Some(port),
            }
        }
        Err(engine_failure(format!("other programs took each port for llama-server, the last {taken:?}")))
    }

    fn spawn(settings: &EngineSettings, server: &Server, load: &Load<'_>, port: u16) -> Result<ServerProcess> {
        let token = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
        let mut command = Command::new(&settings.exe);
        command.arg(VERB).arg(&server.program);
        command.arg("--model").arg(load.weights);
        command.args(["--host", "127.0.0.1", "--port", &port.to_string()]);
        command.args(["--ctx-size", &load.context.to_string(), "--parallel", "1"]);
        command.args(["--threads", &load.threads.max(1).to_string()]).args(&server.arguments);
        command.env_clear().envs(environment(&settings.program_environment)).kill_on_drop(true);
        // A Ctrl-C is for this process, which ends the server when it has tidied up.
        command.process_group(0);
        // Not among the arguments, which all users of the machine can see.
        command.env("LLAMA_API_KEY", &token);
        // What an older server does not know is passed over there. The memory for other conversations, in MB.
        command.env("LLAMA_ARG_CACHE_RAM", "512").env("LLAMA_ARG_WEBUI", "0");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| engine_failure(format!("cannot start {}: {error}", server.program.display())))?;
        let log = Log::default();
        if let Some(stdout) = child.stdout.take() {
            log.read(stdout);
        }
        if let Some(stderr) = child.stderr.take() {
            log.read(stderr);
        }
        Ok(ServerProcess { child, log, wire: Wire::new(port, token)?, computed: std::cell::Cell::new(0) })
    }

    async fn ready(&mut self, port: u16, report: &mut dyn FnMut(CallEvent<'_>)) -> Result<Ready> {
        let begun = Instant::now();
        loop {
            tokio::time::sleep(ASKED).await;
            if self.child.try_wait().map_err(engine_failure)?.is_some() {
                let was_taken = self.log.text().to_lowercase();
                let was_taken = ["address already in use", "couldn't bind", "failed to bind"]
                    .iter()
                    .any(|words| was_taken.contains(words));
                return if was_taken { Ok(Ready::PortTaken) } else { Err(self.end().await) };
            }
            if self.wire.is_ready().await {
                let is_own = self.child.id().is_none_or(|id| listener::is_of(id, port));
                return Ok(if is_own { Ready::Yes } else { Ready::PortTaken });
            }
            if begun.elapsed() > LOADING {
                let seconds = LOADING.as_secs();
                return Err(self.with_log(engine_failure(format!("llama-server was not ready after {seconds} s"))));
            }
            report(CallEvent::Alive);
        }
    }

    /// Tells whether the process has computed since it was asked last. Where the system does not say, the answer is yes.
    pub(super) fn has_computed(&self) -> bool {
        let Some(now) = self.child.id().and_then(processor_time) else { return true };
        self.computed.replace(now) != now
    }

    /// Tells whether the process runs.
    pub(super) fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns why the process ended, if it did or does so now: a connection breaks a little before its process is gone.
    pub(super) async fn ended(&mut self) -> Option<Failure> {
        match tokio::time::timeout(ENDING, self.child.wait()).await {
            Ok(_) => Some(self.end().await),
            Err(_) => None,
        }
    }

    async fn end(&mut self) -> Failure {
        let _ = self.child.start_kill();
        let failure = match self.child.wait().await {
            Ok(status) => engine_failure(format!("llama-server ended unexpectedly ({status})")),
            Err(error) => engine_failure(error),
        };
        self.log.whole().await;
        self.with_log(failure)
    }

    fn with_log(&self, failure: Failure) -> Failure {
        let log = self.wire.without_token(&self.log.text());
        let failure = match log.trim() {
            "" => failure,
            log => failure.because(text::clean(log)),
        };
        failure.hint("NIETZ_LOCAL_ENGINE=built-in takes the built-in engine")
    }
}

enum Ready {
    Yes,
    PortTaken,
}

/// Returns the variables for the server: without those that would change what its arguments say.
fn environment(variables: &BTreeMap<String, String>) -> impl Iterator<Item = (&String, &String)> {
    variables.iter().filter(|(name, _)| !name.starts_with("LLAMA_"))
}

/// Returns how long a process has computed, in ticks of the kernel's clock.
fn processor_time(process: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Behind the name, which may hold anything, the 12th and 13th fields are the times in the program and in the kernel.
    let mut times = text.rsplit_once(')')?.1.split_whitespace().skip(11).map(str::parse::<u64>);
    Some(times.next()?.ok()? + times.next()?.ok()?)
}

/// The end of what the server writes.
#[derive(Clone, Default)]
struct Log {
    text: Arc<Mutex<Vec<u8>>>,
    readers: Arc<Mutex<Vec<tokio::task::JoinHandle<()>>>>,
}

impl Log {
    fn read(&self, mut from: impl AsyncRead + Unpin + Send + 'static) {
        let text = self.text.clone();
        let reader = tokio::spawn(async move {
            let mut buffer = [0; 2048];
            while let Ok(read @ 1..) = from.read(&mut buffer).await {
                let mut text = text.lock().unwrap_or_else(PoisonError::into_inner);
                text.extend_from_slice(&buffer[..read]);
                let excess = text.len().saturating_sub(LOG);
                text.drain(..excess);
            }
        });
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
    }

    /// Waits for the rest that an ended server has written.
    async fn whole(&self) {
        let readers = std::mem::take(&mut *self.readers.lock().unwrap_or_else(PoisonError::into_inner));
        for reader in readers {
            // A child of the server may still hold its output.
            let _ = tokio::time::timeout(Duration::from_secs(1), reader).await;
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}
