//! The promises of wires and families: whatever form a call takes for a provider, a flow gets the same from it, what it asks
//! for is recorded the same, and a schema is sent once.

use serde_json::{Value, json};

use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Request, Response};
use crate::support::strict::keys;

/// The quick retry of the environment, with what a test says of the provider.
fn config(openai: &str) -> String {
    format!(
        "models: {{retry: {{attempts: 3, total_seconds: 20, base_delay_ms: 1}}, providers: {{openai: {{{openai}}}}}}}\n"
    )
}

/// A flow whose model looks with a tool and answers, twice.
const LOOKS: &str = r#"
local llm = require("@nietz/llm")
local look = { description = "Looks", parameters = { type = "object" }, run = function() return "a ledger" end }
return require("@nietz").flow {
  name = "looks", summary = "Looks", host_api = 2, permissions = { llm = true },
  run = function()
    local first = llm.chat { system = "Be brief.", prompt = "What is there?", tools = { look = look }, temperature = 0.2 }
    return llm.chat { messages = first.messages, prompt = "And now?", tools = { look = look } }.text
  end,
}
"#;

/// What the model thinks of its first call, as it is sealed.
fn thought() -> Value {
    json!({"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "sealed-gAAA"})
}

/// Answers in the events of the Responses API.
fn responses(items: &[Value]) -> Response {
    let done = items.iter().enumerate().map(|(place, item)| {
        json!({"type": "response.output_item.done", "output_index": place, "sequence_number": place, "item": item})
    });
    let usage = json!({"input_tokens": 10, "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 2}});
    let end = json!({"type": "response.completed", "response": {"status": "completed", "model": "m", "usage": usage}});
    let line = |event: Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    Response::stream(done.chain([end]).map(line).collect::<String>())
}

/// Looks first, then says what there is, on the wire of the request.
fn looks(request: &Request) -> Response {
    let by_responses = request.path.ends_with("/responses");
    let last = match by_responses {
        true => request.body["input"].as_array().and_then(|items| items.last()).cloned().unwrap_or_default(),
        false => json!({"role": request.turns().last().map(|(role, _)| role.clone())}),
    };
    let asked = last["role"] == "user";
    match (by_responses, asked) {
        (false, true) => Response::text("").tool_call("c1", "look", "{}"),
        (false, false) => Response::text("There is a ledger."),
        (true, true) => {
            let call =
                json!({"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"});
            responses(&[thought(), call])
        }
        (true, false) => {
            let part = json!({"type": "output_text", "text": "There is a ledger.", "annotations": []});
            responses(&[json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [part]})])
        }
    }
}

#[test]
fn by_the_responses_wire_a_flow_gets_the_same_under_the_same_keys_and_what_was_thought_goes_back() {
    let run = |openai: &str| {
        let server = ModelServer::start(looks);
        let env = Env::with(&server).config(&config(openai)).flow("looks", LOOKS);
        let ended = env.run_on("openai/unheard-of", ["looks"]).go();
        assert_eq!(ended.result(), "There is a ledger.", "{openai}: {ended:?}");
        (keys(&env), server.requests())
    };
    let (by_chat, _) = run("");
    let (by_responses, requests) = run("wire: responses");
    assert_eq!(by_chat, by_responses, "a key holds what the flow asked for");
    assert!(requests.iter().all(|request| request.path == "/v1/responses"), "{requests:?}");
    let first = &requests[0].body;
    assert_eq!((&first["instructions"], &first["store"]), (&json!("Be brief."), &json!(false)));
    assert_eq!(first["input"], json!([{"role": "user", "content": "What is there?"}]));
    let sealed = |request: &Request| request.body["input"].as_array().is_some_and(|items| items.contains(&thought()));
    let sent: Vec<bool> = requests.iter().map(sealed).collect();
    assert_eq!(sent, [false, true, true, true], "byte for byte, from then on");
}

const COUNTS: &str = r#"
local llm = require("@nietz/llm")
local schema = { type = "object", required = { "count" }, properties = {
  count = { type = "integer", minimum = 0 }, note = { type = "string", maxLength = 9 } } }
return require("@nietz").flow {
  name = "counts", summary = "Counts", host_api = 2, permissions = { llm = true },
  run = function()
    local values = {}
    for _, prompt in { "Count.", "Count again." } do
      table.insert(values, llm.chat { system = "Be exact.", prompt = prompt, schema = schema }.value)
    end
    return values
  end,
}
"#;

/// Where a request has its schema: `native`, `prompt` or both.
fn places(request: &Request) -> Vec<&'static str> {
    let native = !request.body["response_format"].is_null();
    let prompt = request.system().contains("JSON Schema");
    [(native, "native"), (prompt, "prompt")].into_iter().filter_map(|(is, place)| is.then_some(place)).collect()
}

#[test]
fn a_schema_goes_out_once_and_a_server_that_ignores_it_gets_it_in_the_prompt_from_then_on() {
    let server = ModelServer::start(|request| match request.number {
        1 => Response::text("I count seven."),
        _ => Response::text(r#"{"count": 7}"#),
    });
    let env = Env::with(&server).flow("counts", COUNTS);
    let ended = env.run_on("openai/unheard-of", ["counts"]).go();
    assert_eq!(ended.result(), json!([{"count": 7}, {"count": 7}]), "{ended:?}");
    let places: Vec<_> = server.requests().iter().map(places).collect();
    assert_eq!(places, [vec!["native"], vec!["prompt"], vec!["prompt"]]);
    let told = ended.of_type("notice");
    let told = told.iter().filter(|notice| notice.to_string().contains("did not hold its reply to the schema")).count();
    assert_eq!(told, 1, "{ended:?}");
}

#[test]
fn a_server_that_holds_schemas_never_gets_one_in_the_prompt() {
    let server = ModelServer::start(|_| Response::text(r#"{"count": 7}"#));
    let env = Env::with(&server).flow("counts", COUNTS);
    env.run_on("openai/unheard-of", ["counts"]).go().result();
    assert_eq!(server.requests().iter().map(places).collect::<Vec<_>>(), [vec!["native"], vec!["native"]]);
}

#[test]
fn a_strict_copy_makes_optional_members_nullable_and_the_flow_never_sees_that() {
    let server = ModelServer::start(|_| Response::text(r#"{"count": 7, "note": null}"#));
    let env = Env::with(&server).flow("counts", COUNTS);
    let ended = env.run_on("openai/gpt-6.1-terra", ["counts"]).go();
    assert_eq!(ended.result(), json!([{"count": 7}, {"count": 7}]), "{ended:?}");
    let format = server.requests()[0].body["response_format"]["json_schema"].clone();
    assert_eq!(format["strict"], true);
    assert_eq!(format["schema"]["required"], json!(["count", "note"]));
    let note = json!({"anyOf": [{"type": "string", "description": "(maxLength: 9)"}, {"type": "null"}]});
    assert_eq!(format["schema"]["properties"]["note"], note);
    let journal = std::fs::read_to_string(env.journal_path()).expect("there is a journal");
    assert!(!journal.contains("maxLength: 9"), "the request is recorded as the flow made it");
}

#[test]
fn where_a_family_takes_no_stop_texts_its_replies_are_cut_here() {
    let server = ModelServer::start(|_| Response::text("one two END three"));
    let flow = r#"return require("@nietz").flow {
  name = "stops", summary = "Stops", host_api = 2, permissions = { llm = true },
  run = function() return require("@nietz/llm").chat { prompt = "Count.", stop = { "END" } }.text end,
}"#;
    let env = Env::with(&server).flow("stops", flow);
    assert_eq!(env.run_on("openai/gpt-6.1-terra", ["stops"]).go().result(), "one two ");
    assert_eq!(server.requests()[0].body.get("stop"), None);
}
