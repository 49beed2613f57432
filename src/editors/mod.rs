//! Flows in editors and from agents: as tools of the Model Context Protocol (`mcp`), and as an agent of the Agent Client
//! Protocol (`acp`).
//!
//! Both are supervisors (`supervisor`): a run is a process of its own, `nietz run --json`, which outlives client and server and
//! is gone on with from anywhere. `offers` says which flows are offered, `offer` makes schemas and command lines of their params,
//! `transcript` is what was said so far. Nothing here can grant a run anything: that is the command line's and the user's.

mod acp;
mod collections;
mod form;
mod install;
mod lines;
mod mcp;
mod offer;
mod offers;
mod supervisor;
mod transcript;

pub(crate) use acp::{AcpOptions, InFolder, serve as serve_acp};
pub(crate) use install::{Change, EditorClient, Scope};
pub(crate) use mcp::{HttpListener, McpOptions, McpServer};
pub(crate) use offers::{Offers, find};
pub(crate) use supervisor::{Place, Supervisor};
