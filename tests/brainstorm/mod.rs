//! The brainstorm as its users meet it: the program, its files, and a model service that answers by the schema.

mod bad_input;
mod commands;
mod endings;
mod flags;
mod history;
pub(crate) mod model;
mod own;
mod rules;
mod session_files;
mod strict;
pub(crate) mod table;
mod voices;
mod whole;
