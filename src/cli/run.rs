//! `nietz run FLOW [ARGS]`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::Args;

use crate::cli::action::{self, RunAction};
use crate::cli::{output, plan, start};
use crate::error::{Code, Exit, Failure, Result};
use crate::pack::resolve;
use crate::run::machine::Machine;

/// Run a flow, given by its path or its name
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(super) struct RunArgs {
    /// The flow and its arguments: `nietz run FLOW --help` tells them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLOW [ARGS]")]
    rest: Vec<OsString>,
}

impl RunArgs {
    /// Removes each `-C FOLDER` before a `--` from the flow's arguments, and returns the last folder.
    pub(super) fn take_workspace(&mut self) -> Option<PathBuf> {
        self.take(&["-C", "--workspace"], &["--workspace=", "-C=", "-C"]).map(PathBuf::from)
    }

    /// Removes each `--store STORE` before a `--`, and returns the last store that is text.
    pub(super) fn take_store(&mut self) -> Option<String> {
        self.take(&["--store"], &["--store="])?.into_string().ok()
    }

    /// Removes each option of these names before a `--` from the flow's arguments, and returns the last value.
    fn take(&mut self, alone: &[&str], attached: &[&str]) -> Option<OsString> {
        let mut found = None;
        let mut at = 0;
        while let Some(arg) = self.rest.get(at).filter(|arg| *arg != "--") {
            let is_alone = alone.iter().any(|name| arg == name);
            let value = attached.iter().find_map(|start| arg.as_bytes().strip_prefix(start.as_bytes()));
            let value = match (is_alone, value) {
                // An option without a value stays, and is refused with the other usage errors.
                (true, _) => self.rest.get(at + 1).cloned(),
                (false, value) => value.map(|value| OsStr::from_bytes(value).to_owned()),
            };
            match value {
                Some(value) => {
                    found = Some(value);
                    self.rest.drain(at..=at + usize::from(is_alone));
                }
                None => at += 1,
            }
        }
        found
    }
}

pub(super) fn run(machine: &Machine, args: RunArgs) -> Result<Exit> {
    let mut rest: Vec<String> = Vec::new();
    for arg in args.rest {
        rest.push(arg.into_string().map_err(|_| Failure::new(Code::Usage, "an argument is not UTF-8"))?);
    }
    let asks_help = rest.iter().any(|arg| arg == "--help" || arg == "-h");
    let Some((session, action)) = action::load_action(machine, rest)? else {
        let mut help = action::command("nietz run", "FLOW").about("Run a flow, given by its path or its name");
        if asks_help {
            output::block(help.render_help())?;
            return Ok(Exit::Done);
        }
        let names = resolve::names(&machine.workspace, &machine.packs())?.join(", ");
        return Err(Failure::new(Code::Usage, format!("which flow? Here are: {names}")).hint("nietz run FLOW --help"));
    };
    match action {
        RunAction::Printed(exit) => Ok(exit),
        RunAction::Plan(begin, front) => plan::show(&session, machine, &begin, front.json),
        RunAction::Run(begin, front) => start::begin(machine, session, *begin, &front),
        #[cfg(feature = "postgres")]
        RunAction::Queue(begin, front, terms) => super::queue::queue(machine, &session, *begin, (&front, &terms)),
    }
}
