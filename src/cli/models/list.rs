//! `nietz models list`: what providers serve now, as they say themselves.

use clap::Args;
use futures_util::future::join_all;
use serde_json::json;

use crate::cli::output;
use crate::error::{Code, Exit, Failure, Result};
use crate::host::Models;
use crate::host::llm::{Client, KeyState, ProviderSummary, ServedModel, window};
use crate::model::budget::Price;
use crate::model::text::line;
use crate::run::machine::Machine;

/// The name of the provider that nietz itself is.
const LOCAL: &str = "local";

/// List the models that a provider serves now; without one, the local models and those of each provider with a key
///
/// The provider is asked for its list. Windows and prices (US dollars for a million tokens, in and out) are what it says, else
/// what nietz knows; `-` is what nobody says.
#[derive(Args)]
pub(super) struct ListArgs {
    /// The provider, such as openai; `local` for the models that nietz runs itself
    provider: Option<String>,
    /// One JSON object a line: model, window, price, retires; or provider and failure
    #[arg(long)]
    json: bool,
}

/// What came of asking one provider.
struct Answer {
    provider: String,
    models: Result<Vec<ServedModel>>,
}

pub(super) fn run(machine: &Machine, args: &ListArgs) -> Result<Exit> {
    let client = crate::run::models::client(machine)?;
    let asked = args.provider.as_deref();
    if asked.is_none_or(|name| name == LOCAL) {
        show_local(machine, args.json)?;
    }
    match asked {
        Some(LOCAL) => Ok(Exit::Done),
        Some(name) => {
            let models = crate::run::runtime()?.block_on(client.served(name))?;
            let answer = Answer { provider: name.to_owned(), models: Ok(models) };
            show(machine, &client, &[answer], args.json)?;
            Ok(Exit::Done)
        }
        None => {
            let answers = crate::run::runtime()?.block_on(ask_all(&client));
            show(machine, &client, &answers, args.json)?;
            Ok(Exit::Done)
        }
    }
}

/// Asks each provider that can be asked, side by side. A server of this machine that does not run is left out.
async fn ask_all(client: &Client) -> Vec<Answer> {
    let summaries = client.provider_summaries().await;
    let can_be_asked = |row: &&ProviderSummary| row.provider != LOCAL && !matches!(row.key, KeyState::Missing(_));
    let ask = async |row: &ProviderSummary| Answer {
        provider: row.provider.clone(),
        models: client.served(&row.provider).await,
    };
    let answers = join_all(summaries.iter().filter(can_be_asked).map(ask)).await;
    let is_off = |answer: &Answer| {
        let is_unreachable = matches!(&answer.models, Err(failure) if failure.code == Code::ModelUnreachable);
        is_unreachable && summaries.iter().any(|row| row.provider == answer.provider && row.key == KeyState::NotNeeded)
    };
    answers.into_iter().filter(|answer| !is_off(answer)).collect()
}

fn show(machine: &Machine, client: &Client, answers: &[Answer], as_json: bool) -> Result<()> {
    let mut rows = vec![["MODEL", "WINDOW", "PRICE", ""].map(str::to_owned).to_vec()];
    for Answer { provider, models } in answers {
        let models = match models {
            Ok(models) => models,
            Err(failure) => {
                tell_failure(provider, failure, as_json)?;
                continue;
            }
        };
        for model in models {
            let name = format!("{provider}/{}", model.name);
            let window = model.window.or_else(|| window(&machine.config.models.windows, &name));
            let price = model.price.or_else(|| client.price(&name));
            if as_json {
                output::json(&json!({"model": name, "window": window, "price": price, "retires": model.retires}))?;
            } else {
                let window = window.map_or_else(|| "-".to_owned(), |window| window.to_string());
                let ends = model.retires.as_ref().map(|day| format!("ends {day}")).unwrap_or_default();
                rows.push(vec![name, window, price_text(price), ends]);
            }
        }
    }
    match rows.len() {
        1 => Ok(()),
        _ => output::table(&rows),
    }
}

fn tell_failure(provider: &str, failure: &Failure, as_json: bool) -> Result<()> {
    if as_json {
        return output::json(&json!({"provider": provider, "failure": failure}));
    }
    output::print_status(&format!("{provider} is left out: {}\n", line(&failure.message)));
    Ok(())
}

/// Returns a price as people write it, for input and output; `-` where it is not known.
pub(in crate::cli) fn price_text(price: Option<Price>) -> String {
    match price {
        None => "-".to_owned(),
        Some(price) if price == Price::FREE => "free".to_owned(),
        Some(price) => format!("${}, ${}", price.input, price.output),
    }
}

#[cfg(feature = "local")]
fn show_local(machine: &Machine, as_json: bool) -> Result<()> {
    let mut rows = Vec::new();
    for model in super::local::list(machine) {
        if as_json {
            output::json(
                &json!({"model": model.name, "size": model.size, "state": model.state, "licence": model.licence}),
            )?;
        } else {
            rows.push(vec![model.name, model.size, model.state, model.licence, model.about]);
        }
    }
    output::table(&rows)
}

#[cfg(not(feature = "local"))]
fn show_local(_: &Machine, _: bool) -> Result<()> {
    Ok(())
}
