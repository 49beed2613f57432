//! The promise: a limit of silence ends what shows no sign of life, and leaves alone what does.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::env::Env;
use crate::support::git;
use crate::support::model_server::{ModelServer, Response};

const FLOW: &str = "local git = require('@nietz/git')\n\
    local llm = require('@nietz/llm')\n\
    local task = require('@nietz/task')\n\
    return require('@nietz').flow { name = 'idle', summary = 's', permissions = { llm = true, git = true, exec = { 'sh' } },\n\
    run = function()\n\
    git.branch('nietz/x', git.head().commit)\n\
    local tree = git.worktree { name = 'x', branch = 'nietz/x' }\n\
    local function busy(text) return tree:exec { program = { 'sh', '-c', text } }.over end\n\
    local ok, silent = pcall(task.idle, 0.6, function() return llm.chat { prompt = 'silent' } end)\n\
    local lively = task.idle(0.6, function() return busy('for i in 1 2 3 4 5 6; do echo $i; sleep 0.2; done') end)\n\
    local _, quiet = pcall(task.idle, 0.6, function() return busy('echo begun; sleep 100') end)\n\
    local called = task.idle(0.6, function() return llm.chat { prompt = 'hello' } end)\n\
    local inner = task.idle(0.6, function() return task.idle(60, function() return busy('sleep 1.5') end) end)\n\
    assert(inner == 'exit', 'the inner limit alone counts')\n\
    return { silent = { silent.code, silent.message }, lively = lively, quiet = quiet.code, called = called.text } end }\n";

#[test]
fn silence_ends_a_call_and_signs_of_life_do_not() {
    let server = ModelServer::start(|request| match request.prompt().as_str() {
        "silent" => Response::silence(),
        _ => Response::text("hello"),
    });
    let env = Env::with(&server).flow("idle", FLOW);
    git::init(&env.workspace());
    let begun = Instant::now();
    let ended = env.run(["idle"]).go();
    let expected = json!({ "silent": ["timed-out", "nothing happened for 0.6 s"], "lively": "exit", "quiet": "timed-out", "called": "hello" });
    assert_eq!(ended.result(), expected);
    assert!(begun.elapsed() > Duration::from_millis(2400), "the lively one was not cut short");
    // All of it is recorded: going again waits for nothing.
    assert_eq!(env.resume().go().result(), expected);
    assert_eq!(server.calls(), 2);
}

#[test]
fn a_tool_ends_the_exchange_with_what_was_said_so_far() {
    let server = ModelServer::start(|_| {
        Response::text("looking").usage(7, 3).tool_call("t1", "look", "{}").tool_call("t2", "look", "{}")
    });
    let env = Env::with(&server).flow(
        "stop",
        "local llm = require('@nietz/llm')\n\
         return require('@nietz').flow { name = 'stop', summary = 's', permissions = { llm = true }, run = function()\n\
         local calls, seen = 0, 0\n\
         local reply = llm.chat { prompt = 'go', tools = { look = { description = 'd', parameters = { type = 'object' },\n\
         run = function(_, so_far) calls += 1 seen = so_far.usage.input if calls == 4 then llm.stop('enough') end return 'x' end } } }\n\
         return { calls = calls, seen = seen, stopped = reply.stopped, text = reply.text, output = reply.usage.output,\n\
         messages = #reply.messages } end }\n",
    );
    let expected =
        json!({ "calls": 4, "seen": 14, "stopped": "enough", "text": "looking", "output": 6, "messages": 6 });
    assert_eq!(env.run(["stop"]).go().result(), expected);
}
