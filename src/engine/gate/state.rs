//! What the gate knows of its run, and how it writes it.

use serde_json::{Value, json};

use super::Admission;
use crate::engine::dialogue::Dialogue;
use crate::engine::history::{DeliverySlot, History};
use crate::engine::recap::DueRecap;
use crate::engine::replay_source::ReplaySource;
use crate::engine::world::World;
use crate::error::Result;
use crate::journal::key::{EffectKey, KeyMaker};
use crate::journal::lines::{EffectRecord, IntentRecord, Record, ResumeRecord};
use crate::journal::texts::PrefixDigests;
use crate::journal::writer::JournalWriter;
use crate::model::chat::Usage;
use crate::model::effect::{Effect, Recovery, ReplayDisplay};
use crate::model::event::Event;
use crate::model::permission::Permissions;

/// What stands between the calls of one run's gate.
pub(super) struct GateState {
    pub(super) writer: JournalWriter,
    pub(super) history: History,
    pub(super) keys: KeyMaker,
    pub(super) permissions: Permissions,
    /// Whether the flow may only look.
    pub(super) reads_only: bool,
    /// The effects under way that do more than look.
    pub(super) acting: Vec<EffectKey>,
    /// Whether any effect did more than look.
    pub(super) acted: bool,
    /// The model calls whose replies are not recorded yet.
    pub(super) calls: Vec<EffectKey>,
    /// The questions that wait for a person, with their keys.
    pub(super) asking: Vec<Value>,
    /// The effects whose children are not over.
    pub(super) awaiting: Vec<EffectKey>,
    /// Written before the first new line of a resumed run.
    pub(super) resume: Option<ResumeRecord>,
    /// The recorded answers, and messages of the flow since the last, collected during replay and shown when the run goes live.
    pub(super) unseen: Vec<Event>,
    pub(super) given_back: usize,
    pub(super) recap: DueRecap,
    pub(super) seed: u64,
    pub(super) replay_source: Option<ReplaySource>,
    pub(super) dialogue: Dialogue,
    /// The effects that are tried again.
    pub(super) void: Vec<EffectKey>,
}

/// An effect that a process began and did not end.
pub(super) struct UnfinishedIntent {
    pub(super) prepared: Option<Value>,
    /// Whether the journal has its intent under today's key, and not under that of the first format.
    pub(super) has_intent: bool,
}

/// A request in the form in which it is keyed and recorded.
pub(super) struct EffectRequest<'a> {
    pub(super) scope: &'a str,
    pub(super) kind: &'static str,
    pub(super) request: Value,
    pub(super) conversation: PrefixDigests,
    /// Whether it is a question that makes another dialogue of what is recorded.
    pub(super) anew: bool,
}

impl GateState {
    /// Writes an effect and its outcome in a single line.
    pub(super) fn write_single(
        &mut self,
        world: &World,
        key: EffectKey,
        effect_request: EffectRequest<'_>,
        effect: &Effect,
        ok: &Value,
    ) -> Result<()> {
        let (kind, scope) = (effect_request.kind, effect_request.scope);
        let request = self.intern(effect_request, effect)?;
        let ok = self.writer.intern_outcome(ok)?;
        let (key, at) = (key.to_string(), world.clock());
        self.writer
            .append(&Record::Effect(EffectRecord { key: &key, kind, scope, request: &request, ok: &ok, at }))
            .map(drop)
    }

    /// Writes that an effect is about to happen, with what is needed after a crash to find out whether it did.
    pub(super) fn write_intent(
        &mut self,
        world: &World,
        key: EffectKey,
        effect_request: EffectRequest<'_>,
        effect: &Effect,
        prepared: Option<&Value>,
    ) -> Result<()> {
        let EffectRequest { kind, scope, anew, .. } = effect_request;
        let request = self.intern(effect_request, effect)?;
        let (key, at) = (key.to_string(), world.clock());
        let (label, shown) = effect.facts().speaker();
        let intent = IntentRecord { key: &key, kind, scope, request: &request, prepared, anew, label, shown, at };
        self.writer.append(&Record::Intent(intent)).map(drop)
    }

    /// Returns a request as it is written: with references to what the journal has already.
    pub(super) fn intern(&mut self, effect_request: EffectRequest<'_>, effect: &Effect) -> Result<Value> {
        let mut request = self.writer.intern(effect_request.request, true)?;
        let conversation = effect.facts().conversation();
        if !conversation.is_empty() {
            let item = |index: usize| {
                serde_json::to_value(&conversation[index].message).expect("a message is plain data with text keys")
            };
            request["messages"] = self.writer.intern_list(&effect_request.conversation, conversation.len(), item)?;
        }
        Ok(request)
    }

    pub(super) fn caught_up(&self) -> bool {
        self.resume.is_none()
    }

    /// Ends the replay at the first effect that is not recorded: from here on the run is live.
    pub(super) fn go_live(&mut self, world: &World) -> Result<()> {
        if let Some(resume) = self.resume.take() {
            self.writer.append(&Record::Resume(resume))?;
            world.front.show(&Event::Replayed { effects: self.given_back });
            self.unseen.drain(..).for_each(|event| world.front.show(&event));
        }
        Ok(())
    }

    pub(super) fn give_back(
        &mut self,
        world: &World,
        effect: &Effect,
        (slot, key): (DeliverySlot, EffectKey),
        outcome: Result<Value>,
    ) -> Admission {
        self.given_back += 1;
        let shown = effect.facts().replay_display(&outcome);
        world.skip_answer(&shown);
        let is_answer = matches!(shown, ReplayDisplay::Answered { .. });
        match (self.caught_up(), is_answer) {
            (true, true) => shown.event().iter().for_each(|event| world.front.show(event)),
            (true, false) => {}
            (false, _) => {
                // The person who answered has seen all messages before.
                self.unseen.retain(|event| !is_answer || matches!(event, Event::GivenBack { .. }));
                self.unseen.extend(shown.event());
            }
        }
        match effect.facts().recovery() {
            Recovery::SingleLine | Recovery::Unrecorded => Admission::Now(outcome),
            Recovery::Retry | Recovery::Probe => Admission::Recorded(slot, key, outcome),
        }
    }

    /// Reserves what a call may use at most of what the team may use in a day, together with its intent.
    ///
    /// # Errors
    ///
    /// `budget-used-up` if the team has not that much left today, and those of [`JournalWriter::sync`].
    pub(super) fn reserve(&mut self, key: EffectKey, tokens: u64, cost: f64) -> Result<()> {
        self.writer.spend(json!({ "key": key.to_string(), "calls": 1, "tokens": tokens, "cost": cost }));
        self.writer.sync()
    }

    /// Counts what a call has used of what the team may use in a day, together with its outcome.
    pub(super) fn settle(&mut self, key: EffectKey, outcome: &Result<Value>) {
        if !self.writer.is_limited() {
            return;
        }
        let usage: Usage = outcome
            .as_ref()
            .ok()
            .and_then(|reply| serde_json::from_value(reply["usage"].clone()).ok())
            .unwrap_or_default();
        let cost = outcome.as_ref().ok().and_then(|reply| reply["cost"].as_f64()).unwrap_or_default();
        self.writer
            .spend(json!({ "key": key.to_string(), "calls": 1, "tokens": usage.total(), "cost": cost, "used": true }));
    }
}
