//! The local model: weights that are fetched once, and an engine that runs them in a child process.
//!
//! It exists so that the first flow runs on a bare machine, with no key and no server. The engine is a
//! child of this same binary, because a crash or a lack of memory must stay there, because its memory
//! goes back when it ends, and because its number of threads must be settled before it starts.
//! Nothing in here decides *whether* the local model is used; `llm` does that.

pub mod catalogue;
pub mod weights;
