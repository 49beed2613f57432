//! The promise: kill a run at any instant, and resuming ends where the undisturbed run does. No finished call
//! is made again, no answered question is put again, no record is lost and no line rewritten.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::support::env::Env;
use crate::support::journal::{Journal, Recorded};
use crate::support::kills;
use crate::support::model_server::{Gate, ModelServer, Request, Response};

pub(crate) const FLOW: &str = include_str!("../support/flows/everything.lua");

pub(crate) const ANSWERS: &str = r#"{"id": "topic", "answer": "tea"}
{"id": "colour", "answer": "green"}
{"id": "sure", "answer": true}
"#;

/// What every disturbed run is compared with.
struct Reference {
    documents: BTreeMap<String, String>,
    result: Value,
    calls: usize,
    asked: Vec<String>,
    lines: u64,
}

pub(crate) fn script(request: &Request) -> Response {
    let last = request.body["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
    let prompt = request.prompt();
    match prompt.split(' ').next().unwrap_or_default() {
        _ if last["role"] == "tool" => Response::text("Tea it is."),
        "plain" => Response::text("A plain reply. ".repeat(60)),
        "size" => Response::text("no JSON at all"),
        "That" => Response::text(r#"{"size": "M"}"#),
        "look" => Response::text("").tool_call("t1", "lookup", r#"{"word": "tea"}"#),
        "refuse" => Response::error(400, "never"),
        _ => Response::text(format!("{prompt}: done")),
    }
}

fn env(server: &ModelServer) -> Env {
    Env::with(server).flow("everything", FLOW).file("notes/old.yaml", "format: \"1\"\nslug: old\nbody: before\n")
}

fn reference() -> Reference {
    let server = ModelServer::start(script);
    let env = env(&server);
    let ended = env.run(["everything"]).stdin(ANSWERS).go();
    let result = ended.result();
    assert_eq!(result["sure"], true, "{result}");
    assert!(env.documents().keys().all(|path| !path.ends_with(".bak") && !path.ends_with(".tmp")));
    Reference {
        documents: env.documents(),
        result,
        calls: server.calls(),
        asked: ended.asked(),
        lines: env.journal().lines.len() as u64,
    }
}

/// Whether something followed this line that only a flow that went on does.
fn followed(journal: &Journal, key: &str) -> bool {
    let at = journal.lines.iter().position(|line| line["is"]["outcome"]["key"] == key).unwrap_or_default();
    journal.lines[at..].iter().any(|line| line["is"].get("intent").or(line["is"].get("effect")).is_some())
}

/// Resumes a run that was ended in some way, and compares all that can be seen of it.
#[track_caller]
fn goes_on_to_the_same_end(what: &str, env: &Env, server: &ModelServer, reference: &Reference) {
    let before = std::fs::read(env.journal_path()).expect("there is a journal");
    let journal = env.journal();
    let kept = |(key, effect): &(String, Recorded)| effect.finished() || effect.failed() && followed(&journal, key);
    let finished = journal.effects().into_iter().filter(|(_, effect)| effect.kind == "chat").filter(kept).count();
    let mut left = reference.asked.clone();
    for id in journal.answered() {
        left.retain(|asked| *asked != id);
    }

    let ended = env.resume().stdin(ANSWERS).go();

    assert_eq!(ended.result(), reference.result, "{what}: another result");
    assert_eq!(ended.asked(), left, "{what}: exactly the questions without an answer are put");
    // Not counted by the server: what the killed process had sent may reach it later than this.
    let calls = ended.of_type("call_started").len();
    assert_eq!(calls, reference.calls - finished, "{what}: exactly what was open is called");
    assert!(server.calls() >= reference.calls, "{what}");
    assert_eq!(env.documents(), reference.documents, "{what}: other documents");
    let whole = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let after = std::fs::read(env.journal_path()).expect("there is a journal");
    assert!(after.starts_with(&before[..whole]), "{what}: a line was rewritten");
}

/// Counts calls by their whole body: what had an outcome is never asked for again.
#[track_caller]
fn no_call_twice_but(at_most: usize, what: &str, server: &ModelServer) {
    let mut bodies: BTreeMap<String, usize> = BTreeMap::new();
    for request in server.requests() {
        *bodies.entry(request.body.to_string()).or_default() += 1;
    }
    let again: usize = bodies.values().map(|count| count - 1).sum();
    assert!(again <= at_most, "{what}: {again} calls were made twice, {at_most} were in flight");
}

fn open_calls(journal: &Journal) -> usize {
    let open = |effect: &Recorded| !effect.finished();
    journal.of_kind("chat").into_iter().filter(open).count()
}

#[test]
fn a_run_killed_after_any_line_of_its_journal_goes_on_to_the_same_end() {
    let reference = reference();
    kills::for_each(&kills::points(reference.lines, 24), |line| {
        let what = format!("killed after line {line}");
        let server = ModelServer::start(script);
        let env = env(&server);
        let killed = env.run(["everything"]).var("NIETZ_FAULT", &format!("kill@{line}")).stdin(ANSWERS).go();
        assert_eq!(killed.signal, Some(9), "{what}: {killed:?}");
        assert_eq!(env.journal().lines.len() as u64, line);
        let open = open_calls(&env.journal());
        goes_on_to_the_same_end(&what, &env, &server, &reference);
        no_call_twice_but(open, &what, &server);
    });
}

#[test]
fn a_run_killed_again_while_it_resumes_goes_on_to_the_same_end() {
    let reference = reference();
    let steps: Vec<u64> = (1..=reference.lines / 6).collect();
    kills::for_each(&steps, |step| {
        let server = ModelServer::start(script);
        let env = env(&server);
        let mut line = step * 6 - 3;
        env.run(["everything"]).var("NIETZ_FAULT", &format!("kill@{line}")).stdin(ANSWERS).go();
        let mut open = open_calls(&env.journal());
        // The first new line is the resume's own; each later kill is a little further on.
        for distance in [1, 2, 5] {
            line += distance;
            let killed = env.resume().var("NIETZ_FAULT", &format!("kill@{line}")).stdin(ANSWERS).go();
            if killed.signal.is_none() {
                break;
            }
            open += open_calls(&env.journal());
        }
        let what = format!("killed four times up to line {line}");
        goes_on_to_the_same_end(&what, &env, &server, &reference);
        no_call_twice_but(open, &what, &server);
    });
}

#[test]
fn a_run_killed_while_a_model_answers_asks_only_that_again() {
    let reference = reference();
    for held in ["plain", "That", "look", "branch"] {
        let gate = Gate::default();
        let hold = gate.clone();
        let server = ModelServer::start(move |request| match request.prompt().starts_with(held) {
            true => script(request).held_by(&hold),
            false => script(request),
        });
        let env = env(&server);
        let mut running = env.run(["everything"]).stdin(ANSWERS).spawn();
        let calls = match held {
            "plain" => 1,
            "That" => 3,
            "look" => 4,
            _ => 9,
        };
        assert!(server.wait_for_calls(calls, Duration::from_secs(30)), "{held}: {} calls came", server.calls());
        running.close();
        running.kill();
        gate.open();
        let open = open_calls(&env.journal());
        assert_eq!(open, if held == "branch" { 4 } else { 1 }, "{held}: with the refused one");
        goes_on_to_the_same_end(held, &env, &server, &reference);
        no_call_twice_but(open, held, &server);
    }
}

#[test]
fn a_run_killed_while_a_question_is_open_puts_only_that_again() {
    let reference = reference();
    for (count, id) in reference.asked.iter().enumerate() {
        let server = ModelServer::start(script);
        let env = env(&server);
        let answers: Vec<&str> = ANSWERS.split_inclusive('\n').collect();
        let mut running = env.run(["everything"]).spawn();
        for answer in &answers[..count] {
            running.wait_for("asked");
            running.say(answer);
        }
        assert_eq!(running.wait_for("asked")["question"]["id"], id.as_str());
        running.kill();
        goes_on_to_the_same_end(id, &env, &server, &reference);
        no_call_twice_but(0, id, &server);
    }
}
