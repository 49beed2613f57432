//! Redacts the parts of effects, and remembers long texts that have no secret.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use serde_json::Value;

use super::Redactor;

/// The shortest text that is remembered, in bytes, and how many texts are.
const LONG: usize = 2048;
const KEPT: usize = 8;

/// A redactor of one run that remembers the latest long texts without a secret: a prompt that joins all that was said so
/// far begins with the prompt before it.
pub struct Cleaner {
    redactor: Redactor,
    clean: RefCell<VecDeque<String>>,
    /// Whether an opaque state was dropped, and whether the user was told.
    dropped: Cell<bool>,
    told: Cell<bool>,
}

impl Cleaner {
    pub fn new(redactor: Redactor) -> Cleaner {
        Cleaner { redactor, clean: RefCell::default(), dropped: Cell::new(false), told: Cell::new(false) }
    }

    /// Returns the redactor.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Redacts a text.
    pub fn text(&self, text: &mut String) {
        if let Cow::Owned(redacted) = self.redactor.text(text) {
            *text = redacted;
        }
    }

    /// Redacts a text that may be JSON, in which escapes can hide a secret.
    pub fn json_text(&self, text: &mut String) {
        if let Cow::Owned(redacted) = self.redactor.json_text(text) {
            *text = redacted;
        }
    }

    /// Redacts all texts of a value.
    pub fn value(&self, value: &mut Value) {
        self.redactor.value(value);
    }

    /// Drops the opaque state of a model's message, whole, if it has a known secret in it. It is not searched for shapes of
    /// secrets, because it is mostly base64, and a model takes it back only byte for byte.
    pub fn state(&self, state: &mut Option<String>) {
        if state.as_deref().is_some_and(|text| self.redactor.holds_known(text)) {
            *state = None;
            self.dropped.set(true);
        }
    }

    /// Redacts an outcome. Of a model's reply, the opaque state stays as it is, or is dropped.
    pub fn outcome(&self, value: &mut Value, is_reply: bool) {
        let opaque = value.get_mut("state").filter(|_| is_reply).map(Value::take);
        self.value(value);
        let Some(Value::String(opaque)) = opaque else { return };
        let mut opaque = Some(opaque);
        self.state(&mut opaque);
        match (opaque, value) {
            (Some(opaque), value) => value["state"] = opaque.into(),
            (None, Value::Object(members)) => drop(members.shift_remove("state")),
            (None, _) => {}
        }
    }

    /// Tells whether a state was dropped and the user was not told yet.
    pub fn has_news(&self) -> bool {
        self.dropped.get() && !self.told.replace(true)
    }

    /// Redacts a text that may begin with an earlier one, without searching that beginning again.
    pub fn growing_text(&self, text: &mut String) {
        if text.len() < LONG {
            return self.text(text);
        }
        let mut clean = self.clean.borrow_mut();
        let known = (0..clean.len()).filter(|at| text.starts_with(&clean[*at])).max_by_key(|at| clean[*at].len());
        let redacted = match known {
            Some(at) => self.redactor.text_after(&clean[at], text),
            None => self.redactor.text(text),
        };
        if let Cow::Owned(redacted) = redacted {
            *text = redacted;
            return;
        }
        // The new text replaces the one that it begins with.
        let _ = known.and_then(|at| clean.remove(at));
        clean.push_back(text.clone());
        if clean.len() > KEPT {
            clean.pop_front();
        }
    }
}
