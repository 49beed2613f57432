//! THE one place where an effect happens.
//!
//! For each effect the gate makes its key, returns a recorded outcome if there is one, refuses what is not permitted,
//! writes the intent, lets the world perform the effect, writes the outcome and syncs it before the flow gets it. Nothing
//! else calls an adapter.

mod state;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::{FutureExt, LocalBoxFuture, ready};
use serde_json::Value;

use crate::engine::budget::{Meter, worst_case};
use crate::engine::children::{self, child_name};
use crate::engine::dialogue::Dialogue;
use crate::engine::history::{DeliverySlot, History, RecordedState};
use crate::engine::permitted::check_permitted;
use crate::engine::recap::DueRecap;
use crate::engine::replay_source::ReplaySource;
use crate::engine::world::{Heartbeat, World, chance};
use crate::error::{Code, Failure, Result};
use crate::journal::key::{EffectIdentity, EffectKey, EffectKeys, KeyMaker};
use crate::journal::line_store::Ending;
use crate::journal::lines::{EndRecord, GivenRecord, OutcomeRecord, Record, ResumeRecord};
use crate::journal::texts::PrefixDigests;
use crate::journal::writer::JournalWriter;
use crate::model::budget::Spent;
use crate::model::effect::chat::Chat;
use crate::model::effect::{Effect, Recovery};
use crate::model::event::Event;
use crate::model::permission::Permissions;
use crate::model::redact::{Cleaner, Redactor};
use state::{EffectRequest, GateState, UnfinishedIntent};

/// How the gate admits an effect.
pub enum Admission {
    /// The effect is done or refused, and never had to wait.
    Now(Result<Value>),
    /// The outcome is recorded, by this run or by the replay source: [`Gate::deliver_recorded`] delivers it to the flow when
    /// it is the slot's turn.
    Recorded(DeliverySlot, EffectKey, Result<Value>),
    /// The effect is under way.
    Live(LiveEffect),
}

/// An effect under way. Dropping the future cancels the effect, unless it `lasts`: then it still runs to its end.
pub struct LiveEffect {
    pub key: EffectKey,
    pub future: LocalBoxFuture<'static, Result<Value>>,
    pub heartbeat: Heartbeat,
    pub lasts: bool,
    /// Whether the effect waits for a person.
    pub asks: bool,
}

/// A run's journal: what it has recorded, and the writer that continues it.
pub struct OpenJournal {
    pub writer: JournalWriter,
    pub history: History,
    /// Written before the first new line of a resumed run.
    pub resume: Option<ResumeRecord>,
}

/// What became of a run's last line.
pub enum Closed {
    /// The run has this end already.
    Unchanged,
    Written(Box<EndRecord>),
    /// It would have waited, and what it would have waited for is there by now: it can go on at once.
    Answered,
}

/// The gate of one run.
pub struct Gate {
    world: Rc<World>,
    cleaner: Cleaner,
    meter: Rc<Meter>,
    state: RefCell<GateState>,
}

impl Gate {
    pub fn new(world: Rc<World>, redactor: Redactor, meter: Rc<Meter>, journal: OpenJournal, seed: u64) -> Gate {
        let OpenJournal { writer, history, resume } = journal;
        let state = GateState {
            writer,
            keys: if history.first_format { KeyMaker::of_both_formats() } else { KeyMaker::default() },
            history,
            permissions: Permissions::default(),
            reads_only: false,
            acting: Vec::new(),
            acted: false,
            calls: Vec::new(),
            asking: Vec::new(),
            awaiting: Vec::new(),
            recap: DueRecap::new(resume.is_some()),
            resume,
            unseen: Vec::new(),
            given_back: 0,
            seed,
            replay_source: None,
            dialogue: Dialogue::default(),
            void: Vec::new(),
        };
        Gate { world, cleaner: Cleaner::new(redactor), meter, state: RefCell::new(state) }
    }

    /// Sets the permissions that the flow's manifest declares, and whether the command that is run only looks.
    pub fn permit(&self, permissions: Permissions, reads_only: bool) {
        let state = &mut *self.state.borrow_mut();
        state.permissions = permissions;
        state.reads_only = reads_only;
    }

    /// Tells whether this process did more than look: it changed something, asked somebody or called a model.
    pub fn acted(&self) -> bool {
        let state = self.state.borrow();
        state.acted || !state.acting.is_empty()
    }

