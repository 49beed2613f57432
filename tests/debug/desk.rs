//! Where a test sits with the debugger: an environment, a model that asks, what is typed, what was said and saved.

use serde_json::{Value, json};

use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Request, Response};
use crate::support::process::{Call, Ended};

pub(crate) const PROBLEM: &str = "the cache returns stale prices after a deploy";

/// What a model is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    Question,
    Verdict,
    Tags,
    Scores,
    Summary,
}

/// Tells what a request is for.
pub(super) fn purpose(request: &Request) -> For {
    let properties = &request.schema()["properties"];
    let has = |name: &str| !properties[name].is_null();
    if has("leaks") {
        For::Verdict
    } else if has("tags") {
        For::Tags
    } else if has("rootCauseSpeed") {
        For::Scores
    } else if request.prompt().starts_with("Summarise") {
        For::Summary
    } else {
        For::Question
    }
}

/// The response that a model is to read, where it is asked for that.
pub(super) fn response(request: &Request) -> String {
    request.prompt().rsplit("Their response: ").next().unwrap_or_default().to_owned()
}

/// What the model says where a test has nothing else in mind: it depends on the request alone.
pub(crate) fn usual(request: &Request) -> String {
    match purpose(request) {
        For::Question => {
            let turn = request.body["messages"].as_array().map_or(0, |all| all.len() / 2);
            format!("What did the log show at step {turn}?")
        }
        For::Verdict => json!({"evidence": "none", "leaks": false, "reason": "It only asks."}).to_string(),
        For::Tags => {
            let pleads = ["tell me", "the fix", "dis-moi"].iter().any(|plea| response(request).contains(plea));
            json!({"tags": if pleads { ["asked-for-answer"] } else { ["checked-logs"] }}).to_string()
        }
        For::Scores => {
            let score = |score: u8| json!({"turns": [1], "reason": "You looked before you guessed.", "score": score});
            json!({"assumptionChecking": score(7), "evidenceGathering": score(8), "rootCauseSpeed": score(3)})
                .to_string()
        }
        For::Summary => "They saw the old price in the cache.".to_owned(),
    }
}

/// An environment with a model that can question.
pub(super) struct Desk {
    pub(super) env: Env,
    pub(super) server: ModelServer,
}

impl Desk {
    pub(super) fn new() -> Desk {
        Desk::with(|_, _| None)
    }

    /// A model that says what this returns, and the usual where it returns nothing.
    pub(super) fn with(says: impl Fn(For, &Request) -> Option<String> + Send + Sync + 'static) -> Desk {
        let server = ModelServer::start(move |request| {
            Response::text(says(purpose(request), request).unwrap_or_else(|| usual(request)))
        });
        Desk { env: Env::with(&server), server }
    }

    /// A model that asks these questions in turn, the last one again and again.
    pub(super) fn asking(questions: &'static [&'static str]) -> Desk {
        let next = std::sync::atomic::AtomicUsize::new(0);
        Desk::with(move |what, _| {
            (what == For::Question).then(|| {
                let at = next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                questions[at.min(questions.len() - 1)].to_owned()
            })
        })
    }

    pub(super) fn file(mut self, path: &str, text: &str) -> Desk {
        self.env = self.env.file(path, text);
        self
    }

    /// A call with these arguments; the flow is the repository's file.
    pub(super) fn call<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Call {
        self.env.run([concat!(env!("CARGO_MANIFEST_DIR"), "/flows/debug.lua")]).args(arguments)
    }

    /// Runs it with these arguments and types these lines, one for each question. Where they say that it is solved, Enter says
    /// that the cause explains all: that question comes once in a session.
    pub(super) fn talk<'a>(&self, arguments: impl IntoIterator<Item = &'a str>, lines: &[&str]) -> Ended {
        let _ = std::fs::remove_dir_all(self.env.path(".nietz"));
        self.call(arguments).stdin(typed(lines)).go()
    }

    /// A session about the usual problem.
    pub(super) fn session(&self, lines: &[&str]) -> Ended {
        self.talk([PROBLEM], lines)
    }

    /// The one session file that there is.
    pub(super) fn saved(&self) -> Value {
        let documents = self.env.documents();
        let mut sessions = documents.iter().filter(|(path, _)| path.starts_with(".nietzschian/sessions/"));
        let (path, text) = sessions.next().expect("a session was saved");
        assert!(sessions.next().is_none(), "one session has two files");
        let session: Value = serde_json::from_str(text).expect("it is JSON");
        assert_eq!(*path, format!(".nietzschian/sessions/{}.json", session["id"].as_str().expect("it has an id")));
        session
    }

    /// The requests for one purpose, in their order.
    pub(super) fn asked(&self, what: For) -> Vec<Request> {
        self.server.requests().into_iter().filter(|request| purpose(request) == what).collect()
    }
}

/// Returns what is typed: these lines, and Enter behind the first that ends a session as solved.
pub(super) fn typed(lines: &[&str]) -> String {
    let is_command = |line: &str| {
        let line = line.trim().trim_end_matches(['!', '.', ' ']).to_lowercase();
        ["solved", "found it", "i found it", "trouvé", "résolu", "i give up", "exit", ""]
            .contains(&line.trim_start_matches('/'))
    };
    let solves = |line: &str| {
        let line = line.trim().to_lowercase();
        let explained = line.starts_with("/solved ") || line.starts_with("/found it ");
        explained || is_command(&line) && !["exit", "quit", "i give up", ""].contains(&line.as_str())
    };
    let (mut out, mut answered, mut asked) = (String::new(), false, false);
    for line in lines {
        out.push_str(&format!("{line}\n"));
        let says_something = !is_command(line);
        answered |= says_something;
        if solves(line) && answered && !asked {
            out.push('\n');
            asked = true;
        }
    }
    out
}

/// All that a model is sent: the system prompt and every message.
pub(super) fn all_of(request: &Request) -> String {
    let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
    messages.iter().filter_map(|message| message["content"].as_str()).collect::<Vec<_>>().join("\n---\n")
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
