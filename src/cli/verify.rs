//! `nietz verify RUN`.

use std::path::{Component, Path};

use clap::Args;

use crate::cli::output;
use crate::disk::{self, Links};
use crate::engine::verify::RunWrites;
use crate::error::{Code, Exit, Failure, Result};
use crate::model::text::excerpt;
use crate::run::machine::Machine;
use crate::schema::source::MAX_BYTES;

/// Hold what a run wrote against its journal: the chain of its lines, each row that was appended, each document
#[derive(Args)]
pub(super) struct VerifyArgs {
    /// The run's id, or a part of it that only one has
    run: String,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(machine: &Machine, args: &VerifyArgs) -> Result<Exit> {
    let runs = machine.runs();
    let id = runs.find(Some(&args.run))?;
    let journal = runs.journal(&id);
    let written = RunWrites::read(&journal)?;
    let verdict = written.compare_with(|path| read(&machine.workspace, path))?;
    let torn = written.whole.torn;
    if args.json {
        output::json(&serde_json::json!({
            "run": id, "lines": written.whole.lines, "torn": torn, "documents": verdict.documents,
            "rows": verdict.rows, "differences": verdict.differences,
        }))?;
    } else {
        let (lines, documents, rows) = (written.whole.lines, verdict.documents, verdict.rows);
        output::line(format!("{id}: {lines} lines in one chain, {documents} documents, {rows} rows"))?;
        if torn > 0 {
            output::line(format!("  {torn} bytes of a torn last line, which resuming cuts off"))?;
        }
    }
    if verdict.differences.is_empty() {
        return Ok(Exit::Done);
    }
    let count = verdict.differences.len();
    let things = if count == 1 { "one thing is" } else { "some things are" };
    let failure = Failure::new(Code::RecordDiffers, format!("{things} not as the run {id} wrote it"))
        .hint("a later run or a person may have changed a document; rows are only ever appended: `nietz explain record-differs`");
    Err(verdict.differences.iter().fold(failure, Failure::because))
}

/// Reads a file of the workspace. A journal that nietz wrote names no other files, so they are refused.
fn read(workspace: &Path, path: &str) -> Result<Option<Vec<u8>>> {
    if !Path::new(path).components().all(|part| matches!(part, Component::Normal(_))) {
        let shown = excerpt(path);
        return Err(Failure::new(
            Code::PathRefused,
            format!("the journal names a file outside of the workspace: {shown}"),
        ));
    }
    let full = workspace.join(path);
    disk::read(&full, Links::Below(workspace), MAX_BYTES)
}
