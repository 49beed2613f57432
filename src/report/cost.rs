//! What the model calls of a run used, by who spoke and which model.

use indexmap::IndexMap;
use serde::Serialize;

use super::history::RunHistory;

/// What one speaker used of one model.
#[derive(Debug, Default, Serialize)]
pub(super) struct Share {
    pub speaker: String,
    pub model: String,
    pub calls: u64,
    pub failed: u64,
    /// Attempts that failed, and were made once more.
    pub again: u64,
    /// Tokens.
    pub input: u64,
    pub output: u64,
    pub cached: u64,
    /// US dollars; absent if the price of one of the calls is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// How long the calls took together.
    pub milliseconds: u64,
}

/// Returns the shares, in the order in which they spoke first.
pub(super) fn by_speaker(run: &RunHistory) -> Vec<Share> {
    let mut shares: IndexMap<(String, String), Share> = IndexMap::new();
    for effect in run.effects.iter().filter(|effect| effect.kind == "chat") {
        let speaker = effect.label.clone().unwrap_or_default();
        let model = effect.request["model"].as_str().unwrap_or_default().to_owned();
        let share = shares.entry((speaker.clone(), model.clone())).or_insert_with(|| Share {
            speaker,
            model,
            cost: Some(0.0),
            ..Share::default()
        });
        share.milliseconds += effect.duration();
        if effect.outcome.is_null() {
            share.failed += 1;
            continue;
        }
        share.again += effect.retries().count() as u64;
        let usage = &effect.outcome["usage"];
        share.calls += 1;
        share.input += usage["input"].as_u64().unwrap_or_default();
        share.output += usage["output"].as_u64().unwrap_or_default();
        share.cached += usage["cached"].as_u64().unwrap_or_default();
        share.cost = share.cost.zip(effect.outcome["cost"].as_f64()).map(|(sum, cost)| sum + cost);
    }
    shares.into_values().collect()
}

/// Returns the sum of all shares.
pub(super) fn total(shares: &[Share]) -> Share {
    let mut total = Share { cost: Some(0.0), ..Share::default() };
    for share in shares {
        total.calls += share.calls;
        total.failed += share.failed;
        total.again += share.again;
        total.input += share.input;
        total.output += share.output;
        total.cached += share.cached;
        total.milliseconds += share.milliseconds;
        total.cost = total.cost.zip(share.cost).map(|(sum, cost)| sum + cost);
    }
    total
}
