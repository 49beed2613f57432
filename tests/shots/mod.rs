//! The migrations mode as its users meet it: real repositories, real commands, and scripted models.

pub(crate) mod basics;
mod cheats;
pub(crate) mod guarded;
mod migrations;
mod models;
mod record;
mod strangers;
mod strict;
mod tools;
mod whole;
