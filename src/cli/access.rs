//! What a run may touch: the commands that it runs, and the files that it reads.

use std::path::PathBuf;

use serde_json::Value;

use crate::cli::host::Host;
use crate::error::{Code, Failure, Result};
use crate::host::exec::{Commands, Together, with_defaults};
use crate::host::files::Files;
use crate::journal::lines::Open;
use crate::lua::flow::Flow;
use crate::model::command;

/// Returns what runs the commands of a run.
pub(super) fn commands(host: &Host, open: &Open, limits: command::Limits) -> Result<Commands> {
    let outputs = format!(".nietz/runs/{}/output", open.run);
    Ok(Commands {
        helper: itself()?,
        environment: host.environment.clone(),
        grants: open.grants.clone(),
        limits: with_defaults(host.config.commands.limits).tightened(limits),
        ends: host.config.commands.ends,
        read: host.commands_read(),
        kept: host.kept(),
        outputs: host.workspace.join(&outputs),
        together: Together::default(),
        outputs_shown: outputs,
        redactor: host.redactor(),
        told: Default::default(),
    })
}

/// Returns the files that a run may read.
pub(super) fn files(host: &Host, open: &Open, flow: &Flow) -> Files {
    let collections = flow.manifest.collections.values().map(|declared| declared.collection.clone());
    Files::new(&host.workspace, &open.grants.read, host.variable("HOME"))
        .without(&host.own_folders())
        .of_flow(&given(open, flow), collections)
}

/// Returns the params that are not the flow's own word: what it takes where nobody says otherwise is nobody's.
fn given(open: &Open, flow: &Flow) -> Value {
    let mut params = open.params.clone();
    if let Some(params) = params.as_object_mut() {
        let declared = flow.command(open.command.as_deref()).ok();
        let default = |name: &String| declared.and_then(|command| command.params.get(name)?.default.as_ref());
        params.retain(|name, value| default(name) != Some(&*value));
    }
    params
}

/// Returns where this program is.
pub(super) fn itself() -> Result<PathBuf> {
    std::env::current_exe()
        .map_err(|error| Failure::new(Code::Internal, format!("this program cannot find itself: {error}")))
}
