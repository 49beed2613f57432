//! `nietz mcp --http`: for clients of this machine that know the token, and for no page of a browser.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::talk;
use crate::support::env::Env;
use crate::support::process::Running;

/// A server at the loopback.
struct Server {
    running: Running,
    /// `127.0.0.1:PORT`.
    host: String,
    token: String,
}

/// What came back: status, headers and the messages in it.
struct Reply {
    status: u16,
    head: String,
    messages: Vec<Value>,
}

impl Server {
    fn start(env: &Env) -> Server {
        let mut running = env.nietz(["mcp", "--http", "127.0.0.1:0", "--model", "openai/test"]).in_a_group().spawn();
        let line = running.line();
        let host = line.trim().strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp"));
        let host = host.unwrap_or_else(|| panic!("{line}")).to_owned();
        let token = running.line().trim().to_owned();
        assert!(token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{token}");
        Server { running, host, token }
    }

    /// Sends a message with these headers.
    fn send(&self, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut stream = TcpStream::connect(&self.host).expect("it listens");
        let mut head = "POST /mcp HTTP/1.1\r\n".to_owned();
        if !headers.iter().any(|(name, _)| *name == "Host") {
            head += &format!("Host: {}\r\n", self.host);
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head +=
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nConnection: close\r\n";
        stream.write_all(format!("{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes()).expect("it reads");
        // One that refuses a body need not read it.
        let _ = stream.write_all(body.as_bytes());
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{text}"));
        let lines = body.lines().map(|line| line.strip_prefix("data:").unwrap_or(line).trim());
        let messages = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok()).filter(Value::is_object);
        Reply { status, head: head.to_lowercase(), messages: messages.collect() }
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    /// Sends a request of 2026-07-28, and returns its result.
    fn modern(&self, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
        });
        let bearer = self.bearer();
        let mut headers =
            vec![("Authorization", bearer.as_str()), ("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        let name = params["name"].as_str().map(str::to_owned);
        if let Some(name) = &name {
            headers.push(("Mcp-Name", name.as_str()));
        }
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }).to_string();
        let reply = self.send(&headers, &body);
        assert_eq!(reply.status, 200, "{method}: {} {:?}", reply.head, reply.messages);
        let own = reply.messages.iter().find(|message| message["id"] == 7);
        let own = own.unwrap_or_else(|| panic!("{method}: {} {:?}", reply.head, reply.messages));
        assert!(own["error"].is_null(), "{method}: {own}");
        own["result"].clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.running.terminate();
    }
}

fn initialize() -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    } })
    .to_string()
}

#[test]
fn only_who_knows_the_token_is_served_and_no_page_of_another() {
    let (_model, env) = talk();
    let server = Server::start(&env);
    let (bearer, own) = (server.bearer(), format!("http://{}", server.host));
    for (headers, status) in [
        (vec![], 401),
        (vec![("Authorization", "Bearer 0123456789abcdef0123456789abcdef")], 401),
        (vec![("Authorization", "Basic abc")], 401),
        (vec![("Authorization", bearer.as_str()), ("Authorization", bearer.as_str())], 401),
        (vec![("Authorization", bearer.as_str()), ("Host", "evil.example")], 403),
        (vec![("Authorization", bearer.as_str()), ("Origin", "http://evil.example")], 403),
        (vec![("Authorization", bearer.as_str()), ("Origin", "null")], 403),
        (vec![("Authorization", bearer.as_str()), ("Origin", own.as_str())], 200),
        (vec![("Authorization", bearer.as_str())], 200),
    ] {
        let reply = server.send(&headers, &initialize());
        assert_eq!(reply.status, status, "{headers:?}: {}", reply.head);
        assert_eq!(reply.head.contains("www-authenticate: bearer"), status == 401, "{headers:?}: {}", reply.head);
    }
    let too_long = format!("{{\"x\":\"{}\"}}", "x".repeat(20 << 20));
    assert_eq!(server.send(&[("Authorization", bearer.as_str())], &too_long).status, 413);
    // What is no message is refused, and what comes next is heard.
    let wrong = server.send(&[("Authorization", bearer.as_str())], "[1, 2");
    assert!((400..500).contains(&wrong.status), "{}", wrong.head);
    assert_eq!(server.send(&[("Authorization", bearer.as_str())], &initialize()).status, 200);
}

