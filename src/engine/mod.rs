//! Performs and records effects. `gate` is the only place where an effect happens; `history` holds what the run's own
//! journal has recorded; `replay_source` is another journal that supplies outcomes: a cassette, or the run that this one
//! was forked from; `dialogue` knows which recorded answers still hold; `permitted` says what is refused; `budget` limits model calls; `children` are runs that a run starts; `world` holds the adapters; `runs` opens, locks, lists and removes runs, and
//! `run_records` knows which of them the user began here. `process` and `verify` read journals for `history` and
//! `nietz verify`.

pub mod budget;
pub(crate) mod children;
mod dialogue;
pub(crate) mod replay_source;
pub mod gate;
pub mod run_records;
pub mod history;
mod permitted;
mod recap;
pub(crate) mod process;
pub mod runs;
pub(crate) mod verify;
pub(crate) mod world;
