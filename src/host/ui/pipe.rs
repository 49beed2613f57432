//! The front end for pipes, files and terminals that cannot move their cursor: plain text, line by line.
//!
//! Each answer is one line, read only while a question is open. Answers are echoed after the question, so
//! that the transcript reads like the conversation. Nothing moves and nothing is coloured.
//! The text of a streamed call is held back until the call has succeeded: otherwise a retried call would
//! leave a partial reply in the transcript, and concurrent calls would be mixed.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use serde_json::Value;

use super::answer::{self, Said};
use super::ending::{self, RunEnding};
use super::help;
use super::lines::Lines;
use super::out::{OutputStream, indent_lines, safe};
use super::terminal::stream::edges;
use super::verbose;
use super::waits::Waits;
use crate::error::Result;
use crate::host::FrontEnd;
use crate::model::event::Event;
use crate::model::question::{Question, QuestionKind};

/// The streams of a plain front end.
pub(crate) struct Streams {
    pub input: Box<dyn BufRead + Send>,
    pub out: Box<dyn Write + Send>,
    pub err: Box<dyn Write + Send>,
}

/// How questions are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuestionMode {
    /// Answers come from a pipe or a file: each is echoed after its question.
    Echoed,
    /// Answers are typed at a terminal, which shows them itself.
    Typed,
    /// Answers are typed at a terminal, but standard output goes elsewhere: questions go to standard error.
    OnStderr,
}

/// What was printed last: a blank line separates speakers, and texts that would be one in Markdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastBlock {
    Nothing,
    /// A text that ends with a list.
    List,
    /// A text of one line, such as a step that is told. Such lines stand together.
    Line,
    /// A text of several lines.
    Text,
    /// A question, or data: what follows begins a line and needs no more.
    Other,
}

/// What the user is told when a pipe begins to answer questions.
const BY_PIPE: &str = "standard input answers the questions, a line each; `--answers -` says so and spares this line";

/// Plain text in, plain text out.
pub(crate) struct Pipe {
    run: String,
    lines: Lines,
    out: OutputStream,
    /// Shared with the thread that tells what is waited for.
    err: Arc<Mutex<OutputStream>>,
    waits: Waits,
    questions: QuestionMode,
    /// Whether the user still has to be told that answers come from a pipe.
    announces: Cell<bool>,
    /// Whether nobody said that the pipe answers.
    is_unsaid: bool,
    started: Instant,
    /// The run's language.
    lang: RefCell<String>,
    /// The running calls that are shown: speaker and text so far.
    streams: RefCell<HashMap<String, (String, String)>>,
    /// Announced questions that were not asked here; an answers file may answer them instead.
    open: RefCell<HashMap<String, Question>>,
    /// What was printed last.
    last: Cell<LastBlock>,
    /// One question at a time, in the order in which they were asked.
    turn: tokio::sync::Mutex<()>,
}

impl Pipe {
    pub(crate) fn new(run: &str, questions: QuestionMode, streams: Streams) -> Pipe {
        let err = Arc::new(Mutex::new(OutputStream::new(streams.err)));
        Pipe {
            run: run.to_owned(),
            lines: Lines::new(streams.input),
            out: OutputStream::standard_output(streams.out),
            waits: Waits::new(Arc::clone(&err)),
            err,
            questions,
            announces: Cell::new(false),
            is_unsaid: false,
            started: Instant::now(),
            lang: RefCell::default(),
            streams: RefCell::default(),
            open: RefCell::default(),
            last: Cell::new(LastBlock::Nothing),
            turn: tokio::sync::Mutex::new(()),
        }
    }

    /// Makes a front end of which nobody said that it answers: the user is told at the first answer from a pipe.
    pub(crate) fn announcing(self) -> Pipe {
        self.announces.set(self.questions == QuestionMode::Echoed);
        Pipe { is_unsaid: true, ..self }
    }

    /// Writes to the stream for questions and their answers.
    fn put_question(&self, text: &str) {
        match self.questions {
            QuestionMode::Echoed | QuestionMode::Typed => self.out.put(text),
            QuestionMode::OnStderr => self.put_err(text),
        }
    }

    fn put_err(&self, text: &str) {
        self.err.lock().unwrap_or_else(PoisonError::into_inner).put(text);
    }

