//! `nietz pack list`.

use clap::Args;
use serde_json::json;

use crate::cli::output;
use crate::cli::trust::packs::installed_items;
use crate::error::{Code, Exit, Result};
use crate::pack::lock::Lockfile;
use crate::pack::permission_items::describe_item;
use crate::pack::seal::Seal;
use crate::run::machine::Machine;

/// List the packs of this project: from where, which content, and what each may do
#[derive(Args)]
pub(super) struct ListArgs {
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(machine: &Machine, args: &ListArgs) -> Result<Exit> {
    let lock = Lockfile::read(&machine.workspace)?;
    let trust = machine.trust().read()?;
    if lock.packs.is_empty() && !args.json {
        output::line("no packs here yet: `nietz pack add SOURCE` adds one")?;
    }
    for (name, locked) in &lock.packs {
        let granted = trust.of_pack(&locked.sha256);
        let items_by_flow =
            installed_items(&locked.folder(&machine.packs(), name), Seal::new(name, &locked.version, &locked.sha256));
        let state = match &items_by_flow {
            Ok(_) => "installed",
            Err(failure) if failure.code == Code::PackChanged => "changed: it is not loaded",
            Err(failure) if failure.code == Code::PackNotFound => "not installed here",
            Err(_) => "invalid",
        };
        let items_by_flow = items_by_flow.unwrap_or_default();
        if args.json {
            output::json(&json!({
                "name": name, "version": locked.version, "source": locked.source, "commit": locked.commit,
                "sha256": locked.sha256, "state": state, "asks": items_by_flow, "granted": granted,
            }))?;
            continue;
        }
        output::line(format!("{name} {}  {}  {state}", locked.version, locked.source))?;
        let commit = locked.commit.as_ref().map(|commit| format!("commit {commit}  ")).unwrap_or_default();
        output::line(format!("  {commit}sha256 {}", locked.sha256))?;
        for (flow, items) in &items_by_flow {
            let none = if items.is_empty() { ": asks for nothing" } else { "" };
            output::line(format!("  flow {flow}{none}"))?;
            for item in items {
                let is_granted = granted.get(flow).is_some_and(|granted| granted.contains(item));
                let mark = if is_granted { "granted" } else { "not granted" };
                output::line(format!("    {} ({}): {mark}", describe_item(item), item))?;
            }
        }
    }
    Ok(Exit::Done)
}
