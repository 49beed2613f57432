//! Takes answers from a file, for scripts and tests: `--answers FILE`.
//!
//! The file is a mapping, in YAML or JSON, from question ids to answers. A single answer is given each time
//! the question is asked; a list gives one answer per time and is then used up. `"*"` answers questions without an
//! entry of their own. Other questions go on to the inner front end.

use std::cell::RefCell;
use std::path::Path;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use indexmap::IndexMap;
use serde_json::Value;

use super::answer::{self, Said};
use super::help;
use crate::disk::{self, Links};
use crate::error::{Code, Failure, Result, nearest};
use crate::host::FrontEnd;
use crate::model::event::Event;
use crate::model::question::{AnsweredBy, Question};
use crate::model::text::{clean, excerpt};

/// The entry that answers every question without an entry of its own.
const ANY: &str = "*";

/// A front end that looks for an answer in a file before it asks its inner front end.
pub(crate) struct Answers {
    inner: Box<dyn FrontEnd>,
    entries: RefCell<IndexMap<String, AnswerEntry>>,
    /// The ids of questions that the file does not name. [`Answers::unused`] compares misspelt entries with them.
    unknown: RefCell<Vec<String>>,
}

/// The largest answers file, in bytes.
const LARGEST: u64 = 16 << 20;

/// The answers of the file to one question.
struct AnswerEntry {
    given: GivenAnswer,
    /// Whether the question was ever asked.
    used: bool,
}

enum GivenAnswer {
    Always(Value),
    /// One answer per time, in reverse order, so that the next answer is the last of the list.
    InTurn(Vec<Value>),
}

impl Answers {
    /// Reads the file, and puts it in front of another front end.
    ///
    /// # Errors
    ///
    /// `usage` if the file cannot be read, `answer-invalid` if it is not a mapping.
    pub(crate) fn open(path: &Path, inner: Box<dyn FrontEnd>) -> Result<Answers> {
        let name = path.display().to_string();
        let unreadable = |why: String| {
            Failure::new(Code::Usage, format!("cannot read the answers file {}: {}", clean(&name), clean(&why)))
        };
        let read = disk::read(path, Links::All, LARGEST).map_err(|failure| unreadable(failure.message))?;
        let bytes = read.ok_or_else(|| {
            unreadable("there is none".to_owned())
                .hint("paths are relative to the folder that you are in; `-` reads standard input")
        })?;
        let text = String::from_utf8(bytes).map_err(|error| unreadable(error.to_string()))?;
        Answers::parse(&name, &text, inner)
    }

    /// Takes the answers from a text; failures call it `name`.
    ///
    /// # Errors
    ///
    /// `answer-invalid` if the text is not a mapping.
    pub(crate) fn parse(name: &str, text: &str, inner: Box<dyn FrontEnd>) -> Result<Answers> {
        // Without strict booleans, YAML would turn the answer `no` to a free question into false.
        let options = serde_yaml::options! { strict_booleans: true };
        let refuse = |why: String| {
            Failure::new(Code::AnswerInvalid, format!("{}: {}", clean(name), clean(&why)))
                .hint("an answers file maps ids to answers, a line each: `topic: better tea`")
        };
        let empty = text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'));
        let mapping: IndexMap<String, Value> = if empty {
            IndexMap::new()
        } else {
            serde_yaml::from_str_with_options(text, options).map_err(|error| {
                let why = error.render_with_formatter(&serde_yaml::UserMessageFormatter);
                refuse(why.trim_start_matches("error: ").replace("<input>", name))
            })?
        };
        let mut entries = IndexMap::new();
        for (id, value) in mapping {
            let given = match value {
                Value::Array(mut list) => {
                    list.reverse();
                    GivenAnswer::InTurn(list)
                }
                one => GivenAnswer::Always(one),
            };
            entries.insert(id, AnswerEntry { given, used: false });
        }
        Ok(Answers { inner, entries: RefCell::new(entries), unknown: RefCell::default() })
    }

    /// Returns a line for each unused entry, with the id that was probably meant.
    pub(crate) fn unused(&self) -> Vec<String> {
        let unknown = self.unknown.borrow();
        let entries = self.entries.borrow();
        let unused = entries.iter().filter(|(id, entry)| !entry.used && *id != ANY);
        unused
            .map(|(id, _)| match nearest(id, unknown.iter().map(String::as_str)) {
                Some(meant) => format!("`{}` was never asked; did you mean `{}`?", excerpt(id), excerpt(meant)),
                None => format!("`{}` was never asked", excerpt(id)),
            })
            .collect()
    }

    fn take(&self, id: &str) -> Option<Value> {
        let mut entries = self.entries.borrow_mut();
        // A list that is used up does not fall through to `*`: its author decided how many answers there are.
        let key = if entries.contains_key(id) { id } else { ANY };
        if key == ANY {
            self.unknown.borrow_mut().push(id.to_owned());
        }
        let entry = entries.get_mut(key)?;
        entry.used = true;
        match &mut entry.given {
            GivenAnswer::Always(value) => Some(value.clone()),
            GivenAnswer::InTurn(list) => list.pop(),
        }
    }

