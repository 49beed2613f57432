//! `nietz models`.

use clap::{Args, Subcommand};

use crate::cli::output;
use crate::error::{Exit, Result};
use crate::host::llm::{KeyState, catalogue_as_of};
use crate::run::machine::Machine;

/// Show which models can be used, and which would be without a choice
#[derive(Args)]
pub(super) struct ModelsArgs {
    #[command(subcommand)]
    verb: Option<ModelsVerb>,
}

#[derive(Subcommand)]
enum ModelsVerb {
    /// Fetch a local model, so that runs do not have to
    #[cfg(feature = "local")]
    Pull { model: Option<String> },
    /// List the local models, and which of them are here
    #[cfg(feature = "local")]
    List,
    /// Remove a local model from this machine
    #[cfg(feature = "local")]
    Remove { model: String },
}

pub(super) fn run(machine: &Machine, args: &ModelsArgs) -> Result<Exit> {
    match &args.verb {
        None => overview(machine),
        #[cfg(feature = "local")]
        Some(verb) => local::run(machine, verb),
        #[cfg(not(feature = "local"))]
        Some(verb) => match *verb {},
    }
}

fn overview(machine: &Machine) -> Result<Exit> {
    let client = crate::run::models::client(machine)?;
    let rows = crate::run::runtime()?.block_on(client.provider_summaries());
    let mut table = vec![vec!["PROVIDER".into(), "MODEL".into(), "KEY".into(), "CHOSEN".into()]];
    for row in rows {
        let key = match row.key {
            KeyState::NotNeeded => "none needed".to_owned(),
            KeyState::Variable(name) => format!("from {name}"),
            KeyState::Command => "from a command".to_owned(),
            KeyState::Missing(names) => format!("set {}", names.join(" or ")),
        };
        table.push(vec![
            row.provider,
            row.model.unwrap_or_else(|| "-".to_owned()),
            key,
            row.chosen.unwrap_or_default(),
        ]);
    }
    output::table(&table)?;
    output::line(format!("default models and prices of {}", catalogue_as_of()))?;
    for (alias, choice) in client.aliases() {
        output::line(format!("alias {alias} = {choice}"))?;
    }
    Ok(Exit::Done)
}

#[cfg(feature = "local")]
mod local {
    use std::io::{IsTerminal, Write};

    use super::ModelsVerb;
    use crate::cli::output;
    use crate::error::{Exit, Result};
    use crate::host::llm::local::weights::Progress;
    use crate::host::llm::local::{catalogue, weights};
    use crate::run::machine::Machine;

    const MB: u64 = 1_000_000;

    pub(super) fn run(machine: &Machine, verb: &ModelsVerb) -> Result<Exit> {
        let folder = machine.models_folder();
        match verb {
            ModelsVerb::Pull { model } => {
                let model =
                    model.as_deref().map_or_else(|| Ok(catalogue::default()), |name| catalogue::find(plain(name)))?;
                let path =
                    crate::run::runtime()?.block_on(weights::pull(model, &folder, &machine.environment, &mut show))?;
                output::line(format!("local/{} is here: {}", model.name, path.display()))?;
            }
            ModelsVerb::List => {
                let here = weights::list(&folder);
                let mut rows = Vec::new();
                for model in catalogue::all() {
                    let found = here.iter().find(|present| present.model.name == model.name);
                    let state = match found {
                        Some(present) if present.bytes == model.bytes => "here".to_owned(),
                        Some(present) => format!("{} of {} MB here", present.bytes / MB, model.bytes / MB),
                        None => "not here".to_owned(),
                    };
                    let size = format!("{} MB", model.bytes / MB);
                    rows.push(vec![
                        format!("local/{}", model.name),
                        size,
                        state,
                        model.licence.clone(),
                        model.about.clone(),
                    ]);
                }
                output::table(&rows)?;
            }
            ModelsVerb::Remove { model } => {
                let model = catalogue::find(plain(model))?;
                let removed = weights::remove(model, &folder)?;
                let what = if removed { "removed" } else { "was not here" };
                output::line(format!("local/{} {what}", model.name))?;
            }
        }
        Ok(Exit::Done)
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
}
