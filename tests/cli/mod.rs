//! One file for each promise of the program.

mod answers;
mod authoring;
mod budget;
mod cassettes;
mod disk_faults;
mod elsewhere;
mod exits;
mod forks;
mod git;
mod hostile_packs;
mod idle;
mod index;
mod journal_file;
mod kill_matrix;
mod model_faults;
mod order;
mod output;
mod packs;
mod places;
mod redaction;
mod sandbox;
mod settings;
mod shots;
mod shots_models;
mod shots_record;
mod telemetry;
