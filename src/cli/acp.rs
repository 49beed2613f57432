//! `nietz acp`.

use std::path::Path;

use clap::Args;

use crate::cli::mcp::OfferedArgs;
use crate::editors::{self, AcpOptions, Place};
use crate::error::{Code, Exit, Failure, Result};
use crate::model::text::excerpt;
use crate::run::machine::Machine;
use crate::run::runtime;

/// Be an agent of an editor, by the Agent Client Protocol
///
/// The editor starts this and speaks with it by standard input and output. Flows are slash commands; what you say next answers
/// their questions. Each run is a process of its own, which goes on when the editor leaves, and can be loaded there as a session,
/// or gone on with by `nietz resume`. What a run may do is what you granted beforehand.
#[derive(Args)]
pub(super) struct AcpArgs {
    #[command(flatten)]
    offered: OfferedArgs,
}

pub(super) fn run(machine: &Machine, args: &AcpArgs) -> Result<Exit> {
    let folder = |folder: &Path| {
        if !folder.is_absolute() || !folder.is_dir() {
            let shown = excerpt(&folder.to_string_lossy());
            return Err(Failure::new(Code::Usage, format!("{shown} is no whole path of a folder")));
        }
        let folder = folder.canonicalize().map_err(|error| Failure::io(folder, "find", &error))?;
        let place = Place { folder: folder.clone(), is_named: true };
        args.offered.supervisor(&machine.in_folder(&folder)?, place)
    };
    let here = machine.workspace.clone();
    let options = AcpOptions { folder: Box::new(folder), here, allowed: args.offered.allowed() };
    runtime()?.block_on(editors::serve_acp(options))?;
    Ok(Exit::Done)
}
