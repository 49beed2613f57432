//! The lines of a journal, in the first format and the second. Persisted for good: fields are neither renamed nor
//! reordered, and what they hold has a form of its own (`persisted`), which does not change with the program.
//!
//! Both formats are read; the second is written. It adds which outcomes a flow was given together ([`OutcomeRecord::held`],
//! [`GivenRecord`]), texts that are parts of earlier ones, and keys of saves that know their collection. Fields, codes and
//! kinds of effects that this program does not know are no fault; a third format is.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::error::Failure;
use crate::journal::expander::{OwnedPart, TextExpander};
use crate::journal::parts;
use crate::journal::persisted::{self, put, put_all, put_some, take, take_all, take_some};
use crate::model::budget::{Budget, Spent};
use crate::model::chat::Usage;
use crate::model::command::Grants;
use crate::model::effect::Sources;
use crate::model::event::EndStatus;

/// The format that is written; it stands in each line.
pub const VERSION: u32 = 2;
/// The oldest format that is read.
pub const OLDEST: u32 = 1;

/// One line. The digest of a line is `sum`: BLAKE3, 128 bits in hex, over its text up to `,"sum"`.
#[derive(Serialize, Deserialize)]
pub struct JournalLine<R> {
    pub v: u32,
    /// From 1, without gaps.
    pub seq: u64,
    /// The `sum` of the line before; empty in the first.
    pub prev: String,
    pub is: R,
}

/// What is written.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Record<'a> {
    Open(Box<OpenRecord>),
    Resume(ResumeRecord),
    Text(TextRecord<'a>),
    Intent(IntentRecord<'a>),
    Outcome(OutcomeRecord<'a>),
    Effect(EffectRecord<'a>),
    Given(GivenRecord),
    End(Box<EndRecord>),
}

/// What is read; requests and outcomes stay text until somebody needs them.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadRecord<'a> {
    Open(Box<OpenRecord>),
    Resume(ResumeRecord),
    #[serde(borrow)]
    Text(ReadText<'a>),
    #[serde(borrow)]
    Intent(ReadIntent<'a>),
    #[serde(borrow)]
    Outcome(ReadOutcome<'a>),
    #[serde(borrow)]
    Effect(ReadEffect<'a>),
    Given(GivenRecord),
    End(Box<EndRecord>),
}

/// The first line: what the run is, and all that its effects depend on besides the flow's files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenRecord {
    pub run: String,
    /// The flow's name, and how it is found again.
    pub flow: String,
    pub source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    pub params: Value,
    /// The model that was chosen for the run, and the aliases, so that a resumed run asks the same ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether it holds for personas that name another one, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_model: bool,
    #[serde(default)]
    pub aliases: std::collections::BTreeMap<String, String>,
    pub lang: String,
    pub seed: u64,
    #[serde(
        default,
        skip_serializing_if = "Grants::is_none",
        serialize_with = "put::<persisted::Grants, _, _>",
        deserialize_with = "take::<persisted::Grants, _, _>"
    )]
    pub grants: Grants,
    #[serde(
        default,
        skip_serializing_if = "Budget::is_unlimited",
        serialize_with = "put::<persisted::Budget, _, _>",
        deserialize_with = "take::<persisted::Budget, _, _>"
    )]
    pub budget: Budget,
    /// The flow's settings, as the configuration had them.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub settings: serde_json::Map<String, Value>,
    pub files: Sources,
    pub host: String,
    /// ISO 8601, UTC.
    pub at: String,
    /// The name of the workspace's folder, as the flow is told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The run that this one takes from, by its id, and from which line on it takes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<Fork>,
    /// What this program does not know of.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// Where a run was forked from another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fork {
    pub run: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
}

/// The run went on in another process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResumeRecord {
    pub host: String,
    /// Source files that are not as they were, with their new digests.
    #[serde(default, skip_serializing_if = "Sources::is_empty")]
    pub changed: Sources,
    /// Bytes of a torn last line that were cut off.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub torn: u64,
    pub at: String,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A long text, written once; later lines refer to it as `{"$text": id}`. One that repeats others is written in parts.
#[derive(Clone, Debug, Serialize)]
pub struct TextRecord<'a> {
    pub id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Vec<PartRecord<'a>>>,
}

/// A string that is new, or bytes of an earlier text.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum PartRecord<'a> {
    New(&'a str),
    Of { of: String, from: u64, to: u64 },
}

#[derive(Debug, Deserialize)]
pub struct ReadText<'a> {
    pub id: &'a str,
    #[serde(borrow, default)]
    pub text: Option<&'a RawValue>,
    #[serde(default)]
    pub parts: Option<Vec<ReadPart>>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum ReadPart {
    New(String),
    Of { of: String, from: usize, to: usize },
}

