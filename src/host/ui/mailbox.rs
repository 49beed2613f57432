//! Takes answers that were given elsewhere, such as in a browser or by `nietz answer`: each is kept for one question, named by the
//! key of its effect, so that it can answer that question alone. The run takes it at once if it waits there, and otherwise when
//! it is resumed. The other front end is asked meanwhile; who answers first has answered.
//!
//! An [`AnswerStore`] keeps them: in files of the user's own ([`AnswerFolder`]), or on the server that has the run.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs::DirBuilder;
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Either, LocalBoxFuture, select};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::{self, Said};
use crate::disk::{self, Links};
use crate::error::{Code, Failure, Result};
use crate::host::FrontEnd;
use crate::model::event::Event;
use crate::model::question::{AnsweredBy, Question};

/// How long a run that waits for an answer looks nowhere else.
const PAUSE: Duration = Duration::from_millis(100);
/// The largest answer, in bytes.
const LARGEST: u64 = 1 << 20;

/// An answer that was given elsewhere.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct GivenAnswer {
    pub(crate) answer: Value,
    /// Who gave it, where that was not the person themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<AnsweredBy>,
}

/// Where answers to the questions of one run are kept until it takes them. Questions are known by the keys of their effects.
pub trait AnswerStore: Send + Sync {
    /// Returns the answer to a question, if one is there.
    ///
    /// # Errors
    ///
    /// `disk-failed`, or those of a server.
    fn find(&self, effect: &str) -> Result<Option<GivenAnswer>>;

    /// Keeps the answer to a question.
    ///
    /// # Errors
    ///
    /// `answer-given` if somebody has answered it before, `disk-failed`, or those of a server.
    fn keep(&self, effect: &str, answer: &GivenAnswer) -> Result<()>;

    /// Forgets the answer to a question: the run has recorded it.
    fn forget(&self, effect: &str);

    /// Removes an answer that does not fit its question, so that it is not met again.
    fn refuse(&self, effect: &str);
}

/// Answers in a folder, one file for each.
pub(crate) struct AnswerFolder {
    folder: PathBuf,
}

/// A front end whose questions can be answered elsewhere.
pub(crate) struct Mailbox {
    inner: Box<dyn FrontEnd>,
    answers: Arc<dyn AnswerStore>,
    /// The questions whose answers were given to the flow. These are forgotten when they are recorded.
    taken: RefCell<Vec<String>>,
    /// Whether it was told that answers from elsewhere cannot be asked for.
    told: Cell<bool>,
    /// By effect, who gave answers that the person did not give themselves.
    by: RefCell<HashMap<String, AnsweredBy>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptAnswer {
    v: u32,
    answer: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<AnsweredBy>,
}

impl AnswerFolder {
    /// Expects the folder of one run's answers, which need not be there.
    pub(crate) fn new(folder: PathBuf) -> AnswerFolder {
        AnswerFolder { folder }
    }

    fn place(&self, effect: &str) -> PathBuf {
        // Keys are hex digits; anything else has no answer.
        let name: String = effect.chars().filter(char::is_ascii_alphanumeric).collect();
        self.folder.join(format!("{name}.json"))
    }
}

impl AnswerStore for AnswerFolder {
    fn find(&self, effect: &str) -> Result<Option<GivenAnswer>> {
        let Some(bytes) = disk::read(&self.place(effect), Links::NotLast, LARGEST)? else { return Ok(None) };
        // Nobody but the user's own programs can have written it; what is no answer is met by whoever takes it.
        let kept =
            serde_json::from_slice(&bytes).map(|kept: KeptAnswer| GivenAnswer { answer: kept.answer, by: kept.by });
        Ok(Some(kept.unwrap_or_default()))
    }

    fn keep(&self, effect: &str, answer: &GivenAnswer) -> Result<()> {
        let failed = |error: std::io::Error| Failure::io(&self.folder, "keep an answer in", &error);
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(failed)?;
        let kept = KeptAnswer { v: 1, answer: answer.answer.clone(), by: answer.by };
        let text = serde_json::to_string(&kept).unwrap_or_default();
        let mut file = tempfile::Builder::new();
        let mut file = file.prefix(".").tempfile_in(&self.folder).map_err(failed)?;
        file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
        // Of two that are given at once, the first one stays.
        match file.persist_noclobber(self.place(effect)) {
            Ok(_) => Ok(()),
            Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => Err(given_before()),
            Err(error) => Err(failed(error.error)),
        }
    }

