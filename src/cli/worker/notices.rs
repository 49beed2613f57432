//! Tells the worker's user of questions that runs of the store wait with, and of runs that were put aside, in the way that their
//! configuration names.

use std::collections::HashSet;

use serde_json::Value;

use crate::cli::output;
use crate::error::Result;
use crate::model::digest::Digest;
use crate::model::effect::notify::{Notification, Urgency};
use crate::model::text::shell;
use crate::run::access::notifier_of;
use crate::run::machine::Machine;
use crate::store::postgres::Server;
use crate::store::postgres::runs::StoredRun;

/// The most questions that are remembered as told. A notification that is sent again has the same id.
const MOST: usize = 10_000;

/// What was told.
#[derive(Default)]
pub(super) struct Notices {
    told: HashSet<(i64, String)>,
}

impl Notices {
    /// Tells what a run of this name asks that nobody was told of. What cannot be sent is said, and ends nothing.
    ///
    /// # Errors
    ///
    /// Those of a clock, and of standard output.
    pub(super) fn tell(&mut self, machine: &Machine, server: &Server, run: &str) -> Result<()> {
        if machine.config.notify.is_none() {
            return Ok(());
        }
        // Where the store does not say it, the inbox has it.
        let Ok(Some(found)) = server.find(run) else { return Ok(()) };
        if self.told.len() > MOST {
            self.told.clear();
        }
        for (key, notification) in notifications(&found) {
            if self.told.insert((found.id, key.clone())) {
                send(machine, &found, &key, notification)?;
            }
        }
        Ok(())
    }
}

/// Returns what is to be told of a run, each with the key of its question.
fn notifications(run: &StoredRun) -> Vec<(String, Notification)> {
    let questions: Vec<Value> = serde_json::from_str(&run.questions).unwrap_or_default();
    let text = |question: &Value, name: &str| question[name].as_str().unwrap_or_default().to_owned();
    let of = |question: &Value| {
        let (key, prompt) = (text(question, "key"), text(question, "prompt"));
        let title = match (key.is_empty(), run.status.as_str()) {
            (true, "stuck") => format!("{} was put aside", run.flow),
            (true, _) => format!("{} waits", run.flow),
            (false, _) => format!("{} asks", run.flow),
        };
        (key, Notification { title, text: prompt, urgency: Urgency::Normal })
    };
    questions.iter().map(of).collect()
}

fn send(machine: &Machine, run: &StoredRun, key: &str, notification: Notification) -> Result<()> {
    let what = if key.is_empty() { "nietz inbox".to_owned() } else { format!("nietz answer {} …", shell(&run.name)) };
    let notifier = notifier_of(machine, &run.name, &run.flow, what);
    let id = format!("ntf_{}", Digest::of(format!("{}\n{}\n{key}", run.name, run.began).as_bytes()));
    let (now, name) = (machine.clock()?(), run.name.clone());
    // A receiver that takes its time keeps no run waiting.
    let work = move || {
        let sent = crate::run::runtime()
            .map_err(|failure| failure.message)
            .and_then(|runtime| runtime.block_on(notifier.send(&notification, &id, &|| now)));
        if let Err(why) = sent {
            let _ = output::line(format!("{name}: the notification was not sent: {why}"));
        }
    };
    if std::thread::Builder::new().name("notify".to_owned()).spawn(work).is_err() {
        output::line(format!("{}: the notification was not sent: no thread can be started", run.name))?;
    }
    Ok(())
}
