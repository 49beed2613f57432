//! The promise to whoever gives flows tools of MCP servers: only servers that they named are used, within what they said of each;
//! what a tool brought is recorded, and what changes the world is not done twice. The server here is a real process (`server.py`).

mod calls;
mod confined;
mod everything;
mod hostile;
mod http;
mod recovery;

use serde_json::{Value, json};

use crate::support::env::Env;

/// A flow that calls what its params say, and returns what came of it.
const CALLER: &str = r#"
local mcp = require("@nietz/mcp")
local json = require("@nietz/json")
local nietz = require("@nietz")
return nietz.flow {
  name = "caller", summary = "Calls", host_api = 2, permissions = { mcp = { "docs" } },
  params = {
    tool = { type = "string", default = "search" },
    arguments = { type = "string", default = '{"query": "tea"}' },
    catch = { type = "boolean", default = false },
    seconds = { type = "integer", default = 50 },
  },
  run = function(ctx)
    local function call()
      return mcp.call("docs", ctx.params.tool, json.decode(ctx.params.arguments), { seconds = ctx.params.seconds })
    end
    if not ctx.params.catch then
      return call()
    end
    local ok, failure = pcall(call)
    return { ok = ok, code = failure.code, message = failure.message }
  end,
}"#;

/// Returns the user's configuration with a server that behaves like this, and with more fields.
pub(crate) fn config(mode: &str, more: &str) -> String {
    let command = json!(["/usr/bin/python3", "-c", include_str!("server.py"), mode]);
    format!("mcp: {{docs: {{command: {command}{more}}}}}\n")
}

/// A workspace with the flow, and a user who named that server.
fn with(mode: &str) -> Env {
    Env::new().flow("caller", CALLER).config(&config(mode, ", seconds: 50"))
}

/// What the server was asked, in order: each method, with the tool's name.
fn asked(env: &Env) -> Vec<String> {
    let log = std::fs::read_to_string(env.home().join("servers/docs/asked.jsonl")).unwrap_or_default();
    let entries = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line is JSON"));
    let name = |entry: Value| match (entry["method"].as_str(), entry["params"]["name"].as_str()) {
        (Some(method), Some(tool)) => format!("{method} {tool}"),
        (Some(method), None) => method.to_owned(),
        (None, _) => format!("answer {}", entry["id"]),
    };
    entries.map(name).collect()
}

fn calls(env: &Env) -> usize {
    asked(env).iter().filter(|asked| asked.starts_with("tools/call")).count()
}
