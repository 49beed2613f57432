//! The brainstorm as its users meet it: the program, its files, and a model service that answers by the schema.

mod bad_input;
mod commands;
mod endings;
mod flags;
mod history;
mod model;
mod own;
mod rules;
mod session_files;
mod strict;
mod table;
mod voices;
mod whole;
