//! `nietz flows`.

use clap::Args;
use serde_json::json;

use crate::cli::{eject, output};
use crate::error::{Exit, Result};
use crate::pack::ejected::{Ejected, OriginalState};
use crate::pack::resolve;
use crate::pack::tree::{OverridingFile, PackTree};
use crate::run::machine::Machine;
use crate::run::session;

/// List the flows that can be run here, where each comes from, and which of their files this folder overrides
#[derive(Args)]
pub(super) struct FlowsArgs {
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(machine: &Machine, args: &FlowsArgs) -> Result<Exit> {
    let mut rows = Vec::new();
    let mut overridden = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    let ejected = Ejected::read(&machine.workspace)?;
    for located in resolve::all_flows(&machine.workspace, &machine.packs())? {
        let (source, full_name) = (located.source(), located.full_name());
        let origin = located.tree.origin(&machine.workspace);
        let unused = located.tree.unused_modules().to_vec();
        let tree = located.tree.clone();
        let (name, summary) = match session::load(machine, located) {
            Ok(flow) => (flow.manifest.name.clone(), flow.manifest.summary.clone()),
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
    output::table(&rows)?;
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

fn as_json(tree: &PackTree, file: &OverridingFile, ejected: &Ejected) -> serde_json::Value {
    let (from, state) = match ejected.state(file) {
        OriginalState::Same(was) => (Some(&was.from), "same"),
        OriginalState::Changed(was) => (Some(&was.from), "changed"),
        OriginalState::Gone(was) => (Some(&was.from), "gone"),
        OriginalState::Unknown => (None, "unknown"),
    };
    json!({ "path": file.path, "from": from, "original": state, "difference": eject::describe(tree, file, ejected).1 })
}
