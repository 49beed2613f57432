//! One request from a flow to the world, as the gate sees it.
//!
//! Each area is a file that has all of its facts: what kinds there are, what a crash means for them, what they build on, how
//! they are keyed and recorded, what secrets may stand in, which permission they need, and how they are shown again. The
//! adapter that performs them is the only other place that tells them apart.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

use crate::error::Result;
use crate::model::chat::HashedMessage;
use crate::model::command::ExecCommand;
use crate::model::file::FileOp;
use crate::model::permission::Permission;
use crate::model::question::Question;
use crate::model::redact::Cleaner;

pub(crate) mod chat;
pub(crate) mod documents;
mod exec;
mod files;
pub mod git;
mod resources;
pub(crate) mod time;
pub(crate) mod ui;
pub mod worktree;

/// Everything that a flow can ask the world for, by area.
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
}

/// What a crash between intent and outcome means for a kind of effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// It is never recorded.
    Unrecorded,
    /// It is recorded in one line when it happens; free to do again, so the line is synced with the next one that is not.
    SingleLine,
    /// It is recorded as intent and outcome; after a crash in between it is done again.
    Retry,
    /// It is recorded as intent and outcome; after a crash in between the adapter looks whether it happened.
    Probe,
}

/// Who can answer an effect in place of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayClass {
    /// Models, people, time and chance: what was said once is as good in another folder.
    Said,
    /// Nobody: what is shown is shown again, where somebody is there to see it.
    Shown,
    /// The documents of a workspace.
    Documents,
    /// Files, the repository and commands: what was there before the run.
    Surroundings,
}

/// The stateful things whose last change an effect builds on, and those that it changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependencies {
    pub reads: Vec<String>,
    pub writes: Vec<String>,
}

/// How an effect that is given back is shown to who was not there.
#[derive(Debug)]
pub enum ReplayDisplay<'a> {
    Nothing,
    /// What was said, once the run goes live.
    Said {
        markdown: &'a str,
        from: Option<&'a str>,
    },
    /// A question: who answered it has seen all that was said before.
    Answered(&'a Question),
}

/// The facts of an effect.
pub trait EffectFacts {
    /// Returns the kind's name, as it stands in journals.
    fn kind(&self) -> &'static str;

    /// Returns the rule for a crash between intent and outcome.
    fn recovery(&self) -> Recovery;

    fn replay_class(&self) -> ReplayClass;

    /// Returns the permissions that a flow must have declared.
    fn required_permissions(&self) -> &'static [Permission] {
        &[]
    }

    /// Tells whether the intent has to be on the disk before the effect begins, because what a second try does depends on
    /// whether there was a first.
    fn needs_intent(&self) -> bool {
        self.recovery() == Recovery::Probe
    }

    /// Tells whether the effect, once begun, goes on to its end whoever waits for it.
    fn lasts(&self) -> bool {
        false
    }

    /// Tells whether it waits for a person.
    fn asks(&self) -> bool {
        false
    }

    /// Documents of one collection are things of their own, so that branches which write different ones stay apart; so are
    /// worktrees, and the branches of a repository.
    fn dependencies(&self) -> Dependencies {
        Dependencies::default()
    }

    /// Returns the collection whose declaration says what is valid, where the effect writes into one.
    fn writes_into(&self) -> Option<&str> {
        None
    }

    /// Returns what is put into a document.
    fn written_value(&self) -> Option<&Value> {
        None
    }

    /// Returns the list in the request that grows from one call to the next: what was said so far.
    fn conversation(&self) -> &[Rc<HashedMessage>] {
        &[]
    }

    /// Returns the request as it is keyed and recorded, but for its [`EffectFacts::conversation`].
    fn request(&self) -> Value;

    /// Takes the secrets out. What is performed and what is recorded are the same.
    fn redact(&mut self, cleaner: &Cleaner);

    /// Returns how it is shown when its outcome is given back.
    fn replay_display<'a>(&'a self, _outcome: &'a Result<Value>) -> ReplayDisplay<'a> {
        ReplayDisplay::Nothing
    }
}

impl Effect {
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
        }
    }

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
        }
    }
}

/// The digests of the source files that a run loaded, by their path in the pack.
pub type Sources = BTreeMap<String, String>;

/// Returns a request as plain data.
fn plain(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("a request is plain data with text keys")
}
