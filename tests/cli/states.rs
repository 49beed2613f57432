//! The promise: what a model wants back goes back to it byte for byte, to no other model of the conversation, and not at all
//! if a known secret stands in it.

use serde_json::{Value, json};

use crate::support::env::{Env, KEY};
use crate::support::model_server::{ModelServer, Request, Response};

/// Two models of one provider speak by turns.
const FLOW: &str = r#"
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local look = { description = "Looks", parameters = { type = "object" }, run = function() return "" end }
return nietz.flow {
	name = "turns",
	summary = "Two models, one conversation",
	permissions = { llm = true },
	run = function()
		local reply = { messages = {} }
		for turn = 1, 4 do
			local model = if turn % 2 == 1 then "deepseek/deepseek-flash" else "deepseek/deepseek-v4-pro"
			reply = llm.chat { model = model, messages = reply.messages, prompt = `Turn {turn}`, tools = { look = look } }
		end
		return reply.text
	end,
}
"#;

/// Answers with this thought, as DeepSeek does.
fn thinking(thought: &str) -> Response {
    let chunk = |delta: Value, end: Value| json!({ "id": "c", "model": "m", "choices": [{ "index": 0, "delta": delta, "finish_reason": end }] });
    let chunks = [
        chunk(json!({ "role": "assistant", "reasoning_content": thought }), Value::Null),
        chunk(json!({ "content": "said" }), Value::Null),
        chunk(json!({}), json!("stop")),
    ];
    let body: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    Response::stream(body + "data: [DONE]\n\n")
}

fn env(server: &ModelServer) -> Env {
    Env::with(server).var("DEEPSEEK_API_KEY", KEY).var("DEEPSEEK_BASE_URL", &server.url()).flow("turns", FLOW)
}

/// What each message of a request brings back.
fn thoughts(request: &Request) -> Vec<String> {
    let all = request.body["messages"].as_array().expect("there are messages");
    all.iter().filter_map(|message| message["reasoning_content"].as_str().map(str::to_owned)).collect()
}

#[test]
fn each_model_gets_its_own_thoughts_byte_for_byte_and_no_others() {
    // What looks like a key, and is none: base64 has such by chance.
    let shape = format!("sk-{} \\u0041 \"q\" ", "aB3".repeat(12));
    let thought = shape.clone();
    let server = ModelServer::start(move |request| thinking(&format!("{thought}{}", request.number)));
    let ended = env(&server).run(["turns"]).go().exits(0);
    let sent: Vec<Vec<String>> = server.requests().iter().map(thoughts).collect();
    let of = |numbers: &[usize]| -> Vec<String> { numbers.iter().map(|number| format!("{shape}{number}")).collect() };
    assert_eq!(sent, [of(&[]), of(&[]), of(&[1]), of(&[2])], "{ended:?}");
}

#[test]
fn a_thought_with_a_known_secret_is_dropped_whole_and_said_once() {
    let server = ModelServer::start(|request| match request.number {
        1 | 2 => thinking(&format!("the key is {KEY}, so")),
        number => thinking(&format!("fine {number}")),
    });
    let env = env(&server);
    let ended = env.run(["turns"]).go().exits(0);
    assert_eq!(server.requests().iter().map(thoughts).collect::<Vec<_>>(), vec![Vec::<String>::new(); 4], "{ended:?}");
    let told: Vec<String> = ended.of_type("notice").iter().map(|event| event["text"].to_string()).collect();
    assert_eq!(told.iter().filter(|text| text.contains("it is neither kept nor sent back")).count(), 1, "{told:?}");
    let journal = std::fs::read_to_string(env.journal_path()).expect("there is one");
    assert!(!journal.contains(KEY) && !journal.contains("redacted") && journal.contains("fine 3"), "{journal}");
}
