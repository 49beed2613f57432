//! The run's append-only record of effects and outcomes.
//!
//! A journal is a text file of JSON lines. Each line carries its number, the digest of the line before it and
//! its own, so that a change anywhere is found. Lines are never rewritten; a last line that was torn by a
//! crash is cut off. Long texts are written once and referred to by their digest.
//!
//! `lines` are the formats, in forms of their own (`persisted`); both are read for good. `writer` and `reader`
//! know the format and the disk, and nothing of what effects mean; `entries` is the same for people. `key` is how effects
//! are told apart.

pub mod entries;
pub mod fault_injection;
pub(crate) mod key;
pub mod lines;
pub(crate) mod parts;
mod persisted;
pub mod reader;
pub(crate) mod texts;
pub(crate) mod expander;
pub mod writer;
