//! THE one place where an effect happens.
//!
//! Key it; give back what is recorded; refuse what is not permitted; write the intent; let the world perform
//! it; write the outcome; sync; give it to the flow. Nothing else calls an adapter.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::{FutureExt, LocalBoxFuture, ready};
use serde_json::Value;

use crate::engine::budget::Meter;
use crate::engine::donor::Donor;
use crate::engine::past::{Before, Past, Turn};
use crate::engine::world::{Pulse, World, chance};
use crate::error::{Code, Failure, Result};
use crate::journal::key::{Key, KeyMaker, Keyed, Keys};
use crate::journal::lines::{Done, End, Given, Intent, Outcome, Record, Resume};
use crate::journal::texts::Chain;
use crate::journal::writer::Writer;
use crate::model::budget::Spent;
use crate::model::effect::chat::Chat;
use crate::model::effect::{Effect, Recovery, Shown};
use crate::model::event::Event;
use crate::model::permission::Permissions;
use crate::model::redact::{Cleaner, Redactor};
use crate::model::text::excerpt;

/// What the gate says to an effect.
pub enum Admitted {
    /// It is done, now or in the past without having waited.
    Now(Result<Value>),
    /// It was done in the past, of this run or of another: when it is the outcome's turn, the flow is given it by
    /// [`Gate::give`].
    Recorded(Turn, Key, Result<Value>),
    /// It is under way.
    Live(Live),
}

/// An effect under way. Dropping the future cancels it, unless it `lasts`: then it comes to its end all the same.
pub struct Live {
    pub key: Key,
    pub future: LocalBoxFuture<'static, Result<Value>>,
    pub pulse: Pulse,
    pub lasts: bool,
    /// It waits for a person.
    pub asks: bool,
}

/// What a run's journal says, and what goes on with it.
pub struct Recorded {
    pub writer: Writer,
    pub past: Past,
    /// Written before the first new line of a resumed run.
    pub resume: Option<Resume>,
}

/// The gate of one run.
pub struct Gate {
    world: Rc<World>,
    cleaner: Cleaner,
    meter: Rc<Meter>,
    state: RefCell<State>,
}

struct State {
    writer: Writer,
    past: Past,
    keys: KeyMaker,
    permissions: Permissions,
    /// Written before the first new line of a resumed run.
    resume: Option<Resume>,
    /// What was said since the last answer, while the run catches up: shown again when it goes live.
    unseen: Vec<Event>,
    given_back: usize,
    seed: u64,
    replay: Option<Donor>,
    /// The failures that the process ends with.
    void: Vec<Key>,
}

impl Gate {
    pub fn new(world: Rc<World>, redactor: Redactor, meter: Rc<Meter>, recorded: Recorded, seed: u64) -> Gate {
        let Recorded { writer, past, resume } = recorded;
        let state = State {
            writer,
            keys: if past.first_format { KeyMaker::of_both_formats() } else { KeyMaker::default() },
            past,
            permissions: Permissions::default(),
            resume,
            unseen: Vec::new(),
            given_back: 0,
            seed,
            replay: None,
            void: Vec::new(),
        };
        Gate { world, cleaner: Cleaner::new(redactor), meter, state: RefCell::new(state) }
    }

    /// Sets what the flow's manifest declared.
    pub fn permit(&self, permissions: Permissions) {
        self.state.borrow_mut().permissions = permissions;
    }

    /// Lets the run take from an earlier journal what its own does not have.
    pub fn take_from(&self, donor: Donor) {
        let state = &mut *self.state.borrow_mut();
        if donor.has_first_format() {
            state.keys = KeyMaker::of_both_formats();
        }
        state.replay = Some(donor);
    }

    /// Gives the donor back, with what was taken from it.
    pub fn donor(&self) -> Option<Donor> {
        self.state.borrow_mut().replay.take()
    }

    /// Returns the world that effects are performed through.
    pub fn world(&self) -> &Rc<World> {
        &self.world
    }

    /// Names a branch or scope inside `scope`.
    pub fn scope(&self, scope: &str, name: &str) -> String {
        self.state.borrow_mut().keys.scope(scope, name)
    }

