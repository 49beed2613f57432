//! Front ends: whatever a person or a program sits at while a run goes on.
//!
//! | front end | who it is for |
//! |---|---|
//! | [`pipe::Pipe`] | pipes, files, `TERM=dumb`: plain text, answers one a line |
//! | [`json::Json`] | programs: JSON lines both ways |
//! | [`answers::Answers`] | scripts: a file of answers, in front of one of the others |
//!
//! What the host owes a front end: `show(Asked)` before it calls `ask`, and `show(Answered)` when it has
//! the answer, wherever that came from. So one that was not asked still shows both, and a record of the
//! events is whole. All text is foreign here: each front end cleans it before it prints it.
//!
//! Nothing in this folder reads the environment; [`open`] is told.

pub mod answer;
pub mod answers;
pub mod ending;
pub mod json;
mod lines;
mod out;
pub mod pipe;
#[cfg(test)]
mod samples;
mod terminal;

use std::collections::BTreeMap;
use std::io::{self, BufReader, IsTerminal};

use self::json::Json;
use self::pipe::{Pipe, Questions, Streams};
use crate::host::FrontEnd;

/// What the user asked for on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The best that standard input and output can do.
    Auto,
    /// `--json`.
    Json,
}

/// Returns the front end for this process's standard streams and this environment.
pub fn open(mode: Mode, run: &str, env: &BTreeMap<String, String>) -> Box<dyn FrontEnd> {
    let input = Box::new(BufReader::new(io::stdin()));
    let _ = env;
    if mode == Mode::Json {
        return Box::new(Json::new(run, input, Box::new(io::stdout())));
    }
    let questions = match (io::stdin().is_terminal(), io::stdout().is_terminal()) {
        (false, _) => Questions::Echoed,
        (true, true) => Questions::Typed,
        (true, false) => Questions::Aside,
    };
    let streams = Streams { input, out: Box::new(io::stdout()), err: Box::new(io::stderr()) };
    Box::new(Pipe::new(run, questions, streams))
}
