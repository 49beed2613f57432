//! How a comparison is shown: as a plan before it, and as a table behind it.

use serde_json::{Value, json};

use super::figures::{Compared, Figures};
use super::forks::Fork;
use super::{CONTROL, CompareArgs, Recorded};
use crate::cli::output;
use crate::error::Result;
use crate::host::Models as _;
use crate::model::budget;
use crate::model::chat::Usage;
use crate::model::text::{excerpt, line};
use crate::run::machine::Machine;
use crate::run::models::{FrontEndSlot, listening_client};

/// The most fields that differ are shown of one model.
const MOST: usize = 20;

/// Tells what each model would take: the calls that asked the recorded model, at its price.
pub(super) fn plan(machine: &Machine, args: &CompareArgs, recorded: &[Recorded]) -> Result<()> {
    let client = listening_client(machine, &FrontEndSlot::default())?;
    let mut rows = vec![["MODEL", "RUNS", "DONE", "CALLS", "TOKENS IN", "OUT", "COST"].map(str::to_owned).to_vec()];
    let mut all = Vec::new();
    for model in &args.models {
        let (mut runs, mut done, mut calls, mut usage, mut cost) = (0, 0, 0_usize, Usage::default(), Some(0.0));
        for run in recorded {
            let own = run.history.model.clone().unwrap_or_default();
            let name = if model == CONTROL { own.as_str() } else { model.as_str() };
            let price = client.price(name);
            for number in 1..=args.repeat {
                runs += 1;
                if Fork::of(machine, &run.id, &run.history, model, number)?.is_done(machine) {
                    done += 1;
                    continue;
                }
                for used in run.history.calls_of(&own) {
                    calls += 1;
                    usage += used;
                    cost = cost.zip(price).map(|(sum, price)| sum + price.of(used));
                }
            }
        }
        let money = cost.map_or_else(|| "not known".to_owned(), budget::dollars_with_sign);
        all.push(json!({ "model": model, "runs": runs, "done": done, "calls": calls, "usage": usage, "cost": cost }));
        let counts =
            [runs.to_string(), done.to_string(), calls.to_string(), usage.input.to_string(), usage.output.to_string()];
        rows.push(std::iter::once(line(model).into_owned()).chain(counts).chain([money]).collect());
    }
    match args.json {
        true => output::json(&Value::Array(all)),
        false => {
            output::table(&rows)?;
            output::line(
                "as many calls as were recorded, with as many tokens; a model that goes another way takes others",
            )
        }
    }
}

pub(super) fn table(args: &CompareArgs, all: &[(&str, Figures, Vec<Compared>)]) -> Result<()> {
    if args.json {
        let models = all.iter().map(|(model, figures, compared)| {
            json!({
                "model": model, "runs": figures.runs, "done": figures.done, "same": figures.same, "fields": figures.fields,
                "same_texts": figures.same_texts, "texts": figures.texts, "held": figures.held, "checks": figures.checks,
                "share": figures.share(), "interval": figures.interval.map(|(least, most)| [least, most]),
                "dearer": figures.dearer, "slower": figures.slower,
                "lost": compared.iter().flat_map(|one| &one.lost).collect::<Vec<_>>(),
                "different": compared.iter().flat_map(|one| &one.different).collect::<Vec<_>>(),
                "statuses": compared.iter().map(|one| &one.status).collect::<Vec<_>>(),
            })
        });
        return output::json(&json!({ "models": models.collect::<Vec<_>>(), "at_least": args.at_least }));
    }
    let head = ["MODEL", "DONE", "FIELDS SAME", "CHECKS HOLD", "SHARE", "95 %", "TEXTS SAME", "COST", "TIME"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (model, figures, _) in all {
        let of = |some: usize, all: usize| if all == 0 { "-".to_owned() } else { format!("{some} of {all}") };
        let times = |ratio: Option<f64>| ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2} ×"));
        rows.push(vec![
            line(model).into_owned(),
            of(figures.done, figures.runs),
            of(figures.same, figures.fields),
            of(figures.held, figures.checks),
            figures.share().map_or_else(|| "-".to_owned(), |share| format!("{share:.2}")),
            figures.interval.map_or_else(|| "-".to_owned(), |(least, most)| format!("{least:.2} to {most:.2}")),
            of(figures.same_texts, figures.texts),
            times(figures.dearer),
            times(figures.slower),
        ]);
    }
    output::table(&rows)?;
    for (model, _, compared) in all {
        let lost = compared.iter().flat_map(|one| &one.lost);
        lost.map(|check| format!("{}: does not hold any more: {}", line(model), line(check)))
            .try_for_each(output::line)?;
        let different: Vec<_> = compared.iter().flat_map(|one| &one.different).collect();
        for (place, was, is) in different.iter().take(MOST) {
            let (was, is) = (excerpt(&was.to_string()), excerpt(&is.to_string()));
            output::line(format!("{}: {place}: {was}, now {is}", line(model)))?;
        }
        if different.len() > MOST {
            output::line(format!("{}: … and {} more fields", line(model), different.len() - MOST))?;
        }
        let over = compared.iter().filter(|one| one.status != "done");
        over.map(|one| format!("{}: a run is not done: {}", line(model), one.status)).try_for_each(output::line)?;
    }
    Ok(())
}