    /// Lets the run take outcomes that its own journal does not have from an earlier journal.
    pub fn set_replay_source(&self, replay_source: ReplaySource) {
        let state = &mut *self.state.borrow_mut();
        if replay_source.has_first_format() {
            state.keys = KeyMaker::of_both_formats();
        }
        state.replay_source = Some(replay_source);
    }

    /// Removes and returns the replay source, which knows what was taken from it.
    pub fn take_replay_source(&self) -> Option<ReplaySource> {
        self.state.borrow_mut().replay_source.take()
    }

    /// Returns the world that effects are performed through.
    pub fn world(&self) -> &Rc<World> {
        &self.world
    }

    /// Returns the path of a new task or named scope inside `scope`.
    pub fn scope(&self, scope: &str, name: &str) -> String {
        self.state.borrow_mut().keys.scope(scope, name)
    }

    /// Lets an effect happen, or returns its recorded outcome.
    ///
    /// # Errors
    ///
    /// An `Err` is no outcome of the effect: the run must stop, because the journal cannot be read or written, a replayed
    /// save is no longer valid, or the effect is missing in a cassette (`cassette-missed`).
    pub fn admit(&self, scope: &str, mut effect: Effect) -> Result<Admission> {
        effect.facts_mut().redact(&self.cleaner);
        self.tell_dropped_state();
        let state = &mut *self.state.borrow_mut();
        let facts = effect.facts();
        if facts.recovery() == Recovery::Unrecorded {
            if state.caught_up() {
                self.world.show_unrecorded(&effect);
            }
            return Ok(Admission::Now(Ok(Value::Null)));
        }
        let effect_request = EffectRequest {
            scope,
            kind: facts.kind(),
            request: facts.request(),
            conversation: PrefixDigests::of(facts.conversation().iter().map(|item| item.digest())),
            anew: false,
        };
        let keys = state.keys.next(&EffectIdentity {
            kind: effect_request.kind,
            scope,
            request: &effect_request.request,
            list: effect_request.conversation.list_digest(),
            declared: self.world.declared(&effect),
            dependencies: &facts.dependencies(),
        });
        let (recorded_key, recorded) = state.history.state_of_either(keys)?;
        let asks = facts.asks();
        let unfinished = match recorded {
            RecordedState::Ended(_, outcome) if asks && !state.dialogue.holds(scope, state.history.question(keys)) => {
                outcome.into_iter().for_each(|answer| effect.facts_mut().answered_before(answer));
                Some(UnfinishedIntent { prepared: None, has_intent: false })
            }
            RecordedState::Ended(slot, outcome) => {
                if asks {
                    state.dialogue.give_back(keys, &state.history, state.replay_source.as_ref());
                }
                if let Effect::Chat(chat) = &effect {
                    self.count(chat, &outcome);
                    let refused = outcome.as_ref().ok().and_then(|reply| reply["refused"].as_array());
                    let refused: Vec<String> =
                        refused.into_iter().flatten().filter_map(|part| part.as_str().map(str::to_owned)).collect();
                    self.world.models.recall(&chat.request.model, &refused);
                }
                if let Effect::Spawn(_) = &effect {
                    children::count(&self.meter, &outcome);
                }
                return Ok(state.give_back(&self.world, &effect, (slot, recorded_key), outcome));
            }
            RecordedState::Began(prepared) => Some(UnfinishedIntent { prepared, has_intent: recorded_key == keys.key }),
            RecordedState::Never => None,
        };
        match state.replay_source {
            Some(_) => self.replay_or_begin(state, effect, keys, effect_request, unfinished),
            None => self.begin(state, effect, keys, effect_request, unfinished),
        }
    }

    /// Tells the user, once in a process, that what a model wanted back was dropped.
    fn tell_dropped_state(&self) {
        if self.cleaner.has_news() {
            let text = "what a model thought has a key or a password of yours in it: it is neither kept nor sent back";
            self.world.front.show(&Event::Notice { text: text.to_owned() });
        }
    }

    /// Counts a recorded model call.
    fn count(&self, chat: &Chat, outcome: &Result<Value>) {
        let by = (chat.show.label.as_str(), self.world.models.price(&chat.request.model));
        self.meter.count(&chat.request, &chat.conversation, by, outcome);
    }

