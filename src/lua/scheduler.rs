//! Drives a flow and its branches: resumes each until it asks for something, takes that to the gate, and
//! gives back what comes of it.
//!
//! Outcomes are given to a flow when all of its branches wait: those that are there, together. Which were, and in
//! which order, stands in the journal, and is given back like that. So branches that share a table see the same
//! interleaving again.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::{FutureExt, LocalBoxFuture};
use futures_util::stream::{FuturesUnordered, StreamExt};
use mlua::{Function, MultiValue, Table, Thread, Value as LuaValue};
use serde_json::Value;
use tokio::time::Instant;

use crate::engine::gate::{Admitted, Gate, Live};
use crate::engine::past::Turn;
use crate::engine::world::Pulse;
use crate::error::{Code, Failure, Result};
use crate::journal::key::Key;
use crate::lua::request::{Finish, Limited, Request, nothing};
use crate::lua::vm::{Vm, Yielded};
use crate::lua::{fault, thrown};
use crate::model::effect::Effect;

mod limits;

use limits::{Limit, LimitKind};

/// How a flow ended.
pub enum Ended {
    Returned(LuaValue),
    Raised(Failure),
    /// Something that only the user or time can give is missing; nothing else is left to do.
    Parked(Failure),
    /// The user ended it where it stood. The flow was told nothing, and what was under way has no outcome.
    Interrupted(Failure),
}

/// Asks of the user to end the run: Ctrl-C, and what else ends a process politely.
pub trait Interrupts {
    /// Resolves with each ask.
    fn next(&mut self) -> LocalBoxFuture<'_, ()>;
}

type Id = usize;

struct Task {
    thread: Thread,
    scope: String,
    role: Role,
    finish: Finish,
    /// The last failures that it was given, until it has shown that it goes on.
    failed: Option<Failed>,
}

/// Failures of effects that came up to a task.
#[derive(Clone)]
struct Failed {
    keys: Vec<Key>,
    code: Code,
    message: String,
    /// It was given something else since then.
    went_on: bool,
}

impl Failed {
    fn new(keys: Vec<Key>, failure: &Failure) -> Failed {
        Failed { keys, code: failure.code, message: failure.message.clone(), went_on: false }
    }
}

/// Who waits for a task's result.
enum Role {
    Root,
    Branch { of: Id, name: String },
    Scoped { of: Id },
}

/// What a task is resumed with.
enum Answer {
    Begin(Function, LuaValue),
    Value(LuaValue),
    Error(LuaValue),
}

/// A live effect that a task waits for.
struct Waiting {
    id: Id,
    cancel: Option<tokio::sync::oneshot::Sender<Failure>>,
    pulse: Pulse,
    /// It goes on to its end, whoever waits for it.
    lasts: bool,
    /// A person is asked.
    asks: bool,
}

/// A parent that waits for its branches.
struct Gathering {
    left: usize,
    settle: bool,
    results: BTreeMap<String, std::result::Result<LuaValue, LuaValue>>,
    /// The failures of effects that ended branches.
    escaped: Vec<Key>,
}

/// Runs one function of a flow to its end.
pub struct Scheduler<'a> {
    vm: &'a Vm,
    gate: Rc<Gate>,
    tasks: HashMap<Id, Task>,
    next_id: Id,
    ready: VecDeque<(Id, Answer)>,
    /// What earlier processes did, and branches wait for.
    recorded: BTreeMap<Turn, (Id, Key, Result<Value>)>,
    live: FuturesUnordered<LocalBoxFuture<'static, (Key, Result<Value>)>>,
    /// Who waits for which live effect; one that is not here any more was cancelled.
    waiting: HashMap<Key, Waiting>,
    limits: Vec<Limit>,
    /// When the time of the whole run is over.
    deadline: Option<(tokio::time::Instant, Failure)>,
    gatherings: HashMap<Id, Gathering>,
    parked: Option<Failure>,
}

