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
use crate::model::effect::Dependencies;

/// The key of one effect.
pub type EffectKey = Digest;

/// What the key of an effect is made of.
pub struct EffectIdentity<'a> {
    pub kind: &'a str,
    pub scope: &'a str,
    pub request: &'a Value,
    /// The part of the request that is not in the value.
    pub list: Option<Digest>,
    /// What the flow declares about what the effect changes: a document is valid by that.
    pub declared: Option<Digest>,
    pub dependencies: &'a Dependencies,
}

/// The keys of one effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EffectKeys {
    pub key: EffectKey,
    /// What journals of the first format have it under.
    pub first: Option<EffectKey>,
}

/// Makes the keys of a run, of both formats where its journal has lines of the first.
#[derive(Default)]
pub struct KeyMaker {
    now: Counter,
    first: Option<Counter>,
    buffer: Vec<u8>,
}

/// Counts what has occurred in a run.
#[derive(Default)]
struct Counter {
    occurred: HashMap<EffectKey, u32>,
    chains: HashMap<String, EffectKey>,
}

impl KeyMaker {
    /// Makes keys of the first format, too.
    pub fn of_both_formats() -> KeyMaker {
        KeyMaker { first: Some(Counter::default()), ..KeyMaker::default() }
    }

    /// Returns the key of the next effect, and its key in the first format if that is wanted.
    pub fn next(&mut self, keyed: &EffectIdentity<'_>) -> EffectKeys {
        self.buffer.clear();
        canonical::write(keyed.request, &mut self.buffer);
        let mut hasher = blake3::Hasher::new();
        for part in [keyed.kind.as_bytes(), keyed.scope.as_bytes(), &self.buffer] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        if let Some(list) = keyed.list {
            hasher.update(&list.bytes());
        }
        let first = self.first.as_mut().map(|counter| counter.next(hasher.clone(), keyed.dependencies));
        hasher.update(b"2");
        if let Some(declared) = keyed.declared {
            hasher.update(&declared.bytes());
        }
        EffectKeys { key: self.now.next(hasher, keyed.dependencies), first }
    }

    /// Returns the name of the next branch or named scope inside `scope`: `scope/name`, or `scope/name#2`
    /// for the second of that name.
    pub fn scope(&mut self, scope: &str, name: &str) -> String {
        self.now.scope(scope, name)
    }
}

impl Counter {
    /// Returns the key of an effect whose content was hashed.
    fn next(&mut self, mut hasher: blake3::Hasher, Dependencies { reads, writes }: &Dependencies) -> EffectKey {
        for before in reads.iter().filter_map(|thing| self.chains.get(thing)) {
            hasher.update(&before.bytes());
        }
        let content = EffectKey::so_far(&hasher);
        let occurrence = self.occurred.entry(content).or_insert(0);
        *occurrence += 1;
        hasher.update(b"#");
        hasher.update(&occurrence.to_le_bytes());
        let key = EffectKey::so_far(&hasher);
        for thing in writes {
            self.chains.insert(thing.clone(), key);
        }
        key
    }

    fn scope(&mut self, scope: &str, name: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"scope");
        hasher.update(&(scope.len() as u64).to_le_bytes());
        hasher.update(scope.as_bytes());
        hasher.update(name.as_bytes());
        let occurrence = self.occurred.entry(EffectKey::so_far(&hasher)).or_insert(0);
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

    const NOTHING: Dependencies = Dependencies { reads: Vec::new(), writes: Vec::new() };

    fn on(reads: &[&str], writes: &[&str]) -> Dependencies {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Dependencies { reads: owned(reads), writes: owned(writes) }
    }

    fn next(keys: &mut KeyMaker, kind: &str, scope: &str, request: &Value, dependencies: &Dependencies) -> EffectKey {
        keys.next(&EffectIdentity { kind, scope, request, list: None, declared: None, dependencies }).key
    }

    #[test]
    fn the_same_request_is_told_apart_by_scope_and_occurrence_not_by_order() {
        let mut one = KeyMaker::default();
        let a = next(&mut one, "chat", "/a", &json!({"p": 1}), &NOTHING);
        let b = next(&mut one, "chat", "/b", &json!({"p": 1}), &NOTHING);
        let again = next(&mut one, "chat", "/a", &json!({"p": 1}), &NOTHING);
        let mut two = KeyMaker::default();
        assert_eq!(next(&mut two, "chat", "/b", &json!({"p": 1}), &NOTHING), b);
        assert_eq!(next(&mut two, "chat", "/a", &json!({"p": 1}), &NOTHING), a);
        assert!(a != b && a != again && b != again);
    }

    #[test]
    fn a_save_is_another_where_its_collection_is_declared_in_another_way() {
        let request = json!({});
        let of = |text: &[u8]| {
            let (declared, dependencies) = (Some(Digest::of(text)), &NOTHING);
            let keyed =
                EffectIdentity { kind: "save", scope: "/", request: &request, list: None, declared, dependencies };
            KeyMaker::of_both_formats().next(&keyed)
        };
        let one = of(b"one");
        assert_ne!(one.key, of(b"two").key);
        assert_eq!((one.first, one), (of(b"two").first, of(b"one")), "keys of the first format do not know it");
    }

    #[test]
    fn reading_a_thing_after_it_was_changed_is_another_effect() {
        let reads = on(&["x"], &[]);
        let changes = on(&["x"], &["x"]);
        let before = next(&mut KeyMaker::default(), "load", "/", &json!({}), &reads);
        let mut keys = KeyMaker::default();
        next(&mut keys, "save", "/", &json!({}), &changes);
        assert_ne!(next(&mut keys, "load", "/", &json!({}), &reads), before);
        let mut others = KeyMaker::default();
        next(&mut others, "save", "/", &json!({}), &on(&["y"], &["y"]));
        assert_eq!(next(&mut others, "load", "/", &json!({}), &reads), before);
    }
}