    /// Takes an effect from the replay source, or begins it.
    fn replay_or_begin(
        &self,
        state: &mut GateState,
        mut effect: Effect,
        keys: EffectKeys,
        mut effect_request: EffectRequest<'_>,
        unfinished: Option<UnfinishedIntent>,
    ) -> Result<Admission> {
        let GateState { replay_source: Some(source), permissions, reads_only, dialogue, .. } = &mut *state else {
            return self.begin(state, effect, keys, effect_request, unfinished);
        };
        let facts = effect.facts();
        let exclusive = source.is_exclusive_for(facts.replay_class());
        if exclusive && let Err(refused) = check_permitted(&effect, permissions, *reads_only) {
            return Ok(Admission::Now(Err(refused)));
        }
        let key = keys.key;
        if facts.asks() && !exclusive && !dialogue.holds_in_source(effect_request.scope, source.question(keys)) {
            let before = source.answer(keys)?;
            before.into_iter().for_each(|answer| effect.facts_mut().answered_before(answer));
            return self.begin(state, effect, keys, effect_request, unfinished);
        }
        let Some((slot, outcome)) = source.take(keys, facts.replay_class())? else {
            if !exclusive {
                return self.begin(state, effect, keys, effect_request, unfinished);
            }
            if !facts.conversation().is_empty() {
                let messages = facts.conversation().iter().map(|item| serde_json::to_value(&item.message));
                effect_request.request["messages"] = messages.filter_map(std::result::Result::ok).collect();
            }
            let missing = source.miss(effect_request.kind, effect_request.scope, &effect_request.request)?;
            let future = ready(Err(missing)).boxed_local();
            let (heartbeat, asks) = (Heartbeat::new(), false);
            return Ok(Admission::Live(LiveEffect { key, future, heartbeat, lasts: false, asks }));
        };
        self.world.still_valid(&effect)?;
        if let Effect::Chat(chat) = &effect {
            self.count(chat, &outcome);
        }
        if let Effect::Spawn(_) = &effect {
            children::count(&self.meter, &outcome);
        }
        if facts.asks() {
            state.dialogue.give_back(keys, &state.history, state.replay_source.as_ref());
        }
        state.go_live(&self.world)?;
        if matches!(effect, Effect::Chat(_)) {
            state.calls.push(key);
        }
        if facts.recovery() == Recovery::SingleLine
            && let Ok(ok) = &outcome
        {
            state.write_single(&self.world, key, effect_request, &effect, ok)?;
            return Ok(Admission::Now(outcome));
        }
        // The journal has the intent already if the process ended just after taking the outcome.
        if !unfinished.is_some_and(|unfinished| unfinished.has_intent) {
            state.write_intent(&self.world, key, effect_request, &effect, None)?;
        }
        let shown = facts.replay_display(&outcome);
        self.world.skip_answer(&shown);
        shown.event().iter().for_each(|event| self.world.front.show(event));
        Ok(Admission::Recorded(slot, key, outcome))
    }

    /// Lets an effect happen of which nothing is recorded, or only its intent.
    fn begin(
        &self,
        state: &mut GateState,
        effect: Effect,
        keys: EffectKeys,
        mut effect_request: EffectRequest<'_>,
        unfinished: Option<UnfinishedIntent>,
    ) -> Result<Admission> {
        let key = keys.key;
        if let Err(refused) = check_permitted(&effect, &state.permissions, state.reads_only) {
            return Ok(Admission::Now(Err(refused)));
        }
        let recap = state.recap.take(&effect);
        if recap.is_some() {
            state.unseen.clear();
        }
        state.go_live(&self.world)?;
        recap.iter().for_each(|recap| self.world.front.show(recap));
        let facts = effect.facts();
        if let Some(mut ok) = self.world.perform_now(&effect, key, state.seed) {
            self.cleaner.value(&mut ok);
            state.write_single(&self.world, key, effect_request, &effect, &ok)?;
            return Ok(Admission::Now(Ok(ok)));
        }
        let (mut prepared, mut known) = (None, None);
        if facts.recovery() == Recovery::Probe {
            let before = unfinished.as_ref().and_then(|unfinished| unfinished.prepared.as_ref());
            known = before.and_then(|before| self.world.probe(&effect, before));
            if known.is_none() {
                match self.world.prepare(&effect) {
                    Ok(found) => prepared = Some(found),
                    Err(failure) => known = Some(Err(failure)),
                }
            }
        }
        let again = unfinished.is_some() || state.history.truncated;
        if facts.asks() {
            let source = state.replay_source.as_ref();
            effect_request.anew = state.dialogue.ask(effect_request.scope, keys, &state.history, source);
            state.dialogue.notice().iter().for_each(|notice| self.world.front.show(notice));
        }
        // An intent that is in the journal already is written again only if it was prepared anew.
        if effect_request.anew || prepared.is_some() || !unfinished.is_some_and(|unfinished| unfinished.has_intent) {
            state.write_intent(&self.world, key, effect_request, &effect, prepared.as_ref())?;
            if facts.needs_intent() && known.is_none() {
                state.writer.sync()?;
            }
        }
        if let Effect::Chat(chat) = &effect
            && state.writer.is_limited()
        {
            let price = self.world.models.price(&chat.request.model);
            let (tokens, cost) = worst_case(&chat.request, &chat.conversation, price);
            match state.reserve(key, tokens, cost) {
                // It waits for the next day, or for more: that is no failure of the run.
                Err(failure) if failure.code == Code::BudgetUsedUp => known = Some(Err(failure)),
                reserved => reserved?,
            }
        }
        if !facts.only_looks() {
            state.acting.push(key);
        }
        if matches!(effect, Effect::Chat(_)) {
            state.calls.push(key);
        }
        if matches!(effect, Effect::Spawn(_)) {
            state.awaiting.push(key);
        }
        let (heartbeat, lasts, asks) = (Heartbeat::new(), facts.lasts(), facts.asks());
        if asks {
            let mut question = facts.request();
            question["key"] = Value::from(key.to_string());
            state.asking.push(question);
            state.writer.asks(&state.asking)?;
        }
        // A known outcome is delivered like a performed one, so that a later process replays it in the same slot.
        let future = match known {
            Some(outcome) => ready(outcome).boxed_local(),
            None => self.perform(effect, key, (state.seed, &state.permissions), again, heartbeat.clone()),
        };
        Ok(Admission::Live(LiveEffect { key, future, heartbeat, lasts, asks }))
    }

