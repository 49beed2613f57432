//! What the commands of a run use together: memory of those that run side by side, and what all of them have written to
//! disks, as long as this process lives. What one of them uses alone is looked at by its helper.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::processes::{self, ResourceUsage};
use crate::error::{Code, Failure, Result};
use crate::model::command::{CommandLimits, TerminationReason};

/// How often it is looked at what they use.
pub(super) const LOOK: Duration = Duration::from_millis(400);

/// The commands of a run that run now, by their helpers, and what was found when it was last looked.
#[derive(Default)]
pub struct SharedUsage {
    helpers: RefCell<Vec<Pid>>,
    /// What this process had written when its first command began.
    before: Cell<Option<u64>>,
    /// What those wrote that were ended, as far as the system does not say it of this process.
    ended: Cell<u64>,
    seen: RefCell<Option<(Instant, HelperUsage)>>,
}

/// What each command uses, by its helper.
type HelperUsage = Vec<(Pid, ResourceUsage)>;

/// One of them, until this is dropped.
pub(super) struct CommandRegistration<'t> {
    usage: &'t SharedUsage,
    helper: Pid,
}

impl SharedUsage {
    /// Returns how much the next command may write and have of memory.
    pub(super) fn remaining(&self, limits: CommandLimits) -> Result<(u64, u64)> {
        if self.before.get().is_none() {
            self.before.set(Some(processes::written_here()));
        }
        let limit = bytes(limits.run_written_megabytes);
        match limit.checked_sub(self.written()) {
            Some(left) if left > 0 => Ok((left, bytes(limits.run_megabytes))),
            _ => {
                let message =
                    format!("the commands of this run have written {} MB, which is all they may", limit >> 20);
                Err(Failure::new(Code::CommandFailed, message).hint(
                    "resume the run to go on; `commands.limits.run_written_megabytes` in config.yaml allows more",
                ))
            }
        }
    }

    /// Returns what those have written that are over.
    pub(super) fn written(&self) -> u64 {
        let here = processes::written_here().saturating_sub(self.before.get().unwrap_or(0));
        here.saturating_add(self.ended.get())
    }

    /// Counts what a command wrote that was ended for it: nobody may have waited for its processes.
    pub(super) fn count(&self, written: u64) {
        self.ended.set(self.ended.get().saturating_add(written));
    }

    pub(super) fn join(&self, helper: Pid) -> CommandRegistration<'_> {
        self.helpers.borrow_mut().push(helper);
        CommandRegistration { usage: self, helper }
    }

    /// Returns what each of them uses, as of a moment ago.
    fn look(&self) -> HelperUsage {
        let mut seen = self.seen.borrow_mut();
        if let Some((at, used)) = &*seen
            && at.elapsed() < LOOK / 2
        {
            return used.clone();
        }
        let helpers = self.helpers.borrow();
        let all = processes::descendants_of(&helpers);
        let used: HelperUsage =
            helpers.iter().zip(all).map(|(helper, all)| (*helper, processes::usage_of(&all))).collect();
        *seen = Some((Instant::now(), used.clone()));
        used
    }
}

impl CommandRegistration<'_> {
    /// Returns the limit of all that is passed, if this is the one that uses most of it.
    pub(super) fn exceeded_limit(&self, limits: CommandLimits) -> Option<TerminationReason> {
        // One alone has it as its own limit.
        if self.usage.helpers.borrow().len() < 2 {
            return None;
        }
        let used = self.usage.look();
        let is_most = |of: fn(&ResourceUsage) -> u64| {
            used.iter().max_by_key(|(_, used)| of(used)).is_some_and(|(helper, _)| *helper == self.helper)
        };
        let sum = |of: fn(&ResourceUsage) -> u64| used.iter().map(|(_, used)| of(used)).fold(0, u64::saturating_add);
        if sum(|used| used.memory) > bytes(limits.run_megabytes) && is_most(|used| used.memory) {
            return Some(TerminationReason::Memory);
        }
        let written = self.usage.written().saturating_add(sum(|used| used.written));
        (written > bytes(limits.run_written_megabytes) && is_most(|used| used.written))
            .then_some(TerminationReason::Written)
    }
}

impl Drop for CommandRegistration<'_> {
    fn drop(&mut self) {
        self.usage.helpers.borrow_mut().retain(|helper| *helper != self.helper);
        *self.usage.seen.borrow_mut() = None;
    }
}

fn bytes(megabytes: Option<u64>) -> u64 {
    megabytes.map_or(u64::MAX, |megabytes| megabytes.saturating_mul(1 << 20))
}
