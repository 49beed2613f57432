//! `nietz fork RUN --plan`: what the fork would be given back, and what it would ask and pay for anew.

use std::path::Path;

use serde_json::json;

use crate::cli::output;
use crate::error::{Exit, Failure, Result};
use crate::host::Models as _;
use crate::model::budget;
use crate::model::chat::Usage;
use crate::model::text::{count, line};
use crate::report::RunHistory;
use crate::run::live::NewRun;
use crate::run::machine::Machine;
use crate::run::models::{FrontEndSlot, listening_client};
use crate::run::replay;
use crate::run::runtime;
use crate::run::session::Session;

/// How many effects that are not recorded are told of.
const TOLD: usize = 5;

/// Recorded model calls and questions.
#[derive(Default)]
struct Share {
    effects: u64,
    calls: u64,
    questions: u64,
    usage: Usage,
    /// In US dollars; absent if a price is unknown.
    cost: Option<f64>,
}

pub(super) fn show(
    machine: &Machine,
    session: &Session,
    mut begin: NewRun,
    journal: &Path,
    json: bool,
) -> Result<Exit> {
    let source = begin.replay_source.take();
    let client = listening_client(machine, &FrontEndSlot::default())?;
    let open = session.open_record(machine, &client, &runtime()?, begin)?;
    let history = RunHistory::read(journal)?;
    let played =
        source.map(|source| replay::play_on(machine, session, (source.into_plan(), &open), None)).transpose()?;
    let (missed, failure) = played.as_ref().map_or((&[][..], None), |played| played.missed());
    let (mut back, mut anew) =
        (Share { cost: Some(0.0), ..Share::default() }, Share { cost: Some(0.0), ..Share::default() });
    for effect in history.effects.iter().filter(|effect| effect.ended.is_some()) {
        let is_back = played.as_ref().is_some_and(|played| played.has_given_back(&effect.key));
        let share = if is_back { &mut back } else { &mut anew };
        share.effects += 1;
        share.questions += u64::from(effect.kind == "ask");
        if let Some(used) = effect.usage() {
            // What is given back was paid for at its own model's price.
            let model = match &open.model {
                Some(model) if !is_back && Some(effect.model()) == history.model.as_deref() => model.as_str(),
                _ => effect.model(),
            };
            share.calls += 1;
            share.usage += used;
            share.cost = share.cost.zip(client.price(model)).map(|(sum, price)| sum + price.of(used));
        }
    }
    match json {
        true => output::json(&json!({
            "run": history.run, "given_back": back.json(), "at_most_anew": anew.json(), "differs": missed, "failure": failure,
        }))?,
        false => tell(&history, (&back, &anew), missed, failure)?,
    }
    Ok(Exit::Done)
}

fn tell(
    history: &RunHistory,
    (back, anew): (&Share, &Share),
    missed: &[Failure],
    failure: Option<&Failure>,
) -> Result<()> {
    output::line(format!("given back: {}", back.text()))?;
    match (missed.is_empty(), failure) {
        (true, None) if anew.effects == 0 => output::line("anew: nothing"),
        (true, None) => output::line(format!(
            "anew: nothing; the flow comes to its end without {} that {} has",
            count(anew.effects, "effect"),
            line(&history.run)
        )),
        _ => output::line(format!(
            "anew, at most: {}, if it goes on as it went; a flow that goes another way takes others",
            anew.text()
        )),
    }?;
    for missing in missed.iter().take(TOLD) {
        output::block(missing.details.join("\n"))?;
    }
    if missed.len() > TOLD {
        output::line(format!("and {} more", missed.len() - TOLD))?;
    }
    failure.map_or(Ok(()), |failure| output::line(format!("with the files of now, it fails: {}", failure.message)))
}

impl Share {
    fn text(&self) -> String {
        let mut parts = vec![count(self.effects, "effect")];
        if self.calls > 0 {
            let Usage { input, output, .. } = self.usage;
            let cost = match self.cost {
                Some(0.0) => "free".to_owned(),
                Some(cost) => budget::dollars_with_sign(cost),
                None => "price not known".to_owned(),
            };
            parts.push(format!("{} ({input} tokens in, {output} out, {cost})", count(self.calls, "model call")));
        }
        if self.questions > 0 {
            parts.push(count(self.questions, "question"));
        }
        parts.join(", ")
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "effects": self.effects, "calls": self.calls, "questions": self.questions, "usage": self.usage, "cost": self.cost,
        })
    }
}
