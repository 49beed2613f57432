//! Limits on the time and memory of flow code.
//!
//! A watchdog thread raises a flag when a slice of Lua has computed too long. The VM's interrupt checks the flag, which
//! costs one load, and raises an error. The flag stays up, so that `pcall` cannot swallow the error. Only the thread's
//! computing time counts, not the time that it waits for a core.
//!
//! Work that the host does for a flow is bounded before it begins, or done by a helper thread that can be abandoned
//! (`cpu::run_within`). If code still computes without ever checking the flag, the whole process is ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::cpu::{CpuLimit, ThreadClock};
use crate::error::Failure;
use crate::lua::error_values;

/// How long a flow may compute between two effects that wait, and how much memory it may use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowLimits {
    pub seconds: f64,
    pub megabytes: u64,
}

impl Default for FlowLimits {
    fn default() -> FlowLimits {
        FlowLimits { seconds: 2.0, megabytes: 64 }
    }
}

/// The largest limits that a manifest may ask for.
pub const MOST: FlowLimits = FlowLimits { seconds: 60.0, megabytes: 1024 };

/// Watches how long Lua runs without an effect.
pub struct Watchdog {
    shared: Arc<WatchdogState>,
    thread: Option<std::thread::JoinHandle<()>>,
}

struct WatchdogState {
    /// The limit of the slice that runs now, and its length in seconds; `None` when none runs.
    limit: Mutex<Option<(CpuLimit, f64)>>,
    expired: AtomicBool,
    sleeping: AtomicBool,
    stop: AtomicBool,
    wake: (Mutex<()>, Condvar),
}

/// How often the watchdog checks the clock while Lua runs.
const TICK: Duration = Duration::from_millis(10);

/// How long a slice may compute beyond its limit before the process is ended.
const GRACE: Duration = Duration::from_secs(5);

/// The function that ends the process.
static LAST_RESORT: OnceLock<fn(&Failure)> = OnceLock::new();

/// Sets the function that ends the process when nothing else ends a flow. The watchdog calls it while the flow computes.
pub fn last_resort(end: fn(&Failure)) {
    let _ = LAST_RESORT.set(end);
}

impl Watchdog {
    /// Starts the thread that watches the time of one VM.
    pub fn start() -> Watchdog {
        let shared = Arc::new(WatchdogState {
            limit: Mutex::new(None),
            expired: AtomicBool::new(false),
            sleeping: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            wake: (Mutex::new(()), Condvar::new()),
        });
        let watched = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("watchdog".to_owned()).spawn(move || watched.watch()).ok();
        Watchdog { shared, thread }
    }

    /// Returns a function that reads the flag, for the VM's interrupt.
    pub fn flag(&self) -> impl Fn() -> bool + use<> {
        let shared = Arc::clone(&self.shared);
        move || shared.expired.load(Ordering::Relaxed)
    }

    /// Restarts the clock: from now on, Lua may compute for `seconds` on the calling thread.
    pub fn arm(&self, seconds: f64) {
        let shared = &self.shared;
        let limit = CpuLimit::new(ThreadClock::current(), Duration::from_secs_f64(seconds));
        CpuLimit::hold(Some(limit));
        *shared.limit() = Some((limit, seconds));
        if shared.sleeping.load(Ordering::SeqCst) {
            shared.wake.1.notify_one();
        }
    }

    /// Stops the clock: Lua waits for an effect, or has ended.
    pub fn disarm(&self) {
        CpuLimit::hold(None);
        *self.shared.limit() = None;
    }

    /// Tells whether Lua computed too long. A raised flag stays up.
    pub fn expired(&self) -> bool {
        let limit = *self.shared.limit();
        limit.is_some_and(|(limit, _)| limit.is_over()) || self.shared.expired.load(Ordering::Relaxed)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.wake.1.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl WatchdogState {
    fn limit(&self) -> MutexGuard<'_, Option<(CpuLimit, f64)>> {
        self.limit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self) {
        let mut idle = 0_u32;
        let mut guard = self.wake.0.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.stop.load(Ordering::SeqCst) {
            let limit = *self.limit();
            if limit.is_some_and(|(limit, _)| limit.is_over()) {
                self.expired.store(true, Ordering::SeqCst);
            }
            if let Some((limit, seconds)) = limit
                && limit.is_over_by(GRACE)
                && let Some(end) = LAST_RESORT.get()
            {
                end(&error_values::time_limit_failure(seconds));
            }
            idle = if limit.is_none() { idle + 1 } else { 0 };
            // After a while without Lua, the watchdog sleeps until it is woken. The long tick makes up for a wake-up
            // that it missed.
            let tick = if idle > 5 { Duration::from_millis(500) } else { TICK };
            self.sleeping.store(idle > 5, Ordering::SeqCst);
            guard = self.wake.1.wait_timeout(guard, tick).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    static ENDED: AtomicBool = AtomicBool::new(false);

    #[test]
    fn what_never_looks_at_the_flag_ends_with_its_process() {
        last_resort(|failure| {
            assert_eq!(failure.code, crate::error::Code::FlowLimit);
            ENDED.store(true, Ordering::SeqCst);
        });
        let watchdog = Watchdog::start();
        watchdog.arm(0.05);
        let limit = CpuLimit::new(ThreadClock::current(), GRACE * 3);
        while !ENDED.load(Ordering::SeqCst) {
            assert!(!limit.is_over(), "nobody ended it");
        }
        assert!(watchdog.expired());
    }
}
