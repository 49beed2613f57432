//! `nietz flows`.

use clap::Args;
use serde_json::json;

use crate::cli::trust::packs::asked_items;
use crate::cli::{eject, output};
use crate::error::{Exit, Result};
use crate::lua::manifest::FlowCommand;
use crate::model::text::shell;
use crate::pack::ejected::{Ejected, OriginalState};
use crate::pack::lock::Lockfile;
use crate::pack::permission_items::describe_item;
use crate::pack::resolve;
use crate::pack::tree::{OverridingFile, PackTree};
use crate::run::flow_cache::FlowCache;
use crate::run::machine::Machine;
use crate::run::session;

/// List the flows that can be run here, where each comes from, and which of their files this folder overrides; or show one
#[derive(Args)]
pub(super) struct FlowsArgs {
    /// The flow to show: what it takes, its commands, and what it may do
    flow: Option<String>,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

/// The file of the cache that keeps the names and summaries of flows.
const CACHE: &str = "flows.json";

pub(super) fn run(machine: &Machine, args: &FlowsArgs) -> Result<Exit> {
    if let Some(wanted) = &args.flow {
        return one(machine, wanted, args.json);
    }
    let mut rows = Vec::new();
    let mut overridden = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    let ejected = Ejected::read(&machine.workspace)?;
    let mut cache = FlowCache::open(machine, CACHE);
    for located in resolve::all_flows(&machine.workspace, &machine.packs())? {
        let (source, full_name) = (located.source(), located.full_name());
        let origin = located.tree.origin(&machine.workspace);
        let unused = located.tree.unused_modules().to_vec();
        let tree = located.tree.clone();
        let listed = cache.of(&located, |located| {
            let manifest = session::load(machine, located)?.manifest;
            Ok((manifest.name, manifest.summary))
        });
        let (name, summary) = match listed {
            Ok(listed) => listed,
            Err(failure) => ("(invalid)".to_owned(), failure.message),
        };
        let mut files = tree.reached_overriding()?;
        files.retain(OverridingFile::is_different);
        let shadowed = !seen.insert(name.clone()) && name != "(invalid)";
        if args.json {
            let overrides: Vec<_> = files.iter().map(|file| as_json(&tree, file, &ejected)).collect();
            output::json(&json!({
                "name": name, "full_name": full_name, "summary": summary, "source": source, "origin": origin,
                "shadowed": shadowed, "overrides": overrides, "unused": unused,
            }))?;
            continue;
        }
        let note = match (shadowed, full_name) {
            (true, Some(full_name)) => format!(" (shadowed by the one above; run it as {full_name})"),
            (true, None) => " (shadowed by the one above)".to_owned(),
            (false, _) => String::new(),
        };
        rows.push(vec![name.clone(), summary, format!("{source}{note}")]);
        overridden.push((name, tree, files, unused));
    }
    cache.keep();
    if !args.json {
        rows.insert(0, ["FLOW", "WHAT IT DOES", "FROM"].map(str::to_owned).to_vec());
    }
    output::table(&rows)?;
    if !args.json {
        tell_missing_packs(machine)?;
    }
    for (name, tree, files, unused) in &overridden {
        for file in files {
            let (told, difference) = eject::describe(tree, file, &ejected);
            output::line(format!("{name} reads this folder's own {told}"))?;
            difference.iter().try_for_each(output::line)?;
        }
        for path in unused {
            output::line(format!(
                "{name} does not use {path}: its prompts and data can be overridden, its modules cannot"
            ))?;
        }
    }
    Ok(Exit::Done)
}

/// Says which packs of the project are not installed: their flows are missing from the list.
fn tell_missing_packs(machine: &Machine) -> Result<()> {
    for (name, locked) in Lockfile::read(&machine.workspace)?.packs {
        if !locked.folder(&machine.packs(), &name).is_dir() {
            let add = format!("nietz pack add --locked {name}");
            output::line(format!("the pack {name} {} is not installed here: {add}", locked.version))?;
        }
    }
    Ok(())
}

/// Shows one flow.
fn one(machine: &Machine, wanted: &str, as_json: bool) -> Result<Exit> {
    let located = resolve::flow(wanted, &machine.workspace, &machine.packs())?;
    let (source, full_name) = (located.source(), located.full_name());
    let origin = located.tree.origin(&machine.workspace);
    let flow = session::load(machine, located)?;
    let manifest = &flow.manifest;
    let asked = asked_items(manifest);
    let params = |command: &FlowCommand| -> Vec<String> { command.params.keys().cloned().collect() };
    if as_json {
        let commands: serde_json::Map<String, serde_json::Value> = (manifest.offered())
            .map(|(name, command)| {
                let told = json!({
                    "summary": command.summary, "params": params(command), "reads_only": command.reads_only,
                });
                (name.clone(), told)
            })
            .collect();
        output::json(&json!({
            "name": manifest.name, "full_name": full_name, "summary": manifest.summary, "source": source,
            "origin": origin, "host_api": manifest.host_api, "params": params(&manifest.main), "commands": commands,
            "permissions": asked,
        }))?;
        return Ok(Exit::Done);
    }
    let row = |head: &str, text: String| vec![head.to_owned(), text];
    let named = |names: Vec<String>| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let mut rows = vec![
        row("flow", format!("{}: {}", manifest.name, manifest.summary)),
        row("from", format!("{source} ({origin})")),
        row("full name", full_name.unwrap_or_else(|| "none: it is run by its path, or by its name".to_owned())),
        row("host API", manifest.host_api.to_string()),
        row("params", named(params(&manifest.main))),
    ];
    for (head, (name, command)) in std::iter::once("commands").chain(std::iter::repeat("")).zip(manifest.offered()) {
        rows.push(row(head, format!("{name}: {}", command.summary)));
    }
    for (head, item) in std::iter::once("it").chain(std::iter::repeat("")).zip(&asked) {
        rows.push(row(head, describe_item(item)));
    }
    output::table(&rows)?;
    output::line(format!("what each param is: nietz run {} --help", shell(wanted)))?;
    Ok(Exit::Done)
}

fn as_json(tree: &PackTree, file: &OverridingFile, ejected: &Ejected) -> serde_json::Value {
    let (from, state) = match ejected.state(file) {
        OriginalState::Same(was) => (Some(&was.from), "same"),
        OriginalState::Changed(was) => (Some(&was.from), "changed"),
        OriginalState::Gone(was) => (Some(&was.from), "gone"),
        OriginalState::Unknown => (None, "unknown"),
    };
    json!({ "path": file.path, "from": from, "original": state, "difference": eject::describe(tree, file, ejected).1 })
}
