//! A model service for tests: a small HTTP server on a loopback port that does as it is told.
//!
//! It speaks both wires (chat completions and Anthropic's messages), streams, and can misbehave in each
//! way that real services do. A script, given the request, returns what to answer:
//!
//! ```ignore
//! let server = ModelServer::start(|request| match request.number {
//!     1 => Response::error(429, "slow down").header("retry-after", "1"),
//!     _ => Response::text(format!("you said {}", request.prompt())),
//! });
//! // … point OPENAI_BASE_URL or ANTHROPIC_BASE_URL at server.url() …
//! assert_eq!(server.calls(), 2);
//! ```
//!
//! It stands on std alone and answers each connection on a thread of its own, so that it works beside any
//! runtime, in unit tests, in the integration binary, in benches, and for a process that is killed half-way.
//! Nothing here sleeps to wait for something: [`Gate`] holds a reply until a test opens it.

#![allow(dead_code, unreachable_pub)] // Each place that includes this file uses a part of it.

// The paths are said, because this file is included from different places.
#[path = "model_server/cache.rs"]
pub mod cache;
#[path = "model_server/http.rs"]
mod http;
#[path = "model_server/strict/mod.rs"]
pub mod strict;
#[path = "model_server/wire.rs"]
mod wire;

use std::collections::BTreeMap;
use std::io::{self, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A running server. It stops when it is dropped.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    script: Box<dyn Fn(&Request) -> Response + Send + Sync>,
    requests: Mutex<Vec<Request>>,
    arrived: Condvar,
    stopping: AtomicBool,
    connections: AtomicUsize,
    /// Calls that are being answered now, and the most there were at once.
    open: AtomicUsize,
    most: AtomicUsize,
}

/// One call, as it came.
#[derive(Clone, Debug)]
pub struct Request {
    /// Which call this is, from 1, over all connections.
    pub number: usize,
    pub method: String,
    pub path: String,
    /// By names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body as it came, and as JSON; null if it is none.
    pub raw: Vec<u8>,
    pub body: Value,
}

/// The wires that are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    OpenAi,
    Anthropic,
}

/// What to answer. Start with a constructor, then add what it should do besides.
#[derive(Clone, Debug)]
pub struct Response {
    kind: Kind,
    headers: Vec<(String, String)>,
    delay: Duration,
    gate: Option<Gate>,
    piece: Option<usize>,
    ending: Ending,
    answered: Option<Answered>,
}

/// What is done when a response is given.
#[derive(Clone)]
struct Answered(Arc<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for Answered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Answered")
    }
}

#[derive(Clone, Debug)]
enum Kind {
    /// A reply of a model, put into the wire of the request.
    Reply(wire::Reply),
    /// A status and a body, as they are.
    Plain { status: u16, body: Vec<u8> },
}

/// How a response stops.
#[derive(Clone, Debug)]
enum Ending {
    /// As it should.
    Whole,
    /// Whole, but after so many bytes of the body it waits until the gate is opened.
    Held(usize, Gate),
    /// The connection breaks after so many bytes of the body.
    Cut(usize),
    /// Nothing more comes after so many bytes of the body, until the client goes away.
    Silent(usize),
}

/// Holds responses back until it is opened.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl ModelServer {
    /// Starts a server on a free port of the loopback.
    pub fn start(script: impl Fn(&Request) -> Response + Send + Sync + 'static) -> ModelServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared {
            script: Box::new(script),
            requests: Mutex::default(),
            arrived: Condvar::new(),
            stopping: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        });
        let accepting = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if accepting.stopping.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                accepting.connections.fetch_add(1, Ordering::SeqCst);
                let shared = accepting.clone();
                // A client that goes away is no matter of the server's.
                std::thread::spawn(move || serve(stream, &shared).ok());
            }
        });
        ModelServer { address, shared }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL, as `OPENAI_BASE_URL` wants it; Anthropic's paths work below it as well.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// How many calls have come.
    pub fn calls(&self) -> usize {
        self.requests().len()
    }

    /// How many calls asked a model, and not for the list of models.
    pub fn chats(&self) -> usize {
        self.requests().iter().filter(|request| request.method == "POST").count()
    }

    /// The calls that have come, in their order.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().expect("no script panics while it is held").clone()
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// The most calls that were being answered at once.
    pub fn most_at_once(&self) -> usize {
        self.shared.most.load(Ordering::SeqCst)
    }

    /// Blocks until so many calls have come; `false` if they do not within the limit. For tests whose
    /// client is another process or another thread.
    pub fn wait_for_calls(&self, calls: usize, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut requests = self.shared.requests.lock().expect("no script panics while it is held");
        while requests.len() < calls {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { return false };
            requests = self.shared.arrived.wait_timeout(requests, left).expect("as above").0;
        }
        true
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        TcpStream::connect(self.address).ok();
    }
}

