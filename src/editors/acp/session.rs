//! A conversation with flows: the flows that can be called, and the run that is talked with now.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, ContentBlock, ContentChunk, Error,
    SessionConfigOption, SessionMode, SessionModeState, SessionNotification, SessionUpdate, TextContent,
    UnstructuredCommandInput,
};
use serde_json::json;

use super::actions::Actions;
use super::options::Chosen;
use super::wire::Wire;
use super::{InFolder, options};
use crate::editors::form;
use crate::editors::offer::Offer;
use crate::editors::supervisor::{OpenQuestion, Process};
use crate::host::ui::answer;
use crate::model::question::Question;
use crate::model::text::clean;

/// The mode in which only slash commands begin a run.
const COMMANDS: &str = "commands";

/// What stands for no answer: editors send no empty prompts.
pub(super) const DEFAULT: &str = "default";

/// Tells whether a question can be left without an answer.
pub(super) fn takes_default(question: &Question) -> bool {
    let is_own = question.commands.iter().any(|command| command.name == DEFAULT);
    !is_own && (question.optional || answer::default(question).is_some())
}

/// Returns a question as it is shown, with what can be said.
pub(super) fn asked(question: &Question) -> String {
    let mut text = form::text(question);
    if takes_default(question) {
        text += &format!("\n(`/{DEFAULT}` goes on without an answer)");
    }
    text
}

pub(super) struct Session {
    pub id: String,
    folder: Rc<InFolder>,
    /// The run that is talked with.
    pub run: RefCell<Option<String>>,
    /// How many runs it has begun.
    begun: Cell<usize>,
    pub process: RefCell<Option<Arc<Process>>>,
    /// What the run does beside talking.
    pub actions: RefCell<Option<Actions>>,
    mode: RefCell<String>,
    /// The options that are set.
    pub chosen: RefCell<Chosen>,
    /// The commands of a question that the client was told last.
    told_commands: RefCell<Vec<String>>,
    pub cancelled: tokio::sync::Notify,
    /// Whether a prompt is being answered.
    pub busy: Cell<bool>,
}

impl Session {
    pub(super) fn new(folder: Rc<InFolder>, id: String, run: Option<String>) -> Session {
        let number = run.as_deref().and_then(|run| run.strip_prefix(&id)?.strip_prefix('-')?.parse().ok());
        let begun = number.unwrap_or(usize::from(run.is_some()));
        Session {
            id,
            folder,
            run: RefCell::new(run),
            begun: Cell::new(begun),
            process: RefCell::default(),
            actions: RefCell::default(),
            chosen: RefCell::default(),
            told_commands: RefCell::default(),
            mode: RefCell::new(COMMANDS.to_owned()),
            cancelled: tokio::sync::Notify::new(),
            busy: Cell::new(false),
        }
    }

    pub(super) fn supervisor(&self) -> &crate::editors::supervisor::Supervisor {
        &self.folder.0
    }

    pub(super) fn offers(&self) -> &[Offer] {
        &self.folder.1
    }

    /// Returns the name of the next run: that of the session, with a number from the second on.
    pub(super) fn next_run(&self) -> String {
        self.begun.set(self.begun.get() + 1);
        match self.begun.get() {
            1 => self.id.clone(),
            number => format!("{}-{number}", self.id),
        }
    }

    /// Returns the modes: in that of a flow, what is said without a slash begins a run of it.
    pub(super) fn modes(&self) -> SessionModeState {
        let own = SessionMode::new(COMMANDS, "Commands").description("Flows are begun by /NAME".to_owned());
        let flows = self
            .offers()
            .iter()
            .map(|offer| SessionMode::new(offer.name.clone(), offer.name.clone()).description(clean(&offer.summary)));
        SessionModeState::new(self.mode.borrow().clone(), std::iter::once(own).chain(flows).collect())
    }

    pub(super) fn set_mode(&self, mode: &str) -> Result<(), Error> {
        if mode != COMMANDS && !self.offers().iter().any(|offer| offer.name == mode) {
            return Err(Error::invalid_params().data(json!("there is no such mode")));
        }
        mode.clone_into(&mut self.mode.borrow_mut());
        Ok(())
    }

    /// Returns what can be set beside the mode, with what is set.
    pub(super) fn options(&self) -> Vec<SessionConfigOption> {
        self.flow_of_mode().map(|offer| options::of(offer, &self.chosen.borrow())).unwrap_or_default()
    }

