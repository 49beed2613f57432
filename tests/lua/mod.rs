//! Flow code on the real machine and the real gate, with a world of fakes and a temporary folder.

mod bench;
mod chance;
mod circles;
mod errors;
pub(crate) mod exact;
mod found;
mod hostile;
mod mutations;
mod parity;
mod sources;
pub(crate) mod structure;
