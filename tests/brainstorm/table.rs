//! Where a test sits with the brainstorm: an environment, what is typed, what was said and saved.

use nietz::model::collection::Format;
use serde_json::Value;

use super::model::Brain;
use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Request};
use crate::support::process::{Call, Ended};

pub(crate) const TOPIC: &str = "checkout that survives a payment outage";
pub(super) const SLUG: &str = "checkout-that-survives-a-payment-outage";

/// An answer of five pieces, so that each axis can rest on one of its own.
pub(crate) const FULL: &str = "Orders stay in our own ledger first. A worker retries every payment each minute. \
    Support people see pending orders daily. We will refund customers after two days. Ann writes the worker by Friday.";

/// Five pieces again, in other words.
pub(crate) const MORE: &str = "Finance wants the ledger exported weekly. The worker stops after forty attempts. Customers get mail \
    about every delay. Bob owns the alert on old orders. The first step is a table with keys.";

/// A configuration that says how little the test's model holds.
pub(super) const SMALL: &str =
    "models: {retry: {attempts: 3, total_seconds: 20, base_delay_ms: 1}, windows: {openai/test: 8000}}\n";

/// An environment with a model that can brainstorm.
pub(super) struct Table {
    pub(super) env: Env,
    pub(super) server: ModelServer,
}

impl Table {
    pub(super) fn new() -> Table {
        Table::with(Brain::default())
    }

    pub(super) fn with(brain: Brain) -> Table {
        let server = brain.serve();
        Table { env: Env::with(&server), server }
    }

    /// A model that holds little: it gets the prompts of small minds.
    pub(super) fn small(brain: Brain) -> Table {
        let table = Table::with(brain);
        let Table { env, server } = table;
        Table { env: env.config(SMALL), server }
    }

    pub(super) fn file(mut self, path: &str, text: &str) -> Table {
        self.env = self.env.file(path, text);
        self
    }

    /// A call with these arguments; the flow is the repository's file.
    pub(super) fn call<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Call {
        self.env.run([concat!(env!("CARGO_MANIFEST_DIR"), "/flows/brainstorm.lua")]).args(arguments)
    }

    /// Runs it with these arguments and types these lines, one for each question.
    pub(super) fn talk<'a>(&self, arguments: impl IntoIterator<Item = &'a str>, lines: &[&str]) -> Ended {
        let _ = std::fs::remove_dir_all(self.env.path(".nietz"));
        self.call(arguments).stdin(lines.iter().map(|line| format!("{line}\n")).collect::<String>()).go()
    }

    /// A new session about the usual topic, without the questions that come before the first one.
    pub(super) fn begin(&self, lines: &[&str]) -> Ended {
        self.talk([TOPIC, "--no-clarify", "--no-hmw"], lines)
    }

    /// Goes on with the session that `begin` began.
    pub(super) fn go_on(&self, lines: &[&str]) -> Ended {
        self.talk(["--continue", SLUG], lines)
    }

    /// The `session` of the saved file.
    pub(super) fn session(&self) -> Value {
        self.session_of(SLUG)
    }

    /// What the saved file has beside the specification.
    pub(super) fn own(&self) -> Value {
        yaml(&self.env.read(&path(SLUG)))["nietz"].clone()
    }

    pub(super) fn session_of(&self, slug: &str) -> Value {
        yaml(&self.env.read(&path(slug)))["session"].clone()
    }
}

/// Where a session is saved.
pub(super) fn path(slug: &str) -> String {
    format!(".project-memory/brainstorm-sessions/{slug}.yaml")
}

pub(super) fn yaml(text: &str) -> Value {
    nietz::schema::source::parse(text, Format::Yaml, "the file").expect("it is YAML")
}

/// The task of a request to a large mind: what stands behind all that such requests share.
pub(super) fn task(request: &Request) -> String {
    read(request).rsplit("# Your task\n\n").next().unwrap_or_default().to_owned()
}

/// What a large mind reads before it is told who it is: the subject and the conversation.
pub(super) fn conversation(request: &Request) -> String {
    read(request).split("# Who you are now").next().unwrap_or_default().trim().to_owned()
}

/// All that a request tells a model beside its system prompt.
pub(super) fn read(request: &Request) -> String {
    let text = |content: &Value| match content {
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n\n")
        }
        content => content.as_str().unwrap_or_default().to_owned(),
    };
    let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
    let told = messages.iter().filter(|message| message["role"] == "user").map(|message| text(&message["content"]));
    told.collect::<Vec<_>>().join("\n\n")
}

/// What the user said that a request wants taken down, and the subject where that is wanted, too.
pub(super) fn last_words(request: &Request) -> Vec<String> {
    let (all, task) = (read(request), task(request));
    let Some(wanted) = task.lines().find(|line| line.starts_with("Take down what the user said last: ")) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if wanted.contains("what the subject says") {
        let subject = all.split("# The subject\n\n").nth(1).and_then(|rest| rest.lines().next());
        found.extend(subject.map(str::to_owned));
    }
    let number = regex::Regex::new(r"\bU\d+").expect("a regular expression");
    for name in number.find_iter(wanted) {
        let told = all.split(&format!("\n{}: ", name.as_str())).nth(1).expect("it was told");
        found.push(told.split("\n\n").next().unwrap_or_default().to_owned());
    }
    found
}

/// All that was said, in order.
pub(super) fn said(ended: &Ended) -> String {
    let all: Vec<String> =
        ended.of_type("said").iter().map(|event| event["markdown"].as_str().unwrap_or_default().to_owned()).collect();
    all.join("\n")
}

/// The prompts of the questions that were put, in order.
pub(super) fn prompts(ended: &Ended) -> Vec<String> {
    let prompt = |event: &Value| event["question"]["prompt"].as_str().unwrap_or_default().to_owned();
    ended.of_type("asked").iter().map(prompt).collect()
}

/// Checks that all of these are said.
#[track_caller]
pub(super) fn says(ended: &Ended, expected: &[&str]) {
    let said = said(ended);
    for part in expected {
        assert!(said.contains(part), "nobody said {part:?} in:\n{said}\n{}", ended.stderr);
    }
}
