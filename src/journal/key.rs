//! How effects are told apart: by content, not by order.
//!
//! The key of an effect is a digest of its kind, its canonical request, its scope and how often that same
//! request has occurred in that scope. An effect on a stateful thing takes in the key of the last effect that
//! changed that thing. So a finished branch stays finished when another one failed, and an edit re-runs what it
//! touches, not what comes after it.

use std::collections::HashMap;

use serde_json::Value;

use crate::model::canonical;
use crate::model::digest::Digest;

/// The key of one effect.
pub type Key = Digest;

/// Counts what has occurred in a run and makes the keys of what comes next.
#[derive(Default)]
pub struct Keys {
    occurred: HashMap<Key, u32>,
    chains: HashMap<String, Key>,
    buffer: Vec<u8>,
}

impl Keys {
    /// Returns the key of the next effect with this kind, scope and request. `list` is a part of the request
    /// that is not in the value, `on` and `changed` are the things that the effect builds on and changes.
    pub fn next(
        &mut self,
        kind: &str,
        scope: &str,
        request: &Value,
        list: Option<Digest>,
        (on, changed): &(Vec<String>, Vec<String>),
    ) -> Key {
        self.buffer.clear();
        canonical::write(request, &mut self.buffer);
        let mut hasher = blake3::Hasher::new();
        for part in [kind.as_bytes(), scope.as_bytes(), &self.buffer] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        if let Some(list) = list {
            hasher.update(&list.bytes());
        }
        for before in on.iter().filter_map(|thing| self.chains.get(thing)) {
            hasher.update(&before.bytes());
        }
        let content = Key::so_far(&hasher);
        let occurrence = self.occurred.entry(content).or_insert(0);
        *occurrence += 1;
        hasher.update(b"#");
        hasher.update(&occurrence.to_le_bytes());
        let key = Key::so_far(&hasher);
        for thing in changed {
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
        let occurrence = self.occurred.entry(Key::so_far(&hasher)).or_insert(0);
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

    const NOTHING: (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());

    #[test]
    fn the_same_request_is_told_apart_by_scope_and_occurrence_not_by_order() {
        let mut one = Keys::default();
        let a = one.next("chat", "/a", &json!({"p": 1}), None, &NOTHING);
        let b = one.next("chat", "/b", &json!({"p": 1}), None, &NOTHING);
        let again = one.next("chat", "/a", &json!({"p": 1}), None, &NOTHING);
        let mut two = Keys::default();
        assert_eq!(two.next("chat", "/b", &json!({"p": 1}), None, &NOTHING), b);
        assert_eq!(two.next("chat", "/a", &json!({"p": 1}), None, &NOTHING), a);
        assert!(a != b && a != again && b != again);
    }

    #[test]
    fn reading_a_thing_after_it_was_changed_is_another_effect() {
        let reads = (vec!["x".to_owned()], vec![]);
        let changes = (vec!["x".to_owned()], vec!["x".to_owned()]);
        let before = Keys::default().next("load", "/", &json!({}), None, &reads);
        let mut keys = Keys::default();
        keys.next("save", "/", &json!({}), None, &changes);
        assert_ne!(keys.next("load", "/", &json!({}), None, &reads), before);
        let mut others = Keys::default();
        others.next("save", "/", &json!({}), None, &(vec!["y".to_owned()], vec!["y".to_owned()]));
        assert_eq!(others.next("load", "/", &json!({}), None, &reads), before);
    }
}
