//! What a comparison would take, told before it: calls, tokens and money.

use serde_json::{Value, json};

use super::judge::{Judge, JudgedText};
use super::kept::Kept;
use super::outcome::Outcome;
use super::{Base, CONTROL, CompareArgs, Fork, judged};
use crate::cli::output;
use crate::error::Result;
use crate::host::Models as _;
use crate::model::budget::{self, Price};
use crate::model::chat::Usage;
use crate::model::text::line;
use crate::run::models::{FrontEndSlot, listening_client};

/// About how many letters make a token, and how many tokens a judge's prompt and reply have beside the texts.
const LETTERS: u64 = 4;
const PROMPT: u64 = 250;
const REPLY: u64 = 150;

/// What is still to be paid.
#[derive(Default)]
struct Takes {
    runs: usize,
    done: usize,
    calls: usize,
    usage: Usage,
    /// Absent if a price is unknown.
    cost: Option<f64>,
}

impl Takes {
    fn add(&mut self, used: Usage, price: Option<Price>) {
        self.calls += 1;
        self.usage += used;
        self.cost = self.cost.zip(price).map(|(sum, price)| sum + price.of(used));
    }
}

/// Tells what each model would take: the calls that asked the recorded model, at its price, and what the judge would.
pub(super) fn show(args: &CompareArgs, kept: &Kept<'_>, judge: Option<&Judge<'_>>, bases: &[Base]) -> Result<()> {
    let client = listening_client(kept.machine, &FrontEndSlot::default())?;
    let mut all = Vec::new();
    let mut of_judge = Takes { cost: Some(0.0), ..Takes::default() };
    let judge_price = judge.and_then(|judge| client.price(judge.model));
    let mut read = |judge: &Judge<'_>, texts: Vec<JudgedText>, are_there: bool| {
        of_judge.runs += usize::from(!texts.is_empty());
        if are_there && judge.is_done(&texts) {
            of_judge.done += usize::from(!texts.is_empty());
            return;
        }
        for text in texts {
            let input = PROMPT + text.letters() as u64 / LETTERS;
            (0..text.calls())
                .for_each(|_| of_judge.add(Usage { input, output: REPLY, ..Usage::default() }, judge_price));
        }
    };
    for base in bases {
        if let Some(judge) = judge {
            read(judge, judged::check_questions(&base.recorded, None, &base.outcome)?, true);
        }
    }
    for model in &args.models {
        let mut takes = Takes { cost: Some(0.0), ..Takes::default() };
        for base in bases {
            let history = &base.recorded.history;
            let own = history.model.clone().unwrap_or_default();
            // `control` asks all models anew; the others leave alone what names its own.
            let is_meant = |asked: &str| model == CONTROL || asked == own;
            let price_of = |asked: &str| client.price(if model == CONTROL { asked } else { model.as_str() });
            for number in 1..=args.repeat {
                takes.runs += 1;
                let done = Fork::of(&base.recorded, model, number).done(kept);
                let forked = done.as_ref().map(|history| Outcome::of(&base.recorded, history)).transpose()?;
                takes.done += usize::from(done.is_some());
                if done.is_none() {
                    let calls = history.calls().filter(|(asked, _)| is_meant(asked));
                    calls.for_each(|(asked, used)| takes.add(used, price_of(asked)));
                }
                if let Some(judge) = judge {
                    // Texts that are not there yet are taken to be as long.
                    let other = forked.as_ref().unwrap_or(&base.outcome);
                    let onto = done.as_ref().and_then(|done| done.model.as_deref());
                    let questions = judged::check_questions(&base.recorded, onto.or(Some(model.as_str())), other)?;
                    read(judge, questions, done.is_some());
                    let pair = match done.is_some() {
                        true => judged::pair(&base.recorded, (&base.outcome, other), onto)?,
                        false => judged::likely_pair(&base.recorded, &base.outcome)?,
                    };
                    read(judge, pair.into_iter().collect(), done.is_some());
                }
            }
        }
        all.push((model.as_str(), takes));
    }
    all.extend(judge.map(|judge| (judge.model, of_judge)));
    if args.json {
        let rows = all.iter().map(|(model, takes)| {
            let Takes { runs, done, calls, usage, cost } = takes;
            json!({ "model": model, "runs": runs, "done": done, "calls": calls, "usage": usage, "cost": cost })
        });
        return output::json(&Value::Array(rows.collect()));
    }
    let mut rows = vec![["MODEL", "RUNS", "DONE", "CALLS", "TOKENS IN", "OUT", "COST"].map(str::to_owned).to_vec()];
    for (index, (model, takes)) in all.iter().enumerate() {
        let name =
            if index < args.models.len() { line(model).into_owned() } else { format!("{}, to judge", line(model)) };
        let money = takes.cost.map_or_else(|| "not known".to_owned(), budget::dollars_with_sign);
        let counts = [takes.runs as u64, takes.done as u64, takes.calls as u64, takes.usage.input, takes.usage.output];
        rows.push(std::iter::once(name).chain(counts.map(|count| count.to_string())).chain([money]).collect());
    }
    output::table(&rows)?;
    output::line("as many calls as were recorded, with as many tokens; a model that goes another way takes others")
}
