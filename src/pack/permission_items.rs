//! What the flows of a pack ask for, as permission items that can be compared, granted and described in words.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::model::permission::{Permission, Permissions};
use crate::model::text::line;

/// What one flow asks for: `llm`, `git`, `exec=cargo`, `documents=notes/{slug}.yaml`.
pub(crate) type Items = BTreeSet<String>;
/// The same for each flow of a pack, by its name.
pub(crate) type ItemsByFlow = BTreeMap<String, Items>;

/// What a flow may do, as it stands in `pack.yaml`: as in the flow's own `permissions`, and `documents` with the paths of
/// its collections.
pub(crate) type DeclaredPermissions = BTreeMap<String, Value>;

/// Returns what a flow asks for with these permissions and documents at these paths, each with whether it is read everywhere.
///
/// The function goes through whatever permissions there are, so that none can be forgotten here.
pub(crate) fn items<'a>(permissions: &Permissions, documents: impl Iterator<Item = (&'a str, bool)>) -> Items {
    let permissions = serde_json::to_value(permissions).expect("permissions are plain data");
    let mut items = items_of_members(permissions.as_object().into_iter().flatten());
    for (path, everywhere) in documents {
        items.insert(format!("documents={path}"));
        items.extend(everywhere.then(|| everywhere_item(path)));
    }
    items
}

/// Returns the item for documents that are read in the user's other folders, too.
pub(crate) fn everywhere_item(path: &str) -> String {
    format!("everywhere={path}")
}

/// Returns what `pack.yaml` says that a flow asks for.
pub(crate) fn declared_items(declared: &DeclaredPermissions) -> Items {
    items_of_members(declared.iter())
}

fn items_of_members<'a>(members: impl Iterator<Item = (&'a String, &'a Value)>) -> Items {
    let mut items = Items::new();
    for (name, value) in members {
        match value {
            Value::Null | Value::Bool(false) => {}
            Value::Bool(true) => drop(items.insert(name.clone())),
            Value::Array(list) => {
                items.extend(list.iter().map(|item| match item {
                    Value::String(text) => format!("{name}={text}"),
                    other => format!("{name}={other}"),
                }));
            }
            Value::String(text) => drop(items.insert(format!("{name}={text}"))),
            other => drop(items.insert(format!("{name}={other}"))),
        }
    }
    items
}

/// Describes in words what an item allows.
pub(crate) fn describe_item(item: &str) -> String {
    let item = display_item(item);
    match item.split_once('=') {
        Some(("exec", command)) => match crate::model::command::placeholder(command) {
            Some(param) => {
                let more = if command.ends_with('}') { "" } else { ", also with further words" };
                format!("runs the commands that you give in --{}{more}, in a sandbox", param.replace('_', "-"))
            }
            None => match crate::model::command::in_sandbox_alone(command) {
                Some(program) => format!("runs `{program}` with any arguments, in a sandbox and never without"),
                // Words for the shell are granted as they stand.
                None if command.contains(' ') => format!("runs `{command}`, in a sandbox"),
                None => format!("runs `{command}` with any arguments, in a sandbox"),
            },
        },
        Some(("exec_read", file)) => {
            let param = crate::model::command::placeholder(file).unwrap_or(file).replace('_', "-");
            format!("gives commands the files of your home that you name in --{param}, which may hold keys")
        }
        Some(("mcp", server)) => {
            format!("calls tools of the MCP server {server} of your configuration, which is sent what it asks")
        }
        Some(("documents", "{*}")) => "reads and writes any YAML or JSON file in your folder".to_owned(),
        Some(("documents", path)) => format!("reads and writes {path} in your folder"),
        Some(("everywhere", path)) => {
            format!("reads {path} in your other folders, too, where a flow that does so was run")
        }
        Some(("hides", flow)) => format!("is run in place of the bundled flow {flow}"),
        Some(("persona", slug)) => format!("has another persona in place of {slug}, for flows that are not its own"),
        Some(("data", path)) => format!("has its own {path}, for a flow that is not its own"),
        Some(("quotes", file)) => format!("has other quotes in place of {file}, for flows that are not its own"),
        Some(("setting", name)) => format!("sets {name}, of a flow that is not its own"),
        Some(("filter", filter)) => {
            let (name, command) = filter.split_once('=').unwrap_or((filter, ""));
            format!(
                "has git run `{command}` outside of any sandbox, as filter.{name} of the repository's configuration"
            )
        }
        Some(("model", name)) => format!("chooses the model {name}, for flows that are not its own"),
        None if item == "persona-models" => {
            "chooses models in its personas, where you named one with --model".to_owned()
        }
        None if item == "*" => "does whatever it asks for, now and later".to_owned(),
        _ => Permission::parse(&item).map_or_else(|| item.clone(), |permission| permission.consent_text().to_owned()),
    }
}

