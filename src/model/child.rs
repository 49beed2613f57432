//! A run that a flow starts as a part of its own: its child. What it is asked, and the bounds that hold for it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::model::budget::Budget;
use crate::model::chat::Effort;
use crate::model::command::Grants;
use crate::model::permission::{Permission, Permissions};

/// What the process of a child is given, as one line of JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChildRequest {
    /// Its name, which is the same whenever its parent asks for it.
    pub run: String,
    pub flow: String,
    pub params: Map<String, Value>,
    /// Only workers with this tag take it; empty for all.
    pub tag: String,
    pub of: ParentRun,
    /// What it may use at most, of what is left to its parent.
    pub budget: Budget,
    pub terms: ChildTerms,
    /// The number of the process that asks.
    pub process: i32,
}

/// The run that has a child: its name, the key of the effect, and what its flow declares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParentRun {
    pub run: String,
    pub key: String,
    /// What the parent may do, with the commands and files that its user gave.
    pub permissions: Permissions,
}

/// What a child has of its parent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChildTerms {
    /// The pack that the parent's flow is of.
    pub pack: Option<String>,
    pub model: Option<String>,
    pub only_model: bool,
    pub effort: Option<Effort>,
    pub lang: String,
    pub seed: u64,
    pub grants: Grants,
    /// The trace that the parent's processes are spans of, in hex digits.
    pub trace: String,
}

/// Returns the permissions as they bound a child: commands and files are those that the user gave, and no params.
pub fn bounds(of_parent: &Permissions) -> Permissions {
    Permissions {
        exec: commands(of_parent),
        exec_read: of_parent.files_of_commands().to_vec(),
        given_commands: None,
        given_files: Vec::new(),
        ..of_parent.clone()
    }
}

/// Returns the commands that a run may call, with what is for a sandbox alone marked as such, wherever it runs.
fn commands(of_run: &Permissions) -> Vec<String> {
    let declared = |command: &String| of_run.exec.contains(command);
    let marked = |command: &String| {
        let alone = format!("sandbox:{command}");
        if declared(&alone) && !declared(command) { alone } else { command.clone() }
    };
    of_run.commands().iter().map(marked).collect()
}

/// Returns what of the permissions of a child's run its parent has not.
pub fn beyond(of_child: &Permissions, bounds: &Permissions) -> Vec<String> {
    let named = |permission: &&Permission| {
        let lists = [Permission::Exec, Permission::ExecRead, Permission::Mcp];
        !lists.contains(*permission) && of_child.declares(**permission) && !bounds.declares(**permission)
    };
    let mut beyond: Vec<String> =
        Permission::ALL.iter().filter(named).map(|permission| permission.name().to_owned()).collect();
    // What may run in a sandbox alone is part of what may run anywhere.
    let has_not = |command: &String| {
        let plain = command.strip_prefix("sandbox:");
        !bounds.exec.iter().any(|given| given == command || plain.is_some_and(|plain| plain == given))
    };
    beyond.extend(commands(of_child).into_iter().filter(has_not).map(|command| format!("exec={command}")));
    let files = of_child.files_of_commands().iter().filter(|file| !bounds.exec_read.contains(file));
    beyond.extend(files.map(|file| format!("exec_read={file}")));
    let servers = of_child.mcp.iter().filter(|server| !bounds.mcp.contains(server));
    beyond.extend(servers.map(|server| format!("mcp={server}")));
    beyond
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(declared: Value) -> Permissions {
        let permissions: Permissions = serde_json::from_value(declared).expect("they are permissions");
        permissions.with_params(&json!({ "check": "make test" }), true)
    }

    #[test]
    fn a_child_has_no_permission_that_its_parent_has_not() {
        let parent = json!({ "llm": true, "git": true, "exec": ["cargo", "{check}"], "mcp": ["docs"] });
        for (child, expected) in [
            (json!({}), &[][..]),
            (json!({ "llm": true, "git": "read", "exec": ["cargo"] }), &[]),
            (json!({ "exec": ["sandbox:cargo", "make test"] }), &[]),
            (json!({ "exec": ["make"], "notify": true }), &["notify", "exec=make"]),
            (json!({ "files": true, "git": true }), &["files"]),
            (json!({ "mcp": ["docs"] }), &[]),
            (json!({ "mcp": ["docs", "mail"] }), &["mcp=mail"]),
        ] {
            assert_eq!(beyond(&of(child.clone()), &bounds(&of(parent.clone()))), expected, "{child}");
        }
        let reads = bounds(&of(json!({ "git": "read" })));
        assert_eq!(beyond(&of(json!({ "git": true })), &reads), ["git"]);
        assert_eq!(
            beyond(&of(json!({ "exec": ["cargo"] })), &bounds(&of(json!({ "exec": ["sandbox:cargo"] })))),
            ["exec=cargo"]
        );
    }
}
