//! `nietz report RUN`.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use serde_json::Value;

use crate::cli::output;
use crate::disk::temp_file::TempFile;
use crate::engine::runs::WHERE_RUNS_STAND;
use crate::error::{Code, Exit, Failure, Result};
use crate::report::{self, Form, OwnPart, RunHistory};
use crate::run::machine::Machine;
use crate::run::{replay, session};

/// Write what a run did as one HTML page that needs nothing else, or as Markdown or JSON
#[derive(Args)]
#[command(group(ArgGroup::new("form").args(["markdown", "json"])))]
pub(super) struct ReportArgs {
    /// The run's id, a part of it that only one has, or a journal's file; without it, the newest
    run: Option<String>,
    /// Where to write it; `-` is standard output [default: RUN.html here, or standard output for the other forms]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Markdown for a pull request or an issue
    #[arg(long)]
    markdown: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(machine: &Machine, args: &ReportArgs) -> Result<Exit> {
    let journal = journal(machine, args.run.as_deref())?;
    let history = RunHistory::read(&journal)?;
    let form = match (args.markdown, args.json) {
        (true, _) => Form::Markdown,
        (_, true) => Form::Json,
        (false, false) => Form::Html,
    };
    let own = OwnPart::new(own_part(machine, &journal, &history));
    if let Some(why) = own.failure() {
        output::print_status(&format!("the flow's own part of the report is left out: {why}\n"));
    }
    let text = report::write(&history, &own, form)?;
    let beside = || PathBuf::from(format!("{}.html", history.run));
    let target = args.output.clone().or_else(|| (form == Form::Html).then(beside));
    match target.filter(|path| path.as_os_str() != "-") {
        Some(path) => {
            TempFile::write(&path, text.as_bytes())?.publish(&path)?;
            output::line(format!("{}: {} kB", path.display(), text.len().div_ceil(1000)))?;
        }
        None => output::block(text)?,
    }
    Ok(Exit::Done)
}

/// Returns what the flow shows of its run, as it is today.
pub(super) fn own_part(machine: &Machine, journal: &Path, history: &RunHistory) -> Result<Value> {
    let located = replay::locate_flow(machine, &history.run, &replay::read_ends(journal)?)?;
    session::load(machine, located)?.report(&history.for_flow())
}

/// Returns the journal that is meant: a file that is there, or a run's.
fn journal(machine: &Machine, wanted: Option<&str>) -> Result<PathBuf> {
    let runs = machine.runs();
    let id = match wanted {
        Some(path) if path.ends_with(".jsonl") && Path::new(path).is_file() => return Ok(PathBuf::from(path)),
        Some(wanted) => runs.find(Some(wanted))?,
        None => runs
            .newest()?
            .ok_or_else(|| Failure::new(Code::RunNotFound, "there are no runs here").hint(WHERE_RUNS_STAND))?,
    };
    runs.journal(&id)
}
