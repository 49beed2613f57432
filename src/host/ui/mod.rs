//! Front ends: how a person or a program follows a run and answers its questions.
//!
//! | front end | who it is for |
//! |---|---|
//! | [`terminal::Terminal`] | a person at a terminal: streamed Markdown, a spinner, line editing |
//! | [`pipe::Pipe`] | pipes, files, `TERM=dumb`: plain text, one answer per line |
//! | [`json::Json`] | programs: JSON lines in both directions |
//! | [`answers::Answers`] | scripts: a file of answers, in front of another front end |
//!
//! The host calls `show(Asked)` before `ask`, and `show(Answered)` when it has the answer, wherever the answer
//! came from. So a front end that was not asked still shows question and answer, and a record of the events is
//! complete. All text is foreign here: each front end cleans text before it prints it.
//!
//! Nothing in this folder reads the environment; [`open`] takes it as an argument.

pub(crate) mod answer;
pub(crate) mod answers;
pub mod ending;
pub mod fit;
pub(crate) mod hangup;
mod hidden;
pub(crate) mod json;
mod help;
mod lines;
pub(crate) mod mailbox;
mod out;
mod redacted;
pub(crate) mod pipe;
#[cfg(test)]
mod samples;
pub(crate) mod terminal;
mod verbose;
mod waits;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use self::hangup::TerminalReader;
pub use self::hidden::hidden_line;
use self::json::Json;
pub use self::out::lost_output;
use self::pipe::{Pipe, QuestionMode, Streams};
use self::redacted::{RedactedLines, RedactingFrontEnd};
use self::terminal::{Device, Terminal};
use crate::error::Failure;
use crate::host::FrontEnd;
use crate::model::chat::Usage;
use crate::model::event::{EndStatus, Event};
use crate::model::redact::Redactor;

/// The kind of front end that the user chose on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The best front end for standard input and output.
    Auto,
    /// `--json`.
    Json,
}

/// Which flows' lines a failure shows. They say something to who writes the flow, and nothing to who uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sources {
    All,
    /// Those of flows that neither come with nietz nor stand in this folder of packs.
    WithoutPacks(PathBuf),
}

/// Where answers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswersFrom {
    /// Standard input, whatever it is; the first answer from a pipe comes with a notice that it does.
    Stdin,
    /// Standard input, and the user said that it is a pipe that answers.
    SaidPipe,
    /// The terminal that the process belongs to, because standard input was something else. If nobody sees questions there,
    /// nobody answers.
    Terminal,
}

/// Returns the front end for this process's standard streams and this environment. It shows no secrets.
pub fn open(
    mode: Mode,
    answers: AnswersFrom,
    run: &str,
    (env, sources): (&BTreeMap<String, String>, Sources),
    redactor: &Redactor,
) -> Box<dyn FrontEnd> {
    let inner = open_unredacted(mode, answers, run, env, redactor);
    // A program gets all there is.
    let sources = if mode == Mode::Json { Sources::All } else { sources };
    Box::new(RedactingFrontEnd::new(inner, sources, redactor.clone()))
}

fn open_unredacted(
    mode: Mode,
    answers: AnswersFrom,
    run: &str,
    env: &BTreeMap<String, String>,
    redactor: &Redactor,
) -> Box<dyn FrontEnd> {
    let seen = io::stdout().is_terminal();
    let tty = match answers {
        AnswersFrom::Terminal if mode == Mode::Auto && (seen || io::stderr().is_terminal()) => own_terminal(),
        AnswersFrom::Terminal => None,
        AnswersFrom::Stdin | AnswersFrom::SaidPipe if io::stdin().is_terminal() => {
            io::stdin().as_fd().try_clone_to_owned().ok()
        }
        AnswersFrom::Stdin | AnswersFrom::SaidPipe => None,
    };
    let typed = tty.is_some();
    let input: Box<dyn BufRead + Send> = match tty.as_ref().map(OwnedFd::try_clone) {
        Some(Ok(tty)) => {
            Box::new(RedactedLines::new(BufReader::new(TerminalReader(File::from(tty))), redactor.clone()))
        }
        _ => Box::new(RedactedLines::new(BufReader::new(io::stdin()), redactor.clone())),
    };
    if mode == Mode::Json {
        return Box::new(Json::new(run, !is_null_device(io::stdin().as_fd()), input, Box::new(io::stdout())));
    }
    let features = TerminalFeatures::of(env);
    if seen
        && features.moves
        && let Some(tty) = tty
    {
        let err_colour = features.colour && io::stderr().is_terminal();
        let (out, err) = (Box::new(io::stdout()), Box::new(io::stderr()));
        return Box::new(Terminal::new(run, Device { tty, out, err, colour: features.colour, err_colour }));
    }
    let questions = match (typed, seen) {
        (false, _) => QuestionMode::Echoed,
        (true, true) => QuestionMode::Typed,
        (true, false) => QuestionMode::OnStderr,
    };
    let streams = Streams { input, out: Box::new(io::stdout()), err: Box::new(io::stderr()) };
    let pipe = Pipe::new(run, questions, streams);
    Box::new(if answers == AnswersFrom::SaidPipe { pipe } else { pipe.announcing() })
}

