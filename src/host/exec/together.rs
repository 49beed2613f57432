//! What the commands of a run use together: memory of those that run side by side, and what all of them have written to
//! disks, as long as this process lives. What one of them uses alone is looked at by its helper.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::processes::{self, Used};
use crate::error::{Code, Failure, Result};
use crate::model::command::{Limits, Over};

/// How often it is looked at what they use.
pub(super) const LOOK: Duration = Duration::from_millis(400);

/// The commands of a run that run now, by their helpers, and what was found when it was last looked.
#[derive(Default)]
pub struct Together {
    helpers: RefCell<Vec<Pid>>,
    /// What this process had written when its first command began.
    before: Cell<Option<u64>>,
    /// What those wrote that were ended, as far as the system does not say it of this process.
    ended: Cell<u64>,
    seen: RefCell<Option<(Instant, Seen)>>,
}

/// What each command uses, by its helper.
type Seen = Vec<(Pid, Used)>;

/// One of them, until this is dropped.
pub(super) struct Member<'t> {
    together: &'t Together,
    helper: Pid,
}

impl Together {
    /// Returns how much the next command may write and have of memory.
    pub(super) fn left(&self, limits: Limits) -> Result<(u64, u64)> {
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

    pub(super) fn join(&self, helper: Pid) -> Member<'_> {
        self.helpers.borrow_mut().push(helper);
        Member { together: self, helper }
    }

    /// Returns what each of them uses, as of a moment ago.
    fn look(&self) -> Seen {
        let mut seen = self.seen.borrow_mut();
        if let Some((at, used)) = &*seen
            && at.elapsed() < LOOK / 2
        {
            return used.clone();
        }
        let helpers = self.helpers.borrow();
        let all = processes::below_each(&helpers);
        let used: Seen = helpers.iter().zip(all).map(|(helper, all)| (*helper, processes::used_by(&all))).collect();
        *seen = Some((Instant::now(), used.clone()));
        used
    }
}

impl Member<'_> {
    /// Returns the limit of all that is passed, if this is the one that uses most of it.
    pub(super) fn over(&self, limits: Limits) -> Option<Over> {
        // One alone has it as its own limit.
        if self.together.helpers.borrow().len() < 2 {
            return None;
        }
        let used = self.together.look();
        let is_most = |of: fn(&Used) -> u64| {
            used.iter().max_by_key(|(_, used)| of(used)).is_some_and(|(helper, _)| *helper == self.helper)
        };
        let sum = |of: fn(&Used) -> u64| used.iter().map(|(_, used)| of(used)).fold(0, u64::saturating_add);
        if sum(|used| used.memory) > bytes(limits.run_megabytes) && is_most(|used| used.memory) {
            return Some(Over::Memory);
        }
        let written = self.together.written().saturating_add(sum(|used| used.written));
        (written > bytes(limits.run_written_megabytes) && is_most(|used| used.written)).then_some(Over::Written)
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        self.together.helpers.borrow_mut().retain(|helper| *helper != self.helper);
        *self.together.seen.borrow_mut() = None;
    }
}

fn bytes(megabytes: Option<u64>) -> u64 {
    megabytes.map_or(u64::MAX, |megabytes| megabytes.saturating_mul(1 << 20))
}
