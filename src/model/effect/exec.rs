//! Commands in a worktree.

use serde_json::Value;

use super::things::tree;
use super::{Dependencies, Facts, Recovery, Source, plain};
use crate::model::command::{Command, Run};
use crate::model::permission::Permission;
use crate::model::redact::Cleaner;

impl Facts for Command {
    fn kind(&self) -> &'static str {
        "exec"
    }

    /// One that is not repeatable is said to be in doubt then, because nobody can know.
    fn recovery(&self) -> Recovery {
        Recovery::Probe
    }

    fn source(&self) -> Source {
        Source::Surroundings
    }

    fn needs(&self) -> &'static [Permission] {
        &[Permission::Git, Permission::Exec]
    }

    fn dependencies(&self) -> Dependencies {
        Dependencies { reads: vec![tree(&self.tree)], writes: vec![tree(&self.tree)] }
    }

    fn request(&self) -> Value {
        plain(self)
    }

    fn redact(&mut self, cleaner: &Cleaner) {
        match &mut self.run {
            Run::Program(words) => words.iter_mut().for_each(|word| cleaner.text(word)),
            Run::Shell(text) => cleaner.text(text),
        }
    }
}
