//! The migrations mode as its users meet it: real repositories, real commands, and scripted models.

pub(crate) mod basics;
mod installs;
mod long;
mod models;
mod record;
mod runs;
mod strict;
mod tools;
