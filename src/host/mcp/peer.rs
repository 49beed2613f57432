//! The connection to a server that speaks by pipes: requests wait for their replies side by side, and what the server asks for or
//! tells meanwhile is answered at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::AbortHandle;

use crate::host::rpc::{self, LineReader, Message, RpcError};
use crate::model::text::excerpt;

/// One connection. Dropping it closes it.
pub(super) struct Peer {
    state: Arc<Mutex<PeerState>>,
    out: mpsc::UnboundedSender<String>,
    tasks: [AbortHandle; 2],
}

/// What became of a request.
pub(super) type Replied = Result<Value, NoReply>;

/// Why there is no result.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NoReply {
    /// The server refused the request.
    Refused(RpcError),
    /// The connection has ended, and perhaps why.
    Ended(String),
}

#[derive(Default)]
struct PeerState {
    next: u64,
    waiting: HashMap<u64, Waiting>,
    /// Why the connection has ended, once it has.
    ended: Option<String>,
    /// Whether the server has said that its tools are others now.
    tools_changed: bool,
    /// The latest line that was no message, for whoever waits in vain.
    odd: Option<String>,
}

struct Waiting {
    reply: oneshot::Sender<Replied>,
    /// Told whenever the server says that it is still at it.
    alive: Arc<Notify>,
}

/// A request whose reply has not come. Dropping it tells the server that nobody waits any more.
pub(super) struct OpenRequest {
    pub(super) reply: oneshot::Receiver<Replied>,
    pub(super) alive: Arc<Notify>,
    id: u64,
    state: Arc<Mutex<PeerState>>,
    out: mpsc::UnboundedSender<String>,
}

impl Peer {
    /// Speaks by these pipes.
    pub(super) fn start(
        reader: impl AsyncRead + Send + Unpin + 'static,
        mut writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Peer {
        let state = Arc::new(Mutex::new(PeerState { next: 1, ..PeerState::default() }));
        let (out, mut lines) = mpsc::unbounded_channel::<String>();
        let writing = tokio::spawn(async move {
            while let Some(line) = lines.recv().await {
                // A server that does not read any more is noticed where it ends, or takes too long.
                if writer.write_all(line.as_bytes()).await.is_err() || writer.flush().await.is_err() {
                    break;
                }
            }
        });
        let reading = tokio::spawn(read(BufReader::new(reader), Arc::clone(&state), out.clone()));
        Peer { state, out, tasks: [writing.abort_handle(), reading.abort_handle()] }
    }

    /// Sends a request. Its params may have the number of the request in them, as the token of its progress.
    pub(super) fn request(&self, method: &str, params: impl FnOnce(u64) -> Value) -> OpenRequest {
        let (sender, reply) = oneshot::channel();
        let alive = Arc::new(Notify::new());
        let mut state = lock(&self.state);
        let id = state.next;
        state.next += 1;
        match &state.ended {
            // Nobody has dropped the other end yet.
            Some(why) => drop(sender.send(Err(NoReply::Ended(why.clone())))),
            None => drop(state.waiting.insert(id, Waiting { reply: sender, alive: Arc::clone(&alive) })),
        }
        drop(state);
        self.send(rpc::request(id, method, &params(id)));
        OpenRequest { reply, alive, id, state: Arc::clone(&self.state), out: self.out.clone() }
    }

    pub(super) fn notify(&self, method: &str, params: &Value) {
        self.send(rpc::notification(method, params));
    }

    fn send(&self, line: String) {
        // The writer is gone only if the server is, which is told to whoever waits.
        let _ = self.out.send(line);
    }

    pub(super) fn is_open(&self) -> bool {
        lock(&self.state).ended.is_none()
    }

    /// Tells whether the server has said since the last look that its tools are others now.
    pub(super) fn take_tools_changed(&self) -> bool {
        std::mem::take(&mut lock(&self.state).tools_changed)
    }

    /// Returns what the server wrote last that is no message.
    pub(super) fn odd_line(&self) -> Option<String> {
        lock(&self.state).odd.clone()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        if lock(&self.state).waiting.remove(&self.id).is_some() {
            let params = json!({ "requestId": self.id, "reason": "nobody waits for it any more" });
            let _ = self.out.send(rpc::notification("notifications/cancelled", &params));
        }
    }
}

fn lock(state: &Mutex<PeerState>) -> MutexGuard<'_, PeerState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn read(
    mut input: BufReader<impl AsyncRead + Unpin>,
    state: Arc<Mutex<PeerState>>,
    out: mpsc::UnboundedSender<String>,
) {
    let mut lines = LineReader::default();
    let why = loop {
        match lines.next(&mut input).await {
            Ok(Some(line)) => take(&line, &state, &out),
            Ok(None) => break String::new(),
            Err(why) => break why,
        }
    };
    let mut state = lock(&state);
    state.ended = Some(why.clone());
    for (_, waiting) in state.waiting.drain() {
        let _ = waiting.reply.send(Err(NoReply::Ended(why.clone())));
    }
}

fn take(line: &[u8], state: &Mutex<PeerState>, out: &mpsc::UnboundedSender<String>) {
    if line.iter().all(u8::is_ascii_whitespace) {
        return;
    }
    match Message::read(line) {
        Some(Message::Reply { id, outcome }) => {
            let waiting = id.as_u64().and_then(|id| lock(state).waiting.remove(&id));
            if let Some(waiting) = waiting {
                // Whoever asked may not wait any more.
                let _ = waiting.reply.send(outcome.map_err(NoReply::Refused));
            }
        }
        Some(Message::Request { id, method, .. }) => {
            // Flows give a server no model, no folders and no person.
            let answer = match method.as_str() {
                "ping" => rpc::answer(&id, &json!({})),
                _ => rpc::not_offered(&id, &method),
            };
            let _ = out.send(answer);
        }
        Some(Message::Notification { method, params }) => match method.as_str() {
            "notifications/tools/list_changed" => lock(state).tools_changed = true,
            "notifications/progress" => {
                let id = params["progressToken"].as_u64();
                if let Some(waiting) = id.and_then(|id| lock(state).waiting.get(&id).map(|it| Arc::clone(&it.alive))) {
                    waiting.notify_one();
                }
            }
            _ => {}
        },
        None => lock(state).odd = Some(excerpt(&String::from_utf8_lossy(&line[..line.len().min(1000)]))),
    }
}
