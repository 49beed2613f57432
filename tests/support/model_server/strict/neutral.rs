//! What a script is shown: each request as one of chat completions, whatever the wire is.

use serde_json::{Value, json};

use super::super::wire::REPLY_TOOL;
use super::messages::text;
use super::{Request, at, list};

/// What comes before a schema that is spelled out in a prompt.
const SPELLED: &str = "no code fence.\n";

/// A request as one of chat completions.
pub(super) fn chat(request: &Request) -> Request {
    let mut shown = request.clone();
    let body = &request.body;
    let (mut messages, tools) = if !body["input"].is_null() {
        (of_items(body), tools_of(&body["tools"], "parameters"))
    } else if request.path.ends_with("/messages") {
        (of_blocks(body), tools_of(&body["tools"], "input_schema"))
    } else {
        (plain(&body["messages"]), list(&body["tools"]).to_vec())
    };
    let system = match body["input"].is_null() {
        true => text(&body["system"]),
        false => text(&body["instructions"]),
    };
    if !system.is_empty() {
        messages.insert(0, json!({"role": "system", "content": system}));
    }
    let mut chat = json!({"model": body["model"], "messages": messages});
    let is_reply = |tool: &Value| tool["function"]["name"] == REPLY_TOOL;
    let by_tool = tools.iter().find(|tool| is_reply(tool)).map(|tool| &tool["function"]["parameters"]);
    if let Some(schema) = native(body).or(by_tool) {
        let json_schema = json!({"name": "reply", "schema": without_nulls(schema)});
        chat["response_format"] = json!({"type": "json_schema", "json_schema": json_schema});
    }
    let tools: Vec<&Value> = tools.iter().filter(|tool| !is_reply(tool)).collect();
    if !tools.is_empty() {
        chat["tools"] = json!(tools);
    }
    shown.body = chat;
    shown.path = "/v1/chat/completions".to_owned();
    shown
}

/// The limit of a reply, on any wire.
pub(super) fn limit(body: &Value) -> Option<u64> {
    ["max_completion_tokens", "max_tokens", "max_output_tokens"].iter().find_map(|name| body[*name].as_u64())
}

/// The ways in which a request asks for a schema.
pub(super) fn schema_ways(body: &Value) -> Vec<&'static str> {
    let tools = list(&body["tools"]).iter();
    let system = list(&body["messages"]).first().filter(|first| first["role"] == "system");
    let system = [&body["instructions"], &body["system"], system.map_or(&Value::Null, |system| &system["content"])];
    let mut ways = Vec::new();
    if native(body).is_some() {
        ways.push("native");
    }
    if tools.clone().any(|tool| tool["name"] == REPLY_TOOL || tool["function"]["name"] == REPLY_TOOL) {
        ways.push("by a tool");
    }
    if system.iter().any(|system| text(system).contains(SPELLED)) {
        ways.push("in the prompt");
    }
    ways
}

/// The schema to which a provider holds its reply.
pub(super) fn native(body: &Value) -> Option<&Value> {
    let schemas = ["/response_format/json_schema/schema", "/output_config/format/schema", "/text/format/schema"];
    schemas.iter().map(|pointer| at(body, pointer)).find(|schema| !schema.is_null())
}

/// A schema in which what may also be null is what it is otherwise: scripts do not care how that is said.
fn without_nulls(schema: &Value) -> Value {
    match schema {
        Value::Array(all) => all.iter().map(without_nulls).collect(),
        Value::Object(members) => {
            let others: Vec<&Value> = list(&schema["anyOf"]).iter().filter(|one| one["type"] != "null").collect();
            if let ([one], true) = (others.as_slice(), list(&schema["anyOf"]).len() == 2) {
                return without_nulls(one);
            }
            Value::Object(members.iter().map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        value => value.clone(),
    }
}

/// Messages whose contents are texts.
fn plain(messages: &Value) -> Vec<Value> {
    let one = |message: &Value| {
        let mut message = message.clone();
        if message["content"].is_array() {
            message["content"] = json!(text(&message["content"]));
        }
        message
    };
    list(messages).iter().map(one).collect()
}

fn tools_of(tools: &Value, parameters: &str) -> Vec<Value> {
    let one = |tool: &Value| {
        let function =
            json!({"name": tool["name"], "description": tool["description"], "parameters": tool[parameters]});
        json!({"type": "function", "function": function})
    };
    list(tools).iter().map(one).collect()
}

fn call(id: &Value, name: &Value, arguments: &Value) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

/// What was said on the wire of Responses. What a model said in one reply is one message.
fn of_items(body: &Value) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    if let Some(text) = body["input"].as_str() {
        messages.push(json!({"role": "user", "content": text}));
    }
    for item in list(&body["input"]) {
        match item["type"].as_str() {
            Some("function_call") => {
                let call = call(&item["call_id"], &item["name"], &item["arguments"]);
                if messages.last().is_none_or(|last| last["role"] != "assistant") {
                    messages.push(json!({"role": "assistant", "content": null}));
                }
                let last = messages.last_mut().expect("one was put there");
                match last["tool_calls"].as_array_mut() {
                    Some(calls) => calls.push(call),
                    None => last["tool_calls"] = json!([call]),
                }
            }
            Some("function_call_output") => {
                let output = text(&item["output"]);
                messages.push(json!({"role": "tool", "tool_call_id": item["call_id"], "content": output}));
            }
            Some("reasoning") => {}
            _ => messages.push(json!({"role": item["role"], "content": text(&item["content"])})),
        }
    }
    messages
}

/// What was said on Anthropic's wire.
fn of_blocks(body: &Value) -> Vec<Value> {
    let mut messages = Vec::new();
    for message in list(&body["messages"]) {
        let of_kind = |kind: &'static str| list(&message["content"]).iter().filter(move |block| block["type"] == kind);
        for result in of_kind("tool_result") {
            let id = &result["tool_use_id"];
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": text(&result["content"])}));
        }
        let said = text(&message["content"]);
        let calls: Vec<Value> = of_kind("tool_use")
            .map(|block| call(&block["id"], &block["name"], &json!(block["input"].to_string())))
            .collect();
        if message["role"] == "user" && said.is_empty() && of_kind("tool_result").next().is_some() {
            continue;
        }
        let mut turn = json!({"role": message["role"], "content": said});
        if !calls.is_empty() {
            turn["tool_calls"] = json!(calls);
        }
        messages.push(turn);
    }
    messages
}
