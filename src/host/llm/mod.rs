//! Whatever answers model calls: providers over the network, and the local model.

#[cfg(feature = "local")]
pub mod local;
