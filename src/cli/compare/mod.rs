//! `nietz compare RUN… --models A,B`: the same runs with other models, and what that changes.
//!
//! Each comparison is a fork into a folder of its own: what people said is given back, models that were not exchanged too, and
//! only the rest is paid for. Forks and judgements are kept as runs, so that the same comparison costs nothing the second time.
//! Fields of what came out, the flow's own checks, costs and times need no judge. Longer texts are only counted, unless the user
//! names a model that reads them blind.

mod draws;
mod figures;
mod forks;
mod inputs;
mod judge;
mod judged;
mod kept;
mod outcome;
mod page;
mod plan;
mod shown;

use std::path::PathBuf;

use clap::Args;

use crate::cli::output;
use crate::disk::temp_file::TempFile;
use crate::error::{Code, Exit, Failure, Result};
use crate::run::machine::Machine;
use figures::{Compared, Figures};
use forks::Fork;
use inputs::Recorded;
use judge::Judge;
use kept::Kept;
use outcome::Outcome;

/// The model that stands for the recorded one, asked once more.
const CONTROL: &str = "control";

/// Fork recorded runs onto other models, and show what that changes: results, checks, cost and time
///
/// Exit status 8 says that a model is below --at-least.
#[derive(Args)]
pub(super) struct CompareArgs {
    /// The runs: their ids, or parts of these that only one has; or files of cassettes
    #[arg(required = true)]
    runs: Vec<String>,
    /// The models; `control` is the recorded one once more, which shows what chance alone changes
    #[arg(long, value_name = "MODEL,MODEL", value_delimiter = ',', required = true)]
    models: Vec<String>,
    /// How often each run is forked onto each model
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=50))]
    repeat: u32,
    /// A model that reads longer texts, not knowing which model wrote which, and answers the questions among the flow's checks
    #[arg(long, value_name = "MODEL")]
    judge: Option<String>,
    /// Only tell what it would take: calls, tokens, money
    #[arg(long, conflicts_with = "output")]
    plan: bool,
    /// The least share, from 0 to 1, of fields that are the same, of checks that hold, and of judged texts that are no worse
    #[arg(long, value_name = "SHARE")]
    at_least: Option<f64>,
    /// Write a page with all of it side by side
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Keep the journals of forks and judgements in this folder, and take them from there
    #[arg(long, value_name = "FOLDER")]
    kept: Option<PathBuf>,
    /// Ask no model: what is not kept is a failure
    #[arg(long)]
    offline: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// A recorded run, and what came out of it.
struct Base {
    recorded: Recorded,
    outcome: Outcome,
}

/// What one model came to.
struct OfModel<'a> {
    name: &'a str,
    figures: Figures,
    compared: Vec<Compared>,
}

impl OfModel<'_> {
    fn is_below(&self, at_least: Option<f64>) -> bool {
        let below = |least: f64| self.figures.share.value.is_none_or(|share| share < least);
        self.name != CONTROL && at_least.is_some_and(below)
    }
}

pub(super) fn run(machine: &Machine, args: &CompareArgs) -> Result<Exit> {
    if args.at_least.is_some_and(|least| !(0.0..=1.0).contains(&least)) {
        return Err(Failure::new(Code::Usage, "--at-least is a share, from 0 to 1"));
    }
    let kept = Kept { machine, folder: args.kept.clone(), offline: args.offline };
    let judge = args.judge.as_deref().map(|model| Judge { kept: &kept, model });
    let recorded = args.runs.iter().map(|wanted| Recorded::read(machine, wanted)).collect::<Result<Vec<Recorded>>>()?;
    let base = |recorded: Recorded| {
        let outcome = Outcome::of(&recorded, &recorded.history)?;
        Ok(Base { recorded, outcome })
    };
    let mut bases = recorded.into_iter().map(base).collect::<Result<Vec<Base>>>()?;
    if args.plan {
        return plan::show(args, &kept, judge.as_ref(), &bases).map(|()| Exit::Done);
    }
    if let Some(judge) = &judge {
        for base in &mut bases {
            let held = judged::checks(judge, &base.recorded, None, &base.outcome)?;
            base.outcome.checks.extend(held);
        }
    }
    let mut all = Vec::new();
    for name in &args.models {
        let mut compared = Vec::new();
        for base in &bases {
            for number in 1..=args.repeat {
                compared.push(compare(&kept, judge.as_ref(), base, (name, number))?);
            }
        }
        all.push(OfModel { name, figures: Figures::of(&compared), compared });
    }
    match args.json {
        true => shown::json(args, &all)?,
        false => shown::table(args, &bases, &all)?,
    }
    if let Some(path) = &args.output {
        let page = page::write(machine, args, &bases, &all)?;
        TempFile::write(path, page.as_bytes())?.publish(path)?;
        output::print_status(&format!("{}: {} kB\n", path.display(), page.len().div_ceil(1000)));
    }
    Ok(if all.iter().any(|model| model.is_below(args.at_least)) { Exit::No } else { Exit::Done })
}

fn compare(kept: &Kept<'_>, judge: Option<&Judge<'_>>, base: &Base, (model, number): (&str, u32)) -> Result<Compared> {
    let fork = Fork::of(&base.recorded, model, number);
    if !kept.offline && fork.done(kept).is_none() {
        output::print_status(&format!("{} …\n", fork.what()));
    }
    let history = fork.history(kept, &base.recorded)?;
    let mut other = Outcome::of(&base.recorded, &history)?;
    if let Some(judge) = judge {
        other.checks.extend(judged::checks(judge, &base.recorded, history.model.as_deref(), &other)?);
    }
    let judged = match judge {
        Some(judge) => judged::texts(judge, (&base.recorded, &base.outcome), (&history, &other))?,
        None => None,
    };
    let compared = Compared::of(&base.outcome, &other);
    Ok(Compared { run: base.recorded.id.clone(), number, judged, ..compared })
}
