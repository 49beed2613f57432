//! The promise to authors: a model is asked for the members of its reply in the order of `required`, which is the order in which
//! it writes them. What it says first decides what it says next.

use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};

const FLOW: &str = r#"local llm = require("@nietz/llm")
return require("@nietz").flow { name = "judges", summary = "Reasons, then judges", permissions = { llm = true },
  run = function()
    local member = { type = "string" }
    return llm.chat { prompt = "Is it?", schema = { type = "object", required = { "why", "also", "verdict", "grade" },
      properties = { also = member, grade = member, verdict = member, why = member } } }.value
  end }
"#;

#[test]
fn a_model_is_asked_for_members_in_the_order_of_required() {
    let server = ModelServer::start(|_| Response::text(r#"{"why": "w", "also": "a", "verdict": "v", "grade": "g"}"#));
    let env = Env::with(&server).flow("judges", FLOW);
    env.run(["judges"]).go().exits(0);
    let schema = server.requests()[0].schema();
    let members: Vec<&String> = schema["properties"].as_object().expect("an object").keys().collect();
    assert_eq!(members, ["why", "also", "verdict", "grade"]);
}
