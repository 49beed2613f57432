//! Finds where a collection's declaration and its schema say different things, so that no document could ever be saved.

use serde_json::{Map, Value, json};

use crate::host::documents::Store;
use crate::lua::manifest::DeclaredCollection;
use crate::model::collection::{Collection, Version};
use crate::schema::{Formats, SaidOf, Schema, referred, said_of};

/// The keywords that say what a version may be, without regard to anything around it.
const OF_A_VERSION: &[&str] = &["const", "enum", "type", "pattern", "minLength", "maxLength"];

/// A fault of a collection, and the text of the flow that it is about.
pub(super) struct CollectionFault {
    pub(super) found: String,
    pub(super) message: String,
}

/// Returns the faults of a collection.
pub(super) fn faults(store: &Store, declared: &DeclaredCollection) -> Vec<CollectionFault> {
    let collection = &declared.collection;
    let schema = match &declared.schema_path {
        Some(path) => format!("its schema ({path})"),
        None => "its schema".to_owned(),
    };
    let told = |found: &str, what: &str| CollectionFault {
        found: found.to_owned(),
        message: format!("collection `{}`: {what}: no document could be saved", collection.name),
    };
    let mut faults = Vec::new();
    for (hole, pointer) in &collection.keys {
        if let SaidOf::Refused = said_of(&collection.schema, pointer) {
            faults.push(told(pointer, &format!("{schema} lets no `{pointer}` in, which `keys` names for {{{hole}}}")));
        }
    }
    if let Some(version) = &collection.version {
        let field = version.field.as_str();
        match said_of(&collection.schema, field) {
            SaidOf::Refused => {
                faults.push(told(field, &format!("{schema} lets no `{field}` in, where its version is")))
            }
            SaidOf::Said(said) if !admits(store, collection, version, said) => {
                let current = &version.current;
                faults.push(told(field, &format!("it is of version {current}, which {schema} refuses at `{field}`")));
            }
            SaidOf::Said(_) | SaidOf::Unknown => {}
        }
    }
    faults
}

/// Tells whether some spelling of today's version is one that the schema of that member may allow.
fn admits(store: &Store, collection: &Collection, version: &Version, said: &Value) -> bool {
    let Some(part) = referred(&collection.schema, said) else { return true };
    let plain: Map<String, Value> = part
        .iter()
        .filter(|(keyword, _)| OF_A_VERSION.contains(&keyword.as_str()))
        .map(|(keyword, rule)| (keyword.clone(), rule.clone()))
        .collect();
    let Ok(schema) = Schema::try_compile(&Value::Object(plain), Formats::Annotations) else { return true };
    let text = version.current.as_str().map_or_else(|| version.current.to_string(), str::to_owned);
    let number = serde_json::from_str::<Value>(&text).ok().filter(Value::is_number);
    let options = part.get("enum").and_then(Value::as_array).into_iter().flatten().chain(part.get("const"));
    let spelt = [Some(version.current.clone()), Some(json!(text)), number];
    spelt
        .into_iter()
        .flatten()
        .chain(options.cloned())
        .filter(|value| store.is_current(collection, &document_with(&version.field, value)))
        .any(|value| schema.is_valid(&value))
}

/// Returns a document that has nothing but this value at a pointer.
fn document_with(pointer: &str, value: &Value) -> Value {
    pointer.rsplit('/').filter(|name| !name.is_empty()).fold(value.clone(), |inner, name| {
        let name = name.replace("~1", "/").replace("~0", "~");
        Value::Object(Map::from_iter([(name, inner)]))
    })
}
