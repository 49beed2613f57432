//! Debugging sessions as their users meet them: the program, its files, and a model service that asks.

mod checks;
mod code;
mod daily;
pub(crate) mod desk;
mod growth;
mod life;
mod long;
mod own;
mod quotes;
mod records;
mod strict;
mod verify;
mod versions;
mod whole;
