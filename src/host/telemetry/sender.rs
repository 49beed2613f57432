//! Sends spans to a collector, configured by the usual variables: in batches during a run, and the rest at its end.
//!
//! Source: OpenTelemetry specification 1.49, "OTLP Exporter Configuration" and "General SDK Configuration".

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::otlp::{self, AttributeValue, Attributes, Span};
use crate::error::{Code, Failure, Result};
use crate::host::network::Network;

/// How many spans are sent at once, how many may wait at most, and how long the first of them waits.
const BATCH: usize = 512;
const QUEUE: usize = 2048;
const DELAY: Duration = Duration::from_secs(5);
/// How long a collector may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Where spans are sent, and in which encoding.
#[derive(Clone, Debug)]
pub(super) struct ExportSettings {
    address: reqwest::Url,
    /// The address for messages: without user, password and query.
    place: String,
    headers: reqwest::header::HeaderMap,
    json: bool,
    gzip: bool,
    timeout: Duration,
    delay: Duration,
    batch: usize,
    queue: usize,
    resource: Attributes,
    /// The share of all runs that is sent, from 0 to 1.
    pub(super) sample_ratio: f64,
    network: Network,
}

/// The environment variables; empty ones count as unset.
struct Variables<'a>(&'a BTreeMap<String, String>);

impl<'a> Variables<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// Returns a setting of the exporter, by its variable for spans or else by the one for all signals.
    fn exporter(&self, name: &str) -> Option<(String, &'a str)> {
        let names = [format!("OTEL_EXPORTER_OTLP_TRACES_{name}"), format!("OTEL_EXPORTER_OTLP_{name}")];
        names.into_iter().find_map(|name| self.get(&name).map(|value| (name, value)))
    }

    fn number(&self, name: &str, default: usize) -> Result<usize> {
        match self.get(name) {
            None => Ok(default),
            Some(value) => value.parse().map_err(|_| invalid_variable(name, value, "a whole number")),
        }
    }

    fn duration(&self, name: &str, default: Duration) -> Result<Duration> {
        Ok(Duration::from_millis(self.number(name, default.as_millis() as usize)? as u64))
    }
}

fn invalid_variable(name: &str, value: &str, wanted: &str) -> Failure {
    // Headers and addresses may hold keys.
    let value = if name.ends_with("HEADERS") || name.ends_with("ENDPOINT") { "" } else { value };
    Failure::new(
        Code::ConfigInvalid,
        format!("spans cannot be sent: {name} {value} is not {wanted}").replace("  ", " "),
    )
    .hint("set that variable right, or unset it")
}

impl ExportSettings {
    pub(super) fn read(environment: &BTreeMap<String, String>) -> Result<ExportSettings> {
        let variables = Variables(environment);
        let json = match variables.exporter("PROTOCOL") {
            None => false,
            Some((_, "http/protobuf")) => false,
            Some((_, "http/json")) => true,
            Some((name, value)) => return Err(invalid_variable(&name, value, "http/protobuf or http/json")),
        };
        let gzip = match variables.exporter("COMPRESSION") {
            None | Some((_, "none")) => false,
            Some((_, "gzip")) => true,
            Some((name, value)) => return Err(invalid_variable(&name, value, "gzip or none")),
        };
        let timeout = match variables.exporter("TIMEOUT") {
            None => TIMEOUT,
            Some((name, _)) => variables.duration(&name, TIMEOUT)?,
        };
        let address = address(&variables)?;
        let mut redacted = address.clone();
        // These setters fail only for addresses without a host, which http addresses always have.
        let _ = redacted.set_username("").and_then(|()| redacted.set_password(None));
        redacted.set_query(None);
        Ok(ExportSettings {
            place: redacted.to_string(),
            address,
            headers: headers(&variables)?,
            json,
            gzip,
            timeout,
            delay: variables.duration("OTEL_BSP_SCHEDULE_DELAY", DELAY)?,
            batch: variables.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", BATCH)?.max(1),
            queue: variables.number("OTEL_BSP_MAX_QUEUE_SIZE", QUEUE)?.max(1),
            resource: resource(&variables)?,
            sample_ratio: sample_ratio(&variables)?,
            network: Network::from_environment(environment)?,
        })
    }
}

