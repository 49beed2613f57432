//! `nietz pack`: packs of others, and one's own for others.
//!
//! `source` is where a pack comes from; `ready` takes it into a folder of its own and looks at all of it; `trust` tells
//! what its flows may do and keeps what the user grants. Nothing is installed before all of that is done.

mod add;
mod export;
mod list;
pub(super) mod ready;
mod source;
pub(super) mod trust;
mod update;

use clap::{Args, Subcommand};

use crate::cli::host::Host;
use crate::cli::output;
use crate::error::{Exit, Result};
use crate::pack::lock::{Grants, Lock};

/// Add, update and trust packs of flows, personas and quotes
#[derive(Args)]
pub(super) struct PackArgs {
    #[command(subcommand)]
    verb: PackVerb,
}

#[derive(Subcommand)]
enum PackVerb {
    Add(add::AddArgs),
    Update(update::UpdateArgs),
    /// Take a pack out of this project
    Remove {
        name: String,
    },
    List(list::ListArgs),
    Export(export::ExportArgs),
    Trust(trust::TrustArgs),
    /// Take back all that was granted to a pack
    Revoke {
        name: String,
    },
}

/// How grants are given where nobody is asked.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct GrantFlags {
    /// Ask nothing; only what `--allow` lists is granted
    #[arg(long)]
    yes: bool,
    /// Grant this: `llm`, `git`, `exec=cargo`, `documents=notes/{slug}.yaml`; or for one flow, `FLOW:llm`
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    allow: Vec<String>,
}

pub(super) fn run(host: &Host, args: PackArgs) -> Result<Exit> {
    match args.verb {
        PackVerb::Add(args) => add::run(host, &args),
        PackVerb::Update(args) => update::run(host, &args),
        PackVerb::Remove { name } => remove(host, &name),
        PackVerb::List(args) => list::run(host, &args),
        PackVerb::Export(args) => export::run(host, &args),
        PackVerb::Trust(args) => trust::run(host, &args),
        PackVerb::Revoke { name } => revoke(host, &name),
    }
}

fn remove(host: &Host, name: &str) -> Result<Exit> {
    let mut lock = Lock::read(&host.workspace)?;
    lock.get(name)?;
    lock.packs.remove(name);
    lock.write(&host.workspace)?;
    // The tree stays: it is named by its content, and other projects may use it.
    output::line(format!("removed {name} from nietz.lock"))?;
    Ok(Exit::Done)
}

fn revoke(host: &Host, name: &str) -> Result<Exit> {
    let mut grants = Grants::read(&host.grants())?;
    if grants.revoke(name) {
        grants.write(&host.grants())?;
        output::line(format!("{name} may do nothing any more, in any version"))?;
    } else {
        output::line(format!("nothing is granted to {name}"))?;
    }
    Ok(Exit::Done)
}
