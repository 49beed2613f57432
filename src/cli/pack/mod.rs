//! `nietz pack`: packs of others, and one's own for others.
//!
//! `source` is where a pack comes from; `ready` takes it into a folder of its own and looks at all of it; what its
//! flows may do is told, asked and kept by `cli::trust`. Nothing is installed before all of that is done.

mod add;
mod export;
mod list;
pub(super) mod ready;
mod source;
mod update;

use std::fs::File;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::cli::host::Host;
use crate::cli::output;
use crate::disk;
use crate::error::{Exit, Failure, Result};
use crate::pack::lock::Lock;

/// How long another process may take to change packs: they are fetched meanwhile.
const PATIENCE: Duration = Duration::from_secs(60);

/// Add, update and remove packs of flows, personas and quotes
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
}

/// How grants are given where nobody is asked.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct GrantFlags {
    /// Ask nothing; only what `--allow` lists is granted
    #[arg(long)]
    pub(in crate::cli) yes: bool,
    /// Ask for this alone, and grant nothing else: `llm`, `git`, `exec=cargo`, `documents=notes/{slug}.yaml`; or for one flow, `FLOW:llm`
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub(in crate::cli) allow: Vec<String>,
}

pub(super) fn run(host: &Host, args: PackArgs) -> Result<Exit> {
    let _held = match args.verb {
        PackVerb::List(_) => None,
        _ => Some(hold(host)?),
    };
    match args.verb {
        PackVerb::Add(args) => add::run(host, &args),
        PackVerb::Update(args) => update::run(host, &args),
        PackVerb::Remove { name } => remove(host, &name),
        PackVerb::List(args) => list::run(host, &args),
        PackVerb::Export(args) => export::run(host, &args),
    }
}

/// Waits until no other process of this user changes packs, and clears up behind one that died.
fn hold(host: &Host) -> Result<File> {
    let path = host.packs().with_extension("lock");
    let file = disk::lock(&path, "your packs", PATIENCE)?;
    for entry in std::fs::read_dir(host.packs()).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(ready::UNFINISHED.as_bytes()) {
            std::fs::remove_dir_all(entry.path()).map_err(|error| Failure::io(&entry.path(), "remove", &error))?;
        }
    }
    Ok(file)
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
