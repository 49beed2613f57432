//! The integration tests: each runs the real binary, in an environment of its own, with no key and no network.
//!
//! `support` is that environment; `cli` holds one file for each promise. `lua` and `api` run flow code in this process;
//! `fuzz` gives hostile input to each reader.

#![allow(
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test that fails may do so in one word, in its helpers, too"
)]

#[path = "support/mod.rs"]
mod support;

#[path = "cli/mod.rs"]
mod cli;

#[path = "api/mod.rs"]
mod api;

#[path = "lua/mod.rs"]
mod lua;

#[path = "fuzz/mod.rs"]
mod fuzz;

#[path = "first/mod.rs"]
mod first;

#[path = "debug_memory/mod.rs"]
mod debug_memory;

#[path = "brainstorm/mod.rs"]
mod brainstorm;

#[path = "council/mod.rs"]
mod council;
#[path = "debug/mod.rs"]
mod debug;

#[cfg(feature = "editors")]
#[path = "editors/mod.rs"]
mod editors;

#[path = "shots/mod.rs"]
mod shots;

#[path = "mcp/mod.rs"]
mod mcp;

#[path = "agents/mod.rs"]
mod agents;

#[cfg(feature = "local")]
#[path = "local/mod.rs"]
mod local;

#[cfg(feature = "postgres")]
#[path = "store/mod.rs"]
mod store;
