//! Reads text as values, validates and writes them: everything about data files that needs no disk.
//!
//! A file goes through these modules in order: [`source`] decodes and parses it, [`check`] finds what is
//! wrong with the value, [`spans`] finds where that stands in the text, [`report`] shows it. On the way
//! out, [`shape`] gives a value the form that its schema means, and [`text`] writes it.
//! Nothing here reads or writes a file, and nothing here knows which documents exist.

pub(crate) mod cache;
pub(crate) mod check;
mod cost;
pub(crate) mod expect;
mod json;
pub(crate) mod notes;
pub mod builtin;
mod position;
pub(crate) mod report;
mod scalar;
pub(crate) mod shape;
pub mod source;
pub(crate) mod spans;
mod subschema;
pub mod text;
mod value_builder;
mod words;
mod yaml;

pub use cache::SchemaCache;
pub(crate) use check::HINT as SCHEMA_HINT;
pub use check::{Formats, Schema, Violation};
pub use position::TextPosition;
pub use report::LocatedViolation;
pub(crate) use subschema::{SaidOf, properties, referred, said_of};

/// A root keyword of schemas. With `"x-formats": "on-save"`, formats (uuid, date-time …) bind only what is written,
/// because there are older files that do not keep to them. With `"never"`, formats are only remarks.
pub const FORMATS: &str = "x-formats";
