//! Runs: put together in one place, taken to their end, and played again.
//!
//! - `machine`: this machine and its user, as the process found them; `folders`, `config`: where the user's files are, and
//!   what they say.
//! - `session`: a flow with what its run needs of these. `access`: what it may touch. `models`: who answers it.
//! - `assemble`: world, gate and start of a run, for all who run flows.
//! - `live`: a run from its first line to its last. `front`: who it is shown to; `interrupts`: who asks it to end.
//! - `replay`: a journal played again with nobody and nothing there.
//!
//! Nothing here reads the environment or the command line: it is handed in.

pub(crate) mod access;
pub mod assemble;
pub(crate) mod config;
pub(crate) mod folders;
pub(crate) mod front;
pub(crate) mod interrupts;
pub(crate) mod live;
pub mod machine;
pub(crate) mod models;
pub(crate) mod replay;
pub mod session;

use crate::error::{Code, Failure, Result};

/// Returns what asynchronous work of one thread runs on.
pub fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Code::Internal, format!("cannot start: {error}")))
}
