//! The first hour of somebody who has never seen nietz: what the README says is done as it stands, nobody has to guess, and
//! what they type is not lost.

mod completions;
mod docs;
mod early;
mod examples;
mod index;
mod latest;
mod mistakes;
mod outsiders;
mod readme;
mod seat;
mod signed;
