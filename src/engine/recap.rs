//! What tells a person where they are who comes back to a run: the recap of the first question that is asked live. The gate asks
//! for it, and shows it in place of what was said since the last answer; recorded it is not.

use crate::model::effect::Effect;
use crate::model::event::Event;

/// The recap that a process still owes to the person before it.
pub(super) struct DueRecap(bool);

impl DueRecap {
    /// Expects whether the run was begun by an earlier process.
    pub(super) fn new(is_due: bool) -> DueRecap {
        DueRecap(is_due)
    }

    /// Returns what to show before this effect: the recap of the first question that has one.
    pub(super) fn take(&mut self, effect: &Effect) -> Option<Event> {
        let recap = effect.facts().recap().filter(|_| self.0)?;
        self.0 = false;
        Some(Event::Said { markdown: recap.to_owned(), from: None })
    }
}
