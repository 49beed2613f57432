//! The migrations mode as its users meet it: real repositories, real commands, and scripted models.

pub(crate) mod basics;
mod each;
mod models;
mod parts;
mod parts_prompts;
mod record;
mod strict;
mod tools;
