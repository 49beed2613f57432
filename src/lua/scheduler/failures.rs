//! Which failed effects a task ended with, so that a later process tries them again.

use super::{FlowTask, Id, Scheduler};
use crate::error::{Code, Failure};
use crate::journal::key::EffectKey;

/// Failures of effects that reached a task: of its own effects, or of those that ended a task it waits for.
#[derive(Clone)]
pub(super) struct TaskFailure {
    pub(super) keys: Vec<EffectKey>,
    code: Code,
    message: String,
    /// The task was given another outcome since then.
    pub(super) went_on: bool,
}

impl TaskFailure {
    pub(super) fn new(keys: Vec<EffectKey>, failure: &Failure) -> TaskFailure {
        TaskFailure { keys, code: failure.code, message: failure.message.clone(), went_on: false }
    }
}

impl Scheduler<'_> {
    /// Returns the keys of the failed effects that ended a task with this failure.
    pub(super) fn escaped_failures(&self, task: &FlowTask, failure: &Failure) -> Vec<EffectKey> {
        let same = |it: &&TaskFailure| !it.went_on || it.code == failure.code && it.message == failure.message;
        task.failed.as_ref().filter(same).map(|failed| failed.keys.clone()).unwrap_or_default()
    }

    /// Notes in a task the failed effects that ended a task it waits for.
    pub(super) fn note_escaped(&mut self, id: Id, keys: Vec<EffectKey>, failure: Option<&Failure>) {
        if let Some(task) = self.tasks.get_mut(&id) {
            match failure {
                Some(failure) if !keys.is_empty() => task.failed = Some(TaskFailure::new(keys, failure)),
                _ => task.failed.iter_mut().for_each(|failed| failed.went_on = true),
            }
        }
    }

    /// Notes that the last so many model calls of a task brought no reply that can be used.
    pub(super) fn note_unusable(&mut self, id: Id, calls: usize, why: String) {
        if let Some(task) = self.tasks.get_mut(&id) {
            let keys = task.calls.split_off(task.calls.len().saturating_sub(calls));
            self.unusable.extend(&keys);
            task.failed = Some(TaskFailure::new(keys, &Failure::new(Code::ReplyInvalid, why)));
        }
    }
}
