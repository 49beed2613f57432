//! `nietz fork RUN --lost`: a run whose branches were on a machine that is lost begins anew, on another one.
//!
//! It is another run, with branches and documents of its own: what the first one has written stays, and says who wrote it. That one is
//! cancelled before, so that it writes nothing any more should its machine come back; the name of its successor follows from its own, so
//! that there is one.

use crate::cli::action::QueueArgs;
use crate::cli::front::FrontArgs;
use crate::cli::{output, queue, start, whereabouts};
use crate::error::{Code, Exit, Failure, Result};
use crate::run::live::NewRun;
use crate::run::machine::Machine;
use crate::run::session::Session;

/// Refuses a run that is not lost, and one that was begun anew already.
///
/// # Errors
///
/// `usage`, and those of the store and of git.
pub(super) fn check(machine: &Machine, run: &str) -> Result<()> {
    let (server, _) = machine.team().needed("`--lost`")?;
    let successor = whereabouts::successor(run);
    if server.find(&successor)?.is_some() {
        return Err(Failure::new(Code::Usage, format!("the run {run} was begun anew before, as {successor}"))
            .hint(format!("go on with that one: nietz resume {successor}")));
    }
    whereabouts::check_lost(machine, run)
}

/// Cancels the run, and begins its successor.
pub(super) fn begin(
    machine: &Machine,
    session: Session,
    (run, begin): (&str, NewRun),
    front: &FrontArgs,
    queued: bool,
) -> Result<Exit> {
    let successor = whereabouts::successor(run);
    let begin = NewRun { id: Some(successor.clone()), ..begin };
    let cancel = || {
        cancel(machine, run)?;
        if !front.json {
            output::print_status(&format!("{run} is cancelled, and begins anew as {successor}\n"));
        }
        Ok(())
    };
    if queued {
        cancel()?;
        return queue::queue(machine, &session, begin, (front, &QueueArgs::default()));
    }
    start::begin_after(machine, session, begin, front, cancel)
}

fn cancel(machine: &Machine, run: &str) -> Result<()> {
    let (server, process) = machine.team().needed("`--lost`")?;
    let found =
        server.find(run)?.ok_or_else(|| Failure::new(Code::RunNotFound, format!("there is no run `{run}` here")))?;
    // Somebody who is at it is not lost, and the store says so.
    if found.status == "running" {
        server.hold(found.id, &process.worker)?;
    }
    server.cancel(found.id).map(drop)
}
