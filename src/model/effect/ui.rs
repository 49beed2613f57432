//! Messages and questions to the user.

use serde_json::{Value, json};

use super::{EffectFacts, Recovery, ReplayClass, ReplayDisplay, plain};
use crate::error::Result;
use crate::model::question::{Question, QuestionKind};
use crate::model::redact::Cleaner;

/// What a flow shows to a person or asks of them.
#[derive(Clone, Debug, PartialEq)]
pub enum UiOp {
    Say {
        markdown: String,
        from: Option<String>,
    },
    /// Shown but not recorded, and left out while a run is replayed.
    Status {
        text: String,
    },
    Progress {
        label: String,
        done: u64,
        total: u64,
    },
    Ask(Box<Question>),
    /// Whether somebody is there for questions.
    Attended,
}

impl EffectFacts for UiOp {
    fn kind(&self) -> &'static str {
        match self {
            UiOp::Say { .. } => "say",
            UiOp::Status { .. } => "status",
            UiOp::Progress { .. } => "progress",
            UiOp::Ask(_) => "ask",
            UiOp::Attended => "attended",
        }
    }

    fn recovery(&self) -> Recovery {
        match self {
            UiOp::Say { .. } | UiOp::Attended => Recovery::SingleLine,
            UiOp::Status { .. } | UiOp::Progress { .. } => Recovery::Unrecorded,
            UiOp::Ask(_) => Recovery::Retry,
        }
    }

    fn only_looks(&self) -> bool {
        match self {
            UiOp::Say { .. } | UiOp::Status { .. } | UiOp::Progress { .. } | UiOp::Attended => true,
            UiOp::Ask(_) => false,
        }
    }

    fn replay_class(&self) -> ReplayClass {
        match self {
            UiOp::Say { .. } | UiOp::Status { .. } | UiOp::Progress { .. } => ReplayClass::Shown,
            UiOp::Ask(_) | UiOp::Attended => ReplayClass::Said,
        }
    }

    fn asks(&self) -> bool {
        match self {
            UiOp::Ask(_) => true,
            UiOp::Say { .. } | UiOp::Status { .. } | UiOp::Progress { .. } | UiOp::Attended => false,
        }
    }

    fn recap(&self) -> Option<&str> {
        match self {
            UiOp::Ask(question) => question.recap.as_deref(),
            UiOp::Say { .. } | UiOp::Status { .. } | UiOp::Progress { .. } | UiOp::Attended => None,
        }
    }

    fn request(&self) -> Value {
        match self {
            UiOp::Say { markdown, from: Some(from) } => json!({ "markdown": markdown, "from": from }),
            UiOp::Say { markdown, from: None } => json!({ "markdown": markdown }),
            UiOp::Status { text } => json!({ "text": text }),
            UiOp::Attended => json!({}),
            UiOp::Progress { label, done, total } => json!({ "label": label, "done": done, "total": total }),
            // What may be typed in place of an answer is no part of what is asked, nor are the words for yes and no, nor who may
            // answer: where a flow offers more, what was answered stays answered.
            UiOp::Ask(question) => {
                let mut asked =
                    Question { commands: Vec::new(), before: None, approval: false, ..(**question).clone() };
                if asked.kind == QuestionKind::Confirm {
                    asked.options.clear();
                }
                plain(&asked)
            }
        }
    }

    fn redact(&mut self, cleaner: &Cleaner) {
        match self {
            UiOp::Say { markdown, from } => {
                cleaner.text(markdown);
                from.iter_mut().for_each(|from| cleaner.text(from));
            }
            UiOp::Status { text } | UiOp::Progress { label: text, .. } => cleaner.text(text),
            UiOp::Attended => {}
            UiOp::Ask(question) => {
                cleaner.text(&mut question.prompt);
                question.recap.iter_mut().for_each(|recap| cleaner.text(recap));
                question.default.iter_mut().for_each(|default| cleaner.value(default));
                for option in &mut question.options {
                    cleaner.text(&mut option.label);
                    cleaner.text(&mut option.value);
                }
                question.commands.iter_mut().for_each(|command| cleaner.text(&mut command.summary));
            }
        }
    }

    fn answered_before(&mut self, answer: Value) {
        if let UiOp::Ask(question) = self {
            question.before = Some(Box::new(answer));
        }
    }

    fn replay_display<'a>(&'a self, outcome: &'a Result<Value>) -> ReplayDisplay<'a> {
        match self {
            UiOp::Say { markdown, from } => ReplayDisplay::Said { markdown, from: from.as_deref() },
            UiOp::Ask(question) => ReplayDisplay::Answered { question, answer: outcome.as_ref().ok() },
            UiOp::Status { .. } | UiOp::Progress { .. } | UiOp::Attended => ReplayDisplay::Nothing,
        }
    }
}