impl<'a> TextRecord<'a> {
    pub fn new(id: &'a str, parts: &[parts::TextPart<'a>]) -> TextRecord<'a> {
        if let [parts::TextPart::New(text)] = parts {
            return TextRecord { id, text: Some(text), parts: None };
        }
        let part = |part: &parts::TextPart<'a>| match *part {
            parts::TextPart::New(text) => PartRecord::New(text),
            parts::TextPart::Of { id, from, to } => {
                PartRecord::Of { of: id.to_string(), from: from as u64, to: to as u64 }
            }
        };
        TextRecord { id, text: None, parts: Some(parts.iter().map(part).collect()) }
    }
}

impl ReadText<'_> {
    /// Gives the text to whoever puts texts back, or says what is wrong with it.
    pub fn add_to(self, unfold: &mut TextExpander) -> Result<(), String> {
        let pieces = match (self.text, self.parts) {
            (Some(text), None) => {
                vec![OwnedPart::New(serde_json::from_str(text.get()).map_err(|error| error.to_string())?)]
            }
            (None, Some(parts)) => parts.into_iter().map(OwnedPart::from).collect(),
            _ => return Err("a text is either one string or parts".to_owned()),
        };
        unfold.add_text(self.id, pieces)
    }
}

impl From<ReadPart> for OwnedPart {
    fn from(part: ReadPart) -> OwnedPart {
        match part {
            ReadPart::New(text) => OwnedPart::New(text),
            ReadPart::Of { of, from, to } => OwnedPart::Of { id: of, from, to },
        }
    }
}

/// An effect is about to happen.
#[derive(Clone, Debug, Serialize)]
pub struct IntentRecord<'a> {
    pub key: &'a str,
    pub kind: &'a str,
    pub scope: &'a str,
    pub request: &'a Value,
    /// What the adapter needs to find out after a crash whether it happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prepared: Option<&'a Value>,
    pub at: u64,
}

#[derive(Debug, Deserialize)]
pub struct ReadIntent<'a> {
    pub key: &'a str,
    pub kind: &'a str,
    pub scope: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    pub request: &'a RawValue,
    #[serde(borrow, default)]
    pub prepared: Option<&'a RawValue>,
    /// Milliseconds since 1970.
    pub at: u64,
}

/// What an effect returned: `ok` or `failure`.
#[derive(Clone, Debug, Serialize)]
pub struct OutcomeRecord<'a> {
    pub key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ok: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "put_some::<persisted::Failure, _, _>")]
    pub failure: Option<&'a Failure>,
    /// The flow is not given it yet: it gets it together with the next outcome of this process that is not held, in the
    /// order of their lines. Where the process ended before, a later [`GivenRecord`] says when.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    pub at: u64,
}

#[derive(Debug, Deserialize)]
pub struct ReadOutcome<'a> {
    pub key: &'a str,
    /// `null` is an outcome too: there is no such document.
    #[serde(borrow, default, deserialize_with = "present")]
    pub ok: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "take_some::<persisted::Failure, _, _>")]
    pub failure: Option<Failure>,
    #[serde(default)]
    pub held: bool,
    pub at: u64,
}

/// The flow is given outcomes that an earlier process held, all together and in this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenRecord {
    pub keys: Vec<String>,
}

/// Reads a member that is there, whatever it holds; serde takes `null` for an absent one.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// An effect that happened at once: intent and outcome in one line.
#[derive(Clone, Debug, Serialize)]
pub struct EffectRecord<'a> {
    pub key: &'a str,
    pub kind: &'a str,
    pub scope: &'a str,
    pub request: &'a Value,
    pub ok: &'a Value,
    pub at: u64,
}

#[derive(Debug, Deserialize)]
pub struct ReadEffect<'a> {
    pub key: &'a str,
    pub kind: &'a str,
    pub scope: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    pub request: &'a RawValue,
    #[serde(borrow)]
    pub ok: &'a RawValue,
    pub at: u64,
}

/// The run ended, for now or for good.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndRecord {
    #[serde(serialize_with = "put::<persisted::Status, _, _>", deserialize_with = "take::<persisted::Status, _, _>")]
    pub status: EndStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "put_some::<persisted::Failure, _, _>",
        deserialize_with = "take_some::<persisted::Failure, _, _>"
    )]
    pub failure: Option<Failure>,
    #[serde(serialize_with = "put::<persisted::Usage, _, _>", deserialize_with = "take::<persisted::Usage, _, _>")]
    pub usage: Usage,
    pub calls: u64,
    /// The keys of the failures that the process ended with: they are void, and what failed is tried again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub void: Vec<String>,
    /// By model and persona.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "put_all::<persisted::Spent, _, _>",
        deserialize_with = "take_all::<persisted::Spent, _, _>"
    )]
    pub spent: Vec<Spent>,
    pub at: String,
    /// What this program does not know of.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}
