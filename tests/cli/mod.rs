//! One file for each promise of the program.

mod answers;
mod journal_file;
mod kill_matrix;
mod order;
mod redaction;