    /// Lets an effect happen, or gives back what it returned before.
    ///
    /// An `Err` of this function is no outcome: the journal cannot be written, and the run must stop.
    pub fn admit(&self, scope: &str, mut effect: Effect) -> Result<Admitted> {
        effect.facts_mut().redact(&self.cleaner);
        let state = &mut *self.state.borrow_mut();
        let facts = effect.facts();
        if facts.recovery() == Recovery::Unrecorded {
            if state.caught_up() {
                self.world.show_unrecorded(&effect);
            }
            return Ok(Admitted::Now(Ok(Value::Null)));
        }
        let asked = Asked {
            scope,
            kind: facts.kind(),
            request: facts.request(),
            conversation: Chain::of(facts.conversation().iter().map(|said| said.digest())),
        };
        let keys = state.keys.next(&Keyed {
            kind: asked.kind,
            scope,
            request: &asked.request,
            list: asked.conversation.whole(),
            declared: self.world.declared(&effect),
            dependencies: &facts.dependencies(),
        });
        let (under, before) = state.past.of_either(keys)?;
        let began = match before {
            Before::Ended(turn, outcome) => {
                if let Effect::Chat(chat) = &effect {
                    self.count(chat, &outcome);
                    let refused = outcome.as_ref().ok().and_then(|reply| reply["refused"].as_array());
                    let refused: Vec<String> =
                        refused.into_iter().flatten().filter_map(|part| part.as_str().map(str::to_owned)).collect();
                    self.world.models.recall(&chat.request.model, &refused);
                }
                return Ok(state.give_back(&self.world, &effect, (turn, under), outcome));
            }
            Before::Began(prepared) => Some(Began { prepared, noted: under == keys.key }),
            Before::Never => None,
        };
        match state.replay {
            Some(_) => self.take(state, effect, keys, asked, began),
            None => self.begin(state, effect, keys.key, asked, began),
        }
    }

    /// Counts a model call of the past.
    fn count(&self, chat: &Chat, outcome: &Result<Value>) {
        let by = (chat.show.label.as_str(), self.world.models.price(&chat.request.model));
        self.meter.count(&chat.request, &chat.conversation, by, outcome);
    }

    /// Takes an effect from the replay source, or begins it.
    fn take(
        &self,
        state: &mut State,
        effect: Effect,
        keys: Keys,
        mut asked: Asked<'_>,
        began: Option<Began>,
    ) -> Result<Admitted> {
        let State { replay: Some(source), permissions, .. } = &mut *state else {
            return self.begin(state, effect, keys.key, asked, began);
        };
        let facts = effect.facts();
        let alone = source.is_alone_for(facts.source());
        if alone && let Err(refused) = permitted(&effect, permissions) {
            return Ok(Admitted::Now(Err(refused)));
        }
        let key = keys.key;
        let Some((turn, outcome)) = source.take(keys, facts.source())? else {
            if !alone {
                return self.begin(state, effect, key, asked, began);
            }
            if !facts.conversation().is_empty() {
                let messages = facts.conversation().iter().map(|said| serde_json::to_value(&said.message));
                asked.request["messages"] = messages.filter_map(std::result::Result::ok).collect();
            }
            return Err(source.missed(asked.kind, asked.scope, &asked.request)?);
        };
        self.world.still_valid(&effect)?;
        if let Effect::Chat(chat) = &effect {
            self.count(chat, &outcome);
        }
        state.go_live(&self.world)?;
        if facts.recovery() == Recovery::SingleLine
            && let Ok(ok) = &outcome
        {
            state.write_single(&self.world, key, asked, &effect, ok)?;
            return Ok(Admitted::Now(outcome));
        }
        // One that stands there already was taken just before the process ended.
        if !began.is_some_and(|began| began.noted) {
            state.write_intent(&self.world, key, asked, &effect, None)?;
        }
        match facts.shown_again(&outcome) {
            Shown::Said { markdown, from } => self.world.front.show(&said(markdown, from)),
            Shown::Answered(question) => self.world.front.answered_before(question),
            Shown::Nothing => {}
        }
        Ok(Admitted::Recorded(turn, key, outcome))
    }

    /// Lets an effect happen that nothing is recorded of, or nothing but its intent.
    fn begin(
        &self,
        state: &mut State,
        effect: Effect,
        key: Key,
        asked: Asked<'_>,
        began: Option<Began>,
    ) -> Result<Admitted> {
        if let Err(refused) = permitted(&effect, &state.permissions) {
            return Ok(Admitted::Now(Err(refused)));
        }
        state.go_live(&self.world)?;
        let facts = effect.facts();
        if let Some(mut ok) = self.world.perform_now(&effect, key, state.seed) {
            self.cleaner.value(&mut ok);
            state.write_single(&self.world, key, asked, &effect, &ok)?;
            return Ok(Admitted::Now(Ok(ok)));
        }
        let (mut prepared, mut known) = (None, None);
        if facts.recovery() == Recovery::Probe {
            let before = began.as_ref().and_then(|began| began.prepared.as_ref());
            known = before.and_then(|before| self.world.probe(&effect, before));
            if known.is_none() {
                match self.world.prepare(&effect) {
                    Ok(found) => prepared = Some(found),
                    Err(failure) => known = Some(Err(failure)),
                }
            }
        }
        let again = began.is_some() || state.past.cut;
        // An intent that stands in the journal already is not written again, unless it was prepared anew.
        if prepared.is_some() || !began.is_some_and(|began| began.noted) {
            state.write_intent(&self.world, key, asked, &effect, prepared.as_ref())?;
            if facts.needs_intent() && known.is_none() {
                state.writer.sync()?;
            }
        }
        let (pulse, lasts, asks) = (Pulse::new(), facts.lasts(), facts.asks());
        // What is known already comes as what is performed does, so that a later process gives it back in its turn.
        let future = match known {
            Some(outcome) => ready(outcome).boxed_local(),
            None => self.perform(effect, key, state.seed, again, pulse.clone()),
        };
        Ok(Admitted::Live(Live { key, future, pulse, lasts, asks }))
    }

