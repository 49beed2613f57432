//! The migrations mode as its users meet it: real repositories, real commands, and scripted models.

pub(crate) mod basics;
mod migrations;
mod models;
mod record;
mod strangers;
mod strict;
mod tools;
