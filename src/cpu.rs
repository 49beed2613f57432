//! How long work may take: by the time that a thread has computed, so that a loaded machine changes no result.
//!
//! Behind it stands a limit of time on the wall, `PATIENCE` times as long, for work that computes nothing and for systems
//! that do not tell a thread's time (there the wall's time counts alone).

use std::time::{Duration, Instant};

/// How many times longer than it may compute a piece of work may take.
const PATIENCE: u32 = 30;

/// A thread, as the clock of its computing.
#[derive(Clone, Copy, Debug)]
pub struct Thread(Option<i32>);

impl Thread {
    /// Returns the thread that asks.
    pub fn current() -> Thread {
        #[cfg(target_os = "linux")]
        {
            let mut clock = 0;
            // SAFETY: the thread is this one, which lives, and the clock's number is written into a local variable.
            let failed = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
            Thread((failed == 0).then_some(clock))
        }
        #[cfg(not(target_os = "linux"))]
        Thread(None)
    }

    /// Returns how long the thread has computed, from whichever thread asks. `None` where nobody knows.
    fn spent(self) -> Option<Duration> {
        #[cfg(target_os = "linux")]
        {
            let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: the time is written into a local variable; the clock of a thread that ended is an error.
            let failed = unsafe { libc::clock_gettime(self.0?, &raw mut time) };
            (failed == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
        }
        #[cfg(not(target_os = "linux"))]
        None
    }
}

/// A limit on what a thread does from now on.
#[derive(Clone, Copy, Debug)]
pub struct CpuLimit {
    thread: Thread,
    /// What the thread has computed when the limit is reached.
    cpu: Option<Duration>,
    wall: Instant,
}

impl CpuLimit {
    /// From now on, `thread` may compute for `time`.
    pub fn new(thread: Thread, time: Duration) -> CpuLimit {
        let cpu = thread.spent().map(|spent| spent + time);
        let wall = Instant::now() + if cpu.is_some() { time * PATIENCE } else { time };
        CpuLimit { thread, cpu, wall }
    }

    /// Tells whether the limit is reached.
    pub fn is_over(&self) -> bool {
        let computed = self.thread.spent().zip(self.cpu).is_some_and(|(spent, limit)| spent >= limit);
        computed || Instant::now() >= self.wall
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn waiting_takes_nothing_off_a_limit_and_computing_does() {
        let limit = CpuLimit::new(Thread::current(), Duration::from_millis(20));
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        // Another thread computes for longer than this one may, while this one waits.
        let busy = std::thread::spawn(move || {
            let own = CpuLimit::new(Thread::current(), Duration::from_millis(40));
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
        let limit = CpuLimit::new(Thread::current(), Duration::ZERO);
        assert!(std::thread::scope(|scope| scope.spawn(|| limit.is_over()).join().expect("it ends")));
    }
}