impl<'a> Scheduler<'a> {
    pub fn new(vm: &'a Vm, gate: Rc<Gate>) -> Scheduler<'a> {
        Scheduler {
            vm,
            deadline: gate.deadline(),
            gate,
            tasks: HashMap::new(),
            next_id: 0,
            ready: VecDeque::new(),
            recorded: BTreeMap::new(),
            live: FuturesUnordered::new(),
            waiting: HashMap::new(),
            limits: Vec::new(),
            gatherings: HashMap::new(),
            parked: None,
        }
    }

    /// Runs `run(argument)`. An `Err` means that the host itself cannot go on: a full disk, a flow that used
    /// up its time.
    pub async fn run(mut self, run: Function, argument: LuaValue, interrupts: &mut dyn Interrupts) -> Result<Ended> {
        self.vm.allow();
        let ended = self.drive(run, argument, interrupts).await;
        self.vm.watchdog.disarm();
        ended
    }

    async fn drive(&mut self, run: Function, argument: LuaValue, interrupts: &mut dyn Interrupts) -> Result<Ended> {
        let root = self.spawn(run, "/".to_owned(), Role::Root, argument)?;
        debug_assert_eq!(root, 0);
        loop {
            if let Some((id, answer)) = self.ready.pop_front() {
                if let Some(ended) = self.step(id, answer)? {
                    return Ok(ended);
                }
            } else if let Some((turn, _)) = self.recorded.first_key_value() {
                let turn = *turn;
                self.vm.allow();
                self.give_back(turn)?;
            } else if self.live.is_empty() {
                let nobody = || Failure::new(Code::Internal, "no branch of the flow can go on");
                return Ok(Ended::Parked(self.parked.take().unwrap_or_else(nobody)));
            } else {
                self.vm.watchdog.disarm();
                if let Some(failure) = self.wait(interrupts).await? {
                    return Ok(Ended::Interrupted(failure));
                }
                self.vm.allow();
            }
        }
    }

    /// Gives the flow all recorded outcomes that it was given together the first time.
    fn give_back(&mut self, turn: Turn) -> Result<()> {
        let (mut tasks, mut together) = (Vec::new(), Vec::new());
        while let Some(next) = self.recorded.first_entry().filter(|next| next.key().is_with(turn)) {
            let turn = *next.key();
            let (id, key, outcome) = next.remove();
            tasks.push((id, key));
            together.push((turn, key, outcome));
        }
        let outcomes = self.gate.give(together)?;
        tasks.into_iter().zip(outcomes).try_for_each(|((id, key), outcome)| self.deliver(id, Some(key), outcome))
    }

    fn spawn(&mut self, run: Function, scope: String, role: Role, argument: LuaValue) -> Result<Id> {
        let id = self.next_id;
        self.next_id += 1;
        let thread =
            self.vm.lua.create_thread(self.vm.bridge.guard.clone()).map_err(|error| thrown::from_error(&error))?;
        self.tasks.insert(id, Task { thread, scope, role, finish: nothing, failed: None });
        self.ready.push_back((id, Answer::Begin(run, argument)));
        Ok(id)
    }

    /// Resumes a task until it asks for something or ends.
    fn step(&mut self, id: Id, answer: Answer) -> Result<Option<Ended>> {
        let Some(task) = self.tasks.get_mut(&id) else { return Ok(None) };
        task.finish = nothing;
        let thread = task.thread.clone();
        let arguments: [LuaValue; 2] = match answer {
            Answer::Begin(run, argument) => [LuaValue::Function(run), argument],
            Answer::Value(value) => [LuaValue::Boolean(true), value],
            Answer::Error(error) => [LuaValue::Boolean(false), error],
        };
        let arguments: MultiValue = arguments.into_iter().collect();
        let result = self.vm.step(|| thread.resume::<MultiValue>(arguments))?;
        match result {
            Ok(values) if thread.is_resumable() => self.asked(id, values.into_iter().next()),
            Ok(values) => {
                let mut values = values.into_iter();
                let fine = matches!(values.next(), Some(LuaValue::Boolean(true)));
                let value = values.next().unwrap_or(LuaValue::Nil);
                self.finished(id, if fine { Ok(value) } else { Err(value) })
            }
            Err(error) => {
                let failure = thrown::from_error(&error);
                let value = fault::to_lua(&self.vm.lua, &failure).map_err(|error| thrown::from_error(&error))?;
                self.finished(id, Err(LuaValue::Table(value)))
            }
        }
    }

    /// Takes what a task yielded to whoever can answer it.
    fn asked(&mut self, id: Id, yielded: Option<LuaValue>) -> Result<Option<Ended>> {
        let request = match &yielded {
            Some(LuaValue::UserData(data)) => data.borrow::<Yielded>().ok().and_then(|yielded| yielded.0.take()),
            _ => None,
        };
        match request {
            None => {
                let stray = Failure::new(Code::FlowError, "coroutine.yield was called outside of a coroutine");
                let value = fault::to_lua(&self.vm.lua, &stray).map_err(|error| thrown::from_error(&error))?;
                self.finished(id, Err(LuaValue::Table(value)))
            }
            Some(Request::Effect(effect, finish)) => {
                if let Some(task) = self.tasks.get_mut(&id) {
                    task.finish = finish;
                }
                self.admit(id, *effect).map(|()| None)
            }
            Some(Request::All { branches, settle }) => self.branch(id, branches, settle).map(|()| None),
            Some(Request::Scope { name, run, limit }) => self.scope(id, &name, run, limit).map(|()| None),
        }
    }

    fn admit(&mut self, id: Id, effect: Effect) -> Result<()> {
        let scope = self.tasks.get(&id).map_or("/", |task| task.scope.as_str()).to_owned();
        match self.gate.admit(&scope, effect)? {
            Admitted::Now(outcome) => self.deliver(id, None, outcome),
            Admitted::Recorded(turn, key, outcome) => {
                self.recorded.insert(turn, (id, key, outcome));
                Ok(())
            }
            Admitted::Live(live) => {
                self.start(id, live);
                Ok(())
            }
        }
    }

    fn start(&mut self, id: Id, Live { key, future, pulse, lasts, asks }: Live) {
        let (cancel, cancelled) = tokio::sync::oneshot::channel();
        self.waiting.insert(key, Waiting { id, cancel: Some(cancel), pulse, lasts, asks });
        self.live.push(
            async move {
                tokio::select! {
                    biased;
                    Ok(failure) = cancelled => (key, Err(failure)),
                    outcome = future => (key, outcome),
                }
            }
            .boxed_local(),
        );
    }

    /// Waits for live effects, writes the outcomes of all that are over, syncs once, and delivers them.
    /// Returns how the user ended the run, if they did.
    async fn wait(&mut self, interrupts: &mut dyn Interrupts) -> Result<Option<Failure>> {
        // Effects that are over at once would never let the runtime look for signals.
        tokio::task::yield_now().await;
        let began = Instant::now();
        let running: Vec<bool> = self.limits.iter().map(|limit| self.runs(&limit.scope)).collect();
        let mut limit = self.limits.iter().filter_map(|limit| self.ends(limit, began)).min();
        if let Some((until, failure)) = &self.deadline {
            match *until > tokio::time::Instant::now() {
                true => limit = Some(limit.map_or(*until, |limit| limit.min(*until))),
                // No outcome is written, so the run parks.
                false => self.cancel("/", &failure.clone()),
            }
        }
        let first = tokio::select! {
            biased;
            () = interrupts.next() => {
                self.stop(interrupts).await?;
                return Ok(Some(Failure::new(Code::Interrupted, "you ended it; nothing that was finished is lost")));
            }
            Some(over) = self.live.next() => over,
            () = tokio::time::sleep_until(limit.unwrap_or_else(Instant::now)), if limit.is_some() => {
                self.count_time(began, &running);
                self.time_out();
                return Ok(None);
            }
        };
        self.count_time(began, &running);
        let mut over = vec![first];
        if !self.live.is_empty() {
            // What came in meanwhile shares the sync.
            tokio::task::yield_now().await;
        }
        while let Some(Some(more)) = self.live.next().now_or_never() {
            over.push(more);
        }
        let mut outcomes = Vec::with_capacity(over.len());
        let mut interrupted = None;
        for (key, outcome) in over {
            let Some(Waiting { id, .. }) = self.waiting.remove(&key) else { continue };
            match outcome {
                // Nobody can answer now: no outcome is written, so that a resumed run asks again.
                Err(failure) if parks(failure.code) => self.parked = Some(failure),
                // Ctrl-C reached a question first. It counts for every branch.
                Err(failure) if failure.code == Code::Interrupted => interrupted = Some(failure),
                outcome => outcomes.push((id, key, outcome)),
            }
        }
        // Of an interrupted run the flow is given nothing any more.
        let given = if interrupted.is_some() { 0 } else { outcomes.len() };
        let mut answers = Vec::with_capacity(outcomes.len());
        for (at, (id, key, outcome)) in outcomes.into_iter().enumerate() {
            answers.push((id, key, self.gate.end(key, outcome, at + 1 != given)?));
        }
        if let Some(failure) = interrupted {
            self.stop(interrupts).await?;
            return Ok(Some(failure));
        }
        self.gate.sync()?;
        for (id, key, outcome) in answers {
            self.deliver(id, Some(key), outcome)?;
        }
        Ok(None)
    }

    /// Drops what is under way, as a kill does, but waits for what goes on by itself, unless it is interrupted again.
    /// Nothing is delivered: what is recorded is given back when the run is resumed, and the rest is done then.
    async fn stop(&mut self, interrupts: &mut dyn Interrupts) -> Result<()> {
        for waiting in self.waiting.values_mut().filter(|waiting| !waiting.lasts) {
            // A receiver that is gone has its outcome already.
            let _ = waiting.cancel.take().map(|cancel| cancel.send(Failure::new(Code::Interrupted, "interrupted")));
        }
        loop {
            tokio::select! {
                biased;
                () = interrupts.next() => break,
                over = self.live.next() => match over {
                    // A failure now may come from the interruption itself: what has become of it is looked at on resume.
                    Some((key, Ok(value))) if self.waiting.remove(&key).is_some() => {
                        _ = self.gate.end(key, Ok(value), true)?;
                    }
                    Some(_) => {}
                    None => break,
                },
            }
        }
        self.gate.sync()
    }

    /// Gives an outcome to the task that waits for it. `key` is that of a recorded effect.
    fn deliver(&mut self, id: Id, key: Option<Key>, outcome: Result<Value>) -> Result<()> {
        if let Some(task) = self.tasks.get_mut(&id) {
            match (&outcome, key) {
                (Err(failure), Some(key)) => task.failed = Some(Failed::new(vec![key], failure)),
                _ => task.failed.iter_mut().for_each(|failed| failed.went_on = true),
            }
        }
        let finish = self.tasks.get(&id).map_or(nothing as Finish, |task| task.finish);
        let answer = outcome.and_then(|value| finish(&self.vm.lua, &value).map_err(|error| thrown::from_error(&error)));
        self.answer(id, answer)
    }

    /// Returns the failures of effects that ended a task which raised this.
    fn escaped(&self, task: &Task, failure: &Failure) -> Vec<Key> {
        let same = |it: &&Failed| !it.went_on || it.code == failure.code && it.message == failure.message;
        task.failed.as_ref().filter(same).map(|failed| failed.keys.clone()).unwrap_or_default()
    }

    /// Notes what came up to a task from one that ended.
    fn came_up(&mut self, id: Id, keys: Vec<Key>, failure: Option<&Failure>) {
        if let Some(task) = self.tasks.get_mut(&id) {
            match failure {
                Some(failure) if !keys.is_empty() => task.failed = Some(Failed::new(keys, failure)),
                _ => task.failed.iter_mut().for_each(|failed| failed.went_on = true),
            }
        }
    }

    fn answer(&mut self, id: Id, answer: Result<LuaValue>) -> Result<()> {
        let answer = match answer {
            Ok(value) => Answer::Value(value),
            Err(failure) => match fault::to_lua(&self.vm.lua, &failure) {
                Ok(table) => Answer::Error(LuaValue::Table(table)),
                Err(error) => return Err(thrown::from_error(&error)),
            },
        };
        self.ready.push_back((id, answer));
        Ok(())
    }

    fn branch(&mut self, id: Id, branches: Vec<(String, Function)>, settle: bool) -> Result<()> {
        let parent = self.tasks.get(&id).map_or("/", |task| task.scope.as_str()).to_owned();
        self.gatherings
            .insert(id, Gathering { left: branches.len(), settle, results: BTreeMap::new(), escaped: Vec::new() });
        if branches.is_empty() {
            return self.gathered(id);
        }
        for (name, run) in branches {
            let scope = self.gate.scope(&parent, &name);
            self.spawn(run, scope, Role::Branch { of: id, name }, LuaValue::Nil)?;
        }
        Ok(())
    }

    fn scope(&mut self, id: Id, name: &str, run: Function, limit: Option<Limited>) -> Result<()> {
        let parent = self.tasks.get(&id).map_or("/", |task| task.scope.as_str()).to_owned();
        let scope = self.gate.scope(&parent, name);
        self.spawn(run, scope.clone(), Role::Scoped { of: id }, LuaValue::Nil)?;
        if let Some(limit) = limit {
            let kind = match limit {
                Limited::Whole(seconds) => {
                    let used = self.gate.used(&scope);
                    LimitKind::Whole { left: Duration::from_secs_f64(seconds).saturating_sub(used) }
                }
                Limited::Silence(seconds) => LimitKind::Silence(Duration::from_secs_f64(seconds)),
            };
            self.limits.push(Limit { scope, kind });
        }
        Ok(())
    }

    fn finished(&mut self, id: Id, result: std::result::Result<LuaValue, LuaValue>) -> Result<Option<Ended>> {
        let Some(task) = self.tasks.remove(&id) else { return Ok(None) };
        let failure = result.as_ref().err().map(|raised| self.failure(raised));
        let escaped = failure.as_ref().map(|failure| self.escaped(&task, failure)).unwrap_or_default();
        match task.role {
            Role::Root => Ok(Some(match (result, failure) {
                (Ok(value), _) => Ended::Returned(value),
                (Err(raised), failure) => {
                    self.gate.void(escaped);
                    Ended::Raised(failure.unwrap_or_else(|| self.failure(&raised)))
                }
            })),
            Role::Scoped { of } => {
                self.limits.retain(|limit| limit.scope != task.scope);
                self.came_up(of, escaped, failure.as_ref());
                self.ready.push_back((of, plain(result)));
                Ok(None)
            }
            Role::Branch { of, name } => {
                if let Some(gathering) = self.gatherings.get_mut(&of) {
                    gathering.left -= 1;
                    gathering.escaped.extend(escaped);
                    gathering.results.insert(name, result.map_err(|raised| unwrap_problem(&raised)));
                    if gathering.left == 0 {
                        self.gathered(of)?;
                    }
                }
                Ok(None)
            }
        }
    }

    /// All branches of a task are over: gives it their results, or the first error by name.
    fn gathered(&mut self, id: Id) -> Result<()> {
        let Some(gathering) = self.gatherings.remove(&id) else { return Ok(()) };
        let lua = &self.vm.lua;
        let build = || -> mlua::Result<std::result::Result<LuaValue, LuaValue>> {
            let table = lua.create_table()?;
            for (name, result) in &gathering.results {
                match result {
                    Ok(value) if gathering.settle => {
                        let settled: Table = lua.create_table()?;
                        settled.raw_set("ok", true)?;
                        settled.raw_set("value", value.clone())?;
                        table.raw_set(name.as_str(), settled)?;
                    }
                    Err(error) if gathering.settle => {
                        let settled: Table = lua.create_table()?;
                        settled.raw_set("ok", false)?;
                        settled.raw_set("error", error.clone())?;
                        table.raw_set(name.as_str(), settled)?;
                    }
                    Ok(value) => table.raw_set(name.as_str(), value.clone())?,
                    Err(error) => return Ok(Err(error.clone())),
                }
            }
            Ok(Ok(LuaValue::Table(table)))
        };
        let answer = build().map_err(|error| thrown::from_error(&error))?;
        let failure = answer.as_ref().err().map(|raised| self.failure(raised));
        self.came_up(id, gathering.escaped, failure.as_ref());
        self.ready.push_back((id, plain(answer)));
        Ok(())
    }

    /// Returns the failure of what `guard` caught: the problem with its trace.
    fn failure(&self, raised: &LuaValue) -> Failure {
        let trace = match raised {
            LuaValue::Table(table) => table.raw_get::<Option<String>>("trace").ok().flatten().unwrap_or_default(),
            _ => String::new(),
        };
        fault::from_lua(&self.vm.lua, &unwrap_problem(raised), &trace)
    }
}

/// Returns what was raised, without the trace that `guard` put beside it.
fn unwrap_problem(raised: &LuaValue) -> LuaValue {
    match raised {
        LuaValue::Table(table) if table.contains_key("trace").unwrap_or(false) && table.metatable().is_none() => {
            table.raw_get("problem").unwrap_or(LuaValue::Nil)
        }
        other => other.clone(),
    }
}

/// Returns the answer that a parent gets of a child's result.
fn plain(result: std::result::Result<LuaValue, LuaValue>) -> Answer {
    match result {
        Ok(value) => Answer::Value(value),
        Err(raised) => Answer::Error(unwrap_problem(&raised)),
    }
}

/// Returns whether a run waits with this failure rather than fails.
fn parks(code: Code) -> bool {
    matches!(code, Code::AnswerMissing | Code::BudgetUsedUp)
}