fn address(variables: &Variables) -> Result<reqwest::Url> {
    let for_traces = variables.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").map(|value| ("_TRACES", value.to_owned()));
    let general = variables.get("OTEL_EXPORTER_OTLP_ENDPOINT");
    let general = general.map(|value| ("", format!("{}/v1/traces", value.trim_end_matches('/'))));
    let (part, address) = for_traces.or(general).unwrap_or_default();
    let address = reqwest::Url::parse(&address).ok().filter(|address| matches!(address.scheme(), "http" | "https"));
    address.ok_or_else(|| {
        invalid_variable(&format!("OTEL_EXPORTER_OTLP{part}_ENDPOINT"), "", "an address with http or https")
    })
}

fn headers(variables: &Variables) -> Result<reqwest::header::HeaderMap> {
    let mut headers = reqwest::header::HeaderMap::new();
    let Some((name, list)) = variables.exporter("HEADERS") else { return Ok(headers) };
    let invalid = || invalid_variable(&name, "", "a list such as key=value,other=value");
    for (key, value) in pairs(list) {
        let value = value.ok_or_else(invalid)?;
        let key = reqwest::header::HeaderName::from_bytes(key.as_bytes()).map_err(|_| invalid())?;
        headers.insert(key, reqwest::header::HeaderValue::from_str(&value).map_err(|_| invalid())?);
    }
    Ok(headers)
}

fn resource(variables: &Variables) -> Result<Attributes> {
    let mut resource: Attributes = [
        ("telemetry.sdk.language", "rust"),
        ("telemetry.sdk.name", "nietz"),
        ("telemetry.sdk.version", env!("CARGO_PKG_VERSION")),
    ]
    .map(|(key, value)| (key.to_owned(), AttributeValue::from(value)))
    .to_vec();
    let list = variables.get("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    for (key, value) in pairs(list) {
        let invalid = || invalid_variable("OTEL_RESOURCE_ATTRIBUTES", list, "a list such as key=value,other=value");
        resource.push((key.to_owned(), value.ok_or_else(invalid)?.into()));
    }
    if let Some(name) = variables.get("OTEL_SERVICE_NAME") {
        resource.retain(|(key, _)| key != "service.name");
        resource.push(("service.name".to_owned(), name.into()));
    }
    if !resource.iter().any(|(key, _)| key == "service.name") {
        resource.push(("service.name".to_owned(), "nietz".into()));
    }
    Ok(resource)
}

/// Returns the share of all runs that is sent. A run has no parent, so a `parentbased_` sampler acts like its root sampler.
fn sample_ratio(variables: &Variables) -> Result<f64> {
    let name = "OTEL_TRACES_SAMPLER";
    let Some(sampler) = variables.get(name) else { return Ok(1.0) };
    match sampler.strip_prefix("parentbased_").unwrap_or(sampler) {
        "always_on" => Ok(1.0),
        "always_off" => Ok(0.0),
        "traceidratio" => {
            let value = variables.get("OTEL_TRACES_SAMPLER_ARG").unwrap_or("1");
            let ratio: Option<f64> = value.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
            ratio.ok_or_else(|| invalid_variable("OTEL_TRACES_SAMPLER_ARG", value, "a number from 0 to 1"))
        }
        _ => Err(invalid_variable(name, sampler, "always_on, always_off or traceidratio")),
    }
}

/// Returns the pairs of a list such as `key=value,other=value`, in which `%2C` stands for a comma.
fn pairs(list: &str) -> impl Iterator<Item = (&str, Option<String>)> {
    list.split(',').map(str::trim).filter(|pair| !pair.is_empty()).map(|pair| match pair.split_once('=') {
        Some((key, value)) => (key.trim(), percent_decode(value.trim())),
        None => (pair, None),
    })
}

