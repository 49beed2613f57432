//! The journal's own versions of the program's types, so that those types can change and old journals stay readable.
//! Unknown fields are ignored; an unknown code keeps its name.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error;
use crate::model::{budget, chat, choice, command, event, param};

/// Writes a value in its persisted form `P`.
pub(super) fn put<P, T, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error>
where
    P: for<'a> From<&'a T> + Serialize,
{
    P::from(value).serialize(serializer)
}

pub(super) fn take<'de, P, T, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error>
where
    P: Deserialize<'de> + Into<T>,
{
    P::deserialize(deserializer).map(Into::into)
}

/// Like [`put`], for an optional value; `R` is a value or a reference to one.
pub(super) fn put_some<P, R, S: Serializer>(value: &Option<R>, serializer: S) -> Result<S::Ok, S::Error>
where
    R: Borrowed,
    P: for<'a> From<&'a R::Of> + Serialize,
{
    value.as_ref().map(|value| P::from(value.of())).serialize(serializer)
}

pub(super) fn take_some<'de, P, T, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error>
where
    P: Deserialize<'de> + Into<T>,
{
    Option::<P>::deserialize(deserializer).map(|value| value.map(Into::into))
}

pub(super) fn put_all<P, T, S: Serializer>(values: &[T], serializer: S) -> Result<S::Ok, S::Error>
where
    P: for<'a> From<&'a T> + Serialize,
{
    serializer.collect_seq(values.iter().map(|value| P::from(value)))
}

pub(super) fn take_all<'de, P, T, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    P: Deserialize<'de> + Into<T>,
{
    Vec::<P>::deserialize(deserializer).map(|values| values.into_iter().map(Into::into).collect())
}

/// A failure or another value that may be absent, or a reference to one.
pub(super) trait Borrowed {
    type Of;
    fn of(&self) -> &Self::Of;
}

impl Borrowed for error::Failure {
    type Of = error::Failure;
    fn of(&self) -> &error::Failure {
        self
    }
}

impl Borrowed for &error::Failure {
    type Of = error::Failure;
    fn of(&self) -> &error::Failure {
        self
    }
}