    /// Performs an effect, a model call within the budget.
    fn perform(
        &self,
        effect: Effect,
        key: Key,
        seed: u64,
        again: bool,
        pulse: Pulse,
    ) -> LocalBoxFuture<'static, Result<Value>> {
        let world = Rc::clone(&self.world);
        let Effect::Chat(Chat { mut request, conversation, show }) = effect else {
            return world.perform(effect, key, again, pulse);
        };
        if world.models.is_seeded(&request.model) {
            request.seed.get_or_insert_with(|| chance(seed, key).as_u64());
        }
        // The key is made: what a flow asks for is the reply, and what is thought before has room of its own.
        request.max_tokens = request.max_tokens.map(|limit| limit.saturating_add(world.models.thinks(&request.model)));
        let meter = Rc::clone(&self.meter);
        let by = (show.label.clone(), world.models.price(&request.model));
        let said = conversation.clone();
        let perform =
            move |request| world.perform(Effect::Chat(Chat { request, conversation, show }), key, again, pulse);
        async move { meter.call(request, &said, by, perform).await }.boxed_local()
    }

    /// Takes the secrets out of an outcome and writes it. It is not synced yet. One that is `held` is not given to
    /// the flow before the next that is not.
    pub fn end(&self, key: Key, mut outcome: Result<Value>, held: bool) -> Result<Result<Value>> {
        outcome = outcome.map_err(|failure| self.cleaner.redactor().failure(failure));
        if let Ok(value) = &mut outcome {
            self.cleaner.redactor().value(value);
        }
        let state = &mut *self.state.borrow_mut();
        let hex = key.to_string();
        let at = self.world.clock();
        let folded = outcome.as_ref().ok().map(|value| state.writer.outcome(value)).transpose()?;
        let (ok, failure) = (folded.as_deref(), outcome.as_ref().err());
        state.writer.append(&Record::Outcome(Outcome { key: &hex, ok, failure, held, at }))?;
        Ok(outcome)
    }

    /// Makes it part of the run that the flow is given recorded outcomes, together and in this order, and returns them.
    pub fn give(&self, together: Vec<(Turn, Key, Result<Value>)>) -> Result<Vec<Result<Value>>> {
        let last = together.len().saturating_sub(1);
        let held =
            |(turn, key, _): &(Turn, Key, Result<Value>)| matches!(turn, Turn::Held { .. }).then(|| key.to_string());
        let keys: Vec<String> = together.iter().filter_map(held).collect();
        if !keys.is_empty() {
            let state = &mut *self.state.borrow_mut();
            state.go_live(&self.world)?;
            state.writer.append(&Record::Given(Given { keys }))?;
        }
        let given = together.into_iter().enumerate().map(|(at, (turn, key, outcome))| match turn {
            Turn::Taken { .. } => self.end(key, outcome, at < last),
            Turn::Given { .. } | Turn::Held { .. } => Ok(outcome),
        });
        given.collect()
    }

    /// Returns how long effects in a scope took in earlier processes of the run.
    pub fn used(&self, scope: &str) -> Duration {
        self.state.borrow().past.used(scope)
    }

    /// Waits until all outcomes are on the disk; only then may the flow see them.
    pub fn sync(&self) -> Result<()> {
        self.state.borrow_mut().writer.sync()
    }

    /// Returns what the run used, by model and persona; what is recorded from earlier counts too.
    pub fn spent(&self) -> Vec<Spent> {
        self.meter.spent()
    }

    /// Returns when the time of this process is over, and what is said then.
    pub fn deadline(&self) -> Option<(tokio::time::Instant, Failure)> {
        self.meter.deadline()
    }

    /// Returns whether this process has written nothing: the run was finished already.
    pub fn only_replayed(&self) -> bool {
        self.state.borrow().resume.is_some()
    }

    /// Notes the failures that the flow ended with, so that a later process tries again what failed.
    pub fn void(&self, failures: Vec<Key>) {
        self.state.borrow_mut().void = failures;
    }

    /// Writes how the run ended. A finished run that was only replayed has its end already.
    pub fn close(&self, mut end: End) -> Result<()> {
        end.result.iter_mut().for_each(|result| self.cleaner.redactor().value(result));
        end.failure = end.failure.map(|failure| self.cleaner.redactor().failure(failure));
        let state = &mut *self.state.borrow_mut();
        if state.resume.is_some() && state.past.end.as_ref().is_some_and(|before| before.status == end.status) {
            return Ok(());
        }
        state.go_live(&self.world)?;
        end.void = state.void.iter().map(Key::to_string).collect();
        state.writer.append(&Record::End(Box::new(end)))?;
        state.writer.sync()
    }
}

