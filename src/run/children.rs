//! What a run and the runs that it begins have to do with each other: what these get of it, and what bounds them.

use serde_json::Value;

use crate::error::{Code, Failure, Result};
use crate::host::children::Children;
use crate::journal::lines::{OpenRecord, Parent};
use crate::lua::flow::Flow;
use crate::model::child::{ChildTerms, ParentRun, beyond};
use crate::model::digest::Digest;
use crate::model::permission::Permissions;
use crate::pack::resolve::{self, ResolvedFlow};
use crate::run::machine::Machine;

/// Returns what does the children of a run.
pub(crate) fn children(machine: &Machine, open: &OpenRecord, flow: &Flow) -> Children {
    let terms = ChildTerms {
        pack: pack(&flow.located),
        model: open.model.clone(),
        only_model: open.only_model,
        effort: open.efforts.run,
        lang: open.lang.clone(),
        seed: open.seed,
        grants: open.grants.clone(),
        trace: hex(trace(open)),
    };
    #[cfg(feature = "postgres")]
    let elsewhere = machine.team().server().is_some();
    #[cfg(not(feature = "postgres"))]
    let elsewhere = false;
    let (environment, workspace) = (machine.environment.clone(), machine.workspace.clone());
    Children::new(machine.program.clone(), environment, workspace, terms, elsewhere)
}

fn hex(bytes: [u8; 16]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn pack(located: &ResolvedFlow) -> Option<String> {
    located.tree.seal().map(|seal| seal.pack.clone())
}

/// Returns the name of a flow, and that of its command, if one stands behind it: `poll vote`.
pub(crate) fn named(wanted: &str) -> (&str, Option<&str>) {
    let wanted = wanted.trim();
    wanted.split_once(' ').map_or((wanted, None), |(flow, command)| (flow, Some(command.trim_start())))
}

/// Finds the flow of a child by its name.
///
/// # Errors
///
/// `usage` if it is a path, `permission-refused` if a flow of a pack names one that is not of its pack, and those of [`resolve::flow`].
pub(crate) fn find(machine: &Machine, wanted: &str, of_pack: Option<&str>) -> Result<ResolvedFlow> {
    let located = resolve::flow(wanted, &machine.workspace, &machine.packs())?;
    if resolve::is_path(wanted) && located.full_name().as_deref() != Some(wanted) {
        return Err(Failure::new(Code::Usage, "task.spawn takes the name of a flow, and no path")
            .hint("`nietz flows` lists the names"));
    }
    match of_pack {
        Some(of) if pack(&located).as_deref() != Some(of) => Err(Failure::new(
            Code::PermissionRefused,
            format!("a flow of the pack {of} cannot begin a run of {wanted}"),
        )
        .hint("a flow of a pack begins runs of flows of its own pack")),
        _ => Ok(located),
    }
}

/// Returns what the first line of a child says of its parent.
pub(crate) fn parent(of: &ParentRun, trace: &str) -> Parent {
    let permissions = match serde_json::to_value(&of.permissions) {
        Ok(Value::Object(permissions)) => permissions,
        _ => serde_json::Map::new(),
    };
    Parent { run: of.run.clone(), key: of.key.clone(), permissions, trace: trace.to_owned() }
}

/// Returns the trace that all processes of a run are spans of, and all runs that it begins.
pub(crate) fn trace(open: &OpenRecord) -> [u8; 16] {
    let of_parent = open.of.as_ref().and_then(|of| Digest::parse(&of.trace));
    let own = || Digest::of(format!("{}\n{}\n{}", open.run, open.at, open.seed).as_bytes());
    of_parent.unwrap_or_else(own).bytes()
}

/// Refuses a child that may do more than its parent, however its flow's manifest has changed since it began.
///
/// # Errors
///
/// `permission-refused`.
pub(crate) fn check_bounds(flow: &Flow, open: &OpenRecord) -> Result<()> {
    let Some(of) = &open.of else { return Ok(()) };
    let permissions = flow.manifest.permissions.with_params(&open.params, !open.grants.no_sandbox);
    // What cannot be read allows nothing.
    let bounds: Permissions = serde_json::from_value(Value::Object(of.permissions.clone())).unwrap_or_default();
    let beyond = beyond(&permissions, &bounds);
    if beyond.is_empty() {
        return Ok(());
    }
    let message =
        format!("{} may do more than the run {} that begins it: {}", flow.manifest.name, of.run, beyond.join(", "));
    Err(Failure::new(Code::PermissionRefused, message)
        .hint("a run that another one begins has at most its permissions: declare them in that one's manifest, too"))
}
