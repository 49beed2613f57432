//! `nietz runs`.

mod age;
mod moved;
mod prune;
mod tag;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::cli::output;
use crate::engine::run_records::Origin;
use crate::engine::runs::ListedRun;
use crate::error::{Code, Exit, Result};
use crate::model::budget;
use crate::model::event::EndStatus;
use crate::model::text::excerpt;
use crate::run::machine::Machine;
use age::Moment;

/// The least room that a topic gets, in columns.
const LEAST: usize = 20;
/// The room of a topic where no terminal limits it.
const MOST: usize = 60;

/// List the runs of this workspace, oldest first, or remove some
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct RunsArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    verb: Option<RunsVerb>,
}

#[derive(Subcommand)]
enum RunsVerb {
    Prune(prune::PruneArgs),
    Tag(tag::TagArgs),
    Export(moved::ExportArgs),
    Import(moved::ImportArgs),
}

/// Which runs are meant.
#[derive(Args)]
struct FilterArgs {
    /// Only runs of this flow
    #[arg(long)]
    flow: Option<String>,
    /// Only runs of this status
    #[arg(long, value_parser = ["done", "failed", "waiting", "interrupted", "stopped", "running", "broken", "queued", "stuck", "cancelled"])]
    status: Option<String>,
    /// Only runs that began within this time, or on this day or later: `12h`, `30d`, `2026-11-01`
    #[arg(long, value_name = "TIME")]
    since: Option<Moment>,
    /// Only runs whose name or topic has this text, in capitals or not
    #[arg(long, value_name = "TEXT")]
    grep: Option<String>,
    /// Only runs with this tag, which `nietz runs tag` gave them
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
}

impl FilterArgs {
    /// Returns whether a run is meant.
    fn take(&self, machine: &Machine) -> Result<impl Fn(&ListedRun) -> bool> {
        let now = machine.clock()?();
        let since = self.since.as_ref().map(|since| since.iso(now));
        let text = self.grep.as_ref().map(|text| text.to_lowercase());
        Ok(move |run: &ListedRun| {
            let summary = &run.summary;
            self.flow.as_ref().is_none_or(|flow| summary.flow == *flow)
                && self.status.as_ref().is_none_or(|status| run.status() == status)
                && self.tag.as_ref().is_none_or(|tag| run.tags.contains(tag))
                && since.as_ref().is_none_or(|since| summary.started >= *since)
                && text.as_ref().is_none_or(|text| {
                    [&run.id, &summary.topic].iter().any(|shown| shown.to_lowercase().contains(text))
                })
        })
    }
}

pub(super) fn run(machine: &Machine, args: RunsArgs) -> Result<Exit> {
    match &args.verb {
        Some(RunsVerb::Prune(args)) => return prune::run(machine, args),
        Some(RunsVerb::Tag(args)) => return tag::run(machine, args),
        Some(RunsVerb::Export(args)) => return moved::export(machine, args),
        Some(RunsVerb::Import(args)) => return moved::import(machine, args),
        None => {}
    }
    let is_meant = args.filter.take(machine)?;
    let all = machine.runs().list()?;
    let is_empty = all.is_empty();
    let runs: Vec<ListedRun> = all.into_iter().filter(is_meant).collect();
    if args.json {
        runs.iter().try_for_each(print_json)?;
        return Ok(Exit::Done);
    }
    match runs.is_empty() {
        true if is_empty => output::line("no runs here yet: `nietz flows` shows what can be run")?,
        true => output::line("no run here is like that")?,
        false => print_table(machine, &runs)?,
    }
    Ok(Exit::Done)
}

fn print_json(run: &ListedRun) -> Result<()> {
    let summary = &run.summary;
    // Before its first call nothing is known to have been used.
    let counted = (summary.end.is_some() || summary.calls > 0).then_some(summary);
    let mut shown = json!({
        "run": run.id, "flow": shown(&summary.flow), "command": summary.command, "topic": summary.topic,
        "status": run.status(), "code": summary.code, "started": shown(&summary.started), "parent": summary.parent,
        "tags": run.tags,
        "calls": counted.map(|summary| summary.calls), "usage": counted.map(|summary| summary.usage),
        "cost": counted.and_then(|summary| summary.cost), "saved": summary.saved,
        "foreign": run.origin != Origin::Own, "failure": run.failure, "verdict": summary.verdict,
    });
    if let Some(by) = &run.began_by {
        shown["began_by"] = json!(by);
    }
    output::json(&shown)
}

fn print_table(machine: &Machine, runs: &[ListedRun]) -> Result<()> {
    let head = ["RUN", "FLOW", "STATUS", "CALLS", "COST", "STARTED", "TOPIC"].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(runs.iter().map(row)).collect();
    output::table_within(&rows, output::width(&machine.environment), (LEAST, MOST))
}

fn row(run: &ListedRun) -> Vec<String> {
    let summary = &run.summary;
    let calls = if summary.end.is_none() && summary.calls == 0 { "-".to_owned() } else { summary.calls.to_string() };
    let cost = match summary.cost {
        Some(cost) if cost > 0.0 => budget::dollars_with_sign(cost),
        _ => "-".to_owned(),
    };
    let parent = summary.parent.as_ref().map(|parent| format!("fork of {}: ", excerpt(parent))).unwrap_or_default();
    let tags: String = run.tags.iter().map(|tag| format!("[{tag}] ")).collect();
    let topic = tags + &parent + &summary.topic;
    let started = summary.started.get(..16).map_or_else(|| shown(&summary.started), |start| start.replace('T', " "));
    vec![run.id.clone(), shown(&summary.flow), words(run), calls, cost, started, topic]
}

/// What a run is doing, in words.
fn words(run: &ListedRun) -> String {
    let summary = &run.summary;
    let status = match (run.status(), summary.end, &summary.code) {
        ("waiting", _, Some(code)) if *code == Code::AnswerMissing.name() => "waits for an answer".to_owned(),
        ("waiting", _, Some(code)) => format!("waits ({code})"),
        ("failed", _, Some(code)) => format!("failed ({code})"),
        ("done", _, _) if summary.verdict.as_ref().is_some_and(|verdict| !verdict.ok) => "done, no".to_owned(),
        ("stopped", None, _) => "stopped half-way".to_owned(),
        (status, _, _) => status.to_owned(),
    };
    let foreign = if run.origin == Origin::Own { "" } else { ", foreign" };
    format!("{status}{foreign}")
}

fn shown(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

/// Tells whether a run may be removed without being named: nobody waits for it, and it is the user's own.
fn is_past(run: &ListedRun) -> bool {
    !run.is_alive()
        && run.origin == Origin::Own
        && run.failure.is_none()
        && run.summary.end != Some(EndStatus::Interrupted)
}
