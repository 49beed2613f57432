//! The promise: a run that begins others has their results; whatever is killed, nothing that was recorded is paid for twice, and all of
//! them together stay within its budget and its permissions.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::env::{Env, RUN};
use crate::support::journal::Journal;
use crate::support::kills::points;
use crate::support::model_server::{Gate, ModelServer, Response};

/// Begins three runs of `part` side by side.
pub(crate) const WHOLE: &str = r#"
local nietz = require("@nietz")
local task = require("@nietz/task")
return nietz.flow {
  name = "whole", summary = "Three parts", host_api = 2, permissions = { llm = true },
  params = { parts = { type = "integer", default = 3 }, asks = { type = "boolean" } },
  run = function(ctx)
    local parts = {}
    for part = 1, ctx.params.parts do
      parts[part] = function()
        local child = task.spawn("part", { number = part, asks = ctx.params.asks })
        return { child.run, child.result }
      end
    end
    return task.all(parts)
  end,
}
"#;

/// Three calls, each of which has what the one before said.
pub(crate) const PART: &str = r#"
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local ui = require("@nietz/ui")
return nietz.flow {
  name = "part", summary = "A part", host_api = 2, permissions = { llm = true },
  params = { number = { type = "integer", positional = true, required = true }, asks = { type = "boolean" } },
  run = function(ctx)
    local last = "nothing"
    for step = 1, 3 do
      if step == 2 and ctx.params.asks then
        last = last .. "+" .. ui.ask { id = "more" .. ctx.params.number, prompt = "More for " .. ctx.params.number .. "?" }
      end
      last = llm.chat { prompt = "part " .. ctx.params.number .. " step " .. step .. " after " .. last }.text
    end
    return last
  end,
}
"#;

const LONG: Duration = Duration::from_secs(60);

/// Answers with the number of the call, so that whoever asks again says something else. Each second step waits for the gate.
pub(crate) fn service(gate: Option<Gate>) -> ModelServer {
    ModelServer::start(move |request| {
        let response = Response::text(format!("n{}", request.number));
        match &gate {
            Some(gate) if request.prompt().contains("step 2") => response.held_by(gate),
            _ => response,
        }
    })
}

pub(crate) fn env(server: &ModelServer) -> Env {
    Env::with(server).flow("whole", WHOLE).flow("part", PART)
}

/// How often each step was asked for: `1.2` is the second step of the first part.
pub(crate) fn steps(server: &ModelServer) -> BTreeMap<String, usize> {
    let mut steps = BTreeMap::new();
    for request in server.requests() {
        let prompt = request.prompt();
        let words: Vec<&str> = prompt.split(' ').collect();
        *steps.entry(format!("{}.{}", words[1], words[3])).or_default() += 1;
    }
    steps
}

fn each_once() -> BTreeMap<String, usize> {
    (1..=3).flat_map(|part| (1..=3).map(move |step| (format!("{part}.{step}"), 1))).collect()
}

/// What the whole came to: a name and a text for each part.
fn parts(result: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    result.as_array().into_iter().flatten().map(|part| (text(&part[0]), text(&part[1]))).collect()
}

/// Checks that each child's chain of calls is one: the result is what the last call said, and each call had what the one before said.
fn check_chains(env: &Env, result: &Value) {
    let found = parts(result);
    assert_eq!(found.len(), 3, "{result}");
    for (run, said) in &found {
        assert!(run.starts_with(RUN), "{run} is not named by its parent");
        let journal = Journal::read(&env.path(&format!(".nietz/runs/{run}/journal.jsonl")));
        let mut last = "nothing".to_owned();
        let mut seen = 0;
        for line in &journal.lines {
            let intent = &line["is"]["intent"];
            if intent["kind"] == "chat" {
                assert!(intent.to_string().contains(&format!("after {last}\"")), "{run}: {intent} after {last}");
            }
            if let Some(text) = line["is"]["outcome"]["ok"]["text"].as_str() {
                text.clone_into(&mut last);
                seen += 1;
            }
        }
        assert_eq!((seen, &last), (3, said), "{run}");
    }
}

/// The processes of children below a process, and below what had them.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let printed = Command::new("pgrep").args(["-P", &pid.to_string()]).output().expect("it is on every Debian");
    String::from_utf8_lossy(&printed.stdout).lines().filter_map(|line| line.parse().ok()).collect()
}

