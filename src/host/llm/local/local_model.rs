//! What `local/NAME` means: a model of the catalogue, whose weights are fetched, or a file of the user's.

use std::path::{Path, PathBuf};

use super::catalogue::{self, Model};
use super::gguf::Gguf;
use super::settings::EngineSettings;
use super::transformer;
use super::weights::{self, Progress};
use crate::error::{Code, Failure, Result};
use crate::host::CallEvent;

/// A model by its weights.
#[derive(Clone, Debug)]
pub(crate) enum LocalModel {
    Known(&'static Model),
    /// The path as it is named, and as a path.
    File(String, PathBuf),
}

impl LocalModel {
    /// Returns the model that a name means, without `local/`.
    ///
    /// # Errors
    ///
    /// `model-unknown` if it is neither in the catalogue nor a file.
    pub(super) fn of(name: &str) -> Result<LocalModel> {
        if !name.ends_with(".gguf") {
            return Ok(LocalModel::Known(catalogue::find(name)?));
        }
        let path = std::path::absolute(name).map_err(|error| Failure::io(Path::new(name), "find", &error))?;
        Ok(LocalModel::File(name.to_owned(), path))
    }

    pub(super) fn name(&self) -> &str {
        match self {
            LocalModel::Known(model) => &model.name,
            LocalModel::File(name, _) => name,
        }
    }

    /// Returns the path of the weights, which are fetched first where that is due.
    ///
    /// # Errors
    ///
    /// Those of [`weights::pull`].
    pub(super) async fn weights(
        &self,
        settings: &EngineSettings,
        on_progress: &dyn Fn(Progress),
        report: &mut dyn FnMut(CallEvent<'_>),
    ) -> Result<PathBuf> {
        let model = match self {
            LocalModel::Known(model) => *model,
            LocalModel::File(_, path) => return Ok(path.clone()),
        };
        if let Some(path) = weights::find(model, &settings.dir) {
            return Ok(path);
        }
        let mut on_progress = |progress| {
            report(CallEvent::Alive);
            on_progress(progress);
        };
        weights::pull(model, &settings.dir, &settings.environment, &mut on_progress).await
    }

    /// Checks that the built-in engine can run the model.
    ///
    /// # Errors
    ///
    /// `model-refused` with what it does not know, such as the architecture; `model-broken` if the file is no model's.
    pub(super) fn check_built_in(&self) -> Result<()> {
        let LocalModel::File(name, path) = self else { return Ok(()) };
        let Some(part) = transformer::unknown_part(&Gguf::open(path)?) else { return Ok(()) };
        Err(Failure::new(Code::ModelRefused, format!("the built-in engine cannot run {name}: it does not know {part}"))
            .hint("install llama.cpp: a llama-server in PATH is used, and knows more; built in are llama and qwen2"))
    }
}
