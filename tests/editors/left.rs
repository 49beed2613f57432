//! A client leaves in the middle of a long run: the run goes on, and is answered and finished from another.

use std::time::{Duration, Instant};

use serde_json::json;

use super::client::{Client, data};
use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};

/// Five calls, each of which takes two seconds, and a question in the middle.
const LONG: &str = r#"
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local ui = require("@nietz/ui")
return nietz.flow { name = "long", summary = "Takes long", host_api = 2, permissions = { llm = true }, run = function()
  local texts = {}
  for round = 1, 5 do
    ui.progress("round", round, 5)
    if round == 3 then table.insert(texts, ui.ask { id = "half", prompt = "Half way. Go on with what?" }) end
    table.insert(texts, llm.chat { prompt = "round " .. round }.text)
  end
  return texts
end }"#;

#[test]
fn a_run_of_ten_seconds_whose_client_leaves_is_answered_and_finished_from_another() {
    let server = ModelServer::start(|request| Response::text(request.prompt()).delay(Duration::from_secs(2)));
    let env = Env::with(&server).without("NIETZ_RUN").flow("long", LONG);
    let begun = Instant::now();
    let mut client = Client::legacy(&env, &["--patience", "2s"], true);
    let result = client.call("flow_long", json!({}));
    assert_eq!(data(&result, "status"), "running", "{result}");
    let run = data(&result, "run").to_owned();
    // The editor is closed while the model still answers.
    assert_eq!(client.leave().code, Some(0));
    assert!(begun.elapsed() < Duration::from_secs(60));
    // Another one waits with the same patience, as often as it takes.
    let mut client = Client::modern(&env, &["--patience", "2s"]);
    let waiting = loop {
        let result = client.call("wait", json!({ "run": run }));
        if result["structuredContent"]["status"] != "running" {
            break result;
        }
    };
    assert_eq!(data(&waiting, "status"), "waiting", "{waiting}");
    let mut result = loop {
        let result = client.call("answer", json!({ "run": run, "answer": "milk", "said_by": "user" }));
        // The process that was left may take a moment to end.
        if result["isError"] != true || !result.to_string().contains("run-busy") {
            break result;
        }
    };
    while result["structuredContent"]["status"] == "running" {
        result = client.call("wait", json!({ "run": run }));
    }
    let texts = json!(["round 1", "round 2", "milk", "round 3", "round 4", "round 5"]);
    assert_eq!(result["structuredContent"]["result"], texts, "{result}");
    assert_eq!(server.chats(), 5, "no call is paid twice");
    assert!(begun.elapsed() >= Duration::from_secs(10));
}
