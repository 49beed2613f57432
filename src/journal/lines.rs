//! The lines of a journal, in the first and the second format. They are persisted: fields are never renamed or reordered,
//! and their values have types of their own (`persisted`), which do not change with the program.
//!
//! Both formats are read; only the second is written. It adds which outcomes were delivered to the flow together
//! ([`OutcomeRecord::held`], [`GivenRecord`]), texts made of parts of earlier ones, and keys of saves that include their
//! collection. Unknown fields, codes and kinds of effects are accepted; an unknown format is an error.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::error::Failure;
use crate::journal::expander::{OwnedPart, TextExpander};
use crate::journal::parts;
use crate::journal::persisted::{self, put, put_all, put_some, take, take_all, take_some};
use crate::model::budget::{Budget, Spent};
use crate::model::chat::Usage;
use crate::model::choice::RunEfforts;
use crate::model::command::Grants;
use crate::model::effect::Sources;
use crate::model::event::{EndStatus, RunVerdict};
use crate::model::param::ParamOrigin;

/// The format that is written, as each line says.
pub const VERSION: u32 = 2;
/// The oldest format that is read.
pub const OLDEST: u32 = 1;

/// One line. `sum`, which is added behind these fields, is its digest: BLAKE3, 128 bits in hex, of the text up to `,"sum"`.
#[derive(Serialize, Deserialize)]
pub struct JournalLine<R> {
    pub v: u32,
    /// From 1, without gaps.
    pub seq: u64,
    /// The `sum` of the line before; empty in the first.
    pub prev: String,
    pub is: R,
}

/// A line's content, as it is written.
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

/// A line's content, as it is read; requests and outcomes are parsed only when they are needed.
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

/// The first line: identifies the run, and pins what its effects depend on besides the flow's files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenRecord {
    pub run: String,
    /// The flow's name.
    pub flow: String,
    /// Where the flow is found again.
    pub source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    pub params: Value,
    /// Where texts of the params came from that the user did not type. Such a text, if it is long, stands in a line of its
    /// own behind this one, and here as `{"$text": id}` (`param_texts`).
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "put_all::<persisted::ParamOrigin, _, _>",
        deserialize_with = "take_all::<persisted::ParamOrigin, _, _>"
    )]
    pub origins: Vec<ParamOrigin>,
    /// The model that was chosen for the run. It and the aliases are pinned, so that a resumed run asks the same models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether the chosen model also replaces those that personas name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_model: bool,
    #[serde(default)]
    pub aliases: std::collections::BTreeMap<String, String>,
    /// How much the models are to think, where calls say nothing of that.
    #[serde(
        default,
        skip_serializing_if = "RunEfforts::is_unset",
        serialize_with = "put::<persisted::Efforts, _, _>",
        deserialize_with = "take::<persisted::Efforts, _, _>"
    )]
    pub efforts: RunEfforts,
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
    /// The flow's settings from the configuration.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub settings: serde_json::Map<String, Value>,
    pub files: Sources,
    pub host: String,
    /// ISO 8601, UTC.
    pub at: String,
    /// The name of the workspace's folder, as the flow sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The run that this one was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<Fork>,
    /// The run that began this one as a part of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Parent>,
    /// The run that this one was begun in the place of, because the machine with its branches is lost. No `fork`, of which a program that
    /// knows no such runs would take what that machine had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anew_of: Option<String>,
    /// Members that this version does not know.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// Where a run was forked from: the id of the other run, and the line from which on nothing is taken from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fork {
    pub run: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// Whether it was begun in that run's place; written as `anew_of`.
    #[serde(skip)]
    pub lost: bool,
}

impl OpenRecord {
    /// Returns the run that outcomes are taken from, if there is one.
    pub fn taken_from(&self) -> Option<Fork> {
        let lost = || self.anew_of.clone().map(|run| Fork { run, before: None, lost: true });
        self.fork.clone().or_else(lost)
    }
}

/// The run that began another one as a part of its own: its name, the key of the effect, and the permissions that bound it, as
/// manifests have them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parent {
    pub run: String,
    pub key: String,
    pub permissions: Map<String, Value>,
    /// The trace of both, in hex digits.
    pub trace: String,
}

/// The run was resumed by another process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResumeRecord {
    pub host: String,
    /// Source files that were changed since, with their new digests.
    #[serde(default, skip_serializing_if = "Sources::is_empty")]
    pub changed: Sources,
    /// How many bytes of a torn last line were cut off.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub torn: u64,
    pub at: String,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A long text, written once; later lines refer to it as `{"$text": id}`. A text that repeats others is written in parts.
#[derive(Clone, Debug, Serialize)]
pub struct TextRecord<'a> {
    pub id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Vec<PartRecord<'a>>>,
}

