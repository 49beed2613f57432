//! `nietz run --queue`: leaves a run to the workers of a store, and waits for it where that is wanted.

use std::collections::BTreeSet;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use serde_json::json;

use crate::cli::action::QueueArgs;
use crate::cli::front::FrontArgs;
use crate::cli::output;
use crate::engine::runs::RunSummary;
use crate::error::{Code, Exit, Failure, Result};
use crate::model::text::{excerpt, line};
use crate::run::live::NewRun;
use crate::run::machine::Machine;
use crate::run::queued::QueueTerms;
use crate::run::replay;
use crate::run::session::Session;
use crate::store::postgres::Server;

/// How often the store is asked, beside what it tells.
const POLL: Duration = Duration::from_secs(1);

pub(super) fn queue(
    machine: &Machine,
    session: &Session,
    begin: NewRun,
    (front, terms): (&FrontArgs, &QueueArgs),
) -> Result<Exit> {
    let (server, process) = machine.team().needed("`--queue`")?;
    let at = terms.at.as_deref().map(time).transpose()?;
    let tag = terms.tag.clone().unwrap_or_default();
    // What is told until then is not missed.
    let listening =
        terms.wait.then(|| server.connection.listen(std::slice::from_ref(&server.workspace()?.channel))).transpose()?;
    let run = session.enqueue(machine, server, begin, &process.person, &QueueTerms { tag, at, parent: None })?;
    if front.json {
        output::json(&json!({ "v": 1, "type": "queued", "run": run }))?;
    } else {
        output::line(format!("queued: {run}"))?;
    }
    match listening {
        Some(listening) => wait(machine, server, &run, front.json, &listening.heard),
        None => Ok(Exit::Done),
    }
}

/// Waits until a run is over, tells what it asks meanwhile, and returns its exit status.
fn wait(
    machine: &Machine,
    server: &Server,
    run: &str,
    json: bool,
    heard: &std::sync::mpsc::Receiver<String>,
) -> Result<Exit> {
    let mut told: BTreeSet<String> = BTreeSet::new();
    loop {
        let found =
            server.find(run)?.ok_or_else(|| Failure::new(Code::RunNotFound, format!("the run {run} is gone")))?;
        match found.status.as_str() {
            "done" | "failed" | "cancelled" => return over(machine, run, &found.status, &found.summary, json),
            status => {
                let questions: Vec<serde_json::Value> = serde_json::from_str(&found.questions).unwrap_or_default();
                for question in questions.iter().filter(|question| question["key"] != "") {
                    let text = |name: &str| question[name].as_str().unwrap_or_default().to_owned();
                    if told.insert(text("key")) {
                        let (id, prompt) = (text("id"), text("prompt"));
                        output::print_status(&format!(
                            "{run} asks [{}] {}: nietz answer {run} …\n",
                            line(&id),
                            excerpt(&prompt)
                        ));
                    }
                }
                if status == "stuck" && told.insert(status.to_owned()) {
                    let noted = questions.first().and_then(|why| why["prompt"].as_str());
                    let why = noted.unwrap_or("no worker came to an end with it");
                    output::print_status(&format!("{run} is stuck: {}\n", excerpt(why)));
                }
            }
        }
        match heard.recv_timeout(POLL) {
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(POLL),
        }
    }
}

fn over(machine: &Machine, run: &str, status: &str, summary: &str, json: bool) -> Result<Exit> {
    if status == "cancelled" {
        return Err(Failure::new(Code::RunCancelled, format!("the run {run} was cancelled")));
    }
    let summary: RunSummary = serde_json::from_str(summary).unwrap_or_default();
    let replay::JournalEnds { end, .. } = replay::read_ends(&machine.runs().journal(run)?)?;
    let result = end.as_ref().and_then(|end| end.result.clone());
    if json {
        output::json(
            &json!({ "v": 1, "type": "run_ended", "run": run, "status": status, "result": result, "verdict": summary.verdict }),
        )?;
    } else {
        output::line(format!("{run}: {status}"))?;
        if let Some(serde_json::Value::String(text)) = &result {
            output::line(text)?;
        }
    }
    if let Some(failure) = end.and_then(|end| end.failure) {
        return Err(failure);
    }
    Ok(if summary.verdict.is_some_and(|verdict| !verdict.ok) { Exit::No } else { Exit::Done })
}

/// Checks a time, so that a wrong one is told before anything is queued.
fn time(text: &str) -> Result<String> {
    let parsed = chrono::DateTime::parse_from_rfc3339(text);
    parsed.map(|time| time.to_rfc3339()).map_err(|error| {
        Failure::new(Code::Usage, format!("--at: `{}` is no time: {error}", excerpt(text)))
            .hint("2026-11-30T06:00:00Z, or 2026-11-30T06:00:00+01:00")
    })
}
