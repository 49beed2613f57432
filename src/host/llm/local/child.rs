//! The engine's side of the pipe: reads requests from standard input, writes events to standard output.
//!
//! Each line is one JSON value. A thread of its own reads the requests, so that a cancel reaches an engine
//! at work. When the input ends, the parent is gone, however it ended, and the child ends, too.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;

use serde::{Deserialize, Serialize};

use super::engine::{Engine, GenerationEvent};
use super::engine_failure;
use super::prefixes::Place;
use crate::error::{Exit, Failure, Result};
use crate::model::chat::{ChatReply, ChatRequest};

/// A request of the parent. `Load` comes first, and once.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EngineRequest {
    /// Beginnings of prompts are kept at `kept`; without it, none are.
    Load {
        model: String,
        path: PathBuf,
        #[serde(default)]
        kept: Option<Place>,
    },
    Chat {
        id: u64,
        seed: u64,
        request: Box<ChatRequest>,
    },
    Cancel {
        id: u64,
    },
}

/// An event of the child. Each `Chat` ends with one of the last three.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EngineEvent {
    Loaded,
    /// It works, and has nothing to show yet.
    Alive {
        id: u64,
    },
    Delta {
        id: u64,
        text: String,
    },
    Again {
        id: u64,
        reason: String,
    },
    /// `crowded` tells whether other programs kept the engine's threads from their cores.
    Done {
        id: u64,
        reply: ChatReply,
        crowded: bool,
    },
    Failed {
        id: u64,
        failure: Failure,
    },
    Cancelled {
        id: u64,
    },
}

/// What the reading thread tells the working engine.
#[derive(Default)]
struct StopSignals {
    gone: AtomicBool,
    /// The highest id of a cancelled call. Ids grow, so all calls up to it are over.
    cancelled: AtomicU64,
}

/// Serves requests until the input ends, and returns the exit status of the process.
pub(crate) fn serve(stdin: impl Read + Send + 'static, stdout: impl Write) -> Exit {
    let signals = Arc::new(StopSignals::default());
    let (sender, requests) = mpsc::channel();
    let thread_signals = signals.clone();
    std::thread::spawn(move || {
        for line in BufReader::new(stdin).lines() {
            match line.map_err(engine_failure).and_then(|line| serde_json::from_str(&line).map_err(engine_failure)) {
                Ok(EngineRequest::Cancel { id }) => _ = thread_signals.cancelled.fetch_max(id, Ordering::Relaxed),
                request => _ = sender.send(request),
            }
        }
        thread_signals.gone.store(true, Ordering::Relaxed);
    });
    match work(&requests, &signals, stdout) {
        Ok(()) => Exit::Done,
        Err(_) if signals.gone.load(Ordering::Relaxed) => Exit::Done,
        Err(failure) => {
            // The parent shows the end of standard error.
            let _ = writeln!(std::io::stderr(), "{failure}");
            Exit::Failed
        }
    }
}

fn work(requests: &mpsc::Receiver<Result<EngineRequest>>, signals: &StopSignals, mut stdout: impl Write) -> Result<()> {
    let mut engine = None;
    for request in requests {
        match request? {
            EngineRequest::Load { model, path, kept } => {
                engine = Some(Engine::load(&model, &path, kept.as_ref(), &|| signals.gone.load(Ordering::Relaxed))?);
                write_event(&mut stdout, &EngineEvent::Loaded)?;
            }
            EngineRequest::Chat { id, seed, request } => {
                let engine = engine.as_mut().ok_or_else(|| engine_failure("no model was loaded"))?;
                let stop = || signals.gone.load(Ordering::Relaxed) || signals.cancelled.load(Ordering::Relaxed) >= id;
                let mut on_event = |event: GenerationEvent<'_>| {
                    let event = match event {
                        GenerationEvent::Alive => EngineEvent::Alive { id },
                        GenerationEvent::Delta(text) => EngineEvent::Delta { id, text: text.to_owned() },
                        GenerationEvent::Retry(reason) => EngineEvent::Again { id, reason: reason.to_owned() },
                    };
                    if write_event(&mut stdout, &event).is_err() {
                        signals.gone.store(true, Ordering::Relaxed);
                    }
                };
                let before = ThreadTimes::now();
                let event = match engine.chat(&request, seed, &mut on_event, &stop) {
                    Ok(Some(reply)) => {
                        EngineEvent::Done { id, reply, crowded: ThreadTimes::now().crowded_since(&before) }
                    }
                    Ok(None) => EngineEvent::Cancelled { id },
                    Err(failure) => EngineEvent::Failed { id, failure },
                };
                write_event(&mut stdout, &event)?;
            }
            EngineRequest::Cancel { .. } => {}
        }
    }
    Ok(())
}

/// How long the threads of this process have run and have waited for a core, in nanoseconds.
#[derive(Default)]
struct ThreadTimes {
    ran: u64,
    waited: u64,
}

impl ThreadTimes {
    /// Reads Linux's statistics of each thread. On other systems all times are zero, so nothing counts as crowded.
    fn now() -> ThreadTimes {
        let mut times = ThreadTimes::default();
        for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
            let line = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
            let mut numbers = line.split_whitespace().map(|number| number.parse::<u64>().unwrap_or(0));
            times.ran += numbers.next().unwrap_or(0);
            times.waited += numbers.next().unwrap_or(0);
        }
        times
    }

    fn crowded_since(&self, before: &ThreadTimes) -> bool {
        let (ran, waited) = (self.ran.saturating_sub(before.ran), self.waited.saturating_sub(before.waited));
        // Half a second at least, so that a hiccup does not count, and a tenth of the running time.
        waited > 500_000_000 && waited > ran / 10
    }
}

fn write_event(stdout: &mut impl Write, event: &EngineEvent) -> Result<()> {
    let mut line = serde_json::to_vec(event).map_err(engine_failure)?;
    line.push(b'\n');
    stdout.write_all(&line).and_then(|()| stdout.flush()).map_err(engine_failure)
}
