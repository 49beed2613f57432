//! Where effects happen. The gate is the one place; `past` is what a journal says has happened already;
//! `donor` is another journal that a run takes from: a cassette, or the run that it was forked from; `budget` is what
//! it holds model calls to; `world` holds the adapters that the gate performs through; `run` opens, locks and lists runs,
//! and `own` is which of them the user began here.

pub mod budget;
pub mod donor;
pub mod gate;
pub mod own;
pub mod past;
pub mod process;
pub mod run;
pub mod verify;
pub mod world;
