//! Model calls.

use std::rc::Rc;

use serde_json::Value;

use super::{EffectFacts, Recovery, ReplayClass, ReplayDisplay, plain};
use crate::error::Result;
use crate::model::chat::{ChatRequest, HashedMessage};
use crate::model::permission::Permission;
use crate::model::redact::Cleaner;

/// A model call.
#[derive(Clone, Debug, PartialEq)]
pub struct Chat {
    /// Everything but the messages.
    pub request: ChatRequest,
    pub conversation: Vec<Rc<HashedMessage>>,
    /// How the call is shown; not part of the key.
    pub show: CallDisplay,
}

/// How a model call is shown while it goes on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallDisplay {
    pub label: String,
    pub stream: bool,
}

impl EffectFacts for Chat {
    fn kind(&self) -> &'static str {
        "chat"
    }

    fn recovery(&self) -> Recovery {
        Recovery::Retry
    }

    fn only_looks(&self) -> bool {
        false
    }

    fn can_be_stopped(&self) -> bool {
        true
    }

    fn replay_class(&self) -> ReplayClass {
        ReplayClass::Said
    }

    fn required_permissions(&self) -> &'static [Permission] {
        &[Permission::Llm]
    }

    fn speaker(&self) -> (Option<&str>, bool) {
        (Some(self.show.label.as_str()).filter(|label| !label.is_empty()), self.show.stream)
    }

    fn conversation(&self) -> &[Rc<HashedMessage>] {
        &self.conversation
    }

    fn request(&self) -> Value {
        plain(&self.request)
    }

    fn redact(&mut self, cleaner: &Cleaner) {
        let Chat { request, conversation, show } = self;
        cleaner.text(&mut show.label);
        request.system.iter_mut().for_each(|text| cleaner.text(text));
        for item in conversation.iter_mut().filter(|item| !item.clean.get()) {
            let mut message = item.message.clone();
            cleaner.growing_text(&mut message.content);
            message.tool_calls.iter_mut().for_each(|call| cleaner.json_text(&mut call.arguments));
            message.attachments.iter_mut().for_each(|attachment| cleaner.text(&mut attachment.name));
            cleaner.state(&mut message.state);
            match message == item.message {
                true => item.clean.set(true),
                false => *item = Rc::new(HashedMessage::new(message)),
            }
        }
        for tool in &mut request.tools {
            cleaner.text(&mut tool.description);
            cleaner.value(&mut tool.parameters);
        }
        request.schema.iter_mut().for_each(|schema| cleaner.value(schema));
        request.stop.iter_mut().for_each(|text| cleaner.text(text));
        request.provider_options.values_mut().for_each(|option| cleaner.value(option));
    }

    fn replay_display<'a>(&'a self, outcome: &'a Result<Value>) -> ReplayDisplay<'a> {
        let text = outcome.as_ref().ok().and_then(|reply| reply["text"].as_str()).filter(|_| self.show.stream);
        text.map_or(ReplayDisplay::Nothing, |markdown| ReplayDisplay::Said { markdown, from: Some(&self.show.label) })
    }
}
