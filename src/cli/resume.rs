//! `nietz resume [RUN]`.

use clap::Args;

use crate::cli::budget::BudgetArgs;
use crate::cli::foreign::{self, ExplicitTerms, Terms};
use crate::cli::front::FrontArgs;
use crate::cli::grants::{GrantArgs, ReadArgs};
#[cfg(feature = "postgres")]
use crate::cli::output;
use crate::cli::start;
#[cfg(feature = "postgres")]
use crate::cli::whereabouts;
use crate::error::{Code, Exit, Failure, Result};
use crate::run::live::NewRun;
use crate::run::live::ResumeTerms;
use crate::run::machine::Machine;
use crate::run::session::Session;

/// Go on with a run: nothing that is finished is done, asked or paid for again
#[derive(Args)]
pub(super) struct ResumeArgs {
    /// The run's id, or a part of it that only one has; without it, your latest that can go on
    run: Option<String>,
    /// Go on from the whole part of a broken journal; the broken file is kept beside it
    #[arg(long)]
    whole: bool,
    /// Leave it to a worker of the store: a run that is stuck, failed, was stopped or waits
    #[cfg(feature = "postgres")]
    #[arg(long, requires = "run", conflicts_with_all = ["whole", "words"])]
    queue: bool,
    #[command(flatten)]
    front: FrontArgs,
    #[command(flatten)]
    grants: GrantArgs,
    #[command(flatten)]
    read: ReadArgs,
    #[command(flatten)]
    budget: BudgetArgs,
    /// For a run that you did not begin here: the flow, its params, permissions and models, as for `nietz run`
    #[arg(last = true, value_name = "FLOW [ARGS]", requires = "run")]
    words: Vec<String>,
}

pub(super) fn run(machine: &Machine, args: ResumeArgs) -> Result<Exit> {
    // The process of a worker does not outlive it.
    #[cfg(all(feature = "postgres", target_os = "linux"))]
    if machine.team().process().is_some_and(|process| process.given.is_some()) {
        let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM));
    }
    let done = resume(machine, args);
    #[cfg(feature = "postgres")]
    if let Err(failure) = &done {
        put_aside(machine, failure);
    }
    done
}

/// Tells the store why a run that was taken from its queue cannot be done: for good, where it would fail in the same way anywhere.
#[cfg(feature = "postgres")]
fn put_aside(machine: &Machine, failure: &Failure) {
    let Ok((server, process)) = machine.team().needed("a worker") else { return };
    let Some(given) = process.given else { return };
    // These are about the store and who holds the run, or about this moment.
    let passes = matches!(
        failure.code,
        Code::StoreUnreachable
            | Code::RunTaken
            | Code::RunCancelled
            | Code::RunOver
            | Code::RunBusy
            | Code::Interrupted
    );
    if passes {
        return;
    }
    let everywhere = matches!(
        failure.code,
        Code::FolderUntrusted
            | Code::PackUntrusted
            | Code::PermissionRefused
            | Code::RunForeign
            | Code::FlowInvalid
            | Code::JournalBroken
            | Code::JournalVersion
            | Code::Usage
    );
    let mut why = format!("{}: {}", failure.code.name(), failure.message);
    if let Some(hint) = &failure.hint {
        why = format!("{why}; {hint}");
    }
    // Where the store cannot be told, the run is delivered again.
    let _ = server.put_aside(given, &machine.redactor().text(&why), everywhere);
}

fn resume(machine: &Machine, args: ResumeArgs) -> Result<Exit> {
    let runs = machine.runs();
    let id = runs.find(args.run.as_deref())?;
    #[cfg(feature = "postgres")]
    if args.queue {
        let (server, _) = machine.team().needed("`--queue`")?;
        let missing = || Failure::new(Code::RunNotFound, format!("there is no run `{id}` here"));
        server.requeue(server.find(&id)?.ok_or_else(missing)?.id)?;
        output::line(format!("queued: {id}"))?;
        return Ok(Exit::Done);
    }
    // Before anybody is told that it goes on here.
    #[cfg(feature = "postgres")]
    if machine.team().server().is_some() {
        whereabouts::check(machine, &id)?;
    }
    let locked = runs.lock(&id)?;
    let (history, tail) = locked.read_history(args.whole)?;
    let Some(open) = history.first.as_deref().cloned() else {
        return Err(Failure::new(Code::JournalBroken, format!("run {id} has no first line: it never began"))
            .hint("start a new run"));
    };
    let budget = args.budget.budget()?;
    let granted = |before| {
        // What somebody granted elsewhere holds on a worker as far as its own command line allows it.
        #[cfg(feature = "postgres")]
        if machine.team().process().is_some_and(|process| process.given.is_some()) {
            return args.grants.clone().limiting((args.read.clone(), machine), before);
        }
        args.read.clone().added_to(args.grants.clone().added_to(before), machine)
    };
    // The check uses the first line that was just read, because the file may have changed since.
    let origin = runs.origin(&id, history.first_line());
    let (session, terms, front) = match foreign::terms(machine, "resume", (&id, &open, origin), args.words)? {
        Terms::Own => {
            let session = Session::load(machine, machine.find_flow(&open.source)?)?;
            (session, ResumeTerms::Own { grants: granted(open.grants.clone()), budget }, args.front)
        }
        Terms::Given(given) => {
            let ExplicitTerms { session, begin, front } = *given;
            let (grants, budget) = (granted(begin.grants.clone()), begin.budget.replaced(budget));
            (session, ResumeTerms::Given(Box::new(NewRun { grants, budget, ..begin })), args.front.or(front))
        }
    };
    start::resume(machine, session, locked, (history, tail), (open, terms), &front)
}
