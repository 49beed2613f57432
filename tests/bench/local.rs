//! Local models: a reply beside the engine's process alone, and the engine beside llama.cpp's server with the same weights.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::measure::{self, Cost, Row, pairs};
use crate::subject::{self, Subject};

/// The default model's file, which is what people have.
const LARGER: &str = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf";
/// What is answered at length.
const LONG: &str = "Tell a very long story of the sea, of a thousand words at least.";
/// How many tokens are written.
const WRITTEN: u32 = 100;

pub(crate) fn rows(count: usize) -> Vec<Row> {
    let models = std::env::var_os("NIETZ_TEST_MODELS");
    let mut rows = alone(&Subject::new("http://127.0.0.1:1/v1"), models.clone(), count.min(5));
    let (Some(models), Some(server)) = (models, std::env::var("NIETZ_TEST_LLAMA_SERVER").ok()) else {
        println!("skipped: the engine beside llama.cpp; set NIETZ_TEST_MODELS and NIETZ_TEST_LLAMA_SERVER");
        return rows;
    };
    let weights = std::path::Path::new(&models).join(LARGER);
    match weights.to_str().filter(|_| weights.is_file()) {
        Some(weights) => rows.extend(beside(weights, &server, count.min(3))),
        None => println!("skipped: the engine beside llama.cpp; NIETZ_TEST_MODELS has no {LARGER}"),
    }
    rows
}

/// A reply of a local model, beside the engine's process alone.
fn alone(subject: &Subject, models: Option<std::ffi::OsString>, count: usize) -> Vec<Row> {
    let Some(weights) = subject.weights(models) else {
        println!(
            "skipped: a local model beside its engine; set NIETZ_TEST_MODELS to a folder with {}",
            subject::WEIGHTS
        );
        return Vec::new();
    };
    let (ours, floors) = pairs(count, || subject.local(), || subject.floor(&["engine", &weights]));
    let rate = |costs: &[Cost]| f64::from(subject::TOKENS) / measure::median_seconds(costs);
    println!(
        "a local model: {:.1} tokens/s, its engine alone {:.1} (start and prompt counted)",
        rate(&ours),
        rate(&floors)
    );
    vec![
        Row::ratio("a reply of a local model, start included", &ours, &floors, 1.1),
        Row::memory_ratio("the same, peak memory", &ours, &floors, 1.1),
    ]
}

/// Both engines take turns, each loaded once, with as many threads. Each prompt begins in another way, so that nothing of it was
/// computed before.
fn beside(weights: &str, server: &str, count: usize) -> [Row; 3] {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).to_string();
    let mut engine = Engine::start(weights, &threads);
    let server = Server::start(server, weights, &threads);
    let mut nth = 0;
    let mut prompt = || {
        nth += 1;
        format!("{nth}. {}", "The sea is wide, and ships of all kinds cross it on long ways. ".repeat(70))
    };
    let mut tokens = 0;
    let (ours, floors): (Vec<Cost>, Vec<Cost>) = (0..=count)
        .map(|_| {
            let (cost, read) = engine.ask(&prompt(), 1);
            tokens = read;
            (cost, server.ask(&prompt(), 1))
        })
        .skip(1)
        .unzip();
    println!("reading {tokens} tokens: {:.1} tokens/s, llama.cpp {:.1}", rate(tokens, &ours), rate(tokens, &floors));
    let reading = Row::ratio("reading a prompt, beside llama.cpp", &ours, &floors, 1.25);
    let (ours, floors): (Vec<Cost>, Vec<Cost>) =
        (0..=count).map(|_| (engine.ask(LONG, WRITTEN).0, server.ask(LONG, WRITTEN))).skip(1).unzip();
    let written = u64::from(WRITTEN);
    println!("writing: {:.1} tokens/s, llama.cpp {:.1}", rate(written, &ours), rate(written, &floors));
    let memory = |process: &Child| [Cost { wall: Duration::ZERO, memory: peak(process.id()) }];
    [
        reading,
        Row::ratio("writing a hundred tokens, beside llama.cpp", &ours, &floors, 1.25),
        Row::memory_ratio("peak memory, beside llama.cpp", &memory(&engine.process), &memory(&server.process), 1.05),
    ]
}

fn rate(tokens: u64, costs: &[Cost]) -> f64 {
    tokens as f64 / measure::median_seconds(costs)
}

/// The most memory that a process has had, in MB.
fn peak(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmHWM")).expect("the system tells it");
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).expect("a number") / 1024.0
}

struct Engine {
    process: Child,
    requests: ChildStdin,
    events: BufReader<ChildStdout>,
    calls: u64,
}

impl Engine {
    fn start(weights: &str, threads: &str) -> Engine {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nietz"));
        command.arg("__engine").env_clear().env("RAYON_NUM_THREADS", threads);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program is there");
        let requests = process.stdin.take().expect("it was asked for");
        let events = BufReader::new(process.stdout.take().expect("it was asked for"));
        let mut engine = Engine { process, requests, events, calls: 0 };
        engine.send(&json!({ "load": { "model": "larger", "path": weights } }));
        engine.until("loaded");
        engine
    }

    fn send(&mut self, request: &Value) {
        writeln!(self.requests, "{request}").expect("it listens");
    }

    fn until(&mut self, what: &str) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.events.read_line(&mut line).expect("it speaks"), 0, "it ended");
            let event: Value = serde_json::from_str(&line).expect("a line is JSON");
            if event == what || event.get(what).is_some() {
                return event;
            }
        }
    }

    /// Returns the cost and the tokens of the prompt. The reply is as long as it may be.
    fn ask(&mut self, prompt: &str, tokens: u32) -> (Cost, u64) {
        self.calls += 1;
        let messages = [json!({ "role": "user", "content": prompt })];
        let request =
            json!({ "model": "local/larger", "messages": messages, "max_tokens": tokens, "temperature": 0.0 });
        let start = Instant::now();
        self.send(&json!({ "chat": { "id": self.calls, "seed": 1, "request": request } }));
        let usage = self.until("done")["done"]["reply"]["usage"].clone();
        let cost = Cost { wall: start.elapsed(), memory: 0.0 };
        assert_eq!(usage["output"], tokens, "{usage}");
        (cost, usage["input"].as_u64().expect("a count"))
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct Server {
    process: Child,
    port: u16,
}

impl Server {
    fn start(program: &str, weights: &str, threads: &str) -> Server {
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port").port();
        let mut command = Command::new(program);
        command.args(["--model", weights, "--host", "127.0.0.1", "--port", &port.to_string()]);
        command.args(["--ctx-size", "16384", "--parallel", "1", "--threads", threads]);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the server is there");
        let server = Server { process, port };
        while !server.post("GET /health", "").is_some_and(|answer| answer.starts_with("HTTP/1.1 200")) {
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    fn post(&self, what: &str, body: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        let length = body.len();
        let head = format!("{what} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n");
        stream.write_all(format!("{head}Content-Type: application/json\r\n\r\n{body}").as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }

    fn ask(&self, prompt: &str, tokens: u32) -> Cost {
        let system = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n";
        let prompt = format!("{system}<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n");
        let body = json!({ "prompt": prompt, "n_predict": tokens, "temperature": 0, "ignore_eos": true, "cache_prompt": false });
        let start = Instant::now();
        let answer = self.post("POST /completion", &body.to_string()).expect("it answers");
        let cost = Cost { wall: start.elapsed(), memory: 0.0 };
        assert!(
            answer.starts_with("HTTP/1.1 200") && answer.contains(&format!("\"tokens_predicted\":{tokens}")),
            "{answer}"
        );
        cost
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
