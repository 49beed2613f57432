//! A client that writes and reads lines of JSON, and knows what it may be asked.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

use crate::support::env::Env;
use crate::support::process::{Ended, Running};

/// A client with its server.
pub(super) struct Client {
    running: Running,
    next: u64,
    /// What forms are answered with, in turn: the field's value, or null for a person who declines.
    pub(super) answers: VecDeque<Value>,
    /// The forms that were shown.
    pub(super) forms: Vec<Value>,
    /// What permissions were asked for, and whether the person gives them.
    pub(super) permissions: Vec<Value>,
    pub(super) permits: bool,
    /// What was told without being asked for.
    pub(super) told: Vec<Value>,
    early: BTreeMap<u64, Value>,
    /// What each request has beside its params, since 2026-07-28.
    meta: Option<Value>,
}

impl Client {
    pub(super) fn start(env: &Env, words: &[&str]) -> Client {
        Client {
            running: env.nietz(words.iter().copied()).in_a_group().spawn(),
            next: 0,
            answers: VecDeque::new(),
            forms: Vec::new(),
            permissions: Vec::new(),
            permits: false,
            told: Vec::new(),
            early: BTreeMap::new(),
            meta: None,
        }
    }

    /// A client of the protocol of 2025-11-25, with forms or without.
    pub(super) fn legacy(env: &Env, options: &[&str], has_forms: bool) -> Client {
        Client::legacy_with(env, options, &if has_forms { json!({ "elicitation": {} }) } else { json!({}) })
    }

    pub(super) fn legacy_with(env: &Env, options: &[&str], capabilities: &Value) -> Client {
        let words: Vec<&str> = ["mcp", "--model", "openai/test"].iter().chain(options).copied().collect();
        let mut client = Client::start(env, &words);
        let told = client.request(
            "initialize",
            json!({
                "protocolVersion": "2025-11-25", "capabilities": capabilities,
                "clientInfo": { "name": "test", "version": "1" },
            }),
        );
        assert_eq!(told["result"]["protocolVersion"], "2025-11-25", "{told}");
        client.notify("notifications/initialized", json!({}));
        client
    }

    /// A client of the protocol of 2026-07-28, with forms.
    pub(super) fn modern(env: &Env, options: &[&str]) -> Client {
        Client::modern_with(env, options, &json!({ "elicitation": { "form": {} } }))
    }

    /// One that has tasks, too.
    pub(super) fn with_tasks(env: &Env, options: &[&str]) -> Client {
        let extensions = json!({ "io.modelcontextprotocol/tasks": {} });
        Client::modern_with(env, options, &json!({ "elicitation": { "form": {} }, "extensions": extensions }))
    }

    fn modern_with(env: &Env, options: &[&str], capabilities: &Value) -> Client {
        let words: Vec<&str> = ["mcp", "--model", "openai/test"].iter().chain(options).copied().collect();
        let mut client = Client::start(env, &words);
        client.meta = Some(json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }));
        let told = client.request("server/discover", json!({}));
        assert!(told["result"]["supportedVersions"].to_string().contains("2026-07-28"), "{told}");
        client
    }

    pub(super) fn raw(&mut self, line: &str) {
        self.running.say(&format!("{line}\n"));
    }

    pub(super) fn notify(&mut self, method: &str, params: Value) {
        self.raw(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// Sends a request and returns its number.
    pub(super) fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.next += 1;
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        self.raw(&json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }).to_string());
        self.next
    }

    pub(super) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.reply(id)
    }

    /// Reads the next message; none at the end.
    pub(super) fn read(&mut self) -> Option<Value> {
        let line = self.running.line();
        (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}")))
    }

    /// Returns the reply to a request. Forms that are shown meanwhile are answered.
    pub(super) fn reply(&mut self, id: u64) -> Value {
        loop {
            if let Some(reply) = self.early.remove(&id) {
                return reply;
            }
            let message = self.read().unwrap_or_else(|| panic!("the server has ended before reply {id}"));
            self.take(message);
        }
    }

    /// Reads until a form is shown, and leaves it open.
    pub(super) fn until_asked(&mut self) -> Value {
        loop {
            let message = self.read().expect("the server goes on");
            if message["method"] == "elicitation/create" {
                return message;
            }
            self.take(message);
        }
    }

    /// Fills in a form that was left open.
    pub(super) fn fill(&mut self, form: &Value, answer: &Value) {
        let result = json!({ "action": "accept", "content": { "answer": answer } });
        self.raw(&json!({ "jsonrpc": "2.0", "id": form["id"], "result": result }).to_string());
    }

    fn take(&mut self, message: Value) {
        match (message["method"].as_str(), message["id"].as_u64()) {
            (Some("elicitation/create"), Some(_)) => {
                self.forms.push(message["params"].clone());
                let answer = self.answers.pop_front().unwrap_or_else(|| panic!("nobody expected {message}"));
                let result = match answer {
                    Value::Null => json!({ "action": "decline" }),
                    answer => json!({ "action": "accept", "content": { "answer": answer } }),
                };
                self.raw(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string());
            }
            (Some("session/request_permission"), Some(_)) => {
                self.permissions.push(message["params"].clone());
                let option = if self.permits { "allow" } else { "reject" };
                let result = json!({ "outcome": { "outcome": "selected", "optionId": option } });
                self.raw(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string());
            }
            (Some(_), _) => self.told.push(message),
            (None, Some(id)) => drop(self.early.insert(id, message)),
            (None, None) => self.told.push(message),
        }
    }

    /// Calls a tool, and returns its result.
    pub(super) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let reply = self.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert!(reply["error"].is_null(), "{reply}");
        reply["result"].clone()
    }

    /// Leaves, and returns how the server ended.
    pub(super) fn leave(mut self) -> Ended {
        self.running.close();
        self.running.end()
    }

    /// Kills the server.
    pub(super) fn kill(self) {
        self.running.kill();
    }
}

/// The text of a tool's result.
pub(super) fn text(result: &Value) -> String {
    let parts = result["content"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// A member of a result's data.
pub(super) fn data<'a>(result: &'a Value, member: &str) -> &'a str {
    result["structuredContent"][member].as_str().unwrap_or_else(|| panic!("no `{member}`: {result}"))
}
