//! The migrations mode as its users meet it: real repositories, real commands, and scripted models.

pub(crate) mod basics;
mod cheats;
pub(crate) mod guarded;
mod models;
mod record;
mod strict;
mod tools;
