//! The parent's side: keeps a child process with the engine, gives it one call at a time, and survives its death.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::child::{EngineEvent, EngineRequest};
use super::engine_failure;
use super::local_model::LocalModel;
use super::process::{self, EngineProcess};
pub(crate) use super::settings::EngineSettings;
use super::weights::Progress;
use crate::error::{Code, Failure, Result};
use crate::host::{CallEvent, Models};
use crate::model::chat::{ChatReply, ChatRequest};

/// How long a cancelled child may take to stop before it is killed.
const GRACE: Duration = Duration::from_millis(200);

/// How often a call that waits for the engine says that it does.
const SIGN: Duration = Duration::from_millis(250);

/// How long a crowded machine is assumed to stay crowded.
const CROWDED: Duration = Duration::from_secs(300);

/// One local model, run in a child process.
pub(crate) struct LocalModelAdapter {
    model: LocalModel,
    settings: EngineSettings,
    on_progress: Box<dyn Fn(Progress)>,
    /// Waiting callers get the engine in the order in which they came.
    engine: Arc<Mutex<Slot>>,
}

#[derive(Default)]
struct Slot {
    engine: Option<EngineProcess>,
    calls: u64,
    /// When a child's threads last had to wait for cores, and how many threads to use since then.
    crowded: Option<(Instant, usize)>,
}

impl Slot {
    /// Stops a child that would do better with another number of threads, which is fixed at its start.
    /// On a crowded machine threads wait for each other at each step, which costs more than loading the model again.
    fn stop_if_resized(&mut self, settings: &EngineSettings) {
        let (Some((since, threads)), None) = (self.crowded, settings.threads) else { return };
        let running = self.engine.as_ref().map_or(0, |engine| engine.threads);
        if since.elapsed() >= CROWDED {
            self.crowded = None;
        }
        if (self.crowded.is_some() && running > threads) || (self.crowded.is_none() && running == threads) {
            self.engine = None;
        }
    }

    async fn threads(&self, settings: &EngineSettings) -> usize {
        match settings.threads.or(self.crowded.map(|(_, threads)| threads)) {
            Some(threads) => threads,
            None => process::free_cores().await,
        }
    }
}

impl LocalModelAdapter {
    /// Fetches and starts nothing before the first call; then `on_progress` gets the progress of the fetch.
    pub(crate) fn new(
        model: LocalModel,
        settings: EngineSettings,
        on_progress: impl Fn(Progress) + 'static,
    ) -> LocalModelAdapter {
        LocalModelAdapter { model, settings, on_progress: Box::new(on_progress), engine: Arc::default() }
    }

    /// Waits until the engine is free. That is no silence of the model: the call before this one has a limit of its own.
    async fn turn(&self, report: &mut dyn FnMut(CallEvent<'_>)) -> OwnedMutexGuard<Slot> {
        let free = self.engine.clone().lock_owned();
        let mut free = std::pin::pin!(free);
        loop {
            match tokio::time::timeout(SIGN, free.as_mut()).await {
                Ok(slot) => return slot,
                Err(_) => report(CallEvent::Alive),
            }
        }
    }

    async fn call(&self, request: &ChatRequest, report: &mut dyn FnMut(CallEvent<'_>)) -> Result<ChatReply> {
        let mut slot = self.turn(report).await;
        slot.stop_if_resized(&self.settings);
        if slot.engine.is_none() {
            let weights = self.model.weights(&self.settings, &*self.on_progress, report).await?;
            let threads = slot.threads(&self.settings).await;
            slot.engine = Some(EngineProcess::start(&self.settings, threads, self.model.name(), &weights).await?);
        }
        slot.calls += 1;
        let id = slot.calls;
        let seed = uuid::Uuid::new_v4().as_u64_pair().0;
        // From here on the child works: if this future is dropped, `EngineCall` cleans up.
        let mut call = EngineCall { slot: Some(slot), id };
        let outcome = call.run(EngineRequest::Chat { id, seed, request: Box::new(request.clone()) }, report).await;
        call.finish(outcome)
    }
}

impl Models for LocalModelAdapter {
    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        report: &'a mut dyn FnMut(CallEvent<'_>),
    ) -> LocalBoxFuture<'a, Result<ChatReply>> {
        self.call(request, report).boxed_local()
    }
}

/// A call that the child works on. If it is dropped before its end, it tells the child to stop, and lets the next
/// caller in when the child has stopped or was killed.
struct EngineCall {
    slot: Option<OwnedMutexGuard<Slot>>,
    id: u64,
}

impl EngineCall {
    fn engine(&mut self) -> Result<&mut EngineProcess> {
        self.slot.as_mut().and_then(|slot| slot.engine.as_mut()).ok_or_else(|| engine_failure("it is not running"))
    }

    async fn run(&mut self, request: EngineRequest, report: &mut dyn FnMut(CallEvent<'_>)) -> Result<ChatReply> {
        let id = self.id;
        self.engine()?.send(&request).await?;
        loop {
            match self.engine()?.next_event().await? {
                EngineEvent::Alive { id: of } if of == id => report(CallEvent::Alive),
                EngineEvent::Delta { id: of, text } if of == id => report(CallEvent::Delta(&text)),
                EngineEvent::Again { id: of, reason } if of == id => {
                    report(CallEvent::Retry { attempt: 2, reason: &reason, wait_ms: 0 });
                }
                EngineEvent::Done { id: of, reply, crowded } if of == id => {
                    if let (true, Some(slot)) = (crowded, &mut self.slot) {
                        let threads = slot.engine.as_ref().map_or(1, |engine| engine.threads);
                        slot.crowded = Some((Instant::now(), threads.div_ceil(2)));
                    }
                    return Ok(reply);
                }
                EngineEvent::Failed { id: of, failure } if of == id => return Err(failure),
                EngineEvent::Cancelled { id: of } if of == id => {
                    return Err(engine_failure("it stopped without being asked"));
                }
                // Late events of a call that nobody waits for any more.
                _ => {}
            }
        }
    }

    /// Ends the call. A broken engine is dropped, so that the next call starts another.
    fn finish(mut self, outcome: Result<ChatReply>) -> Result<ChatReply> {
        if let (Some(mut slot), Err(failure)) = (self.slot.take(), &outcome)
            && failure.code == Code::ModelBroken
        {
            slot.engine = None;
        }
        outcome
    }
}

impl Drop for EngineCall {
    fn drop(&mut self) {
        let (Some(mut slot), id) = (self.slot.take(), self.id) else { return };
        let Some(mut engine) = slot.engine.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        // Without the runtime, or after the grace period, dropping the engine kills the child.
        runtime.spawn(async move {
            let stopped = async {
                engine.send(&EngineRequest::Cancel { id }).await?;
                loop {
                    match engine.next_event().await? {
                        EngineEvent::Done { id: of, .. }
                        | EngineEvent::Failed { id: of, .. }
                        | EngineEvent::Cancelled { id: of }
                            if of == id =>
                        {
                            return Ok::<(), Failure>(());
                        }
                        _ => {}
                    }
                }
            };
            if let Ok(Ok(())) = tokio::time::timeout(GRACE, stopped).await {
                slot.engine = Some(engine);
            }
        });
    }
}

#[cfg(all(test, unix))]
mod tests;
