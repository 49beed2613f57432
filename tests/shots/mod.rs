//! The migrations mode as its users meet it: real repositories, real commands, and scripted models.

pub(crate) mod basics;
mod clean;
mod ends;
mod models;
mod record;
mod strict;
mod tools;
