//! The migrations mode as its users meet it: real repositories, real commands, and scripted models.

pub(crate) mod basics;
mod cheats;
mod each;
pub(crate) mod guarded;
mod honest;
mod judged;
mod models;
mod parts;
mod parts_prompts;
mod record;
mod start;
mod statuses;
mod strict;
mod tools;