#[test]
fn a_token_of_one_s_own_is_not_printed_and_other_addresses_are_refused() {
    let (_model, env) = talk();
    let refused = env.nietz(["mcp", "--http", "0.0.0.0:0"]).go().exits(2);
    assert!(refused.stderr.contains("can be reached from other machines"), "{refused:?}");
    let short = env.nietz(["mcp", "--http", "127.0.0.1:0"]).var("NIETZ_MCP_TOKEN", "short").go().exits(2);
    assert!(short.stderr.contains("could be guessed") && !short.stderr.contains("short:"), "{short:?}");
    let call =
        env.nietz(["mcp", "--http", "127.0.0.1:0"]).var("NIETZ_MCP_TOKEN", "a-token-of-my-own-0815").in_a_group();
    let mut running = call.spawn();
    let address = running.line();
    let host = address.trim().strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp")).expect("an address");
    let server = Server { host: host.to_owned(), running, token: "a-token-of-my-own-0815".to_owned() };
    assert_eq!(server.send(&[("Authorization", server.bearer().as_str())], &initialize()).status, 200);
}

#[test]
fn a_flow_comes_to_its_end_over_http_and_clients_share_its_runs() {
    let (model, env) = talk();
    let server = Server::start(&env);
    let tools = server.modern("tools/list", json!({}));
    assert!(tools.to_string().contains("flow_talk"), "{tools}");
    let mut state = Value::Null;
    let mut result = Value::Null;
    for answer in [Value::Null, json!("red"), json!("milk"), json!(true)] {
        let mut params = json!({ "name": "flow_talk", "arguments": { "about": "the sea" } });
        if !answer.is_null() {
            params["requestState"] = state;
            params["inputResponses"] = json!({ "answer": { "action": "accept", "content": { "answer": answer } } });
        }
        // Each of these is a connection of its own, as from another client.
        result = server.modern("tools/call", params);
        state = result["requestState"].clone();
    }
    assert_eq!(result["structuredContent"]["result"]["colour"], "red", "{result}");
    assert_eq!(model.chats(), 2);
}

#[test]
fn a_client_of_2025_has_a_session_and_another_session_sees_its_runs() {
    let (_model, env) = talk();
    let server = Server::start(&env);
    let bearer = server.bearer();
    let open = |server: &Server| {
        let begun = server.send(&[("Authorization", bearer.as_str())], &initialize());
        let line = begun.head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).map(str::to_owned);
        line.unwrap_or_else(|| panic!("{}", begun.head))
    };
    let (one, other) = (open(&server), open(&server));
    assert_ne!(one, other);
    let request = |session: &str, id: u64, method: &str, params: Value| {
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
        let headers =
            [("Authorization", bearer.as_str()), ("Mcp-Session-Id", session), ("MCP-Protocol-Version", "2025-11-25")];
        server.send(&headers, &body)
    };
    for session in [&one, &other] {
        let body = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
        let told = server.send(&[("Authorization", bearer.as_str()), ("Mcp-Session-Id", session.as_str())], &body);
        assert_eq!(told.status, 202, "{}", told.head);
    }
    let call = json!({ "name": "flow_talk", "arguments": { "about": "tea" } });
    let reply = request(&one, 2, "tools/call", call);
    let result = reply.messages.iter().find(|message| message["id"] == 2).unwrap_or_else(|| panic!("{}", reply.head));
    let run = result["result"]["structuredContent"]["run"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned();
    let answer = json!({ "name": "answer", "arguments": { "run": run, "answer": "red" } });
    let reply = request(&other, 3, "tools/call", answer);
    let result = reply.messages.iter().find(|message| message["id"] == 3).unwrap_or_else(|| panic!("{}", reply.head));
    assert!(result.to_string().contains("And then?"), "{result}");
}
