//! The promise: a resumed run goes on with the answers of a file where it left off, not from the first.

use serde_json::json;

use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};

const FLOW: &str = r#"
local nietz = require("@nietz")
local ui = require("@nietz/ui")
return nietz.flow {
	name = "asks",
	summary = "Asks the same thing again and again",
	run = function()
		local said = {}
		for _ = 1, 4 do
			table.insert(said, ui.ask { id = "next", prompt = "And then?" })
		end
		return table.concat(said, ",")
	end,
}
"#;

#[test]
fn a_list_of_answers_does_not_start_over_when_the_run_is_resumed() {
    let env = Env::new().flow("asks", FLOW).file("answers.yaml", "next: [one, two, three, four]\n");
    for line in 1..=10 {
        let env = Env::new().flow("asks", FLOW).file("answers.yaml", "next: [one, two, three, four]\n");
        let with_answers = ["--answers", "answers.yaml"];
        let killed = env.run(["asks"]).args(with_answers).var("NIETZ_FAULT", &format!("kill@{line}")).go();
        assert_eq!(killed.signal, Some(9), "line {line}");
        let ended = env.resume().args(with_answers).go();
        assert_eq!(ended.result(), "one,two,three,four", "killed after line {line}");
        assert_eq!(ended.of_type("notice").len(), usize::from(line == 10), "no answer is left over: {ended:?}");
    }
    // The first two by a pipe, the others by the file: what the pipe said counts as said.
    let waiting = env.run(["asks"]).stdin("1\n2\n").go().exits(7);
    assert_eq!(waiting.asked().len(), 3);
    let ended = env.resume().args(["--answers", "answers.yaml"]).go();
    assert_eq!(ended.result(), "1,2,three,four");
}

/// An agent whose tool asks the user.
const APPROVES: &str = r#"
local nietz = require("@nietz")
local llm = require("@nietz/llm")
local ui = require("@nietz/ui")
return nietz.flow {
	name = "approves",
	summary = "Lets a model act when the user approves",
	permissions = { llm = true },
	run = function()
		local act = function()
			return if ui.confirm { id = "approve", prompt = "Do it?" } then "done" else "refused"
		end
		return llm.chat {
			prompt = "Act.",
			rounds = 3,
			tools = { act = { description = "Acts", parameters = { type = "object" }, run = act } },
		}.text
	end,
}
"#;

/// What the file says wrongly is the user's to put right: a model that heard of it would only ask again.
#[test]
fn a_wrong_answer_inside_a_tool_ends_the_run_and_costs_no_further_call() {
    let server = ModelServer::start(|request| match request.turns().last() {
        Some((role, told)) if role == "tool" => Response::text(format!("It is {told}.")),
        _ => Response::text("").tool_call("t1", "act", "{}"),
    });
    let env = Env::with(&server).flow("approves", APPROVES).file("answers.yaml", "approve: maybe\n");
    let ended = env.run(["approves", "--answers", "answers.yaml"]).go().exits(2);
    assert_eq!((ended.failure().as_str(), server.calls()), ("answer-invalid", 1), "{ended:?}");
    // Put right, the run goes on, and nothing is paid for again.
    env.write("answers.yaml", "approve: yes\n");
    assert_eq!(env.resume().args(["--answers", "answers.yaml"]).go().result(), "It is done.");
    assert_eq!(server.calls(), 2);
}

/// A key that a call within a tool needs is the user's to give, too.
#[test]
fn a_missing_key_inside_a_tool_ends_the_run_and_costs_no_further_call() {
    let server = ModelServer::start(|_| Response::text("").tool_call("t1", "act", "{}"));
    let ask = "llm.chat { model = \"anthropic/other\", prompt = \"May it?\" }.text";
    let flow =
        APPROVES.replace("if ui.confirm { id = \"approve\", prompt = \"Do it?\" } then \"done\" else \"refused\"", ask);
    assert!(flow.contains(ask));
    let ended = Env::with(&server).flow("approves", &flow).run(["approves"]).go().exits(1);
    assert_eq!((ended.failure().as_str(), server.calls()), ("key-missing", 1), "{ended:?}");
}

#[test]
fn a_model_that_asks_for_tools_for_ever_is_told_of_by_tool_and_rounds() {
    let server = ModelServer::start(|_| Response::text("").tool_call("t1", "act", "{}"));
    let env = Env::with(&server).flow("approves", APPROVES).file("answers.yaml", "approve: yes\n");
    let ended = env.run(["approves", "--answers", "answers.yaml"]).go().exits(1);
    let failure = &ended.ending()["failure"];
    assert_eq!(failure["message"], json!("the model asked for `act` after 3 rounds of tools"), "{failure:#}");
    assert_eq!((failure["code"].as_str(), server.calls()), (Some("reply-invalid"), 4));
}
