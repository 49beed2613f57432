//! Where effects happen. The gate is the one place; `past` is what a journal says has happened already;
//! `donor` is another journal that a run takes from: a cassette, or the run that it was forked from; `budget` is what
//! it holds model calls to; `world` holds the adapters that the gate performs through; `run` opens, locks and lists runs,
//! and `own` is which of them the user began here.

pub mod budget;
pub(crate) mod replay_source;
pub mod gate;
pub mod run_records;
pub mod history;
pub(crate) mod process;
pub mod runs;
pub(crate) mod verify;
pub(crate) mod world;
