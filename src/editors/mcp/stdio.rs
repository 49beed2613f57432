//! A client at standard input and output. What is no message is answered, so that nobody waits for a reply that never comes.

use std::io;

use rmcp::model::{ErrorData, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleServer, transport};
use serde_json::Value;
use tokio::io::{AsyncWrite, BufReader, Empty};

use crate::editors::lines::{LineReader, TooLong};
use crate::model::text::excerpt;

type Sent = TxJsonRpcMessage<RoleServer>;
type Received = RxJsonRpcMessage<RoleServer>;

/// The library's way out, and a way in that answers what it would pass over.
pub(super) struct Stdio<R, W: AsyncWrite> {
    input: BufReader<R>,
    lines: LineReader,
    out: AsyncRwTransport<RoleServer, Empty, W>,
}

/// A line that is no message of the protocol: whose reply is meant, and what is wrong.
type Wrong = Box<(Option<RequestId>, ErrorData)>;

/// Returns the client at this process's own standard input and output.
pub(super) fn stdio() -> impl Transport<RoleServer, Error = io::Error> + 'static {
    let (read, write) = transport::stdio();
    let out = AsyncRwTransport::new(tokio::io::empty(), write);
    Stdio { input: BufReader::new(read), lines: LineReader::default(), out }
}

impl<R, W> Transport<RoleServer> for Stdio<R, W>
where
    R: tokio::io::AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(&mut self, item: Sent) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.out.send(item)
    }

    async fn receive(&mut self) -> Option<Received> {
        loop {
            let wrong = match self.lines.next(&mut self.input).await {
                Ok(None) | Err(_) => return None,
                Ok(Some(Err(TooLong))) => Wrong::new((None, ErrorData::invalid_request(TooLong::told(), None))),
                Ok(Some(Ok(line))) if line.iter().all(u8::is_ascii_whitespace) => continue,
                Ok(Some(Ok(line))) => match read(&line) {
                    Ok(message) => return Some(message),
                    // Nobody waits for an answer to what only tells something.
                    Err(None) => continue,
                    Err(Some(wrong)) => wrong,
                },
            };
            let (id, error) = *wrong;
            // A read can be given up at any time, and what is sent is sent whole.
            tokio::spawn(self.out.send(Sent::error(error, id)));
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.out.close().await
    }
}

fn read(line: &[u8]) -> Result<Received, Option<Wrong>> {
    let error = match serde_json::from_slice(line) {
        Ok(message) => return Ok(message),
        Err(error) => error,
    };
    let Ok(message) = serde_json::from_slice::<Value>(line) else {
        return Err(Some(Wrong::new((None, ErrorData::parse_error("this is no JSON", None)))));
    };
    let id: Option<RequestId> = message.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
    let is_method = message["method"].is_string();
    match id {
        Some(id) if is_method => {
            let why = match message.get("params") {
                Some(params) if !params.is_object() => "`params` must be an object".to_owned(),
                _ => excerpt(&error.to_string()),
            };
            Err(Some(Wrong::new((Some(id), ErrorData::invalid_params(why, None)))))
        }
        None if is_method && message.get("id").is_none() => Err(None),
        id => Err(Some(Wrong::new((id, ErrorData::invalid_request("this is no message of the protocol", None))))),
    }
}
