//! The current content of the terminal, and how each event changes it. All of it is behind one lock, because
//! the spinner turns on a thread of its own.

use std::io::Write;
use std::time::{Duration, Instant};

use anstyle::AnsiColor;

use super::activity::Activity;
use super::markdown;
use super::prompt::{Prompt, View};
use super::screen::Screen;
use super::stream::{Stream, edges};
use super::style::{DIM, StyledLine, speaker};
use super::wrap::{hanging, wrap_hanging, wrap_text};
use crate::error::Failure;
use crate::host::ui::ending::Tone;
use crate::host::ui::out::safe;

/// The shortest time between two frames of streamed text.
const PAUSE: Duration = Duration::from_millis(33);

/// The most lines that show what a model thinks.
const THOUGHT_LINES: usize = 4;

/// The kind of a printed block. A blank line separates blocks of different kinds, and texts from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineKind {
    Text,
    Item,
    Question,
    Note,
}

pub(super) struct ScreenState {
    pub(super) screen: Screen,
    err: Box<dyn Write + Send>,
    err_colour: bool,
    pub(super) activity: Activity,
    /// The shown calls in the order of their start; only the first is on the screen.
    streams: Vec<Stream>,
    pub(super) prompt: Option<Prompt>,
    last: Option<LineKind>,
    drawn: Option<Instant>,
    pub(super) closed: bool,
}

impl ScreenState {
    pub(super) fn new(screen: Screen, err: Box<dyn Write + Send>, err_colour: bool) -> ScreenState {
        let activity = Activity::default();
        let streams = Vec::new();
        ScreenState { screen, err, err_colour, activity, streams, prompt: None, last: None, drawn: None, closed: false }
    }

    /// Returns whether the screen may change without an event: the spinner turns, the window is resized.
    pub(super) fn moves(&self) -> bool {
        self.activity.moves() || self.prompt.is_some()
    }

    pub(super) fn redraw(&mut self) {
        self.print(&[], LineKind::Note, LineKind::Note);
    }

    /// Adds lines that stay, after a blank line if their kind differs from the last one.
    pub(super) fn print(&mut self, lines: &[StyledLine], first: LineKind, last: LineKind) {
        let mut stay = Vec::new();
        if !lines.is_empty() {
            if self.gap(first) {
                stay.push(StyledLine::default());
            }
            stay.extend_from_slice(lines);
            self.last = Some(last);
        }
        let view = self.view();
        self.screen.draw(&stay, &view);
        self.drawn = Some(Instant::now());
    }

    pub(super) fn say(&mut self, from: Option<&str>, text: &str) {
        let (first, last) = edges(text);
        let kind = |list: bool| if list { LineKind::Item } else { LineKind::Text };
        let from = from.filter(|from| !from.is_empty());
        let mut lines: Vec<StyledLine> = from.map(label).into_iter().collect();
        lines.extend(markdown::render(text, self.screen.width()));
        self.print(&lines, if from.is_some() { LineKind::Text } else { kind(first) }, kind(last));
    }

    /// Writes to standard error. It may be the same screen, so the changing part is removed first.
    pub(super) fn write_stderr(&mut self, text: &str) {
        let gap: &[StyledLine] = if self.gap(LineKind::Note) { &[StyledLine::default()] } else { &[] };
        self.screen.draw(gap, &View::default());
        // A failure to write to standard error cannot be reported anywhere.
        let _ = self.err.write_all(text.as_bytes()).and_then(|()| self.err.flush());
        self.last = Some(LineKind::Note);
    }

    pub(super) fn paint(&self, tone: Tone, text: &str) -> String {
        let style = match tone {
            Tone::Bad => AnsiColor::Red.on_default().bold(),
            Tone::Good => AnsiColor::Green.on_default().bold(),
            Tone::Quiet => DIM,
        };
        if self.err_colour { StyledLine::new(text, style).ansi(true) } else { safe(text) }
    }

    pub(super) fn stream_started(&mut self, call: &str, label: &str) {
        self.streams.push(Stream::new(call, label));
    }

    pub(super) fn stream_delta(&mut self, call: &str, text: &str) {
        let Some(place) = self.streams.iter().position(|stream| stream.call == call) else { return };
        let finished = self.streams[place].push(text);
        if place == 0 && finished {
            self.print_finished();
        }
        if place == 0 && self.drawn.is_none_or(|drawn| drawn.elapsed() >= PAUSE) {
            self.redraw();
        }
    }

