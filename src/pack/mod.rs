//! Where flows come from: a folder on disk or what is bundled, and how a name is resolved to one.

pub mod persona;
pub mod quote;
pub mod resolve;
pub mod tree;
