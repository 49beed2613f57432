//! Effects: requests from a flow to the world, as the gate sees them.
//!
//! Each area has a file with all of its facts: its kinds of effects, what a crash means for them, what they depend on, how
//! they are keyed and recorded, where they may hold secrets, which permission they need, and how they are shown in a
//! replay. Only the adapter that performs them distinguishes them as well.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

use crate::error::Result;
use crate::model::chat::HashedMessage;
use crate::model::command::ExecCommand;
use crate::model::effect::files::FileOp;
use crate::model::event::Event;
use crate::model::permission::Permission;
use crate::model::question::Question;
use crate::model::redact::Cleaner;

pub(crate) mod chat;
pub(crate) mod documents;
mod exec;
pub(crate) mod files;
pub mod git;
pub(crate) mod mcp;
pub(crate) mod notify;
mod resources;
pub mod search;
pub mod spawn;
pub(crate) mod time;
pub(crate) mod ui;
pub mod worktree;

/// Everything that a flow can request from the world, by area.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Time(time::TimeOp),
    Ui(ui::UiOp),
    Chat(chat::Chat),
    Documents(documents::DocumentOp),
    Files(FileOp),
    Git(git::GitOp),
    Worktree(worktree::WorktreeOp),
    Exec(ExecCommand),
    Notify(notify::Notification),
    Mcp(mcp::McpOp),
    Spawn(spawn::Spawn),
}

/// What a crash between intent and outcome means for a kind of effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// The effect is never recorded.
    Unrecorded,
    /// The effect is recorded in one line when it happens. Repeating it is free, so the line is synced only with the next line
    /// of another kind.
    SingleLine,
    /// The effect is recorded as intent and outcome. After a crash in between it is performed again.
    Retry,
    /// The effect is recorded as intent and outcome. After a crash in between the adapter checks whether it happened.
    Probe,
}

/// Which effects can be replayed from another journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayClass {
    /// Replies of models, answers of people and servers: a recorded one is also valid in another folder.
    Said,
    /// Time and randomness.
    Chance,
    /// Shown messages, which are never replayed but shown again.
    Shown,
    /// The documents of a workspace.
    Documents,
    /// Files, the repository and commands, which depend on what was there before the run.
    Surroundings,
}

/// The resources whose last change an effect depends on, and those that it changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependencies {
    pub reads: Vec<String>,
    pub writes: Vec<String>,
}

/// How a replayed effect is shown to the user, who may not have seen it.
#[derive(Debug)]
pub enum ReplayDisplay<'a> {
    Nothing,
    /// A message, shown when the run goes live.
    Said {
        markdown: &'a str,
        from: Option<&'a str>,
    },
    /// A question, with the answer that is given back: the person who answered it has seen all messages before it.
    Answered {
        question: &'a Question,
        answer: Option<&'a Value>,
    },
}

impl ReplayDisplay<'_> {
    /// Returns the event that shows it.
    pub fn event(&self) -> Option<Event> {
        match *self {
            ReplayDisplay::Nothing => None,
            ReplayDisplay::Said { markdown, from } => {
                Some(Event::Said { markdown: markdown.to_owned(), from: from.map(str::to_owned) })
            }
            ReplayDisplay::Answered { question, answer } => {
                Some(Event::GivenBack { question: question.clone(), answer: answer?.clone() })
            }
        }
    }
}

/// The facts of an effect.
pub trait EffectFacts {
    /// Returns the kind's name in journals.
    fn kind(&self) -> &'static str;

    /// Returns the rule for a crash between intent and outcome.
    fn recovery(&self) -> Recovery;

    fn replay_class(&self) -> ReplayClass;

    /// Tells whether the effect changes nothing, asks nobody and costs nothing: what a command that only looks may do.
    fn only_looks(&self) -> bool;

    /// Returns the permissions that a flow must have declared.
    fn required_permissions(&self) -> &'static [Permission] {
        &[]
    }

    /// Tells whether the intent must be on the disk before the effect begins, because a second attempt depends on whether
    /// there was a first one.
    fn needs_intent(&self) -> bool {
        self.recovery() == Recovery::Probe
    }

    /// Tells whether the effect, once begun, runs to its end even if nobody waits for it.
    fn lasts(&self) -> bool {
        false
    }

    /// Tells whether somebody else takes the time that it takes, a model, a command or a person, so that it can be stopped without
    /// leaving anything half done of the run's own.
    fn can_be_stopped(&self) -> bool {
        self.asks()
    }

    /// Returns for whom a model speaks in it, and whether people see what it says.
    fn speaker(&self) -> (Option<&str>, bool) {
        (None, false)
    }

    /// Tells whether it waits for a person.
    fn asks(&self) -> bool {
        false
    }

    /// Returns what tells a person where they are who comes back to it by `nietz resume`.
    fn recap(&self) -> Option<&str> {
        None
    }

    /// Returns the resources that the effect depends on and changes. Each document is a resource of its own, so that parallel
    /// branches which write different documents stay independent; so are worktrees, and the branches of a repository.
    fn dependencies(&self) -> Dependencies {
        Dependencies::default()
    }

    /// Returns the collection that the effect writes into, if any; its declaration decides what is valid.
    fn writes_into(&self) -> Option<&str> {
        None
    }

    /// Returns the value that is written into a document, if any.
    fn written_value(&self) -> Option<&Value> {
        None
    }

    /// Returns the messages of the request, a list that grows from one call to the next.
    fn conversation(&self) -> &[Rc<HashedMessage>] {
        &[]
    }

    /// Returns the request as it is keyed and recorded, without its [`EffectFacts::conversation`].
    fn request(&self) -> Value;

    /// Redacts the request. The same redacted request is performed and recorded.
    fn redact(&mut self, cleaner: &Cleaner);

    /// Notes the answer that the question had in an earlier dialogue, for the person who is asked again.
    fn answered_before(&mut self, _answer: Value) {}

    /// Returns how the effect is shown when its outcome is replayed.
    fn replay_display<'a>(&'a self, _outcome: &'a Result<Value>) -> ReplayDisplay<'a> {
        ReplayDisplay::Nothing
    }
}

impl Effect {
    /// Returns what its area knows about the effect.
    pub fn facts(&self) -> &dyn EffectFacts {
        match self {
            Effect::Time(op) => op,
            Effect::Ui(op) => op,
            Effect::Chat(chat) => chat,
            Effect::Documents(op) => op,
            Effect::Files(op) => op,
            Effect::Git(op) => op,
            Effect::Worktree(worktree) => worktree,
            Effect::Exec(command) => command,
            Effect::Notify(notification) => notification,
            Effect::Mcp(op) => op,
            Effect::Spawn(spawn) => spawn,
        }
    }

    /// Returns what its area knows about the effect, to redact it.
    pub fn facts_mut(&mut self) -> &mut dyn EffectFacts {
        match self {
            Effect::Time(op) => op,
            Effect::Ui(op) => op,
            Effect::Chat(chat) => chat,
            Effect::Documents(op) => op,
            Effect::Files(op) => op,
            Effect::Git(op) => op,
            Effect::Worktree(worktree) => worktree,
            Effect::Exec(command) => command,
            Effect::Notify(notification) => notification,
            Effect::Mcp(op) => op,
            Effect::Spawn(spawn) => spawn,
        }
    }
}

/// The digests of the source files that a run has loaded, by their path in the pack.
pub type Sources = BTreeMap<String, String>;

/// Returns a request as plain data.
fn plain(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("a request is plain data with text keys")
}
