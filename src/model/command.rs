//! A command that a flow wants to run, and which commands it may.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::text::line;

/// One command in one worktree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    pub tree: String,
    pub run: Run,
    /// After so many seconds it is ended, with everything that it started.
    pub seconds: f64,
    /// It is also ended when it has written nothing for so long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<f64>,
    /// Whether it may be run again when nobody knows whether it ran to its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeatable: bool,
    /// How many bytes of its output the flow gets, where it asks for a number of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<usize>,
}

/// What is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Run {
    /// A program and its arguments.
    Program(Vec<String>),
    /// A text for the shell.
    Shell(String),
}

impl Run {
    /// Returns the command as a person would write it.
    pub fn shown(&self) -> String {
        match self {
            Run::Program(words) => words.join(" "),
            Run::Shell(text) => text.clone(),
        }
    }

    /// Tells whether one of these grants allows it: the name of a program allows that program with any arguments,
    /// any text allows just that text for the shell.
    pub fn is_granted(&self, grants: &[String]) -> bool {
        match self {
            Run::Program(words) => words.first().is_some_and(|program| grants.contains(program)),
            Run::Shell(text) => grants.contains(text),
        }
    }
}

/// What the user grants, besides what the manifest declares.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grants {
    /// Commands may use the network.
    pub net: bool,
    /// Commands run without a sandbox.
    pub no_sandbox: bool,
    /// Files and folders outside of the workspace that the flow may read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
}

impl Grants {
    pub fn is_none(&self) -> bool {
        *self == Grants::default()
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// By itself.
    Exit,
    /// It took longer than it might.
    Timeout,
    /// It wrote nothing for too long.
    Idle,
    /// It wrote too much.
    Output,
    /// It started too many processes.
    Processes,
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ran {
    pub over: Over,
    /// The exit code; 128 and the signal's number where a signal ended it, as shells have it.
    pub exit: i32,
    /// What it wrote to both outputs, in the order in which it came: the beginning and the end of it if it is long.
    pub output: String,
    /// The file with the whole output, where `output` is not the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// Returns the grants of a manifest with the values of params in place of `{param}`.
pub fn grants(declared: &[String], params: &Value) -> Vec<String> {
    let mut grants = Vec::new();
    for grant in declared {
        match hole(grant).map(|name| &params[name]) {
            Some(Value::Array(values)) => grants.extend(values.iter().filter_map(Value::as_str).map(str::to_owned)),
            Some(Value::String(value)) => grants.push(value.clone()),
            Some(_) => {}
            None => grants.push(grant.clone()),
        }
    }
    grants
}

/// Says which commands may be run, and how.
pub fn told(commands: &[String], grants: &Grants) -> String {
    let names: Vec<String> = commands.iter().map(|grant| format!("`{}`", line(grant))).collect();
    let how = match (grants.no_sandbox, grants.net) {
        (true, _) => "without a sandbox: they can touch all that you can",
        (false, true) => "in a sandbox, with the network",
        (false, false) => "in a sandbox, without the network",
    };
    format!("{}; {how}", names.join(", "))
}

/// Returns the param that a grant names, if it is one: `validate` of `{validate}`.
pub fn hole(grant: &str) -> Option<&str> {
    grant.strip_prefix('{')?.strip_suffix('}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_user_gave_is_granted_and_nothing_else() {
        let declared = ["make".to_owned(), "{run}".to_owned(), "{check}".to_owned(), "{absent}".to_owned()];
        let params = json!({ "run": "cargo", "check": ["npm test", "true"], "absent": null });
        let grants = grants(&declared, &params);
        assert_eq!(grants, ["make", "cargo", "npm test", "true"]);
        let program = |words: &[&str]| Run::Program(words.iter().map(|word| (*word).to_owned()).collect());
        for (run, granted) in [
            (program(&["cargo", "test", "--", "; rm"]), true),
            (program(&["npm", "test"]), false),
            (program(&["npm test"]), true),
            (program(&[]), false),
            (Run::Shell("npm test".to_owned()), true),
            (Run::Shell("npm test; rm -r x".to_owned()), false),
            (Run::Shell("cargo test".to_owned()), false),
        ] {
            assert_eq!(run.is_granted(&grants), granted, "{run:?}");
        }
    }
}
