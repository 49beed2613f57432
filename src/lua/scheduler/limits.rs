//! What ends the effects of a scope before they are over: limits of time, and the flow itself.

use std::time::Duration;

use mlua::Value as LuaValue;
use tokio::time::Instant;

use super::{Id, PendingEffect, Scheduler};
use crate::engine::process::is_inside;
use crate::error::{Code, Failure, Result};

/// The limit of a scope. When it is over, live effects in the scope are cancelled.
pub(super) struct Limit {
    pub(super) scope: String,
    pub(super) kind: LimitKind,
}

pub(super) enum LimitKind {
    /// What is left of the time for all effects of the scope together. Waiting for a person takes none of it.
    Whole {
        left: Duration,
    },
    Silence(Duration),
    /// The flow may stop it by this name, and then it stays stopped.
    Stoppable {
        name: String,
        stopped: bool,
    },
}

/// Returns the failure of what the flow has stopped.
pub(super) fn stopped() -> Failure {
    Failure::new(Code::Stopped, "it was stopped: nobody needs its result any more")
}

impl Scheduler<'_> {
    /// Returns when a limit will be over if nothing changes. A scope in which nothing waits is not silent.
    pub(super) fn limit_deadline(&self, limit: &Limit, now: Instant) -> Option<Instant> {
        match &limit.kind {
            LimitKind::Whole { left } => self.is_running(&limit.scope).then(|| now + *left),
            LimitKind::Silence(silence) => {
                let inside = self.waiting.values().filter(|waiting| self.waits_in(waiting, &limit.scope));
                inside
                    .filter(|waiting| !self.has_inner_silence(waiting, &limit.scope))
                    .filter(|waiting| waiting.cancel.is_some())
                    .map(|waiting| waiting.heartbeat.last() + *silence)
                    .min()
            }
            LimitKind::Stoppable { .. } => None,
        }
    }

    /// Tells whether a scope has a live effect that uses up its time, which a question to a person does not.
    pub(super) fn is_running(&self, scope: &str) -> bool {
        self.waiting.values().any(|waiting| !waiting.asks && waiting.cancel.is_some() && self.waits_in(waiting, scope))
    }

    /// Subtracts the wait since `began` from what is left of the time of the scopes that were running.
    pub(super) fn count_time(&mut self, began: Instant, running: &[bool]) {
        let took = began.elapsed();
        for (limit, _) in self.limits.iter_mut().zip(running).filter(|(_, is_running)| **is_running) {
            if let LimitKind::Whole { left } = &mut limit.kind {
                *left = left.saturating_sub(took);
            }
        }
    }

    /// Tells whether an effect is in a scope within this one that has a limit of silence of its own.
    fn has_inner_silence(&self, waiting: &PendingEffect, scope: &str) -> bool {
        self.limits.iter().any(|inner| {
            matches!(inner.kind, LimitKind::Silence(_))
                && inner.scope != scope
                && is_inside(&inner.scope, scope)
                && self.waits_in(waiting, &inner.scope)
        })
    }

    fn waits_in(&self, waiting: &PendingEffect, scope: &str) -> bool {
        self.tasks.get(&waiting.id).is_some_and(|task| is_inside(&task.scope, scope))
    }

    /// Cancels with `timed-out` the live effects of each scope whose limit is over.
    pub(super) fn time_out(&mut self) {
        let now = Instant::now();
        let expired: Vec<(String, String)> = self
            .limits
            .iter()
            .filter(|limit| self.limit_deadline(limit, now).is_some_and(|until| until <= now))
            .map(|limit| {
                let why = match &limit.kind {
                    LimitKind::Silence(silence) => format!("nothing happened for {} s", silence.as_secs_f64()),
                    LimitKind::Whole { .. } | LimitKind::Stoppable { .. } => {
                        "the time limit of this task is over".to_owned()
                    }
                };
                (limit.scope.clone(), why)
            })
            .collect();
        for (scope, why) in expired {
            self.cancel(&scope, &Failure::new(Code::TimedOut, why));
        }
    }

    /// Stops all scopes that the flow calls by this name: what they wait for of others ends, and nothing like it begins there.
    /// The task that asks for it goes on at once.
    ///
    /// No line of the journal says so. The flow does it again at the same place, and whatever it ended has its outcome, or was
    /// not performed since: outcomes of earlier processes come before any effect is performed.
    pub(super) fn stop_scopes(&mut self, by: Id, wanted: &str) -> Result<()> {
        let mut scopes = Vec::new();
        for limit in &mut self.limits {
            if let LimitKind::Stoppable { name, stopped } = &mut limit.kind
                && name == wanted
            {
                *stopped = true;
                scopes.push(limit.scope.clone());
            }
        }
        for waiting in self.waiting.values_mut().filter(|waiting| waiting.stoppable) {
            let scope = self.tasks.get(&waiting.id).map_or("/", |task| task.scope.as_str());
            if scopes.iter().any(|stopped| is_inside(scope, stopped))
                && let Some(cancel) = waiting.cancel.take()
            {
                // A receiver that is gone has its outcome already.
                let _ = cancel.send(stopped());
            }
        }
        self.answer(by, Ok(LuaValue::Nil))
    }

    /// Tells whether the flow has stopped a scope around this one, or this one itself.
    pub(super) fn is_stopped(&self, scope: &str) -> bool {
        self.limits.iter().any(|limit| {
            matches!(limit.kind, LimitKind::Stoppable { stopped: true, .. }) && is_inside(scope, &limit.scope)
        })
    }

    /// Cancels the live effects in a scope: each ends with the failure.
    pub(super) fn cancel(&mut self, scope: &str, failure: &Failure) {
        for waiting in self.waiting.values_mut() {
            let inside = self.tasks.get(&waiting.id).is_some_and(|task| is_inside(&task.scope, scope));
            if inside && let Some(cancel) = waiting.cancel.take() {
                // A receiver that is gone has its outcome already.
                let _ = cancel.send(failure.clone());
            }
        }
    }
}
