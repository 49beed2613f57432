//! A run that this process holds on a server: for some seconds, and again and again as long as it lives.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::Process;
use crate::error::{Code, Failure, Result};
use crate::store::postgres::Server;
use crate::store::postgres::runs::{Claim, HELD};

/// The claim of a run, which has none until it begins.
pub(super) type SharedClaim = Arc<OnceLock<Claim>>;

/// What a run's process and the thread that holds it know of each other.
#[derive(Clone)]
pub(super) struct Hold {
    pub(super) server: Server,
    pub(super) process: Process,
    pub(super) run: String,
    pub(super) claim: SharedClaim,
    state: Arc<Mutex<HoldState>>,
}

#[derive(Default)]
struct HoldState {
    /// Ends the thread when it is dropped.
    beating: Option<Sender<()>>,
    /// Why it is held no more.
    lost: Option<Failure>,
    /// Whether the server was told what becomes of the run.
    left: bool,
}

impl Hold {
    pub(super) fn new(server: Server, process: Process, run: &str, claim: SharedClaim) -> Hold {
        Hold { server, process, run: run.to_owned(), claim, state: Arc::default() }
    }

    /// A run that is over: it can be gone through again, and nothing is written.
    pub(super) fn over(self, status: &str) -> Hold {
        let failure = Failure::new(Code::RunOver, format!("the run {} is {status}", self.run))
            .hint("`nietz fork RUN` begins another one that takes over what it has");
        self.state.lock().unwrap_or_else(PoisonError::into_inner).lost = Some(failure);
        self
    }

    /// Begins to hold the run, unless a worker does so for this process.
    pub(super) fn beat(&self, claim: Claim) -> Result<()> {
        if self.process.given == Some(claim) {
            return Ok(());
        }
        let (sender, receiver) = mpsc::channel();
        let (server, state) = (self.server.clone(), Arc::clone(&self.state));
        let held = Duration::from_secs(u64::try_from(HELD).unwrap_or_default());
        let work = move || {
            let mut last = Instant::now();
            while let Err(RecvTimeoutError::Timeout) = receiver.recv_timeout(held / 3) {
                let lost = match server.beat(claim) {
                    Ok(true) => {
                        last = Instant::now();
                        continue;
                    }
                    Ok(false) => {
                        Failure::new(Code::RunTaken, "another process has taken this run, or it was cancelled")
                    }
                    // Who cannot say that it lives is taken for dead in the end.
                    Err(failure) if last.elapsed() > held => failure,
                    Err(_) => continue,
                };
                state.lock().unwrap_or_else(PoisonError::into_inner).lost = Some(lost);
                return;
            }
        };
        let started = std::thread::Builder::new().name("hold".to_owned()).spawn(work);
        started.map_err(|error| Failure::new(Code::Internal, format!("cannot hold a run: {error}")))?;
        self.state.lock().unwrap_or_else(PoisonError::into_inner).beating = Some(sender);
        Ok(())
    }

    /// Fails once the run is held no more.
    pub(super) fn check(&self) -> Result<()> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).lost.clone().map_or(Ok(()), Err)
    }

    /// Notes that the server knows what becomes of the run, and holds it no longer.
    pub(super) fn leave(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.left = true;
        state.beating = None;
    }

    fn is_left(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).left
    }
}

/// The last one who knows of a run that was left half-way says so: somebody may go on with it.
impl Drop for Hold {
    fn drop(&mut self) {
        let is_last = Arc::strong_count(&self.claim) == 1;
        if let Some(claim) = self.claim.get().filter(|claim| is_last && self.process.given != Some(**claim))
            && !self.is_left()
        {
            self.leave();
            // A process that cannot say so any more is missed after some seconds.
            let _ = self.server.release(*claim, true);
        }
    }
}
