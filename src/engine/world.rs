//! The adapters of one run, and which adapter performs which effect. Only the gate calls them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use futures_util::future::{FutureExt, LocalBoxFuture, ready};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::error::{Code, Failure, Result};
use crate::host::attachments::AttachmentStore;
use crate::host::children::Children;
use crate::host::documents::Store;
use crate::host::documents::perform::DocumentOutcome;
use crate::host::exec::Commands;
use crate::host::files::Files;
use crate::host::git::Repository;
use crate::host::mcp::McpServers;
use crate::host::notify::Notifier;
use crate::host::{CallEvent, FrontEnd, Models};
use crate::journal::key::EffectKey;
use crate::model::chat::{ChatReply, ChatRequest, Retry, Usage};
use crate::model::collection::Collection;
use crate::model::command::ExecCommand;
use crate::model::digest::Digest;
use crate::model::effect::chat::{CallDisplay, Chat};
use crate::model::effect::documents::DocumentOp;
use crate::model::effect::mcp::McpOp;
use crate::model::effect::notify::Notification;
use crate::model::effect::time::TimeOp;
use crate::model::effect::ui::UiOp;
use crate::model::effect::{Effect, EffectFacts, ReplayDisplay};
use crate::model::event::Event;
use crate::model::question::Question;
use crate::model::text::excerpt;

/// When a live effect last showed progress: a piece of a reply, a line of a command's output.
#[derive(Clone, Debug)]
pub struct Heartbeat(Rc<Cell<Instant>>);

impl Heartbeat {
    pub fn new() -> Heartbeat {
        Heartbeat(Rc::new(Cell::new(Instant::now())))
    }

    /// Notes a sign of life.
    pub fn beat(&self) {
        self.0.set(Instant::now());
    }

    /// Returns when it last beat.
    pub fn last(&self) -> Instant {
        self.0.get()
    }
}

impl Default for Heartbeat {
    fn default() -> Heartbeat {
        Heartbeat::new()
    }
}

/// The most that one process writes into a run's documents, in bytes.
const MOST_WRITTEN: u64 = 1 << 30;

/// Everything outside of the process, as one run sees it.
pub struct World {
    /// The run's name.
    pub run: String,
    pub models: Box<dyn Models>,
    pub store: Store,
    pub front: Rc<dyn FrontEnd>,
    /// Whether the front end is sent the full requests and replies of model calls.
    pub details: bool,
    pub collections: RefCell<BTreeMap<String, Collection>>,
    /// Digests of the collections' declarations, cached when first needed.
    pub declared: RefCell<BTreeMap<String, Digest>>,
    /// Roughly how many bytes of documents this process has written.
    pub written: Cell<u64>,
    pub files: Files,
    /// The images and PDFs of the run.
    pub attachments: AttachmentStore,
    pub repository: Repository,
    pub commands: Commands,
    pub notifier: Notifier,
    pub servers: McpServers,
    pub children: Children,
    /// Milliseconds since 1970.
    pub now: Box<dyn Fn() -> u64>,
}

/// Returns the randomness that an effect has in all runs with this seed. Seeded models draw from it, so that the same
/// request gets the same reply.
pub(crate) fn chance(seed: u64, key: EffectKey) -> Digest {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.update(&key.bytes());
    Digest::of(hasher.finalize().as_bytes())
}

/// Returns the randomness that an effect has in this run only. Flows make ids from it, and two runs with the same seed may
/// work in one folder.
fn own_chance(seed: u64, run: &str, key: EffectKey) -> Digest {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&chance(seed, key).bytes());
    hasher.update(run.as_bytes());
    Digest::of(hasher.finalize().as_bytes())
}

impl World {
    /// Returns the current time in milliseconds since 1970.
    pub fn clock(&self) -> u64 {
        (self.now)()
    }

    /// Returns the digest of the collection that an effect writes into: its schema and its path.
    pub fn declared(&self, effect: &Effect) -> Option<Digest> {
        let collection = effect.facts().writes_into()?;
        let known = self.declared.borrow().get(collection).copied();
        known.or_else(|| {
            let collections = self.collections.borrow();
            let digest = collections.get(collection)?.digest();
            self.declared.borrow_mut().insert(collection.to_owned(), digest);
            Some(digest)
        })
    }

