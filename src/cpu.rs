//! How long work may take: by the time that a thread has computed, so that a loaded machine changes no result.
//!
//! Behind it stands a limit of time on the wall, `PATIENCE` times as long, for work that computes nothing and for systems
//! that do not tell a thread's time (there the wall's time counts alone).

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How many times longer than it may compute a piece of work may take.
const PATIENCE: u32 = 30;

/// How often a helper's clock is looked at.
const TICK: Duration = Duration::from_millis(5);

/// A helper's stack: as large as that of a main thread, so that what recurses there does so here.
const STACK: usize = 8 << 20;

/// How many helpers may be left to themselves at once.
const MOST_ABANDONED: usize = 2;

thread_local! {
    /// What this thread's helpers have computed for it, in nanoseconds. It is looked at from other threads, and
    /// a thread's clock may outlive it.
    static ASIDE: &'static AtomicU64 = Box::leak(Box::default());
    /// The limit that this thread works under, if it does.
    static LIMIT: Cell<Option<CpuLimit>> = const { Cell::new(None) };
}

/// Helpers that were given up and still compute.
static ABANDONED: AtomicUsize = AtomicUsize::new(0);

/// What has become of a helper; whoever comes second to its end settles [`ABANDONED`].
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

/// Settles the fate of a helper when it ends, however it does.
struct HelperGuard(Arc<HelperState>);

impl Drop for HelperGuard {
    fn drop(&mut self) {
        self.0.settle();
    }
}

/// A thread, as the clock of its computing.
#[derive(Clone, Copy, Debug)]
pub struct ThreadClock {
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    clock: Option<i32>,
    aside: &'static AtomicU64,
}

impl ThreadClock {
    /// Returns the thread that asks.
    pub fn current() -> ThreadClock {
        #[cfg(target_os = "linux")]
        {
            let mut clock = 0;
            // SAFETY: the thread is this one, which lives, and the clock's number is written into a local variable.
            let failed = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
            ThreadClock { clock: (failed == 0).then_some(clock), aside: ASIDE.with(|aside| *aside) }
        }
        #[cfg(not(target_os = "linux"))]
        ThreadClock { clock: None, aside: ASIDE.with(|aside| *aside) }
    }

    /// Returns how long the thread has computed, with what its helpers did, from whichever thread asks. `None` where
    /// nobody knows.
    pub fn spent(self) -> Option<Duration> {
        #[cfg(target_os = "linux")]
        {
            let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: the time is written into a local variable; the clock of a thread that ended is an error.
            let failed = unsafe { libc::clock_gettime(self.clock?, &raw mut time) };
            let aside = Duration::from_nanos(self.aside.load(Ordering::Relaxed));
            (failed == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32) + aside)
        }
        #[cfg(not(target_os = "linux"))]
        None
    }
}

/// A limit on what a thread does from now on.
#[derive(Clone, Copy, Debug)]
pub struct CpuLimit {
    thread: ThreadClock,
    /// What the thread has computed when the limit is reached.
    cpu: Option<Duration>,
    wall: Instant,
}

impl CpuLimit {
    /// From now on, `thread` may compute for `time`.
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

    /// Tells whether the thread has computed this much longer than it may.
    pub fn is_over_by(&self, more: Duration) -> bool {
        self.thread.spent().zip(self.cpu).is_some_and(|(spent, limit)| spent >= limit + more)
    }

    /// Makes it the limit that this thread works under: its helpers get no more than is left of it.
    pub fn hold(limit: Option<CpuLimit>) {
        LIMIT.set(limit);
    }

    /// Returns how much of the time is left.
    fn remaining(&self) -> Duration {
        let wall = self.wall.saturating_duration_since(Instant::now());
        self.thread.spent().zip(self.cpu).map_or(wall, |(spent, limit)| limit.saturating_sub(spent))
    }
}

/// The work was given up.
#[derive(Debug)]
pub struct Overrun;

/// Does work that cannot be interrupted: on a thread of its own, for no longer than `most` and than what is left of the
/// limit that this thread works under. It counts as computed by this thread. A helper whose time is over is given up:
/// it goes on to its end, or to that of the process, and nobody listens to it. While too many of them do, no work
/// begins.
///
/// # Errors
///
/// The work took too long, or could not begin.
pub fn run_within<T: Send + 'static>(most: Duration, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Overrun> {
    let most = LIMIT.get().map_or(most, |limit| most.min(limit.remaining()));
    if ABANDONED.load(Ordering::SeqCst) >= MOST_ABANDONED {
        return Err(Overrun);
    }
    let (begun, limits) = mpsc::sync_channel(1);
    let (done, results) = mpsc::sync_channel(1);
    let fate = Arc::new(HelperState::default());
    let ends = HelperGuard(Arc::clone(&fate));
    let helper = move || {
        let ends = ends;
        let thread = ThreadClock::current();
        let limit = CpuLimit::new(thread, most);
        let _ = begun.send((thread, thread.spent(), limit));
        let _ = done.send(work());
        drop(ends);
    };
    let helper = std::thread::Builder::new().name("helper".to_owned()).stack_size(STACK).spawn(helper);
    let helper = helper.map_err(|_| Overrun)?;
    let began = Instant::now();
    let (thread, before, limit) = limits.recv().map_err(|_| Overrun)?;
    // The clock of a thread that is over is gone; the time of the wall is never less.
    let spent =
        || thread.spent().zip(before).map_or_else(|| began.elapsed(), |(now, before)| now.saturating_sub(before));
    let mut counted = Duration::ZERO;
    let mut count = || {
        let more = spent().saturating_sub(counted);
        counted += more;
        ASIDE.with(|aside| aside.fetch_add(u64::try_from(more.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed));
    };
    let result = loop {
        match results.recv_timeout(TICK) {
            Ok(result) => break Ok(result),
            Err(RecvTimeoutError::Timeout) => {
                count();
                if limit.is_over() {
                    fate.give_up();
                    break Err(Overrun);
                }
            }
            // What it panicked with is raised here, too.
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
