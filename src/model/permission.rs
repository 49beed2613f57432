//! THE table of what needs which permission. The gate, the audit, plans, packs and the models of a run read it; tests check
//! the types of the host's modules and the schema of `pack.yaml` against it.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
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
    /// The workspace's repository: to read it, or to have branches of the flow's own in it, too, and worktrees beside it.
    pub git: GitAccess,
    /// Commands in those worktrees: names of programs, `sandbox:PROGRAM` for what may run in a sandbox and nowhere else, and
    /// `{param}` for commands that the user gives in a param.
    pub exec: Vec<String>,
    /// Files of the user's home with keys, which the flow may give to a command: `{param}` for those that the user names in
    /// a param.
    pub exec_read: Vec<String>,
    /// Notifications, in the way that the user's own configuration names.
    pub notify: bool,
    /// MCP servers, by the names that the user's own configuration gives them.
    pub mcp: Vec<String>,
    /// The commands of a run: those of `exec`, with the user's values in place of `{param}`.
    #[serde(skip)]
    pub(crate) given_commands: Option<Vec<String>>,
    /// The files of `exec_read`.
    #[serde(skip)]
    pub(crate) given_files: Vec<String>,
}

impl Permissions {
    /// Tells whether the manifest declares a permission.
    pub fn declares(&self, permission: Permission) -> bool {
        match permission {
            Permission::Llm => self.llm,
            Permission::Files => self.files,
            Permission::GitRead => self.git != GitAccess::None,
            Permission::Git => self.git == GitAccess::Full,
            Permission::Exec => !self.exec.is_empty(),
            Permission::ExecRead => !self.exec_read.is_empty(),
            Permission::Notify => self.notify,
            Permission::Mcp => !self.mcp.is_empty(),
        }
    }

    /// Returns the permissions of a run with these params, whose commands run in a sandbox or not.
    pub fn with_params(&self, params: &Value, sandboxed: bool) -> Permissions {
        Permissions {
            given_commands: Some(command::grants(&self.exec, params, sandboxed)),
            given_files: command::grants(&self.exec_read, params, sandboxed),
            ..self.clone()
        }
    }

    /// Returns the allowed commands.
    pub fn commands(&self) -> &[String] {
        self.given_commands.as_deref().unwrap_or(&self.exec)
    }

    /// Returns the files that the flow may give to a command: those that the user has named.
    pub fn files_of_commands(&self) -> &[String] {
        &self.given_files
    }

    /// Returns the entries that params may be named in whose values are what the user typed, and no text from elsewhere.
    pub fn typed(&self) -> Vec<String> {
        self.exec.iter().chain(&self.exec_read).cloned().collect()
    }
}

/// What a manifest declares of the workspace's repository: `git = "read"`, or `git = true`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GitAccess {
    #[default]
    None,
    /// Commits, and what is not committed, can be read.
    Read,
    /// The flow has branches of its own and worktrees, too.
    Full,
}

/// What stands in a manifest and in `pack.yaml` for it to be read and no more.
const READ: &str = "read";

impl Serialize for GitAccess {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            GitAccess::None => serializer.serialize_bool(false),
            GitAccess::Read => serializer.serialize_str(READ),
            GitAccess::Full => serializer.serialize_bool(true),
        }
    }
}

impl<'de> Deserialize<'de> for GitAccess {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<GitAccess, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Bool(false) | Value::Null => Ok(GitAccess::None),
            Value::Bool(true) => Ok(GitAccess::Full),
            Value::String(word) if word == READ => Ok(GitAccess::Read),
            _ => Err(D::Error::custom("git must be true, false or \"read\"")),
        }
    }
}

/// A permission that a manifest can declare. Documents need none: a flow can name only those of the collections that its
/// manifest declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    Llm,
    Files,
    GitRead,
    Git,
    Exec,
    ExecRead,
    Notify,
    Mcp,
}

