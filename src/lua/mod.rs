//! Flow code: one sandboxed Luau VM for each run. This room knows the gate and no adapter.
//!
//! `vm` builds the VM without the unsafe functions of the stock library; `limits` watches time and memory;
//! `bridge.luau` is the thin layer between a flow and the host; `scheduler` runs the flow and its branches, handles
//! each `request`, and is the only module that talks to the gate; `manifest` reads what a flow declares; `api` holds
//! the modules that flows can require. Functions that return `mlua::Result` fail only if the VM is out of memory.

pub mod api;
pub mod audit;
mod bytecode;
pub(crate) mod convert;
pub(crate) mod error_values;
pub mod flow;
pub mod limits;
mod looking;
pub(crate) mod manifest;
mod misspelt;
pub(crate) mod modules;
pub(crate) mod request;
mod scan;
pub mod scheduler;
mod strings;
mod type_files;
pub(crate) mod vm_errors;
pub mod vm;
