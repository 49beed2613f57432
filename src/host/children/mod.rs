//! Runs that a flow starts as a part of its own. Each is a process of this program, which is told on its standard input what it is
//! asked (`ChildRequest`), and says on its standard output what happens, as every run does for programs.
//!
//! With runs in files the process does the run. With a store it leaves the run to the workers and tells how it ended. Where its parent
//! is killed, a child ends, and goes on when its parent asks for it again, by the same name.

mod process;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::error::{Code, Failure, Result};
use crate::host::FrontEnd;
use crate::model::budget::{Budget, Spent};
use crate::model::child::{ChildRequest, ChildTerms};
use crate::model::event::{EndStatus, Event, RunVerdict};
use process::Process;
pub(crate) use process::VERB;

/// How many children of one run are done at once on this machine, and how many are left to workers.
const AT_ONCE: usize = 8;
const AT_ONCE_ELSEWHERE: usize = 256;
/// How often a child is gone on with whose process was killed.
const TRIES: usize = 5;
/// How long a child is left alone that an earlier process is still at.
const PAUSE: Duration = Duration::from_millis(100);

/// What does the children of one run.
pub struct Children {
    /// This program, which does them.
    pub(crate) program: Option<PathBuf>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) workspace: PathBuf,
    pub(crate) terms: ChildTerms,
    pub(crate) at_once: Semaphore,
}

/// How a child has ended.
#[derive(Debug, Deserialize)]
pub(crate) struct ChildEnd {
    pub(crate) status: EndStatus,
    #[serde(default)]
    pub(crate) result: Option<Value>,
    #[serde(default)]
    pub(crate) failure: Option<Failure>,
    #[serde(default)]
    pub(crate) verdict: Option<RunVerdict>,
    #[serde(default)]
    pub(crate) calls: u64,
    #[serde(default)]
    pub(crate) spent: Vec<Spent>,
}

/// What whoever waits for a child sees of it.
pub(crate) struct ChildWatch<'a> {
    pub(crate) front: &'a dyn FrontEnd,
    /// Called at each sign of life.
    pub(crate) beat: &'a dyn Fn(),
    /// The model calls that it has begun, and the tokens of those that are over.
    pub(crate) calls: &'a Cell<u64>,
    pub(crate) tokens: &'a Cell<u64>,
    /// What it may use, where that was said when it was begun and not now.
    pub(crate) holds: &'a dyn Fn(Budget),
}

impl Children {
    /// `elsewhere`: workers of a store do them.
    pub(crate) fn new(
        program: Option<PathBuf>,
        environment: BTreeMap<String, String>,
        workspace: PathBuf,
        terms: ChildTerms,
        elsewhere: bool,
    ) -> Children {
        let at_once = Semaphore::new(if elsewhere { AT_ONCE_ELSEWHERE } else { AT_ONCE });
        Children { program, environment, workspace, terms, at_once }
    }

    /// Does a child, or goes on with it, until it ends or waits. Dropping the future ends its process as Ctrl-C does.
    ///
    /// # Errors
    ///
    /// `internal` if its process cannot be started or is killed again and again, and those of the parent's front end.
    pub(crate) async fn run(&self, request: &ChildRequest, watch: &ChildWatch<'_>) -> Result<ChildEnd> {
        let _turn = self.at_once.acquire().await;
        let mut killed = 0;
        loop {
            let mut process = Process::start(self, request)?;
            let ended = process.follow(watch).await?;
            match ended {
                // An earlier process of it is about to end with its parent, which was killed.
                Some(end) if end.failure.as_ref().is_some_and(|failure| failure.code == Code::RunBusy) => {
                    tokio::time::sleep(PAUSE).await;
                }
                Some(end) => return Ok(end),
                None => {
                    killed += 1;
                    let said = process.said();
                    if killed >= TRIES {
                        let message =
                            format!("the process of the run {} has ended {killed} times without a word", request.run);
                        let failure = Failure::new(Code::Internal, message).hint(format!(
                            "nietz log {} shows how far it came; resume this run to try again",
                            request.run
                        ));
                        return Err(if said.is_empty() { failure } else { failure.because(said) });
                    }
                    let text =
                        format!("the process of the run {} was ended; it goes on from what is recorded", request.run);
                    watch.front.show(&Event::Notice { text });
                }
            }
        }
    }
}
