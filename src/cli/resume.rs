//! `nietz resume [RUN]`.

use clap::Args;

use crate::cli::budget::BudgetArgs;
use crate::cli::host::Host;
use crate::cli::session::{FrontArgs, GrantArgs, ReadArgs, Session};
use crate::error::{Code, Exit, Failure, Result};

/// Go on with a run: nothing that is finished is done, asked or paid for again
#[derive(Args)]
pub(super) struct ResumeArgs {
    /// The run's id, or a part of it that only one has; without it, the latest that is not done
    run: Option<String>,
    /// Go on from the whole part of a broken journal; the broken file is kept beside it
    #[arg(long)]
    whole: bool,
    #[command(flatten)]
    front: FrontArgs,
    #[command(flatten)]
    grants: GrantArgs,
    #[command(flatten)]
    read: ReadArgs,
    #[command(flatten)]
    budget: BudgetArgs,
}

pub(super) fn run(host: &Host, args: ResumeArgs) -> Result<Exit> {
    let runs = host.runs();
    let id = runs.find(args.run.as_deref())?;
    let locked = runs.lock(&id)?;
    let (past, tail) = locked.past(args.whole)?;
    let Some(mut open) = past.first.as_deref().cloned() else {
        return Err(Failure::new(Code::JournalBroken, format!("run {id} has no first line: it never began"))
            .hint("start a new run"));
    };
    open.grants = args.read.added_to(args.grants.added_to(open.grants), host);
    let session = Session::load(host, host.located(&open.source)?)?;
    session.go_on(host, locked, (past, tail), (open, args.budget.budget()?), &args.front)
}
