//! Commands in a worktree.

use serde_json::Value;

use super::resources::tree_resource;
use super::{Dependencies, EffectFacts, Recovery, ReplayClass, plain};
use crate::model::command::{CommandLine, ExecCommand};
use crate::model::permission::Permission;
use crate::model::redact::Cleaner;

impl EffectFacts for ExecCommand {
    fn kind(&self) -> &'static str {
        "exec"
    }

    /// After a crash, a command that is not repeatable is reported to be in doubt, because nobody can know how far it came.
    fn recovery(&self) -> Recovery {
        Recovery::Probe
    }

    fn only_looks(&self) -> bool {
        false
    }

    fn can_be_stopped(&self) -> bool {
        true
    }

    fn replay_class(&self) -> ReplayClass {
        ReplayClass::Surroundings
    }

    fn required_permissions(&self) -> &'static [Permission] {
        match self.read.as_slice() {
            [] => &[Permission::Git, Permission::Exec],
            _ => &[Permission::Git, Permission::Exec, Permission::ExecRead],
        }
    }

    fn dependencies(&self) -> Dependencies {
        let from = self.dependencies.as_ref().and_then(|given| given.from.as_deref());
        let builds = self.builds.as_ref().and_then(|builds| builds.of.as_deref());
        let mut on: Vec<&str> = [Some(self.tree.as_str()), from, builds].into_iter().flatten().collect();
        on.sort_unstable();
        on.dedup();
        let reads = on.into_iter().map(tree_resource).collect();
        Dependencies { reads, writes: vec![tree_resource(&self.tree)] }
    }

    fn request(&self) -> Value {
        plain(self)
    }

    fn redact(&mut self, cleaner: &Cleaner) {
        match &mut self.run {
            CommandLine::Program(words) => words.iter_mut().for_each(|word| cleaner.text(word)),
            CommandLine::Shell(text) => cleaner.text(text),
        }
    }
}
