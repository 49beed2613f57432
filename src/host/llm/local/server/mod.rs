//! The other engine: an installed `llama-server` (llama.cpp), with the same weights, prompts, bounds and sampling.
//!
//! It is a child on the loopback, at a port that only it listens on, with a token that only this process knows, and it
//! ends with this process, however that ends. The request's text never becomes a control token here either: the server
//! fills the model's template with marks and turns each text into tokens by itself ([`wire`]).
//!
//! [`choice`] says which engine is used and why, [`process`] starts the server and watches it, [`adapter`] answers calls.
//! The same seed need not give the same text as the built-in engine's, nor on another build of llama.cpp.

pub(super) mod adapter;
pub(crate) mod choice;
mod listener;
mod process;
mod wire;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// The hidden verb by which this program becomes the server: `VERB PROGRAM ARGUMENTS…`.
pub(crate) const VERB: &str = "__server";

/// Becomes the server, which ends with the process that started this one.
pub(crate) fn become_server(words: &[OsString]) -> ExitCode {
    let Some((program, arguments)) = words.split_first() else { return ExitCode::FAILURE };
    let error = match end_with_parent() {
        Ok(()) => Command::new(program).args(arguments).exec(),
        Err(error) => error,
    };
    // The process that reads this shows it as the server's own words.
    let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{}: {error}\n", program.display()).as_bytes());
    ExitCode::FAILURE
}

/// Asks the kernel to end this process with its parent. Elsewhere than on Linux a server outlives a parent that is
/// killed by SIGKILL.
fn end_with_parent() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        // It may have ended just before.
        if rustix::process::getppid().is_none_or(|parent| parent.is_init()) {
            return Err(std::io::Error::other("the process that started it is gone"));
        }
    }
    Ok(())
}
