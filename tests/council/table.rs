//! Where a test sits with the council: an environment, what is typed, what was said and recorded.

use serde_json::Value;

use super::model::{Brain, whole};
use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Request};
use crate::support::process::{Call, Ended};

pub(crate) const REQUEST: &str = "Should we split billing into its own service this quarter?";

/// An environment with a model that can sit in a council.
pub(super) struct Table {
    pub(super) env: Env,
    pub(super) server: ModelServer,
    /// The model that is asked, by whose name its size is known.
    pub(super) model: &'static str,
}

/// A small mind, and a large one.
pub(crate) const SMALL: &str = "openai/test-1.5b";
pub(super) const LARGE: &str = "openai/test";

impl Table {
    pub(super) fn with(brain: Brain) -> Table {
        Table::of(brain.serve())
    }

    pub(super) fn of(server: ModelServer) -> Table {
        Table { env: Env::with(&server), server, model: SMALL }
    }

    /// The same with a model that can hold the whole conversation.
    pub(super) fn large(brain: Brain) -> Table {
        Table { model: LARGE, ..Table::with(brain) }
    }

    /// A call with these arguments; the flow is the repository's file.
    pub(super) fn call<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Call {
        self.env.run_on(self.model, [concat!(env!("CARGO_MANIFEST_DIR"), "/flows/council.lua")]).args(arguments)
    }

    /// Holds a council about the usual request with these options, and types these lines, one for each question.
    pub(super) fn hold(&self, options: &[&str], lines: &[&str]) -> Ended {
        let _ = std::fs::remove_dir_all(self.env.path(".nietz"));
        let stdin: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.call(std::iter::once(REQUEST).chain(options.iter().copied())).stdin(stdin).go()
    }

    /// The requests whose prompt has this in it.
    pub(super) fn prompts(&self, part: &str) -> Vec<Request> {
        self.server.requests().into_iter().filter(|request| request.prompt().contains(part)).collect()
    }

    /// The requests that have this anywhere in what they say.
    pub(super) fn reads(&self, part: &str) -> Vec<Request> {
        self.server.requests().into_iter().filter(|request| whole(request).contains(part)).collect()
    }
}

/// All that was said, in order.
pub(super) fn said(ended: &Ended) -> String {
    let all: Vec<String> =
        ended.of_type("said").iter().map(|event| event["markdown"].as_str().unwrap_or_default().to_owned()).collect();
    all.join("\n")
}

/// Checks that all of these are said.
#[track_caller]
pub(super) fn says(ended: &Ended, expected: &[&str]) {
    let said = said(ended);
    for part in expected {
        assert!(said.contains(part), "nobody said {part:?} in:\n{said}\n{}", ended.stderr);
    }
}

/// What went wrong, in all words.
pub(super) fn complaint(ended: &Ended) -> String {
    let failure = &ended.ending()["failure"];
    [&failure["message"], &failure["hint"]].map(|part| part.as_str().unwrap_or_default()).join(" · ")
}

/// The items of a list.
#[track_caller]
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value} is no list"))
}

/// The turns of one type.
pub(super) fn turns<'a>(session: &'a Value, kind: &str) -> Vec<&'a Value> {
    list(&session["messageTurns"]).iter().filter(|turn| turn["messageType"] == kind).collect()
}

/// This field of each item.
pub(super) fn each<'a>(items: impl IntoIterator<Item = &'a Value>, field: &str) -> Vec<&'a str> {
    items.into_iter().map(|item| item[field].as_str().unwrap_or_default()).collect()
}
