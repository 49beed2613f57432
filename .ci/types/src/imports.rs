//! What a module gives to those who require it. The analyser's crate declares Luau's globals a second time, by which
//! `require` loses what it knows: types that a module exports come through, and its value is `any`. So each module that
//! is read exports the type of its value, too, and whoever requires it takes that.

/// The name by which the type of a module's value is exported.
const MODULE: &str = "Module__";

/// Returns the source with the types of what it requires, and of what it returns; each line stays where it is.
pub fn typed(source: &str) -> String {
    let mut lines: Vec<String> = source.lines().map(|line| format!("{line}{}", taken(line))).collect();
    if let Some(value) = lines.iter_mut().rev().find(|line| line.starts_with("return ")) {
        *value = value.replacen("return ", "local module__ = ", 1);
        lines.push(format!("export type {MODULE} = typeof(module__)\nreturn module__"));
    }
    lines.join("\n") + "\n"
}

/// Returns what gives each `local name = require(…)` of a line its type.
fn taken(line: &str) -> String {
    let names = line.split("local ").skip(1).filter_map(|statement| {
        let (name, path) = statement.split_once(" = require(")?;
        (path.trim_end().ends_with(')') && !name.contains(' ')).then_some(name)
    });
    names.map(|name| format!("; local {name}: {name}.{MODULE} = {name} :: any")).collect()
}

/// Returns the analyser's message in words that fit what the file says; nothing for what only these types bring up.
pub fn told(message: &str, line: u32, source: &str) -> Option<String> {
    if message.starts_with("Variable ") && message.ends_with(&format!("shadows previous declaration at line {line}")) {
        return None;
    }
    let quoted = message.split('\'').nth(1).unwrap_or_default();
    if message.starts_with("Variable ") && message.contains(" is never used") && names_a_type_of(quoted, source) {
        return None;
    }
    if let Some(name) = quoted.strip_suffix(&format!(".{MODULE}")) {
        return Some(format!("what `{name}` requires is not there"));
    }
    Some(message.replace(&format!("'{MODULE}'"), "the module"))
}

/// Whether a source names something of a module: what it has only for its types counts as used.
fn names_a_type_of(module: &str, source: &str) -> bool {
    source
        .match_indices(&format!("{module}."))
        .any(|(at, _)| !source[..at].ends_with(|before: char| before.is_alphanumeric() || matches!(before, '_' | '.')))
}
