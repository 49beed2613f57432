//! `nietz flows`.

use clap::Args;

use crate::cli::output;
use crate::error::{Exit, Result};
use crate::pack::resolve;
use crate::run::machine::Machine;
use crate::run::session;

/// List the flows that can be run here, and where each comes from
#[derive(Args)]
pub(super) struct FlowsArgs {
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(machine: &Machine, args: &FlowsArgs) -> Result<Exit> {
    let mut rows = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for located in resolve::all_flows(&machine.workspace, &machine.packs())? {
        let source = located.source();
        let origin = located.tree.origin(&machine.workspace);
        let (name, summary) = match session::load(machine, located) {
            Ok(flow) => (flow.manifest.name.clone(), flow.manifest.summary.clone()),
            Err(failure) => ("(invalid)".to_owned(), failure.message),
        };
        let shadowed = !seen.insert(name.clone()) && name != "(invalid)";
        if args.json {
            output::json(
                &serde_json::json!({ "name": name, "summary": summary, "source": source, "origin": origin, "shadowed": shadowed }),
            )?;
        } else {
            let note = if shadowed { " (shadowed by the one above)" } else { "" };
            rows.push(vec![name, summary, format!("{source}{note}")]);
        }
    }
    output::table(&rows)?;
    Ok(Exit::Done)
}