    /// Performs an effect that never waits; returns `None` for all other effects.
    pub fn perform_now(&self, effect: &Effect, key: EffectKey, seed: u64) -> Option<Value> {
        match effect {
            Effect::Time(TimeOp::Clock) => Some(json!(self.clock())),
            Effect::Time(TimeOp::Random) => Some(json!(own_chance(seed, &self.run, key).to_string())),
            Effect::Ui(UiOp::Say { markdown, from }) => {
                self.front.show(&Event::Said { markdown: markdown.clone(), from: from.clone() });
                Some(Value::Null)
            }
            Effect::Ui(UiOp::Attended) => Some(json!(self.front.attended())),
            Effect::Ui(UiOp::Status { .. } | UiOp::Progress { .. } | UiOp::Ask(_))
            | Effect::Chat(_)
            | Effect::Documents(_)
            | Effect::Files(_)
            | Effect::Git(_)
            | Effect::Worktree(_)
            | Effect::Exec(_)
            | Effect::Mcp(_)
            | Effect::Notify(_)
            | Effect::Spawn(_) => None,
        }
    }

    /// Lets prepared answers skip the one to a question that the journal has answered.
    pub fn skip_answer(&self, shown: &ReplayDisplay<'_>) {
        if let ReplayDisplay::Answered { question, .. } = shown {
            self.front.answered_before(question);
        }
    }

    /// Shows an effect that is not recorded: a status or a progress bar.
    pub fn show_unrecorded(&self, effect: &Effect) {
        if let Effect::Ui(op) = effect {
            match op {
                UiOp::Status { text } => self.front.show(&Event::Status { text: text.clone() }),
                UiOp::Progress { label, done, total } => {
                    self.front.show(&Event::Progress { label: label.clone(), done: *done, total: *total });
                }
                UiOp::Say { .. } | UiOp::Ask(_) | UiOp::Attended => {}
            }
        }
    }

    /// Returns what [`World::probe`] needs after a crash to find out whether the effect happened.
    ///
    /// # Errors
    ///
    /// The adapter's failure, if the state before the effect cannot be read.
    pub fn prepare(&self, effect: &Effect) -> Result<Value> {
        match effect {
            Effect::Documents(op) => self.store.prepare(op, &self.collection_finder()).map(|found| plain(&found)),
            Effect::Git(op) => self.repository.prepare(op).map(|found| plain(&found)),
            Effect::Worktree(worktree) => self.repository.prepare_in(worktree).map(|found| plain(&found)),
            Effect::Time(_)
            | Effect::Ui(_)
            | Effect::Chat(_)
            | Effect::Files(_)
            | Effect::Exec(_)
            | Effect::Mcp(_)
            | Effect::Notify(_)
            | Effect::Spawn(_) => Ok(json!({})),
        }
    }

    /// Returns the outcome of an effect whose intent is in the journal, if the effect happened.
    pub fn probe(&self, effect: &Effect, prepared: &Value) -> Option<Result<Value>> {
        match effect {
            Effect::Documents(op) => outcome(self.store.probe(op, &read(prepared)?, &self.collection_finder())),
            Effect::Git(op) => outcome(self.repository.probe(op, &read(prepared)?)),
            Effect::Worktree(worktree) => outcome(self.repository.probe_in(worktree, &read(prepared)?)),
            Effect::Exec(command) if !command.repeatable => Some(Err(in_doubt(command))),
            Effect::Mcp(op) => op.in_doubt().map(Err),
            Effect::Exec(_)
            | Effect::Time(_)
            | Effect::Ui(_)
            | Effect::Chat(_)
            | Effect::Files(_)
            | Effect::Notify(_)
            | Effect::Spawn(_) => None,
        }
    }

    /// Validates a replayed save against the collection's current schema, since the save itself is not repeated.
    ///
    /// # Errors
    ///
    /// The store's failure, if the document is no longer valid.
    pub fn still_valid(&self, effect: &Effect) -> Result<()> {
        match effect {
            Effect::Documents(op) => self.store.still_valid(op, &self.collection_finder()),
            Effect::Time(_)
            | Effect::Ui(_)
            | Effect::Chat(_)
            | Effect::Files(_)
            | Effect::Git(_)
            | Effect::Worktree(_)
            | Effect::Exec(_)
            | Effect::Mcp(_)
            | Effect::Notify(_)
            | Effect::Spawn(_) => Ok(()),
        }
    }