    /// Sets an option of the mode's flow.
    pub(super) fn set_option(&self, name: &str, word: &str) -> Result<(), Error> {
        let wrong = |why: String| Error::invalid_params().data(json!(why));
        let offer = self.flow_of_mode().ok_or_else(|| wrong("this mode has no options".to_owned()))?;
        options::choose(offer, &mut self.chosen.borrow_mut(), name, word).map_err(wrong)
    }

    /// Returns the flow that what is said without a slash is for.
    pub(super) fn flow_of_mode(&self) -> Option<&Offer> {
        let mode = self.mode.borrow();
        self.offers().iter().find(|offer| offer.name == *mode)
    }

    pub(super) fn commands(&self) -> SessionNotification {
        let flows = self.offers().iter().map(|offer| {
            let positional = offer.main.params.iter().find(|(_, param)| param.positional);
            let hint = positional.map_or_else(|| "--param=value".to_owned(), |(name, _)| name.clone());
            AvailableCommand::new(offer.name.clone(), clean(&offer.summary))
                .input(AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint)))
        });
        let resume =
            AvailableCommand::new("resume", "Go on with a run of this folder: without a name with this session's")
                .input(AvailableCommandInput::Unstructured(UnstructuredCommandInput::new("run")));
        // Those of the question that waits come first: that is what is typed now.
        let open = self.question();
        let asked = open.as_ref().map(|open| open.question.commands.clone()).unwrap_or_default();
        let of_question = asked.iter().map(|command| {
            let argument = command.text.clone().or_else(|| command.number.clone());
            let hint = argument.unwrap_or_else(|| command.choices.join(" | "));
            let input = AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(clean(&hint)));
            let told = AvailableCommand::new(command.name.clone(), clean(&command.summary));
            if hint.is_empty() { told } else { told.input(input) }
        });
        let default = open.filter(|open| takes_default(&open.question));
        let default = default.map(|_| AvailableCommand::new(DEFAULT, "Go on without an answer to this question"));
        let all = of_question.chain(default).chain(flows).chain([resume]).collect();
        self.update(SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(all)))
    }

    /// Returns what can be typed, if that is not what the client was told last.
    pub(super) fn changed_commands(&self) -> Option<SessionNotification> {
        let open = self.question();
        let default = open.as_ref().filter(|open| takes_default(&open.question)).map(|_| DEFAULT.to_owned());
        let asked = open.map(|open| open.question.commands).unwrap_or_default();
        let names: Vec<String> = asked.into_iter().map(|command| command.name).chain(default).collect();
        let before = self.told_commands.replace(names.clone());
        (before != names).then(|| self.commands())
    }

    pub(super) fn update(&self, update: SessionUpdate) -> SessionNotification {
        SessionNotification::new(self.id.clone(), update)
    }

    pub(super) fn chunk(&self, text: &str) -> SessionNotification {
        let content = ContentBlock::Text(TextContent::new(text));
        self.update(SessionUpdate::AgentMessageChunk(ContentChunk::new(content)))
    }

    /// Returns the question that waits, if one does.
    pub(super) fn question(&self) -> Option<OpenQuestion> {
        let run = self.run.borrow().clone()?;
        if let Some(process) = self.supervisor().process(&run) {
            return process.question(None);
        }
        let question = self.supervisor().recorded_question(&run, None).ok()?;
        let effect = question.effect.clone()?;
        Some(OpenQuestion { question, effect })
    }

    /// Shows what the latest run has said, and its question.
    pub(super) async fn show_history(&self, wire: &Wire) {
        let Some(run) = self.run.borrow().clone() else { return };
        let text = match self.supervisor().verb(&["report", &run, "--markdown"]).await {
            Ok(text) => text,
            Err(failure) => format!("The run {run} cannot be shown: {}", clean(&failure.message)),
        };
        wire.notify("session/update", &self.chunk(&format!("{}\n\n", text.trim_end())));
        if let Some(open) = self.question() {
            wire.notify("session/update", &self.chunk(&format!("{}\n", asked(&open.question))));
        }
    }

    /// Stops the run, as Ctrl-C does.
    pub(super) fn cancel(&self) {
        if self.busy.get() {
            self.process.borrow().iter().for_each(|process| process.interrupt());
            self.cancelled.notify_one();
        }
    }
}
