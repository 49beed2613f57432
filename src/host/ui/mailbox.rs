//! Takes answers that were given elsewhere, such as in a browser: each is a file of the user's own, named by the key of the
//! question's effect, so that it can answer that question alone. The run takes it at once if it waits there, and otherwise when
//! it is resumed. The other front end is asked meanwhile; who answers first has answered.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Either, LocalBoxFuture, select};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::{self, Said};
use crate::disk::temp_file::TempFile;
use crate::disk::{self, Links};
use crate::error::{Code, Failure, Result};
use crate::host::FrontEnd;
use crate::model::event::Event;
use crate::model::question::{AnsweredBy, Question};

/// How long a run that waits for an answer looks nowhere else.
const PAUSE: Duration = Duration::from_millis(100);
/// The largest answer, in bytes.
const LARGEST: u64 = 1 << 20;

/// A front end whose questions can be answered elsewhere.
pub(crate) struct Mailbox {
    inner: Box<dyn FrontEnd>,
    folder: PathBuf,
    /// The files whose answers were given to the flow. They are removed when these are recorded.
    taken: RefCell<Vec<PathBuf>>,
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

impl Mailbox {
    /// Expects the folder of the run's answers, which need not be there.
    pub(crate) fn new(folder: PathBuf, inner: Box<dyn FrontEnd>) -> Mailbox {
        Mailbox { inner, folder, taken: RefCell::default(), by: RefCell::default() }
    }

    /// Returns the answer to a question that is there and fits it.
    fn take(&self, question: &Question) -> Option<Value> {
        let effect = question.effect.as_deref()?;
        let path = place(&self.folder, effect);
        let bytes = disk::read(&path, Links::NotLast, LARGEST).ok().flatten()?;
        let kept: Option<KeptAnswer> = serde_json::from_slice(&bytes).ok();
        let by = kept.as_ref().and_then(|kept| kept.by);
        match kept.map(|kept| answer::check(question, &kept.answer)) {
            Some(Ok(Said::Answer(value))) if answer::counts_from(question, &value, by).is_ok() => {
                by.map(|by| self.by.borrow_mut().insert(effect.to_owned(), by));
                self.taken.borrow_mut().push(path);
                Some(value)
            }
            // Nobody but the user's own programs can have written it; one that fits nothing must not be met again.
            _ => std::fs::remove_file(path).ok().and(None),
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
        for path in self.taken.take() {
            // One that stays answers nothing: its question has its answer.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Keeps an answer for the run that has this folder.
///
/// # Errors
///
/// `answer-invalid` with a sentence that says why the text is no answer, `disk-failed` if it cannot be kept.
pub(crate) fn keep(folder: &Path, question: &Question, text: &str, by: Option<AnsweredBy>) -> Result<()> {
    let key = question.effect.as_deref().unwrap_or_default();
    let answer = match answer::parse(question, text) {
        Ok(Said::Answer(answer)) => answer,
        Ok(Said::Help) => return Err(Failure::new(Code::AnswerInvalid, "that asks for help, and is no answer")),
        Err(why) => return Err(Failure::new(Code::AnswerInvalid, why)),
    };
    answer::counts_from(question, &answer, by).map_err(|why| Failure::new(Code::AnswerInvalid, why))?;
    let failed = |error: std::io::Error| Failure::io(folder, "keep an answer in", &error);
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    let path = place(folder, key);
    let text = serde_json::to_string(&KeptAnswer { v: 1, answer, by }).unwrap_or_default();
    TempFile::with_mode(&path, text.as_bytes(), 0o600)?.publish(&path)
}

/// Tells whether an answer to the question of this effect is kept.
pub(crate) fn is_kept(folder: &Path, effect: &str) -> bool {
    place(folder, effect).is_file()
}

fn place(folder: &Path, effect: &str) -> PathBuf {
    // Keys are hex digits; anything else has no answer.
    let name: String = effect.chars().filter(char::is_ascii_alphanumeric).collect();
    folder.join(format!("{name}.json"))
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
