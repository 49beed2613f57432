//! Local models: fetched, listed, removed.

use std::io::{IsTerminal, Write};

use crate::cli::output;
use crate::error::{Exit, Result};
use crate::host::llm::local::weights::Progress;
use crate::host::llm::local::{catalogue, prefixes, weights};
use crate::run::machine::Machine;

const MB: u64 = 1_000_000;

/// A local model, and whether it is on this machine.
pub(super) struct LocalModel {
    /// As `local/NAME`.
    pub(super) name: String,
    pub(super) size: String,
    pub(super) state: String,
    pub(super) licence: String,
    pub(super) about: String,
}

pub(super) fn pull(machine: &Machine, model: Option<&str>) -> Result<Exit> {
    let folder = machine.models_folder();
    let model = model.map_or_else(|| Ok(catalogue::default()), |name| catalogue::find(plain(name)))?;
    let path = crate::run::runtime()?.block_on(weights::pull(model, &folder, &machine.environment, &mut show))?;
    output::line(format!("local/{} is here: {}", model.name, path.display()))?;
    Ok(Exit::Done)
}

pub(super) fn remove(machine: &Machine, model: &str) -> Result<Exit> {
    let model = catalogue::find(plain(model))?;
    let removed = weights::remove(model, &machine.models_folder())?;
    let what = if removed { "removed" } else { "was not here" };
    output::line(format!("local/{} {what}", model.name))?;
    Ok(Exit::Done)
}

pub(super) fn remove_prefixes(machine: &Machine) -> Result<Exit> {
    let removed = prefixes::remove(&machine.models_folder())?;
    output::line(format!("{} MB of kept beginnings of prompts removed", removed.div_ceil(MB)))?;
    Ok(Exit::Done)
}

/// Tells how much is kept of prompts, if anything is.
pub(super) fn kept(machine: &Machine) -> String {
    match prefixes::size(&machine.models_folder()) {
        0 => String::new(),
        kept => format!(
            "; beginnings of prompts: {} of at most {} MB (`nietz models remove --prefixes`)",
            kept.div_ceil(MB),
            prefixes::limit() / MB
        ),
    }
}

/// Returns all local models, in the order of their catalogue.
pub(super) fn list(machine: &Machine) -> Vec<LocalModel> {
    let here = weights::list(&machine.models_folder());
    let described = |model: &catalogue::Model| {
        let found = here.iter().find(|present| present.model.name == model.name);
        let state = match found {
            Some(present) if present.bytes == model.bytes => "here".to_owned(),
            Some(present) => format!("{} of {} MB here", present.bytes / MB, model.bytes / MB),
            None => "not here".to_owned(),
        };
        LocalModel {
            name: format!("local/{}", model.name),
            size: format!("{} MB", model.bytes / MB),
            state,
            licence: model.licence.clone(),
            about: model.about.clone(),
        }
    };
    catalogue::all().iter().map(described).collect()
}

fn plain(name: &str) -> &str {
    name.strip_prefix("local/").unwrap_or(name)
}

/// Shows the progress of a download on standard error: in a terminal one line that is overwritten, elsewhere few lines.
fn show(progress: Progress) {
    let mut err = std::io::stderr();
    let moving = err.is_terminal();
    let text = match progress {
        Progress::Waiting => "another process is fetching it; waiting".to_owned(),
        Progress::Source(place) => format!("fetching from {place}"),
        Progress::Checking => "checking its SHA-256".to_owned(),
        Progress::Bytes { done, total } if moving => {
            let _ = write!(err, "\r{:>5} of {} MB ({} %)", done / MB, total / MB, done * 100 / total.max(1));
            return;
        }
        Progress::Bytes { .. } | Progress::Ready => return,
    };
    output::print_status(&format!("{}{text}\n", if moving { "\n" } else { "" }));
}