impl Request {
    /// The text of the last message.
    pub fn prompt(&self) -> String {
        let content = self.body["messages"].as_array().and_then(|all| all.last()).map(|last| &last["content"]);
        match content {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(blocks)) => {
                blocks.iter().filter_map(|block| block["text"].as_str().or(block["content"].as_str())).collect()
            }
            _ => String::new(),
        }
    }

    /// The system prompt; empty if there is none.
    pub fn system(&self) -> String {
        let first = &self.body["messages"][0];
        let system = if first["role"] == "system" { &first["content"] } else { &self.body["system"] };
        // A prompt that the server is to cache is a list of one.
        system.as_str().or(system[0]["text"].as_str()).unwrap_or_default().to_owned()
    }

    /// A header; empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// What was said, by whom: `user`, `assistant` or `tool`, with the texts and results of tools, on either wire.
    pub fn turns(&self) -> Vec<(String, String)> {
        let text = |content: &Value| match content {
            Value::String(text) => text.clone(),
            Value::Array(blocks) => {
                blocks.iter().filter_map(|block| block["text"].as_str().or(block["content"].as_str())).collect()
            }
            _ => String::new(),
        };
        let messages = self.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let turn =
            |message: &Value| (message["role"].as_str().unwrap_or_default().to_owned(), text(&message["content"]));
        messages.iter().map(turn).filter(|(role, _)| role != "system").collect()
    }

    /// The JSON Schema of the reply, in whichever way the wire has for that; null where none is asked for.
    pub fn schema(&self) -> Value {
        let tools = self.body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        let by_tool = tools.iter().find(|tool| tool["name"] == wire::REPLY_TOOL).map(|tool| &tool["input_schema"]);
        let native =
            [&self.body["response_format"]["json_schema"]["schema"], &self.body["output_config"]["format"]["schema"]];
        let system = self.system();
        let spelled =
            || system.rsplit_once("no code fence.\n").and_then(|(_, schema)| serde_json::from_str(schema).ok());
        let found = native.into_iter().find(|schema| !schema.is_null()).or(by_tool).cloned();
        found.or_else(spelled).unwrap_or_default()
    }

    /// Which wire the call speaks, by its path.
    pub fn wire(&self) -> Wire {
        if self.path.ends_with("/messages") { Wire::Anthropic } else { Wire::OpenAi }
    }

    /// Tells whether a structured reply is wanted, in whichever way the wire has for that.
    pub fn wants_json(&self) -> bool {
        !self.schema().is_null()
    }
}

impl Response {
    /// A reply with this text, streamed in a few pieces, with a count of tokens. Where a structured reply
    /// is asked for by a tool, the text becomes the arguments of that tool.
    pub fn text(text: impl Into<String>) -> Response {
        Response::of(Kind::Reply(wire::Reply::new(text.into())))
    }

    /// An error with a body of the usual form.
    pub fn error(status: u16, message: &str) -> Response {
        let body = serde_json::json!({"type": "error", "error": {"message": message, "type": "test_error"}});
        Response::plain(status, body.to_string()).header("content-type", "application/json")
    }

    /// A status with a body, as they are.
    pub fn plain(status: u16, body: impl Into<Vec<u8>>) -> Response {
        Response::of(Kind::Plain { status, body: body.into() })
    }

    /// A stream with this text as its body, for what no real service would send.
    pub fn stream(body: impl Into<Vec<u8>>) -> Response {
        Response::plain(200, body).header("content-type", "text/event-stream")
    }

    /// A redirect to another address.
    pub fn redirect(to: &str) -> Response {
        Response::plain(307, "").header("location", to)
    }

    /// Says nothing at all until the client goes away.
    pub fn silence() -> Response {
        Response::stream("").silent_after(0)
    }

