//! What a provider refuses, as data: each rule with its words, its source, and a request that breaks it.

use serde_json::{Map, Value};

use super::voice::Voice;
use super::{Request, at, list};

/// A provider, for one generation of its models.
pub struct Rules {
    /// As the README's table calls it.
    pub name: &'static str,
    pub host: &'static str,
    pub path: &'static str,
    pub key: Key,
    /// Two models of the generation.
    pub models: [&'static str; 2],
    /// What is said of a model that there is not.
    pub no_model: Rule,
    /// How a refusal is written down.
    pub errors: fn(&Refusal) -> Value,
    /// A request that is answered, as JSON.
    pub good: &'static str,
    /// In the order in which they are looked at.
    pub rules: &'static [Rule],
    pub voice: Voice,
}

/// How the key is sent, and what is said where it is not.
#[derive(Clone, Copy)]
pub struct Key {
    pub header: &'static str,
    /// What stands before the key.
    pub before: &'static str,
    pub status: u16,
    pub says: &'static str,
}

/// One thing that is refused.
#[derive(Clone, Copy)]
pub struct Rule {
    pub test: Test,
    pub status: u16,
    /// The message; `{}` is what was found, `{index}` and `{name}` its parts before and behind the first dot, `{model}` the model.
    pub says: &'static str,
    /// The field of an error that names the parameter; `{}` as above.
    pub param: &'static str,
    pub code: &'static str,
    /// Where it is known from, and when that was written.
    pub source: &'static str,
    /// What makes a good request one that is refused so, as a JSON merge patch.
    pub bad: &'static str,
}

/// What is looked for in a body. Members are named by JSON pointers.
#[derive(Clone, Copy)]
pub enum Test {
    /// One of these members.
    Has(&'static [&'static str]),
    /// A member that is there and has none of these values, written as JSON.
    Not(&'static str, &'static [&'static str]),
    Lacks(&'static str),
    Beyond(&'static str, u64),
    /// A member of the body that is none of these.
    Strange(&'static [&'static str]),
    /// A member of one of the messages of this role that is none of these.
    StrangeInMessage(&'static str, &'static [&'static str]),
    /// Both: what is found by the first is told.
    Both(&'static Test, &'static Test),
    By(fn(&Value) -> Option<String>),
}

/// What is answered to a request that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: u16,
    pub message: String,
    pub param: String,
    pub code: String,
}

impl Rule {
    /// Refuses what the test finds with status 400.
    pub const fn new(test: Test, says: &'static str, bad: &'static str, source: &'static str) -> Rule {
        Rule { test, status: 400, says, param: "", code: "", source, bad }
    }

    pub const fn status(self, status: u16) -> Rule {
        Rule { status, ..self }
    }

    pub const fn param(self, param: &'static str) -> Rule {
        Rule { param, ..self }
    }

    pub const fn code(self, code: &'static str) -> Rule {
        Rule { code, ..self }
    }

    /// The refusal of a body that breaks this rule.
    pub fn refuses(&self, body: &Value) -> Option<Refusal> {
        let found = self.test.finds(body)?;
        let model = body["model"].as_str().unwrap_or_default();
        let (index, name) = found.split_once('.').unwrap_or((&found, &found));
        let fill = |text: &str| {
            let text = text.replace("{model}", model).replace("{index}", index).replace("{name}", name);
            text.replace("{}", &found)
        };
        let (message, param) = (fill(self.says), fill(self.param));
        Some(Refusal { status: self.status, message, param, code: self.code.to_owned() })
    }
}

impl Test {
    /// What is found of what is looked for.
    fn finds(self, body: &Value) -> Option<String> {
        match self {
            Test::Has(pointers) => {
                let there = pointers.iter().find(|pointer| !at(body, pointer).is_null())?;
                Some(there.trim_start_matches('/').replace('/', "."))
            }
            Test::Not(pointer, taken) => {
                let value = at(body, pointer);
                let is = |one: &&str| serde_json::from_str::<Value>(one).is_ok_and(|one| same(&one, value));
                let found = || value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                (!value.is_null() && !taken.iter().any(is)).then(found)
            }
            Test::Lacks(pointer) => {
                at(body, pointer).is_null().then(|| pointer.trim_start_matches('/').replace('/', "."))
            }
            Test::Beyond(pointer, most) => {
                at(body, pointer).as_u64().filter(|value| *value > most).map(|it| it.to_string())
            }
            Test::Strange(known) => strange(body.as_object()?, known),
            Test::StrangeInMessage(role, known) => {
                let messages = list(&body["messages"]).iter().enumerate();
                let mut messages = messages.filter(|(_, message)| message["role"] == role);
                messages.find_map(|(index, message)| Some(format!("{index}.{}", strange(message.as_object()?, known)?)))
            }
            Test::Both(one, other) => other.finds(body).and(one.finds(body)),
            Test::By(finds) => finds(body),
        }
    }
}

/// Whether two values are the same; 1 and 1.0 are.
fn same(one: &Value, other: &Value) -> bool {
    one == other || one.as_f64().is_some_and(|one| other.as_f64() == Some(one))
}

fn strange(members: &Map<String, Value>, known: &[&str]) -> Option<String> {
    members.keys().find(|name| !known.contains(&name.as_str())).cloned()
}

impl Rules {
    /// The refusal of a request that came to the provider's own address.
    pub fn refuses(&self, request: &Request) -> Option<Refusal> {
        let refusal =
            |status: u16, message: String| Some(Refusal { status, message, param: String::new(), code: String::new() });
        let host = request.header("host").split(':').next().unwrap_or_default();
        let path = request.path.split('?').next().unwrap_or_default();
        let there = self.host.is_empty() || self.host == host;
        if !there || request.method != "POST" || path != self.path {
            return refusal(
                404,
                format!("There is no {} {host}{path} here: {}{}", request.method, self.host, self.path),
            );
        }
        let key = request.header(self.key.header).strip_prefix(self.key.before).unwrap_or_default();
        if !self.key.header.is_empty() && key.is_empty() {
            return refusal(self.key.status, self.key.says.to_owned());
        }
        let model = request.body["model"].as_str().unwrap_or_default();
        match self.models.contains(&model) {
            true => self.refuses_body(&request.body),
            false => self.no_model.refuses(&request.body),
        }
    }

    /// The refusal of a body, whatever its model.
    pub fn refuses_body(&self, body: &Value) -> Option<Refusal> {
        self.rules.iter().find_map(|rule| rule.refuses(body))
    }
}
