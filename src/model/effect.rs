//! One request from a flow to the world, as the gate sees it.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::Serialize;
use serde_json::{Value, json};

use crate::model::chat::{ChatRequest, Said};
use crate::model::collection::Key;
use crate::model::command::Command;
use crate::model::document::Expect;
use crate::model::file::FileOp;
use crate::model::git::{Git, TreeOp};
use crate::model::permission::Permission;
use crate::model::question::Question;

/// Everything that a flow can ask the world for. Each kind has its own rule for the time after a crash:
/// see [`Effect::settles`].
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// The time, as milliseconds since 1970.
    Clock,
    /// 128 bits of chance, made from the run's seed and the effect's key.
    Random,
    Say {
        markdown: String,
        from: Option<String>,
    },
    /// Shown and forgotten: it is not recorded, and left out while a run catches up.
    Status {
        text: String,
    },
    Progress {
        label: String,
        done: u64,
        total: u64,
    },
    Ask(Question),
    Chat {
        /// Everything but the messages.
        request: ChatRequest,
        conversation: Vec<Rc<Said>>,
        /// How it is shown; not part of the key.
        show: Show,
    },
    Load {
        collection: String,
        key: Key,
    },
    Save {
        collection: String,
        key: Key,
        value: Value,
        expect: Expect,
        /// The older version that this document was migrated from; its file is kept until this one is safe.
        migrated: Option<String>,
    },
    List {
        collection: String,
    },
    /// One page of a collection's documents, in the order of their paths.
    Scan {
        collection: String,
        /// The parts of each document that are wanted, by name; nothing means whole documents.
        fields: Option<BTreeMap<String, String>>,
        /// The path behind which the page begins.
        after: Option<String>,
    },
    Append {
        collection: String,
        key: Key,
        row: Value,
    },
    Rows {
        collection: String,
        key: Key,
    },
    Delete {
        collection: String,
        key: Key,
        expect: Expect,
    },
    /// A question in SQL to collections of rows.
    Query {
        sql: String,
        bind: Vec<Value>,
        collections: Vec<String>,
        key: Key,
    },
    /// Reading what is there: files of the workspace, and those that the user grants.
    File(FileOp),
    Git(Git),
    /// Something in one worktree.
    Tree {
        tree: String,
        op: TreeOp,
    },
    Exec(Command),
}

/// How a model call is shown while it goes on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Show {
    pub label: String,
    pub stream: bool,
}

/// What a crash between intent and outcome means for a kind of effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settles {
    /// Never recorded.
    Transient,
    /// Recorded in one line when it happens; free to do again, so the line is synced with the next one
    /// that is not.
    Instant,
    /// Recorded as intent and outcome; after a crash in between it is done again.
    Again,
    /// Recorded as intent and outcome; after a crash in between the adapter looks whether it happened.
    Look,
}

