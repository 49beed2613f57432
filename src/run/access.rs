//! What a run may touch: the commands that it runs, and the files that it reads.

use serde_json::Value;

use crate::error::Result;
use crate::host::exec::{Commands, SharedUsage, with_defaults};
use crate::host::files::Files;
use crate::host::llm;
use crate::host::mcp::{McpParts, McpServers};
use crate::host::notify::Notifier;
use crate::journal::lines::OpenRecord;
use crate::lua::flow::Flow;
use crate::model::command::{self, Grants};
use crate::model::param::{ParamKind, typed_params};
use crate::model::permission::Permission;
use crate::model::text::shell;
use crate::pack::permission_items::Items;
use crate::pack::trust::folder_name;
use crate::run::machine::Machine;

/// Returns the runner for the commands of a run.
///
/// # Errors
///
/// Those of [`Machine::program`].
pub(crate) fn commands(machine: &Machine, open: &OpenRecord, limits: command::CommandLimits) -> Result<Commands> {
    let mut commands = granted_commands(machine, open.grants.clone(), format!(".nietz/runs/{}/output", open.run))?;
    commands.limits = commands.limits.tightened(limits);
    Ok(commands)
}

/// Returns a runner for the commands that the user grants, within the limits of this machine. Long outputs go to the
/// folder `outputs` of the workspace.
///
/// # Errors
///
/// Those of [`Machine::program`].
pub(crate) fn granted_commands(machine: &Machine, grants: Grants, outputs: String) -> Result<Commands> {
    Ok(Commands {
        helper: machine.program()?,
        environment: machine.environment.clone(),
        grants,
        limits: with_defaults(machine.config.commands.limits),
        ends: machine.config.commands.ends,
        read: machine.commands_read(),
        protected: machine.protected_folders(),
        workspace: machine.workspace.clone(),
        outputs: machine.workspace.join(&outputs),
        usage: SharedUsage::default(),
        outputs_shown: outputs,
        redactor: machine.redactor(),
        remarked: Default::default(),
    })
}

/// Returns what sends the notifications of a run.
pub(crate) fn notifier(machine: &Machine, open: &OpenRecord) -> Notifier {
    // Whoever reads it is not in this folder.
    let resume = format!("nietz -C {} resume {}", shell(&machine.workspace.to_string_lossy()), shell(&open.run));
    notifier_of(machine, &open.run, &open.flow, resume)
}

/// Returns what sends notifications of a run that `resume` goes on with.
pub(crate) fn notifier_of(machine: &Machine, run: &str, flow: &str, resume: String) -> Notifier {
    Notifier {
        config: machine.config.notify.clone(),
        run: run.to_owned(),
        flow: flow.to_owned(),
        resume,
        environment: llm::without_keys(&machine.environment, &machine.config.models),
        secret: machine.notify_secret().map(str::to_owned),
        redactor: machine.redactor(),
        progress: Default::default(),
    }
}

/// Returns the MCP servers that the user names. None is started or reached before it is needed.
///
/// # Errors
///
/// Those of [`Machine::program`].
pub(crate) fn servers(machine: &Machine) -> Result<McpServers> {
    Ok(McpServers::new(McpParts {
        servers: machine.config.mcp.clone(),
        commands: granted_commands(machine, Grants::default(), ".nietz/output".to_owned())?,
        homes: machine.server_homes(),
        key_environment: llm::without_keys(&machine.environment, &machine.config.models),
    }))
}

/// Returns the files that a run may read.
pub(crate) fn files(machine: &Machine, open: &OpenRecord, flow: &Flow) -> Files {
    let collections = flow.manifest.collections.values().map(|declared| declared.collection.clone());
    Files::new(&machine.workspace, &open.grants.read, machine.variable("HOME"))
        .without(&machine.own_folders())
        .of_flow(&user_params(open, flow), collections)
}

/// Returns the models that the user typed as params.
pub(crate) fn typed_models(open: &OpenRecord, flow: &Flow) -> Vec<String> {
    let typed = user_params(open, flow);
    let declared = flow.command(open.command.as_deref()).ok();
    let models =
        declared.iter().flat_map(|command| &command.params).filter(|(_, param)| param.kind == ParamKind::Model);
    let words = models.flat_map(|(name, _)| match &typed[name.as_str()] {
        Value::Array(items) => items.clone(),
        value => vec![value.clone()],
    });
    words.filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

/// Returns the params that the user chose and typed: those that differ from the flow's defaults.
fn user_params(open: &OpenRecord, flow: &Flow) -> Value {
    let mut params = typed_params(&open.params, &open.origins);
    if let Some(params) = params.as_object_mut() {
        let declared = flow.command(open.command.as_deref()).ok();
        let default = |name: &String| declared.and_then(|command| command.params.get(name)?.default.as_ref());
        params.retain(|name, value| default(name) != Some(&*value));
    }
    params
}

/// Returns which commands of the repository's configuration git may run for a flow.
///
/// # Errors
///
/// Those of [`TrustFile::read`](crate::pack::trust::TrustFile::read) and [`folder_name`].
pub(crate) fn filters(machine: &Machine, flow: &Flow) -> Result<Items> {
    match flow.manifest.permissions.declares(Permission::GitRead) {
        true => Ok(machine.trust().read()?.filters(&folder_name(&machine.workspace)?)),
        false => Ok(Items::new()),
    }
}
