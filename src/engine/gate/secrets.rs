//! Taking the secrets out of effects, before anything else happens to them.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::Gate;
use crate::model::chat::Said;
use crate::model::collection::Key;
use crate::model::command::Run;
use crate::model::effect::Effect;
use crate::model::file::FileOp;
use crate::model::git::{Git, TreeOp};
use crate::model::redact::Redactor;

/// The shortest text that is remembered, in bytes, and how many are.
const LONG: usize = 2048;
const KEPT: usize = 8;

/// The last long texts without a secret: a prompt that is joined of all that was said begins with the one before it.
#[derive(Default)]
pub(super) struct Clean(RefCell<VecDeque<String>>);

impl Clean {
    /// Takes the secrets out of a text; what it begins with and was searched before is not searched again.
    fn redact(&self, redactor: &Redactor, text: &mut String) {
        if text.len() < LONG {
            return redact_text(redactor, text);
        }
        let mut clean = self.0.borrow_mut();
        let known = (0..clean.len()).filter(|at| text.starts_with(&clean[*at])).max_by_key(|at| clean[*at].len());
        let redacted = match known {
            Some(at) => redactor.text_after(&clean[at], text),
            None => redactor.text(text),
        };
        if let Cow::Owned(redacted) = redacted {
            *text = redacted;
            return;
        }
        // It stands for the one that it begins with.
        let _ = known.and_then(|at| clean.remove(at));
        clean.push_back(text.clone());
        if clean.len() > KEPT {
            clean.pop_front();
        }
    }
}

impl Gate {
    /// Takes the secrets out of an effect. What is performed and what is recorded are the same.
    pub(super) fn redact(&self, effect: &mut Effect) {
        let redactor = &*self.redactor;
        match effect {
            Effect::Say { markdown, from } => {
                redact_text(redactor, markdown);
                from.iter_mut().for_each(|from| redact_text(redactor, from));
            }
            Effect::Save { key, value, .. } | Effect::Append { key, row: value, .. } => {
                redact_key(redactor, key);
                redactor.value(value);
            }
            // A file of that name is none of the collection's then, and refused.
            Effect::Load { key, .. } | Effect::Rows { key, .. } | Effect::Delete { key, .. } => {
                redact_key(redactor, key);
            }
            Effect::File(FileOp::Read { path: text } | FileOp::Find { glob: text }) => redact_text(redactor, text),
            Effect::Chat { request, conversation, show } => {
                redact_text(redactor, &mut show.label);
                request.system.iter_mut().for_each(|text| redact_text(redactor, text));
                for said in conversation.iter_mut().filter(|said| !said.clean.get()) {
                    let mut message = said.message.clone();
                    self.clean.redact(redactor, &mut message.content);
                    message.tool_calls.iter_mut().for_each(|call| redact_whole(redactor, &mut call.arguments));
                    message.state.iter_mut().for_each(|state| redact_text(redactor, state));
                    match message == said.message {
                        true => said.clean.set(true),
                        false => *said = Rc::new(Said::new(message)),
                    }
                }
                for tool in &mut request.tools {
                    redact_text(redactor, &mut tool.description);
                    redactor.value(&mut tool.parameters);
                }
                request.schema.iter_mut().for_each(|schema| redactor.value(schema));
            }
            Effect::Ask(question) => {
                redact_text(redactor, &mut question.prompt);
                question.default.iter_mut().for_each(|default| redactor.value(default));
                for option in &mut question.options {
                    redact_text(redactor, &mut option.label);
                    redact_text(redactor, &mut option.value);
                }
            }
            Effect::Status { text } | Effect::Progress { label: text, .. } => redact_text(redactor, text),
            Effect::Query { sql, bind, .. } => {
                redact_text(redactor, sql);
                bind.iter_mut().for_each(|value| redactor.value(value));
            }
            Effect::Git(Git::Merge { message, .. }) => redact_text(redactor, message),
            Effect::Tree { op, .. } => match op {
                TreeOp::Write { path, text } => {
                    redact_text(redactor, path);
                    redact_text(redactor, text);
                }
                TreeOp::Replace { path, old, new } => {
                    redact_text(redactor, path);
                    redact_text(redactor, old);
                    redact_text(redactor, new);
                }
                TreeOp::Commit { message, .. } => redact_text(redactor, message),
                TreeOp::Grep { pattern, glob } => {
                    redact_text(redactor, pattern);
                    glob.iter_mut().for_each(|glob| redact_text(redactor, glob));
                }
                TreeOp::Read { path: text } | TreeOp::List { path: text } | TreeOp::Find { glob: text } => {
                    redact_text(redactor, text);
                }
                TreeOp::Restore { .. } | TreeOp::Remove { .. } => {}
            },
            Effect::Exec(command) => match &mut command.run {
                Run::Program(words) => words.iter_mut().for_each(|word| redact_text(redactor, word)),
                Run::Shell(text) => redact_text(redactor, text),
            },
            // Nothing free in them: names of collections and branches.
            Effect::Git(_) | Effect::Clock | Effect::Random | Effect::List { .. } | Effect::Scan { .. } => {}
        }
    }
}

fn redact_key(redactor: &Redactor, key: &mut Key) {
    key.values_mut().for_each(|value| redact_text(redactor, value));
}

/// For what may be JSON, in which escapes can hide a secret.
fn redact_whole(redactor: &Redactor, text: &mut String) {
    if let Cow::Owned(redacted) = redactor.whole(text) {
        *text = redacted;
    }
}

fn redact_text(redactor: &Redactor, text: &mut String) {
    if let Cow::Owned(redacted) = redactor.text(text) {
        *text = redacted;
    }
}
