//! `nietz models`.

use clap::Args;

use crate::cli::host::Host;
use crate::cli::{output, session};
use crate::error::{Exit, Result};
use crate::host::llm::KeyState;

/// Show which models can be used, and which would be without a choice
#[derive(Args)]
pub(super) struct ModelsArgs {}

pub(super) fn run(host: &Host, _: &ModelsArgs) -> Result<Exit> {
    let client = session::client(host)?;
    let rows = session::runtime()?.block_on(client.explain());
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
    output::line(output::columns(&table).trim_end())?;
    for (alias, model) in client.aliases() {
        output::line(format!("alias {alias} = {model}"))?;
    }
    Ok(Exit::Done)
}
