//! Counts what the commands of a run use together: the memory of concurrent commands, and the bytes that all commands have
//! written to disks, as long as this process lives. Each command's own limits are watched by its helper.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::processes::{self, ResourceUsage};
use crate::error::{Code, Failure, Result};
use crate::model::command::{CommandLimits, TerminationReason};

/// How often usage is measured.
pub(super) const LOOK: Duration = Duration::from_millis(400);

/// The running commands of a run, by their helpers, and the last measurement.
#[derive(Default)]
pub struct SharedUsage {
    helpers: RefCell<Vec<Pid>>,
    /// How many bytes this process had written when its first command began.
    before: Cell<Option<u64>>,
    /// How many bytes killed commands wrote that the system does not count for this process.
    ended: Cell<u64>,
    seen: RefCell<Option<(Instant, HelperUsage)>>,
}

/// The usage of each command, by its helper.
type HelperUsage = Vec<(Pid, ResourceUsage)>;

/// The registration of one running command, until it is dropped.
pub(super) struct CommandRegistration<'t> {
    usage: &'t SharedUsage,
    helper: Pid,
}

impl SharedUsage {
    /// Returns how many bytes the next command may write, and how much memory it may use. Fails if nothing is left.
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

    /// Returns how many bytes ended commands have written.
    pub(super) fn written(&self) -> u64 {
        let here = processes::written_here().saturating_sub(self.before.get().unwrap_or(0));
        here.saturating_add(self.ended.get())
    }

    /// Counts the bytes of a command that was ended for writing too much: the system counts only processes that were waited
    /// for.
    pub(super) fn count(&self, written: u64) {
        self.ended.set(self.ended.get().saturating_add(written));
    }

    pub(super) fn join(&self, helper: Pid) -> CommandRegistration<'_> {
        self.helpers.borrow_mut().push(helper);
        CommandRegistration { usage: self, helper }
    }

    /// Returns what each command uses, measured at most half a [`LOOK`] ago.
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
    /// Returns the shared limit that is exceeded, if this command uses the most of it.
    pub(super) fn exceeded_limit(&self, limits: CommandLimits) -> Option<TerminationReason> {
        // A single command has the shared limit as its own, which its helper watches.
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
