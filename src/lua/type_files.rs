//! Reads the types of the host's modules (`api/*.d.luau`) as far as a check of names needs them: which fields a table has,
//! what a function takes first, and what it returns.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::lua::api;

/// The fields of a table, each with its type as it is written.
pub(super) type Fields = BTreeMap<String, String>;

/// A table type: what it is called, and all that it has.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    pub(super) module: &'static str,
    pub(super) name: String,
    pub(super) fields: Rc<Fields>,
}

/// What the types of all modules say.
pub(super) struct TypeFiles {
    records: BTreeMap<(&'static str, String), Record>,
    functions: BTreeMap<(&'static str, String), Signature>,
}

#[derive(Clone, Default)]
struct Signature {
    takes: String,
    returns: String,
}

impl TypeFiles {
    pub(super) fn read() -> TypeFiles {
        let mut files = TypeFiles { records: BTreeMap::new(), functions: BTreeMap::new() };
        for (module, _, types) in api::ALL {
            files.add(module, types);
        }
        files
    }

    fn add(&mut self, module: &'static str, types: &str) {
        let lines = types.lines().filter(|line| !line.trim_start().starts_with("--"));
        let types = lines.collect::<Vec<_>>().join("\n");
        for declared in types.split("\nexport type ").skip(1) {
            let Some((name, body)) = declared.split_once(" = ") else { continue };
            let Some((inside, behind)) = body.strip_prefix('{').and_then(split_closed) else { continue };
            // What is joined to another type has other fields, too.
            let is_whole = behind.lines().next().is_some_and(|rest| rest.trim().is_empty()) || behind.is_empty();
            if let Some(fields) = fields(inside).filter(|_| is_whole) {
                let record = Record { module, name: name.to_owned(), fields: Rc::new(fields) };
                self.records.insert((module, name.to_owned()), record);
            }
        }
        let own = module.rsplit(['/', '@']).next().unwrap_or(module);
        for declared in types.split(&format!("\nfunction {own}.")).skip(1) {
            let Some((name, rest)) = declared.split_once('(') else { continue };
            let Some((takes, returns)) = split_closed(rest) else { continue };
            let takes = parts(takes).into_iter().next().unwrap_or_default();
            let takes = takes.split_once(':').map(|(_, kind)| kind.trim().to_owned()).unwrap_or_default();
            let returns = returns.lines().next().unwrap_or_default().trim_start_matches(':').trim().to_owned();
            let name = name.split('<').next().unwrap_or_default().to_owned();
            self.functions.insert((module, name), Signature { takes, returns });
        }
        // A function with a type for each way to call it: the first takes most, and what it returns is not the same for all.
        for declared in types.split(&format!("\n{own}.")).skip(1) {
            let Some((name, (_, first))) =
                declared.split_once(" = ").and_then(|(name, kind)| Some((name, kind.split_once(":: ((")?)))
            else {
                continue;
            };
            let takes = split_closed(first).and_then(|(takes, _)| takes.split_once(':')).map(|(_, kind)| kind.trim());
            let takes = takes.unwrap_or_default().to_owned();
            self.functions.insert((module, name.to_owned()), Signature { takes, returns: String::new() });
        }
    }

    /// Returns the table type that a text of a module's types means, if it means one.
    fn resolve(&self, module: &'static str, text: &str) -> Option<Record> {
        let plain = text.trim().trim_end_matches('?');
        if let Some((inside, "")) = plain.strip_prefix('{').and_then(split_closed) {
            return Some(Record { module, name: "a table".to_owned(), fields: Rc::new(fields(inside)?) });
        }
        self.records.get(&(module, plain.to_owned())).cloned()
    }

    /// Returns the table that a function takes first.
    pub(super) fn taken_by(&self, module: &'static str, function: &str) -> Option<Record> {
        self.resolve(module, &self.functions.get(&(module, function.to_owned()))?.takes)
    }

    /// Returns the table that a function returns.
    pub(super) fn returned_by(&self, module: &'static str, function: &str) -> Option<Record> {
        self.resolve(module, &self.functions.get(&(module, function.to_owned()))?.returns)
    }

    /// Returns the table that a field of a table holds.
    pub(super) fn held_by(&self, record: &Record, field: &str) -> Option<Record> {
        self.resolve(record.module, record.fields.get(field)?)
    }

    /// Returns the table that a method returns.
    pub(super) fn returned_by_method(&self, record: &Record, method: &str) -> Option<Record> {
        self.resolve(record.module, record.fields.get(method)?.rsplit_once("->")?.1)
    }

    pub(super) fn record(&self, module: &'static str, name: &str) -> Option<Record> {
        self.records.get(&(module, name.to_owned())).cloned()
    }
}

/// Splits a text behind an opened bracket at the one that closes it.
fn split_closed(text: &str) -> Option<(&str, &str)> {
    let mut depth = 1;
    for (at, c) in text.char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((&text[..at], &text[at + 1..]));
        }
    }
    None
}

/// Splits a text at the commas that are in no brackets.
fn parts(text: &str) -> Vec<String> {
    let (mut depth, mut all) = (0, vec![String::new()]);
    for c in text.chars() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            _ => {}
        }
        if c == ',' && depth == 0 {
            all.push(String::new());
        } else if let Some(last) = all.last_mut() {
            last.push(c);
        }
    }
    all.retain(|part| !part.trim().is_empty());
    all
}

/// Returns the fields of a table type; `None` if it may have others than those that it names.
fn fields(inside: &str) -> Option<Fields> {
    let named = |part: String| {
        let (name, kind) = part.split_once(':')?;
        let name = name.trim();
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        is_name.then(|| (name.to_owned(), kind.trim().to_owned()))
    };
    parts(inside).into_iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_types_of_modules_are_understood() {
        let types = TypeFiles::read();
        let reply = types.returned_by("@nietz/llm", "chat").expect("a reply");
        assert!(reply.name == "Reply" && reply.fields.contains_key("text") && !reply.fields.contains_key("txt"));
        assert_eq!(types.held_by(&reply, "usage").map(|usage| usage.name), Some("Usage".to_owned()));
        assert_eq!(types.taken_by("@nietz/llm", "chat").map(|chat| chat.name), Some("Chat".to_owned()));
        let asked = types.taken_by("@nietz/ui", "ask").expect("what a question takes");
        assert!(asked.fields.contains_key("text") && asked.fields.contains_key("commands"));
        let handle = types.returned_by("@nietz/documents", "collection").expect("a handle");
        assert!(handle.fields.contains_key("save"));
        assert!(types.record("@nietz", "Context").is_some_and(|context| context.fields.contains_key("params")));
        // What may have any field has none that is misspelt.
        assert_eq!(types.record("@nietz", "Values"), None);
        assert_eq!(types.record("@nietz/llm", "Schema"), None);
        let staged = types.returned_by("@nietz/git", "staged").expect("a table");
        assert_eq!(staged.fields.keys().collect::<Vec<_>>(), ["cut", "patch"]);
    }
}
