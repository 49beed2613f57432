//! THE table of what needs which permission. The gate, the audit, plans, packs and the models of a run read it; tests check
//! the types of the host's modules and the schema of `pack.yaml` against it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Code, Failure};
use crate::model::command;

/// The permissions that a flow's manifest declares. Unknown ones are refused when the manifest is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Permissions {
    /// Model calls.
    pub llm: bool,
    /// Reading files of the workspace, and of folders that the user grants.
    pub files: bool,
    /// The flow's own branches in the workspace's repository, and worktrees beside it.
    pub git: bool,
    /// Commands in those worktrees: names of programs, and `{param}` for commands that the user gives in a param.
    pub exec: Vec<String>,
    /// Notifications, in the way that the user's own configuration names.
    pub notify: bool,
    /// The commands of a run: those of `exec`, with the user's values in place of `{param}`.
    #[serde(skip)]
    pub(crate) given_commands: Option<Vec<String>>,
}

impl Permissions {
    /// Tells whether the manifest declares a permission.
    pub fn declares(&self, permission: Permission) -> bool {
        match permission {
            Permission::Llm => self.llm,
            Permission::Files => self.files,
            Permission::Git => self.git,
            Permission::Exec => !self.exec.is_empty(),
            Permission::Notify => self.notify,
        }
    }

    /// Returns the permissions of a run with these params.
    pub fn with_params(&self, params: &Value) -> Permissions {
        Permissions { given_commands: Some(command::grants(&self.exec, params)), ..self.clone() }
    }

    /// Returns the allowed commands.
    pub fn commands(&self) -> &[String] {
        self.given_commands.as_deref().unwrap_or(&self.exec)
    }
}

/// A permission that a manifest can declare. Documents need none: a flow can name only those of the collections that its
/// manifest declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    Llm,
    Files,
    Git,
    Exec,
    Notify,
}

/// A row of the table.
struct PermissionRow {
    permission: Permission,
    /// Its name in manifests and in `pack.yaml`.
    name: &'static str,
    /// What a flow does with it, to follow "this flow".
    does: &'static str,
    /// How a manifest declares it.
    declared: &'static str,
    /// What the person who grants it is told, to follow "it".
    asked: &'static str,
    /// What in the host's modules needs it.
    uses: &'static [Use],
}

/// A use that can be seen in source code.
enum Use {
    /// Every function of a module.
    Module(&'static str),
    /// One function of a module.
    Function(&'static str, &'static str),
    /// One function of a module, if it is called without an argument.
    Bare(&'static str, &'static str),
    /// A method of an object that a module returns.
    Method(&'static str, &'static str),
}

const TABLE: &[PermissionRow] = &[
    PermissionRow {
        permission: Permission::Llm,
        name: "llm",
        does: "calls a model",
        declared: "llm = true",
        asked: "calls models: what you say, and what it reads, is sent to them",
        uses: &[
            Use::Function("@nietz/llm", "chat"),
            // Without a name they refer to the run's model, and a run without model calls has none.
            Use::Bare("@nietz/llm", "model"),
            Use::Bare("@nietz/llm", "window"),
        ],
    },
    PermissionRow {
        permission: Permission::Files,
        name: "files",
        does: "reads files",
        declared: "files = true",
        asked: "reads any file in your folder, and those elsewhere that you allow",
        uses: &[Use::Module("@nietz/files")],
    },
    PermissionRow {
        permission: Permission::Git,
        name: "git",
        does: "works with git",
        declared: "git = true",
        asked: "reads the whole repository and uncommitted work; makes branches and worktrees of its own",
        uses: &[Use::Module("@nietz/git")],
    },
    PermissionRow {
        permission: Permission::Exec,
        name: "exec",
        does: "runs commands",
        declared: "exec = { \"PROGRAM\" }",
        asked: "runs commands, in a sandbox",
        uses: &[Use::Method("@nietz/git", "exec")],
    },
    PermissionRow {
        permission: Permission::Notify,
        name: "notify",
        does: "sends notifications",
        declared: "notify = true",
        asked: "sends you notifications, in the way that your configuration names",
        uses: &[Use::Function("@nietz", "notify")],
    },
];

impl Permission {
    /// All permissions, in the order in which they are shown.
    pub const ALL: &[Permission] =
        &[Permission::Llm, Permission::Files, Permission::Git, Permission::Exec, Permission::Notify];

