//! What the integration tests stand on: a hermetic environment, a model service that does as it is told, and
//! a reader of journals that knows nothing of the crate's own.

pub(crate) mod env;
pub(crate) mod git;
pub(crate) mod journal;
pub(crate) mod kills;
pub(crate) mod model_server;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
pub(crate) mod process;
pub(crate) mod strict;
pub(crate) mod terminal;
pub(crate) mod tls;
