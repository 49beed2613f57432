//! `machi-debate CALLS URL`: four personas in turn, each prompt all that was said so far, joined; one synced journal line a call.

use machi_workflow::{AgentResult, Journal, WorkflowHostRequest, WorkflowOutcome, WorkflowRunParams, run_workflow};
use serde_json::{Value, json};

const SCRIPT: &str = r#"
let names = ["architect", "security", "product", "tester"];
let said = "How should a checkout survive a payment outage?";
for at in 0..args.calls {
  let name = names[at % 4];
  let reply = agent(said, #{ label: name });
  said += "\n" + name + ": " + reply.output;
}
complete(said.len);
"#;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let [_, calls, url] = words.as_slice() else { panic!("machi-debate CALLS URL") };
    let calls: u64 = calls.parse().expect("a number of calls");
    let journal = format!("machi-{}.jsonl", std::process::id());
    let (host_tx, mut requests) = tokio::sync::mpsc::unbounded_channel();
    let params = WorkflowRunParams {
        script: SCRIPT.to_owned(),
        args: json!({ "calls": calls }),
        journal: Journal::new(Some(journal.clone().into())),
        host_tx,
        cancel: tokio_util::sync::CancellationToken::new(),
        max_ops: WorkflowRunParams::DEFAULT_MAX_OPS,
    };
    let script = std::thread::spawn(move || run_workflow(params));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = client();
        while let Some(request) = requests.recv().await {
            match request {
                WorkflowHostRequest::ReserveAgentCalls { reply, .. } | WorkflowHostRequest::ReleaseAgentCalls { reply, .. } => {
                    reply.send(Ok(())).expect("the script waits for it");
                }
                WorkflowHostRequest::SpawnAgent { opts, reply } => {
                    let system = format!("You are the {}.", opts.label.unwrap_or_default());
                    let text = send(&client, url, &system, &opts.prompt).await;
                    let result = AgentResult {
                        agent_id: String::new(),
                        success: true,
                        output: json!(text),
                        cancelled: false,
                        tokens_used: 0,
                        duration_ms: 0,
                    };
                    reply.send(Ok(result)).expect("the script waits for it");
                }
                other => panic!("the script asks for nothing else: {other:?}"),
            }
        }
    });
    let outcome = script.join().expect("the script ends");
    assert!(matches!(outcome, WorkflowOutcome::Completed { .. }), "{outcome:?}");
    println!("{}", std::fs::metadata(&journal).expect("it has a journal").len());
    std::fs::remove_file(&journal).expect("it can be removed");
}

fn client() -> reqwest::Client {
    let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let tls = tls.expect("versions").with_root_certificates(roots).with_no_client_auth();
    reqwest::Client::builder().tls_backend_preconfigured(tls).build().expect("a client")
}

async fn send(client: &reqwest::Client, url: &str, system: &str, prompt: &str) -> String {
    let messages = json!([{ "role": "system", "content": system }, { "role": "user", "content": prompt }]);
    let body = json!({ "model": "gpt-4.1", "messages": messages, "stream": true, "stream_options": { "include_usage": true } });
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
