//! The local model: weights that are fetched once, and an engine that runs them in a child process.
//!
//! It exists so that the first flow runs on a bare machine, with no key and no server. The engine is a
//! child of this same binary, because a crash or a lack of memory must stay there, because its memory
//! goes back when it ends, and because its number of threads must be settled before it starts.
//! Nothing in here decides *whether* the local model is used; `llm` does that.
//!
//! In the parent: [`catalogue`] and [`weights`] fetch the file, [`adapter`] talks to the child.
//! In the child: [`child`] serves, `engine` generates, with `prompt` → `vocabulary` (`bpe`) → `transformer`
//! (`quantized`, `dot`, `block`) → `sample`, and `grammar` to keep a reply to its schema.

pub(crate) mod adapter;
mod block;
mod bpe;
pub(crate) mod catalogue;
pub(crate) mod child;
mod dot;
mod engine;
pub(crate) mod all_models;
mod gguf;
mod grammar;
mod process;
mod prompt;
mod quantized;
mod sample;
mod settings;
#[cfg(test)]
mod tests;
mod transformer;
mod vocabulary;
pub(crate) mod weights;

use crate::error::{Code, Failure};

/// The engine cannot go on; whatever it was doing, the next call starts a new one.
fn engine_failure(why: impl std::fmt::Display) -> Failure {
    Failure::new(Code::ModelBroken, format!("the local model's engine: {why}"))
}
