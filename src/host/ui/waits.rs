//! Says in a pipe, on standard error, what a run waits for when nothing else is said for long: a model that answers late, a
//! flow that computes. At a terminal, the spinner says it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::out::{OutputStream, safe};
use crate::model::text::excerpt;

/// After how long something is said first, and then; from there on as often as the last pause.
const PAUSES: [Duration; 3] = [Duration::from_secs(10), Duration::from_secs(20), Duration::from_secs(60)];

/// Who waits, for what, and where that is told.
pub(super) struct Waits {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// Notified when something begins or ends.
    changed: Condvar,
    err: Arc<Mutex<OutputStream>>,
    pauses: [Duration; 3],
}

#[derive(Default)]
struct State {
    /// The keys of the calls that are under way, with what they are for.
    calls: Vec<(String, String)>,
    /// What the flow says that it does.
    status: String,
    /// Since when nothing was said, while something is under way.
    since: Option<Instant>,
    /// How often it was told since then, and when next.
    told: usize,
    next: Option<Instant>,
    is_watched: bool,
    closed: bool,
}

impl Waits {
    pub(super) fn new(err: Arc<Mutex<OutputStream>>) -> Waits {
        Waits::with_pauses(err, PAUSES)
    }

    fn with_pauses(err: Arc<Mutex<OutputStream>>, pauses: [Duration; 3]) -> Waits {
        Waits { shared: Arc::new(Shared { state: Mutex::default(), changed: Condvar::new(), err, pauses }) }
    }

    pub(super) fn call_started(&self, key: &str, label: &str) {
        let label = if label.is_empty() { "a model" } else { label };
        self.change(|state| state.calls.push((key.to_owned(), label.to_owned())));
    }

    pub(super) fn call_ended(&self, key: &str) {
        self.change(|state| state.calls.retain(|(other, _)| other != key));
    }

    /// Notes what the flow says that it does; nothing when it says no more.
    pub(super) fn status(&self, text: &str) {
        let last = text.trim().lines().next_back().unwrap_or_default().trim();
        self.change(|state| last.clone_into(&mut state.status));
    }

    /// Notes that something was said or asked: who waits from here on waits for the next thing.
    pub(super) fn said(&self) {
        self.change(|_| {});
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.shared.lock();
        change(&mut state);
        let now = Instant::now();
        let is_busy = !state.calls.is_empty() || !state.status.is_empty();
        state.since = is_busy.then_some(now);
        state.next = is_busy.then_some(now + self.shared.pauses[0]);
        state.told = 0;
        if is_busy && !state.is_watched {
            state.is_watched = true;
            let shared = Arc::clone(&self.shared);
            // Without the thread, only these lines are missing.
            drop(thread::Builder::new().name("waits".to_owned()).spawn(move || shared.watch()));
        }
        drop(state);
        self.shared.changed.notify_all();
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells it whenever it is time, until the front end is dropped.
    fn watch(&self) {
        let mut state = self.lock();
        while !state.closed {
            let now = Instant::now();
            state = match state.next {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(next) if next > now => {
                    let waited = self.changed.wait_timeout(state, next - now);
                    waited.map_or_else(|error| error.into_inner().0, |(state, _)| state)
                }
                Some(next) => {
                    self.tell(&state, now);
                    state.told += 1;
                    state.next = Some(next + self.pauses[state.told.min(self.pauses.len() - 1)]);
                    state
                }
            };
        }
    }

    fn tell(&self, state: &State, now: Instant) {
        let mut what: Vec<&str> = state.calls.iter().map(|(_, label)| label.as_str()).collect();
        what.dedup();
        let what = if what.is_empty() { state.status.clone() } else { what.join(", ") };
        let seconds = now.saturating_duration_since(state.since.unwrap_or(now)).as_secs();
        let line = format!("still waiting, for {seconds} s: {}\n", safe(&excerpt(&what)));
        self.err.lock().unwrap_or_else(PoisonError::into_inner).put(&line);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};

    use super::Waits;
    use crate::host::ui::out::OutputStream;
    use crate::host::ui::out::tests::Captured;

    #[test]
    fn what_is_waited_for_is_told_until_it_is_there() {
        let captured = Captured::default();
        let err = Arc::new(Mutex::new(OutputStream::new(captured.stream())));
        let waits = Waits::with_pauses(err, [Duration::from_millis(1); 3]);
        let until = Instant::now() + Duration::from_secs(60);
        let is_told = |text: &str| {
            while !captured.text().contains(text) {
                assert!(Instant::now() < until, "{text:?} was not told: {:?}", captured.text());
                std::thread::yield_now();
            }
        };
        waits.call_started("a", "architect");
        is_told("still waiting, for 0 s: architect\n");
        waits.call_started("b", "");
        is_told(": architect, a model\n");
        waits.call_ended("a");
        waits.call_ended("b");
        waits.status("• goal 1\n  • attempt 1: cargo test\n");
        is_told(": • attempt 1: cargo test\n");
        waits.status("");
        let told = captured.text().len();
        drop(waits);
        // One line may have been under way.
        assert!(captured.text().len() - told < 80);
    }
}
