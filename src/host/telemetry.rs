//! Spans of a run and its model calls, by OpenTelemetry's conventions for generative AI, sent by OTLP over HTTP.
//!
//! Off unless the usual variables name a collector (`OTEL_EXPORTER_OTLP_ENDPOINT` or
//! `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`). The OpenTelemetry library reads those itself, with the headers, the
//! time limit, the sampler and the service's name. What was said stands in no span; only counts and names do.
//!
//! Source: OpenTelemetry semantic conventions 1.41, `gen-ai-spans` and `gen-ai-agent-spans`.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use opentelemetry::trace::{Span as _, SpanKind, Status, TraceContextExt as _, Tracer as _, TracerProvider as _};
use opentelemetry::{Array, Context, KeyValue, StringValue, Value};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, Span};

use crate::error::{Code, Failure, Result};
use crate::host::FrontEnd;
use crate::host::llm;
use crate::model::chat::{ChatReply, ChatRequest, Finish};
use crate::model::event::{EndStatus, Event};
use crate::model::question::Question;

/// How long the end of a run waits for the collector.
const PATIENCE: Duration = Duration::from_secs(5);

/// A front end that makes spans of what it is shown and passes it on.
pub struct Traced {
    behind: Rc<dyn FrontEnd>,
    /// Whether the front end behind shows the requests and replies of models.
    verbose: bool,
    run: String,
    provider: SdkTracerProvider,
    /// Why the last batch did not reach the collector.
    problem: Problem,
    tracer: SdkTracer,
    /// The span of the run; the calls are its children.
    whole: RefCell<Option<Context>>,
    calls: RefCell<HashMap<String, Span>>,
}

/// Tells whether the environment names a collector.
pub fn wanted(environment: &BTreeMap<String, String>) -> bool {
    let value = |name: &str| environment.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
    let off = value("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
        || value("OTEL_TRACES_EXPORTER").is_some_and(|value| value != "otlp");
    let named = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
    !off && named.into_iter().any(|name| value(name).is_some())
}

impl Traced {
    /// Puts spans in front of a front end. The collector is not spoken to yet.
    pub fn open(behind: Rc<dyn FrontEnd>, verbose: bool, run: &str) -> Result<Traced> {
        let unusable = |error: &dyn std::fmt::Display| {
            Failure::new(Code::ConfigInvalid, format!("spans cannot be sent: {error}"))
                .hint("look at the variables that begin with OTEL_EXPORTER_OTLP, or unset them")
        };
        let problem = Problem::default();
        let exporter = SpanExporter::builder().with_http().with_http_client(Sender(Arc::clone(&problem)));
        let exporter = exporter.build().map_err(|error| unusable(&error))?;
        let resource = Resource::builder().build();
        let named = resource
            .iter()
            .any(|(key, value)| key.as_str() == "service.name" && !value.as_str().starts_with("unknown_service"));
        let mut resource = Resource::builder();
        if !named {
            resource = resource.with_service_name("nietz");
        }
        let provider =
            SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource.build()).build();
        Ok(Traced {
            behind,
            verbose,
            run: run.to_owned(),
            tracer: provider.tracer("nietz"),
            provider,
            problem,
            whole: RefCell::default(),
            calls: RefCell::default(),
        })
    }

    fn begin(&self, flow: &str, resumed: bool) {
        let span = self
            .tracer
            .span_builder(format!("invoke_workflow {flow}"))
            .with_kind(SpanKind::Internal)
            .with_attributes([
                KeyValue::new("gen_ai.operation.name", "invoke_workflow"),
                KeyValue::new("gen_ai.workflow.name", flow.to_owned()),
                KeyValue::new("gen_ai.conversation.id", self.run.clone()),
                KeyValue::new("nietz.resumed", resumed),
            ])
            .start(&self.tracer);
        *self.whole.borrow_mut() = Some(Context::new().with_span(span));
    }

    fn call(&self, call: &str, model: &str, label: &str) {
        let (provider, name) = model.split_once('/').unwrap_or(("", model));
        let kind = if provider == "local" { SpanKind::Internal } else { SpanKind::Client };
        let span = self
            .tracer
            .span_builder(format!("chat {name}"))
            .with_kind(kind)
            .with_attributes([
                KeyValue::new("gen_ai.operation.name", "chat"),
                KeyValue::new("gen_ai.provider.name", known(provider)),
                KeyValue::new("gen_ai.request.model", name.to_owned()),
                KeyValue::new("gen_ai.agent.name", label.to_owned()),
                KeyValue::new("gen_ai.conversation.id", self.run.clone()),
            ])
            .start_with_context(&self.tracer, &self.whole.borrow().clone().unwrap_or_default());
        self.calls.borrow_mut().insert(call.to_owned(), span);
    }

    fn sent(span: &mut Span, request: &ChatRequest) {
        span.set_attribute(KeyValue::new("gen_ai.request.stream", true));
        let output = if request.schema.is_some() { "json" } else { "text" };
        span.set_attribute(KeyValue::new("gen_ai.output.type", output));
        if let Some(limit) = request.max_tokens {
            span.set_attribute(KeyValue::new("gen_ai.request.max_tokens", i64::from(limit)));
        }
        if let Some(temperature) = request.temperature {
            span.set_attribute(KeyValue::new("gen_ai.request.temperature", temperature));
        }
    }

    fn received(span: &mut Span, reply: &ChatReply) {
        let finish = match reply.finish {
            Finish::Stop => "stop",
            Finish::ToolCalls => "tool_calls",
            Finish::Length => "length",
        };
        let reasons = Value::Array(Array::String(vec![StringValue::from(finish)]));
        span.set_attribute(KeyValue::new("gen_ai.response.finish_reasons", reasons));
        span.set_attribute(KeyValue::new("gen_ai.response.model", reply.model.clone()));
        let count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        span.set_attribute(KeyValue::new("gen_ai.usage.input_tokens", count(reply.usage.input)));
        span.set_attribute(KeyValue::new("gen_ai.usage.output_tokens", count(reply.usage.output)));
        if reply.usage.cached > 0 {
            let cached = count(reply.usage.cached);
            span.set_attribute(KeyValue::new("gen_ai.usage.cache_read.input_tokens", cached));
        }
        if let Some(cost) = reply.cost {
            span.set_attribute(KeyValue::new("nietz.cost_usd", cost));
        }
    }

    fn end(&self, status: EndStatus, failure: Option<&Failure>) {
        // Calls that were dropped have no end of their own.
        self.calls.borrow_mut().clear();
        let Some(whole) = self.whole.borrow_mut().take() else { return };
        let span = whole.span();
        span.set_attribute(KeyValue::new("nietz.status", format!("{status:?}").to_lowercase()));
        if let Some(failure) = failure {
            span.set_attribute(KeyValue::new("error.type", failure.code.name()));
            span.set_status(Status::error(failure.code.name()));
        }
        span.end();
        drop(whole);
        let late = self.provider.shutdown_with_timeout(PATIENCE).err().map(|error| error.to_string());
        let problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(why) = problem.or(late) {
            let text = format!("the spans of this run did not reach the collector: {why}");
            self.behind.show(&Event::Notice { text });
        }
    }
}