impl Effect {
    /// Returns the kind's name, as it stands in journals.
    pub fn kind(&self) -> &'static str {
        match self {
            Effect::Clock => "clock",
            Effect::Random => "random",
            Effect::Say { .. } => "say",
            Effect::Status { .. } => "status",
            Effect::Progress { .. } => "progress",
            Effect::Ask(_) => "ask",
            Effect::Chat { .. } => "chat",
            Effect::Load { .. } => "load",
            Effect::Save { .. } => "save",
            Effect::List { .. } => "list",
            Effect::Scan { .. } => "scan",
            Effect::File(_) => "file",
            Effect::Append { .. } => "append",
            Effect::Rows { .. } => "rows",
            Effect::Delete { .. } => "delete",
            Effect::Query { .. } => "query",
            Effect::Git(_) => "git",
            Effect::Tree { .. } => "tree",
            Effect::Exec(_) => "exec",
        }
    }

    /// Returns the rule for a crash between intent and outcome.
    ///
    /// Saves and deletes are `Again`: they are made by content, so that doing one twice changes nothing. That a
    /// save is the second is told by its intent, which is synced before it: without one, a file that is just
    /// so is somebody else's. Likewise a worktree whose intent is there is made anew. A command is looked for, too:
    /// one that is not repeatable is then said to be in doubt, because nobody can know.
    pub fn settles(&self) -> Settles {
        match self {
            Effect::Status { .. } | Effect::Progress { .. } => Settles::Transient,
            Effect::Clock | Effect::Random | Effect::Say { .. } => Settles::Instant,
            Effect::Ask(_)
            | Effect::Chat { .. }
            | Effect::Load { .. }
            | Effect::Save { .. }
            | Effect::List { .. }
            | Effect::Scan { .. }
            | Effect::File(_)
            | Effect::Rows { .. }
            | Effect::Delete { .. }
            | Effect::Query { .. } => Settles::Again,
            Effect::Append { .. } | Effect::Exec(_) => Settles::Look,
            Effect::Git(git) => match git {
                Git::Branch { .. } | Git::Merge { .. } => Settles::Look,
                Git::Head
                | Git::Commit { .. }
                | Git::Diff { .. }
                | Git::Changed { .. }
                | Git::Brings { .. }
                | Git::Files { .. }
                | Git::Snapshot
                | Git::Delete { .. }
                | Git::Worktree { .. } => Settles::Again,
            },
            Effect::Tree { op, .. } => match op {
                TreeOp::Replace { .. } | TreeOp::Commit { .. } => Settles::Look,
                TreeOp::Read { .. }
                | TreeOp::Write { .. }
                | TreeOp::List { .. }
                | TreeOp::Find { .. }
                | TreeOp::Grep { .. }
                | TreeOp::Restore { .. }
                | TreeOp::Remove { .. } => Settles::Again,
            },
        }
    }

    /// Returns the permissions that a flow must have declared.
    pub fn needs(&self) -> &'static [Permission] {
        match self {
            Effect::Chat { .. } => &[Permission::Llm],
            Effect::File(_) => &[Permission::Files],
            Effect::Git(_) | Effect::Tree { .. } => &[Permission::Git],
            Effect::Exec(_) => &[Permission::Git, Permission::Exec],
            // Documents are permitted by the collections that the manifest declares: there is no other way to name one.
            Effect::Clock
            | Effect::Random
            | Effect::Say { .. }
            | Effect::Status { .. }
            | Effect::Progress { .. }
            | Effect::Ask(_)
            | Effect::Load { .. }
            | Effect::Save { .. }
            | Effect::List { .. }
            | Effect::Scan { .. }
            | Effect::Append { .. }
            | Effect::Rows { .. }
            | Effect::Delete { .. }
            | Effect::Query { .. } => &[],
        }
    }

    /// Tells whether the intent has to be on the disk before the effect begins, because what a second try does
    /// depends on whether there was a first.
    pub fn needs_intent(&self) -> bool {
        self.settles() == Settles::Look || matches!(self, Effect::Save { .. } | Effect::Git(Git::Worktree { .. }))
    }

    /// Tells whether the effect, once begun, goes on to its end whoever waits for it.
    pub fn lasts(&self) -> bool {
        matches!(self, Effect::Git(_) | Effect::Tree { .. } | Effect::File(_))
    }

    /// Returns the stateful things whose last change this effect builds on, and those that it changes.
    ///
    /// A change of a document also changes the list of its collection. Documents of one collection are
    /// things of their own, so that branches which write different ones stay apart; so are worktrees, and the
    /// branches of a repository.
    pub fn things(&self) -> Things {
        let document = |collection: &str, key: &Key| {
            let key: Vec<String> = key.iter().map(|(hole, value)| format!("{hole}={value}")).collect();
            format!("{collection} {}", key.join(" "))
        };
        let tree = |name: &str| format!("tree {name}");
        let branch = |name: &str| format!("branch {name}");
        match self {
            Effect::Load { collection, key } | Effect::Rows { collection, key } => {
                (vec![document(collection, key)], Vec::new())
            }
            Effect::List { collection } | Effect::Scan { collection, .. } => (vec![collection.clone()], Vec::new()),
            // Whatever the holes of its path are, a collection is one thing here.
            Effect::Query { collections, .. } => (collections.clone(), Vec::new()),
            Effect::Save { collection, key, .. }
            | Effect::Append { collection, key, .. }
            | Effect::Delete { collection, key, .. } => {
                let document = document(collection, key);
                (vec![document.clone()], vec![document, collection.clone()])
            }
            Effect::Git(git) => {
                let (on, moved) = git.branches();
                let mut changed: Vec<String> = moved.into_iter().map(branch).collect();
                if let Git::Worktree { name, .. } = git {
                    changed.push(tree(name));
                }
                (on.into_iter().map(branch).collect(), changed)
            }
            Effect::Tree { tree: name, op } => {
                let mut changed = Vec::new();
                if !op.only_reads() {
                    changed.push(tree(name));
                }
                if let TreeOp::Commit { branch: moved, .. } = op {
                    changed.push(branch(moved));
                }
                (vec![tree(name)], changed)
            }
            Effect::Exec(command) => (vec![tree(&command.tree)], vec![tree(&command.tree)]),
            Effect::Clock
            | Effect::Random
            | Effect::Say { .. }
            | Effect::Status { .. }
            | Effect::Progress { .. }
            | Effect::Ask(_)
            | Effect::File(_)
            | Effect::Chat { .. } => (Vec::new(), Vec::new()),
        }
    }

    /// Returns the list in the request that grows from one call to the next: what was said so far.
    pub fn conversation(&self) -> &[Rc<Said>] {
        match self {
            Effect::Chat { conversation, .. } => conversation,
            _ => &[],
        }
    }

    /// Returns the request as it is keyed and recorded, but for its [`Effect::conversation`].
    pub fn request(&self) -> Value {
        fn of(value: &impl Serialize) -> Value {
            serde_json::to_value(value).expect("a request is plain data with text keys")
        }
        match self {
            Effect::Clock | Effect::Random => json!({}),
            Effect::Say { markdown, from } => match from {
                Some(from) => json!({ "markdown": markdown, "from": from }),
                None => json!({ "markdown": markdown }),
            },
            Effect::Status { text } => json!({ "text": text }),
            Effect::Progress { label, done, total } => json!({ "label": label, "done": done, "total": total }),
            Effect::Ask(question) => of(question),
            Effect::Chat { request, .. } => of(request),
            Effect::Load { collection, key } => json!({ "collection": collection, "key": key }),
            Effect::Save { collection, key, value, expect, migrated } => {
                let mut request = json!({ "collection": collection, "key": key, "value": value, "expect": of(expect) });
                if let Some(version) = migrated {
                    request["migrated"] = json!(version);
                }
                request
            }
            Effect::List { collection } => json!({ "collection": collection }),
            Effect::Scan { collection, fields, after } => {
                json!({ "collection": collection, "fields": fields, "after": after })
            }
            Effect::File(op) => of(op),
            Effect::Append { collection, key, row } => json!({ "collection": collection, "key": key, "row": row }),
            Effect::Rows { collection, key } => json!({ "collection": collection, "key": key }),
            Effect::Delete { collection, key, expect } => {
                json!({ "collection": collection, "key": key, "expect": of(expect) })
            }
            Effect::Query { sql, bind, collections, key } => {
                json!({ "sql": sql, "bind": bind, "collections": collections, "key": key })
            }
            Effect::Git(git) => of(git),
            Effect::Tree { tree, op } => {
                let mut request = of(op);
                request["tree"] = json!(tree);
                request
            }
            Effect::Exec(command) => of(command),
        }
    }
}

/// What an effect builds on, and what it changes.
pub type Things = (Vec<String>, Vec<String>);

/// The digests of the source files that a run loaded, by their path in the pack.
pub type Sources = BTreeMap<String, String>;