impl Borrowed for event::RunVerdict {
    type Of = event::RunVerdict;
    fn of(&self) -> &event::RunVerdict {
        self
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Failure {
    code: String,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    details: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<Place>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lost: Option<Lost>,
}

/// What attempts of a model call without a reply used.
#[derive(Serialize, Deserialize)]
struct Lost {
    attempts: u64,
    bytes: u64,
}

/// Where a failure is: in a file of the flow or of the user.
#[derive(Serialize, Deserialize)]
struct Place {
    file: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    /// As a JSON pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    excerpt: Option<String>,
}

impl From<&error::Failure> for Failure {
    fn from(failure: &error::Failure) -> Failure {
        let error::Failure { code, message, hint, details, place, lost } = failure.clone();
        let place = place.map(|place| {
            let error::Place { file, line, field, excerpt } = *place;
            Place { file, line, field, excerpt }
        });
        let lost = lost.map(|lost| {
            let error::Lost { attempts, bytes } = *lost;
            Lost { attempts, bytes }
        });
        Failure { code: code.name().to_owned(), message, hint, details, place, lost }
    }
}

impl From<Failure> for error::Failure {
    fn from(Failure { code, message, hint, details, place, lost }: Failure) -> error::Failure {
        let place =
            place.map(|Place { file, line, field, excerpt }| Box::new(error::Place { file, line, field, excerpt }));
        let lost = lost.map(|Lost { attempts, bytes }| Box::new(error::Lost { attempts, bytes }));
        error::Failure { code: error::Code::of(&code), message, hint, details, place, lost }
    }
}

/// Where a text of a param came from.
#[derive(Serialize, Deserialize)]
pub(super) struct ParamOrigin {
    param: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    item: Option<usize>,
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

impl From<&param::ParamOrigin> for ParamOrigin {
    fn from(origin: &param::ParamOrigin) -> ParamOrigin {
        let param::ParamOrigin { param, item, kind, name } = origin.clone();
        ParamOrigin { param, item, kind, name }
    }
}

impl From<ParamOrigin> for param::ParamOrigin {
    fn from(ParamOrigin { param, item, kind, name }: ParamOrigin) -> param::ParamOrigin {
        param::ParamOrigin { param, item, kind, name }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Grants {
    net: bool,
    no_sandbox: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    read: Vec<String>,
}

impl Default for Grants {
    fn default() -> Grants {
        Grants::from(&command::Grants::default())
    }
}

impl From<&command::Grants> for Grants {
    fn from(grants: &command::Grants) -> Grants {
        let command::Grants { net, no_sandbox, read } = grants.clone();
        Grants { net, no_sandbox, read }
    }
}

impl From<Grants> for command::Grants {
    fn from(Grants { net, no_sandbox, read }: Grants) -> command::Grants {
        command::Grants { net, no_sandbox, read }
    }
}

/// How much models are to think, by name. A name that this version does not know is read as none.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Efforts {
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    aliases: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<String>,
}

impl From<&choice::RunEfforts> for Efforts {
    fn from(choice::RunEfforts { run, model, aliases, default }: &choice::RunEfforts) -> Efforts {
        let name = |effort: chat::Effort| effort.name().to_owned();
        let aliases = aliases.iter().map(|(alias, effort)| (alias.clone(), name(*effort))).collect();
        Efforts { run: run.map(name), model: model.map(name), aliases, default: default.map(name) }
    }
}

impl From<Efforts> for choice::RunEfforts {
    fn from(Efforts { run, model, aliases, default }: Efforts) -> choice::RunEfforts {
        let effort = |name: String| name.parse().ok();
        let aliases = aliases.into_iter().filter_map(|(alias, name)| Some((alias, effort(name)?))).collect();
        let [run, model, default] = [run, model, default].map(|name| name.and_then(effort));
        choice::RunEfforts { run, model, aliases, default }
    }
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Budget {
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
    /// In the form in which people write it: `1h30m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<budget::TimeLimit>,
}

impl From<&budget::Budget> for Budget {
    fn from(&budget::Budget { calls, tokens, cost, time }: &budget::Budget) -> Budget {
        Budget { calls, tokens, cost, time }
    }
}

impl From<Budget> for budget::Budget {
    fn from(Budget { calls, tokens, cost, time }: Budget) -> budget::Budget {
        budget::Budget { calls, tokens, cost, time }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Usage {
    input: u64,
    output: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    cached: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    cache_written: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    reasoning: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // Serde passes a reference.
fn is_nothing(amount: &f64) -> bool {
    *amount == 0.0
}

impl From<&chat::Usage> for Usage {
    fn from(&chat::Usage { input, output, cached, cache_written, reasoning }: &chat::Usage) -> Usage {
        Usage { input, output, cached, cache_written, reasoning }
    }
}

impl From<Usage> for chat::Usage {
    fn from(Usage { input, output, cached, cache_written, reasoning }: Usage) -> chat::Usage {
        chat::Usage { input, output, cached, cache_written, reasoning }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Spent {
    model: String,
    label: String,
    calls: u64,
    usage: Usage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
    #[serde(default, skip_serializing_if = "is_nothing")]
    saved: f64,
}

impl From<&budget::Spent> for Spent {
    fn from(spent: &budget::Spent) -> Spent {
        let budget::Spent { model, label, calls, usage, cost, saved } = spent.clone();
        Spent { model, label, calls, usage: Usage::from(&usage), cost, saved }
    }
}

impl From<Spent> for budget::Spent {
    fn from(Spent { model, label, calls, usage, cost, saved }: Spent) -> budget::Spent {
        budget::Spent { model, label, calls, usage: usage.into(), cost, saved }
    }
}

/// What a flow decided.
#[derive(Serialize, Deserialize)]
pub(super) struct RunVerdict {
    ok: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

impl From<&event::RunVerdict> for RunVerdict {
    fn from(event::RunVerdict { ok, why }: &event::RunVerdict) -> RunVerdict {
        RunVerdict { ok: *ok, why: why.clone() }
    }
}

impl From<RunVerdict> for event::RunVerdict {
    fn from(RunVerdict { ok, why }: RunVerdict) -> event::RunVerdict {
        event::RunVerdict { ok, why }
    }
}

/// How a run ended, by name. A name that this version does not know is read as an end that can be resumed.
#[derive(Serialize, Deserialize)]
pub(super) struct Status(String);

impl From<&event::EndStatus> for Status {
    fn from(status: &event::EndStatus) -> Status {
        Status(status.name().to_owned())
    }
}

impl From<Status> for event::EndStatus {
    fn from(Status(name): Status) -> event::EndStatus {
        event::EndStatus::ALL.into_iter().find(|status| status.name() == name).unwrap_or(event::EndStatus::Interrupted)
    }
}