/// Tells a program that reads events why no run began. Says nothing where one has.
pub fn tell_no_run(failure: &Failure, redactor: &Redactor) {
    if json::has_begun() {
        return;
    }
    let events = Json::new("", false, Box::new(io::empty()), Box::new(io::stdout()));
    RedactingFrontEnd::new(Box::new(events), Sources::All, redactor.clone()).show(&Event::RunEnded {
        status: EndStatus::Failed,
        result: None,
        failure: Some(failure.clone()),
        usage: Usage::default(),
        calls: 0,
        spent: Vec::new(),
        verdict: None,
    });
}

/// Returns the columns of the terminal that standard output is.
pub fn output_width() -> Option<usize> {
    columns(&io::stdout())
}

/// Returns the columns of the terminal that standard error is.
pub fn error_width() -> Option<usize> {
    columns(&io::stderr())
}

fn columns(stream: &(impl IsTerminal + AsFd)) -> Option<usize> {
    let size = stream.is_terminal().then(|| rustix::termios::tcgetwinsize(stream).ok()).flatten()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// Returns Markdown laid out for the terminal that standard output is, without a line end; nothing if it is none, or cannot
/// show more than plain text.
pub fn laid_out(markdown: &str, env: &BTreeMap<String, String>) -> Option<String> {
    let TerminalFeatures { moves, colour } = TerminalFeatures::of(env);
    let width = output_width().filter(|_| moves)?;
    Some(terminal::laid_out(markdown, width, colour))
}

/// Opens the terminal that the process belongs to, if it belongs to one.
fn own_terminal() -> Option<OwnedFd> {
    File::options().read(true).write(true).open("/dev/tty").ok().map(OwnedFd::from)
}

/// Tells whether a stream is the device that has nothing to read.
fn is_null_device(stream: BorrowedFd<'_>) -> bool {
    let null = rustix::fs::stat("/dev/null").ok();
    let kind = |stat: &rustix::fs::Stat| rustix::fs::FileType::from_raw_mode(stat.st_mode);
    let (Some(null), Ok(stream)) = (null, rustix::fs::fstat(stream)) else { return false };
    kind(&stream) == rustix::fs::FileType::CharacterDevice && stream.st_rdev == null.st_rdev
}

/// What a person can see and type here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalFacts {
    /// Whether standard input and standard output are a terminal.
    pub input: bool,
    pub output: bool,
    /// Columns and rows, if the terminal knows them.
    pub size: Option<(u16, u16)>,
    /// Whether the terminal can move its cursor.
    pub moves: bool,
    pub colour: bool,
}

/// Returns what a person can see and type at this process's standard streams.
pub fn terminal_facts(env: &BTreeMap<String, String>) -> TerminalFacts {
    let TerminalFeatures { moves, colour } = TerminalFeatures::of(env);
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    TerminalFacts {
        input: io::stdin().is_terminal(),
        output: io::stdout().is_terminal(),
        size: size.filter(|size| size.ws_col > 0 && size.ws_row > 0).map(|size| (size.ws_col, size.ws_row)),
        moves,
        colour,
    }
}

/// The features of the terminal, by the environment.
#[derive(Debug, PartialEq, Eq)]
struct TerminalFeatures {
    /// Whether the terminal can move its cursor.
    moves: bool,
    colour: bool,
}

impl TerminalFeatures {
    fn of(env: &BTreeMap<String, String>) -> TerminalFeatures {
        let value = |name: &str| env.get(name).map(String::as_str).filter(|value| !value.is_empty());
        let moves = value("TERM").is_some_and(|term| term != "dumb");
        TerminalFeatures { moves, colour: moves && value("NO_COLOR").is_none() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::TerminalFeatures;

    #[test]
    fn no_color_and_a_dumb_terminal_are_respected() {
        let features = |pairs: &[(&str, &str)]| {
            let env = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            TerminalFeatures::of(&env.collect::<BTreeMap<_, _>>())
        };
        assert_eq!(features(&[("TERM", "xterm"), ("NO_COLOR", "")]), TerminalFeatures { moves: true, colour: true });
        assert_eq!(features(&[("TERM", "xterm"), ("NO_COLOR", "1")]), TerminalFeatures { moves: true, colour: false });
        assert_eq!(features(&[("TERM", "dumb")]), TerminalFeatures { moves: false, colour: false });
        assert_eq!(features(&[]), TerminalFeatures { moves: false, colour: false });
    }
}
