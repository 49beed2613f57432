//! The promise: with a collector named by the usual variables, a run and its calls are spans by OpenTelemetry's
//! conventions; without one nothing is sent; and `--verbose` shows requests and replies without secrets.

use insta::assert_snapshot;
use serde_json::Value;

use crate::support::env::{Env, KEY};
use crate::support::model_server::{ModelServer, Response};

const CHATTER: &str = include_str!("../support/flows/chatter.lua");

/// A collector on loopback.
fn collector() -> ModelServer {
    ModelServer::start(|_| Response::plain(200, "{}").header("content-type", "application/json"))
}

fn traced(server: &ModelServer, collector: &ModelServer) -> Env {
    Env::with(server)
        .flow("chatter", CHATTER)
        .config("models: {retry: {attempts: 2, base_delay_ms: 0}, prices: {openai/test: {input: 2, output: 8}}}\n")
        .var("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url().trim_end_matches("/v1"))
        .var("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
}

/// The spans that came, each as its name, its attributes in order, its events, its status and whether it has a
/// parent.
fn spans(collector: &ModelServer) -> Vec<String> {
    let mut out = Vec::new();
    for request in collector.requests() {
        assert_eq!(request.path, "/v1/traces");
        for scope in request.body["resourceSpans"].as_array().expect("spans by resource") {
            let service = attributes(&scope["resource"]["attributes"]);
            assert!(service.contains(&"service.name=nietz".to_owned()), "{service:?}");
            for span in scope["scopeSpans"][0]["spans"].as_array().expect("spans") {
                let parent =
                    if span["parentSpanId"].as_str().unwrap_or_default().is_empty() { "root" } else { "child" };
                let mut lines = vec![format!("{} ({parent})", span["name"].as_str().expect("a name"))];
                lines.extend(attributes(&span["attributes"]));
                for event in span["events"].as_array().into_iter().flatten() {
                    lines.push(format!("event {}: {}", event["name"], attributes(&event["attributes"]).join(", ")));
                }
                if let Some(message) = span["status"]["message"].as_str().filter(|message| !message.is_empty()) {
                    lines.push(format!("status {message}"));
                }
                out.push(lines.join("\n  "));
            }
        }
    }
    out
}

fn attributes(list: &Value) -> Vec<String> {
    let value = |value: &Value| value.as_object().and_then(|one| one.values().next()).map(Value::to_string);
    let mut out: Vec<String> = list
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| {
            let shown = value(&one["value"]).unwrap_or_default().replace('"', "");
            format!("{}={shown}", one["key"].as_str().expect("a key"))
        })
        .collect();
    out.sort();
    out
}

#[test]
fn a_run_and_its_calls_are_spans_by_the_conventions() {
    let server = ModelServer::start(|request| match request.number {
        1 => Response::error(500, "oops"),
        _ => Response::text("hello").usage(50, 10).reasoning(7),
    });
    let collector = collector();
    traced(&server, &collector).run(["chatter", "--effort", "low"]).go().exits(0);
    assert_snapshot!(spans(&collector).join("\n"), @r#"
    chat test (child)
      gen_ai.agent.name=model
      gen_ai.conversation.id=r1
      gen_ai.operation.name=chat
      gen_ai.output.type=text
      gen_ai.provider.name=openai
      gen_ai.request.model=test
      gen_ai.request.stream=true
      gen_ai.response.finish_reasons={values:[{stringValue:stop}]}
      gen_ai.response.model=test
      gen_ai.usage.input_tokens=50
      gen_ai.usage.output_tokens=10
      gen_ai.usage.reasoning.output_tokens=7
      nietz.cost_usd=0.00018
      nietz.effort=low
      event "retry": attempt=2, wait_ms=0
    invoke_workflow chatter (root)
      gen_ai.conversation.id=r1
      gen_ai.operation.name=invoke_workflow
      gen_ai.workflow.name=chatter
      nietz.resumed=false
      nietz.status=done
    "#);
}

#[test]
fn a_failure_is_told_by_its_code_and_nothing_that_was_said_is_sent() {
    let server = ModelServer::start(|_| Response::error(400, "hello is not allowed"));
    let collector = collector();
    traced(&server, &collector).run(["chatter"]).go().exits(1);
    let spans = spans(&collector).join("\n");
    assert_eq!(spans.matches("error.type=model-refused").count(), 2, "{spans}");
    let sent = collector.requests().iter().map(|request| request.body.to_string()).collect::<String>();
    assert!(!sent.contains("hello") && !sent.contains(KEY), "{sent}");
}

#[test]
fn a_collector_that_is_not_there_costs_a_notice_and_not_the_run() {
    let server = ModelServer::start(|_| Response::text("hello"));
    let env = Env::with(&server).flow("chatter", CHATTER).var("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1");
    let ended = env.run(["chatter"]).go().exits(0);
    let notices = ended.of_type("notice");
    assert!(notices.iter().any(|notice| notice["text"].as_str().unwrap().contains("collector")), "{notices:?}");
}

#[test]
fn without_the_variables_or_with_the_switch_nothing_is_sent() {
    let server = ModelServer::start(|_| Response::text("hello"));
    let collector = collector();
    traced(&server, &collector).var("OTEL_SDK_DISABLED", "true").run(["chatter"]).go().exits(0);
    traced(&server, &collector).var("OTEL_TRACES_EXPORTER", "none").run(["chatter"]).go().exits(0);
    assert_eq!(collector.calls(), 0);
}

#[test]
fn verbose_shows_requests_and_replies() {
    let server = ModelServer::start(|_| Response::text("hello\nto you").usage(5, 3));
    let env = Env::with(&server).flow("chatter", CHATTER);
    let ended = env.nietz(["run", "chatter", "--model", "openai/test", "--verbose"]).go().exits(0);
    let shown = ended.stderr.lines().take_while(|line| !line.starts_with("done")).collect::<Vec<_>>().join("\n");
    assert_snapshot!(shown, @r"
    → openai/test
      user: hello
    ← test, done, 5 tokens in, 3 out
      text: hello
        to you
    ");
    let ended = env.var("NIETZ_RUN", "r2").run(["chatter", "--verbose"]).go().exits(0);
    assert_eq!(ended.of_type("call_sent")[0]["request"]["messages"][0]["content"], "hello");
    assert_eq!(ended.of_type("call_received")[0]["reply"]["text"], "hello\nto you");
}
