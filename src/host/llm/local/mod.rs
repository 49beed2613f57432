//! The local model: weights that are fetched once, and an engine that runs them in a child process.
//!
//! It exists so that the first flow runs on a bare machine, with no key and no server. The engine is a
//! child process of this same binary: a crash or a lack of memory stays there, the memory is given back
//! when the child ends, and the number of threads must be set before the process starts.
//! Nothing here decides *whether* the local model is used; `llm` does that.
//!
//! In the parent: [`catalogue`] and [`weights`] fetch the file of a `local_model`, [`adapter`] talks to the child. Where
//! llama.cpp's server is installed, [`server`] runs it in the child's place; `attempts` is what both do alike.
//! In the child: [`child`] serves, `engine` generates, with `prompt` (`shape`) → `vocabulary` (`bpe`) → `transformer`
//! (`quantized`, `dot`, `wide`, `block`, `exponential`) → `sample`, and `grammar` holds a reply to its schema;
//! `prefixes` keeps beginnings of prompts on disk.

pub(crate) mod adapter;
mod attempts;
mod block;
mod bpe;
pub(crate) mod catalogue;
pub(crate) mod child;
mod dot;
mod engine;
mod exponential;
pub(crate) mod all_models;
mod gguf;
mod grammar;
mod local_model;
pub(crate) mod prefixes;
mod process;
mod prompt;
mod quantized;
mod sample;
pub(crate) mod server;
mod settings;
mod shape;
#[cfg(test)]
mod tests;
mod transformer;
mod vocabulary;
pub(crate) mod weights;
#[cfg(target_arch = "x86_64")]
mod wide;

use crate::error::{Code, Failure};

/// Returns the failure of an engine that cannot go on. The next call starts a new engine.
fn engine_failure(why: impl std::fmt::Display) -> Failure {
    Failure::new(Code::ModelBroken, format!("the local model's engine: {why}"))
}
