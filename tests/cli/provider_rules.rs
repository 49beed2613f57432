//! The promise of the strict servers: each refuses what its provider's documentation says is refused, in its words and its form,
//! and answers what is good. No nietz is asked here: these are bare requests.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use serde_json::{Value, json};

use crate::support::model_server::strict::{Provider, Refusal, Strict};
use crate::support::model_server::{ModelServer, Response};

/// A bare request: to a path, with headers, with a body.
fn post(to: SocketAddr, path: &str, headers: &[(&str, &str)], body: &Value) -> (u16, String) {
    let mut stream = TcpStream::connect(to).expect("the server listens");
    let body = body.to_string();
    let mut head = format!("POST {path} HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).expect("it reads");
    stream.shutdown(Shutdown::Write).expect("it is open");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers");
    let answer = String::from_utf8(answer).expect("it is text");
    let (head, mut rest) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let mut whole = String::new();
    while let Some((size, behind)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a size");
        whole.push_str(&behind[..size]);
        rest = behind[size..].trim_start_matches("\r\n");
    }
    (status, whole)
}

/// A server of this provider at its own address, as far as a request can tell.
fn serve(provider: Provider) -> ModelServer {
    ModelServer::start(Strict::new(provider).at_home().before(|request| match request.wants_json() {
        true => Response::text(r#"{"a": "b"}"#),
        false => Response::text("a ledger").tool_call("t", "look", "{}"),
    }))
}

/// Asks with the provider's key.
fn ask(provider: Provider, server: &ModelServer, body: &Value) -> (u16, String) {
    let rules = provider.rules();
    let key = format!("{}{}", rules.key.before, "key-0123");
    let mut headers = vec![("host", if rules.host.is_empty() { "localhost" } else { rules.host })];
    if !rules.key.header.is_empty() {
        headers.push((rules.key.header, key.as_str()));
    }
    post(server.address(), rules.path, &headers, body)
}

/// Changes a value by a JSON merge patch.
fn patch(value: &mut Value, change: &Value) {
    let Value::Object(members) = change else {
        *value = change.clone();
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    let into = value.as_object_mut().expect("it was made one");
    for (name, change) in members {
        match change {
            Value::Null => drop(into.remove(name)),
            change => patch(into.entry(name).or_insert(Value::Null), change),
        }
    }
}

/// The good request of a provider, for its first model.
fn good(provider: Provider) -> Value {
    let mut body = json_of(provider.rules().good);
    body["model"] = json!(provider.rules().models[0]);
    body
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The good request of a provider with a change that makes it a bad one.
fn broken(provider: Provider, bad: &str) -> Value {
    let mut body = good(provider);
    patch(&mut body, &json_of(bad));
    body
}

#[test]
fn each_strict_server_answers_what_is_good_streamed_and_whole() {
    for provider in Provider::ALL {
        let rules = provider.rules();
        let server = serve(provider);
        let mut body = good(provider);
        let (status, streamed) = ask(provider, &server, &body);
        assert_eq!(status, 200, "{}: {streamed}", rules.name);
        assert!(streamed.contains("\ndata: ") || streamed.starts_with("data: "), "{}: {streamed}", rules.name);
        body["stream"] = json!(false);
        let (status, whole) = ask(provider, &server, &body);
        assert_eq!(status, 200, "{}: {whole}", rules.name);
        let whole = json_of(&whole);
        assert!(
            whole["choices"][0]["message"].is_object() || whole["content"].is_array() || whole["output"].is_array()
        );
        assert!(whole["usage"].is_object(), "{}: {whole}", rules.name);
    }
}

#[test]
fn each_strict_server_refuses_by_each_of_its_rules_in_the_words_of_its_provider() {
    for provider in Provider::ALL {
        let rules = provider.rules();
        let server = serve(provider);
        for rule in rules.rules.iter().chain([&rules.no_model]) {
            let body = broken(provider, rule.bad);
            let expected: Refusal = rule.refuses(&body).unwrap_or_else(|| panic!("{}: {}", rules.name, rule.bad));
            let (status, answer) = ask(provider, &server, &body);
            let expected = (expected.status, (rules.errors)(&expected));
            assert_eq!((status, json_of(&answer)), expected, "{}: {}", rules.name, rule.bad);
            assert!(!rule.source.is_empty(), "{}: {} has no source", rules.name, rule.says);
        }
        let good = good(provider);
        let elsewhere = post(server.address(), "/v9/chat", &[("host", rules.host)], &good);
        assert_eq!(elsewhere.0, 404, "{}: {elsewhere:?}", rules.name);
        if !rules.key.header.is_empty() {
            let (status, answer) = post(server.address(), rules.path, &[("host", rules.host)], &good);
            assert_eq!(status, rules.key.status, "{}: {answer}", rules.name);
            assert!(answer.contains(&rules.key.says.replace('"', "\\\"")), "{}: {answer}", rules.name);
        }
    }
}

/// What each says to the first thing that it refuses, as it says it.
#[test]
fn refusals_have_the_forms_of_their_providers() {
    let mut all = String::new();
    for provider in Provider::ALL {
        let rules = provider.rules();
        let body = broken(provider, rules.rules[0].bad);
        let (status, answer) = ask(provider, &serve(provider), &body);
        let _ = writeln!(all, "{}: {status} {answer}", rules.name);
    }
    insta::assert_snapshot!(all, @r##"
    OpenAI, gpt-4.1: 400 {"error":{"message":"Unrecognized request argument supplied: reasoning_effort","type":"invalid_request_error","param":null,"code":null}}
    OpenAI, gpt-5.6 and later, chat completions: 400 {"error":{"message":"Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}
    OpenAI, gpt-5.6 and later, Responses: 400 {"error":{"message":"Unsupported parameter: 'temperature' is not supported with this model.","type":"invalid_request_error","param":"temperature","code":null}}
    Anthropic, Claude 4.5: 400 {"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: Field required"},"request_id":"req_011CX"}
    Anthropic, Claude 4.7 to 5: 400 {"type":"error","error":{"type":"invalid_request_error","message":"`temperature` is deprecated for this model."},"request_id":"req_011CX"}
    Anthropic, Claude 5.5: 400 {"type":"error","error":{"type":"invalid_request_error","message":"`temperature` is deprecated for this model."},"request_id":"req_011CX"}
    Gemini 3, OpenAI-compatible: 400 [{"error":{"code":400,"message":"Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:look` , position 1. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.","status":"INVALID_ARGUMENT"}}]
    DeepSeek V4: 400 {"error":{"message":"Thinking mode does not support this tool_choice","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}
    xAI, Grok 4.7: 400 {"code":"invalid-argument","error":"Model grok-4.7 does not support parameter presencePenalty."}
    Groq, gpt-oss: 400 {"error":{"message":"'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'reasoning_content' is unsupported)]","type":"invalid_request_error"}}
    OpenRouter, Claude Sonnet 5.5: 404 {"error":{"message":"No endpoints found that support the provided 'tool_choice' value. To learn more about provider routing, visit: https://openrouter.ai/docs/guides/routing/provider-selection","code":404},"user_id":"user_1"}
    Mistral: 422 {"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","max_completion_tokens"],"msg":"Extra inputs are not permitted","input":null}]},"type":"invalid_request_error","param":null,"code":null}
    Ollama: 400 {"error":{"message":"[] is too short - 'messages'","type":"invalid_request_error","param":null,"code":null}}
    llama.cpp: 400 {"error":{"code":400,"message":"All non-assistant messages must contain 'content'","type":"invalid_request_error"}}
    Azure, gpt-5.6 and later: 400 {"error":{"message":"Unsupported parameter: 'temperature' is not supported with this model.","type":"invalid_request_error","param":"temperature","code":null}}
    Azure, deployments of any name: 400 {"error":{"message":"Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}
    Bedrock, gpt-oss: 400 {"error":{"code":"validation_error","message":"n must be 1","param":"n","type":"invalid_request_error"}}
    Bedrock, Claude 5.5: 400 {"type":"error","error":{"type":"invalid_request_error","message":"`temperature` is deprecated for this model."},"request_id":"req_011CX"}
    "##);
}

/// What each kind of reply looks like on its wire.
#[test]
fn thoughts_and_calls_are_streamed_in_the_forms_of_their_providers() {
    let events = |provider: Provider| {
        let mut body = good(provider);
        for name in ["response_format", "output_config", "text"] {
            patch(&mut body, &json!({name: null}));
        }
        // Claude thinks of nothing where a tool is forced.
        if body["tool_choice"]["type"] == "any" {
            body["tool_choice"] = json!({"type": "auto"});
        }
        ask(provider, &serve(provider), &body).1
    };
    for (provider, parts) in [
        (
            Provider::OpenAi41,
            &[r#""obfuscation":""#, r#""tool_calls":[{"id":"call_"#, r#""finish_reason":"tool_calls""#][..],
        ),
        (
            Provider::Responses,
            &["event: response.output_item.done", r#""encrypted_content":"sealed-"#, r#""sequence_number":0"#],
        ),
        (
            Provider::Anthropic,
            &[
                "event: content_block_delta",
                r#""type":"signature_delta","signature":"sealed-"#,
                r#""stop_reason":"tool_use""#,
            ],
        ),
        (
            Provider::Gemini,
            &[r#""extra_content":{"google":{"thought_signature":"sealed-"#, r#""finish_reason":"stop""#],
        ),
        (Provider::DeepSeek, &[": keep-alive\n", r#""reasoning_content":"seal"#, r#""prompt_cache_miss_tokens":"#]),
        (Provider::Xai, &[r#""finish_reason":"""#, r#""cost_in_usd_ticks":"#]),
        (Provider::Groq, &[r#""reasoning":"seal"#, r#""x_groq":{"id":"#]),
        (
            Provider::OpenRouter,
            &[": OPENROUTER PROCESSING\n", r#""reasoning_details":[{"type":"reasoning.text""#, r#""cost":0.0012"#],
        ),
        (Provider::Mistral, &[r#""content":[{"type":"thinking""#, r#""finish_reason":"tool_calls""#]),
        (Provider::AzureOwnNames, &[r#""prompt_filter_results":["#]),
        (Provider::Bedrock, &[r#""content":"<reasonin"#]),
    ] {
        let events = events(provider);
        for part in parts {
            assert!(events.contains(part), "{provider:?} does not say {part}:\n{events}");
        }
    }
}
