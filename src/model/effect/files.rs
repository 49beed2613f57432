//! Reading files of the workspace and of folders that the user grants.

use serde_json::Value;

use super::{EffectFacts, Recovery, ReplayClass, plain};
use crate::model::file::FileOp;
use crate::model::permission::Permission;
use crate::model::redact::Cleaner;

impl EffectFacts for FileOp {
    fn kind(&self) -> &'static str {
        "file"
    }

    fn recovery(&self) -> Recovery {
        Recovery::Retry
    }

    fn only_looks(&self) -> bool {
        true
    }

    fn replay_class(&self) -> ReplayClass {
        ReplayClass::Surroundings
    }

    fn required_permissions(&self) -> &'static [Permission] {
        &[Permission::Files]
    }

    fn lasts(&self) -> bool {
        true
    }

    fn request(&self) -> Value {
        plain(self)
    }

    fn redact(&mut self, cleaner: &Cleaner) {
        match self {
            FileOp::Read { path: text } | FileOp::Find { glob: text } => cleaner.text(text),
        }
    }
}
