//! Limits on CPU time: work is limited by the CPU time of its thread, so that a loaded machine does not change results.
//!
//! As a backstop there is a limit on wall time, `PATIENCE` times as long, for work that waits without computing. On systems
//! that do not report a thread's CPU time, only wall time counts.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How many times longer than its CPU time work may take in wall time.
const PATIENCE: u32 = 30;

/// How often a helper's clock is checked.
const TICK: Duration = Duration::from_millis(5);

/// The stack of a helper, in bytes: as large as that of a main thread, so that recursion gets as deep.
const STACK: usize = 8 << 20;

/// How many abandoned helpers may still run at once.
const MOST_ABANDONED: usize = 2;

thread_local! {
    /// The CPU time that helpers spent for this thread, in nanoseconds. Leaked, because other threads read it, and a
    /// [`ThreadClock`] may outlive its thread.
    static HELPER_TIME: &'static AtomicU64 = Box::leak(Box::default());
    /// The limit that holds for this thread, if there is one.
    static LIMIT: Cell<Option<CpuLimit>> = const { Cell::new(None) };
}

/// How many abandoned helpers still run.
static ABANDONED: AtomicUsize = AtomicUsize::new(0);

/// Whether a helper has ended or was abandoned. The second of the two to happen decrements [`ABANDONED`].
#[derive(Default)]
struct HelperState(AtomicBool);

impl HelperState {
    fn give_up(&self) {
        ABANDONED.fetch_add(1, Ordering::SeqCst);
        self.settle();
    }

