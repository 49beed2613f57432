//! A notification: what a flow tells its user where they are, in the way that their own configuration names.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{EffectFacts, Recovery, ReplayClass, plain};
use crate::model::permission::Permission;
use crate::model::redact::Cleaner;

/// The longest title and the longest text, in characters: both are read at a glance.
const TITLE: usize = 200;
const TEXT: usize = 4000;

/// What the user is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notification {
    pub title: String,
    pub text: String,
    #[serde(default)]
    pub urgency: Urgency,
}

/// How soon the user should look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Urgency {
    Low,
    #[default]
    Normal,
    High,
}

impl Notification {
    /// Returns what is wrong with it, if anything.
    pub fn problem(&self) -> Option<String> {
        if self.title.trim().is_empty() || self.title.contains(char::is_control) {
            return Some("the title must be one line, and not empty".to_owned());
        }
        for (name, text, most) in [("title", &self.title, TITLE), ("text", &self.text, TEXT)] {
            if text.chars().count() > most {
                return Some(format!("the {name} is longer than {most} characters"));
            }
        }
        None
    }
}

impl EffectFacts for Notification {
    fn kind(&self) -> &'static str {
        "notify"
    }

    /// After a crash it is sent again, with the same id: nobody can know whether it arrived, one that is missing is worse than
    /// one that comes twice, and whoever takes it drops the second by its id.
    fn recovery(&self) -> Recovery {
        Recovery::Retry
    }

    fn only_looks(&self) -> bool {
        false
    }

    /// A fork tells nobody again what the first run told.
    fn replay_class(&self) -> ReplayClass {
        ReplayClass::Said
    }

    fn required_permissions(&self) -> &'static [Permission] {
        &[Permission::Notify]
    }

    fn request(&self) -> Value {
        plain(self)
    }

    fn redact(&mut self, cleaner: &Cleaner) {
        cleaner.text(&mut self.title);
        cleaner.text(&mut self.text);
    }
}
