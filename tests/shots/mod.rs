//! The migrations mode as its users meet it: real repositories, real commands, and scripted models.

pub(crate) mod basics;
mod cheats;
mod clean;
mod each;
mod ends;
pub(crate) mod guarded;
mod honest;
mod installs;
mod judged;
mod long;
mod migrations;
mod models;
mod parts;
mod parts_prompts;
mod record;
mod reports;
mod runs;
mod start;
mod statuses;
mod strangers;
mod strict;
mod tools;
mod whole;
