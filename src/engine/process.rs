//! What one process of a run did, read from its lines: where the flow went on, and how long effects took.

use std::collections::HashMap;
use std::time::Duration;

use crate::error::Code;
use crate::journal::key::EffectKey;

/// The kinds of effects on documents. All can be repeated safely: saves go by content, and rows are searched for first.
const DOCUMENTS: &[&str] = &["save", "append", "delete", "load", "rows", "list", "scan", "folders", "query"];

/// What the lines of a journal between two resumptions say.
#[derive(Default)]
pub(super) struct Process {
    /// The line of the last activity in each scope.
    active: HashMap<String, u64>,
    last_active: u64,
    pub(super) scopes: HashMap<EffectKey, String>,
    /// Failed effects, with the lines of their outcomes.
    pub(super) failures: Vec<(EffectKey, u64)>,
    /// Outcomes that were not delivered to the flow yet.
    pub(super) held: Vec<EffectKey>,
    /// Effects on documents that failed because of the disk.
    pub(super) refused: Vec<EffectKey>,
    /// Effects without an outcome.
    open: HashMap<EffectKey, OpenEffect>,
    /// Whether the process wrote the first format.
    pub(super) first_format: bool,
    /// The time of the last line that has one, in milliseconds since 1970.
    pub(super) at: u64,
}

/// An effect that has begun and has no outcome yet.
struct OpenEffect {
    /// When it began, in milliseconds since 1970.
    at: u64,
    /// Whether it waits for a person.
    asks: bool,
    /// Whether it is an effect on documents.
    documents: bool,
}

/// When an effect in a scope was under way, in milliseconds since 1970.
pub(super) struct EffectSpan {
    scope: String,
    from: u64,
    to: u64,
}

/// When effects of a run were under way.
#[derive(Default)]
pub(super) struct EffectTimes(Vec<EffectSpan>);

impl Process {
    pub(super) fn note_activity(&mut self, scope: &str, seq: u64) {
        self.last_active = seq;
        match self.active.get_mut(scope) {
            Some(last) => *last = seq,
            None => {
                self.active.insert(scope.to_owned(), seq);
            }
        }
    }

    pub(super) fn begin(&mut self, key: EffectKey, kind: &str, scope: String, at: u64) {
        self.at = at;
        self.open.insert(key, OpenEffect { at, asks: kind == "ask", documents: DOCUMENTS.contains(&kind) });
        self.scopes.insert(key, scope);
    }

    /// Notes that an open effect failed, and the line of its outcome.
    pub(super) fn note_failure(&mut self, key: EffectKey, code: Code, seq: u64) {
        self.failures.push((key, seq));
        if code == Code::DiskFailed && self.open.get(&key).is_some_and(|effect| effect.documents) {
            self.refused.push(key);
        }
    }

    /// Closes an effect and returns when it was under way; `None` if it waited for a person.
    pub(super) fn close_effect(&mut self, key: EffectKey, at: u64) -> Option<EffectSpan> {
        self.at = at;
        let effect = self.open.remove(&key)?;
        let scope = || self.scopes.get(&key).cloned().unwrap_or_default();
        (!effect.asks).then(|| EffectSpan { scope: scope(), from: effect.at, to: at })
    }

    /// Closes the effects that had no outcome when the process ended, and returns when they were under way.
    pub(super) fn close_remaining(&mut self) -> Vec<EffectSpan> {
        let keys: Vec<EffectKey> = self.open.keys().copied().collect();
        keys.into_iter().filter_map(|key| self.close_effect(key, self.at)).collect()
    }

    /// Tells whether an effect is open in a scope that is neither around this one nor inside it.
    pub(super) fn is_beside_another(&self, scope: &str) -> bool {
        let scopes = self.open.keys().filter_map(|key| self.scopes.get(key));
        scopes.into_iter().any(|other| !is_inside(other, scope) && !is_inside(scope, other))
    }

    /// Tells whether the flow went on after this line: in the scope, around it, or inside it.
    pub(super) fn went_on(&self, scope: &str, seq: u64) -> bool {
        // All scopes are inside the outermost.
        if scope == "/" || self.last_active <= seq {
            return self.last_active > seq;
        }
        self.active.iter().any(|(other, last)| *last > seq && (is_inside(other, scope) || is_inside(scope, other)))
    }
}

impl EffectTimes {
    pub(super) fn add(&mut self, span: Option<EffectSpan>) {
        self.0.extend(span);
    }

    /// Returns how long effects were under way in a scope; concurrent effects are counted once.
    pub(super) fn used_time(&self, scope: &str) -> Duration {
        let mut spans: Vec<(u64, u64)> =
            self.0.iter().filter(|span| is_inside(&span.scope, scope)).map(|span| (span.from, span.to)).collect();
        spans.sort_unstable();
        let mut counted_to = 0;
        let millis = spans.into_iter().fold(0, |sum, (from, to)| {
            let new = to.saturating_sub(from.max(counted_to));
            counted_to = counted_to.max(to);
            sum + new
        });
        Duration::from_millis(millis)
    }
}

/// Tells whether `scope` is `outer` or inside it.
pub(crate) fn is_inside(scope: &str, outer: &str) -> bool {
    outer == "/" || scope.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_side_by_side_is_counted_once_and_a_person_not_at_all() {
        let (mut process, mut times) = (Process::default(), EffectTimes::default());
        let key = |text: &str| EffectKey::of(text.as_bytes());
        process.begin(key("a"), "chat", "/x/a".to_owned(), 1000);
        process.begin(key("b"), "chat", "/x/b".to_owned(), 1500);
        process.begin(key("c"), "chat", "/y".to_owned(), 1500);
        times.add(process.close_effect(key("a"), 2000));
        times.add(process.close_effect(key("b"), 3000));
        process.begin(key("d"), "ask", "/x".to_owned(), 4000);
        times.add(process.close_effect(key("d"), 9000));
        assert_eq!((times.used_time("/x"), times.used_time("/x/a")), (Duration::from_secs(2), Duration::from_secs(1)));
        process.close_remaining().into_iter().for_each(|span| times.add(Some(span)));
        assert_eq!(times.used_time("/y"), Duration::from_millis(7500), "as far as the process is known to have come");
    }

    #[test]
    fn a_flow_went_on_where_something_followed_around_a_failure_or_inside_of_its_scope() {
        let mut process = Process::default();
        for (scope, line) in [("/a", 5), ("/b/c", 9)] {
            process.note_activity(scope, line);
        }
        let went_on = |scope, line| process.went_on(scope, line);
        assert_eq!([went_on("/a", 4), went_on("/a", 5), went_on("/a/x", 4)], [true, false, true]);
        assert_eq!([went_on("/b", 7), went_on("/bc", 1), went_on("/", 8)], [true, false, true]);
    }
}
