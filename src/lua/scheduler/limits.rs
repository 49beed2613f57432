//! Limits on what a scope may take: live effects in it are over when its time is.

use std::time::Duration;

use tokio::time::Instant;

use super::{PendingEffect, Scheduler};
use crate::engine::process::is_inside;
use crate::error::{Code, Failure};

/// A limit of a scope: live effects in it are over when it is.
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
}

impl Scheduler<'_> {
    /// Returns when a limit is over, as things stand. A scope in which nothing waits is not silent.
    pub(super) fn limit_deadline(&self, limit: &Limit, now: Instant) -> Option<Instant> {
        match limit.kind {
            LimitKind::Whole { left } => self.is_running(&limit.scope).then(|| now + left),
            LimitKind::Silence(silence) => {
                let inside = self.waiting.values().filter(|waiting| self.waits_in(waiting, &limit.scope));
                inside
                    .filter(|waiting| waiting.cancel.is_some())
                    .map(|waiting| waiting.heartbeat.last() + silence)
                    .min()
            }
        }
    }

    /// Tells whether something is under way in a scope that takes of its time.
    pub(super) fn is_running(&self, scope: &str) -> bool {
        self.waiting.values().any(|waiting| !waiting.asks && waiting.cancel.is_some() && self.waits_in(waiting, scope))
    }

    /// Takes off what the wait since `began` took of the time of scopes.
    pub(super) fn count_time(&mut self, began: Instant, running: &[bool]) {
        let took = began.elapsed();
        for (limit, _) in self.limits.iter_mut().zip(running).filter(|(_, runs)| **runs) {
            if let LimitKind::Whole { left } = &mut limit.kind {
                *left = left.saturating_sub(took);
            }
        }
    }

    fn waits_in(&self, waiting: &PendingEffect, scope: &str) -> bool {
        self.tasks.get(&waiting.id).is_some_and(|task| is_inside(&task.scope, scope))
    }

    /// Gives `timed-out` to all that waits in a scope whose limit is over.
    pub(super) fn time_out(&mut self) {
        let now = Instant::now();
        let over: Vec<(String, String)> = self
            .limits
            .iter()
            .filter(|limit| self.limit_deadline(limit, now).is_some_and(|until| until <= now))
            .map(|limit| {
                let why = match limit.kind {
                    LimitKind::Whole { .. } => "the time limit of this branch is over".to_owned(),
                    LimitKind::Silence(silence) => format!("nothing happened for {} s", silence.as_secs_f64()),
                };
                (limit.scope.clone(), why)
            })
            .collect();
        for (scope, why) in over {
            self.cancel(&scope, &Failure::new(Code::TimedOut, why));
        }
    }

    /// Drops the live effects in a scope; each comes back with the failure.
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
