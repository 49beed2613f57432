//! The council as its users meet it: the program, its files, and a model service that answers by the schema.

mod answer;
mod around;
mod cache;
mod cassettes;
mod clarify;
mod debate;
mod endings;
mod heard;
mod kept;
mod leads;
mod look;
pub(crate) mod model;
mod rules;
mod screen;
mod seats;
pub(crate) mod spread;
mod strict;
pub(crate) mod table;
mod worth;