    pub(super) fn stream_thought(&mut self, call: &str, text: &str) {
        let Some(place) = self.streams.iter().position(|stream| stream.call == call) else { return };
        self.streams[place].push_thought(text);
        if place == 0 && self.drawn.is_none_or(|drawn| drawn.elapsed() >= PAUSE) {
            self.redraw();
        }
    }

    /// Discards the text of a call so far. If a part of it was printed already, adds a note that it does not count.
    pub(super) fn stream_retried(&mut self, call: &str) {
        let Some(stream) = self.streams.iter_mut().find(|stream| stream.call == call) else { return };
        stream.restart();
        if std::mem::take(&mut stream.labelled) {
            let text = format!("↻ {} starts again; the text above does not count", stream.label);
            self.note(&text);
        }
    }

    pub(super) fn stream_ended(&mut self, call: &str) {
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.call == call) {
            stream.ended = true;
        }
        self.print_finished();
    }

    pub(super) fn call_failed(&mut self, label: &str, failure: &Failure) {
        let line = StyledLine::new("✗ ", AnsiColor::Red.on_default()).with(&format!("{label}: {failure}"), DIM);
        let lines = hanging(&line.chars().collect::<Vec<_>>(), self.screen.width(), 2);
        self.print(&lines, LineKind::Note, LineKind::Note);
    }

    pub(super) fn note(&mut self, text: &str) {
        let lines = wrap_hanging(text, DIM, self.screen.width());
        self.print(&lines, LineKind::Note, LineKind::Note);
    }

    /// Prints the finished text of the first stream, and, once it has ended, of the streams after it.
    fn print_finished(&mut self) {
        while let Some(stream) = self.streams.first_mut() {
            let ended = stream.ended;
            let done = if ended { stream.take_rest() } else { stream.take_finished() };
            if let Some(text) = done {
                let from = (!std::mem::replace(&mut stream.labelled, true)).then(|| stream.label.clone());
                self.say(from.as_deref(), &text);
            }
            if !ended {
                return;
            }
            self.streams.remove(0);
        }
    }

    /// Returns the part of the screen that changes: unfinished text, activity, the question.
    fn view(&self) -> View {
        let (width, height) = (self.screen.width(), self.screen.height());
        let mut view = View::default();
        if let Some(stream) = self.streams.first().filter(|stream| !stream.is_blank()) {
            let headed = !stream.labelled && !stream.label.is_empty();
            let mut lines: Vec<StyledLine> = if headed { vec![label(&stream.label)] } else { Vec::new() };
            lines.extend(thought_lines(stream.thought(), width));
            lines.extend(markdown::render(stream.pending(), width));
            let list = stream.labelled && edges(stream.pending()).0;
            let hidden = lines.len().saturating_sub(height.saturating_sub(6).max(3));
            self.add(&mut view, lines.split_off(hidden), if list { LineKind::Item } else { LineKind::Text });
        }
        self.add(&mut view, self.activity.lines(Instant::now(), width, height), LineKind::Note);
        if let Some(prompt) = &self.prompt {
            let question = prompt.view(width, height.saturating_sub(view.lines.len() + 2));
            let length = question.lines.len();
            self.add(&mut view, question.lines, LineKind::Question);
            let above = view.lines.len() - length;
            view.cursor = question.cursor.map(|(row, column)| (above + row, column));
        }
        view
    }

    fn add(&self, view: &mut View, lines: Vec<StyledLine>, kind: LineKind) {
        if !lines.is_empty() {
            if !view.lines.is_empty() || self.gap(kind) {
                view.lines.push(StyledLine::default());
            }
            view.lines.extend(lines);
        }
    }

    fn gap(&self, next: LineKind) -> bool {
        self.last.is_some_and(|last| last != next || next == LineKind::Text)
    }
}

/// Returns the last lines of what a model thinks.
fn thought_lines(thought: &str, width: usize) -> Vec<StyledLine> {
    let lines = thought.lines().filter(|line| !line.trim().is_empty());
    let mut lines: Vec<StyledLine> = lines.flat_map(|line| wrap_text(line, DIM, width)).collect();
    lines.split_off(lines.len().saturating_sub(THOUGHT_LINES))
}

fn label(name: &str) -> StyledLine {
    StyledLine::new(name, speaker(name))
}
