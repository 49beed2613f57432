//! `nietz pack`: adds packs of other people to a project, and exports the user's own.
//!
//! `source` fetches a pack; `vet` checks all of it in a temporary folder; `cli::trust` shows what its flows may do, asks the
//! user, and stores the answer. Nothing is installed before the user has agreed.

mod add;
mod export;
mod list;
mod publish;
mod search;
mod signed;
pub(super) mod vet;
mod source;
mod update;

use std::fs::File;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::cli::output;
use crate::disk::owner;
use crate::error::{Exit, Failure, Result};
use crate::pack::lock::Lockfile;
use crate::run::machine::Machine;

/// Add, update and remove packs of flows, personas and quotes
#[derive(Args)]
pub(super) struct PackArgs {
    #[command(subcommand)]
    verb: PackVerb,
}

#[derive(Subcommand)]
enum PackVerb {
    Add(add::PackAddArgs),
    Update(update::UpdateArgs),
    /// Take a pack out of this project
    Remove {
        name: String,
    },
    List(list::ListArgs),
    Export(export::ExportArgs),
    Search(search::SearchArgs),
    Publish(publish::PublishArgs),
}

pub(super) fn run(machine: &Machine, args: PackArgs) -> Result<Exit> {
    let _lock = match args.verb {
        PackVerb::List(_) | PackVerb::Search(_) => None,
        _ => Some(hold(machine)?),
    };
    match args.verb {
        PackVerb::Add(args) => add::run(machine, &args),
        PackVerb::Update(args) => update::run(machine, &args),
        PackVerb::Remove { name } => remove(machine, &name),
        PackVerb::List(args) => list::run(machine, &args),
        PackVerb::Export(args) => export::run(machine, &args),
        PackVerb::Search(args) => search::run(machine, &args),
        PackVerb::Publish(args) => publish::run(machine, &args),
    }
}

/// How long to wait for another process that changes packs: it may be waiting for an answer of its user.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until no other process of this user changes packs, and removes what a process that died has left.
fn hold(machine: &Machine) -> Result<File> {
    let file = owner::lock(&machine.packs().with_extension("lock"), PATIENCE)?;
    for entry in std::fs::read_dir(machine.packs()).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(vet::UNFINISHED.as_bytes()) {
            std::fs::remove_dir_all(entry.path()).map_err(|error| Failure::io(&entry.path(), "remove", &error))?;
        }
    }
    Ok(file)
}

fn remove(machine: &Machine, name: &str) -> Result<Exit> {
    let mut lock = Lockfile::read(&machine.workspace)?;
    lock.get(name)?;
    lock.packs.remove(name);
    lock.write(&machine.workspace)?;
    // The files stay: their folder is named by its content, and other projects may use it.
    output::line(format!("removed {name} from nietz.lock"))?;
    Ok(Exit::Done)
}