    /// Performs an effect that may wait; `again` says that it may have happened already before a crash.
    pub fn perform(
        self: &Rc<World>,
        effect: Effect,
        key: EffectKey,
        seed: u64,
        again: bool,
        heartbeat: Heartbeat,
    ) -> LocalBoxFuture<'static, Result<Value>> {
        let world = Rc::clone(self);
        match effect {
            Effect::Chat(Chat { mut request, conversation, show }) => {
                request.messages = conversation.iter().map(|item| item.message.clone()).collect();
                async move {
                    let attachments = request.messages.iter_mut().flat_map(|message| &mut message.attachments);
                    attachments.into_iter().try_for_each(|attachment| world.attachments.load(attachment))?;
                    world.chat(request, show, key, &heartbeat).await
                }
                .boxed_local()
            }
            Effect::Ui(UiOp::Ask(question)) => async move {
                let question = Question { effect: Some(key.to_string()), ..*question };
                world.front.show(&Event::Asked { question: question.clone() });
                let answer = world.front.ask(&question).await?;
                world.front.show(&Event::Answered { id: question.id, answer: answer.clone() });
                Ok(answer)
            }
            .boxed_local(),
            Effect::Git(op) => {
                let (repository, now) = (self.repository.clone(), self.clock() / 1000);
                async move { world.show_remarks(blocking(move || repository.perform(&op, again, now)).await) }
                    .boxed_local()
            }
            Effect::Worktree(worktree) => {
                let (repository, now) = (self.repository.clone(), self.clock() / 1000);
                async move { world.show_remarks(blocking(move || repository.perform_in(&worktree, again, now)).await) }
                    .boxed_local()
            }
            Effect::Files(op) => {
                let files = self.files.clone();
                blocking(move || files.perform(&op)).boxed_local()
            }
            Effect::Exec(command) => async move { world.command(&command, key, &heartbeat).await }.boxed_local(),
            Effect::Documents(op) => async move { world.document(op, again) }.boxed_local(),
            Effect::Notify(notification) => async move { world.notify(&notification, key, seed).await }.boxed_local(),
            Effect::Mcp(op) => async move { world.ask_server(&op, &heartbeat).await }.boxed_local(),
            // The gate has what a child may use.
            Effect::Spawn(_)
            | Effect::Time(_)
            | Effect::Ui(UiOp::Say { .. } | UiOp::Status { .. } | UiOp::Progress { .. } | UiOp::Attended) => {
                ready(Err(Failure::new(Code::Internal, "this effect does not wait"))).boxed_local()
            }
        }
    }

    /// Shows the notices that git operations left for the user.
    fn show_remarks(&self, done: Result<Value>) -> Result<Value> {
        for text in self.repository.remarks() {
            self.front.show(&Event::Notice { text });
        }
        done
    }

    async fn command(&self, command: &ExecCommand, key: EffectKey, heartbeat: &Heartbeat) -> Result<Value> {
        let (place, _held) = self.repository.lend(command).await?;
        let ran = self.commands.run(command, &place, &key.to_string(), &|| heartbeat.beat()).await?;
        if let Some(text) = self.commands.remark(command, &place.folder, &ran) {
            self.front.show(&Event::Notice { text });
        }
        Ok(plain(&ran))
    }

    async fn ask_server(&self, op: &McpOp, heartbeat: &Heartbeat) -> Result<Value> {
        let done = self.servers.perform(op, &|| heartbeat.beat()).await;
        for text in self.servers.remarks() {
            self.front.show(&Event::Notice { text });
        }
        done.map(|done| plain(&done))
    }

    async fn chat(
        &self,
        request: ChatRequest,
        show: CallDisplay,
        key: EffectKey,
        heartbeat: &Heartbeat,
    ) -> Result<Value> {
        let call = key.to_string();
        let request = request.in_order();
        self.front.show(&Event::CallStarted {
            call: call.clone(),
            model: request.model.clone(),
            label: show.label,
            show: show.stream,
        });
        if self.details {
            self.front.show(&Event::CallSent { call: call.clone(), request: Box::new(request.clone()) });
        }
        let began = Instant::now();
        let mut retries = Vec::new();
        let mut report = |event: CallEvent<'_>| {
            self.front.show(&match event {
                CallEvent::Alive => return heartbeat.beat(),
                CallEvent::Delta(text) => {
                    heartbeat.beat();
                    Event::CallDelta { call: call.clone(), text: text.to_owned() }
                }
                CallEvent::Thought(text) => {
                    heartbeat.beat();
                    Event::CallThought { call: call.clone(), text: text.to_owned() }
                }
                CallEvent::Notice(text) => Event::Notice { text: text.to_owned() },
                CallEvent::Retry { attempt, reason, wait_ms } => {
                    let after_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                    retries.push(Retry { after_ms, wait_ms, reason: reason.to_owned() });
                    Event::CallRetried { call: call.clone(), attempt, reason: reason.to_owned(), wait_ms }
                }
            });
        };
        let mut reply = self.models.chat(&request, &mut report).await;
        if let Ok(reply) = &mut reply {
            reply.retries = retries;
            let price = self.models.price(&request.model);
            // A cost that the provider tells is the true one.
            reply.cost = reply.cost.or(price.map(|price| price.of(reply.usage)));
            reply.saved = price.map_or(0.0, |price| price.saved(reply.usage));
            if self.details {
                // The provider state is opaque and is only sent back to the provider.
                let shown = ChatReply { state: None, ..reply.clone() };
                self.front.show(&Event::CallReceived { call: call.clone(), reply: Box::new(shown) });
            }
        }
        let (usage, failure) = match &reply {
            Ok(reply) => (reply.usage, None),
            Err(failure) => (Usage::default(), Some(failure.clone())),
        };
        self.front.show(&Event::CallEnded { call, usage, failure });
        reply.map(|reply| plain(&reply))
    }

    /// Sends a notification. Its id is the same whenever this run sends it, and that of no other run.
    async fn notify(&self, notification: &Notification, key: EffectKey, seed: u64) -> Result<Value> {
        let id = format!("ntf_{}", own_chance(seed, &self.run, key));
        let sent = self.notifier.send(notification, &id, &*self.now).await;
        Ok(json!(sent.unwrap_or_else(|why| {
            let title = excerpt(&notification.title);
            self.front.show(&Event::Notice { text: format!("the notification `{title}` was not sent: {why}") });
            false
        })))
    }

    fn document(&self, op: DocumentOp, again: bool) -> Result<Value> {
        op.written_value().map_or(Ok(()), |value| self.may_write(value))?;
        Ok(match self.store.perform(op, again, &self.collection_finder())? {
            // Moves the documents of a page instead of copying them: there may be a thousand.
            DocumentOutcome::Page(page) => page.into_value(),
            other => plain(&other),
        })
    }

    /// Returns a lookup of the flow's declared collections by name.
    fn collection_finder(&self) -> impl Fn(&str) -> Result<Collection> {
        |name| self.collection(name)
    }

    /// Counts what is about to be written, and refuses it above [`MOST_WRITTEN`].
    fn may_write(&self, value: &Value) -> Result<()> {
        let written = self.written.get().saturating_add(size(value));
        if written > MOST_WRITTEN {
            let message = format!("this run has written documents of {} GB since it was started", MOST_WRITTEN >> 30);
            return Err(Failure::new(Code::BudgetUsedUp, message).hint(
                "a flow that writes so much may never come to an end; `nietz resume` lets it write as much again",
            ));
        }
        self.written.set(written);
        Ok(())
    }

    /// Returns the collection that the flow's manifest declared under this name.
    ///
    /// # Errors
    ///
    /// `permission-refused` if the manifest declares none.
    pub fn collection(&self, name: &str) -> Result<Collection> {
        self.collections.borrow().get(name).cloned().ok_or_else(|| {
            let known = self.collections.borrow();
            let failure =
                Failure::new(Code::PermissionRefused, format!("this flow's manifest declares no collection `{name}`"));
            match crate::error::nearest(name, known.keys().map(String::as_str)) {
                Some(near) => failure.hint(format!("did you mean `{near}`?")),
                None => failure.hint("declare it: collections = { NAME = { path = …, schema = … } }"),
            }
        })
    }
}

