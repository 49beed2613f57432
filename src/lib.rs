//! The host that runs flows.
#![doc = include_str!("ARCHITECTURE.md")]

pub mod error;
pub mod host;
pub mod journal;
pub mod model;
pub mod schema;