    fn settle(&self) {
        if self.0.swap(true, Ordering::SeqCst) {
            ABANDONED.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Notes the end of a helper, even if it panics.
struct HelperGuard(Arc<HelperState>);

impl Drop for HelperGuard {
    fn drop(&mut self) {
        self.0.settle();
    }
}

/// The CPU clock of a thread.
#[derive(Clone, Copy, Debug)]
pub struct ThreadClock {
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    clock: Option<i32>,
    helper_time: &'static AtomicU64,
}

impl ThreadClock {
    /// Returns the clock of the calling thread.
    pub fn current() -> ThreadClock {
        #[cfg(target_os = "linux")]
        {
            let mut clock = 0;
            // SAFETY: the thread is the calling one, so it is alive, and the clock's id is written into a local variable.
            let failed = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
            ThreadClock {
                clock: (failed == 0).then_some(clock),
                helper_time: HELPER_TIME.with(|helper_time| *helper_time),
            }
        }
        #[cfg(not(target_os = "linux"))]
        ThreadClock { clock: None, helper_time: HELPER_TIME.with(|helper_time| *helper_time) }
    }

    /// Returns the CPU time of the thread and its helpers; any thread may call this. `None` if the system does not report
    /// it.
    pub fn spent(self) -> Option<Duration> {
        #[cfg(target_os = "linux")]
        {
            let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: the time is written into a local variable; reading the clock of an ended thread returns an error.
            let failed = unsafe { libc::clock_gettime(self.clock?, &raw mut time) };
            let helper_time = Duration::from_nanos(self.helper_time.load(Ordering::Relaxed));
            (failed == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32) + helper_time)
        }
        #[cfg(not(target_os = "linux"))]
        None
    }
}

/// A limit on the time that a thread may take from now on.
#[derive(Clone, Copy, Debug)]
pub struct CpuLimit {
    thread: ThreadClock,
    /// The thread's CPU time at which the limit is reached.
    cpu: Option<Duration>,
    wall: Instant,
}

impl CpuLimit {
    /// Returns a limit that lets `thread` compute for `time` from now on.
    pub fn new(thread: ThreadClock, time: Duration) -> CpuLimit {
        let cpu = thread.spent().map(|spent| spent + time);
        let wall = Instant::now() + if cpu.is_some() { time * PATIENCE } else { time };
        CpuLimit { thread, cpu, wall }
    }

    /// Tells whether the limit is reached.
    pub fn is_over(&self) -> bool {
        let computed = self.thread.spent().zip(self.cpu).is_some_and(|(spent, limit)| spent >= limit);
        computed || Instant::now() >= self.wall
    }

    /// Tells whether the thread has exceeded its CPU time by at least this much.
    pub fn is_over_by(&self, more: Duration) -> bool {
        self.thread.spent().zip(self.cpu).is_some_and(|(spent, limit)| spent >= limit + more)
    }

    /// Sets the limit of the calling thread: its helpers get no more than what is left of it.
    pub fn hold(limit: Option<CpuLimit>) {
        LIMIT.set(limit);
    }

    /// Returns how much time is left.
    fn remaining(&self) -> Duration {
        let wall = self.wall.saturating_duration_since(Instant::now());
        self.thread.spent().zip(self.cpu).map_or(wall, |(spent, limit)| limit.saturating_sub(spent))
    }
}

/// The error for work that took too long or could not start.
#[derive(Debug)]
pub struct Overrun;

/// Runs work that cannot be interrupted on a helper thread, for no longer than `most` and what is left of the calling
/// thread's limit. Its CPU time counts as that of the calling thread. A helper that exceeds its time is abandoned: it
/// runs on, but its result is ignored. While too many abandoned helpers run, no new work starts.
///
/// # Errors
///
/// [`Overrun`] if the work took too long or could not start.
pub fn run_within<T: Send + 'static>(most: Duration, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Overrun> {
    let most = LIMIT.get().map_or(most, |limit| most.min(limit.remaining()));
    if ABANDONED.load(Ordering::SeqCst) >= MOST_ABANDONED {
        return Err(Overrun);
    }
    let (send_limit, limits) = mpsc::sync_channel(1);
    let (send_result, results) = mpsc::sync_channel(1);
    let state = Arc::new(HelperState::default());
    let guard = HelperGuard(Arc::clone(&state));
    let helper = move || {
        let guard = guard;
        let thread = ThreadClock::current();
        let limit = CpuLimit::new(thread, most);
        let _ = send_limit.send((thread, thread.spent(), limit));
        let _ = send_result.send(work());
        drop(guard);
    };
    let helper = std::thread::Builder::new().name("helper".to_owned()).stack_size(STACK).spawn(helper);
    let helper = helper.map_err(|_| Overrun)?;
    let began = Instant::now();
    let (thread, before, limit) = limits.recv().map_err(|_| Overrun)?;
    // An ended thread has no clock any more; wall time is never less than its CPU time.
    let spent =
        || thread.spent().zip(before).map_or_else(|| began.elapsed(), |(now, before)| now.saturating_sub(before));
    let mut counted = Duration::ZERO;
    let mut count = || {
        let more = spent().saturating_sub(counted);
        counted += more;
        HELPER_TIME.with(|helper_time| {
            helper_time.fetch_add(u64::try_from(more.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed)
        });
    };
    let result = loop {
        match results.recv_timeout(TICK) {
            Ok(result) => break Ok(result),
            Err(RecvTimeoutError::Timeout) => {
                count();
                if limit.is_over() {
                    state.give_up();
                    break Err(Overrun);
                }
            }
            // A panic of the helper goes on in this thread.
            Err(RecvTimeoutError::Disconnected) => match helper.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => return Err(Overrun),
            },
        }
    };
    count();
    result
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn compute(time: Duration) {
        let limit = CpuLimit::new(ThreadClock::current(), time);
        while !limit.is_over() {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn what_a_helper_computes_counts_as_the_thread_s_own_and_ends_at_its_limit() {
        let limit = CpuLimit::new(ThreadClock::current(), Duration::from_millis(60));
        CpuLimit::hold(Some(limit));
        let long = Duration::from_secs(3600);
        assert_eq!(run_within(long, || 7).expect("it is short"), 7);
        run_within(long, || compute(Duration::from_millis(40))).expect("there is time for it");
        assert!(!limit.is_over() || limit.remaining().is_zero());
        let given_up = run_within(long, || compute(Duration::from_millis(400)));
        assert!(given_up.is_err() && limit.is_over(), "the time of its helpers does not count");
        CpuLimit::hold(None);
    }

    #[test]
    fn waiting_takes_nothing_off_a_limit_and_computing_does() {
        let limit = CpuLimit::new(ThreadClock::current(), Duration::from_millis(20));
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        // Another thread computes for longer than this one may, while this one waits.
        let busy = std::thread::spawn(move || {
            let own = CpuLimit::new(ThreadClock::current(), Duration::from_millis(40));
            while !own.is_over() {
                std::hint::spin_loop();
            }
            drop(sender);
        });
        let _ = receiver.recv();
        busy.join().expect("it ends");
        assert!(!limit.is_over(), "waiting counted");
        while !limit.is_over() {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn a_limit_is_seen_from_another_thread() {
        let limit = CpuLimit::new(ThreadClock::current(), Duration::ZERO);
        assert!(std::thread::scope(|scope| scope.spawn(|| limit.is_over()).join().expect("it ends")));
    }
}