fn percent_decode(value: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

/// A thread that sends spans to the collector.
pub(super) struct Sender {
    spans: mpsc::SyncSender<Span>,
    /// Receives the reason why spans did not reach the collector, or `None`, once all are sent.
    done: mpsc::Receiver<Option<String>>,
}

impl Sender {
    pub(super) fn start(settings: ExportSettings) -> Sender {
        let (spans, span_receiver) = mpsc::sync_channel(settings.queue);
        let (done_sender, done) = mpsc::channel();
        std::thread::spawn(move || {
            // Nobody listens any more if the end of the run could not wait.
            let _ = done_sender.send(work(&settings, &span_receiver));
        });
        Sender { spans, done }
    }

    /// Queues a span. If the queue is full, the span is dropped, as the specification demands.
    pub(super) fn enqueue(&self, span: Span) {
        let _ = self.spans.try_send(span);
    }

    /// Sends the waiting spans, and returns why spans did not reach the collector, if so.
    pub(super) fn finish(self, patience: Duration) -> Option<String> {
        drop(self.spans);
        self.done.recv_timeout(patience).unwrap_or_else(|error| match error {
            RecvTimeoutError::Timeout => Some(format!("it did not answer within {} s", patience.as_secs())),
            RecvTimeoutError::Disconnected => Some("the thread that sends them broke down".to_owned()),
        })
    }
}

fn work(settings: &ExportSettings, spans: &mpsc::Receiver<Span>) -> Option<String> {
    let mut problem = None;
    let mut open = true;
    while open {
        let Ok(first) = spans.recv() else { break };
        let deadline = Instant::now() + settings.delay;
        let mut batch = vec![first];
        while batch.len() < settings.batch {
            match spans.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(span) => batch.push(span),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => {
                    open = false;
                    break;
                }
            }
        }
        problem = send(settings, &batch).err().or(problem);
    }
    problem
}

fn send(settings: &ExportSettings, spans: &[Span]) -> Result<(), String> {
    let (kind, mut body) = match settings.json {
        true => ("application/json", otlp::to_json(&settings.resource, spans)),
        false => ("application/x-protobuf", otlp::to_protobuf(&settings.resource, spans)),
    };
    let describe = |error: &dyn std::fmt::Display| format!("{}: {error}", settings.place);
    if settings.gzip {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        body = packed.write_all(&body).and_then(|()| packed.finish()).map_err(|error| describe(&error))?;
    }
    // This thread has no runtime, so each batch gets a small one and a connection of its own.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| describe(&error))?;
    let client = settings.network.client().map_err(|error| describe(&error))?;
    // A redirect would send the headers, which may hold a key, to another place.
    let client = client.redirect(reqwest::redirect::Policy::none()).build().map_err(|error| describe(&error))?;
    let mut request = client.post(settings.address.clone()).headers(settings.headers.clone());
    request = request.header("content-type", kind).timeout(settings.timeout).body(body);
    if settings.gzip {
        request = request.header("content-encoding", "gzip");
    }
    let response = runtime.block_on(async { request.send().await }).map_err(|error| describe(&error.without_url()))?;
    match response.status() {
        status if status.is_success() => Ok(()),
        status => Err(format!("{} answered {status}", settings.place)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<ExportSettings> {
        let all = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ExportSettings::read(&all.collect())
    }

    #[test]
    fn the_variables_for_spans_go_before_those_for_everything() {
        let settings = read(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:1/base/"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%2Cb, other=c"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "250"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "9"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=mine,team=a"),
            ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
        ])
        .expect("they are right");
        assert_eq!(settings.address.as_str(), "http://localhost:1/base/v1/traces");
        assert_eq!(settings.headers["api-key"], "a,b");
        assert_eq!(settings.timeout, Duration::from_millis(250));
        assert_eq!(settings.sample_ratio, 0.25);
        assert_eq!(settings.resource.last(), Some(&("team".to_owned(), "a".into())));
        let for_traces =
            [("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://localhost:1/as/it/is"), ("OTEL_SERVICE_NAME", "x")];
        let settings = read(&for_traces).expect("they are right");
        assert_eq!(settings.address.as_str(), "http://localhost:1/as/it/is");
        assert_eq!(settings.resource.last(), Some(&("service.name".to_owned(), "x".into())));
    }

    #[test]
    fn what_cannot_be_done_is_told_by_its_variable_and_no_key_is_shown() {
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "zstd"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "secret"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "secret"),
            ("OTEL_TRACES_SAMPLER", "sometimes"),
        ] {
            let failure = read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:1"), (name, value)]);
            let shown = failure.expect_err("it is wrong").to_string();
            assert!(shown.contains(name) && !shown.contains("secret"), "{shown}");
        }
    }
}