    /// Tells whether nobody sees the questions any more.
    fn is_unseen(&self) -> bool {
        match self.questions {
            QuestionMode::Echoed => self.out.is_closed(),
            QuestionMode::OnStderr => self.err.lock().unwrap_or_else(PoisonError::into_inner).is_closed(),
            QuestionMode::Typed => false,
        }
    }

    fn say(&self, from: Option<&str>, markdown: &str) {
        let markdown = markdown.trim_end();
        let shown = data(markdown);
        let is_data = shown.len() < markdown.len();
        let (list_first, list_last) = edges(markdown);
        let from = from.filter(|from| !from.is_empty());
        let has_gap = match self.last.get() {
            LastBlock::Nothing => false,
            _ if from.is_some() => true,
            LastBlock::Line => !list_first && !is_data && markdown.contains('\n'),
            LastBlock::List => !list_first && !is_data,
            LastBlock::Text => !is_data,
            LastBlock::Other => false,
        };
        let gap = if has_gap { "\n" } else { "" };
        let from = from.map(|from| format!("{}:\n", safe(from))).unwrap_or_default();
        self.last.set(match (is_data, list_last) {
            (true, _) => LastBlock::Other,
            (false, true) => LastBlock::List,
            (false, false) if markdown.contains('\n') => LastBlock::Text,
            (false, false) => LastBlock::Line,
        });
        self.out.put(&format!("{gap}{from}{}\n", safe(shown)));
    }

    async fn answer(&self, question: &Question) -> Result<Value> {
        let _turn = self.turn.lock().await;
        self.open.borrow_mut().remove(&question.id);
        self.waits.said();
        self.last.set(LastBlock::Other);
        self.put_question(&question_text(question));
        loop {
            // Until a line comes, nobody knows whether the pipe answers: what is told of that stands before the answer.
            let (before, after) = if self.announces.get() { ("", "> ") } else { ("> ", "") };
            self.put_question(before);
            // If the output is closed, nobody sees the question, so no line can be meant as its answer.
            let line = if self.is_unseen() { None } else { self.lines.next().await };
            let Some(line) = line else {
                self.put_question(&format!("{after}\n"));
                return Err(self.lines.end_failure(question, &self.run));
            };
            if self.announces.take() {
                self.put_err(&format!("{}\n", indent_lines(BY_PIPE)));
            }
            if self.questions == QuestionMode::Echoed {
                self.put_question(&format!("{after}{}\n", safe(&line)));
            }
            match answer::parse(question, &line) {
                Ok(Said::Help) => self.put_question(&indented(&help::lines(question, &self.lang.borrow()))),
                Ok(Said::Answer(value)) => {
                    let meant = answer::display_text(question, &value);
                    if line.trim().is_empty() && !meant.is_empty() && self.questions == QuestionMode::Echoed {
                        self.put_question(&format!("  ({meant})\n"));
                    }
                    return Ok(value);
                }
                Err(why) => self.put_question(&indented(&[answer::refusal(question, &why)])),
            }
        }
    }
}

