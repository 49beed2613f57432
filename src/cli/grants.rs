//! The options by which the user grants a run, or the flows of a pack, what no flow can grant itself.

use clap::{Args, Command};

use crate::model::command::Grants;
use crate::run::machine::Machine;

/// What the user grants to commands that a flow runs.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct GrantArgs {
    /// Let commands of the flow use the network
    #[arg(long, global = true)]
    allow_net: bool,
    /// Run commands of the flow without a sandbox: they can touch all that you can
    #[arg(long, global = true)]
    no_sandbox: bool,
}

/// What the user grants to a flow that reads files.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct ReadArgs {
    /// Let the flow read this file or folder outside of the workspace; can be given several times
    #[arg(long, value_name = "PATH", global = true)]
    allow_read: Vec<String>,
}

/// Adds the options by which the user grants what no flow can grant itself.
pub(super) fn with_grant_options(command: Command) -> Command {
    ReadArgs::augment_args(GrantArgs::augment_args(command))
}

impl GrantArgs {
    pub(super) fn added_to(self, before: Grants) -> Grants {
        Grants {
            net: self.allow_net || before.net,
            no_sandbox: self.no_sandbox || before.no_sandbox,
            read: before.read,
        }
    }
}

impl GrantArgs {
    /// Returns the words that say the same to another process.
    #[cfg(feature = "postgres")]
    pub(super) fn words(&self) -> Vec<String> {
        let named = [(self.allow_net, "--allow-net"), (self.no_sandbox, "--no-sandbox")];
        named.iter().filter(|(given, _)| *given).map(|(_, word)| (*word).to_owned()).collect()
    }

    /// Returns what of the grants of a run this command line gives, too.
    #[cfg(feature = "postgres")]
    pub(super) fn limiting(self, (read, machine): (ReadArgs, &Machine), of_run: Grants) -> Grants {
        let own = read.added_to(self.added_to(Grants::default()), machine);
        Grants {
            net: own.net && of_run.net,
            no_sandbox: own.no_sandbox && of_run.no_sandbox,
            read: of_run.read.into_iter().filter(|path| own.read.contains(path)).collect(),
        }
    }
}

impl ReadArgs {
    /// Returns the words that say the same to another process.
    #[cfg(feature = "postgres")]
    pub(super) fn words(&self, machine: &Machine) -> Vec<String> {
        let all = self.clone().added_to(Grants::default(), machine).read;
        all.into_iter().flat_map(|path| ["--allow-read".to_owned(), path]).collect()
    }

    /// Adds the paths of `--allow-read`; they are relative as all typed paths are, or start with `~/`.
    pub(super) fn added_to(self, mut before: Grants, machine: &Machine) -> Grants {
        before.read.extend(self.allow_read.into_iter().map(|path| match path.starts_with("~/") {
            true => path,
            false => machine.typed_path(path).display().to_string(),
        }));
        before
    }
}

/// What the user grants to the flows of a pack, where nobody is asked.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct GrantFlags {
    /// Ask nothing; only what `--allow` lists is granted
    #[arg(long)]
    pub(super) yes: bool,
    /// Ask for this alone, and grant nothing else: `llm`, `git`, `exec=cargo`, `documents=notes/{slug}.yaml`; or for one flow, `FLOW:llm`
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub(super) allow: Vec<String>,
}