/// Returns an item as it is shown to the user who grants it: one line, in which blanks push nothing out of sight.
pub(crate) fn display_item(item: &str) -> String {
    let mut behind_blank = false;
    let mark_blanks = |c: char| match std::mem::replace(&mut behind_blank, c.is_whitespace()) && c.is_whitespace() {
        true => '␠',
        false => c,
    };
    line(item).chars().map(mark_blanks).collect()
}

/// Tells whether `--allow` can name this: an item for all flows, or `FLOW:` and an item for one.
pub(crate) fn is_known(allowed: &str, known: &ItemsByFlow) -> bool {
    known.iter().any(|(flow, items)| items.iter().any(|item| allows(allowed, flow, item)))
}

/// How the item for a filter of the repository's begins, which git runs: the filter's name and its command follow.
pub(crate) const FILTER: &str = "filter=";

/// Returns the items that `--allow` names: each value has one, or several with commas in between.
pub(crate) fn split_allowed<'a>(allow: &'a [String], known: impl Fn(&str) -> bool) -> Vec<&'a str> {
    let split = |text: &'a String| if known(text) { vec![text.as_str()] } else { text.split(',').collect() };
    allow.iter().flat_map(split).collect()
}

/// Tells whether `--allow` grants an item to a flow.
pub(crate) fn allows(allowed: &str, flow: &str, item: &str) -> bool {
    allowed == item || allowed.strip_prefix(flow).and_then(|rest| rest.strip_prefix(':')) == Some(item)
}

/// Tells whether what is granted holds an item: itself, or a permission that it is part of.
pub(crate) fn is_granted(granted: &Items, item: &str) -> bool {
    let holds = |permission: Permission| {
        Permission::ALL.iter().any(|other| permission.is_part_of(*other) && granted.contains(other.name()))
    };
    granted.contains(item) || Permission::parse(item).is_some_and(holds)
}

/// Returns the items of the first that the second does not hold.
pub(crate) fn subtract_items(items: &ItemsByFlow, others: &ItemsByFlow) -> ItemsByFlow {
    let none = Items::new();
    let rest = |flow: &String, items: &Items| -> Items {
        let others = others.get(flow).unwrap_or(&none);
        items.iter().filter(|item| !is_granted(others, item)).cloned().collect()
    };
    let remaining = items.iter().map(|(flow, items)| (flow.clone(), rest(flow, items)));
    remaining.filter(|(_, items)| !items.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::permission::GitAccess;

    #[test]
    fn each_permission_is_said_in_words() {
        for permission in Permission::ALL {
            assert_eq!(describe_item(permission.name()), permission.consent_text());
        }
        let expected = "gives commands the files of your home that you name in --setup-read, which may hold keys";
        assert_eq!(describe_item("exec_read={setup_read}"), expected);
    }

    #[test]
    fn reading_is_part_of_all_that_git_may_and_not_the_other_way_round() {
        let of = |item: &str| Items::from([item.to_owned()]);
        let left = |wanted: &str, granted: &str| {
            let by_flow = |item: &str| ItemsByFlow::from([("review".to_owned(), of(item))]);
            subtract_items(&by_flow(wanted), &by_flow(granted)).into_values().flatten().collect::<Vec<_>>()
        };
        assert!(is_granted(&of("git"), "git=read") && !is_granted(&of("git=read"), "git"));
        assert!(left("git=read", "git").is_empty());
        assert_eq!(left("git", "git=read"), ["git"]);
        let read = Permissions { git: GitAccess::Read, ..Permissions::default() };
        assert_eq!(items(&read, std::iter::empty()), of("git=read"));
    }

    #[test]
    fn what_is_told_and_what_is_declared_are_the_same_things() {
        let permissions =
            Permissions { llm: true, exec: vec!["cargo".into(), "{validate}".into()], ..Permissions::default() };
        let asked = items(&permissions, [("notes/{slug}.yaml", true)].into_iter());
        let declared: DeclaredPermissions = serde_json::from_value(serde_json::json!({
            "llm": true, "git": false, "exec": ["{validate}", "cargo"], "documents": ["notes/{slug}.yaml"],
            "everywhere": ["notes/{slug}.yaml"],
        }))
        .unwrap();
        assert_eq!(declared_items(&declared), asked);
        assert!(asked.contains("exec=cargo") && asked.len() == 5, "{asked:?}");
        for item in &asked {
            assert_ne!(describe_item(item), *item, "it is said in words");
        }
    }
}
