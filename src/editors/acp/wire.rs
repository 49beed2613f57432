//! JSON-RPC in lines, both ways: what comes is bounded, what goes out is one line at a time.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io::Write as _;

use agent_client_protocol_schema::v1::Error;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// A message that came.
pub(super) enum Incoming {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// It is no message, or too long; who sent it is told.
    Wrong(Option<Value>, Error),
}

/// The way to the client.
#[derive(Default)]
pub(super) struct Wire {
    next: Cell<u64>,
    /// Requests to the client that have no reply yet.
    open: RefCell<HashMap<u64, oneshot::Sender<Option<Value>>>>,
}

impl Wire {
    fn send(&self, message: &Value) {
        let mut out = std::io::stdout().lock();
        // A client that is gone is noticed when it is read from.
        let _ = writeln!(out, "{message}").and_then(|()| out.flush());
    }

    pub(super) fn notify(&self, method: &str, params: &impl Serialize) {
        let params = serde_json::to_value(params).unwrap_or_default();
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Asks the client for something; returns nothing if it refuses, leaves, or does not know the method.
    pub(super) async fn request(&self, method: &str, params: &impl Serialize) -> Option<Value> {
        let id = self.next.replace(self.next.get() + 1);
        let (sender, reply) = oneshot::channel();
        self.open.borrow_mut().insert(id, sender);
        let params = serde_json::to_value(params).unwrap_or_default();
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        reply.await.ok().flatten()
    }

    pub(super) fn reply(&self, id: &Value, result: Result<Value, Error>) {
        let message = match result {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        };
        self.send(&message);
    }

    /// Takes a line. Replies to requests go to who waits for them.
    pub(super) fn take(&self, line: &[u8]) -> Option<Incoming> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        let Ok(mut message) = serde_json::from_slice::<Value>(line) else {
            return Some(Incoming::Wrong(None, Error::parse_error()));
        };
        let id = message.get("id").filter(|id| id.is_string() || id.is_number()).cloned();
        let Some(method) = message["method"].as_str().map(str::to_owned) else {
            let known = id.as_ref().and_then(Value::as_u64).and_then(|id| self.open.borrow_mut().remove(&id));
            return match known {
                Some(waiting) => {
                    // Who asked may not wait any more.
                    let _ = waiting.send(message.get_mut("result").map(Value::take));
                    None
                }
                // An answer to nothing is passed over; all else is told.
                None if message.get("result").or(message.get("error")).is_some() => None,
                None => Some(Incoming::Wrong(id, Error::invalid_request())),
            };
        };
        let params = message.get_mut("params").map(Value::take).unwrap_or_default();
        Some(match id {
            Some(id) => Incoming::Request { id, method, params },
            None => Incoming::Notification { method, params },
        })
    }
}
