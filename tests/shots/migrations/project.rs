//! What a migration is: a repository as it is, as it is to be, and how both are looked at; and how one is put together
//! from a few kinds of modules.

use std::collections::BTreeMap;

/// The parts of each project, and their modules: one of each kind.
pub(super) const GROUPS: [(&str, [&str; 3]); 4] = [
    ("billing", ["invoice", "refund", "ledger"]),
    ("mail", ["inbox", "outbox", "drafts"]),
    ("reports", ["daily", "weekly", "yearly"]),
    ("storage", ["ring", "shelf", "cellar"]),
];

/// Files by their paths.
pub(super) type Files = BTreeMap<String, String>;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Python,
    Rust,
    JavaScript,
}

/// A module in its old and in its new form, what the session sees tested of it, and what it never sees. `NAME`, `GROUP` and `SECOND`
/// stand for the module, its part, and the second module of that.
pub(super) struct Kind {
    pub(super) old: &'static str,
    pub(super) new: &'static str,
    pub(super) test: &'static str,
    pub(super) hidden: &'static str,
}

/// A migration as its file says it.
pub(super) struct Sketch {
    pub(super) name: &'static str,
    pub(super) goal: &'static str,
    /// An extended regular expression that is found as long as something is left to do.
    pub(super) pattern: &'static str,
    pub(super) kinds: [Kind; 3],
    /// What the hidden checks begin with.
    pub(super) hidden: &'static str,
}

/// A part of the goal, as a breakdown names it.
pub(super) struct Part {
    pub(super) goal: String,
    pub(super) validation: Vec<String>,
    /// What the paths of its files begin with.
    pub(super) below: Vec<String>,
    /// What it replaces in files that other parts change, too: path, old and new text.
    pub(super) edits: Vec<[String; 3]>,
}

/// A whole migration.
pub(super) struct Migration {
    pub(super) name: &'static str,
    pub(super) language: Language,
    pub(super) goal: &'static str,
    pub(super) before: Files,
    pub(super) after: Files,
    pub(super) validate: Vec<String>,
    pub(super) parts: Vec<Part>,
    /// A file that is put into what came out, and the command that then has to exit with 0.
    pub(super) hidden: (&'static str, String, &'static str),
}

impl Migration {
    /// The paths that differ, in their order: to write, and to delete.
    pub(super) fn changes(&self, below: Option<&[String]>) -> (Vec<&str>, Vec<&str>) {
        let within = |path: &&String| below.is_none_or(|all| all.iter().any(|prefix| path.starts_with(prefix)));
        let write = self.after.iter().filter(|(path, text)| self.before.get(*path) != Some(text)).map(|(path, _)| path);
        let delete = self.before.keys().filter(|path| !self.after.contains_key(*path));
        (write.filter(within).map(String::as_str).collect(), delete.filter(within).map(String::as_str).collect())
    }
}

/// A script that fails as long as the pattern is found below a folder, in all of it or in the parts that are named.
pub(super) fn check(folder: &str, pattern: &str) -> String {
    format!(
        "#!/bin/sh\n# Exits with 0 when nothing is left to do below {folder}, or in the parts that are named.\n\
         cd {folder} || exit 2\ngrep -rnE '{pattern}' ${{*:-.}}\n[ $? -eq 1 ]\n"
    )
}

/// Puts the name of a module and of its part into a text.
pub(super) fn filled(text: &str, group: &str, name: &str) -> String {
    let second = GROUPS.iter().find(|(of, _)| *of == group).map_or("", |(_, names)| names[1]);
    text.replace("NAME", name).replace("GROUP", group).replace("SECOND", second)
}

impl Sketch {
    /// The goal of a part, and what it is validated by.
    pub(super) fn parts(&self, below: impl Fn(&str) -> Vec<String>, tests: impl Fn(&str) -> String) -> Vec<Part> {
        let part = |(group, _): &(&str, [&str; 3])| Part {
            goal: format!("{}, in the part {group} alone", self.goal),
            validation: vec![format!("sh check.sh {group}"), tests(group)],
            below: below(group),
            edits: Vec::new(),
        };
        GROUPS.iter().map(part).collect()
    }

    /// Each module with its part and its kind.
    pub(super) fn modules(&self) -> impl Iterator<Item = (&'static str, &'static str, &Kind)> {
        GROUPS.iter().flat_map(move |(group, names)| {
            names.iter().zip(&self.kinds).map(move |(name, kind)| (*group, *name, kind))
        })
    }

    /// The tests of a part, or all hidden ones.
    pub(super) fn texts(&self, group: Option<&str>, of: impl Fn(&Kind) -> &'static str) -> String {
        let mine = self.modules().filter(|(of_group, ..)| group.is_none_or(|group| group == *of_group));
        mine.map(|(group, name, kind)| filled(of(kind), group, name)).collect()
    }
}
