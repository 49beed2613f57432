//! A client of the Model Context Protocol: its list of tools, and what the protocol adds to an effect.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::measure::{Cost, Row, pairs};
use crate::subject::Subject;

/// The flows of the folder, and the questions of one run.
const FLOWS: usize = 50;
const QUESTIONS: usize = 200;

const ASKS: &str = r#"
local nietz = require("@nietz")
local ui = require("@nietz/ui")
return nietz.flow { name = "asks", summary = "Asks", run = function()
  for number = 1, 200 do ui.ask { id = "q", prompt = "Question " .. number .. "?" } end
  return true
end }
"#;

pub(crate) fn rows(count: usize) -> Vec<Row> {
    let subject = Subject::new("http://127.0.0.1:1/v1");
    for number in 0..FLOWS {
        let source = ASKS.replace("\"asks\"", &format!("\"asks-{number}\""));
        std::fs::write(subject.path(&format!("flows/asks-{number}.lua")), source).expect("a file");
    }
    std::fs::write(subject.path("flows/asks.lua"), ASKS).expect("a file");
    let trusted = subject.nietz().args(["trust", "add", "."]).stdout(Stdio::null()).status();
    assert!(trusted.is_ok_and(|status| status.success()));
    let listed = || timed(|| assert!(Client::start(&subject).tools() >= FLOWS));
    let (ours, _) = pairs(count, listed, || subject.floor(&["sleep", "0"]));
    let mut rows = vec![Row::wall(&format!("start of nietz mcp to its list of {FLOWS} tools"), &ours, 50.0)];
    let (ours, floors) =
        pairs(count.min(5), || timed(|| Client::start(&subject).answers()), || timed(|| alone(&subject)));
    let added = ours.iter().zip(&floors).map(|(ours, floor)| Cost {
        wall: ours.wall.saturating_sub(floor.wall) / u32::try_from(QUESTIONS).expect("it is small"),
        memory: 0.0,
    });
    rows.push(Row::wall("what the protocol adds to a question", &added.collect::<Vec<_>>(), 5.0));
    rows
}

fn timed(what: impl FnOnce()) -> Cost {
    let start = Instant::now();
    what();
    Cost { wall: start.elapsed(), memory: 0.0 }
}

/// A program with which lines of JSON are exchanged.
struct Client {
    child: std::process::Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Client {
    fn of(command: &mut Command) -> Client {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let stdin = child.stdin.take().expect("it was asked for");
        let stdout = BufReader::new(child.stdout.take().expect("it was asked for"));
        Client { child, stdin, stdout }
    }

    fn start(subject: &Subject) -> Client {
        let mut client = Client::of(subject.nietz().arg("mcp"));
        client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "bench", "version": "1" },
        } }));
        client.read();
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn send(&mut self, message: &Value) {
        self.stdin.write_all(format!("{message}\n").as_bytes()).expect("it listens");
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("it can be read");
        serde_json::from_str(&line).expect("a line is JSON")
    }

    fn tools(mut self) -> usize {
        self.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {} }));
        let listed = self.read();
        self.end();
        listed["result"]["tools"].as_array().map_or(0, Vec::len)
    }

    fn answers(mut self) {
        let call = json!({ "name": "flow_asks", "arguments": {} });
        self.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call }));
        let mut asked = 0;
        loop {
            let message = self.read();
            if message["method"] != "elicitation/create" {
                break;
            }
            asked += 1;
            let result = json!({ "action": "accept", "content": { "answer": "an answer" } });
            self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
        }
        assert_eq!(asked, QUESTIONS);
        self.end();
    }

    fn end(self) {
        let Client { mut child, stdin, .. } = self;
        drop(stdin);
        child.wait().expect("it ends");
    }
}

/// The same questions and answers without a protocol.
fn alone(subject: &Subject) {
    let mut client = Client::of(subject.nietz().args(["run", "asks", "--json"]));
    loop {
        let event = client.read();
        match event["type"].as_str() {
            Some("asked") => client.send(&json!({ "effect": event["effect"], "answer": "an answer" })),
            Some("run_ended") => break,
            _ => {}
        }
    }
    client.end();
}