fn kill(pids: &[u32]) {
    for pid in pids {
        Command::new("kill").args(["-KILL", &pid.to_string()]).status().ok();
    }
}

pub(crate) fn are_gone(pids: &[u32]) -> bool {
    pids.iter().all(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    })
}

#[test]
fn a_run_has_the_results_of_those_that_it_begins() {
    let server = service(None);
    let env = env(&server);
    let ended = env.run(["whole"]).go();
    check_chains(&env, &ended.result());
    assert_eq!(steps(&server), each_once());
    let end = ended.ending();
    assert_eq!(end["calls"], 9, "what its children used is what it used: {end}");
    assert_eq!(env.journal().of_kind("spawn").len(), 3);
    let listed = env.nietz(["runs", "--json"]).go().exits(0);
    assert_eq!(listed.stdout.lines().count(), 4, "{}", listed.stdout);
    for line in listed.stdout.lines() {
        let run: Value = serde_json::from_str(line).expect("JSON");
        env.nietz(["verify", run["run"].as_str().expect("a name")]).go().exits(0);
    }
    // Once more: nothing is begun and nothing is paid for.
    let again = env.resume().go();
    assert_eq!((again.result(), server.chats()), (ended.result(), 9));
}

#[test]
fn a_parent_that_is_killed_takes_its_children_along_and_goes_on_with_them() {
    let gate = Gate::default();
    let server = service(Some(gate.clone()));
    let env = env(&server);
    let running = env.run(["whole"]).spawn();
    assert!(server.wait_for_calls(6, LONG), "three parts are in their second step");
    let pids = children(running.id());
    assert_eq!(pids.len(), 3);
    running.kill();
    while !are_gone(&pids) {
        std::thread::yield_now();
    }
    gate.open();
    let ended = env.resume().go();
    check_chains(&env, &ended.result());
    let expected: BTreeMap<String, usize> =
        each_once().into_keys().map(|step| (step.clone(), if step.ends_with(".2") { 2 } else { 1 })).collect();
    assert_eq!(steps(&server), expected, "only what was under way is asked again");
}

#[test]
fn children_that_are_killed_go_on_while_their_parent_waits() {
    let gate = Gate::default();
    let server = service(Some(gate.clone()));
    let env = env(&server);
    let running = env.run(["whole"]).spawn();
    assert!(server.wait_for_calls(6, LONG), "three parts are in their second step");
    kill(&children(running.id()));
    assert!(server.wait_for_calls(9, LONG), "they go on at the step that they were killed in");
    gate.open();
    let ended = running.end();
    check_chains(&env, &ended.result());
    assert_eq!(steps(&server).values().sum::<usize>(), 12);
    let told = ended.of_type("notice").iter().filter(|notice| notice.to_string().contains("was ended")).count();
    assert_eq!(told, 3);
}

#[test]
fn all_of_them_killed_at_once_go_on() {
    let gate = Gate::default();
    let server = service(Some(gate.clone()));
    let env = env(&server);
    let running = env.run(["whole"]).spawn();
    assert!(server.wait_for_calls(6, LONG), "three parts are in their second step");
    let pids = children(running.id());
    running.freeze();
    kill(&pids);
    running.kill();
    gate.open();
    check_chains(&env, &env.resume().go().result());
    assert_eq!(steps(&server).values().sum::<usize>(), 12);
}

/// Parent and children are each killed behind the same line of their journals.
#[test]
fn killed_at_every_line_they_come_to_the_same_end() {
    let lines = 10;
    for line in points(lines, 5) {
        let server = service(None);
        let env = env(&server);
        let killed = env.run(["whole"]).var("NIETZ_FAULT", &format!("kill@{line}")).go();
        let ended = if killed.code == Some(0) { killed } else { env.resume().go() };
        let ended = if ended.code == Some(1) && line == 1 { env.run(["whole"]).go() } else { ended };
        check_chains(&env, &ended.result());
        let twice: Vec<String> =
            steps(&server).into_iter().filter(|(_, times)| *times > 2).map(|(step, _)| step).collect();
        assert!(twice.is_empty(), "line {line}: {twice:?}");
    }
}

