//! JSON pointers in which `*` stands for every item of a list.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A pointer, read once for many documents.
#[derive(Clone, Debug)]
pub struct Pointer(Vec<Step>);

#[derive(Clone, Debug)]
enum Step {
    /// A member's name, or the place of an item.
    Name(String, Option<usize>),
    Every,
}

/// The wanted parts of a document, by the names that they get.
#[derive(Clone, Debug)]
pub struct Parts(Vec<(String, Pointer)>);

impl Pointer {
    pub fn new(text: &str) -> Pointer {
        let step = |part: &str| match part {
            "*" => Step::Every,
            name => Step::Name(name.replace("~1", "/").replace("~0", "~"), name.parse().ok()),
        };
        Pointer(text.split('/').skip(1).map(step).collect())
    }

    /// Returns what stands there: one value, or for each `*` a list of what stands behind it in every item that has it.
    /// Nothing where there is no such place.
    pub fn of(&self, value: &Value) -> Option<Value> {
        follow(value, &self.0)
    }
}

fn follow(value: &Value, steps: &[Step]) -> Option<Value> {
    let Some((step, rest)) = steps.split_first() else { return Some(value.clone()) };
    match (step, value) {
        (Step::Every, Value::Array(items)) => Some(items.iter().filter_map(|item| follow(item, rest)).collect()),
        (Step::Name(name, _), Value::Object(members)) => follow(members.get(name)?, rest),
        (Step::Name(_, Some(index)), Value::Array(items)) => follow(items.get(*index)?, rest),
        _ => None,
    }
}

impl Parts {
    pub fn new(fields: &BTreeMap<String, String>) -> Parts {
        Parts(fields.iter().map(|(name, pointer)| (name.clone(), Pointer::new(pointer))).collect())
    }

    /// Returns the parts by their names; one that is not there is left out.
    pub fn of(&self, value: &Value) -> Value {
        let found = self.0.iter().filter_map(|(name, pointer)| Some((name.clone(), pointer.of(value)?)));
        Value::Object(found.collect::<Map<String, Value>>())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_star_is_every_item_that_has_it() {
        let value = json!({ "a": [{ "b": [{ "c": 1 }, { "c": 2 }] }, { "b": [{ "d": 3 }] }, {}], "e/f": 4 });
        let at = |pointer: &str| Pointer::new(pointer).of(&value);
        assert_eq!(at("/a/*/b/*/c"), Some(json!([[1, 2], []])));
        assert_eq!(at("/a/*"), Some(value["a"].clone()));
        assert_eq!((at("/e~1f"), at("/a/0/b/1/c"), at("")), (Some(json!(4)), Some(json!(2)), Some(value.clone())));
        assert_eq!((at("/e/*"), at("/f/*/g"), at("/a/b")), (None, None, None));
    }
}
