//! What is compared: runs of the user's own, and cassettes.

use std::path::{Path, PathBuf};

use crate::engine::run_records::Origin;
use crate::error::{Code, Failure, Result};
use crate::model::digest::Digest;
use crate::report::RunHistory;
use crate::run::machine::Machine;
use crate::run::replay;
use crate::run::session::Session;

/// A run that others are held against.
pub(super) struct Recorded {
    pub id: String,
    pub journal: PathBuf,
    pub is_cassette: bool,
    /// The digest of its journal.
    pub digest: String,
    pub history: RunHistory,
    pub session: Session,
}

impl Recorded {
    /// Reads the run that a word names: a journal's file, or a run of this workspace.
    ///
    /// # Errors
    ///
    /// There is no such run, it is not done, or somebody else began it.
    pub(super) fn read(machine: &Machine, wanted: &str) -> Result<Recorded> {
        let file = Path::new(wanted);
        let is_cassette = wanted.ends_with(".jsonl") && file.is_file();
        let (id, journal) = match is_cassette {
            true => {
                let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                (name, file.canonicalize().map_err(|error| Failure::io(file, "find", &error))?)
            }
            false => own(machine, wanted)?,
        };
        let history = RunHistory::read(&journal)?;
        if history.status != "done" {
            let message = format!("{id} is not done: there is nothing to hold others against");
            return Err(Failure::new(Code::Usage, message).hint(match is_cassette {
                true => "record one that comes to its end: `nietz test --record`".to_owned(),
                false => format!("nietz resume {id}"),
            }));
        }
        let ends = replay::read_ends(&journal)?;
        let located = match is_cassette {
            true => replay::flow_of(&machine.workspace, &ends.open)?,
            false => machine.find_flow(&ends.open.source)?,
        };
        let bytes = std::fs::read(&journal).map_err(|error| Failure::io(&journal, "read", &error))?;
        let digest = Digest::of(&bytes).to_string();
        Ok(Recorded { id, journal, is_cassette, digest, history, session: Session::load(machine, located)? })
    }
}

fn own(machine: &Machine, wanted: &str) -> Result<(String, PathBuf)> {
    let runs = machine.runs();
    let id = runs.find(Some(wanted))?;
    if !runs.one(&id)?.is_some_and(|run| run.origin == Origin::Own) {
        return Err(Failure::new(Code::RunForeign, format!("{id} was not begun by you in this folder"))
            .hint("runs of yours alone are compared: the flow runs again, and pays"));
    }
    let journal = runs.journal(&id)?;
    Ok((id, journal))
}
