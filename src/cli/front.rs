//! The options by which the user says how a run is shown and answered.

use std::path::PathBuf;

use clap::Args;

use crate::run::front::FrontOptions;

/// How a run is shown and answered.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct FrontArgs {
    /// Write events as JSON lines; answers are read as JSON lines
    #[arg(long, global = true)]
    pub json: bool,
    /// Answer questions from this YAML or JSON file: question id to answer, or to a list of answers; with `-`, from
    /// standard input, a line each
    #[arg(long, value_name = "FILE", global = true)]
    pub answers: Option<PathBuf>,
    /// Show each request to a model and its reply, on standard error, without secrets
    #[arg(long, global = true)]
    pub verbose: bool,
    /// Show what models think also of those that must be asked for it
    #[arg(long, global = true)]
    pub thoughts: bool,
    /// Trust this folder with what it asks for, in this run alone: for CI
    #[arg(long, global = true)]
    pub trust: bool,
    /// Show where a flow that is not yours fails in its source, too
    #[arg(long, global = true)]
    pub trace: bool,
    /// Whether the run is over for good when it ends, so that nothing can go on with it.
    #[arg(skip)]
    pub is_passing: bool,
    /// Whether standard input was read as a text, so that it answers nothing.
    #[arg(skip)]
    pub stdin_taken: bool,
}

impl FrontArgs {
    /// Adds the options that the user gave in another part of the command line.
    pub(super) fn or(self, other: FrontArgs) -> FrontArgs {
        FrontArgs {
            json: self.json || other.json,
            answers: self.answers.or(other.answers),
            verbose: self.verbose || other.verbose,
            thoughts: self.thoughts || other.thoughts,
            trust: self.trust || other.trust,
            trace: self.trace || other.trace,
            is_passing: self.is_passing || other.is_passing,
            stdin_taken: self.stdin_taken || other.stdin_taken,
        }
    }

    /// Tells whether the user says that answers come from standard input.
    pub(super) fn answers_by_pipe(&self) -> bool {
        self.answers.as_deref().is_some_and(|path| path.as_os_str() == "-")
    }

    /// Tells whether a pipe can be anything but answers.
    pub(super) fn leaves_the_pipe(&self) -> bool {
        !self.json && !self.answers_by_pipe()
    }

    pub(super) fn front(&self) -> FrontOptions {
        let answers = self.answers.clone().filter(|_| !self.answers_by_pipe());
        FrontOptions {
            json: self.json,
            answers,
            by_pipe: self.answers_by_pipe(),
            stdin_taken: self.stdin_taken,
            verbose: self.verbose,
            thoughts: self.thoughts,
            trace: self.trace,
            is_passing: self.is_passing,
        }
    }
}