impl FrontEnd for Pipe {
    fn show(&self, event: &Event) {
        match event {
            Event::RunStarted { lang, .. } => lang.clone_into(&mut self.lang.borrow_mut()),
            // What a model thinks is shown while it comes, or not at all.
            Event::Replayed { .. } | Event::CallThought { .. } | Event::Progress { .. } => {}
            Event::Status { text } => self.waits.status(text),
            Event::Said { markdown, from } => {
                self.waits.said();
                self.say(from.as_deref(), markdown);
            }
            Event::CallStarted { call, label, show, .. } => {
                self.waits.call_started(call, label);
                if *show {
                    self.streams.borrow_mut().insert(call.clone(), (label.clone(), String::new()));
                }
            }
            Event::CallSent { request, .. } => self.put_err(&verbose::request_text(request)),
            Event::CallReceived { reply, .. } => self.put_err(&verbose::reply_text(reply)),
            Event::CallDelta { call, text } => {
                if let Some((_, so_far)) = self.streams.borrow_mut().get_mut(call) {
                    so_far.push_str(text);
                }
            }
            Event::CallRetried { call, attempt, reason, wait_ms } => {
                // Once for a call: a pipe is no place to count along.
                if *attempt == 2 {
                    let wait = wait_ms.div_ceil(1000);
                    self.put_err(&format!("{}; trying again in {wait} s\n", indent_lines(reason)));
                }
                if let Some((_, so_far)) = self.streams.borrow_mut().get_mut(call) {
                    so_far.clear();
                }
            }
            Event::CallEnded { call, failure, .. } => {
                self.waits.call_ended(call);
                let ended = self.streams.borrow_mut().remove(call);
                if let (Some((label, text)), None) = (ended, failure) {
                    self.say(Some(&label), &text);
                }
            }
            Event::Asked { question } => {
                self.open.borrow_mut().insert(question.id.clone(), question.clone());
            }
            Event::Answered { id, answer } => {
                // A question that is still open was not asked here: an answers file gave the answer.
                let open = self.open.borrow_mut().remove(id);
                if let Some(question) = open {
                    let shown = safe(&answer::display_text(&question, answer));
                    self.last.set(LastBlock::Other);
                    self.put_question(&format!("{}> {shown}\n", question_text(&question)));
                }
            }
            // Where there is a recap, it tells what was answered.
            Event::GivenBack { question, .. } if question.recap.is_some() => {}
            Event::GivenBack { question, answer } => {
                self.last.set(LastBlock::Other);
                self.put_question(&format!("{}\n", safe(&answer::given_back_text(question, answer))));
            }
            Event::Notice { text } => self.put_err(&format!("{}\n", indent_lines(text))),
            Event::RunEnded { status, failure, spent, .. } => {
                self.waits.status("");
                let status = *status;
                let elapsed = self.started.elapsed();
                let ending = RunEnding { status, failure: failure.as_ref(), spent, elapsed, lang: &self.lang.borrow() };
                self.put_err(&ending::text(&ending, &self.run, &ending::without_colour));
            }
        }
    }

    fn ask<'a>(&'a self, question: &'a Question) -> LocalBoxFuture<'a, Result<Value>> {
        self.answer(question).boxed_local()
    }

    fn attended(&self) -> bool {
        self.questions != QuestionMode::Echoed || !self.is_unsaid
    }
}

/// Returns lines that nietz says of a question, set off from what is answered.
fn indented(lines: &[String]) -> String {
    lines.iter().map(|line| format!("  {}\n", safe(line))).collect()
}

/// Returns a question as lines of plain text: the prompt, the options, and what an empty line means.
fn question_text(question: &Question) -> String {
    let mut out = format!("? {}", safe(question.prompt.trim_end()));
    let default = answer::default(question);
    match question.kind {
        QuestionKind::Choose => {
            out.push('\n');
            for (index, choice) in question.options.iter().enumerate() {
                let _ = write!(out, "  {}. {}", index + 1, safe(&choice.label));
                if let Some(hint) = &choice.hint {
                    let _ = write!(out, " – {}", safe(hint));
                }
                if default.as_ref().and_then(Value::as_str) == Some(choice.value.as_str()) {
                    out.push_str(" (default)");
                }
                out.push('\n');
            }
        }
        QuestionKind::Confirm | QuestionKind::Ask => {
            let _ = writeln!(out, "{}", safe(&answer::hint(question)));
        }
    }
    out
}

