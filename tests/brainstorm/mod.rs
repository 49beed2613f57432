//! The brainstorm as its users meet it: the program, its files, and a model service that answers by the schema.

mod asked;
mod bad_input;
mod briefs;
mod commands;
mod confidences;
mod endings;
mod flags;
mod history;
mod languages;
mod leads;
mod ledger;
mod looks;
mod minds;
pub(crate) mod model;
mod own;
mod price;
mod rules;
mod scribe;
mod session_files;
mod strict;
pub(crate) mod table;
mod unusable;
mod voices;
mod whole;
mod worth;
