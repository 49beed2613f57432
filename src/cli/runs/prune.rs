//! `nietz runs prune`.

use clap::Args;

use super::age::Moment;
use super::{is_past, print_table};
use crate::cli::output;
use crate::engine::run_records::Origin;
use crate::engine::runs::ListedRun;
use crate::error::{Code, Exit, Failure, Result};
use crate::run::machine::Machine;

/// Remove runs with their journals: first a list of them, and with `--yes` the runs
///
/// Runs that wait or are running, that were interrupted, that are broken or that somebody else began are removed only by their
/// names. Documents, branches and worktrees of a run stay.
#[derive(Args)]
pub(super) struct PruneArgs {
    /// The runs, by their whole names; without them, those that the other options say
    #[arg(conflicts_with_all = ["older", "keep", "status"])]
    runs: Vec<String>,
    /// Runs that began longer ago, or before this day: `30d`, `2026-11-01`
    #[arg(long, value_name = "TIME", required_unless_present_any = ["runs", "keep", "status"])]
    older: Option<Moment>,
    /// Keep the newest runs, so many of each flow
    #[arg(long, value_name = "N")]
    keep: Option<usize>,
    /// Only runs of this status
    #[arg(long, value_parser = ["done", "failed", "cancelled"])]
    status: Option<String>,
    /// Remove them; without it, they are only listed
    #[arg(long)]
    yes: bool,
}

pub(super) fn run(machine: &Machine, args: &PruneArgs) -> Result<Exit> {
    let runs = machine.runs();
    let all = runs.list()?;
    let meant = match args.runs.is_empty() {
        true => chosen(machine, args, all)?,
        false => named(&args.runs, all)?,
    };
    if meant.is_empty() {
        output::line("there is no run to remove")?;
        return Ok(Exit::Done);
    }
    if !args.yes {
        print_table(machine, &meant)?;
        output::line(match meant.len() {
            1 => "1 run; with --yes it is removed".to_owned(),
            count => format!("{count} runs; with --yes they are removed"),
        })?;
        return Ok(Exit::Done);
    }
    runs.sweep();
    let mut failed = None;
    for run in &meant {
        match runs.remove(&run.id) {
            Ok(()) => output::line(format!("removed {}", run.id))?,
            Err(failure) => failed = Some(failure),
        }
    }
    failed.map_or(Ok(Exit::Done), Err)
}

fn named(names: &[String], all: Vec<ListedRun>) -> Result<Vec<ListedRun>> {
    if let Some(name) = names.iter().find(|name| !all.iter().any(|run| run.id == **name)) {
        let failure = Failure::new(Code::RunNotFound, format!("there is no run of the name `{name}` here"));
        return Err(failure.hint("runs are removed by their whole names: `nietz runs` lists them"));
    }
    let meant: Vec<ListedRun> = all.into_iter().filter(|run| names.contains(&run.id)).collect();
    match meant.iter().find(|run| run.busy) {
        Some(run) => Err(Failure::new(Code::RunBusy, format!("another process is at run {}", run.id))
            .hint("wait for it or end it; nothing was removed")),
        None => Ok(meant),
    }
}

fn chosen(machine: &Machine, args: &PruneArgs, all: Vec<ListedRun>) -> Result<Vec<ListedRun>> {
    let now = machine.clock()?();
    let before = args.older.as_ref().map(|older| older.iso(now));
    let mut newer: std::collections::HashMap<String, usize> = std::collections::HashMap::new();
    let mut meant = Vec::new();
    for run in all.into_iter().rev() {
        let count = newer.entry(run.summary.flow.clone()).or_default();
        *count += usize::from(run.origin == Origin::Own);
        let is_kept = args.keep.is_some_and(|keep| *count <= keep);
        let is_old = before.as_ref().is_none_or(|before| run.summary.started < *before);
        let is_meant = args.status.as_ref().is_none_or(|status| run.status() == status);
        if is_meant && !is_kept && is_old && is_past(&run) {
            meant.push(run);
        }
    }
    meant.reverse();
    Ok(meant)
}
