//! Checks rows that refer to each other. In a collection's schema, `"unique": true` says that no two rows have the same
//! value in this field, `"references": "NAME"` that the value is the `id` of a row of the collection `NAME` with the same
//! key. A row with an earlier time than the row that it refers to gets a note, if the collection expects otherwise.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::Store;
use crate::error::Result;
use crate::model::collection::{Collection, DocumentKey, Expectation, Format};
use crate::schema::report::{self, LocatedViolation, Severity};
use crate::schema::{Violation, expect, properties, source};

impl Store {
    /// Returns what is wrong with the references in a file of rows that are valid by themselves. `key` is the key of the
    /// file, and so of the files that its rows refer to.
    ///
    /// # Errors
    ///
    /// As [`Store::rows`], if the rows of a collection that is referred to cannot be read.
    pub fn check_references(
        &self,
        collection: &Collection,
        all: &BTreeMap<String, Collection>,
        key: &DocumentKey,
        text: &str,
        file: &str,
    ) -> Result<Vec<LocatedViolation>> {
        let mut found = Vec::new();
        let follows: Vec<&str> = collection
            .expects
            .iter()
            .filter_map(|expected| match expected {
                Expectation::Follows { at } => Some(at.as_str()),
                Expectation::Numbered { .. } | Expectation::Rising { .. } | Expectation::Ordered { .. } => None,
            })
            .collect();
        for (column, schema) in properties(&collection.schema) {
            let unique = schema["unique"] == Value::Bool(true);
            let targets = match schema["references"].as_str().and_then(|name| all.get(name)) {
                Some(target) => Some((&target.name, self.by_id(target, key)?)),
                None => None,
            };
            if !unique && targets.is_none() {
                continue;
            }
            let mut seen: HashMap<String, usize> = HashMap::new();
            for (index, line) in text.lines().enumerate() {
                let Ok(row) = source::read(line, Format::Jsonl) else { continue };
                let value = &row[column.as_str()];
                if value.is_null() {
                    continue;
                }
                let pointer = format!("/{column}");
                let mut tell = |severity: Severity, violation: Violation| {
                    for mut located in report::locate(vec![violation], severity, line, Format::Jsonl, file) {
                        located.line = index + 1;
                        found.push(located);
                    }
                };
                if let Some((name, rows)) = &targets {
                    match rows.get(&value.to_string()) {
                        None => {
                            let message = format!("there is no row {value} in `{name}`");
                            tell(Severity::Error, Violation::new(pointer.as_str(), "references", message));
                        }
                        Some(target) => {
                            for at in &follows {
                                if let (Some(own), Some(other)) = (row.pointer(at), target.pointer(at))
                                    && expect::is_before(own, other)
                                {
                                    let message =
                                        format!("is before row {value} of `{name}`, to which it refers: {other}");
                                    tell(Severity::Note, Violation::new(*at, "follows", message));
                                }
                            }
                        }
                    }
                }
                if unique && let Some(first) = seen.insert(value.to_string(), index + 1) {
                    let message = format!("{value} stands in line {first} already");
                    tell(Severity::Error, Violation::new(pointer.as_str(), "unique", message));
                }
            }
        }
        found.sort_by_key(|located| (located.line, located.column));
        Ok(found)
    }

    fn by_id(&self, collection: &Collection, key: &DocumentKey) -> Result<HashMap<String, Value>> {
        Ok(self.rows(collection, key)?.into_iter().map(|row| (row["id"].to_string(), row)).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{rows, slug, store};
    use super::*;

    #[test]
    fn what_refers_to_nothing_and_what_is_there_twice_is_found() {
        let (_folder, store) = store();
        let table = |name: &str, properties: Value| {
            let mut table = rows();
            table.name = name.to_owned();
            table.path = format!("{{slug}}/{name}.jsonl");
            table.schema = json!({"type": "object", "properties": properties});
            table
        };
        let goals = table("goal", json!({"id": {"type": "integer", "unique": true}}));
        let tries = table("try", json!({"id": {"unique": true}, "goal_id": {"references": "goal"}}));
        let all = [("goal".to_owned(), goals.clone()), ("try".to_owned(), tries.clone())].into();
        store.append(&goals, &slug("a"), &json!({"id": 1}), None).unwrap();
        let text = "{\"id\":1,\"goal_id\":1}\n{\"id\":2,\"goal_id\":null}\n{\"id\":2,\"goal_id\":7}\n";
        let found = store.check_references(&tries, &all, &slug("a"), text, "a/try.jsonl").unwrap();
        let lines: Vec<String> = found.iter().map(|located| format!("{} {}", located.line, located.message)).collect();
        assert_eq!(lines, ["3 2 stands in line 2 already", "3 there is no row 7 in `goal`"]);
        let elsewhere = store.check_references(&tries, &all, &slug("b"), text, "b/try.jsonl").unwrap();
        assert_eq!(elsewhere.len(), 3);
    }
}