/// An effect that a process began and did not end.
struct Began {
    prepared: Option<Value>,
    /// Its intent stands in the journal under the key that it has now.
    noted: bool,
}

/// What an effect asks for, as it is keyed and recorded.
struct Asked<'a> {
    scope: &'a str,
    kind: &'static str,
    request: Value,
    conversation: Chain,
}

impl State {
    /// Writes an effect that happened at once.
    fn write_single(&mut self, world: &World, key: Key, asked: Asked<'_>, effect: &Effect, ok: &Value) -> Result<()> {
        let (kind, scope) = (asked.kind, asked.scope);
        let request = self.intern(asked, effect)?;
        let ok = self.writer.outcome(ok)?;
        let (key, at) = (key.to_string(), world.clock());
        self.writer.append(&Record::Effect(Done { key: &key, kind, scope, request: &request, ok: &ok, at })).map(drop)
    }

    /// Writes that an effect is about to happen, with what has to be known to find out whether it did.
    fn write_intent(
        &mut self,
        world: &World,
        key: Key,
        asked: Asked<'_>,
        effect: &Effect,
        prepared: Option<&Value>,
    ) -> Result<()> {
        let (kind, scope) = (asked.kind, asked.scope);
        let request = self.intern(asked, effect)?;
        let (key, at) = (key.to_string(), world.clock());
        self.writer
            .append(&Record::Intent(Intent { key: &key, kind, scope, request: &request, prepared, at }))
            .map(drop)
    }

    /// Returns a request as it is written: what stands in the journal already is referred to.
    fn intern(&mut self, asked: Asked<'_>, effect: &Effect) -> Result<Value> {
        let mut request = self.writer.fold(asked.request, true)?;
        let conversation = effect.facts().conversation();
        if !conversation.is_empty() {
            let item = |index: usize| {
                serde_json::to_value(&conversation[index].message).expect("a message is plain data with text keys")
            };
            request["messages"] = self.writer.fold_list(&asked.conversation, conversation.len(), item)?;
        }
        Ok(request)
    }

    fn caught_up(&self) -> bool {
        self.resume.is_none()
    }

    /// The first effect that is not recorded: from here on the run is live.
    fn go_live(&mut self, world: &World) -> Result<()> {
        if let Some(resume) = self.resume.take() {
            self.writer.append(&Record::Resume(resume))?;
            world.front.show(&Event::Replayed { effects: self.given_back });
            self.unseen.drain(..).for_each(|event| world.front.show(&event));
        }
        Ok(())
    }

    fn give_back(
        &mut self,
        world: &World,
        effect: &Effect,
        (turn, key): (Turn, Key),
        outcome: Result<Value>,
    ) -> Admitted {
        self.given_back += 1;
        let shown = effect.facts().shown_again(&outcome);
        if let Shown::Answered(question) = shown {
            world.front.answered_before(question);
        }
        if !self.caught_up() {
            match shown {
                Shown::Said { markdown, from } => self.unseen.push(said(markdown, from)),
                Shown::Answered(_) => self.unseen.clear(),
                Shown::Nothing => {}
            }
        }
        match effect.facts().recovery() {
            Recovery::SingleLine | Recovery::Unrecorded => Admitted::Now(outcome),
            Recovery::Retry | Recovery::Probe => Admitted::Recorded(turn, key, outcome),
        }
    }
}

fn said(markdown: &str, from: Option<&str>) -> Event {
    Event::Said { markdown: markdown.to_owned(), from: from.map(str::to_owned) }
}

fn permitted(effect: &Effect, permissions: &Permissions) -> Result<()> {
    if let Some(missing) = effect.facts().needs().iter().find(|needed| !permissions.declares(**needed)) {
        return Err(missing.undeclared());
    }
    let Effect::Exec(command) = effect else { return Ok(()) };
    let commands = permissions.commands();
    if command.run.is_granted(commands) {
        return Ok(());
    }
    let allowed = match commands {
        [] => "none is".to_owned(),
        some => some.iter().map(|grant| format!("`{}`", excerpt(grant))).collect::<Vec<_>>().join(", "),
    };
    let shown = excerpt(&command.run.shown());
    Err(Failure::new(Code::PermissionRefused, format!("the command `{shown}` is not allowed"))
        .hint(format!("allowed: {allowed}")))
}