#[test]
fn who_ends_the_run_ends_its_children() {
    let gate = Gate::default();
    let server = service(Some(gate.clone()));
    let env = env(&server);
    let running = env.run(["whole"]).spawn();
    assert!(server.wait_for_calls(6, LONG), "three parts are in their second step");
    let pids = children(running.id());
    running.terminate();
    assert_eq!(running.end().ending()["status"], "interrupted");
    while !are_gone(&pids) {
        std::thread::yield_now();
    }
    gate.open();
    check_chains(&env, &env.resume().go().result());
    assert_eq!(steps(&server).values().sum::<usize>(), 12);
}

#[test]
fn questions_of_children_are_asked_where_those_of_the_run_are() {
    let server = service(None);
    let env = env(&server);
    // Nobody is there.
    let waits = env.run(["whole", "--asks"]).go().exits(7);
    assert_eq!(waits.failure(), "answer-missing");
    let mut asked = waits.asked();
    asked.sort();
    assert_eq!(asked, ["more1", "more2", "more3"]);
    // One is answered elsewhere, two here.
    let inbox = env.nietz(["inbox", "--json"]).go().exits(0);
    let open: Vec<Value> = inbox.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let first = open.iter().find(|one| one["id"] == "more1").expect("it waits");
    env.nietz(["answer", first["run"].as_str().expect("a run"), "apples"]).go().exits(0);
    let answers = "{\"id\":\"more2\",\"answer\":\"pears\"}\n{\"id\":\"more3\",\"answer\":\"plums\"}\n";
    let ended = env.resume().stdin(answers).go();
    assert_eq!(parts(&ended.result()).len(), 3, "{ended:?}");
    assert_eq!(steps(&server), each_once());
    let second: Vec<String> =
        server.requests().iter().map(|request| request.prompt()).filter(|prompt| prompt.contains("step 2")).collect();
    for fruit in ["apples", "pears", "plums"] {
        assert_eq!(second.iter().filter(|prompt| prompt.ends_with(fruit)).count(), 1, "{second:?}");
    }
}

#[test]
fn all_together_stay_within_the_budget_of_the_run() {
    let server = service(None);
    let env = env(&server);
    let ended = env.run(["whole", "--max-calls", "5"]).go().exits(6);
    assert_eq!(ended.failure(), "budget-used-up");
    assert!(server.chats() <= 5, "{} calls", server.chats());
    let before = server.chats();
    let ended = env.resume().args(["--max-calls", "50"]).go();
    check_chains(&env, &ended.result());
    assert_eq!((server.chats(), before < 9), (9, true), "nothing is asked twice");
}

