//! Servers at an address: streamable HTTP.

use serde_json::{Value, json};

use super::CALLER;
use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Request, Response};

const TOKEN: &str = "planted-issues-token-77";

fn reply(request: &Request, result: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": request.body["id"], "result": result }).to_string()
}

/// A server that answers calls by a stream, and all else by a document.
fn issues(request: &Request) -> Response {
    if request.header("authorization") != format!("Bearer {TOKEN}") {
        return Response::plain(401, "who are you?");
    }
    let json = |text: String| Response::plain(200, text).header("content-type", "application/json");
    match request.body["method"].as_str().unwrap_or_default() {
        "initialize" => {
            let told = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": {} });
            json(reply(request, told)).header("mcp-session-id", "s-1")
        }
        "tools/list" => {
            let tool = json!({ "name": "search", "description": "Finds", "inputSchema": { "type": "object" } });
            json(reply(request, json!({ "tools": [tool] })))
        }
        "tools/call" => {
            let news = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progress": 1 } });
            let found = json!({ "content": [{ "type": "text", "text": "two issues" }] });
            Response::stream(format!("data: {news}\n\nevent: message\ndata: {}\n\n", reply(request, found)))
        }
        _ => Response::plain(202, ""),
    }
}

fn with(server: &ModelServer, more: &str) -> Env {
    let url = server.url().replace("/v1", "/mcp");
    Env::new()
        .flow("caller", CALLER)
        .var("ISSUES_TOKEN", TOKEN)
        .config(&format!("mcp: {{docs: {{url: '{url}'{more}}}}}\n"))
}

#[test]
fn a_server_at_an_address_is_called_with_its_key_its_session_and_its_version() {
    let server = ModelServer::start(issues);
    let env = with(&server, ", key_env: ISSUES_TOKEN");
    let ended = env.run(["caller"]).go().exits(0);
    assert_eq!(ended.result(), json!({ "text": "two issues" }));
    let requests = server.requests();
    let methods: Vec<&str> = requests.iter().filter_map(|request| request.body["method"].as_str()).collect();
    assert_eq!(methods, ["initialize", "notifications/initialized", "tools/list", "tools/call"]);
    for request in &requests[1..] {
        assert_eq!(
            (request.header("mcp-session-id"), request.header("mcp-protocol-version"), request.path.as_str()),
            ("s-1", "2025-06-18", "/mcp")
        );
    }
    assert!(!env.read(".nietz/runs/r1/journal.jsonl").contains(TOKEN));
}

#[test]
fn an_address_that_refuses_is_silent_or_leads_elsewhere_is_told() {
    let refused = |server: &ModelServer, more: &str, why: &str| {
        let env = with(server, more);
        let ended = env.run(["caller", "--catch"]).go().exits(0).result();
        assert_eq!(ended["code"], "server-failed", "{ended}");
        assert!(ended["message"].as_str().is_some_and(|told| told.contains(why)), "{ended}");
        assert!(!ended.to_string().contains(TOKEN));
    };
    refused(&ModelServer::start(issues), "", "it answered 401 Unauthorized: it wants a key");
    refused(&ModelServer::start(|_| Response::redirect("https://a.example/mcp")), "", "redirects are not followed");
    refused(&ModelServer::start(|_| Response::silence()), ", seconds: 1", "within 1 s");
    refused(&ModelServer::start(|_| Response::plain(200, "<html>")), "", "what it answered is no message");
    let gone = ModelServer::start(issues);
    let address = gone.url();
    drop(gone);
    let env = Env::new().flow("caller", CALLER).config(&format!("mcp: {{docs: {{url: '{address}'}}}}\n"));
    let ended = env.run(["caller", "--catch"]).go().exits(0).result();
    assert!(ended["message"].as_str().is_some_and(|told| told.contains("http://127.0.0.1")), "{ended}");
}

#[test]
fn a_call_whose_answer_was_cut_off_is_in_doubt() {
    let server = ModelServer::start(|request| match request.body["method"] == "tools/call" {
        true => Response::stream("data: {}\n\n".repeat(100)).cut_after(40),
        false => issues(request),
    });
    let ended = with(&server, ", key_env: ISSUES_TOKEN").run(["caller", "--catch"]).go().exits(0).result();
    assert_eq!(ended["code"], "tool-in-doubt", "{ended}");
}
