//! `nietz runs export` and `nietz runs import`: journals as files, byte for byte.

use std::path::PathBuf;

use clap::Args;

use crate::cli::output;
use crate::disk::temp_file::TempFile;
use crate::disk::{self, Links};
use crate::error::{Code, Exit, Failure, Result};
use crate::journal::reader::{self, MAX_BYTES};
use crate::run::machine::Machine;
use crate::run::replay;

/// Write the journals of runs as files: the same lines with the same digests, for another store
#[derive(Args)]
pub(super) struct ExportArgs {
    /// The runs' ids, or parts of them that only one has; without any, all runs
    runs: Vec<String>,
    /// The folder for `RUN.jsonl`
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    into: PathBuf,
}

/// Take journals in as runs of this store: the same lines with the same digests
///
/// What a journal grants and names holds only for runs of your own: `--own` says that these are. Others can be looked at, and are
/// resumed with what you name.
#[derive(Args)]
pub(super) struct ImportArgs {
    /// Journals, as `nietz runs export` writes them
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// They are yours: what their first lines grant holds
    #[arg(long)]
    own: bool,
}

pub(super) fn export(machine: &Machine, args: &ExportArgs) -> Result<Exit> {
    let runs = machine.runs();
    let named: Result<Vec<String>> = args.runs.iter().map(|wanted| runs.find(Some(wanted))).collect();
    let ids = if args.runs.is_empty() { runs.ids()? } else { named? };
    let folder = machine.typed_path(&args.into);
    std::fs::create_dir_all(&folder).map_err(|error| Failure::io(&folder, "create", &error))?;
    for id in &ids {
        let bytes = reader::read_bytes(&runs.journal(id)?)?;
        let path = folder.join(format!("{id}.jsonl"));
        // What people said is for the user alone.
        TempFile::with_mode(&path, &bytes, 0o600)?.publish(&path)?;
        output::line(format!("{id}: {}", path.display()))?;
    }
    Ok(Exit::Done)
}

pub(super) fn import(machine: &Machine, args: &ImportArgs) -> Result<Exit> {
    let runs = machine.runs();
    for file in &args.files {
        let path = machine.typed_path(file);
        let missing = || Failure::io(&path, "read", &std::io::ErrorKind::NotFound.into());
        let bytes = disk::read(&path, Links::All, MAX_BYTES)?.ok_or_else(missing)?;
        let whole = reader::read(&path, &bytes, |_, _| Ok(()))?;
        if whole.torn > 0 {
            return Err(Failure::new(Code::JournalBroken, format!("{}: its last line is torn", path.display()))
                .hint("cut it off: what a run writes goes on behind its last whole line"));
        }
        let replay::JournalEnds { open, .. } = replay::read_ends(&path)?;
        runs.import(&open.run, &bytes, args.own)?;
        output::line(format!("{}: {} lines", open.run, whole.lines))?;
    }
    Ok(Exit::Done)
}
