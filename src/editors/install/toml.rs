//! The entry in a file of TOML: a table of its own, put at the end and taken out again line by line.

use serde_json::Value;

use super::NAME;

const TABLE: &str = "mcp_servers";

/// Returns the table of an entry. Strings of JSON are strings of TOML.
pub(super) fn table(value: &Value) -> String {
    format!("[{TABLE}.{NAME}]\ncommand = {}\nargs = {}\n", value["command"], value["args"])
}

/// Returns the text with the table.
pub(super) fn with(before: &str, value: &Value) -> String {
    let table = table(value);
    if before.contains(&table) {
        return before.to_owned();
    }
    let before = without(before);
    let gap = if before.trim().is_empty() { "" } else { "\n" };
    format!("{}{gap}{table}", if before.is_empty() { String::new() } else { format!("{}\n", before.trim_end()) })
}

/// Returns the text without the table and those below it.
pub(super) fn without(before: &str) -> String {
    let (mut out, mut is_own) = (String::new(), false);
    for line in before.split_inclusive('\n') {
        if let Some(name) = line.trim().strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            let name = name.trim().replace('"', "");
            let own = format!("{TABLE}.{NAME}");
            is_own = name == own || name.starts_with(&format!("{own}."));
        }
        if !is_own {
            out.push_str(line);
        }
    }
    out
}

/// Returns the command of the table.
pub(super) fn command(text: &str) -> Option<String> {
    let head = format!("[{TABLE}.{NAME}]");
    let below = text.lines().skip_while(|line| line.trim() != head).skip(1);
    let line = below.take_while(|line| !line.starts_with('[')).find_map(|line| line.trim().strip_prefix("command"))?;
    serde_json::from_str(line.trim().strip_prefix('=')?.trim()).ok()
}
