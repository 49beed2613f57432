//! What is asked and told before a run begins or goes on: what the user trusts, which model holds, whose results it takes.

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
pub(super) fn begin(machine: &Machine, session: Session, mut begin: NewRun, front: &FrontArgs) -> Result<Exit> {
    let mut notices = trust::require(machine, &session.flow, &Invocation::of(&begin, begin.by_name), front)?;
    notices.extend(hold_to_model(machine, &session.flow, &mut begin, front)?);
    notices.extend(foreign::results(machine, &session.flow, &begin)?);
    session.begin(machine, begin, notices, &front.front())
}

/// Goes on with a run from its journal.
pub(super) fn resume(
    machine: &Machine,
    session: Session,
    locked: LockedRun,
    (past, tail): (History, JournalTail),
    (first, mut with): (OpenRecord, ResumeTerms),
    front: &FrontArgs,
) -> Result<Exit> {
    let called = match &with {
        // Its model is in its journal.
        ResumeTerms::Own { .. } => Invocation { by_name: false, with_model: true },
        ResumeTerms::Given(begin) => Invocation::of(begin, begin.by_name),
    };
    let mut notices = trust::require(machine, &session.flow, &called, front)?;
    if let ResumeTerms::Given(begin) = &mut with {
        notices.extend(hold_to_model(machine, &session.flow, begin, front)?);
        let (fork, not_taken) = foreign::fork(machine, first.fork.clone())?;
        begin.fork = fork;
        notices.extend(not_taken);
        notices.extend(foreign::results(machine, &session.flow, begin)?);
    }
    session.resume(machine, locked, (past, tail), (first, with), notices, &front.front())
}

/// Lets the model that the user named hold for all personas, unless they trust those of the folder with a choice. Returns
/// what they are told of it.
fn hold_to_model(machine: &Machine, flow: &Flow, begin: &mut NewRun, front: &FrontArgs) -> Result<Option<String>> {
    if begin.model.is_none() || begin.only_model {
        return Ok(None);
    }
    let told = trust::only_model(machine, flow, front)?;
    begin.only_model = told.is_some();
    Ok(told)
}
