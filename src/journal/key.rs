//! Keys of effects, which identify effects by content and not by order.
//!
//! The key of an effect is a digest of its kind, its canonical request, its scope and how often that same
//! request has occurred in that scope. The key of an effect that depends on something stateful (a document, a worktree,
//! a branch) also includes the key of the last effect that changed it. So a finished task stays finished when another
//! one failed, and an edit re-runs the effects that it touches, not all that come after it.

use std::collections::HashMap;

use serde_json::Value;

use crate::model::canonical;
use crate::model::digest::Digest;
use crate::model::effect::Dependencies;

/// The key of one effect.
pub(crate) type EffectKey = Digest;

/// What the key of an effect is made of.
pub(crate) struct EffectIdentity<'a> {
    pub kind: &'a str,
    pub scope: &'a str,
    pub request: &'a Value,
    /// The digest of the conversation, which is not part of `request`.
    pub list: Option<Digest>,
    /// The digest of the collection that the effect writes into: its declaration decides whether a document is valid.
    pub declared: Option<Digest>,
    pub dependencies: &'a Dependencies,
}

/// The keys of one effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EffectKeys {
    pub key: EffectKey,
    /// The key in journals of the first format.
    pub first: Option<EffectKey>,
}

/// Makes the keys of a run, in both formats if its journal has lines of the first format.
#[derive(Default)]
pub(crate) struct KeyMaker {
    now: Counter,
    first: Option<Counter>,
    buffer: Vec<u8>,
}

/// Counts the occurrences of each content, and remembers the last change of each dependency.
#[derive(Default)]
struct Counter {
    occurred: HashMap<EffectKey, u32>,
    chains: HashMap<String, EffectKey>,
}

impl KeyMaker {
    /// Returns a maker that makes keys of the first format as well.
    pub(crate) fn of_both_formats() -> KeyMaker {
        KeyMaker { first: Some(Counter::default()), ..KeyMaker::default() }
    }

    /// Returns the key of the next effect, and its key in the first format if that is needed.
    pub(crate) fn next(&mut self, identity: &EffectIdentity<'_>) -> EffectKeys {
        self.buffer.clear();
        canonical::write(identity.request, &mut self.buffer);
        let mut hasher = blake3::Hasher::new();
        for part in [identity.kind.as_bytes(), identity.scope.as_bytes(), &self.buffer] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        if let Some(list) = identity.list {
            hasher.update(&list.bytes());
        }
        let first = self.first.as_mut().map(|counter| counter.next(hasher.clone(), identity.dependencies));
        hasher.update(b"2");
        if let Some(declared) = identity.declared {
            hasher.update(&declared.bytes());
        }
        EffectKeys { key: self.now.next(hasher, identity.dependencies), first }
    }

    /// Returns the name of the next task or named scope inside `scope`: `scope/name`, or `scope/name#2`
    /// for the second of that name.
    pub(crate) fn scope(&mut self, scope: &str, name: &str) -> String {
        self.now.scope(scope, name)
    }
}

impl Counter {
    /// Returns the key of an effect whose content is hashed already.
    fn next(&mut self, mut hasher: blake3::Hasher, Dependencies { reads, writes }: &Dependencies) -> EffectKey {
        for before in reads.iter().filter_map(|dependency| self.chains.get(dependency)) {
            hasher.update(&before.bytes());
        }
        let content = EffectKey::so_far(&hasher);
        let occurrence = self.occurred.entry(content).or_insert(0);
        *occurrence += 1;
        hasher.update(b"#");
        hasher.update(&occurrence.to_le_bytes());
        let key = EffectKey::so_far(&hasher);
        for dependency in writes {
            self.chains.insert(dependency.clone(), key);
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
