//! One file for each promise of the program.

mod kill_matrix;
mod order;