    fn of(kind: Kind) -> Response {
        let (headers, delay, ending) = (Vec::new(), Duration::ZERO, Ending::Whole);
        Response { kind, headers, delay, gate: None, piece: None, ending, answered: None }
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Response {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Takes this long before it answers, as a model does that thinks.
    pub fn delay(mut self, delay: Duration) -> Response {
        self.delay = delay;
        self
    }

    /// Answers when the gate is open.
    pub fn held_by(mut self, gate: &Gate) -> Response {
        self.gate = Some(gate.clone());
        self
    }

    /// Waits after so many bytes of the body until the gate is open.
    pub fn held_after(mut self, bytes: usize, gate: &Gate) -> Response {
        self.ending = Ending::Held(bytes, gate.clone());
        self
    }

    /// Sends the body in pieces of so many bytes, wherever that cuts it: also within a character.
    pub fn in_pieces(mut self, bytes: usize) -> Response {
        self.piece = Some(bytes.max(1));
        self
    }

    /// Breaks the connection after so many bytes of the body.
    pub fn cut_after(mut self, bytes: usize) -> Response {
        self.ending = Ending::Cut(bytes);
        self
    }

    /// Goes silent after so many bytes of the body.
    pub fn silent_after(mut self, bytes: usize) -> Response {
        self.ending = Ending::Silent(bytes);
        self
    }

    /// Adds a tool call, whose arguments come in pieces.
    pub fn tool_call(self, id: &str, name: &str, arguments: &str) -> Response {
        self.reply(|reply| reply.calls.push([id.to_owned(), name.to_owned(), arguments.to_owned()]))
    }

    /// Sets the count of tokens.
    pub fn usage(self, input: u64, output: u64) -> Response {
        self.reply(|reply| reply.usage = (input, output))
    }

    /// Sets the count of input tokens, and how many of them were read from a cache and written to it.
    pub fn counted(self, input: u64, read: u64, written: u64) -> Response {
        self.reply(|reply| {
            reply.usage.0 = input;
            reply.cache = Some((read, written));
        })
    }

    /// Does something when the response is given as it should be, before its first byte.
    fn when_answered(mut self, answered: impl Fn() + Send + Sync + 'static) -> Response {
        self.answered = Some(Answered(Arc::new(answered)));
        self
    }

    /// Sets how much of the reply's count was thought.
    pub fn reasoning(self, tokens: u64) -> Response {
        self.reply(|reply| reply.reasoning = tokens)
    }

    /// Says that the limit of tokens cut the reply.
    pub fn too_long(self) -> Response {
        self.reply(|reply| reply.too_long = true)
    }

    /// Leaves out whatever says that the reply is over, and ends the stream in good order nevertheless.
    pub fn without_end(self) -> Response {
        self.reply(|reply| reply.without_end = true)
    }

    /// Breaks off with an error event after the text.
    pub fn then_error(self, kind: &str, message: &str) -> Response {
        self.reply(|reply| reply.error = Some((kind.to_owned(), message.to_owned())))
    }

    fn reply(mut self, change: impl FnOnce(&mut wire::Reply)) -> Response {
        if let Kind::Reply(reply) = &mut self.kind {
            change(reply);
        }
        self
    }
}

impl Gate {
    /// Lets everything through that waits or will come.
    pub fn open(&self) {
        *self.0.0.lock().expect("nobody panics while it is held") = true;
        self.0.1.notify_all();
    }

    /// Tells whether it was opened.
    pub fn is_open(&self) -> bool {
        *self.0.0.lock().expect("nobody panics while it is held")
    }

    fn wait(&self) {
        let open = self.0.0.lock().expect("nobody panics while it is held");
        drop(self.0.1.wait_while(open, |open| !*open).expect("as above"));
    }
}

/// Answers the calls of one connection, one after the other.
fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some(mut request) = http::read(&mut reader)? {
        // Counted until the last byte is sent, and not for as long as the connection lives.
        let now = shared.open.fetch_add(1, Ordering::SeqCst) + 1;
        shared.most.fetch_max(now, Ordering::SeqCst);
        {
            let mut requests = shared.requests.lock().expect("no script panics while it is held");
            request.number = requests.len() + 1;
            requests.push(request.clone());
            shared.arrived.notify_all();
        }
        let response = (shared.script)(&request);
        if let Some(gate) = &response.gate {
            gate.wait();
        }
        if !response.delay.is_zero() {
            std::thread::sleep(response.delay);
        }
        if let (Ending::Whole, Some(answered)) = (&response.ending, &response.answered) {
            (answered.0)();
        }
        let goes_on = http::write(&stream, &request, &response);
        shared.open.fetch_sub(1, Ordering::SeqCst);
        if !goes_on? {
            return Ok(());
        }
    }
    Ok(())
}
