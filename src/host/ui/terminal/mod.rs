//! The front end for a person at a terminal.
//!
//! | file | what it does |
//! |---|---|
//! | `tty`, `keys` | the device: raw mode, the thread that reads keys, what was typed ahead, bytes to keys |
//! | `editor`, `prompt` | the state of an open question: keys in, lines and an answer out |
//! | `markdown`, `wrap`, `style` | styled text, in lines that fit |
//! | `stream`, `activity`, `state` | the current content of the screen |
//! | `screen` | the only writer of escape sequences |
//!
//! No line-editing library is used. The examined ones (rustyline, reedline, inquire, dialoguer) own the
//! screen and block until Enter, but here model text streams on above an open question, which may be
//! cancelled at any time. The editing that is left to do by hand is small.

mod activity;
mod editor;
mod keys;
pub(crate) mod markdown;
mod prompt;
mod screen;
mod state;
pub(super) mod stream;
mod style;
mod tty;
mod wrap;

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use anstyle::Style;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use serde_json::Value;

use self::activity::TICK;
use self::prompt::{Prompt, PromptOutcome, closed_lines};
use self::screen::Screen;
use self::state::{LineKind, ScreenState};

use self::tty::{RAW_OFF, RAW_ON, Tty};
use self::wrap::wrap_hanging;
use super::answer;
use super::ending::{self, RunEnding};
use super::fit;
use super::help;
use super::verbose;
use crate::error::{Failure, Result};
use crate::host::FrontEnd;
use crate::model::event::Event;
use crate::model::question::{Question, QuestionKind};

/// Returns Markdown as lines for a terminal of this width.
pub(super) fn laid_out(markdown: &str, width: usize, colour: bool) -> String {
    let lines = markdown::render(markdown, width.saturating_sub(1));
    lines.iter().map(|line| line.ansi(colour)).collect::<Vec<_>>().join("\n")
}

/// The terminal and the streams of a terminal front end.
pub(crate) struct Device {
    /// The terminal device, for keys, modes and size.
    pub tty: OwnedFd,
    pub out: Box<dyn Write + Send>,
    pub err: Box<dyn Write + Send>,
    pub colour: bool,
    /// Whether standard error may be coloured; it may be a file while standard output is not.
    pub err_colour: bool,
}

/// A person at a terminal.
pub(crate) struct Terminal {
    run: String,
    tty: Tty,
    shared: Arc<SharedScreen>,
    started: Instant,
    /// The run's language.
    lang: RefCell<String>,
    /// The answers to free questions, oldest first.
    history: RefCell<Vec<String>>,
    /// Announced questions that were not asked here; an answers file may answer them instead.
    open: RefCell<HashMap<String, Question>>,
    /// One question at a time, in the order in which they were asked.
    turn: tokio::sync::Mutex<()>,
}

struct SharedScreen {
    state: Mutex<ScreenState>,
    /// Notified when the screen begins to change by itself.
    moved: Condvar,
}

impl SharedScreen {
    /// Locks the state. A thread that panicked while drawing leaves at worst a wrong picture, so a poisoned lock is used, too.
    fn lock(&self) -> MutexGuard<'_, ScreenState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Turns the spinner and follows the size of the window until the front end is dropped.
    fn tick(&self) {
        let mut state = self.lock();
        while !state.closed {
            state = if state.moves() {
                state.redraw();
                self.moved.wait_timeout(state, TICK).map_or_else(|error| error.into_inner().0, |(state, _)| state)
            } else {
                self.moved.wait(state).unwrap_or_else(PoisonError::into_inner)
            };
        }
    }
}

