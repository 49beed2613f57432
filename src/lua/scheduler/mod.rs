//! Runs a flow and its tasks: resumes each until it yields a request, takes the request to the gate, and resumes
//! the task with the outcome.
//!
//! A flow gets outcomes when all of its tasks wait: all that have arrived, together. The journal records which
//! outcomes were given together and in which order, and a resumed run gives them in the same way. So tasks that
//! share a table see the same interleaving again.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::{FutureExt, LocalBoxFuture};
use futures_util::stream::{FuturesUnordered, StreamExt};
use mlua::{Function, MultiValue, Table, Thread, Value as LuaValue};
use serde_json::Value;
use tokio::time::Instant;

use crate::engine::gate::{Admission, Gate, LiveEffect};
use crate::engine::history::DeliverySlot;
use crate::engine::world::Heartbeat;
use crate::error::{Code, Failure, Result};
use crate::journal::key::EffectKey;
use crate::lua::request::{OutcomeToLua, Request, ScopeLimit, TaskName, outcome_to_nil};
use crate::lua::vm::{Vm, YieldedRequest};
use crate::lua::{api, error_values, vm_errors};
use crate::model::effect::Effect;
use crate::model::event::RunVerdict;

mod failures;
mod limits;

use failures::TaskFailure;
use limits::{Limit, LimitKind};

/// How a flow ended.
pub enum LuaOutcome {
    Returned(LuaValue, Option<RunVerdict>),
    Raised(Failure),
    /// The run waits for something that only the user or time can give, and has nothing else left to do.
    Parked(Failure),
    /// The user ended the run. The flow was told nothing, and the effects that were under way have no outcome.
    Interrupted(Failure),
}

/// The user's requests to end the run: Ctrl-C, and the other signals that ask a process to end.
pub trait Interrupts {
    /// Resolves at each request.
    fn next(&mut self) -> LocalBoxFuture<'_, ()>;
}

type Id = usize;

struct FlowTask {
    thread: Thread,
    scope: String,
    role: TaskRole,
    finish: OutcomeToLua,
    /// The last failures that the task was given, until it has shown that it goes on.
    failed: Option<TaskFailure>,
    /// The model calls of the task, in order.
    calls: Vec<EffectKey>,
}

/// Who waits for a task's result.
enum TaskRole {
    Root,
    /// `at` is its place among the tasks.
    Child {
        of: Id,
        at: usize,
        name: TaskName,
    },
    Scoped {
        of: Id,
    },
}

/// What a task is resumed with.
enum TaskInput {
    Begin(Function, LuaValue),
    Value(LuaValue),
    Error(LuaValue),
}

/// A live effect that a task waits for.
struct PendingEffect {
    id: Id,
    cancel: Option<tokio::sync::oneshot::Sender<Failure>>,
    heartbeat: Heartbeat,
    /// The effect runs to its end, even if nobody waits for it any more.
    lasts: bool,
    /// The effect asks a person.
    asks: bool,
    /// The flow may stop it.
    stoppable: bool,
}

/// A parent that waits for its tasks.
struct Gathering {
    left: usize,
    settle: bool,
    /// By their place among the tasks.
    results: BTreeMap<usize, (TaskName, std::result::Result<LuaValue, LuaValue>)>,
    /// The failures of effects that ended tasks.
    escaped: Vec<EffectKey>,
}

