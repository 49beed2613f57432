//! The floors: the same work with nothing around it.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

pub(crate) fn main(words: &[String]) {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["calls", count, url] => calls(count.parse().expect("a number"), url, false),
        ["joined", count, url] => calls(count.parse().expect("a number"), url, true),
        ["nothing", _] => {}
        ["parse", path, _] => parse(path),
        ["engine", weights, _] => engine(weights),
        ["sleep", millis, _] => std::thread::sleep(Duration::from_millis(millis.parse().expect("a number"))),
        ["yaml", folder] => crate::memory::floor(folder),
        ["sessions", folder] => crate::profile::floor(folder),
        ["journals", folder, _] => crate::lists::floor(folder),
        ["git", rest @ ..] => crate::attempts::floor(rest),
        other => panic!("no floor {other:?}"),
    }
}

/// The calls of the debate with reqwest, as messages or joined in one, and one synced line for each reply.
fn calls(count: usize, url: &str, joined: bool) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let tls = tls.expect("versions").with_root_certificates(roots).with_no_client_auth();
        let client = reqwest::Client::builder().tls_backend_preconfigured(tls).build().expect("a client");
        let mut file = tempfile::tempfile_in(".").expect("a file");
        let mut messages = vec![json!({ "role": "user", "content": "How should a checkout survive a payment outage?" })];
        for call in 0..count {
            let name = ["architect", "security", "product", "tester"][call % 4];
            let mut all = vec![json!({ "role": "system", "content": format!("You are the {name}.") })];
            match joined {
                true => {
                    let said: Vec<&str> = messages.iter().filter_map(|said| said["content"].as_str()).collect();
                    all.push(json!({ "role": "user", "content": said.join("\n") }));
                }
                false => all.extend(messages.iter().cloned()),
            }
            let body = json!({ "model": "gpt-4.1", "messages": all, "stream": true, "stream_options": { "include_usage": true } });
            let text = send(&client, url, &body).await;
            writeln!(file, "{}", json!({ "call": call, "text": text })).expect("written");
            file.sync_data().expect("synced");
            messages.push(json!({ "role": "user", "content": format!("{name}: {text}") }));
        }
    });
}

async fn send(client: &reqwest::Client, url: &str, body: &Value) -> String {
    let mut response = client
        .post(format!("{url}/chat/completions"))
        .header("authorization", "Bearer a-key-that-opens-nothing")
        .header("content-type", "application/json")
        .body(body.to_string())
        .send()
        .await
        .expect("the server answers");
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.expect("the stream goes on") {
        bytes.extend_from_slice(&chunk);
    }
    let text = String::from_utf8(bytes).expect("text");
    let datas = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    let deltas = datas.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    deltas.filter_map(|event| event["choices"][0]["delta"]["content"].as_str().map(str::to_owned)).collect()
}

/// The reply of a local model from the process with the engine in it, and nothing else.
fn engine(weights: &str) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_nietz"));
    let threads = std::env::var("RAYON_NUM_THREADS").unwrap_or_else(|_| "1".to_owned());
    command.arg("__engine").env_clear().env("RAYON_NUM_THREADS", &threads).env("CANDLE_NUM_THREADS", &threads);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program is there");
    let mut orders = child.stdin.take().expect("it was asked for");
    let request = json!({
        "model": "local/smollm2-135m", "system": "You tell stories.", "max_tokens": 200, "temperature": 0.0,
        "messages": [{ "content": "Tell a very long story of the sea.", "role": "user" }],
    });
    writeln!(orders, "{}", json!({ "load": { "model": "smollm2-135m", "path": weights } })).expect("it listens");
    writeln!(orders, "{}", json!({ "chat": { "id": 1, "seed": 1, "request": request } })).expect("it listens");
    let news = BufReader::new(child.stdout.take().expect("it was asked for"));
    let done =
        news.lines().map(|line| line.expect("it speaks")).find(|line| line.starts_with("{\"done\"")).expect("it ends");
    let reply: Value = serde_json::from_str(&done).expect("a line is JSON");
    assert_eq!(reply["done"]["reply"]["usage"]["output"], crate::subject::TOKENS, "{done}");
    drop(orders);
    child.wait().expect("it ends with its input");
}

/// Reads a journal and parses each of its lines.
fn parse(path: &str) {
    let text = std::fs::read_to_string(path).expect("the journal is there");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    assert!(!lines.is_empty());
}