    fn forget(&self, effect: &str) {
        // One that stays answers nothing: its question has its answer.
        let _ = std::fs::remove_file(self.place(effect));
    }

    fn refuse(&self, effect: &str) {
        self.forget(effect);
    }
}

/// Returns the failure of whoever answers a question second.
pub(crate) fn given_before() -> Failure {
    Failure::new(Code::AnswerGiven, "somebody has answered this question before: their answer counts")
}

impl Mailbox {
    /// Expects where the run's answers are kept.
    pub(crate) fn new(answers: Arc<dyn AnswerStore>, inner: Box<dyn FrontEnd>) -> Mailbox {
        Mailbox { inner, answers, taken: RefCell::default(), told: Cell::default(), by: RefCell::default() }
    }

    /// Returns the answer to a question that is there and fits it.
    fn take(&self, question: &Question) -> Option<Value> {
        let effect = question.effect.as_deref()?;
        let found = match self.answers.find(effect) {
            Ok(found) => found?,
            Err(failure) => {
                // It can still be answered here.
                if !self.told.replace(true) {
                    let text = format!("whether this was answered elsewhere cannot be found out: {failure}");
                    self.inner.show(&Event::Notice { text });
                }
                return None;
            }
        };
        match answer::check(question, &found.answer) {
            Ok(Said::Answer(value)) if answer::counts_from(question, &value, found.by).is_ok() => {
                found.by.map(|by| self.by.borrow_mut().insert(effect.to_owned(), by));
                self.taken.borrow_mut().push(effect.to_owned());
                Some(value)
            }
            // One that fits nothing must not be met again.
            _ => {
                self.answers.refuse(effect);
                None
            }
        }
    }

    async fn answer(&self, question: &Question) -> Result<Value> {
        let mut inner = self.inner.ask(question);
        loop {
            if let Some(value) = self.take(question) {
                drop(inner);
                self.inner.show(&Event::Notice { text: "answered elsewhere".to_owned() });
                return Ok(value);
            }
            match select(inner, tokio::time::sleep(PAUSE).boxed_local()).await {
                Either::Left((answered, _)) => return answered,
                Either::Right(((), still)) => inner = still,
            }
        }
    }

    fn clear(&self) {
        self.taken.take().iter().for_each(|effect| self.answers.forget(effect));
    }
}

/// Keeps an answer to a question, if it is one.
///
/// # Errors
///
/// `answer-invalid` with a sentence that says why the text is no answer, and those of [`AnswerStore::keep`].
pub(crate) fn keep(answers: &dyn AnswerStore, question: &Question, text: &str, by: Option<AnsweredBy>) -> Result<()> {
    let key = question.effect.as_deref().unwrap_or_default();
    let answer = match answer::parse(question, text) {
        Ok(Said::Answer(answer)) => answer,
        Ok(Said::Help) => return Err(Failure::new(Code::AnswerInvalid, "that asks for help, and is no answer")),
        Err(why) => return Err(Failure::new(Code::AnswerInvalid, why)),
    };
    answer::counts_from(question, &answer, by).map_err(|why| Failure::new(Code::AnswerInvalid, why))?;
    answers.keep(key, &GivenAnswer { answer, by })
}

impl FrontEnd for Mailbox {
    fn show(&self, event: &Event) {
        self.inner.show(event);
        if matches!(event, Event::RunEnded { .. }) {
            self.clear();
        }
    }

    fn ask<'a>(&'a self, question: &'a Question) -> LocalBoxFuture<'a, Result<Value>> {
        self.answer(question).boxed_local()
    }

    fn answered_by(&self, effect: &str) -> Option<AnsweredBy> {
        let kept = self.by.borrow().get(effect).copied();
        kept.or_else(|| self.inner.answered_by(effect))
    }

    fn attended(&self) -> bool {
        self.inner.attended()
    }

    fn answered_before(&self, question: &Question) {
        self.inner.answered_before(question);
    }
}
