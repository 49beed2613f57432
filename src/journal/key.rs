//! How effects are told apart: by content, not by order.
//!
//! The key of an effect is a digest of its kind, its canonical request, its scope and how often that same
//! request has occurred in that scope. An effect on a stateful thing takes in the key of the last effect that
//! changed that thing. So a finished branch stays finished when another one failed, and an edit re-runs what it
//! touches, not what comes after it.

use std::collections::HashMap;

use serde_json::Value;

use crate::model::canonical;

/// The key of one effect: 128 bits, written as 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key([u8; 16]);

impl Key {
    /// Returns the key that these hex digits stand for.
    pub fn parse(hex: &str) -> Option<Key> {
        let mut bytes = [0; 16];
        if hex.len() != 32 {
            return None;
        }
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(hex.get(index * 2..index * 2 + 2)?, 16).ok()?;
        }
        Some(Key(bytes))
    }

    /// Returns the bytes, for what is made from a key: chance, ids.
    pub fn bytes(self) -> [u8; 16] {
        self.0
    }

    fn of(hasher: &blake3::Hasher) -> Key {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Key(bytes)
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// Counts what has occurred in a run and makes the keys of what comes next.
#[derive(Default)]
pub struct Keys {
    occurred: HashMap<Key, u32>,
    chains: HashMap<String, Key>,
    buffer: Vec<u8>,
}

impl Keys {
    /// Returns the key of the next effect with this kind, scope and request. `things` are what it builds on
    /// and what it changes.
    pub fn next(&mut self, kind: &str, scope: &str, request: &Value, things: &(Option<String>, Vec<String>)) -> Key {
        self.buffer.clear();
        canonical::write(request, &mut self.buffer);
        let mut hasher = blake3::Hasher::new();
        for part in [kind.as_bytes(), scope.as_bytes(), &self.buffer] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        if let Some(before) = things.0.as_ref().and_then(|thing| self.chains.get(thing)) {
            hasher.update(&before.0);
        }
        let content = Key::of(&hasher);
        let occurrence = self.occurred.entry(content).or_insert(0);
        *occurrence += 1;
        hasher.update(b"#");
        hasher.update(&occurrence.to_le_bytes());
        let key = Key::of(&hasher);
        for thing in &things.1 {
            self.chains.insert(thing.clone(), key);
        }
        key
    }

    /// Returns the name of the next branch or named scope inside `scope`: `scope/name`, or `scope/name#2`
    /// for the second of that name.
    pub fn scope(&mut self, scope: &str, name: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"scope");
        hasher.update(&(scope.len() as u64).to_le_bytes());
        hasher.update(scope.as_bytes());
        hasher.update(name.as_bytes());
        let occurrence = self.occurred.entry(Key::of(&hasher)).or_insert(0);
        *occurrence += 1;
        let parent = if scope == "/" { "" } else { scope };
        match *occurrence {
            1 => format!("{parent}/{name}"),
            n => format!("{parent}/{name}#{n}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOTHING: (Option<String>, Vec<String>) = (None, Vec::new());

    #[test]
    fn the_same_request_is_told_apart_by_scope_and_occurrence_not_by_order() {
        let mut one = Keys::default();
        let a = one.next("chat", "/a", &json!({"p": 1}), &NOTHING);
        let b = one.next("chat", "/b", &json!({"p": 1}), &NOTHING);
        let again = one.next("chat", "/a", &json!({"p": 1}), &NOTHING);
        let mut two = Keys::default();
        assert_eq!(two.next("chat", "/b", &json!({"p": 1}), &NOTHING), b);
        assert_eq!(two.next("chat", "/a", &json!({"p": 1}), &NOTHING), a);
        assert!(a != b && a != again && b != again);
        assert_eq!(Key::parse(&a.to_string()), Some(a));
    }

    #[test]
    fn reading_a_thing_after_it_was_changed_is_another_effect() {
        let reads = (Some("x".to_owned()), vec![]);
        let changes = (Some("x".to_owned()), vec!["x".to_owned()]);
        let before = Keys::default().next("load", "/", &json!({}), &reads);
        let mut keys = Keys::default();
        keys.next("save", "/", &json!({}), &changes);
        assert_ne!(keys.next("load", "/", &json!({}), &reads), before);
        let mut others = Keys::default();
        others.next("save", "/", &json!({}), &(Some("y".to_owned()), vec!["y".to_owned()]));
        assert_eq!(others.next("load", "/", &json!({}), &reads), before);
    }
}