    async fn answer(&self, question: &Question) -> Result<Value> {
        while let Some(value) = self.take(&question.id) {
            match answer::check(question, &value).map_err(|why| answer::invalid_failure(question, &why))? {
                Said::Answer(value) => return Ok(value),
                Said::Help => self.inner.show(&Event::Notice { text: help::lines(question, "").join("\n") }),
            }
            if !self.has_turns(&question.id) {
                break;
            }
        }
        self.inner.ask(question).await
    }

    /// Whether the answers to this question are a list: a single one would be the same again.
    fn has_turns(&self, id: &str) -> bool {
        let entries = self.entries.borrow();
        let entry = entries.get(id).or_else(|| entries.get(ANY));
        entry.is_some_and(|entry| matches!(entry.given, GivenAnswer::InTurn(_)))
    }
}

impl FrontEnd for Answers {
    fn show(&self, event: &Event) {
        self.inner.show(event);
    }

    fn ask<'a>(&'a self, question: &'a Question) -> LocalBoxFuture<'a, Result<Value>> {
        self.answer(question).boxed_local()
    }

    fn answered_by(&self, effect: &str) -> Option<AnsweredBy> {
        self.inner.answered_by(effect)
    }

    /// Whoever gives a file of answers has somebody answer.
    fn attended(&self) -> bool {
        true
    }

    fn answered_before(&self, question: &Question) {
        // What asked for help was no answer, and is not recorded.
        while let Some(value) = self.take(&question.id)
            && matches!(answer::check(question, &value), Ok(Said::Help))
            && self.has_turns(&question.id)
        {}
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use insta::assert_snapshot;
    use serde_json::json;

    use super::super::out::tests::Captured;
    use super::super::pipe::{Pipe, QuestionMode, Streams};
    use super::super::samples::{save, shape, topic};
    use super::Answers;
    use crate::error::{Code, Result};
    use crate::host::FrontEnd;
    use crate::model::event::Event;

    fn answers(text: &str, input: &'static str) -> (Result<Answers>, Captured) {
        let out = Captured::default();
        let streams = Streams { input: Box::new(Cursor::new(input)), out: out.stream(), err: out.stream() };
        (Answers::parse("a.yaml", text, Box::new(Pipe::new("r1", QuestionMode::Echoed, streams))), out)
    }

    #[tokio::test]
    async fn the_file_answers_first_then_whoever_is_behind_it() {
        let (answers, out) = answers("topic: [no, 7]\nsave: yes\nshpae: round\n", "third\n");
        let answers = answers.expect("the file is well formed");
        let mut given = Vec::new();
        for question in [topic(), save(), topic(), save(), topic()] {
            answers.show(&Event::Asked { question: question.clone() });
            let answer = answers.ask(&question).await.expect("there is an answer");
            answers.show(&Event::Answered { id: question.id, answer: answer.clone() });
            given.push(answer);
        }
        assert_eq!(given, [json!("no"), json!(true), json!("7"), json!(true), json!("third")]);
        assert_snapshot!(out.text(), @r"
        ? What about?
        > no
        ? Save it? (y/N)
        > yes
        ? What about?
        > 7
        ? Save it? (y/N)
        > yes
        ? What about?
        > third
        ");
        assert_eq!(answers.ask(&shape()).await.expect_err("nobody knows").code, Code::AnswerMissing);
        assert_eq!(answers.unused(), ["`shpae` was never asked; did you mean `shape`?"]);
    }

    #[tokio::test]
    async fn a_star_answers_the_rest_and_a_wrong_answer_is_refused() {
        let (answers, _) = answers("\"*\": 2\ntopic: {a: 1}", "");
        let answers = answers.expect("the file is well formed");
        assert_eq!(answers.ask(&shape()).await.ok(), Some(json!("square")));
        let failure = answers.ask(&save()).await.expect_err("2 is neither yes nor no");
        assert_eq!(
            (failure.code, failure.hint.as_deref()),
            (Code::AnswerInvalid, Some("`save` may be answered with yes or no"),)
        );
        assert!(answers.ask(&topic()).await.is_err());
        assert!(answers.unused().is_empty());
    }

    #[tokio::test]
    async fn answers_that_a_resumed_run_has_already_are_counted() {
        let (answers, _) = answers("topic: [one, two]", "");
        let answers = answers.expect("the file is well formed");
        answers.answered_before(&topic());
        assert_eq!(answers.ask(&topic()).await.ok(), Some(json!("two")));
    }

    #[test]
    fn a_file_that_is_no_mapping_is_refused_with_its_name_and_line() {
        let message = |text| answers(text, "").0.err().map(|failure| failure.message).unwrap_or_default();
        assert_snapshot!(message("- a"), @r"
        a.yaml: line 1 column 1: expected mapping start
         --> a.yaml:1:1
          |
        1 | - a
          | ^ expected mapping start
        ");
        assert_snapshot!(message("a: 1\na: 2"), @r"
        a.yaml: line 2 column 1: duplicate mapping key: a not allowed here
         --> a.yaml:2:1
          |
        1 | a: 1
        2 | a: 2
          | ^ duplicate mapping key: a not allowed here
        ");
        assert!(answers("# nothing yet\n", "").0.is_ok());
    }
}
