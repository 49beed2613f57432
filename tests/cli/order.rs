//! The promise: effects are told apart by what they are, not by when they came. A branch that failed, or a
//! prompt that was edited, costs that call and what depends on it, and nothing else.

use std::time::Duration;

use serde_json::json;

use crate::support::env::Env;
use crate::support::model_server::{Gate, ModelServer, Request, Response};

const BRANCHES: &str = include_str!("../support/flows/branches.lua");
const PROMPTS: &str = include_str!("../support/flows/prompts.lua");

fn echo(request: &Request) -> Response {
    Response::text(format!("<{}>", request.prompt()))
}

/// The prompts that came, sorted.
fn prompts(server: &ModelServer) -> Vec<String> {
    let mut prompts: Vec<String> = server.requests().iter().map(Request::prompt).collect();
    prompts.sort();
    prompts
}

/// A service that refuses one prompt until the gate says that it was mended, and holds some others back.
fn refusing(refused: &'static str, mended: &Gate, held: Option<(&'static str, &Gate)>) -> ModelServer {
    let (mended, held) = (mended.clone(), held.map(|(of, gate)| (of, gate.clone())));
    ModelServer::start(move |request| {
        let prompt = request.prompt();
        let fine = prompt != refused || mended.is_open();
        let response = if fine { echo(request) } else { Response::error(400, "not this one") };
        match &held {
            Some((of, gate)) if prompt.starts_with(of) && (prompt == refused) == (*of == refused) => {
                response.held_by(gate)
            }
            _ => response,
        }
    })
}

#[test]
fn of_eight_branches_one_fails_and_only_that_is_called_again() {
    for refused in ["first 3", "second <first 3>"] {
        let mended = Gate::default();
        let server = refusing(refused, &mended, None);
        let env = Env::with(&server).flow("branches", BRANCHES);
        let failed = env.run(["branches"]).go().exits(1);
        assert_eq!(failed.failure(), "model-refused");
        let before = server.calls();
        mended.open();
        let result = env.resume().go().result();
        let again: Vec<String> = server.requests()[before..].iter().map(Request::prompt).collect();
        let sum = "sum up <second <first 1>>; <second <first 2>>; <second <first 3>>; <second <first 4>>; \
                   <second <first 5>>; <second <first 6>>; <second <first 7>>; <second <first 8>>";
        let expected = match refused {
            "first 3" => vec!["first 3", "second <first 3>", sum],
            _ => vec!["second <first 3>", sum],
        };
        assert_eq!(again, expected, "{refused}: the other seven keep what they have");
        assert_eq!(result, json!(format!("<{sum}>")));
    }
}

#[test]
fn it_does_not_matter_whether_the_failure_came_first_or_last() {
    for first in [true, false] {
        let (mended, gate) = (Gate::default(), Gate::default());
        let held = if first { "first" } else { "first 3" };
        let server = refusing("first 3", &mended, Some((held, &gate)));
        let env = Env::with(&server).flow("branches", BRANCHES);
        let mut running = env.run(["branches"]).spawn();
        // The failure alone, or both calls of the seven others, are over before the gate opens.
        for _ in 0..if first { 1 } else { 14 } {
            running.wait_for("call_ended");
        }
        gate.open();
        running.close();
        running.end().exits(1);
        assert_eq!(server.calls(), 15);
        mended.open();
        env.resume().go().exits(0);
        assert_eq!(server.calls(), 18, "the failed call, the one upon it, and the sum");
    }
}

#[test]
fn a_run_killed_amid_its_branches_gives_back_what_is_finished() {
    let gate = Gate::default();
    let hold = gate.clone();
    let server = ModelServer::start(move |request| match request.prompt() == "second <first 5>" {
        true => echo(request).held_by(&hold),
        false => echo(request),
    });
    let env = Env::with(&server).flow("branches", BRANCHES);
    let mut running = env.run(["branches"]).spawn();
    for _ in 0..15 {
        running.wait_for("call_ended");
    }
    assert!(server.wait_for_calls(16, Duration::from_secs(30)));
    running.kill();
    gate.open();
    // Outcomes that come together are written together: the last few may be lost with the process.
    let written = env.journal().of_kind("chat").iter().filter(|chat| chat.finished()).count();
    assert!((8..16).contains(&written), "{written}");
    env.resume().go().exits(0);
    assert_eq!(server.calls(), 16 + (16 - written) + 1);
}

#[test]
fn an_edited_prompt_runs_that_call_again_and_what_depends_on_it() {
    let server = ModelServer::start(echo);
    let env = Env::with(&server)
        .flow("prompts", PROMPTS)
        .file("flows/prompts/one.md", "one")
        .file("flows/prompts/two.md", "two");
    let waiting = env.run(["prompts"]).go().exits(7);
    assert_eq!(waiting.failure(), "answer-missing");
    assert_eq!(prompts(&server), ["apart <two>", "one", "two", "upon <one>"]);

    env.write("flows/prompts/one.md", "one, edited");
    let ended = env.resume().stdin("yes\n").go();
    assert_eq!(ended.result(), json!(["<upon <one, edited>>", "<apart <two>>", "yes"]));
    let again: Vec<String> = server.requests()[4..].iter().map(Request::prompt).collect();
    assert_eq!(again, ["one, edited", "upon <one, edited>"]);
    let notices = ended.of_type("notice");
    assert!(notices[0]["text"].as_str().is_some_and(|text| text.contains("flows/prompts/one.md")), "{notices:?}");

    // The edited one is recorded as well now: nothing is left to do.
    assert_eq!(env.resume().go().result(), json!(["<upon <one, edited>>", "<apart <two>>", "yes"]));
    assert_eq!(server.calls(), 6);
}

#[test]
fn an_edit_of_the_flow_itself_keeps_every_call_that_is_still_made() {
    let server = ModelServer::start(echo);
    let env = Env::with(&server)
        .flow("prompts", PROMPTS)
        .file("flows/prompts/one.md", "one")
        .file("flows/prompts/two.md", "two");
    env.run(["prompts"]).go().exits(7);
    // Another call in front of all others, and the two prompts the other way round.
    let (one, two) = ("local one = llm.chat", "local two = llm.chat");
    let swapped = PROMPTS.replace(one, "local _ = llm.chat { prompt = \"new\" }\n\t\tlocal one = llm.chat");
    let lines: Vec<&str> = swapped.lines().collect();
    let at = lines.iter().position(|line| line.contains(two)).expect("it is there");
    let mut lines = lines;
    lines.swap(at - 1, at);
    env.write("flows/prompts.lua", lines.join("\n"));
    env.resume().stdin("yes\n").go().exits(0);
    let again: Vec<String> = server.requests()[4..].iter().map(Request::prompt).collect();
    assert_eq!(again, ["new"]);
}