impl FrontEnd for Traced {
    fn show(&self, event: &Event) {
        match event {
            Event::RunStarted { flow, resumed, .. } => self.begin(flow, *resumed),
            Event::CallStarted { call, model, label, .. } => self.call(call, model, label),
            Event::CallSent { call, request } => {
                if let Some(span) = self.calls.borrow_mut().get_mut(call) {
                    Traced::sent(span, request);
                }
            }
            Event::CallRetried { call, attempt, wait_ms, .. } => {
                if let Some(span) = self.calls.borrow_mut().get_mut(call) {
                    let wait = i64::try_from(*wait_ms).unwrap_or(i64::MAX);
                    let attributes = [("attempt", i64::from(*attempt)), ("wait_ms", wait)];
                    span.add_event("retry", attributes.map(|(name, value)| KeyValue::new(name, value)).to_vec());
                }
            }
            Event::CallReceived { call, reply } => {
                if let Some(span) = self.calls.borrow_mut().get_mut(call) {
                    Traced::received(span, reply);
                }
            }
            Event::CallEnded { call, failure, .. } => {
                if let Some(mut span) = self.calls.borrow_mut().remove(call) {
                    if let Some(failure) = failure {
                        span.set_attribute(KeyValue::new("error.type", failure.code.name()));
                        span.set_status(Status::error(failure.code.name()));
                    }
                    span.end();
                }
            }
            Event::RunEnded { status, failure, .. } => self.end(*status, failure.as_ref()),
            _ => {}
        }
        if self.verbose || !matches!(event, Event::CallSent { .. } | Event::CallReceived { .. }) {
            self.behind.show(event);
        }
    }

    fn ask<'a>(&'a self, question: &'a Question) -> LocalBoxFuture<'a, Result<serde_json::Value>> {
        self.behind.ask(question)
    }

    fn answered_before(&self, question: &Question) {
        self.behind.answered_before(question);
    }
}

/// Returns the conventions' name of a provider; others keep their own.
fn known(provider: &str) -> String {
    match provider {
        "gemini" => "gcp.gemini",
        "xai" => "x_ai",
        "local" => "nietz",
        other => other,
    }
    .to_owned()
}

/// Sends the library's requests, on the thread that the library has for them.
#[derive(Debug)]
struct Sender(Problem);

type Problem = Arc<Mutex<Option<String>>>;

#[async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, HttpError> {
        let address = request.uri().clone();
        let answer = send(request);
        let problem = match &answer {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("{address} answered {}", answer.status())),
            Err(error) => Some(format!("{address}: {error}")),
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = problem;
        answer
    }
}

fn send(request: http::Request<Bytes>) -> Result<http::Response<Bytes>, HttpError> {
    // The library's thread has no runtime; each batch gets a small one, and a connection of its own.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let client = llm::http_client()?;
    runtime.block_on(async {
        let send = async {
            let response = client.execute(request.try_into()?).await?;
            let status = response.status();
            let headers = response.headers().clone();
            let mut answer = http::Response::new(response.bytes().await?);
            *answer.status_mut() = status;
            *answer.headers_mut() = headers;
            Ok(answer)
        };
        tokio::time::timeout(PATIENCE, send).await?
    })
}