/// A new string, or a range of bytes of an earlier text.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum PartRecord<'a> {
    New(&'a str),
    Of { of: String, from: u64, to: u64 },
}

/// A `text` line as it is read.
#[derive(Debug, Deserialize)]
pub struct ReadText<'a> {
    pub id: &'a str,
    #[serde(borrow, default)]
    pub text: Option<&'a RawValue>,
    #[serde(default)]
    pub parts: Option<Vec<ReadPart>>,
}

/// A part of a text as it is read.
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
    /// Adds the text to the expander.
    ///
    /// # Errors
    ///
    /// Says what is wrong with the text.
    pub fn add_to(self, expander: &mut TextExpander) -> Result<(), String> {
        let pieces = match (self.text, self.parts) {
            (Some(text), None) => {
                vec![OwnedPart::New(serde_json::from_str(text.get()).map_err(|error| error.to_string())?)]
            }
            (None, Some(parts)) => parts.into_iter().map(OwnedPart::from).collect(),
            _ => return Err("a text is either one string or parts".to_owned()),
        };
        expander.add_text(self.id, pieces)
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

/// The intent of an effect, written before the effect happens.
#[derive(Clone, Debug, Serialize)]
pub struct IntentRecord<'a> {
    pub key: &'a str,
    pub kind: &'a str,
    pub scope: &'a str,
    pub request: &'a Value,
    /// What the adapter needs after a crash to find out whether the effect happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prepared: Option<&'a Value>,
    /// For a question that is asked in place of others: answers of its scope that stand before this line hold no more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub anew: bool,
    /// For whom a model speaks in this call: a persona's name, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<&'a str>,
    /// Whether people see what it says.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shown: bool,
    pub at: u64,
}

/// An `intent` line as it is read.
#[derive(Debug, Deserialize)]
pub struct ReadIntent<'a> {
    pub key: &'a str,
    pub kind: &'a str,
    pub scope: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    pub request: &'a RawValue,
    #[serde(borrow, default)]
    pub prepared: Option<&'a RawValue>,
    #[serde(default)]
    pub anew: bool,
    #[serde(default)]
    pub label: Option<std::borrow::Cow<'a, str>>,
    #[serde(default)]
    pub shown: bool,
    /// Milliseconds since 1970.
    pub at: u64,
}

/// The outcome of an effect: `ok` or `failure`.
#[derive(Clone, Debug, Serialize)]
pub struct OutcomeRecord<'a> {
    pub key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ok: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "put_some::<persisted::Failure, _, _>")]
    pub failure: Option<&'a Failure>,
    /// Whether the outcome waits: it is delivered to the flow together with the next outcome of this process that is not
    /// held, in the order of their lines. If the process ends before that, a later [`GivenRecord`] says when.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// Who gave an answer, where the person did not themselves: `relayed` or `model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<&'a str>,
    pub at: u64,
}

/// An `outcome` line as it is read.
#[derive(Debug, Deserialize)]
pub struct ReadOutcome<'a> {
    pub key: &'a str,
    /// `null` is an outcome as well: that of loading a document that does not exist.
    #[serde(borrow, default, deserialize_with = "present")]
    pub ok: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "take_some::<persisted::Failure, _, _>")]
    pub failure: Option<Failure>,
    #[serde(default)]
    pub held: bool,
    #[serde(default)]
    pub by: Option<&'a str>,
    pub at: u64,
}

/// The flow gets outcomes that an earlier process held, all together and in this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenRecord {
    pub keys: Vec<String>,
}

/// Reads a member that is present even if it is `null`, which serde would take for an absent one.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// An effect that happened without waiting: intent and outcome in one line.
#[derive(Clone, Debug, Serialize)]
pub struct EffectRecord<'a> {
    pub key: &'a str,
    pub kind: &'a str,
    pub scope: &'a str,
    pub request: &'a Value,
    pub ok: &'a Value,
    pub at: u64,
}

/// The line of an effect that is recorded in one line, as it is read.
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

/// The run ended, possibly to be resumed.
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
    /// The keys of the failures, and of replies that cannot be used, that the process ended with. They are void: their effects are
    /// tried again. Of a run that is done, the keys of replies that could not be used: a fork asks for them again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub void: Vec<String>,
    /// What was used, by model and persona.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "put_all::<persisted::Spent, _, _>",
        deserialize_with = "take_all::<persisted::Spent, _, _>"
    )]
    pub spent: Vec<Spent>,
    /// What the flow decided, if it had to decide something.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "put_some::<persisted::RunVerdict, _, _>",
        deserialize_with = "take_some::<persisted::RunVerdict, _, _>"
    )]
    pub verdict: Option<RunVerdict>,
    pub at: String,
    /// Members that this version does not know.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}
