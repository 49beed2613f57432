//! The promise: what a provider serves now can be seen, and a model that it does not have is answered with those that it has.
//! Whatever a server sends instead of a list does no harm.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::env::{Env, KEY};
use crate::support::model_server::{ModelServer, Request, Response};
use crate::support::process::Ended;

/// What the newest servers of each kind answer where they do not have a model.
const REFUSALS: &[(&str, u16, &str)] = &[
    (
        "OpenAI",
        404,
        r#"{"error":{"message":"The model `m` does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}"#,
    ),
    (
        "OpenAI, Responses",
        400,
        r#"{"error":{"message":"The requested model 'm' does not exist.","type":"invalid_request_error","param":"model","code":"model_not_found"}}"#,
    ),
    (
        "Anthropic",
        404,
        r#"{"type":"error","error":{"type":"not_found_error","message":"model: m"},"request_id":"req_1"}"#,
    ),
    (
        "Gemini",
        404,
        r#"[{"error":{"code":404,"message":"models/m is not found for API version v1main, or is not supported for generateContent.","status":"NOT_FOUND"}}]"#,
    ),
    (
        "xAI",
        404,
        r#"{"code":"Some requested entity was not found","error":"The model m does not exist or your team has no access to it."}"#,
    ),
    ("xAI, 400", 400, r#"{"code":"invalid-argument","error":"Model not found: m"}"#),
    (
        "Groq",
        400,
        r#"{"error":{"message":"The model `m` has been decommissioned and is no longer supported.","type":"invalid_request_error","code":"model_decommissioned"}}"#,
    ),
    ("OpenRouter", 400, r#"{"error":{"message":"m is not a valid model ID","code":400},"user_id":"u"}"#),
    (
        "DeepSeek",
        400,
        r#"{"error":{"message":"Model Not Exist","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#,
    ),
    ("Mistral", 400, r#"{"object":"error","message":"Invalid model: m","type":"invalid_model","code":"1500"}"#),
    ("a server that says it is gone", 410, r#"{"error":{"message":"gone"}}"#),
];

fn list(names: &[&str]) -> Response {
    let data: Vec<Value> = names.iter().map(|name| serde_json::json!({"id": name, "object": "model"})).collect();
    json(&serde_json::json!({"object": "list", "data": data}).to_string())
}

fn json(body: &str) -> Response {
    Response::plain(200, body).header("content-type", "application/json")
}

fn is_list(request: &Request) -> bool {
    request.method == "GET"
}

/// Asks one question of a model that is not there.
fn ask(env: &Env) -> Ended {
    env.nietz(["run", "ask", "Who?", "--model", "openai/gpt-6.1-tera"]).go().exits(1)
}

#[test]
fn a_model_that_is_refused_is_answered_with_the_nearest_that_there_are() {
    for (who, status, body) in REFUSALS {
        let server = ModelServer::start(move |request| match is_list(request) {
            true => list(&["gpt-6.1-terra", "whisper-2", "gpt-6-luna", "gpt-6.1-sol", "sora-3"]),
            false => Response::plain(*status, *body).header("content-type", "application/json"),
        });
        let told = ask(&Env::with(&server)).stderr;
        assert!(told.contains("error[model-unknown]"), "{who}: {told}");
        assert!(told.contains("openai serves gpt-6.1-terra, gpt-6.1-sol, gpt-6-luna and 2 more"), "{who}: {told}");
        assert!(told.contains("nietz models list openai"), "{who}: {told}");
        let asked = &server.requests()[1];
        assert_eq!((asked.path.as_str(), asked.header("authorization")), ("/v1/models", &*format!("Bearer {KEY}")));
        assert_eq!(server.chats(), 1, "{who}: nothing is tried again");
    }
}

#[test]
fn a_failure_stands_without_a_list_where_there_is_none_and_waits_for_it_shortly() {
    let not_found = || Response::error(404, "no such model");
    type List = fn() -> Response;
    let cases: &[(&str, List)] = &[
        ("no list", || Response::error(404, "no such page")),
        ("a refused key", || Response::error(401, "who are you?")),
        ("a web page", || Response::plain(200, "<html>hello")),
        ("an empty list", || list(&[])),
        ("one with the model in it", || list(&["gpt-6.1-tera"])),
        ("silence", Response::silence),
        ("a list without end", || json(&format!("{{\"data\":[{}", "{\"id\":\"m\"},".repeat(500_000)))),
    ];
    for (what, listed) in cases {
        let listed = *listed;
        let server = ModelServer::start(move |request| if is_list(request) { listed() } else { not_found() });
        let begun = Instant::now();
        let told = ask(&Env::with(&server)).stderr;
        assert!(told.contains("does not know the model gpt-6.1-tera: no such model"), "{what}: {told}");
        assert!(!told.contains(" serves ") && told.contains("hint: "), "{what}: {told}");
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}: {:?}", begun.elapsed());
    }
}

#[test]
fn a_list_is_asked_for_once_in_a_run() {
    let server = ModelServer::start(|request| match is_list(request) {
        true => list(&["here"]),
        false => Response::error(404, "no such model"),
    });
    let env = Env::with(&server).flow(
        "twice",
        "local llm, nietz = require('@nietz/llm'), require('@nietz')\n\
         return nietz.flow { name = 'twice', summary = 's', permissions = { llm = true }, run = function()\n\
           local _, first = pcall(llm.chat, { prompt = 'a', model = 'openai/gone' })\n\
           local _, second = pcall(llm.chat, { prompt = 'b', model = 'openai/lost' })\n\
           return { first.code, first.hint, second.code, second.hint }\n\
         end }\n",
    );
    let hint = "name one of these; `nietz models list openai` shows all";
    let result = env.run(["twice"]).go().result();
    assert_eq!(result, serde_json::json!(["model-unknown", hint, "model-unknown", hint]));
    assert_eq!((server.chats(), server.calls()), (2, 3));
    // What was told stands in the journal, and is told again without asking.
    assert_eq!(env.resume().go().result(), result);
    assert_eq!(server.calls(), 3);
}

#[test]
fn a_list_of_other_names_than_the_user_s_is_not_asked_for() {
    let server = ModelServer::start(|_| Response::error(404, "The API deployment for this resource does not exist."));
    let env = Env::new().var("AZURE_OPENAI_API_KEY", "planted-azure-key").var("AZURE_OPENAI_BASE_URL", &server.url());
    env.nietz(["run", "ask", "Who?", "--model", "azure/mine"]).go().exits(1);
    assert_eq!(server.calls(), 1, "its models are called as the user's deployments are");
}

#[test]
fn a_provider_s_list_is_shown_with_what_it_says_and_what_we_know() {
    let server = ModelServer::start(|_| {
        json(
            r#"{"data":[
                {"id":"openai/gpt-6-luna","context_length":400000,
                 "pricing":{"prompt":"0.0000005","completion":"0.000004","input_cache_read":"0.00000005"}},
                {"id":"a/ends","context_length":8192,"expiration_date":"2026-12-24"},
                {"id":"a/plain"},{"id":"evil\u001b[31m"},{"id":"\u202egnp"}]}"#,
        )
    });
    let env = Env::new().var("OPENROUTER_API_KEY", "planted-router-key").var("OPENROUTER_BASE_URL", &server.url());
    let shown = env.nietz(["models", "list", "openrouter"]).go().exits(0);
    insta::assert_snapshot!(shown.stdout, @r"
    MODEL                         WINDOW  PRICE
    openrouter/a/ends             8192    -         ends 2026-12-24
    openrouter/a/plain            -       -
    openrouter/openai/gpt-6-luna  400000  $0.5, $4
    ");
    assert_eq!(server.requests()[0].header("authorization"), "Bearer planted-router-key");
    let lines = env.nietz(["models", "list", "openrouter", "--json"]).go().exits(0).stdout;
    let first: Value = serde_json::from_str(lines.lines().next().expect("a line")).expect("JSON");
    assert_eq!(
        first,
        serde_json::json!({"model": "openrouter/a/ends", "window": 8192, "price": null, "retires": "2026-12-24"})
    );
    let unknown = env.nietz(["models", "list", "opnrouter"]).go().exits(1);
    assert!(unknown.stderr.contains("did you mean openrouter?"), "{unknown:?}");
}

#[test]
fn anthropic_s_list_is_read_page_by_page_with_its_own_headers() {
    let server = ModelServer::start(|request| match request.path.contains("after_id=claude-one") {
        true => json(r#"{"data":[{"type":"model","id":"claude-two","max_input_tokens":200000}],"has_more":false}"#),
        false => json(
            r#"{"data":[{"type":"model","id":"claude-one","retires_at":"2026-11-30T00:00:00Z"}],"has_more":true,"last_id":"claude-one"}"#,
        ),
    });
    let env = Env::new().var("ANTHROPIC_API_KEY", "planted-claude-key").var("ANTHROPIC_BASE_URL", &server.url());
    let shown = env.nietz(["models", "list", "anthropic"]).go().exits(0).stdout;
    assert!(shown.contains("anthropic/claude-one") && shown.contains("ends 2026-11-30"), "{shown}");
    assert!(shown.contains("anthropic/claude-two"), "{shown}");
    let requests = server.requests();
    assert_eq!(requests[0].path, "/v1/models?limit=1000");
    assert_eq!(requests[1].path, "/v1/models?limit=1000&after_id=claude-one");
    assert!(requests.iter().all(|request| request.header("x-api-key") == "planted-claude-key"));
    assert!(requests.iter().all(|request| !request.header("anthropic-version").is_empty()));
    // A server that always has one more page is asked ten times.
    let endless = ModelServer::start(|request| {
        let number = request.number;
        json(&format!(r#"{{"data":[{{"id":"m{number:02}"}}],"has_more":true,"last_id":"m{number:02}"}}"#))
    });
    env.nietz(["models", "list", "anthropic"]).var("ANTHROPIC_BASE_URL", &endless.url()).go().exits(0);
    assert_eq!(endless.calls(), 10);
}

#[test]
fn all_providers_with_a_key_are_asked_and_one_that_fails_hides_no_other() {
    let (good, bad) = (ModelServer::start(|_| list(&["one"])), ModelServer::start(|_| Response::error(500, "oops")));
    let other = ModelServer::start(|_| Response::text("stolen"));
    let target = other.url();
    let moved = ModelServer::start(move |_| Response::redirect(&target));
    let env = Env::with(&good)
        .var("GROQ_API_KEY", "planted-groq-key")
        .var("GROQ_BASE_URL", &bad.url())
        .var("XAI_API_KEY", "planted-xai-key")
        .var("XAI_BASE_URL", &moved.url())
        .var("OLLAMA_HOST", "127.0.0.1:1");
    let shown = env.nietz(["models", "list"]).go().exits(0);
    assert!(shown.stdout.contains("openai/one"), "{shown:?}");
    assert!(shown.stderr.contains("groq is left out: groq has a fault of its own (500)"), "{shown:?}");
    assert!(shown.stderr.contains("xai is left out: ") && shown.stderr.contains("307"), "{shown:?}");
    assert!(!shown.stderr.contains("ollama") && !shown.stderr.contains("anthropic"), "{shown:?}");
    assert_eq!(other.calls(), 0, "no key goes where a server sends it");

    let ollama = ModelServer::start(|_| json(r#"{"models":[{"name":"qwen3:4b","size":1}]}"#));
    let shown = env.nietz(["models", "list"]).var("OLLAMA_HOST", &ollama.url()).go().exits(0);
    assert!(shown.stdout.contains("ollama/qwen3:4b") && shown.stdout.contains("free"), "{shown:?}");
    assert_eq!(ollama.requests().last().expect("it was asked").path, "/api/tags");
}

#[test]
fn the_overview_says_from_when_the_defaults_are() {
    let shown = Env::new().nietz(["models"]).go().exits(0).stdout;
    assert!(shown.contains("defaults of November 2026"), "{shown}");
}
