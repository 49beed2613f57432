//! Runs: assembled in one place, run to their end, and replayed.
//!
//! - `machine`: this machine and its user, as the process found them; `folders`, `config`: where the user's files are, and
//!   what they say. `project`: which folder nietz works for.
//! - `machine::team`: where runs and documents are kept, if that is a server.
//! - `session`: a flow with what its run needs of these; `flow_cache`: what lists know of flows without loading them.
//!   `access`: what the run may touch. `models`: which models answer. `children`: what bounds the runs that it begins.
//! - `assemble`: the world, the gate and the flow's input, for live runs, replays and tests.
//! - `live`: a run from its first line to its last. `front`: how it is shown; `interrupts`: what asks it to end.
//! - `queued`: puts a run into the queue of a store. `replay`: plays a journal without models, people or files.
//!
//! Nothing here reads the environment or the command line: callers pass both in.

pub(crate) mod access;
pub mod assemble;
pub(crate) mod children;
pub(crate) mod config;
pub(crate) mod flow_cache;
pub(crate) mod folders;
pub(crate) mod front;
pub(crate) mod interrupts;
pub(crate) mod live;
pub mod machine;
pub(crate) mod models;
pub mod project;
#[cfg(feature = "postgres")]
pub(crate) mod queued;
pub(crate) mod replay;
pub mod session;

use crate::error::{Code, Failure, Result};

/// Returns a runtime for asynchronous work on the current thread.
///
/// # Errors
///
/// `internal` if the system refuses what the runtime needs.
pub fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Code::Internal, format!("cannot start: {error}")))
}