/// Runs work that waits for other processes or the disk on a thread of its own. Such work is never cancelled:
/// the next request to the same worktree waits for its end.
async fn blocking<T: Serialize + Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<Value> {
    let done = tokio::task::spawn_blocking(move || work().map(|done| plain(&done))).await;
    done.unwrap_or_else(|error| Err(Failure::new(Code::Internal, format!("an operation ended early: {error}"))))
}

/// Returns roughly how long a value is as JSON text, in bytes.
fn size(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64 + 2,
        Value::Array(items) => items.iter().map(|item| size(item) + 2).sum(),
        Value::Object(members) => members.iter().map(|(name, member)| name.len() as u64 + size(member) + 2).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
    }
}

fn in_doubt(command: &ExecCommand) -> Failure {
    let shown = excerpt(&command.run.display_text());
    let message =
        format!("the run was ended while `{shown}` ran in `{}`, and how far it came is not known", command.tree);
    Failure::new(Code::CommandInDoubt, message).hint("look into the worktree, then decide")
}

/// Parses what an intent prepared; `None` if it does not have the form that this effect prepares.
fn read<T: DeserializeOwned>(prepared: &Value) -> Option<T> {
    T::deserialize(prepared).ok()
}

/// Turns an adapter's typed outcome into the JSON that is recorded and given to the flow.
fn outcome<T: Serialize>(found: Option<Result<T>>) -> Option<Result<Value>> {
    found.map(|found| found.map(|found| plain(&found)))
}

fn plain(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("an outcome is plain data with text keys")
}
