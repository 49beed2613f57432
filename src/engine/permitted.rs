//! Whether an effect is permitted: by what the flow declares, and by what the user gave it.

use crate::error::{Code, Failure, Result};
use crate::model::effect::Effect;
use crate::model::permission::{self, Permissions};
use crate::model::text::excerpt;

/// Refuses an effect that the flow did not declare, that does more than look where the flow may only look, or that runs a command
/// which the user did not give.
///
/// # Errors
///
/// `permission-refused`, with what is missing.
pub(super) fn check_permitted(effect: &Effect, permissions: &Permissions, reads_only: bool) -> Result<()> {
    if reads_only && !effect.facts().only_looks() {
        return Err(permission::only_looks_failure(effect.facts().kind()));
    }
    if let Some(missing) = effect.facts().required_permissions().iter().find(|needed| !permissions.declares(**needed)) {
        return Err(missing.undeclared_failure());
    }
    if let Effect::Mcp(op) = effect {
        return check_server(op.server(), &permissions.mcp);
    }
    let Effect::Exec(command) = effect else { return Ok(()) };
    let commands = permissions.commands();
    if command.run.is_granted(commands) {
        return match command.read.iter().find(|named| !permissions.files_of_commands().contains(named)) {
            None => Ok(()),
            Some(other) => {
                let message = format!("no command is given the file {}", excerpt(other));
                Err(Failure::new(Code::PermissionRefused, message)
                    .hint("only files that you named are given to commands"))
            }
        };
    }
    let allowed = match commands {
        [] => "none is".to_owned(),
        some => some.iter().map(|grant| format!("`{}`", excerpt(grant))).collect::<Vec<_>>().join(", "),
    };
    let shown = excerpt(&command.run.display_text());
    Err(Failure::new(Code::PermissionRefused, format!("the command `{shown}` is not allowed"))
        .hint(format!("allowed: {allowed}")))
}

/// Refuses a server that the manifest does not name.
fn check_server(server: &str, declared: &[String]) -> Result<()> {
    if declared.iter().any(|name| name == server) {
        return Ok(());
    }
    let shown = excerpt(server);
    let names = declared.iter().map(|name| format!("`{}`", excerpt(name))).collect::<Vec<_>>().join(", ");
    Err(Failure::new(Code::PermissionRefused, format!("the flow's manifest does not name the MCP server `{shown}`"))
        .hint(format!("it names {names}: add `{shown}` to permissions.mcp")))
}
