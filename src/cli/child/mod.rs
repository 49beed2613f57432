//! The process of a child: a run that another run begins as a part of its own. It reads what it is asked from the first line of
//! standard input; behind it come answers, as to every run that is shown to a program.

#[cfg(feature = "postgres")]
mod team;

use std::io::Read as _;

use rustix::process::{Pid, getppid};

use crate::cli::front::FrontArgs;
use crate::cli::{named, params, start};
use crate::engine::run_records::Origin;
use crate::engine::runs::{LockedRun, check_name};
use crate::error::{Code, Exit, Failure, Result};
use crate::journal::lines::OpenRecord;
use crate::model::budget::Budget;
use crate::model::child::ChildRequest;
use crate::model::choice::RunEfforts;
use crate::run::children;
use crate::run::live::{NewRun, ResumeTerms};
use crate::run::machine::Machine;
use crate::run::session::Session;

/// The longest request, in bytes.
const LONGEST: usize = 64 << 20;

pub(super) fn run(machine: &Machine) -> Result<Exit> {
    let request = request()?;
    end_with(request.process)?;
    check_name(&request.run)?;
    #[cfg(feature = "postgres")]
    if machine.team().server().is_some() {
        return team::run(machine, &request);
    }
    let runs = machine.runs();
    let front = FrontArgs { json: true, ..FrontArgs::default() };
    match runs.named(&request.run) {
        Ok(_) => {
            let locked = runs.lock(&request.run)?;
            if let Some(exit) = go_on(machine, &request, locked, &front)? {
                return Ok(exit);
            }
            // It was killed before it began.
            runs.remove(&request.run)?;
        }
        Err(failure) if failure.code == Code::RunNotFound => {}
        Err(failure) => return Err(failure),
    }
    let (session, begin) = new_run(machine, &request)?;
    start::begin(machine, session, begin, &front)
}

/// Reads one line and no byte more.
fn request() -> Result<ChildRequest> {
    let wrong = |why: String| Failure::new(Code::Usage, format!("this is for runs that begin others: {why}"));
    let mut line = Vec::new();
    let mut input = std::fs::File::from(rustix::io::dup(std::io::stdin()).map_err(|error| wrong(error.to_string()))?);
    let mut byte = [0];
    while line.len() < LONGEST {
        match input.read(&mut byte) {
            Ok(1) if byte[0] != b'\n' => line.push(byte[0]),
            Ok(_) => break,
            Err(error) => return Err(wrong(error.to_string())),
        }
    }
    serde_json::from_slice(&line).map_err(|error| wrong(error.to_string()))
}

/// Lets this process end when its parent does, which may be gone by now.
fn end_with(parent: i32) -> Result<()> {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM));
    if getppid().map(Pid::as_raw_nonzero).is_some_and(|now| now.get() == parent) {
        return Ok(());
    }
    Err(Failure::new(Code::Interrupted, "the run that asked for this one is gone"))
}

/// Goes on with a child that has begun; none if it has no first line.
fn go_on(machine: &Machine, request: &ChildRequest, locked: LockedRun, front: &FrontArgs) -> Result<Option<Exit>> {
    let (history, tail) = locked.read_history(false)?;
    let Some(open) = history.first.as_deref().cloned() else { return Ok(None) };
    check_parent(request, &open)?;
    if let Origin::Foreign(why) = machine.runs().origin(&request.run, history.first_line()) {
        let message = format!("the run {} was not begun by you in this folder: it is no part of this one", request.run);
        return Err(Failure::new(Code::RunForeign, message).because(why));
    }
    let session = Session::load(machine, machine.find_flow(&open.source)?)?;
    let terms = ResumeTerms::Own { grants: open.grants.clone(), budget: budget(machine, &session, request) };
    start::resume(machine, session, locked, (history, tail), (open, terms), front).map(Some)
}

/// Refuses a run of the same name that is another one.
fn check_parent(request: &ChildRequest, open: &OpenRecord) -> Result<()> {
    if open.of.as_ref().is_some_and(|of| of.run == request.of.run && of.key == request.of.key) {
        return Ok(());
    }
    let message = format!("the run {} was not begun by {}: it is no part of that one", request.run, request.of.run);
    Err(Failure::new(Code::RunForeign, message).hint("remove or rename it, if you know what it is"))
}

/// The limits of a child: those of its flow and of the configuration, and no more than its part.
fn budget(machine: &Machine, session: &Session, request: &ChildRequest) -> Budget {
    session.flow.manifest.budget.tightened(machine.config.budget).tightened(request.budget)
}

fn new_run(machine: &Machine, request: &ChildRequest) -> Result<(Session, NewRun)> {
    let terms = request.terms.clone();
    let (flow, command) = children::named(&request.flow);
    let session = Session::load(machine, children::find(machine, flow, terms.pack.as_deref())?)?;
    let own = session.flow.command(command)?;
    if own.reads_only {
        return Err(Failure::new(Code::Usage, format!("{} only looks, and leaves no run", request.flow)));
    }
    let mut params = params::given(own, &request.params)?;
    named::take_all(machine, &session.flow, own, &mut params)?;
    let begin = NewRun {
        command: command.map(str::to_owned),
        params,
        origins: Vec::new(),
        files: Vec::new(),
        files_from: None,
        by_name: true,
        model: terms.model,
        efforts: RunEfforts { run: terms.effort, default: machine.config.models.effort, ..RunEfforts::default() },
        only_model: terms.only_model,
        lang: Some(terms.lang),
        seed: Some(terms.seed),
        budget: budget(machine, &session, request),
        id: Some(request.run.clone()),
        grants: terms.grants,
        workspace: None,
        fork: None,
        of: Some(children::parent(&request.of, &request.terms.trace)),
        replay_source: None,
        kept: true,
    };
    Ok((session, begin))
}
