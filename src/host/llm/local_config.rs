//! What the user says of local models: the engine that runs them, and files of weights. None of it can stand in a project's
//! file: it names programs that run, and files that a program written in C++ would parse.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::provider::LOCAL;
use crate::error::{Code, Failure, Result};
use crate::model::text::excerpt;

/// The user's `models.local`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LocalConfig {
    pub engine: EngineName,
    /// The server's program, by its whole path; without it, `llama-server` in `PATH`.
    pub server: Option<PathBuf>,
    /// More arguments for the server, behind those of nietz.
    pub arguments: Vec<String>,
}

/// An engine as the user names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineName {
    /// An installed server, else the built-in engine.
    #[default]
    Auto,
    BuiltIn,
    LlamaServer,
    /// No local model at all.
    None,
}

/// Returns the path of the weights that a name means, if it means a file: `local/PATH.gguf`.
pub(crate) fn weights_path(model: &str) -> Option<&str> {
    let (provider, path) = model.trim().split_once('/')?;
    (provider == LOCAL && path.ends_with(".gguf")).then_some(path)
}

/// Returns the name with a whole path, so that it means the same file from any folder; other names as they are.
///
/// # Errors
///
/// `model-unknown` if there is no such file.
pub(super) fn with_whole_path(model: &str) -> Result<String> {
    let Some(path) = weights_path(model) else { return Ok(model.to_owned()) };
    let whole = std::path::absolute(path).map_err(|error| Failure::io(Path::new(path), "find", &error))?;
    match (whole.is_file(), whole.to_str()) {
        (true, Some(whole)) => Ok(format!("{LOCAL}/{whole}")),
        _ => Err(Failure::new(Code::ModelUnknown, format!("there is no file of weights at {}", excerpt(path)))
            .hint("write local/ and the path of a GGUF file, from here or from /")),
    }
}

/// The files of weights that the user has named.
#[derive(Default)]
pub(super) struct NamedWeights(RefCell<BTreeSet<String>>);

impl NamedWeights {
    /// Notes that the user has said this name. It is passed over if it means no file.
    pub(super) fn allow(&self, model: &str) {
        if let Some(path) = weights_path(model) {
            self.0.borrow_mut().insert(path.to_owned());
        }
    }

    /// Checks a name before a call.
    ///
    /// # Errors
    ///
    /// `permission-refused` if it means a file that only a flow or a project has named.
    pub(super) fn check(&self, model: &str) -> Result<()> {
        match weights_path(model) {
            Some(path) if !self.0.borrow().contains(path) => {
                let message = format!("{} is a file of weights, and only you can name one", excerpt(model));
                Err(Failure::new(Code::PermissionRefused, message)
                    .hint("name it with --model, or as an alias or the default in your own config.yaml"))
            }
            _ => Ok(()),
        }
    }
}
