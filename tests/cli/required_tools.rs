//! The promise to flows whose models must begin with a tool: one that answers in words all the same is asked once more.

use serde_json::{Value, json};

use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};

const FLOW: &str = r#"
local llm = require("@nietz/llm")
local nietz = require("@nietz")

return nietz.flow {
	name = "looks",
	summary = "Looks, then counts",
	permissions = { llm = true },
	run = function()
		local looked = 0
		local look = { description = "Looks", parameters = { type = "object" }, run = function() looked += 1 return "two" end }
		local reply = llm.chat {
			prompt = "How many?",
			tools = { look = look },
			tool_choice = "required",
			schema = { type = "object", required = { "count" }, properties = { count = { type = "integer" } } },
		}
		return { looked = looked, count = reply.value.count }
	end,
}
"#;

fn run(listens: bool) -> (Value, Vec<Value>) {
    let server = ModelServer::start(move |request| match request.prompt() {
        told if told.contains("Call one of the tools first") && listens => {
            Response::text("").tool_call("t", "look", "{}")
        }
        _ => Response::text(r#"{"count": 2}"#),
    });
    let env = Env::with(&server).flow("looks", FLOW);
    let result = env.run(["looks"]).go().result();
    (result, server.requests().iter().map(|request| request.body["tool_choice"].clone()).collect())
}

#[test]
fn a_model_that_calls_no_tool_is_asked_to_once() {
    assert_eq!(run(true), (json!({"looked": 1, "count": 2}), vec![json!("required"), Value::Null, Value::Null]));
    assert_eq!(run(false), (json!({"looked": 0, "count": 2}), vec![json!("required"), Value::Null]));
}
