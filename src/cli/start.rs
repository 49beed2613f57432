//! The checks and notices before a run begins or is resumed: what the user trusts, which model holds, and whose results the
//! run uses.

use crate::cli::foreign;
use crate::cli::front::FrontArgs;
use crate::cli::trust::{self, Invocation};
use crate::engine::history::History;
use crate::engine::runs::LockedRun;
use crate::error::{Exit, Result};
use crate::journal::lines::OpenRecord;
use crate::journal::writer::JournalTail;
use crate::lua::flow::Flow;
use crate::run::live::{NewRun, ResumeTerms};
use crate::run::machine::Machine;
use crate::run::session::Session;

/// Begins a new run and takes it to its end.
pub(super) fn begin(machine: &Machine, session: Session, begin: NewRun, front: &FrontArgs) -> Result<Exit> {
    begin_after(machine, session, begin, front, || Ok(()))
}

/// As [`begin`]; does something more where nothing speaks against the run.
pub(super) fn begin_after(
    machine: &Machine,
    session: Session,
    mut begin: NewRun,
    front: &FrontArgs,
    first: impl FnOnce() -> Result<()>,
) -> Result<Exit> {
    let mut notices = trust::require(machine, &session.flow, &Invocation::of(&begin, begin.by_name), front)?;
    notices.extend(hold_to_model(machine, &session.flow, &mut begin, front)?);
    notices.extend(foreign::results(machine, &session.flow, &begin)?);
    first()?;
    session.begin(machine, begin, notices, &front.front())
}

/// Resumes a run from its journal.
pub(super) fn resume(
    machine: &Machine,
    session: Session,
    locked: LockedRun,
    (history, tail): (History, JournalTail),
    (open, mut terms): (OpenRecord, ResumeTerms),
    front: &FrontArgs,
) -> Result<Exit> {
    let invocation = match &terms {
        // The run's journal records its model.
        ResumeTerms::Own { .. } => Invocation { by_name: false, with_model: true },
        ResumeTerms::Given(begin) => Invocation::of(begin, begin.by_name),
    };
    let mut notices = trust::require(machine, &session.flow, &invocation, front)?;
    if let ResumeTerms::Given(begin) = &mut terms {
        notices.extend(hold_to_model(machine, &session.flow, begin, front)?);
        let (fork, not_taken) = foreign::fork(machine, open.fork.clone())?;
        begin.fork = fork;
        notices.extend(not_taken);
        notices.extend(foreign::results(machine, &session.flow, begin)?);
    }
    session.resume(machine, locked, (history, tail), (open, terms), notices, &front.front())
}

/// Makes the model that the user named hold for all personas, unless the user trusts the folder's personas to choose their
/// own. Returns a notice for the user.
fn hold_to_model(machine: &Machine, flow: &Flow, begin: &mut NewRun, front: &FrontArgs) -> Result<Option<String>> {
    if begin.model.is_none() || begin.only_model {
        return Ok(None);
    }
    let notice = trust::only_model(machine, flow, front)?;
    begin.only_model = notice.is_some();
    Ok(notice)
}
