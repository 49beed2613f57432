//! Which recorded answers still hold: those of the dialogue that the run is in.
//!
//! Nobody knows what depends on what a person said. So where a question is asked that nothing is recorded of, although
//! answers behind it are, the dialogue has become another: what was recorded in its scope, or around it, is asked again.
//! The question's intent says so (`anew`), so that a later process sees the same. Scopes beside and inside keep theirs.

use std::collections::{HashMap, HashSet};

use crate::engine::history::{History, RecordedQuestion};
use crate::engine::process::is_inside;
use crate::engine::replay_source::ReplaySource;
use crate::journal::key::{EffectKey, EffectKeys};
use crate::model::event::Event;

/// What the user is told when recorded answers hold no more.
const ASKED_AGAIN: &str = "another question is asked here than the recorded one, so what was asked behind it is asked again; an \
     empty line answers as before";

/// The dialogue of a run, as far as this process has come.
#[derive(Default)]
pub(super) struct Dialogue {
    /// By scope, the last change in it or inside it.
    changes: HashMap<String, DialogueChange>,
    /// The questions that this process has come to.
    reached: HashSet<EffectKey>,
    /// Whether the user still has to hear, once in a process, why questions are asked again.
    notice: DueNotice,
}

/// Answers that were recorded before these lines, of the run's own journal and of its replay source, belong to an earlier
/// dialogue.
#[derive(Clone, Copy, Default)]
struct DialogueChange {
    own: u64,
    source: u64,
}

/// Whether the user has to be told.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum DueNotice {
    #[default]
    NotYet,
    Now,
    Told,
}

impl Dialogue {
    /// Tells whether the answer of the run's own journal still holds in a scope.
    pub(super) fn holds(&mut self, scope: &str, recorded: Option<&RecordedQuestion>) -> bool {
        let holds = self.is_of_own(scope, recorded);
        self.note_again(!holds);
        holds
    }

    /// Tells whether the answer of the replay source still holds in a scope.
    pub(super) fn holds_in_source(&mut self, scope: &str, recorded: Option<&RecordedQuestion>) -> bool {
        let holds = self.is_of_source(scope, recorded);
        self.note_again(!holds);
        holds
    }

    /// Notes that a recorded answer is given back, by the run's own journal or by its replay source.
    pub(super) fn give_back(&mut self, keys: EffectKeys, history: &History, source: Option<&ReplaySource>) {
        self.reach(keys);
        let (own, source) = (history.question(keys), source.and_then(|source| source.question(keys)));
        let line = |question: Option<&RecordedQuestion>| question.map_or(0, |question| question.anew);
        let change = match line(own) {
            0 => DialogueChange { own: 0, source: line(source) },
            // What was asked anew here was asked by nobody there.
            own => DialogueChange { own, source: u64::MAX },
        };
        if let Some(question) = own.or(source).filter(|_| change.source > 0) {
            self.note(&question.scope, change);
        }
    }

    /// Notes that a question is asked now, and tells whether that makes another dialogue of what is recorded.
    pub(super) fn ask(
        &mut self,
        scope: &str,
        keys: EffectKeys,
        history: &History,
        source: Option<&ReplaySource>,
    ) -> bool {
        self.reach(keys);
        let is_behind = |key: &EffectKey, question: &RecordedQuestion| {
            question.answered > 0 && is_inside(scope, &question.scope) && !self.reached.contains(key)
        };
        let own = |(key, recorded): (&EffectKey, &RecordedQuestion)| {
            is_behind(key, recorded) && self.is_of_own(&recorded.scope, Some(recorded))
        };
        let of_source = |(key, recorded): (&EffectKey, &RecordedQuestion)| {
            is_behind(key, recorded) && self.is_of_source(&recorded.scope, Some(recorded))
        };
        let anew = history.questions().iter().any(own)
            || source.is_some_and(|source| source.questions().iter().any(of_source));
        if anew {
            self.note(scope, DialogueChange { own: u64::MAX, source: u64::MAX });
            self.note_again(true);
        }
        anew
    }

    /// Returns what the user has to hear before the question that is asked now.
    pub(super) fn notice(&mut self) -> Option<Event> {
        if self.notice != DueNotice::Now {
            return None;
        }
        self.notice = DueNotice::Told;
        Some(Event::Notice { text: ASKED_AGAIN.to_owned() })
    }

    fn is_of_own(&self, scope: &str, recorded: Option<&RecordedQuestion>) -> bool {
        recorded.is_none_or(|question| question.answered >= self.change(scope).own)
    }

    fn is_of_source(&self, scope: &str, recorded: Option<&RecordedQuestion>) -> bool {
        recorded.is_none_or(|question| question.answered >= self.change(scope).source)
    }

    fn note_again(&mut self, again: bool) {
        if again && self.notice == DueNotice::NotYet {
            self.notice = DueNotice::Now;
        }
    }

    fn reach(&mut self, keys: EffectKeys) {
        self.reached.extend([Some(keys.key), keys.first].into_iter().flatten());
    }

    fn change(&self, scope: &str) -> DialogueChange {
        self.changes.get(scope).copied().unwrap_or_default()
    }

    fn note(&mut self, scope: &str, change: DialogueChange) {
        let mut around = Some(scope);
        while let Some(scope) = around {
            let noted = self.changes.entry(scope.to_owned()).or_default();
            noted.own = noted.own.max(change.own);
            noted.source = noted.source.max(change.source);
            around = match scope.rsplit_once('/') {
                Some(("", "")) | None => None,
                Some(("", _)) => Some("/"),
                Some((outer, _)) => Some(outer),
            };
        }
    }
}
