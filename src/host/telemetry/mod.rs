//! Records spans of a run and its model calls by OpenTelemetry's conventions for generative AI, and sends them by OTLP
//! over HTTP.
//!
//! It is off unless the usual variables name a collector (`OTEL_EXPORTER_OTLP_ENDPOINT` or
//! `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`); `sender` reads the others: headers, time limit, sampler, the service's name.
//! Spans hold only counts and names, never the text of a conversation.
//!
//! Source: OpenTelemetry semantic conventions 1.41, `gen-ai-spans` and `gen-ai-agent-spans`.

mod otlp;
mod sender;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::LocalBoxFuture;

use self::otlp::{AttributeValue, Attributes, Span, SpanEvent, SpanKind};
use self::sender::{ExportSettings, Sender};
use crate::error::{Failure, Result};
use crate::host::FrontEnd;
use crate::model::chat::{ChatReply, ChatRequest, FinishReason};
use crate::model::event::{EndStatus, Event};
use crate::model::question::{AnsweredBy, Question};

/// How long the end of a run waits for the collector.
const PATIENCE: Duration = Duration::from_secs(5);

/// A front end that records spans of the events that it gets, and passes the events on.
pub(crate) struct TracingFrontEnd {
    inner: Rc<dyn FrontEnd>,
    /// Whether the inner front end shows the requests and replies of models.
    verbose: bool,
    run: String,
    trace: [u8; 16],
    /// `None` if the sampler leaves this run out, and once the run has ended.
    sender: RefCell<Option<Sender>>,
    /// The span of the run; the calls are its children.
    run_span: RefCell<Option<Span>>,
    calls: RefCell<HashMap<String, Span>>,
}

