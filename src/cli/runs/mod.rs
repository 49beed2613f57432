//! `nietz runs`.

use clap::Args;
use serde_json::json;

use crate::cli::output;
use crate::engine::run_records::Origin;
use crate::error::{Exit, Result};
use crate::model::budget;
use crate::model::event::EndStatus;
use crate::run::machine::Machine;

/// List the runs of this workspace, oldest first
#[derive(Args)]
pub(super) struct RunsArgs {
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(machine: &Machine, args: RunsArgs) -> Result<Exit> {
    let runs = machine.runs();
    let mut rows = vec![vec!["RUN".into(), "FLOW".into(), "STATUS".into(), "CALLS".into(), "STARTED".into()]];
    for id in runs.ids() {
        let summary = runs.summary(&id);
        let status = match (&summary.failure, summary.busy, &summary.end) {
            (Some(_), _, _) => "broken",
            (_, true, _) => "running",
            (_, _, Some(end)) => match end.status {
                EndStatus::Done => "done",
                EndStatus::Failed => "failed",
                EndStatus::Waiting => "waiting",
                EndStatus::Interrupted => "interrupted",
            },
            (_, _, None) => "stopped",
        };
        let flow = summary.open.as_ref().map_or("-", |open| open.flow.as_str());
        let started = summary.open.as_ref().map_or("-", |open| open.at.as_str());
        let calls = summary.end.as_ref().map_or_else(|| "-".to_owned(), |end| end.calls.to_string());
        if args.json {
            let spent = summary.end.as_ref().map(|end| end.spent.as_slice());
            output::json(&json!({
                "run": id, "flow": flow, "status": status, "started": started,
                "calls": summary.end.as_ref().map(|end| end.calls), "usage": summary.end.as_ref().map(|end| end.usage),
                "cost": spent.and_then(budget::cost), "saved": spent.and_then(budget::saved),
                "foreign": summary.origin != Origin::Own, "failure": summary.failure,
                "verdict": summary.end.as_ref().and_then(|end| end.verdict.as_ref()),
            }))?;
        } else {
            let verdict = summary.end.as_ref().and_then(|end| end.verdict.as_ref());
            let no = if status == "done" && verdict.is_some_and(|verdict| !verdict.ok) { ", no" } else { "" };
            let foreign = if summary.origin == Origin::Own { "" } else { ", foreign" };
            let status = format!("{status}{no}{foreign}");
            rows.push(vec![id, flow.to_owned(), status, calls, started.to_owned()]);
        }
    }
    if !args.json {
        match rows.len() {
            1 => output::line("no runs here yet: `nietz flows` shows what can be run")?,
            _ => output::table(&rows)?,
        }
    }
    Ok(Exit::Done)
}