/// Returns the content of a message that is just one block of code, since in a pipe that is data; other messages unchanged.
///
/// A block whose content has a fence in it stands between longer ones, as in any Markdown.
fn data(markdown: &str) -> &str {
    let fence = &markdown[..markdown.len() - markdown.trim_start_matches('`').len()];
    let inside = markdown
        .strip_prefix(fence)
        .and_then(|rest| rest.strip_prefix('\n'))
        .and_then(|rest| rest.strip_suffix(fence))
        .and_then(|rest| rest.strip_suffix('\n'));
    inside.filter(|inside| fence.len() >= 3 && !inside.contains(fence)).unwrap_or(markdown)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use insta::assert_snapshot;
    use serde_json::json;

    use super::super::out::tests::Captured;
    use super::super::samples::{delta, ended, question, retried, save, shape, started, topic};
    use super::{Pipe, QuestionMode, Streams};
    use crate::error::Code;
    use crate::host::FrontEnd;
    use crate::model::event::Event;

    fn pipe(input: &'static str) -> (Pipe, Captured, Captured) {
        let (out, err) = (Captured::default(), Captured::default());
        let streams = Streams { input: Box::new(Cursor::new(input)), out: out.stream(), err: err.stream() };
        (Pipe::new("r1", QuestionMode::Echoed, streams), out, err)
    }

    #[test]
    fn a_block_of_code_alone_is_data() {
        for (markdown, expected) in [
            ("```\na,b\n1,2\n```", "a,b\n1,2"),
            ("Text\n```\na\n```", "Text\n```\na\n```"),
            ("```\na\n```\nand\n```\nb\n```", "```\na\n```\nand\n```\nb\n```"),
            ("```lua\na\n```", "```lua\na\n```"),
            ("````\n{\"reason\":\"```\"}\n````", "{\"reason\":\"```\"}"),
            ("````\na\n```", "````\na\n```"),
            ("``\na\n``", "``\na\n``"),
        ] {
            assert_eq!(super::data(markdown), expected);
        }
    }

    #[tokio::test]
    async fn the_transcript_reads_as_the_conversation_did() {
        let (pipe, out, err) = pipe("a \u{1b}[2Jdesk\nblue\n2\n\nperhaps\nY\n");
        let (topic, shape, save) = (topic(), shape(), save());
        let name = question(json!({"id": "name", "type": "ask", "prompt": "Its name?", "default": "Bob"}));
        let mut answers = Vec::new();
        pipe.show(&Event::Said { markdown: "# Hello\n\n*you*\u{7}\n".into(), from: Some("Hypatia".into()) });
        for question in [&topic, &shape, &name, &save] {
            pipe.show(&Event::Asked { question: question.clone() });
            let answer = pipe.ask(question).await.expect("there is a line for it");
            pipe.show(&Event::Answered { id: question.id.clone(), answer: answer.clone() });
            answers.push(answer);
        }
        assert_eq!(answers, [json!("a ␛[2Jdesk"), json!("square"), json!("Bob"), json!(true)]);
        let failure = pipe.ask(&topic).await.expect_err("the input has ended");
        assert_eq!(failure.code, Code::AnswerMissing);
        assert!(failure.hint.is_some_and(|hint| hint.contains("nietz resume r1")));
        assert_snapshot!(out.text(), @r"
        Hypatia:
        # Hello

        *you*␇
        ? What about?
        > a ␛[2Jdesk
        ? Which shape?
          1. Round – no corners
          2. Square
        > blue
          `blue` is none of the options; answer with round or square
        > 2
        ? Its name? [Bob]
        > 
          (Bob)
        ? Save it? (y/N)
        > perhaps
          `perhaps` is neither yes nor no; answer with yes or no
        > Y
        ? What about?
        >
        ");
        assert_eq!(err.text(), "");
    }

    #[tokio::test]
    async fn a_streamed_call_is_shown_once_whole_and_without_its_false_starts() {
        let (pipe, out, _) = pipe("");
        let events =
            [started("a", true), started("b", true), started("c", false), delta("a", "one "), delta("b", "bee")];
        events.iter().for_each(|event| pipe.show(event));
        let events = [delta("a", "two"), delta("c", "hidden"), retried("a"), delta("a", "three")];
        events.iter().for_each(|event| pipe.show(event));
        ["c", "b", "a"].iter().for_each(|call| pipe.show(&ended(call, None)));
        assert_snapshot!(out.text(), @r"
        b:
        bee

        a:
        three
        ");
    }

    #[test]
    fn a_blank_line_stands_where_markdown_would_make_one_text_of_two() {
        let (pipe, out, _) = pipe("");
        for markdown in
            ["step one", "step two", "- a", "- b", "a text", "# Long\n\nIts lines.", "Next.", "```\n1,2\n```", "end"]
        {
            pipe.show(&Event::Said { markdown: markdown.into(), from: None });
        }
        assert_snapshot!(out.text(), @r"
        step one
        step two
        - a
        - b

        a text

        # Long

        Its lines.

        Next.
        1,2
        end
        ");
    }

    #[tokio::test]
    async fn an_answer_that_came_from_elsewhere_is_shown_with_its_question() {
        let (pipe, out, err) = pipe("");
        pipe.show(&Event::Asked { question: save() });
        pipe.show(&Event::Answered { id: "save".into(), answer: json!(true) });
        pipe.show(&Event::Notice { text: "by the way".into() });
        assert_snapshot!(out.text(), @r"
        ? Save it? (y/N)
        > yes
        ");
        assert_eq!(err.text(), "by the way\n");
    }
}
