//! One file for each promise of the program.

mod answers;
mod budget;
mod disk_faults;
mod elsewhere;
mod exits;
mod git;
mod idle;
mod journal_file;
mod kill_matrix;
mod model_faults;
mod order;
mod output;
mod redaction;
mod sandbox;
mod settings;
mod shots;
mod telemetry;