impl Terminal {
    pub(crate) fn new(run: &str, device: Device) -> Terminal {
        let tty = Tty::new(device.tty);
        let sized = tty.clone();
        let screen = Screen::new(device.out, Box::new(move || sized.size()), device.colour);
        let state = Mutex::new(ScreenState::new(screen, device.err, device.err_colour));
        let shared = Arc::new(SharedScreen { state, moved: Condvar::new() });
        let ticking = shared.clone();
        // Without the thread, only the spinner stands still; that is no reason to fail.
        let _ = thread::Builder::new().name("spinner".to_owned()).spawn(move || ticking.tick());
        Terminal {
            run: run.to_owned(),
            tty,
            shared,
            started: Instant::now(),
            lang: RefCell::default(),
            history: RefCell::default(),
            open: RefCell::default(),
            turn: tokio::sync::Mutex::new(()),
        }
    }

    async fn answer(&self, question: &Question) -> Result<Value> {
        let _turn = self.turn.lock().await;
        self.open.borrow_mut().remove(&question.id);
        if self.shared.lock().screen.is_closed() {
            return Err(answer::interrupted_failure(question, &self.run));
        }
        let mut typing = self.tty.start_reading().map_err(|error| {
            let why = if self.tty.is_gone() { answer::interrupted_failure } else { answer::missing_failure };
            why(question, &self.run).because(format!("the terminal: {error}"))
        })?;
        let (opened, interrupted) = self.open_question(question);
        let mut failure_for = answer::interrupted_failure as fn(&Question, &str) -> Failure;
        let answer = loop {
            if interrupted {
                break None;
            }
            let Some(key) = typing.next().await else { break None };
            let mut state = self.shared.lock();
            match state.prompt.as_mut().map_or(PromptOutcome::Interrupted, |prompt| prompt.press(&key)) {
                PromptOutcome::Open => state.redraw(),
                PromptOutcome::Clear => {
                    state.screen.clear();
                    state.redraw();
                }
                PromptOutcome::Help => {
                    let width = state.screen.width();
                    let lines: Vec<_> = help::lines(question, &self.lang.borrow())
                        .iter()
                        .flat_map(|line| wrap_hanging(line, Style::new(), width))
                        .collect();
                    state.print(&lines, LineKind::Note, LineKind::Note);
                }
                PromptOutcome::Answered(value) => break Some(value),
                PromptOutcome::Interrupted => break None,
                PromptOutcome::EndOfInput => {
                    failure_for = answer::missing_failure;
                    break None;
                }
            }
        };
        // The closed question is printed before the open one is removed, so that every frame shows it.
        self.close(question, answer.as_ref());
        drop(opened);
        drop(typing);
        answer.iter().for_each(|answer| self.remember(question, answer));
        answer.ok_or_else(|| failure_for(question, &self.run))
    }

    /// Keeps an answer in words, which the arrow keys bring back.
    fn remember(&self, question: &Question, answer: &Value) {
        if let (QuestionKind::Ask, Value::String(text)) = (question.kind, answer)
            && !text.is_empty()
        {
            self.history.borrow_mut().push(text.clone());
        }
    }

    /// Shows a question until the returned value is dropped, with what was typed ahead of it; tells whether that interrupts it.
    fn open_question(&self, question: &Question) -> (OpenQuestion<'_>, bool) {
        let mut state = self.shared.lock();
        let (before, _) = answer::split_prompt(&question.prompt);
        if !before.is_empty() {
            state.say(None, before);
        }
        state.screen.write(RAW_ON);
        let before = question.before.as_deref().and_then(Value::as_str).map(str::to_owned);
        let history = self.history.borrow().iter().cloned().chain(before).collect();
        let mut prompt = Prompt::new(question, history);
        let interrupted = self.tty.typed_ahead(|keys| prompt.take_ahead(keys));
        state.prompt = Some(prompt);
        state.redraw();
        drop(state);
        self.shared.moved.notify_all();
        (OpenQuestion { shared: &self.shared }, interrupted)
    }

    /// Leaves the question and its answer on the screen.
    fn close(&self, question: &Question, answer: Option<&Value>) {
        let mut state = self.shared.lock();
        let lines = closed_lines(question, answer, state.screen.width());
        state.prompt = None;
        state.print(&lines, LineKind::Question, LineKind::Question);
    }
}

