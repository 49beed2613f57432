//! A child in a store: it is left to the workers. What waits for it here says how it ended, or that the run that has begun it is to
//! wait, too, so that its worker is free.

use std::collections::BTreeSet;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use serde_json::{Value, json};

use super::{check_parent, new_run};
use crate::cli::output;
use crate::error::{Code, Exit, Failure, Result};
use crate::model::child::ChildRequest;
use crate::model::event::EndStatus;
use crate::model::text::{excerpt, line};
use crate::run::machine::Machine;
use crate::run::queued::QueueTerms;
use crate::run::replay::{self, JournalEnds};
use crate::store::postgres::Server;
use crate::store::postgres::runs::{Claim, StoredRun};

/// How often the store is asked, beside what it tells.
const POLL: Duration = Duration::from_secs(1);

pub(super) fn run(machine: &Machine, request: &ChildRequest) -> Result<Exit> {
    let (server, process) = machine.team().needed("task.spawn")?;
    // A worker does other runs meanwhile, of which the child may be one.
    let waits = process.given.is_none();
    let listening =
        waits.then(|| server.connection.listen(std::slice::from_ref(&server.workspace()?.channel))).transpose()?;
    if server.find(&request.run)?.is_none() {
        begin(machine, server, request)?;
    }
    let JournalEnds { open, .. } = replay::read_ends(&machine.runs().journal(&request.run)?)?;
    check_parent(request, &open)?;
    output::json(&json!({ "v": 1, "type": "bounded", "run": request.run, "budget": open.budget }))?;
    let mut told = BTreeSet::new();
    loop {
        let missing = || Failure::new(Code::RunNotFound, format!("the run {} is gone", request.run));
        let found = server.find(&request.run)?.ok_or_else(missing)?;
        if matches!(found.status.as_str(), "done" | "failed" | "cancelled") {
            return over(machine, request, &found.status);
        }
        let Some(listening) = &listening else {
            let message = format!("the run {} is {}, in the hands of the workers", request.run, found.status);
            let failure = Failure::new(Code::RunAwaited, message).hint("this run goes on when that one is over");
            return ended(request, EndStatus::Waiting, &json!({ "failure": failure }));
        };
        tell(&found, &mut told)?;
        match listening.heard.recv_timeout(POLL) {
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(POLL),
        }
    }
}

fn begin(machine: &Machine, server: &Server, request: &ChildRequest) -> Result<()> {
    let given = machine.team().process().and_then(|process| process.given);
    let above = server.find(&request.of.run)?.ok_or_else(|| {
        Failure::new(Code::RunNotFound, format!("there is no run {} that begins this one", request.of.run))
    })?;
    let parent = given.filter(|given| given.run == above.id).unwrap_or(Claim { run: above.id, claim: above.claim });
    let (session, begin) = new_run(machine, request)?;
    let person = machine.team().process().map(|process| process.person.clone()).unwrap_or_default();
    let terms = QueueTerms { tag: request.tag.clone(), at: None, parent: Some(parent) };
    session.enqueue(machine, server, begin, &person, &terms).map(drop)
}

/// Tells once what a child waits for.
fn tell(found: &StoredRun, told: &mut BTreeSet<String>) -> Result<()> {
    let mut say = |key: &str, text: String| match told.insert(key.to_owned()) {
        true => output::json(&json!({ "v": 1, "type": "notice", "run": found.name, "text": text })),
        false => Ok(()),
    };
    let questions: Vec<Value> = serde_json::from_str(&found.questions).unwrap_or_default();
    for question in questions.iter().filter(|question| question["key"] != "") {
        let text = |name: &str| question[name].as_str().unwrap_or_default().to_owned();
        let (id, prompt) = (text("id"), text("prompt"));
        let asks = format!("asks [{}] {}: nietz answer {} …", line(&id), excerpt(&prompt), found.name);
        say(&text("key"), asks)?;
    }
    match found.status.as_str() {
        "queued" => say("queued", "left to the workers".to_owned()),
        "stuck" => {
            let noted = questions.first().and_then(|why| why["prompt"].as_str());
            say("stuck", format!("stuck: {}", excerpt(noted.unwrap_or("no worker came to an end with it"))))
        }
        _ => Ok(()),
    }
}

fn over(machine: &Machine, request: &ChildRequest, status: &str) -> Result<Exit> {
    if status == "cancelled" {
        let failure = Failure::new(Code::Stopped, format!("the run {} was cancelled", request.run));
        return ended(request, EndStatus::Failed, &json!({ "failure": failure }));
    }
    let JournalEnds { end, .. } = replay::read_ends(&machine.runs().journal(&request.run)?)?;
    let missing =
        || Failure::new(Code::JournalBroken, format!("the run {} is {status} without a last line", request.run));
    let end = end.ok_or_else(missing)?;
    let told = json!({
        "result": end.result, "failure": end.failure, "verdict": end.verdict, "usage": end.usage, "calls": end.calls,
        "spent": end.spent,
    });
    ended(request, end.status, &told)
}

fn ended(request: &ChildRequest, status: EndStatus, told: &Value) -> Result<Exit> {
    let mut event = json!({ "v": 1, "type": "run_ended", "run": request.run, "status": status });
    for (name, value) in told.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
        event[name] = value.clone();
    }
    output::json(&event)?;
    Ok(Exit::Done)
}
