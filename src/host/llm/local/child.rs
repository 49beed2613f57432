//! The engine's side of the pipe: reads orders on standard input, writes what it does on standard output.
//!
//! One JSON value a line each way. Orders are read on a thread of their own, so that a cancel reaches an
//! engine at work. When the input ends the parent is gone, however it ended, and the child ends too.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;

use serde::{Deserialize, Serialize};

use super::engine::{Engine, GenerationEvent};
use super::engine_failure;
use crate::error::{Exit, Failure, Result};
use crate::model::chat::{ChatReply, ChatRequest};

/// What the parent asks for. `Load` comes first and once.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EngineRequest {
    Load { model: String, path: PathBuf },
    Chat { id: u64, seed: u64, request: Box<ChatRequest> },
    Cancel { id: u64 },
}

/// What the child tells. Each `Chat` ends with one of the last three.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EngineEvent {
    Loaded,
    Delta {
        id: u64,
        text: String,
    },
    Again {
        id: u64,
        reason: String,
    },
    /// `crowded`: other programs kept the engine's threads from their cores.
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

/// What the reading thread tells the engine at work.
#[derive(Default)]
struct StopSignals {
    gone: AtomicBool,
    /// The latest call that is not wanted any more; ids grow.
    cancelled: AtomicU64,
}

/// Serves until the input ends; returns how the process ends.
pub fn serve(stdin: impl Read + Send + 'static, stdout: impl Write) -> Exit {
    let signals = Arc::new(StopSignals::default());
    let (sender, orders) = mpsc::channel();
    let heard = signals.clone();
    std::thread::spawn(move || {
        for line in BufReader::new(stdin).lines() {
            match line.map_err(engine_failure).and_then(|line| serde_json::from_str(&line).map_err(engine_failure)) {
                Ok(EngineRequest::Cancel { id }) => _ = heard.cancelled.fetch_max(id, Ordering::Relaxed),
                order => _ = sender.send(order),
            }
        }
        heard.gone.store(true, Ordering::Relaxed);
    });
    match work(&orders, &signals, stdout) {
        Ok(()) => Exit::Done,
        Err(_) if signals.gone.load(Ordering::Relaxed) => Exit::Done,
        Err(failure) => {
            // The parent shows the end of what stands here.
            let _ = writeln!(std::io::stderr(), "{failure}");
            Exit::Failed
        }
    }
}

fn work(orders: &mpsc::Receiver<Result<EngineRequest>>, signals: &StopSignals, mut stdout: impl Write) -> Result<()> {
    let mut engine = None;
    for order in orders {
        match order? {
            EngineRequest::Load { model, path } => {
                engine = Some(Engine::load(&model, &path, &|| signals.gone.load(Ordering::Relaxed))?);
                write_event(&mut stdout, &EngineEvent::Loaded)?;
            }
            EngineRequest::Chat { id, seed, request } => {
                let engine = engine.as_mut().ok_or_else(|| engine_failure("no model was loaded"))?;
                let stop = || signals.gone.load(Ordering::Relaxed) || signals.cancelled.load(Ordering::Relaxed) >= id;
                let mut hear = |heard: GenerationEvent<'_>| {
                    let news = match heard {
                        GenerationEvent::Delta(text) => EngineEvent::Delta { id, text: text.to_owned() },
                        GenerationEvent::Retry(reason) => EngineEvent::Again { id, reason: reason.to_owned() },
                    };
                    if write_event(&mut stdout, &news).is_err() {
                        signals.gone.store(true, Ordering::Relaxed);
                    }
                };
                let before = ThreadTimes::now();
                let news = match engine.chat(&request, seed, &mut hear, &stop) {
                    Ok(Some(reply)) => {
                        EngineEvent::Done { id, reply, crowded: ThreadTimes::now().crowded_since(&before) }
                    }
                    Ok(None) => EngineEvent::Cancelled { id },
                    Err(failure) => EngineEvent::Failed { id, failure },
                };
                write_event(&mut stdout, &news)?;
            }
            EngineRequest::Cancel { .. } => {}
        }
    }
    Ok(())
}

/// How long the threads of this process have run, and waited for a core, in nanoseconds.
#[derive(Default)]
struct ThreadTimes {
    ran: u64,
    waited: u64,
}

impl ThreadTimes {
    /// Reads what Linux keeps per thread; elsewhere nothing is known, and nothing is crowded.
    fn now() -> ThreadTimes {
        let mut shares = ThreadTimes::default();
        for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
            let line = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
            let mut numbers = line.split_whitespace().map(|number| number.parse::<u64>().unwrap_or(0));
            shares.ran += numbers.next().unwrap_or(0);
            shares.waited += numbers.next().unwrap_or(0);
        }
        shares
    }

    fn crowded_since(&self, before: &ThreadTimes) -> bool {
        let (ran, waited) = (self.ran.saturating_sub(before.ran), self.waited.saturating_sub(before.waited));
        // A tenth of the time, and not for the length of a hiccup.
        waited > 500_000_000 && waited > ran / 10
    }
}

fn write_event(stdout: &mut impl Write, news: &EngineEvent) -> Result<()> {
    let mut line = serde_json::to_vec(news).map_err(engine_failure)?;
    line.push(b'\n');
    stdout.write_all(&line).and_then(|()| stdout.flush()).map_err(engine_failure)
}
