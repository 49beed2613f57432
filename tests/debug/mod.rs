//! Debugging sessions as their users meet them: the program, its files, and a model service that asks.

mod checks;
mod code;
mod daily;
pub(crate) mod desk;
mod evidence;
mod growth;
mod ledger;
mod life;
mod long;
mod own;
mod players;
mod pleas;
mod price;
mod prompts;
mod quotes;
mod records;
mod reports;
mod strict;
mod unread;
mod verify;
mod versions;
pub(crate) mod whole;
