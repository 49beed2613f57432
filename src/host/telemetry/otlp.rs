//! Spans, and their two encodings for OTLP over HTTP: JSON and Protocol Buffers.
//!
//! Source: opentelemetry-proto 1.7, `trace.proto` and `common.proto`; for JSON the OTLP specification 1.7, "JSON Protobuf
//! Encoding" (ids in hexadecimal digits, 64-bit numbers as strings, enumerations as numbers).

use serde_json::{Value as Json, json};

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AttributeValue {
    Text(String),
    Bool(bool),
    Whole(i64),
    Number(f64),
    Texts(Vec<String>),
}

pub(super) type Attributes = Vec<(String, AttributeValue)>;

/// The kind of a span, by its number in the protocol.
#[derive(Clone, Copy, Debug)]
pub(super) enum SpanKind {
    Internal = 1,
    Client = 3,
}

#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) trace: [u8; 16],
    pub(super) id: [u8; 8],
    pub(super) parent: Option<[u8; 8]>,
    pub(super) name: String,
    pub(super) kind: SpanKind,
    /// In nanoseconds since 1970.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) attributes: Attributes,
    pub(super) events: Vec<SpanEvent>,
    /// The error code of a span that failed.
    pub(super) error: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct SpanEvent {
    pub(super) time: u64,
    pub(super) name: String,
    pub(super) attributes: Attributes,
}

/// The protocol's status code of a span that failed.
const ERROR: u64 = 2;

macro_rules! values {
    ($($from:ty => $variant:ident),*) => {
        $(impl From<$from> for AttributeValue {
            fn from(value: $from) -> AttributeValue {
                AttributeValue::$variant(value.into())
            }
        })*
    };
}
values!(&str => Text, String => Text, bool => Bool, i64 => Whole, f64 => Number, Vec<String> => Texts);

fn scope() -> (&'static str, &'static str) {
    ("nietz", env!("CARGO_PKG_VERSION"))
}

/// Returns an `ExportTraceServiceRequest` as JSON.
pub(super) fn to_json(resource: &Attributes, spans: &[Span]) -> Vec<u8> {
    let (name, version) = scope();
    let spans: Vec<Json> = spans.iter().map(json_span).collect();
    let scope = json!({ "scope": { "name": name, "version": version }, "spans": spans });
    let request = json!({ "resourceSpans": [
        { "resource": { "attributes": json_attributes(resource) }, "scopeSpans": [scope] },
    ] });
    request.to_string().into_bytes()
}

fn json_span(span: &Span) -> Json {
    let event = |event: &SpanEvent| {
        json!({
            "timeUnixNano": event.time.to_string(), "name": event.name, "attributes": json_attributes(&event.attributes),
        })
    };
    let mut out = json!({
        "traceId": hex(&span.trace),
        "spanId": hex(&span.id),
        "name": span.name,
        "kind": span.kind as u64,
        "startTimeUnixNano": span.start.to_string(),
        "endTimeUnixNano": span.end.to_string(),
        "attributes": json_attributes(&span.attributes),
        "events": span.events.iter().map(event).collect::<Vec<_>>(),
        "status": {},
    });
    if let Some(parent) = &span.parent {
        out["parentSpanId"] = hex(parent).into();
    }
    if let Some(message) = &span.error {
        out["status"] = json!({ "code": ERROR, "message": message });
    }
    out
}

fn json_attributes(attributes: &Attributes) -> Vec<Json> {
    let value = |value: &AttributeValue| match value {
        AttributeValue::Text(text) => json!({ "stringValue": text }),
        AttributeValue::Bool(bool) => json!({ "boolValue": bool }),
        AttributeValue::Whole(whole) => json!({ "intValue": whole.to_string() }),
        AttributeValue::Number(number) => json!({ "doubleValue": number }),
        AttributeValue::Texts(texts) => {
            let values: Vec<Json> = texts.iter().map(|text| json!({ "stringValue": text })).collect();
            json!({ "arrayValue": { "values": values } })
        }
    };
    attributes.iter().map(|(key, attribute)| json!({ "key": key, "value": value(attribute) })).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns an `ExportTraceServiceRequest` as Protocol Buffers.
pub(super) fn to_protobuf(resource: &Attributes, spans: &[Span]) -> Vec<u8> {
    let (name, version) = scope();
    let mut request = ProtobufMessage::default();
    request.message(1, |resource_spans| {
        resource_spans.message(1, |out| out.attributes(1, resource));
        resource_spans.message(2, |scope_spans| {
            scope_spans.message(1, |scope| {
                scope.bytes(1, name.as_bytes());
                scope.bytes(2, version.as_bytes());
            });
            spans.iter().for_each(|span| scope_spans.message(2, |out| out.span(span)));
        });
    });
    request.0
}

/// A message that is written field by field.
#[derive(Default)]
struct ProtobufMessage(Vec<u8>);

impl ProtobufMessage {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn tag(&mut self, field: u64, wire: u64) {
        self.varint(field << 3 | wire);
    }

    fn whole(&mut self, field: u64, number: u64) {
        self.tag(field, 0);
        self.varint(number);
    }

    fn fixed(&mut self, field: u64, number: u64) {
        self.tag(field, 1);
        self.0.extend(number.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.tag(field, 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn message(&mut self, field: u64, fill: impl FnOnce(&mut ProtobufMessage)) {
        let mut inner = ProtobufMessage::default();
        fill(&mut inner);
        self.bytes(field, &inner.0);
    }

    fn attributes(&mut self, field: u64, attributes: &Attributes) {
        for (key, value) in attributes {
            self.message(field, |pair| {
                pair.bytes(1, key.as_bytes());
                pair.message(2, |out| out.value(value));
            });
        }
    }

    fn value(&mut self, value: &AttributeValue) {
        match value {
            AttributeValue::Text(text) => self.bytes(1, text.as_bytes()),
            AttributeValue::Bool(bool) => self.whole(2, u64::from(*bool)),
            AttributeValue::Whole(whole) => self.whole(3, *whole as u64),
            AttributeValue::Number(number) => self.fixed(4, number.to_bits()),
            AttributeValue::Texts(texts) => self.message(5, |list| {
                texts.iter().for_each(|text| list.message(1, |item| item.bytes(1, text.as_bytes())));
            }),
        }
    }

    fn span(&mut self, span: &Span) {
        self.bytes(1, &span.trace);
        self.bytes(2, &span.id);
        if let Some(parent) = &span.parent {
            self.bytes(4, parent);
        }
        self.bytes(5, span.name.as_bytes());
        self.whole(6, span.kind as u64);
        self.fixed(7, span.start);
        self.fixed(8, span.end);
        self.attributes(9, &span.attributes);
        for event in &span.events {
            self.message(11, |out| {
                out.fixed(1, event.time);
                out.bytes(2, event.name.as_bytes());
                out.attributes(3, &event.attributes);
            });
        }
        if let Some(message) = &span.error {
            self.message(15, |status| {
                status.bytes(2, message.as_bytes());
                status.whole(3, ERROR);
            });
        }
    }
}