#[test]
fn a_child_is_bound_by_what_its_parent_may() {
    let server = service(None);
    let flow = |name: &str, permissions: &str, body: &str| {
        format!(
            "local nietz = require(\"@nietz\")\nlocal task = require(\"@nietz/task\")\nlocal files = require(\"@nietz/files\")\n\
             return nietz.flow {{ name = \"{name}\", summary = \"A test\", host_api = 2, permissions = {{ {permissions} }},\n\
             params = {{ of = {{ type = \"string\" }} }},\nrun = function(ctx) {body} end }}\n"
        )
    };
    let spawns = "local ok, failure = pcall(task.spawn, ctx.params.of or \"reads\", {}) return { ok, failure.code, failure.message }";
    let env = env(&server)
        .trusting("files")
        .flow("reads", &flow("reads", "files = true", "return files.read(\"a.txt\")"))
        .flow("fails", &flow("fails", "", "nietz.fail(\"out of tea\")"))
        .flow("asks", &flow("asks", "", spawns))
        .file("a.txt", "text");
    let code = |of: &str| {
        let ended = env
            .nietz(["run", "--json", "asks", "--of", of])
            .var("NIETZ_RUN", &format!("r-{}", of.replace('/', "-")))
            .go();
        ended.result()[1].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(code("reads"), "permission-refused");
    assert_eq!(code("nobody"), "flow-not-found");
    assert_eq!(code("flows/part.lua"), "usage");
    assert_eq!(code("whole"), "permission-refused", "llm");
    assert_eq!(code("fails"), "flow-error");
    assert_eq!(server.chats(), 0);
    assert!(!env.path(".nietz/runs").read_dir().expect("it is there").flatten().any(|run| {
        let text = std::fs::read_to_string(run.path().join("journal.jsonl")).unwrap_or_default();
        text.lines().next().is_some_and(|first| first.contains("\"flow\":\"reads\""))
    }));
}

#[test]
fn a_child_that_failed_is_tried_again_with_the_run() {
    let server = ModelServer::start(|request| match request.number {
        2 => Response::error(400, "never"),
        number => Response::text(format!("n{number}")),
    });
    let env = env(&server);
    let ended = env.run(["whole", "--parts", "1"]).go().exits(1);
    assert_eq!(ended.failure(), "model-refused");
    assert!(ended.stderr.is_empty(), "{ended:?}");
    let ended = env.resume().go();
    let result = ended.result();
    assert_eq!(result[0][1], "n4", "{result}");
    assert_eq!(
        steps(&server),
        BTreeMap::from([("1.1", 1), ("1.2", 2), ("1.3", 1)].map(|(step, times)| (step.to_owned(), times)))
    );
}

#[test]
fn a_cassette_has_how_the_children_ended() {
    let server = service(None);
    let env = env(&server);
    let result = env.run(["whole"]).go().result();
    env.nietz(["test", "--from-run", RUN, "--name", "whole"]).go().exits(0);
    drop(server);
    let played = env.nietz(["test"]).go().exits(0);
    assert!(played.stdout.contains("whole"), "{played:?}");
    // A fork has them, too.
    let fork = env.nietz(["fork", RUN, "--json"]).var("NIETZ_RUN", "f1").go();
    assert_eq!(fork.result(), result);
}

#[test]
fn a_run_of_another_is_not_taken_for_its_child() {
    let server = service(None);
    let env = env(&server);
    let ended = env.run(["whole", "--parts", "1"]).go();
    let child = parts(&ended.result())[0].0.clone();
    std::fs::remove_dir_all(env.path(&format!(".nietz/runs/{child}"))).expect("it is there");
    std::fs::remove_dir_all(env.path(&format!(".nietz/runs/{RUN}"))).expect("it is there");
    env.run(["part", "1"]).var("NIETZ_RUN", &child).go().exits(0);
    let refused = env.run(["whole", "--parts", "1"]).go().exits(5);
    assert_eq!(refused.failure(), "run-foreign");
    // Nor is a resumed run without a name the child's.
    let latest = env.nietz(["resume", "--json"]).go();
    assert_eq!(latest.events().first().map(|event| event["run"].clone()), Some(json!(RUN)), "{latest:?}");
}

/// Asks two voices, each in a run of its own, and goes on without one whose reply cannot be used.
const VOICES: &str = r#"
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local task = require("@nietz/task")
local shape = { type = "object", required = { "said" }, properties = { said = { type = "string" } } }
return nietz.flow {
  name = "voices", summary = "Two voices", host_api = 2, permissions = { llm = true },
  commands = { voice = { summary = "One of them", internal = true, params = { who = { type = "string", required = true } },
    run = function(ctx) return llm.chat({ prompt = "You are " .. ctx.params.who, schema = shape }).value.said end } },
  run = function()
    local heard = {}
    for _, who in { "ann", "bob" } do
      local ok, child = pcall(task.spawn, "voices voice", { who = who })
      table.insert(heard, if ok then child.result else child.code)
    end
    return heard
  end,
}
"#;

#[test]
fn a_fork_asks_a_child_again_whose_reply_nobody_could_use_and_no_other() {
    let server = ModelServer::start(|request| match request.body.to_string().contains("You are bob") {
        // Later it is another one.
        true if request.number < 20 => Response::text("I would rather not."),
        _ => Response::text("{\"said\": \"tea\"}"),
    });
    let env = Env::with(&server).flow("voices", VOICES);
    assert_eq!(env.run(["voices"]).go().result(), json!(["tea", "reply-invalid"]));
    let fork = |run: &str| {
        let before = server.requests().len();
        let result = env.nietz(["fork", RUN, "--json"]).var("NIETZ_RUN", run).go().result();
        let asked: Vec<String> = server.requests()[before..].iter().map(|request| request.body.to_string()).collect();
        assert!(!asked.is_empty() && asked.iter().all(|body| body.contains("You are bob")), "{asked:?}");
        result
    };
    let mut number = 2;
    while server.requests().len() < 20 {
        fork(&format!("r{number}"));
        number += 1;
    }
    assert_eq!(fork("last"), json!(["tea", "tea"]));
}