/// Runs one function of a flow to its end.
pub struct Scheduler<'a> {
    vm: &'a Vm,
    gate: Rc<Gate>,
    tasks: HashMap<Id, FlowTask>,
    next_id: Id,
    ready: VecDeque<(Id, TaskInput)>,
    /// The outcomes of earlier processes that tasks wait for.
    recorded: BTreeMap<DeliverySlot, (Id, EffectKey, Result<Value>)>,
    live: FuturesUnordered<LocalBoxFuture<'static, (EffectKey, Result<Value>)>>,
    /// The task that waits for each live effect.
    waiting: HashMap<EffectKey, PendingEffect>,
    limits: Vec<Limit>,
    /// When the time of the whole run is over, and the failure to give then.
    deadline: Option<(tokio::time::Instant, Failure)>,
    gatherings: HashMap<Id, Gathering>,
    parked: Option<Failure>,
    /// The last one that the flow gave.
    verdict: Option<RunVerdict>,
    /// The model calls that brought no reply that can be used.
    unusable: Vec<EffectKey>,
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
            verdict: None,
            unusable: Vec::new(),
        }
    }

    /// Runs `run(argument)` to its end.
    ///
    /// # Errors
    ///
    /// The host itself cannot go on: `flow-limit` if the flow used up its time, or a failure of the disk.
    pub async fn run(
        mut self,
        run: Function,
        argument: LuaValue,
        interrupts: &mut dyn Interrupts,
    ) -> Result<LuaOutcome> {
        self.vm.restart_clock();
        let outcome = self.drive(run, argument, interrupts).await;
        self.vm.watchdog.disarm();
        outcome
    }

    async fn drive(
        &mut self,
        run: Function,
        argument: LuaValue,
        interrupts: &mut dyn Interrupts,
    ) -> Result<LuaOutcome> {
        let root = self.spawn(run, "/".to_owned(), TaskRole::Root, argument)?;
        debug_assert_eq!(root, 0);
        loop {
            if let Some((id, answer)) = self.ready.pop_front() {
                if let Some(outcome) = self.step(id, answer)? {
                    return Ok(outcome);
                }
            } else if let Some((slot, _)) = self.recorded.first_key_value() {
                let slot = *slot;
                self.vm.restart_clock();
                self.give_back(slot)?;
            } else if self.live.is_empty() {
                let stuck = || Failure::new(Code::Internal, "no task of the flow can go on");
                return Ok(LuaOutcome::Parked(self.parked.take().unwrap_or_else(stuck)));
            } else {
                self.vm.watchdog.disarm();
                if let Some(failure) = self.wait(interrupts).await? {
                    return Ok(LuaOutcome::Interrupted(failure));
                }
                self.vm.restart_clock();
            }
        }
    }

    /// Gives the flow all recorded outcomes that an earlier process gave together with that of `slot`.
    fn give_back(&mut self, slot: DeliverySlot) -> Result<()> {
        let (mut tasks, mut together) = (Vec::new(), Vec::new());
        while let Some(next) = self.recorded.first_entry().filter(|next| next.key().is_with(slot)) {
            let slot = *next.key();
            let (id, key, outcome) = next.remove();
            tasks.push((id, key));
            together.push((slot, key, outcome));
        }
        let outcomes = self.gate.deliver_recorded(together)?;
        tasks.into_iter().zip(outcomes).try_for_each(|((id, key), outcome)| self.deliver(id, Some(key), outcome))
    }

    fn spawn(&mut self, run: Function, scope: String, role: TaskRole, argument: LuaValue) -> Result<Id> {
        let id = self.next_id;
        self.next_id += 1;
        let thread =
            self.vm.lua.create_thread(self.vm.bridge.guard.clone()).map_err(|error| vm_errors::from_error(&error))?;
        self.tasks
            .insert(id, FlowTask { thread, scope, role, finish: outcome_to_nil, failed: None, calls: Vec::new() });
        self.ready.push_back((id, TaskInput::Begin(run, argument)));
        Ok(id)
    }

    /// Resumes a task until it yields a request or ends.
    fn step(&mut self, id: Id, answer: TaskInput) -> Result<Option<LuaOutcome>> {
        let Some(task) = self.tasks.get_mut(&id) else { return Ok(None) };
        task.finish = outcome_to_nil;
        let thread = task.thread.clone();
        let arguments: [LuaValue; 2] = match answer {
            TaskInput::Begin(run, argument) => [LuaValue::Function(run), argument],
            TaskInput::Value(value) => [LuaValue::Boolean(true), value],
            TaskInput::Error(error) => [LuaValue::Boolean(false), error],
        };
        let arguments: MultiValue = arguments.into_iter().collect();
        let result = self.vm.step(|| thread.resume::<MultiValue>(arguments))?;
        match result {
            Ok(values) if thread.is_resumable() => self.handle_request(id, values.into_iter().next()),
            Ok(values) => {
                let mut values = values.into_iter();
                let succeeded = matches!(values.next(), Some(LuaValue::Boolean(true)));
                let value = values.next().unwrap_or(LuaValue::Nil);
                self.finish_task(id, if succeeded { Ok(value) } else { Err(value) })
            }
            Err(error) => {
                let failure = vm_errors::from_error(&error);
                let value =
                    error_values::to_lua(&self.vm.lua, &failure).map_err(|error| vm_errors::from_error(&error))?;
                self.finish_task(id, Err(LuaValue::Table(value)))
            }
        }
    }

    /// Handles the request that a task yielded.
    fn handle_request(&mut self, id: Id, yielded: Option<LuaValue>) -> Result<Option<LuaOutcome>> {
        let request = match &yielded {
            Some(LuaValue::UserData(data)) => data.borrow::<YieldedRequest>().ok().and_then(|yielded| yielded.0.take()),
            _ => None,
        };
        match request {
            None => {
                let stray = Failure::new(Code::FlowError, "coroutine.yield was called outside of a coroutine");
                let value =
                    error_values::to_lua(&self.vm.lua, &stray).map_err(|error| vm_errors::from_error(&error))?;
                self.finish_task(id, Err(LuaValue::Table(value)))
            }
            Some(Request::Effect(effect, finish)) => {
                if let Some(task) = self.tasks.get_mut(&id) {
                    task.finish = finish;
                }
                self.admit(id, *effect).map(|()| None)
            }
            Some(Request::Verdict(verdict)) => {
                self.verdict = Some(verdict);
                self.answer(id, Ok(LuaValue::Nil)).map(|()| None)
            }
            Some(Request::Unusable { calls, why }) => {
                self.note_unusable(id, calls, why);
                self.answer(id, Ok(LuaValue::Nil)).map(|()| None)
            }
            Some(Request::Stop(name)) => self.stop_scopes(id, &name).map(|()| None),
            Some(Request::All { tasks, settle }) => self.spawn_all(id, tasks, settle).map(|()| None),
            Some(Request::Scope { name, run, limit }) => self.scope(id, &name, run, limit).map(|()| None),
        }
    }

    fn admit(&mut self, id: Id, effect: Effect) -> Result<()> {
        let scope = self.tasks.get(&id).map_or("/", |task| task.scope.as_str()).to_owned();
        let stoppable = effect.facts().can_be_stopped();
        if stoppable && self.is_stopped(&scope) {
            return self.deliver(id, None, Err(limits::stopped()));
        }
        let is_call = matches!(effect, Effect::Chat(_));
        let admission = self.gate.admit(&scope, effect)?;
        if let (Admission::Recorded(_, key, _) | Admission::Live(LiveEffect { key, .. }), true) = (&admission, is_call)
            && let Some(task) = self.tasks.get_mut(&id)
        {
            task.calls.push(*key);
        }
        match admission {
            Admission::Now(outcome) => self.deliver(id, None, outcome),
            Admission::Recorded(slot, key, outcome) => {
                self.recorded.insert(slot, (id, key, outcome));
                Ok(())
            }
            Admission::Live(live) => {
                self.start(id, live, stoppable);
                Ok(())
            }
        }
    }

    fn start(&mut self, id: Id, LiveEffect { key, future, heartbeat, lasts, asks }: LiveEffect, stoppable: bool) {
        let (cancel, cancelled) = tokio::sync::oneshot::channel();
        self.waiting.insert(key, PendingEffect { id, cancel: Some(cancel), heartbeat, lasts, asks, stoppable });
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

    /// Waits for live effects, records the outcomes of all that are complete, syncs once, and delivers the outcomes.
    /// Returns the failure of an interruption, if the user ended the run.
    async fn wait(&mut self, interrupts: &mut dyn Interrupts) -> Result<Option<Failure>> {
        // Effects that complete at once would never let the runtime look for signals.
        tokio::task::yield_now().await;
        let began = Instant::now();
        let running: Vec<bool> = self.limits.iter().map(|limit| self.is_running(&limit.scope)).collect();
        let mut limit = self.limits.iter().filter_map(|limit| self.limit_deadline(limit, began)).min();
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
            Some(completed) = self.live.next() => completed,
            () = tokio::time::sleep_until(limit.unwrap_or_else(Instant::now)), if limit.is_some() => {
                self.count_time(began, &running);
                self.time_out();
                return Ok(None);
            }
        };
        self.count_time(began, &running);
        let mut completed = vec![first];
        if !self.live.is_empty() {
            // Effects that complete meanwhile share the sync.
            tokio::task::yield_now().await;
        }
        while let Some(Some(more)) = self.live.next().now_or_never() {
            completed.push(more);
        }
        let mut outcomes = Vec::with_capacity(completed.len());
        let mut interrupted = None;
        for (key, outcome) in completed {
            let Some(PendingEffect { id, .. }) = self.waiting.remove(&key) else { continue };
            match outcome {
                // Nobody can answer now: no outcome is written, so that a resumed run asks again.
                Err(failure) if is_parking(failure.code) => self.parked = Some(failure),
                // A question noticed Ctrl-C first. It ends every task.
                Err(failure) if failure.code == Code::Interrupted => interrupted = Some(failure),
                outcome => outcomes.push((id, key, outcome)),
            }
        }
        // The flow of an interrupted run gets no more outcomes.
        let given = if interrupted.is_some() { 0 } else { outcomes.len() };
        let mut answers = Vec::with_capacity(outcomes.len());
        for (at, (id, key, outcome)) in outcomes.into_iter().enumerate() {
            answers.push((id, key, self.gate.record_outcome(key, outcome, at + 1 != given)?));
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

    /// Drops the live effects, as a kill does, but waits for those that run to their end, unless the user interrupts
    /// again. Delivers nothing: a resumed run gets what is recorded, and performs the rest.
    async fn stop(&mut self, interrupts: &mut dyn Interrupts) -> Result<()> {
        for waiting in self.waiting.values_mut().filter(|waiting| !waiting.lasts) {
            // A receiver that is gone has its outcome already.
            let _ = waiting.cancel.take().map(|cancel| cancel.send(Failure::new(Code::Interrupted, "interrupted")));
        }
        loop {
            tokio::select! {
                biased;
                () = interrupts.next() => break,
                completed = self.live.next() => match completed {
                    // A failure now may come from the interruption itself: resume checks what became of the effect.
                    Some((key, Ok(value))) if self.waiting.remove(&key).is_some() => {
                        _ = self.gate.record_outcome(key, Ok(value), true)?;
                    }
                    Some(_) => {}
                    None => break,
                },
            }
        }
        self.gate.sync()
    }

    /// Gives an outcome to the task that waits for it. `key` is the effect's, if the journal has the effect.
    fn deliver(&mut self, id: Id, key: Option<EffectKey>, outcome: Result<Value>) -> Result<()> {
        let finish = self.tasks.get(&id).map_or(outcome_to_nil as OutcomeToLua, |task| task.finish);
        // A child that failed is recorded with what it used, and raises its failure all the same.
        let is_child = outcome.as_ref().is_ok_and(|value| value.get(api::CHILD_FAILURE).is_some());
        let raises = is_child || outcome.is_err();
        let answer =
            outcome.and_then(|value| finish(&self.vm.lua, &value).map_err(|error| vm_errors::from_error(&error)));
        // What a child was told that nobody can use is asked again where a call of this run's own would be.
        if is_child && matches!(&answer, Err(failure) if failure.code == Code::ReplyInvalid) {
            self.unusable.extend(key);
        }
        if let Some(task) = self.tasks.get_mut(&id) {
            match (&answer, key) {
                (Err(failure), Some(key)) if raises => task.failed = Some(TaskFailure::new(vec![key], failure)),
                _ => task.failed.iter_mut().for_each(|failed| failed.went_on = true),
            }
        }
        self.answer(id, answer)
    }

    fn answer(&mut self, id: Id, answer: Result<LuaValue>) -> Result<()> {
        let answer = match answer {
            Ok(value) => TaskInput::Value(value),
            Err(failure) => match error_values::to_lua(&self.vm.lua, &failure) {
                Ok(table) => TaskInput::Error(LuaValue::Table(table)),
                Err(error) => return Err(vm_errors::from_error(&error)),
            },
        };
        self.ready.push_back((id, answer));
        Ok(())
    }

    fn spawn_all(&mut self, id: Id, tasks: Vec<(TaskName, Function)>, settle: bool) -> Result<()> {
        let parent = self.tasks.get(&id).map_or("/", |task| task.scope.as_str()).to_owned();
        self.gatherings
            .insert(id, Gathering { left: tasks.len(), settle, results: BTreeMap::new(), escaped: Vec::new() });
        if tasks.is_empty() {
            return self.finish_gathering(id);
        }
        for (at, (name, run)) in tasks.into_iter().enumerate() {
            let scope = self.gate.scope(&parent, &name.to_string());
            self.spawn(run, scope, TaskRole::Child { of: id, at, name }, LuaValue::Nil)?;
        }
        Ok(())
    }

    fn scope(&mut self, id: Id, name: &str, run: Function, limit: Option<ScopeLimit>) -> Result<()> {
        let parent = self.tasks.get(&id).map_or("/", |task| task.scope.as_str()).to_owned();
        let scope = self.gate.scope(&parent, name);
        self.spawn(run, scope.clone(), TaskRole::Scoped { of: id }, LuaValue::Nil)?;
        if let Some(limit) = limit {
            let kind = match limit {
                ScopeLimit::Whole(seconds) => {
                    let used = self.gate.used_time(&scope);
                    LimitKind::Whole { left: Duration::from_secs_f64(seconds).saturating_sub(used) }
                }
                ScopeLimit::Silence(seconds) => LimitKind::Silence(Duration::from_secs_f64(seconds)),
                ScopeLimit::Stoppable => LimitKind::Stoppable { name: name.to_owned(), stopped: false },
            };
            self.limits.push(Limit { scope, kind });
        }
        Ok(())
    }

    fn finish_task(&mut self, id: Id, result: std::result::Result<LuaValue, LuaValue>) -> Result<Option<LuaOutcome>> {
        let Some(task) = self.tasks.remove(&id) else { return Ok(None) };
        let failure = result.as_ref().err().map(|raised| self.failure(raised));
        let escaped = failure.as_ref().map(|failure| self.escaped_failures(&task, failure)).unwrap_or_default();
        match task.role {
            TaskRole::Root => Ok(Some(match (result, failure) {
                (Ok(value), _) => {
                    // A fork asks for them again; the run that is done stays as it is.
                    self.gate.set_void(std::mem::take(&mut self.unusable));
                    LuaOutcome::Returned(value, self.verdict.take())
                }
                (Err(raised), failure) => {
                    let by_reply = failure.as_ref().is_some_and(|failure| failure.code == Code::ReplyInvalid);
                    let unusable = escaped.is_empty() && by_reply;
                    self.gate.set_void(if unusable { std::mem::take(&mut self.unusable) } else { escaped });
                    LuaOutcome::Raised(failure.unwrap_or_else(|| self.failure(&raised)))
                }
            })),
            TaskRole::Scoped { of } => {
                self.limits.retain(|limit| limit.scope != task.scope);
                self.note_escaped(of, escaped, failure.as_ref());
                self.ready.push_back((of, result_to_input(result)));
                Ok(None)
            }
            TaskRole::Child { of, at, name } => {
                let result = result.map_err(|raised| match api::is_written_for(&self.vm.lua, 2) {
                    true => self.error_value(&raised),
                    false => unwrap_problem(&raised),
                });
                if let Some(gathering) = self.gatherings.get_mut(&of) {
                    gathering.left -= 1;
                    gathering.escaped.extend(escaped);
                    gathering.results.insert(at, (name, result));
                    if gathering.left == 0 {
                        self.finish_gathering(of)?;
                    }
                }
                Ok(None)
            }
        }
    }

    /// Gives a task the results of its tasks, which have all ended, or the first error by name.
    fn finish_gathering(&mut self, id: Id) -> Result<()> {
        let Some(gathering) = self.gatherings.remove(&id) else { return Ok(()) };
        let lua = &self.vm.lua;
        let build = || -> mlua::Result<std::result::Result<LuaValue, LuaValue>> {
            let table = lua.create_table()?;
            for (name, result) in gathering.results.values() {
                let name = match name {
                    TaskName::Named(name) => LuaValue::String(lua.create_string(name)?),
                    TaskName::Item(index) => LuaValue::Integer(*index),
                };
                match result {
                    Ok(value) if gathering.settle => {
                        let settled: Table = lua.create_table()?;
                        settled.raw_set("ok", true)?;
                        settled.raw_set("value", value.clone())?;
                        table.raw_set(name, settled)?;
                    }
                    Err(error) if gathering.settle => {
                        let settled: Table = lua.create_table()?;
                        settled.raw_set("ok", false)?;
                        settled.raw_set("error", error.clone())?;
                        table.raw_set(name, settled)?;
                    }
                    Ok(value) => table.raw_set(name, value.clone())?,
                    Err(error) => return Ok(Err(error.clone())),
                }
            }
            Ok(Ok(LuaValue::Table(table)))
        };
        let answer = build().map_err(|error| vm_errors::from_error(&error))?;
        let failure = answer.as_ref().err().map(|raised| self.failure(raised));
        self.note_escaped(id, gathering.escaped, failure.as_ref());
        self.ready.push_back((id, result_to_input(answer)));
        Ok(())
    }

    /// Returns the error value for what `guard` caught: a table that was raised as it is, anything else as one of the host's.
    fn error_value(&self, raised: &LuaValue) -> LuaValue {
        match unwrap_problem(raised) {
            table @ LuaValue::Table(_) => table,
            other => error_values::to_lua(&self.vm.lua, &self.failure(raised)).map_or(other, LuaValue::Table),
        }
    }

    /// Returns the failure for what `guard` caught: a problem with its traceback.
    fn failure(&self, raised: &LuaValue) -> Failure {
        let trace = match raised {
            LuaValue::Table(table) => table.raw_get::<Option<String>>("trace").ok().flatten().unwrap_or_default(),
            _ => String::new(),
        };
        error_values::from_lua(&self.vm.lua, &unwrap_problem(raised), &trace)
    }
}

/// Returns what was raised, without the traceback that `guard` added.
fn unwrap_problem(raised: &LuaValue) -> LuaValue {
    match raised {
        LuaValue::Table(table) if table.contains_key("trace").unwrap_or(false) && table.metatable().is_none() => {
            table.raw_get("problem").unwrap_or(LuaValue::Nil)
        }
        other => other.clone(),
    }
}

/// Returns what a parent is resumed with after a child's result.
fn result_to_input(result: std::result::Result<LuaValue, LuaValue>) -> TaskInput {
    match result {
        Ok(value) => TaskInput::Value(value),
        Err(raised) => TaskInput::Error(unwrap_problem(&raised)),
    }
}

/// Tells whether a run parks on this failure instead of failing.
fn is_parking(code: Code) -> bool {
    matches!(code, Code::AnswerMissing | Code::BudgetUsedUp | Code::RunAwaited)
}
