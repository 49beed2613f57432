//! The promise to who works in an editor or with an agent: flows are there, questions come to the person, and a run is lost by
//! nobody's leaving. Here a client that stands on nothing but lines of JSON; `foreign` has the clients of others (`.ci/clients`).

mod acp;
mod client;
mod documents;
pub(crate) mod foreign;
mod hostile;
mod http;
mod install;
mod kills;
mod left;
mod mcp;
mod tasks;

use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};

/// A flow with a question of each kind, and a call between them.
pub(crate) const TALK: &str = r#"
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local ui = require("@nietz/ui")
return nietz.flow {
  name = "talk", summary = "Talks", host_api = 2, permissions = { llm = true },
  params = { about = { type = "string", positional = true, required = true, help = "What about" } },
  run = function(ctx)
    ui.say("Let us talk about **" .. ctx.params.about .. "**.", { from = "Ada" })
    local colour = ui.choose { id = "colour", prompt = "Which colour?", options = {
      { value = "red", label = "Red, as roses" }, { value = "green", label = "Green" } } }
    llm.chat { prompt = "colour " .. colour, label = "Grace", stream = true }
    local more = ui.ask { id = "more", prompt = "And then?" }
    local last = llm.chat { prompt = "more " .. more }
    local sure = ui.confirm { id = "sure", prompt = "Merge it?", default = false }
    return { colour = colour, more = more, sure = sure, last = last.text }
  end,
}"#;

/// A model that answers at once, and a workspace with the flow.
pub(crate) fn talk() -> (ModelServer, Env) {
    let server = ModelServer::start(|request| Response::text(format!("You said {}.", request.prompt())));
    let env = Env::with(&server).without("NIETZ_RUN").flow("talk", TALK);
    (server, env)
}

/// What the lines of a run's journal are.
pub(crate) fn journal(env: &Env, run: &str) -> Vec<serde_json::Value> {
    let text = env.read(&format!(".nietz/runs/{run}/journal.jsonl"));
    let line = |line| serde_json::from_str::<serde_json::Value>(line).expect("a line is JSON")["is"].clone();
    text.lines().map(line).collect()
}
