//! `nietz compare RUN… --models A,B`: the same runs with other models, and what that changes.
//!
//! Each comparison is a fork into a folder of its own: what people said is given back, models that were not exchanged too, and
//! only the rest is paid for. The forks are kept, so that the same comparison costs nothing the second time. No model judges
//! here: what is compared are fields of results, the flow's own checks, costs and times. Of longer texts it is only told how
//! many are the same.

mod figures;
mod forks;
mod shown;

use clap::Args;
use serde_json::Value;

use crate::cli::output;
use crate::engine::run_records::Origin;
use crate::error::{Code, Exit, Failure, Result};
use crate::model::text::excerpt;
use crate::report::RunHistory;
use crate::run::machine::Machine;
use crate::run::session::Session;
use figures::{CheckHeld, Compared, Figures};
use forks::Fork;

/// The model that stands for the recorded one, asked once more.
const CONTROL: &str = "control";

/// Fork recorded runs onto other models, and show what that changes: results, checks, cost and time
///
/// Exit status 8 says that a model is below --at-least.
#[derive(Args)]
pub(super) struct CompareArgs {
    /// The runs: their ids, or parts of these that only one has
    #[arg(required = true)]
    runs: Vec<String>,
    /// The models; `control` is the recorded one once more, which shows what chance alone changes
    #[arg(long, value_name = "MODEL,MODEL", value_delimiter = ',', required = true)]
    models: Vec<String>,
    /// How often each run is forked onto each model
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=50))]
    repeat: u32,
    /// Only tell what it would take: calls, tokens, money
    #[arg(long)]
    plan: bool,
    /// The least share of fields that are the same and checks that hold, from 0 to 1
    #[arg(long, value_name = "SHARE")]
    at_least: Option<f64>,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// A run that is compared.
struct Recorded {
    id: String,
    history: RunHistory,
    session: Session,
}

pub(super) fn run(machine: &Machine, args: &CompareArgs) -> Result<Exit> {
    if args.at_least.is_some_and(|least| !(0.0..=1.0).contains(&least)) {
        return Err(Failure::new(Code::Usage, "--at-least is a share, from 0 to 1"));
    }
    let recorded = args.runs.iter().map(|wanted| recorded(machine, wanted)).collect::<Result<Vec<Recorded>>>()?;
    if args.plan {
        return shown::plan(machine, args, &recorded).map(|()| Exit::Done);
    }
    let mut all = Vec::new();
    for model in &args.models {
        let mut compared = Vec::new();
        for run in &recorded {
            for number in 1..=args.repeat {
                let fork = Fork::of(machine, &run.id, &run.history, model, number)?;
                output::print_status(&format!("{} with {}: {}\n", run.id, excerpt(model), fork.folder.display()));
                let history = fork.history(machine)?;
                compared.push(compare(run, &history)?);
            }
        }
        all.push((model.as_str(), Figures::of(&compared), compared));
    }
    shown::table(args, &all)?;
    let below =
        |figures: &Figures| args.at_least.is_some_and(|least| figures.share().is_none_or(|share| share < least));
    let failed = all.iter().any(|(model, figures, _)| *model != CONTROL && below(figures));
    Ok(if failed { Exit::No } else { Exit::Done })
}

fn recorded(machine: &Machine, wanted: &str) -> Result<Recorded> {
    let runs = machine.runs();
    let id = runs.find(Some(wanted))?;
    if !runs.one(&id).is_some_and(|run| run.origin == Origin::Own) {
        return Err(Failure::new(Code::RunForeign, format!("{id} was not begun by you in this folder"))
            .hint("runs of yours alone are compared: the flow runs again, and pays"));
    }
    let history = RunHistory::read(&runs.journal(&id))?;
    if history.status != "done" {
        let message = format!("{id} is not done: there is nothing to hold others against");
        return Err(Failure::new(Code::Usage, message).hint(format!("nietz resume {id}")));
    }
    let ends = crate::run::replay::read_ends(&runs.journal(&id))?;
    let session = Session::load(machine, machine.find_flow(&ends.open.source)?)?;
    Ok(Recorded { id, history, session })
}

fn compare(run: &Recorded, other: &RunHistory) -> Result<Compared> {
    let (before, after) = (checks(run, &run.history)?, checks(run, other)?);
    Ok(Compared::of(&run.history, other, (before, after)))
}

/// Returns which of the flow's checks hold for a run; none for one that is not done.
fn checks(run: &Recorded, history: &RunHistory) -> Result<Vec<CheckHeld>> {
    if history.status != "done" {
        return Ok(Vec::new());
    }
    let value: Value = run.session.flow.checks(&history.for_flow())?;
    let held = value.as_object().into_iter().flatten().map(|(name, holds)| (name.clone(), *holds == true));
    Ok(held.collect())
}