/// A row of the table.
struct PermissionRow {
    permission: Permission,
    /// Its name in manifests and in `pack.yaml`; where one name has two permissions, with the value of the lesser one.
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
        permission: Permission::GitRead,
        name: "git=read",
        does: "reads the repository",
        declared: "git = \"read\"",
        asked: "reads the whole repository and uncommitted work",
        uses: &[
            Use::Function("@nietz/git", "head"),
            Use::Function("@nietz/git", "commit_of"),
            Use::Function("@nietz/git", "snapshot"),
            Use::Function("@nietz/git", "resolve"),
            Use::Function("@nietz/git", "merge_base"),
            Use::Function("@nietz/git", "log"),
            Use::Function("@nietz/git", "staged"),
            Use::Function("@nietz/git", "dependencies"),
            Use::Function("@nietz/git", "unstaged"),
            Use::Function("@nietz/git", "diff"),
            Use::Function("@nietz/git", "hunks"),
            Use::Function("@nietz/git", "changed"),
            Use::Function("@nietz/git", "stat"),
            Use::Function("@nietz/git", "brings"),
            Use::Function("@nietz/git", "remains"),
            Use::Function("@nietz/git", "files"),
        ],
    },
    PermissionRow {
        permission: Permission::Git,
        name: "git",
        does: "makes branches and worktrees",
        declared: "git = true",
        asked: "reads the whole repository and uncommitted work; makes branches and worktrees of its own",
        uses: &[
            Use::Function("@nietz/git", "branch"),
            Use::Function("@nietz/git", "delete_branch"),
            Use::Function("@nietz/git", "merge"),
            Use::Function("@nietz/git", "discard"),
            Use::Function("@nietz/git", "worktree"),
        ],
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
        permission: Permission::ExecRead,
        name: "exec_read",
        does: "gives commands files with keys",
        declared: "exec_read = { \"{PARAM}\" }",
        asked: "gives commands files of your home that you name, which may hold keys",
        // What is given to a command is seen when it is run.
        uses: &[],
    },
    PermissionRow {
        permission: Permission::Notify,
        name: "notify",
        does: "sends notifications",
        declared: "notify = true",
        asked: "sends you notifications, in the way that your configuration names",
        uses: &[Use::Function("@nietz", "notify")],
    },
    PermissionRow {
        permission: Permission::Mcp,
        name: "mcp",
        does: "calls tools of MCP servers",
        declared: "mcp = { \"SERVER\" }",
        asked: "calls tools of MCP servers that your configuration names: they are sent what it asks them",
        uses: &[Use::Module("@nietz/mcp")],
    },
];

impl Permission {
    /// All permissions, in the order in which they are shown.
    pub const ALL: &[Permission] = &[
        Permission::Llm,
        Permission::Files,
        Permission::GitRead,
        Permission::Git,
        Permission::Exec,
        Permission::ExecRead,
        Permission::Notify,
        Permission::Mcp,
    ];

    fn row(self) -> &'static PermissionRow {
        TABLE.iter().find(|row| row.permission == self).expect("the table has a row for each")
    }

    /// Returns the name by which it is asked for and granted: `git`, or `git=read`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the member of a manifest's `permissions`, and of `pack.yaml`, that declares it.
    pub fn member(self) -> &'static str {
        self.name().split('=').next().unwrap_or_default()
    }

    /// Tells whether whoever is granted one permission has this one with it.
    pub fn is_part_of(self, other: Permission) -> bool {
        self == other || (self, other) == (Permission::GitRead, Permission::Git)
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
        let mut sorted: Vec<&str> = Permission::ALL.iter().map(|permission| permission.member()).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let mut known: Vec<&str> = known.as_object().unwrap().keys().map(String::as_str).collect();
        known.sort_unstable();
        assert_eq!(sorted, known);
        for permission in Permission::ALL {
            assert_eq!(Permission::parse(permission.name()), Some(*permission));
            let given = match permission {
                Permission::Exec => serde_json::json!({ "exec": ["ls"] }),
                Permission::ExecRead => serde_json::json!({ "exec_read": ["{key_file}"] }),
                Permission::Mcp => serde_json::json!({ "mcp": ["docs"] }),
                Permission::GitRead => serde_json::json!({ "git": "read" }),
                other => serde_json::json!({ other.name(): true }),
            };
            let permissions: Permissions = serde_json::from_value(given).unwrap();
            let part: Vec<_> = Permission::ALL.iter().filter(|one| one.is_part_of(*permission)).collect();
            let declared: Vec<_> = Permission::ALL.iter().filter(|one| permissions.declares(**one)).collect();
            assert_eq!(declared, part);
        }
        assert_eq!(Permission::ALL.iter().filter(|one| one.is_part_of(Permission::Git)).count(), 2);
    }

    #[test]
    fn access_to_git_is_read_as_it_is_written_and_nothing_else_is() {
        for (declared, access) in [
            (serde_json::json!(false), GitAccess::None),
            (serde_json::json!("read"), GitAccess::Read),
            (serde_json::json!(true), GitAccess::Full),
        ] {
            assert_eq!(serde_json::from_value::<GitAccess>(declared.clone()).unwrap(), access);
            assert_eq!(serde_json::to_value(access).unwrap(), declared);
        }
        for wrong in [serde_json::json!("write"), serde_json::json!(1), serde_json::json!(["read"])] {
            let why = serde_json::from_value::<Permissions>(serde_json::json!({ "git": wrong })).unwrap_err();
            assert!(why.to_string().contains("git must be true, false or \"read\""), "{why}");
        }
    }
}
