//! JSON pointers in which `*` stands for every item of a list.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Returns what stands at a pointer: one value, or for each `*` a list of what stands behind it in every item that has
/// it. Nothing where there is no such place.
pub fn all(value: &Value, pointer: &str) -> Option<Value> {
    let Some((before, after)) = pointer.split_once("/*") else { return value.pointer(pointer).cloned() };
    let items = value.pointer(before)?.as_array()?;
    Some(items.iter().filter_map(|item| all(item, after)).collect())
}

/// Returns the wanted parts of a document by their names; one that is not there is left out.
pub fn parts(value: &Value, fields: &BTreeMap<String, String>) -> Value {
    let found = fields.iter().filter_map(|(name, path)| Some((name.clone(), all(value, path)?)));
    Value::Object(found.collect::<Map<String, Value>>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_star_is_every_item_that_has_it() {
        let value = json!({ "a": [{ "b": [{ "c": 1 }, { "c": 2 }] }, { "b": [{ "d": 3 }] }, {}], "e": 4 });
        assert_eq!(all(&value, "/a/*/b/*/c"), Some(json!([[1, 2], []])));
        assert_eq!(all(&value, "/a/*"), Some(value["a"].clone()));
        assert_eq!((all(&value, "/e"), all(&value, "/e/*"), all(&value, "/f/*/g")), (Some(json!(4)), None, None));
    }
}
