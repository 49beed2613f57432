//! Where effects happen. The gate is the one place; `past` is what a journal says has happened already;
//! `world` holds the adapters that the gate performs through; `run` opens, locks and lists runs.

pub mod gate;
pub mod past;
pub mod run;
pub mod world;
