//! JSON-RPC 2.0 in lines, as the other side of a program's pipes speaks it: what comes is bounded and may be anything.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _};
use tokio::task::JoinHandle;

use crate::model::text::{clean, excerpt};

/// The longest message that is read, in bytes.
pub(in crate::host) const LONGEST: usize = 16 << 20;
/// How much of what a program writes to its standard error is kept, in bytes: its end.
const KEPT_ERRORS: usize = 2_000;
/// How long to wait for what a program that has ended wrote last.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// JSON-RPC's code for a method that is not there.
pub(in crate::host) const NO_METHOD: i64 = -32601;

/// A message that came.
#[derive(Debug, PartialEq)]
pub(in crate::host) enum Message {
    Reply { id: Value, outcome: Result<Value, RpcError> },
    Request { id: Value, method: String, params: Value },
    Notification { method: String, params: Value },
}

/// What a request was refused with.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::host) struct RpcError {
    pub(in crate::host) code: i64,
    /// In the other side's words.
    pub(in crate::host) message: String,
}

impl Message {
    /// Reads a line; `None` if it is no message.
    pub(in crate::host) fn read(line: &[u8]) -> Option<Message> {
        let Value::Object(mut members) = serde_json::from_slice(line).ok()? else { return None };
        let id = members.remove("id").filter(|id| id.is_string() || id.is_number());
        if let Some(Value::String(method)) = members.remove("method") {
            let params = members.remove("params").unwrap_or_default();
            return Some(match id {
                Some(id) => Message::Request { id, method, params },
                None => Message::Notification { method, params },
            });
        }
        let outcome = match (members.remove("result"), members.remove("error")) {
            (Some(result), None) => Ok(result),
            (_, Some(error)) => Err(RpcError {
                code: error["code"].as_i64().unwrap_or_default(),
                message: error["message"].as_str().unwrap_or_default().to_owned(),
            }),
            (None, None) => return None,
        };
        Some(Message::Reply { id: id?, outcome })
    }
}

/// Writes a request.
pub(in crate::host) fn request(id: u64, method: &str, params: &Value) -> String {
    line(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
}

/// Writes a notification.
pub(in crate::host) fn notification(method: &str, params: &Value) -> String {
    line(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
}

/// Writes the answer to a request.
pub(in crate::host) fn answer(id: &Value, result: &Value) -> String {
    line(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

/// Writes that a request is for something that is not offered.
pub(in crate::host) fn not_offered(id: &Value, method: &str) -> String {
    let message = format!("nietz does not offer {}", excerpt(method));
    line(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": NO_METHOD, "message": message } }))
}

fn line(message: &Value) -> String {
    format!("{message}\n")
}

/// Reads lines. What was read of one is kept when a read is given up.
#[derive(Default)]
pub(in crate::host) struct LineReader {
    line: Vec<u8>,
}

impl LineReader {
    /// Returns the next line; `None` at the end.
    ///
    /// # Errors
    ///
    /// Why there can be no more: a line is too long, or the pipe is broken.
    pub(in crate::host) async fn next(
        &mut self,
        input: &mut (impl AsyncBufRead + Unpin),
    ) -> Result<Option<Vec<u8>>, String> {
        loop {
            let piece = input.fill_buf().await.map_err(|error| error.to_string())?;
            if piece.is_empty() {
                let rest = std::mem::take(&mut self.line);
                return Ok((!rest.is_empty()).then_some(rest));
            }
            let end = memchr::memchr(b'\n', piece);
            let length = end.map_or(piece.len(), |end| end + 1);
            if self.line.len() + length > LONGEST {
                return Err(format!("it sent a message of more than {} MB", LONGEST >> 20));
            }
            self.line.extend_from_slice(&piece[..length]);
            input.consume(length);
            if end.is_some() {
                return Ok(Some(std::mem::take(&mut self.line)));
            }
        }
    }
}

/// The end of what a program writes to its standard error.
pub(in crate::host) struct ErrorTail {
    kept: Arc<Mutex<Vec<u8>>>,
    reading: JoinHandle<()>,
}

impl ErrorTail {
    /// Begins to read.
    pub(in crate::host) fn of(mut stderr: impl AsyncRead + Send + Unpin + 'static) -> ErrorTail {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&kept);
        let reading = tokio::spawn(async move {
            let mut buffer = [0; 1024];
            while let Ok(count) = stderr.read(&mut buffer).await {
                if count == 0 {
                    break;
                }
                let mut kept = all.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&buffer[..count]);
                let over = kept.len().saturating_sub(KEPT_ERRORS);
                kept.drain(..over);
            }
        });
        ErrorTail { kept, reading }
    }

    /// Waits for the end of what a program says that has ended: not for long, because what it started may hold the pipe.
    pub(in crate::host) async fn finish(&mut self) {
        if !self.reading.is_finished() {
            let _ = tokio::time::timeout(LAST_WORDS, &mut self.reading).await;
        }
    }

    /// Returns it, cleaned for people.
    pub(in crate::host) fn text(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        clean(String::from_utf8_lossy(&kept).trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_told_from_one() {
        for (text, expected) in [
            (r#"{"id":1,"result":5}"#, Some(Message::Reply { id: json!(1), outcome: Ok(json!(5)) })),
            (
                r#"{"id":"a","error":{"code":-1,"message":"no"}}"#,
                Some(Message::Reply { id: json!("a"), outcome: Err(RpcError { code: -1, message: "no".into() }) }),
            ),
            (
                r#"{"id":1,"error":"no"}"#,
                Some(Message::Reply { id: json!(1), outcome: Err(RpcError { code: 0, message: String::new() }) }),
            ),
            (
                r#"{"id":2,"method":"ping"}"#,
                Some(Message::Request { id: json!(2), method: "ping".into(), params: Value::Null }),
            ),
            (r#"{"method":"x","params":[]}"#, Some(Message::Notification { method: "x".into(), params: json!([]) })),
            (r#"{"id":1}"#, None),
            (r#"{"result":1}"#, None),
            (r#"{"id":{},"result":1}"#, None),
            ("[1]", None),
            ("Server started", None),
            ("", None),
        ] {
            assert_eq!(Message::read(text.as_bytes()), expected, "{text}");
        }
    }

    #[tokio::test]
    async fn a_line_ends_at_its_end_and_is_never_longer_than_is_read() {
        let mut lines = LineReader::default();
        let mut input: &[u8] = b"one\ntwo";
        assert_eq!(lines.next(&mut input).await, Ok(Some(b"one\n".to_vec())));
        assert_eq!(lines.next(&mut input).await, Ok(Some(b"two".to_vec())));
        assert_eq!(lines.next(&mut input).await, Ok(None));
        let long = vec![b'x'; LONGEST + 1];
        let why = LineReader::default().next(&mut long.as_slice()).await.unwrap_err();
        assert_eq!(why, "it sent a message of more than 16 MB");
    }
}
