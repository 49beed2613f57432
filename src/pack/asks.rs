//! What the flows of a pack ask for, as single things that can be compared, granted and said in words.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::model::effect::Permissions;

/// What one flow asks for: `llm`, `git`, `exec=cargo`, `documents=notes/{slug}.yaml`.
pub type Items = BTreeSet<String>;
/// The same for each flow of a pack, by its name.
pub type Asks = BTreeMap<String, Items>;

/// What a flow may do, as it stands in `pack.yaml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Declared {
    llm: bool,
    git: bool,
    exec: Vec<String>,
    documents: Vec<String>,
}

impl Declared {
    pub fn items(&self) -> Items {
        let permissions = Permissions { llm: self.llm, git: self.git, exec: self.exec.clone() };
        items(&permissions, self.documents.iter().map(String::as_str))
    }
}

/// Returns what a flow asks for with these permissions and documents at these paths.
pub fn items<'a>(permissions: &Permissions, documents: impl Iterator<Item = &'a str>) -> Items {
    let mut items = Items::new();
    if permissions.llm {
        items.insert("llm".to_owned());
    }
    if permissions.git {
        items.insert("git".to_owned());
    }
    items.extend(permissions.exec.iter().map(|command| format!("exec={command}")));
    items.extend(documents.map(|path| format!("documents={path}")));
    items
}

/// Says what a thing that is asked for means.
pub fn words(item: &str) -> String {
    let item = crate::model::text::clean(item);
    match item.split_once('=') {
        Some(("exec", command)) => match crate::model::command::hole(command) {
            Some(param) => format!("runs the commands that you give in --{}, in a sandbox", param.replace('_', "-")),
            None => format!("runs `{command}` with any arguments, in a sandbox"),
        },
        Some(("documents", path)) => format!("reads and writes {path} in your folder"),
        _ if item == "llm" => "calls models: what you say, and what it reads, is sent to them".to_owned(),
        _ if item == "git" => "makes branches and worktrees of its own from your repository".to_owned(),
        _ => item,
    }
}

/// Tells whether `--allow` can name this: a thing for all flows, or `FLOW:` and a thing for one.
pub fn is_known(allowed: &str, asks: &Asks) -> bool {
    asks.iter().any(|(flow, items)| items.iter().any(|item| allows(allowed, flow, item)))
}

/// Tells whether `--allow` grants a thing to a flow.
pub fn allows(allowed: &str, flow: &str, item: &str) -> bool {
    allowed == item || allowed.strip_prefix(flow).and_then(|rest| rest.strip_prefix(':')) == Some(item)
}

/// Returns what is in the first and not in the second.
pub fn without(asks: &Asks, others: &Asks) -> Asks {
    let none = Items::new();
    let rest = |flow: &String, items: &Items| -> Items {
        items.difference(others.get(flow).unwrap_or(&none)).cloned().collect()
    };
    let left = asks.iter().map(|(flow, items)| (flow.clone(), rest(flow, items)));
    left.filter(|(_, items)| !items.is_empty()).collect()
}
