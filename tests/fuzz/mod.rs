//! Hostile input, generated: for each reader of what others wrote a file that says what is true of it whatever it is given.
//! Nothing here panics, overflows, hangs or fills the memory; what is true besides stands with each.
//!
//! Each test goes on for a second; `NIETZ_TEST_SECONDS` says how many otherwise. A case that fails is made as small as it
//! goes and told as it would stand in a test: put it there, into the table of cases beside the property. One that ends the
//! whole process is in `target/tmp/fuzz`, by the name of its test.

mod draw;
mod git;
mod journal;
mod json;
mod locks;
mod memory;
mod packs;
mod patterns;
mod sse;
mod templates;
mod yaml;

use std::cell::Cell;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nietz::cpu::{CpuLimit, ThreadClock};
use nietz::error::Failure;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestRunner};

/// How long each test goes on.
const SECONDS: f64 = 1.0;
/// How many cases are drawn between two looks at the clock.
const AT_ONCE: u32 = 4;
/// What one case may compute, and the memory that it may hold: no input is longer than [`draw::LONGEST`].
const PATIENCE: Duration = Duration::from_secs(20);
const ROOM: usize = 512 << 20;

/// Draws cases until the time is over, and has each judged.
#[track_caller]
fn holds<S>(name: &'static str, strategy: S, judge: impl Fn(&S::Value))
where
    S: Strategy,
    S::Value: Clone + Debug + Send + 'static,
{
    let seconds = std::env::var("NIETZ_TEST_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SECONDS);
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let watch = Watch::start(name);
    let (count, most) = (Cell::new(0_u64), Cell::new(0));
    while count.get() == 0 || Instant::now() < until {
        // A runner that has run its cases runs no more.
        let config = Config { cases: AT_ONCE, failure_persistence: None, max_shrink_iters: 2_000, ..Config::default() };
        let done = TestRunner::new(config).run(&strategy, |case| {
            count.set(count.get() + 1);
            most.set(watch.judged(&case, &judge).max(most.get()));
            Ok(())
        });
        done.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    watch.over();
    println!("{name}: {} cases, up to {} KiB of memory", count.get(), most.get() >> 10);
}

/// Has each of these cases judged: what was found once, and what chance seldom finds.
#[track_caller]
fn each<T: Clone + Debug + Send + 'static>(name: &'static str, cases: impl IntoIterator<Item = T>, judge: impl Fn(&T)) {
    let watch = Watch::start(name);
    cases.into_iter().for_each(|case| _ = watch.judged(&case, &judge));
    watch.over();
}

/// Ends the process when one case computes for too long, and keeps the case where the end of the process leaves it.
struct Watch<T> {
    case: Arc<Mutex<Option<(T, CpuLimit)>>>,
    file: PathBuf,
    /// Dropped, it calls the watch off.
    _over: std::sync::mpsc::Sender<()>,
}

impl<T: Clone + Debug + Send + 'static> Watch<T> {
    fn start(name: &'static str) -> Watch<T> {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        let case = Arc::new(Mutex::new(None::<(T, CpuLimit)>));
        let watched = Arc::clone(&case);
        let (over, called_off) = channel::<()>();
        std::thread::spawn(move || {
            while called_off.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
                let case = watched.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some((case, limit)) = case.as_ref()
                    && limit.is_over()
                {
                    eprintln!("{name}: this computes for more than {} s: {case:?}", PATIENCE.as_secs());
                    std::process::abort();
                }
            }
        });
        Watch { case, file: folder.join(name), _over: over }
    }

    /// Returns how much memory a case takes.
    fn judged(&self, case: &T, judge: &impl Fn(&T)) -> usize {
        std::fs::write(&self.file, format!("{case:?}\n")).expect("it can be written");
        let set = |limit| *self.case.lock().unwrap_or_else(PoisonError::into_inner) = limit;
        set(Some((case.clone(), CpuLimit::new(ThreadClock::current(), PATIENCE))));
        let ((), held) = memory::most(|| judge(case));
        set(None);
        assert!(held <= ROOM, "it takes {} MiB of memory: {case:?}", held >> 20);
        held
    }

    fn over(&self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

/// A failure to read names the file and a line of it, here or in what is told besides; a place at the end of a file may be a
/// line behind the last.
#[track_caller]
fn names_a_place(failure: &Failure, file: &str, text: &[u8]) {
    let told = format!("{}\n{}", failure.message, failure.details.join("\n"));
    let lines = 2 + text.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
    let name = format!("{file}:");
    let places = told.split(&name).skip(1);
    let mut numbers = places.filter_map(|rest| rest.split(':').next()?.parse::<usize>().ok()).peekable();
    assert!(numbers.peek().is_some(), "it names no line of {file}: {told}");
    assert!(numbers.all(|line| (1..=lines).contains(&line)), "there is no such line: {told}");
}
