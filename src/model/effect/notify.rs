//! A notification: what a flow tells its user where they are, in the way that their own configuration names.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{EffectFacts, Recovery, ReplayClass, plain};
use crate::model::permission::Permission;
use crate::model::redact::Cleaner;

/// The most characters of a title and a text that are sent.
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
    /// Returns the title as one line and the text, both cut to what is read at a glance. Secrets are taken out before: one that
    /// is cut would not be known any more.
    pub fn cut(&self) -> (String, String) {
        let line: String = self.title.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        (cut(line.trim(), TITLE), cut(&self.text, TEXT))
    }
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_short_and_its_title_one_line() {
        let notification = |title: &str, text: &str| Notification {
            title: title.to_owned(),
            text: text.to_owned(),
            urgency: Urgency::Normal,
        };
        assert_eq!(notification("\tone\ntwo\u{1b}", "a\nb").cut(), ("one two".to_owned(), "a\nb".to_owned()));
        let (title, text) = notification(&"é".repeat(201), &"é".repeat(4000)).cut();
        assert_eq!((title, text), (format!("{}…", "é".repeat(200)), "é".repeat(4000)));
    }
}
