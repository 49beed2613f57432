//! JSON pointers in which `*` stands for every item of a list.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A pointer, parsed once for many documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer(Vec<PointerStep>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum PointerStep {
    /// The name of a member, or the index of an item.
    Name(String, Option<usize>),
    Every,
}

/// One place that a pointer matches.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PointerMatch<'v> {
    /// The pointer with the index of an item in place of each `*`.
    pub pointer: String,
    /// The indexes of these items.
    pub items: Vec<usize>,
    pub value: &'v Value,
}

/// The parts of a document to select, by the names that they get.
#[derive(Clone, Debug)]
pub(crate) struct Projection(Vec<(String, Pointer)>);

/// Returns how a place is spelled as a pointer, if it is not spelled so: `a.b` or `a/b` is `/a/b`.
pub(crate) fn respelled(text: &str) -> Option<String> {
    (!text.starts_with('/')).then(|| format!("/{}", text.replace('.', "/")))
}

impl Pointer {
    pub(crate) fn new(text: &str) -> Pointer {
        let step = |part: &str| match part {
            "*" => PointerStep::Every,
            name => PointerStep::Name(name.replace("~1", "/").replace("~0", "~"), name.parse().ok()),
        };
        Pointer(text.split('/').skip(1).map(step).collect())
    }

    /// Returns the value at the pointer; each `*` gives a list of the values in all items that have one. `None` if there is
    /// no such place.
    pub(crate) fn of(&self, value: &Value) -> Option<Value> {
        follow(value, &self.0)
    }
}

impl Pointer {
    /// Returns all matching places, in the order of the document.
    pub(crate) fn matches<'v>(&self, value: &'v Value) -> Vec<PointerMatch<'v>> {
        let mut places = vec![PointerMatch { pointer: String::new(), items: Vec::new(), value }];
        for step in &self.0 {
            places = places.iter().flat_map(|place| place.step(step)).collect();
        }
        places
    }
}

impl<'v> PointerMatch<'v> {
    fn step(&self, step: &PointerStep) -> Vec<PointerMatch<'v>> {
        let to = |name: &str, item: Option<usize>, value: &'v Value| {
            let mut items = self.items.clone();
            items.extend(item);
            let name = name.replace('~', "~0").replace('/', "~1");
            PointerMatch { pointer: format!("{}/{name}", self.pointer), items, value }
        };
        match (step, self.value) {
            (PointerStep::Every, Value::Array(list)) => {
                list.iter().enumerate().map(|(index, item)| to(&index.to_string(), Some(index), item)).collect()
            }
            (PointerStep::Name(name, _), Value::Object(members)) => {
                members.get(name).map(|member| to(name, None, member)).into_iter().collect()
            }
            (PointerStep::Name(name, Some(index)), Value::Array(list)) => {
                list.get(*index).map(|item| to(name, None, item)).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }
}

fn follow(value: &Value, steps: &[PointerStep]) -> Option<Value> {
    let Some((step, rest)) = steps.split_first() else { return Some(value.clone()) };
    match (step, value) {
        (PointerStep::Every, Value::Array(items)) => Some(items.iter().filter_map(|item| follow(item, rest)).collect()),
        (PointerStep::Name(name, _), Value::Object(members)) => follow(members.get(name)?, rest),
        (PointerStep::Name(_, Some(index)), Value::Array(items)) => follow(items.get(*index)?, rest),
        _ => None,
    }
}

impl Projection {
    pub(crate) fn new(fields: &BTreeMap<String, String>) -> Projection {
        Projection(fields.iter().map(|(name, pointer)| (name.clone(), Pointer::new(pointer))).collect())
    }

    /// Returns the parts by their names, without those that the document lacks.
    pub(crate) fn of(&self, value: &Value) -> Value {
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
        let pointer = Pointer::new("/a/*/b/*/c");
        let found: Vec<_> =
            pointer.matches(&value).into_iter().map(|place| (place.pointer, place.items, place.value)).collect();
        assert_eq!(
            found,
            [("/a/0/b/0/c".to_owned(), vec![0, 0], &json!(1)), ("/a/0/b/1/c".to_owned(), vec![0, 1], &json!(2))]
        );
        assert_eq!(Pointer::new("/e~1f").matches(&value)[0].pointer, "/e~1f");
    }
}