/// A question on the screen. Dropping it removes the question, whether it was answered or cancelled.
struct OpenQuestion<'a> {
    shared: &'a SharedScreen,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.prompt = None;
        state.screen.write(RAW_OFF);
        state.redraw();
    }
}

impl FrontEnd for Terminal {
    fn show(&self, event: &Event) {
        let mut state = self.shared.lock();
        match event {
            Event::RunStarted { lang, .. } => lang.clone_into(&mut self.lang.borrow_mut()),
            Event::Replayed { effects: 0 } => {}
            Event::Replayed { effects } => {
                let noun = if *effects == 1 { "effect" } else { "effects" };
                state.note(&format!("↻ resumed: {effects} recorded {noun} given back"));
            }
            Event::Said { markdown, from } => {
                state.activity.wait_ended();
                state.say(from.as_deref().filter(|from| !from.is_empty()), markdown);
            }
            Event::CallStarted { call, label, show, .. } => {
                state.activity.call_started(call, label, Instant::now());
                if *show {
                    state.stream_started(call, label);
                }
                state.redraw();
                self.shared.moved.notify_all();
            }
            Event::CallSent { request, .. } => {
                state.write_stderr(&verbose::request_text(request));
                state.redraw();
            }
            Event::CallReceived { reply, .. } => {
                state.write_stderr(&verbose::reply_text(reply));
                state.redraw();
            }
            Event::CallThought { call, text } => {
                state.activity.call_delta(call);
                state.stream_thought(call, text);
            }
            Event::CallDelta { call, text } => {
                state.activity.call_delta(call);
                state.stream_delta(call, text);
            }
            Event::CallRetried { call, attempt, reason, .. } => {
                state.activity.call_retried(call, *attempt, reason);
                state.stream_retried(call);
            }
            Event::CallEnded { call, failure, .. } => {
                let label = state.activity.call_ended(call);
                state.stream_ended(call);
                match failure {
                    Some(failure) => state.call_failed(label.as_deref().unwrap_or("a model call"), failure),
                    None => state.redraw(),
                }
            }
            Event::Status { text } => {
                state.activity.status(text);
                state.redraw();
            }
            Event::Progress { label, done, total } => {
                state.activity.progress(label, *done, *total);
                state.redraw();
            }
            Event::Asked { question } => {
                state.activity.wait_ended();
                self.open.borrow_mut().insert(question.id.clone(), question.clone());
            }
            Event::Answered { id, answer } => {
                let open = self.open.borrow_mut().remove(id);
                drop(state);
                if let Some(question) = open {
                    self.close(&question, Some(answer));
                }
            }
            Event::GivenBack { question, answer } => {
                self.remember(question, answer);
                // Where there is a recap, it tells what was answered.
                if question.recap.is_none() {
                    state.note(&answer::given_back_text(question, answer));
                }
            }
            Event::Notice { text } => {
                let width = state.screen.width();
                state.write_stderr(&fit::lines(&format!("{}\n", super::out::indent_lines(text)), width));
                state.redraw();
            }
            Event::RunEnded { status, failure, spent, .. } => {
                state.activity.clear();
                let status = *status;
                let elapsed = self.started.elapsed();
                let ending = RunEnding { status, failure: failure.as_ref(), spent, elapsed, lang: &self.lang.borrow() };
                let text = ending::text(&ending, &self.run, &|tone, text| state.paint(tone, text));
                let width = state.screen.width();
                state.write_stderr(&fit::lines(&text, width));
            }
        }
    }

    fn ask<'a>(&'a self, question: &'a Question) -> LocalBoxFuture<'a, Result<Value>> {
        self.answer(question).boxed_local()
    }

    fn attended(&self) -> bool {
        true
    }
}

/// Leaves the screen as it was: without moving parts, and with a cursor.
impl Drop for Terminal {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.activity.clear();
        state.closed = true;
        state.redraw();
        drop(state);
        self.shared.moved.notify_all();
    }
}

#[cfg(test)]
mod tests;
