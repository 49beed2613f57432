//! `nietz diff RUN RUN`.

use std::collections::HashMap;

use clap::Args;
use serde_json::{Value, json};

use crate::cli::output;
use crate::error::{Exit, Result};
use crate::model::budget;
use crate::model::difference::differences;
use crate::model::text::{clean, excerpt, line};
use crate::report::{RecordedEffect, RunHistory};
use crate::run::machine::Machine;

/// The most effects of one kind of difference that are shown.
const MOST: usize = 20;

/// Show in what two runs differ: what they were asked, where they went apart, what came out and what it cost
#[derive(Args)]
pub(super) struct DiffArgs {
    /// The run's id, a part of it that only one has, or `latest`
    run: String,
    /// The other run
    other: String,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// What two runs have in common, and what only one of them has.
#[derive(Default)]
struct Difference<'a> {
    /// How many effects have the same request and the same outcome.
    same: usize,
    /// How many of these stand at the beginning of both, in the same order.
    together: usize,
    /// Those of the same request with another outcome.
    changed: Vec<(&'a RecordedEffect, &'a RecordedEffect)>,
    only_one: Vec<&'a RecordedEffect>,
    only_other: Vec<&'a RecordedEffect>,
}

pub(super) fn run(machine: &Machine, args: &DiffArgs) -> Result<Exit> {
    let runs = machine.runs();
    let ids = [runs.find(Some(&args.run))?, runs.find(Some(&args.other))?];
    let [one, other] = [RunHistory::read(&runs.journal(&ids[0])?)?, RunHistory::read(&runs.journal(&ids[1])?)?];
    let [head_one, head_other] = [head(&one), head(&other)];
    let (head, result) = (differences(&head_one, &head_other), differences(&one.result, &other.result));
    let [end_one, end_other] = [end(&one), end(&other)];
    let difference = Difference::of(&one, &other);
    if args.json {
        let effect =
            |effect: &&RecordedEffect| json!({ "line": effect.line, "kind": effect.kind, "scope": effect.scope });
        output::json(&json!({
            "runs": ids, "head": head, "same": difference.same, "together": difference.together,
            "changed": difference.changed.iter().map(|(one, other)| json!([effect(one), effect(other)])).collect::<Vec<_>>(),
            "only": [
                difference.only_one.iter().map(effect).collect::<Vec<_>>(),
                difference.only_other.iter().map(effect).collect::<Vec<_>>(),
            ],
            "ends": [end_one, end_other], "result": result,
        }))?;
        return Ok(Exit::Done);
    }
    output::line(format!("- {}", ids[0]))?;
    output::line(format!("+ {}", ids[1]))?;
    part("what they were asked, and with what", &head)?;
    output::line(format!(
        "{} effects are the same, {} of them before the runs went apart",
        difference.same, difference.together
    ))?;
    for (one, other) in difference.changed.iter().take(MOST) {
        output::line(format!("~ {} · {}", shown(one), brief(&one.outcome, &one.failure)))?;
        output::line(format!("      line {} there · {}", other.line, brief(&other.outcome, &other.failure)))?;
    }
    more(difference.changed.len())?;
    for (sign, only) in [("-", &difference.only_one), ("+", &difference.only_other)] {
        only.iter().take(MOST).try_for_each(|effect| output::line(format!("{sign} {}", shown(effect))))?;
        more(only.len())?;
    }
    part("how they ended", &differences(&end_one, &end_other))?;
    part("what came out", &result)?;
    Ok(Exit::Done)
}

fn part(title: &str, lines: &[String]) -> Result<()> {
    match lines.is_empty() {
        true => output::line(format!("{title}: the same")),
        false => output::block(format!("{title}:\n{}", clean(&lines.join("\n")))),
    }
}

fn more(count: usize) -> Result<()> {
    if count > MOST { output::line(format!("  … and {} more", count - MOST)) } else { Ok(()) }
}

/// What a run was asked, and what its effects depend on.
fn head(run: &RunHistory) -> Value {
    json!({
        "flow": run.flow, "command": run.command, "params": run.params, "model": run.model, "lang": run.lang,
        "seed": run.seed, "host": run.host, "budget": run.budget, "files": run.files,
    })
}

fn end(run: &RunHistory) -> Value {
    let calls: u64 = run.spent.iter().map(|spent| spent.calls).sum();
    let tokens: u64 = run.spent.iter().map(|spent| spent.usage.input + spent.usage.output).sum();
    let seconds: u64 = run.effects.iter().filter(|effect| effect.kind == "chat").map(RecordedEffect::duration).sum();
    json!({
        "status": run.status, "failure": run.failure["message"], "verdict": run.verdict, "calls": calls, "tokens": tokens,
        "cost": budget::cost(&run.spent).map(budget::dollars_with_sign),
        "seconds of calls": seconds as f64 / 1000.0,
    })
}

fn shown(effect: &RecordedEffect) -> String {
    let who = effect.label.as_deref().unwrap_or(if effect.scope == "/" { "" } else { &effect.scope });
    let request = &effect.request;
    let last = request["messages"].as_array().and_then(|messages| messages.last()).map(|last| &last["content"]);
    let text = ["prompt", "markdown", "path", "sql"].iter().find_map(|name| request[*name].as_str());
    let text = last.and_then(Value::as_str).or(text).map_or_else(|| excerpt(&request.to_string()), excerpt);
    format!("line {} {} {} {text}", effect.line, effect.kind, line(who)).replace("  ", " ")
}

fn brief(outcome: &Value, failure: &Value) -> String {
    if let Some(message) = failure["message"].as_str() {
        return format!("failed: {}", excerpt(message));
    }
    outcome["text"].as_str().or(outcome.as_str()).map_or_else(|| excerpt(&outcome.to_string()), excerpt)
}

impl<'a> Difference<'a> {
    fn of(one: &'a RunHistory, other: &'a RunHistory) -> Difference<'a> {
        let is_same = |a: &RecordedEffect, b: &RecordedEffect| {
            a.key == b.key && without_chance(&a.outcome) == without_chance(&b.outcome) && a.failure == b.failure
        };
        let mut difference = Difference::default();
        let pairs = one.effects.iter().zip(&other.effects);
        difference.together = pairs.take_while(|(a, b)| is_same(a, b)).count();
        let mut left: HashMap<&str, &RecordedEffect> =
            other.effects.iter().map(|effect| (effect.key.as_str(), effect)).collect();
        for effect in &one.effects {
            match left.remove(effect.key.as_str()) {
                Some(there) if is_same(effect, there) => difference.same += 1,
                Some(there) => difference.changed.push((effect, there)),
                None => difference.only_one.push(effect),
            }
        }
        difference.only_other = other.effects.iter().filter(|effect| left.contains_key(effect.key.as_str())).collect();
        difference
    }
}

/// Returns an outcome without what differs from time to time where nothing else does.
fn without_chance(outcome: &Value) -> Value {
    let mut outcome = outcome.clone();
    if let Some(members) = outcome.as_object_mut() {
        for name in ["usage", "cost", "saved", "state"] {
            members.shift_remove(name);
        }
    }
    outcome
}