/// Tells whether the environment names a collector.
pub(crate) fn is_enabled(environment: &BTreeMap<String, String>) -> bool {
    let value = |name: &str| environment.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
    let disabled = value("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
        || value("OTEL_TRACES_EXPORTER").is_some_and(|value| value != "otlp");
    let endpoints = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
    !disabled && endpoints.into_iter().any(|name| value(name).is_some())
}

impl TracingFrontEnd {
    /// Wraps a front end. This does not contact the collector yet. All processes of a run have one trace, on whichever machine, and so
    /// have the runs that it begins.
    ///
    /// # Errors
    ///
    /// `config-invalid` if an `OTEL_…` variable has a value that cannot be used.
    pub(crate) fn open(
        inner: Rc<dyn FrontEnd>,
        verbose: bool,
        (run, trace): (&str, [u8; 16]),
        environment: &BTreeMap<String, String>,
    ) -> Result<TracingFrontEnd> {
        let settings = ExportSettings::read(environment)?;
        // The last bytes of the id are spread evenly, so the sampled share of all ids lies below the ratio.
        let random = f64::from(u32::from_be_bytes([trace[12], trace[13], trace[14], trace[15]])) / f64::from(u32::MAX);
        let sampled = settings.sample_ratio >= 1.0 || random < settings.sample_ratio;
        Ok(TracingFrontEnd {
            inner,
            verbose,
            run: run.to_owned(),
            trace,
            sender: RefCell::new(sampled.then(|| Sender::start(settings))),
            run_span: RefCell::default(),
            calls: RefCell::default(),
        })
    }

    fn span(&self, name: String, kind: SpanKind, attributes: Vec<(&str, AttributeValue)>) -> Span {
        let id: [u8; 16] = uuid::Uuid::new_v4().into_bytes();
        let start = now();
        Span {
            trace: self.trace,
            id: std::array::from_fn(|at| id[at]),
            parent: self.run_span.borrow().as_ref().map(|run_span| run_span.id),
            name,
            kind,
            start,
            end: start,
            attributes: to_attributes(attributes),
            events: Vec::new(),
            error: None,
        }
    }

    fn finish_span(&self, mut span: Span) {
        span.end = now();
        if let Some(sender) = &*self.sender.borrow() {
            sender.enqueue(span);
        }
    }

    fn begin(&self, flow: &str, resumed: bool) {
        let attributes = vec![
            ("gen_ai.operation.name", "invoke_workflow".into()),
            ("gen_ai.workflow.name", flow.into()),
            ("gen_ai.conversation.id", self.run.as_str().into()),
            ("nietz.resumed", resumed.into()),
        ];
        let span = self.span(format!("invoke_workflow {flow}"), SpanKind::Internal, attributes);
        *self.run_span.borrow_mut() = Some(span);
    }

    fn call(&self, call: &str, model: &str, label: &str) {
        let (provider, name) = model.split_once('/').unwrap_or(("", model));
        let kind = if provider == "local" { SpanKind::Internal } else { SpanKind::Client };
        let attributes = vec![
            ("gen_ai.operation.name", "chat".into()),
            ("gen_ai.provider.name", provider_name(provider).into()),
            ("gen_ai.request.model", name.into()),
            ("gen_ai.agent.name", label.into()),
            ("gen_ai.conversation.id", self.run.as_str().into()),
        ];
        let span = self.span(format!("chat {name}"), kind, attributes);
        self.calls.borrow_mut().insert(call.to_owned(), span);
    }

    fn record_request(span: &mut Span, request: &ChatRequest) {
        span.set("gen_ai.request.stream", true);
        let output = if request.schema.is_some() { "json" } else { "text" };
        span.set("gen_ai.output.type", output);
        if let Some(limit) = request.max_tokens {
            span.set("gen_ai.request.max_tokens", i64::from(limit));
        }
        if let Some(effort) = request.effort {
            span.set("nietz.effort", effort.name());
        }
        if let Some(temperature) = request.temperature {
            span.set("gen_ai.request.temperature", temperature);
        }
        if let Some(top_p) = request.top_p {
            span.set("gen_ai.request.top_p", top_p);
        }
    }

    fn record_reply(span: &mut Span, reply: &ChatReply) {
        let finish = match reply.finish {
            FinishReason::Stop => "stop",
            FinishReason::ToolCalls => "tool_calls",
            FinishReason::Length => "length",
        };
        span.set("gen_ai.response.finish_reasons", vec![finish.to_owned()]);
        span.set("gen_ai.response.model", reply.model.clone());
        let count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        span.set("gen_ai.usage.input_tokens", count(reply.usage.input));
        span.set("gen_ai.usage.output_tokens", count(reply.usage.output));
        if reply.usage.cached > 0 {
            let cached = count(reply.usage.cached);
            span.set("gen_ai.usage.cache_read.input_tokens", cached);
        }
        if reply.usage.cache_written > 0 {
            let written = count(reply.usage.cache_written);
            span.set("gen_ai.usage.cache_creation.input_tokens", written);
        }
        if reply.usage.reasoning > 0 {
            span.set("gen_ai.usage.reasoning.output_tokens", count(reply.usage.reasoning));
        }
        if let Some(cost) = reply.cost {
            span.set("nietz.cost_usd", cost);
        }
    }

    fn end(&self, status: EndStatus, failure: Option<&Failure>) {
        // Dropped calls end with the run.
        let dropped: Vec<Span> = self.calls.borrow_mut().drain().map(|(_, span)| span).collect();
        dropped.into_iter().for_each(|span| self.finish_span(span));
        let Some(mut run_span) = self.run_span.borrow_mut().take() else { return };
        run_span.set("nietz.status", format!("{status:?}").to_lowercase());
        if let Some(failure) = failure {
            run_span.fail(failure);
        }
        self.finish_span(run_span);
        let problem = self.sender.borrow_mut().take().and_then(|sender| sender.finish(PATIENCE));
        if let Some(why) = problem {
            let text = format!("the spans of this run did not reach the collector: {why}");
            self.inner.show(&Event::Notice { text });
        }
    }
}

impl Span {
    fn set(&mut self, name: &str, value: impl Into<AttributeValue>) {
        self.attributes.push((name.to_owned(), value.into()));
    }

    fn fail(&mut self, failure: &Failure) {
        self.set("error.type", failure.code.name());
        self.error = Some(failure.code.name().to_owned());
    }
}

fn to_attributes(attributes: Vec<(&str, AttributeValue)>) -> Attributes {
    attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

impl FrontEnd for TracingFrontEnd {
    fn show(&self, event: &Event) {
        match event {
            Event::RunStarted { flow, resumed, .. } => self.begin(flow, *resumed),
            Event::CallStarted { call, model, label, .. } => self.call(call, model, label),
            Event::CallSent { call, request } => {
                if let Some(span) = self.calls.borrow_mut().get_mut(call) {
                    TracingFrontEnd::record_request(span, request);
                }
            }
            Event::CallRetried { call, attempt, wait_ms, .. } => {
                if let Some(span) = self.calls.borrow_mut().get_mut(call) {
                    let wait = i64::try_from(*wait_ms).unwrap_or(i64::MAX);
                    let attributes =
                        to_attributes(vec![("attempt", i64::from(*attempt).into()), ("wait_ms", wait.into())]);
                    span.events.push(SpanEvent { time: now(), name: "retry".to_owned(), attributes });
                }
            }
            Event::CallReceived { call, reply } => {
                if let Some(span) = self.calls.borrow_mut().get_mut(call) {
                    TracingFrontEnd::record_reply(span, reply);
                }
            }
            Event::CallEnded { call, failure, .. } => {
                if let Some(mut span) = self.calls.borrow_mut().remove(call) {
                    if let Some(failure) = failure {
                        span.fail(failure);
                    }
                    self.finish_span(span);
                }
            }
            Event::RunEnded { status, failure, .. } => self.end(*status, failure.as_ref()),
            _ => {}
        }
        if self.verbose || !matches!(event, Event::CallSent { .. } | Event::CallReceived { .. }) {
            self.inner.show(event);
        }
    }

    fn ask<'a>(&'a self, question: &'a Question) -> LocalBoxFuture<'a, Result<serde_json::Value>> {
        self.inner.ask(question)
    }

    fn answered_by(&self, effect: &str) -> Option<AnsweredBy> {
        self.inner.answered_by(effect)
    }

    fn attended(&self) -> bool {
        self.inner.attended()
    }

    fn answered_before(&self, question: &Question) {
        self.inner.answered_before(question);
    }
}

/// Returns a provider's name in the conventions. Providers that these do not list keep their own name.
fn provider_name(provider: &str) -> String {
    match provider {
        "gemini" => "gcp.gemini",
        "xai" => "x_ai",
        "local" => "nietz",
        other => other,
    }
    .to_owned()
}
