//! The run's append-only record of effects and outcomes.
//!
//! A journal is a text file of JSON lines. Each line carries its number, the digest of the line before it and
//! its own digest, so that any change is found. Lines are never rewritten; a last line that was torn by a
//! crash is cut off. Long texts are written once and referred to by their digest.
//!
//! `lines` defines the two formats, which stay readable forever, with the persisted types in `persisted`. `writer` composes lines
//! and hands them to a `LineStore`: a file (`journal_file`), or a server that is none of this room's business. `writer` and
//! `reader` know the format, but not what effects mean; `entries` reads lines for display and comparison.
//! `key` makes the keys of effects. `texts` and `parts` find what is written already, and `expander` puts it back; `param_texts`
//! does so for params.

pub mod entries;
pub mod fault_injection;
mod journal_file;
pub(crate) mod key;
pub mod line_store;
pub mod lines;
mod param_texts;
pub(crate) mod parts;
mod persisted;
pub mod reader;
pub(crate) mod texts;
pub(crate) mod expander;
pub mod writer;
