//! Flow code: one sandboxed Luau VM for each run. It knows the gate and no adapter.
//!
//! `vm` makes the machine and closes the holes of the stock library; `limits` watches time and memory;
//! `bridge.luau` is the thin layer between a flow and the host; `scheduler` drives the flow and its branches, does
//! what each `request` asks for, and is the only one that talks to the gate; `manifest` reads what a flow declares;
//! `api` is what flows can require.

pub mod api;
pub mod audit;
pub(crate) mod convert;
pub(crate) mod error_values;
pub mod flow;
pub mod limits;
pub(crate) mod manifest;
pub(crate) mod modules;
pub(crate) mod request;
mod scan;
pub mod scheduler;
mod strings;
pub(crate) mod vm_errors;
pub mod vm;
