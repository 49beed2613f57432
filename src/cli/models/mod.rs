//! `nietz models`: which models can be used, what providers serve now, local models and stored keys.

mod key;
mod list;
#[cfg(feature = "local")]
mod local;

use clap::{Args, Subcommand};
use serde_json::json;

pub(super) use self::list::price_text;

use crate::cli::output;
use crate::error::{Exit, Result};
use crate::host::llm::{DEFAULTS_AS_OF, KeyState, catalogue_as_of};
use crate::run::machine::Machine;

/// Show which models can be used, and which would be without a choice
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct ModelsArgs {
    /// One JSON object a line: provider, model, where its key comes from, and why it is chosen
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    verb: Option<ModelsVerb>,
}

#[derive(Subcommand)]
enum ModelsVerb {
    List(list::ListArgs),
    Key(key::KeyArgs),
    /// Fetch a local model, so that runs do not have to
    #[cfg(feature = "local")]
    Pull {
        model: Option<String>,
    },
    /// Remove a local model from this machine, or the beginnings of prompts that are kept for all of them
    #[cfg(feature = "local")]
    Remove {
        #[arg(required_unless_present = "prefixes", conflicts_with = "prefixes")]
        model: Option<String>,
        /// Remove the kept beginnings of prompts; they are computed again
        #[arg(long)]
        prefixes: bool,
    },
}

pub(super) fn run(machine: &Machine, args: &ModelsArgs) -> Result<Exit> {
    match &args.verb {
        None => overview(machine, args.json),
        Some(ModelsVerb::List(args)) => list::run(machine, args),
        Some(ModelsVerb::Key(args)) => key::run(machine, args),
        #[cfg(feature = "local")]
        Some(ModelsVerb::Pull { model }) => local::pull(machine, model.as_deref()),
        #[cfg(feature = "local")]
        Some(ModelsVerb::Remove { model: Some(model), .. }) => local::remove(machine, model),
        #[cfg(feature = "local")]
        Some(ModelsVerb::Remove { model: None, .. }) => local::remove_prefixes(machine),
    }
}

fn overview(machine: &Machine, as_json: bool) -> Result<Exit> {
    let client = crate::run::models::client(machine)?;
    let rows = crate::run::runtime()?.block_on(client.provider_summaries());
    let mut table = vec![vec!["PROVIDER".into(), "MODEL".into(), "KEY".into(), "CHOSEN".into()]];
    for row in rows {
        if as_json {
            let (model, chosen) = (&row.model, &row.chosen);
            #[cfg_attr(not(feature = "local"), expect(unused_mut, reason = "the engine of local models stands there"))]
            let mut told =
                json!({ "provider": row.provider, "model": model, "key": key_text(&row.key), "chosen": chosen });
            #[cfg(feature = "local")]
            if row.provider == "local" {
                told["engine"] = crate::run::models::local_engine(machine)?.describe().into();
            }
            output::json(&told)?;
            continue;
        }
        table.push(vec![
            row.provider,
            row.model.unwrap_or_else(|| "-".to_owned()),
            key_text(&row.key),
            row.chosen.unwrap_or_default(),
        ]);
    }
    if as_json {
        return Ok(Exit::Done);
    }
    output::table(&table)?;
    for (alias, choice) in client.aliases() {
        output::line(format!("alias {alias} = {choice}"))?;
    }
    #[cfg(feature = "local")]
    output::line(format!(
        "local models: {}{}",
        crate::run::models::local_engine(machine)?.describe(),
        local::kept(machine)
    ))?;
    let prices = catalogue_as_of();
    output::line(format!(
        "defaults of {DEFAULTS_AS_OF}, prices of {prices}; `nietz models list PROVIDER` shows what one serves now"
    ))?;
    Ok(Exit::Done)
}

/// Returns where a provider's key comes from, or what to do where there is none.
pub(super) fn key_text(key: &KeyState) -> String {
    match key {
        KeyState::NotNeeded => "none needed".to_owned(),
        KeyState::Variable(name) => format!("from {name}"),
        KeyState::Command => "from a command".to_owned(),
        KeyState::Stored(place) => format!("stored {place}"),
        KeyState::Missing(names) => format!("set {}", names.join(" or ")),
    }
}
