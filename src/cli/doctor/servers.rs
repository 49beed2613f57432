//! Checks of what flows reach beside models over the network: MCP servers, and agents as models.

use std::path::Path;

use crate::cli::doctor::{CheckOutcome, CheckState, DoctorArgs, finding};
use crate::error::Result;
use crate::host::mcp::ServerConfig;
use crate::host::path;
use crate::model::effect::mcp::McpOp;
use crate::model::text::excerpt;
use crate::run::access;
use crate::run::machine::Machine;

/// Says which MCP servers the user's configuration names, and what each may do. With `--call` each is started or reached.
pub(super) fn servers(machine: &Machine, args: &DoctorArgs) -> Result<Vec<CheckOutcome>> {
    machine.config.mcp.iter().map(|(name, server)| check(machine, name, server, args.call)).collect()
}

fn check(machine: &Machine, name: &str, server: &ServerConfig, call: bool) -> Result<CheckOutcome> {
    let told = format!("{name}: {}", server.describe());
    if let Some(program) = server.program().filter(|program| !is_there(machine, program)) {
        let found = format!("{told}; there is no program {program}");
        return Ok(finding("mcp", CheckState::Weak, found).hint("install it, or give its whole path"));
    }
    if !call {
        return Ok(finding("mcp", CheckState::Ok, told));
    }
    let servers = access::servers(machine)?;
    let op = McpOp::tools_of(name);
    let listed = crate::run::runtime()?.block_on(servers.perform(&op, &|| {}));
    Ok(match listed {
        Ok(tools) => finding("mcp", CheckState::Ok, format!("{told}; it answers: {}", tools.describe())),
        Err(failure) => {
            let details: String = failure.details.iter().map(|detail| format!("; {detail}")).collect();
            let found = format!("{told}; {}{details}", failure.message);
            let hint = failure.hint.unwrap_or_else(|| format!("nietz explain {}", failure.code.name()));
            finding("mcp", CheckState::Weak, found).hint(hint)
        }
    })
}

fn is_there(machine: &Machine, program: &str) -> bool {
    match program.contains('/') {
        true => Path::new(program).is_absolute() && Path::new(program).is_file(),
        false => path::folders(&machine.environment).iter().any(|folder| folder.join(program).is_file()),
    }
}

/// Says which agents could be asked. None is started, and none is ever the default.
pub(super) fn agents(machine: &Machine, _: &DoctorArgs) -> Result<Vec<CheckOutcome>> {
    let client = crate::run::models::client(machine)?;
    let here = client.agents().into_iter().filter_map(|(name, command)| Some((name, command?)));
    Ok(here
        .map(|(name, command)| {
            let found = format!(
                "acp/{name} is `{}`: your own agent, with its own login, outside of any sandbox",
                excerpt(&command)
            );
            finding("agent", CheckState::Ok, found)
        })
        .collect())
}