    fn row(self) -> &'static PermissionRow {
        TABLE.iter().find(|row| row.permission == self).expect("the table has a row for each")
    }

    /// Returns its name in manifests and in `pack.yaml`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the permission with this name.
    pub fn parse(name: &str) -> Option<Permission> {
        TABLE.iter().find(|row| row.name == name).map(|row| row.permission)
    }

    /// Returns how a manifest declares it.
    pub fn declaration(self) -> String {
        format!("permissions = {{ {} }}", self.row().declared)
    }

    /// Returns what the person who grants it is told, to follow "it".
    pub fn consent_text(self) -> &'static str {
        self.row().asked
    }

    /// Returns the failure, before and during a run, of a flow that uses this permission without declaring it.
    pub fn undeclared_failure(self) -> Failure {
        let message = format!("this flow {}, but its manifest does not declare that it may", self.row().does);
        Failure::new(Code::PermissionRefused, message)
            .hint(format!("add `{}` to its nietz.flow{{…}}", self.declaration()))
    }
}

/// Returns the failure, before and during a run, of a command that says it only looks and does more.
pub fn only_looks_failure(does: &str) -> Failure {
    Failure::new(Code::PermissionRefused, format!("a command that only looks cannot do this: {does}"))
        .hint("take `reads_only = true` out of the command in the flow's manifest, or this out of the command")
}

/// Returns the permission that `module.function` needs; `bare` says that it is called without an argument.
pub fn of_function(module: &str, function: &str, bare: bool) -> Option<Permission> {
    let needs = |used: &Use| match used {
        Use::Module(name) => *name == module,
        Use::Function(name, one) => *name == module && *one == function,
        Use::Bare(name, one) => bare && *name == module && *one == function,
        Use::Method(..) => false,
    };
    TABLE.iter().find(|row| row.uses.iter().any(needs)).map(|row| row.permission)
}

/// Returns the methods that need a permission, each with the module whose objects have it.
pub fn methods() -> impl Iterator<Item = (&'static str, &'static str, Permission)> {
    let of = |used: &'static Use| match used {
        Use::Method(module, name) => Some((*module, *name)),
        Use::Module(_) | Use::Function(..) | Use::Bare(..) => None,
    };
    TABLE
        .iter()
        .flat_map(move |row| row.uses.iter().filter_map(of).map(|(module, name)| (module, name, row.permission)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_permission_that_a_manifest_can_declare_once() {
        let listed: Vec<&str> = Permission::ALL.iter().map(|permission| permission.name()).collect();
        let rows: Vec<&str> = TABLE.iter().map(|row| row.name).collect();
        assert_eq!(listed, rows);
        let known = serde_json::to_value(Permissions::default()).unwrap();
        let mut sorted = listed.clone();
        sorted.sort_unstable();
        let mut known: Vec<&str> = known.as_object().unwrap().keys().map(String::as_str).collect();
        known.sort_unstable();
        assert_eq!(sorted, known);
        for permission in Permission::ALL {
            assert_eq!(Permission::parse(permission.name()), Some(*permission));
            let given = match permission {
                Permission::Exec => serde_json::json!({ "exec": ["ls"] }),
                other => serde_json::json!({ other.name(): true }),
            };
            let permissions: Permissions = serde_json::from_value(given).unwrap();
            let declared: Vec<_> = Permission::ALL.iter().filter(|one| permissions.declares(**one)).collect();
            assert_eq!(declared, [permission]);
        }
    }
}
