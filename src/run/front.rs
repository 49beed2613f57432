//! The front end of a run: how the run is shown, and who answers its questions.

use std::path::PathBuf;
use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use serde_json::Value;

use crate::error::Result;
use crate::host::FrontEnd;
use crate::host::telemetry::{self, TracingFrontEnd};
use crate::host::ui::answers::Answers;
use crate::host::ui::mailbox::Mailbox;
use crate::host::ui::{self, AnswersFrom, Mode, Sources};
use crate::model::event::Event;
use crate::model::question::{AnsweredBy, Question};
use crate::run::machine::Machine;

/// How a run is shown and answered.
#[derive(Clone, Debug, Default)]
pub struct FrontOptions {
    /// As JSON lines, both ways.
    pub json: bool,
    /// A file that answers questions.
    pub answers: Option<PathBuf>,
    /// Whether the user said that a pipe answers questions; if not, they are told when it does.
    pub by_pipe: bool,
    /// Whether standard input was a text of the run: questions are then answered at the terminal, where there is one.
    pub stdin_taken: bool,
    /// Each request to a model and its reply are shown, too.
    pub verbose: bool,
    /// Models are asked to show what they think.
    pub thoughts: bool,
    /// A failure shows its place in the source of flows that are not the user's, too.
    pub trace: bool,
    /// Nothing can go on with the run when it has ended.
    pub is_passing: bool,
}

/// A front end that is open.
pub struct OpenFront {
    pub shown: Rc<dyn FrontEnd>,
    /// The answers file that is asked before the user is.
    answers: Option<Rc<Answers>>,
    /// Whether somebody wants each request and reply: the user or a collector.
    pub details: bool,
}

impl FrontOptions {
    /// Opens the front end of a run. If the environment names a collector, the front end sends spans to it, too, all of this trace.
    ///
    /// # Errors
    ///
    /// Those of [`Answers::open`] and [`TracingFrontEnd::open`].
    pub fn open(&self, machine: &Machine, run: &str, trace: [u8; 16]) -> Result<OpenFront> {
        let mode = if self.json { Mode::Json } else { Mode::Auto };
        let answers = match (self.stdin_taken, self.by_pipe) {
            (true, _) => AnswersFrom::Terminal,
            (false, true) => AnswersFrom::SaidPipe,
            (false, false) => AnswersFrom::Stdin,
        };
        let sources = if self.trace { Sources::All } else { Sources::WithoutPacks(machine.packs()) };
        let named = if self.is_passing && !self.json { "" } else { run };
        let front_end = ui::open(mode, answers, named, (&machine.environment, sources), &machine.redactor());
        // A command that only looks leaves no run whose page could show its questions.
        let front_end: Box<dyn FrontEnd> = match run {
            "" => front_end,
            run => Box::new(Mailbox::new(machine.runs().answers(run), front_end)),
        };
        let (mut shown, answers): (Rc<dyn FrontEnd>, _) = match &self.answers {
            None => (Rc::from(front_end), None),
            Some(path) => {
                let answers = Rc::new(Answers::open(path, front_end)?);
                (Rc::new(SharedFrontEnd(Rc::clone(&answers))), Some(answers))
            }
        };
        let traced = telemetry::is_enabled(&machine.environment);
        if traced {
            // The collector gets these descriptions of the process, so they must hold no secrets.
            let mut environment = machine.environment.clone();
            for name in ["OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"] {
                if let Some(value) = environment.get_mut(name) {
                    *value = machine.redactor().text(value).into_owned();
                }
            }
            shown = Rc::new(TracingFrontEnd::open(shown, self.verbose, (run, trace), &environment)?);
        }
        Ok(OpenFront { shown, answers, details: traced || self.verbose })
    }
}

impl OpenFront {
    /// Tells the person something.
    pub fn notice(&self, text: impl Into<String>) {
        self.shown.show(&Event::Notice { text: text.into() });
    }

    /// Shows which answers of the file no question asked for.
    pub fn tell_unused_answers(&self) {
        let unused = self.answers.as_ref().map(|answers| answers.unused()).unwrap_or_default();
        if !unused.is_empty() {
            self.notice(format!("answers that nobody asked for: {}", unused.join(", ")));
        }
    }
}

/// Shares the answers between the gate and [`OpenFront::tell_unused_answers`].
struct SharedFrontEnd<F: FrontEnd + ?Sized>(Rc<F>);

impl<F: FrontEnd + ?Sized> FrontEnd for SharedFrontEnd<F> {
    fn show(&self, event: &Event) {
        self.0.show(event);
    }

    fn ask<'a>(&'a self, question: &'a Question) -> LocalBoxFuture<'a, Result<Value>> {
        self.0.ask(question)
    }

    fn answered_by(&self, effect: &str) -> Option<AnsweredBy> {
        self.0.answered_by(effect)
    }

    fn attended(&self) -> bool {
        self.0.attended()
    }

    fn answered_before(&self, question: &Question) {
        self.0.answered_before(question);
    }
}
