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
use crate::model::effect::{Effect, Settles};
use crate::model::event::Event;
use crate::model::permission::Permissions;
use crate::model::redact::Redactor;
use crate::model::text::excerpt;

mod secrets;

use secrets::Clean;

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
    redactor: Rc<Redactor>,
    clean: Clean,
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
    donor: Option<Donor>,
    /// The failures that the process ends with.
    void: Vec<Key>,
}

impl Gate {
    pub fn new(world: Rc<World>, redactor: Rc<Redactor>, meter: Rc<Meter>, recorded: Recorded, seed: u64) -> Gate {
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
            donor: None,
            void: Vec::new(),
        };
        Gate { world, redactor, clean: Clean::default(), meter, state: RefCell::new(state) }
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
        state.donor = Some(donor);
    }

    /// Gives the donor back, with what was taken from it.
    pub fn donor(&self) -> Option<Donor> {
        self.state.borrow_mut().donor.take()
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
        self.redact(&mut effect);
        let state = &mut *self.state.borrow_mut();
        if effect.settles() == Settles::Transient {
            if state.caught_up() {
                self.world.show_transient(&effect);
            }
            return Ok(Admitted::Now(Ok(Value::Null)));
        }
        let asked = Asked {
            value: effect.request(),
            conversation: Chain::of(effect.conversation().iter().map(|said| said.digest())),
        };
        let list = asked.conversation.whole();
        let keys = state.keys.next(&Keyed {
            kind: effect.kind(),
            scope,
            request: &asked.value,
            list,
            declared: self.world.declared(&effect),
            things: &effect.things(),
        });
        let (under, before) = state.past.of_either(keys)?;
        let began = match before {
            Before::Ended(turn, outcome) => {
                if let Effect::Chat { request, conversation, show } = &effect {
                    self.meter.count(request, conversation, &show.label, &outcome);
                    let refused = outcome.as_ref().ok().and_then(|reply| reply["refused"].as_array());
                    let refused: Vec<String> =
                        refused.into_iter().flatten().filter_map(|part| part.as_str().map(str::to_owned)).collect();
                    self.world.models.recall(&request.model, &refused);
                }
                return Ok(state.give_back(&self.world, &effect, (turn, under), outcome));
            }
            Before::Began(prepared) => Some(Began { prepared, noted: under == keys.key }),
            Before::Never => None,
        };
        match state.donor {
            Some(_) => self.take(state, scope, effect, keys, asked, began),
            None => self.begin(state, scope, effect, keys.key, asked, began),
        }
    }

    /// Takes an effect from the donor, or begins it.
    fn take(
        &self,
        state: &mut State,
        scope: &str,
        effect: Effect,
        keys: Keys,
        mut asked: Asked,
        began: Option<Began>,
    ) -> Result<Admitted> {
        let State { donor: Some(donor), permissions, .. } = &mut *state else {
            return Err(Failure::new(Code::Internal, "there is nothing to take from"));
        };
        let alone = donor.is_alone_for(&effect);
        if alone && let Err(refused) = permitted(&effect, permissions) {
            return Ok(Admitted::Now(Err(refused)));
        }
        let key = keys.key;
        let Some((turn, outcome)) = donor.take(keys, &effect)? else {
            if !alone {
                return self.begin(state, scope, effect, key, asked, began);
            }
            if !effect.conversation().is_empty() {
                let messages = effect.conversation().iter().map(|said| serde_json::to_value(&said.message));
                asked.value["messages"] = messages.filter_map(std::result::Result::ok).collect();
            }
            return Err(donor.missed(effect.kind(), scope, &asked.value)?);
        };
        self.world.still_valid(&effect)?;
        if let Effect::Chat { request, conversation, show } = &effect {
            self.meter.count(request, conversation, &show.label, &outcome);
        }
        state.go_live(&self.world)?;
        let (at, hex, kind) = (self.world.clock(), key.to_string(), effect.kind());
        if effect.settles() == Settles::Instant
            && let Ok(ok) = &outcome
        {
            let request = state.fold(asked, &effect)?;
            let folded = state.writer.outcome(ok)?;
            let done = Done { key: &hex, kind, scope, request: &request, ok: &folded, at };
            state.writer.append(&Record::Effect(done))?;
            return Ok(Admitted::Now(outcome));
        }
        // One that stands there already was taken just before the process ended.
        if !began.is_some_and(|began| began.noted) {
            let request = state.fold(asked, &effect)?;
            let intent = Intent { key: &hex, kind, scope, request: &request, prepared: None, at };
            state.writer.append(&Record::Intent(intent))?;
        }
        if let Effect::Ask(question) = &effect {
            self.world.front.answered_before(question);
        }
        if let (Effect::Chat { show, .. }, Ok(reply)) = (&effect, &outcome)
            && show.stream
            && let Some(text) = reply["text"].as_str()
        {
            self.world.front.show(&Event::Said { markdown: text.to_owned(), from: Some(show.label.clone()) });
        }
        Ok(Admitted::Recorded(turn, key, outcome))
    }

    fn begin(
        &self,
        state: &mut State,
        scope: &str,
        effect: Effect,
        key: Key,
        asked: Asked,
        began: Option<Began>,
    ) -> Result<Admitted> {
        if let Err(refused) = permitted(&effect, &state.permissions) {
            return Ok(Admitted::Now(Err(refused)));
        }
        state.go_live(&self.world)?;
        let at = self.world.clock();
        let hex = key.to_string();
        let kind = effect.kind();
        if effect.settles() == Settles::Instant {
            let mut ok = self.world.perform_now(&effect, key, state.seed);
            self.redactor.value(&mut ok);
            let request = state.fold(asked, &effect)?;
            let folded = state.writer.outcome(&ok)?;
            state.writer.append(&Record::Effect(Done {
                key: &hex,
                kind,
                scope,
                request: &request,
                ok: &folded,
                at,
            }))?;
            return Ok(Admitted::Now(Ok(ok)));
        }
        let (mut prepared, mut known) = (None, None);
        if effect.settles() == Settles::Look {
            let before = began.as_ref().and_then(|began| began.prepared.as_ref());
            known = before.and_then(|before| self.world.look(&effect, before));
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
            let request = state.fold(asked, &effect)?;
            let intent = Intent { key: &hex, kind, scope, request: &request, prepared: prepared.as_ref(), at };
            state.writer.append(&Record::Intent(intent))?;
            if effect.needs_intent() && known.is_none() {
                state.writer.sync()?;
            }
        }
        let (pulse, lasts, asks) = (Pulse::new(), effect.lasts(), matches!(effect, Effect::Ask(_)));
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
        let Effect::Chat { mut request, conversation, show } = effect else {
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
        let perform = move |request| world.perform(Effect::Chat { request, conversation, show }, key, again, pulse);
        async move { meter.call(request, &said, by, perform).await }.boxed_local()
    }

    /// Takes the secrets out of an outcome and writes it. It is not synced yet. One that is `held` is not given to
    /// the flow before the next that is not.
    pub fn end(&self, key: Key, mut outcome: Result<Value>, held: bool) -> Result<Result<Value>> {
        outcome = outcome.map_err(|failure| self.redactor.failure(failure));
        if let Ok(value) = &mut outcome {
            self.redactor.value(value);
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
        end.result.iter_mut().for_each(|result| self.redactor.value(result));
        end.failure = end.failure.map(|failure| self.redactor.failure(failure));
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
struct Asked {
    value: Value,
    conversation: Chain,
}

impl State {
    /// Returns a request as it is written: what stands in the journal already is referred to.
    fn fold(&mut self, asked: Asked, effect: &Effect) -> Result<Value> {
        let mut request = self.writer.fold(asked.value, true)?;
        let conversation = effect.conversation();
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
        if let Effect::Ask(question) = effect {
            world.front.answered_before(question);
        }
        if !self.caught_up() {
            match effect {
                Effect::Say { markdown, from } => {
                    self.unseen.push(Event::Said { markdown: markdown.clone(), from: from.clone() });
                }
                Effect::Chat { show, .. } if show.stream => {
                    if let Some(text) = outcome.as_ref().ok().and_then(|reply| reply["text"].as_str()) {
                        self.unseen.push(Event::Said { markdown: text.to_owned(), from: Some(show.label.clone()) });
                    }
                }
                Effect::Ask(_) => self.unseen.clear(),
                _ => {}
            }
        }
        match effect.settles() {
            Settles::Instant | Settles::Transient => Admitted::Now(outcome),
            Settles::Again | Settles::Look => Admitted::Recorded(turn, key, outcome),
        }
    }
}

fn permitted(effect: &Effect, permissions: &Permissions) -> Result<()> {
    if let Some(missing) = effect.needs().iter().find(|needed| !permissions.declares(**needed)) {
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