    /// Performs an effect; a model call or another run only within the budget.
    fn perform(
        &self,
        effect: Effect,
        key: EffectKey,
        (seed, permissions): (u64, &Permissions),
        again: bool,
        heartbeat: Heartbeat,
    ) -> LocalBoxFuture<'static, Result<Value>> {
        let world = Rc::clone(&self.world);
        let (mut request, conversation, show) = match effect {
            Effect::Chat(Chat { request, conversation, show }) => (request, conversation, show),
            Effect::Spawn(spawn) => {
                return children::perform(world, &self.meter, permissions, spawn, key, heartbeat);
            }
            effect => return world.perform(effect, key, seed, again, heartbeat),
        };
        if world.models.is_seeded(&request.model) {
            request.seed.get_or_insert_with(|| chance(seed, key).as_u64());
        }
        // The flow's limit is for the reply alone, so reasoning gets room of its own. The key is made already and keeps the
        // flow's limit.
        request.max_tokens = request.max_tokens.map(|limit| limit.saturating_add(world.models.thinks(&request.model)));
        let meter = Rc::clone(&self.meter);
        let by = (show.label.clone(), world.models.price(&request.model));
        let messages = conversation.clone();
        let perform = move |request| {
            world.perform(Effect::Chat(Chat { request, conversation, show }), key, seed, again, heartbeat)
        };
        async move { meter.call(request, &messages, by, perform).await }.boxed_local()
    }

    /// Redacts an outcome and writes it, without syncing it. A `held` outcome is delivered to the flow together with the
    /// next one that is not held.
    ///
    /// # Errors
    ///
    /// Those of [`JournalWriter::append`], and those of a store that is lost.
    pub fn record_outcome(&self, key: EffectKey, mut outcome: Result<Value>, held: bool) -> Result<Result<Value>> {
        // A store that is lost is no outcome of what was asked of it: the run goes on from what is recorded.
        if let Err(failure) = &outcome
            && matches!(failure.code, Code::StoreUnreachable | Code::RunTaken | Code::RunCancelled)
        {
            return Err(failure.clone());
        }
        outcome = outcome.map_err(|failure| self.cleaner.redactor().failure(failure));
        let state = &mut *self.state.borrow_mut();
        let call = state.calls.iter().position(|call| *call == key).map(|at| state.calls.swap_remove(at));
        if let Ok(value) = &mut outcome {
            self.cleaner.outcome(value, call.is_some());
            self.tell_dropped_state();
        }
        if let Some(at) = state.acting.iter().position(|acting| *acting == key) {
            state.acting.swap_remove(at);
            // Without git or a repository, nothing can have happened; nor has it where the answer is no.
            let nothing = matches!(&outcome, Err(failure) if failure.code == Code::GitMissing);
            state.acted |= !nothing && outcome != Ok(Value::Bool(false));
        }
        if call.is_some() {
            state.settle(key, &outcome);
        }
        let hex = key.to_string();
        state.asking.retain(|question| question["key"] != hex.as_str());
        state.awaiting.retain(|child| *child != key);
        let at = self.world.clock();
        let folded = outcome.as_ref().ok().map(|value| state.writer.intern_outcome(value)).transpose()?;
        let (ok, failure) = (folded.as_deref(), outcome.as_ref().err());
        let by = self.world.front.answered_by(&hex).map(|by| by.name());
        state.writer.append(&Record::Outcome(OutcomeRecord { key: &hex, ok, failure, held, by, at }))?;
        Ok(outcome)
    }

    /// Records that outcomes are delivered to the flow together and in this order, and returns them.
    ///
    /// # Errors
    ///
    /// Those of [`JournalWriter::append`].
    pub fn deliver_recorded(
        &self,
        together: Vec<(DeliverySlot, EffectKey, Result<Value>)>,
    ) -> Result<Vec<Result<Value>>> {
        let last = together.len().saturating_sub(1);
        let held = |(slot, key, _): &(DeliverySlot, EffectKey, Result<Value>)| {
            matches!(slot, DeliverySlot::Held { .. }).then(|| key.to_string())
        };
        let keys: Vec<String> = together.iter().filter_map(held).collect();
        if !keys.is_empty() {
            let state = &mut *self.state.borrow_mut();
            state.go_live(&self.world)?;
            state.writer.append(&Record::Given(GivenRecord { keys }))?;
        }
        let given = together.into_iter().enumerate().map(|(at, (slot, key, outcome))| match slot {
            DeliverySlot::Taken { .. } => self.record_outcome(key, outcome, at < last),
            DeliverySlot::Given { .. } | DeliverySlot::Held { .. } => Ok(outcome),
        });
        given.collect()
    }

    /// Returns how long effects in a scope took in earlier processes of the run.
    pub fn used_time(&self, scope: &str) -> Duration {
        self.state.borrow().history.used_time(scope)
    }

    /// Waits until all outcomes are on the disk; the flow must not see them before that.
    ///
    /// # Errors
    ///
    /// `disk-failed` if the journal cannot be synced.
    pub fn sync(&self) -> Result<()> {
        self.state.borrow_mut().writer.sync()
    }

    /// Returns what the run used, by model and persona, recorded calls included.
    pub fn spent(&self) -> Vec<Spent> {
        self.meter.spent()
    }

    /// Returns when the time limit of this process is reached, and the failure to end with.
    pub fn deadline(&self) -> Option<(tokio::time::Instant, Failure)> {
        self.meter.deadline()
    }

    /// Tells whether this process has written nothing, because it only replayed the run.
    pub fn only_replayed(&self) -> bool {
        self.state.borrow().resume.is_some()
    }

    /// Sets the effects that are tried again: by a later process what the flow ended with, its failures or replies that cannot be
    /// used; where it came to its end, by a fork the replies that could not be used.
    pub fn set_void(&self, keys: Vec<EffectKey>) {
        self.state.borrow_mut().void = keys;
    }

    /// Writes how the run ended, unless the run was only replayed and has the same end already.
    ///
    /// # Errors
    ///
    /// Those of [`JournalWriter::end`].
    pub fn close(&self, mut end: EndRecord) -> Result<Closed> {
        end.result.iter_mut().for_each(|result| self.cleaner.redactor().value(result));
        end.failure = end.failure.map(|failure| self.cleaner.redactor().failure(failure));
        for why in end.verdict.iter_mut().filter_map(|verdict| verdict.why.as_mut()) {
            *why = self.cleaner.redactor().text(why).into_owned();
        }
        let state = &mut *self.state.borrow_mut();
        if state.resume.is_some() && state.history.end.as_ref().is_some_and(|before| before.status == end.status) {
            return Ok(Closed::Unchanged);
        }
        state.go_live(&self.world)?;
        end.void = state.void.iter().map(EffectKey::to_string).collect();
        let questions = std::mem::take(&mut state.asking);
        let children = std::mem::take(&mut state.awaiting);
        let awaits = children.into_iter().map(|key| child_name(&self.world.run, key)).collect();
        let code = end.failure.as_ref().map(|failure| failure.code);
        let ending = Ending { status: end.status, questions, awaits, code };
        let written = state.writer.end(&Record::End(Box::new(end.clone())), &ending)?;
        Ok(if written { Closed::Written(Box::new(end)) } else { Closed::Answered })
    }
}
