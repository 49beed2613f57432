//! Tools of MCP servers: which a server has, and calls of them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{EffectFacts, Recovery, ReplayClass, plain};
use crate::error::{Code, Failure};
use crate::model::permission::Permission;
use crate::model::redact::Cleaner;
use crate::model::text::excerpt;

/// A request to a server that the user's configuration names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum McpOp {
    /// Which tools the server has.
    Tools { server: String },
    /// Calls one of them.
    #[serde(rename = "call")]
    CallTool(ToolCall),
}

/// A call of a server's tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    pub server: String,
    pub tool: String,
    /// By name.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// The digest of what the tool said of itself when the flow saw it.
    pub definition: String,
    /// Whether the tool may be called again if it is unknown whether it did its work: its server says that it changes nothing, or
    /// that a second call changes nothing more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeatable: bool,
    /// After this many seconds nobody waits any more; without it, the server's limit holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// A tool, as its server describes it and a flow sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServedTool {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub parameters: Value,
    /// What the server says of it; no more than a hint.
    pub read_only: bool,
    pub idempotent: bool,
    /// The digest of all of that.
    pub definition: String,
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum McpOutcome {
    Tools(Vec<ServedTool>),
    Call(ToolResult),
}

/// What a tool gave back.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ToolResult {
    /// Its texts, each in paragraphs of its own. Of an image, a sound or another file it says what it is.
    pub text: String,
    /// The data that it gave beside them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

impl McpOutcome {
    /// Returns it in words.
    pub(crate) fn describe(&self) -> String {
        match self {
            McpOutcome::Tools(tools) if tools.is_empty() => "it has no tools".to_owned(),
            McpOutcome::Tools(tools) => tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", "),
            McpOutcome::Call(result) => excerpt(&result.text),
        }
    }
}

impl McpOp {
    /// Returns the request for a server's tools.
    pub(crate) fn tools_of(server: &str) -> McpOp {
        McpOp::Tools { server: server.to_owned() }
    }

    /// Returns the name of the server.
    pub fn server(&self) -> &str {
        match self {
            McpOp::Tools { server } => server,
            McpOp::CallTool(call) => &call.server,
        }
    }

    /// Returns the outcome of a call that may have been made, if it must not be made again.
    pub fn in_doubt(&self) -> Option<Failure> {
        match self {
            McpOp::CallTool(call) if !call.repeatable => {
                Some(call.in_doubt("the run was ended while it was under way"))
            }
            McpOp::Tools { .. } | McpOp::CallTool(_) => None,
        }
    }
}

impl ToolCall {
    /// Returns the failure of a call whose end nobody has seen.
    pub(crate) fn in_doubt(&self, why: &str) -> Failure {
        let (tool, server) = (excerpt(&self.tool), excerpt(&self.server));
        let message = format!("whether `{tool}` of the MCP server `{server}` did its work is not known: {why}");
        Failure::new(Code::ToolInDoubt, message).hint("look at what it works on, then decide")
    }
}

impl EffectFacts for McpOp {
    fn kind(&self) -> &'static str {
        "mcp"
    }

    /// After a crash, a call that is not repeatable is reported to be in doubt: what it changed, nobody here can see.
    fn recovery(&self) -> Recovery {
        match self.in_doubt() {
            Some(_) => Recovery::Probe,
            None => Recovery::Retry,
        }
    }

    /// What a server says of its tools is a hint and no promise.
    fn only_looks(&self) -> bool {
        false
    }

    fn can_be_stopped(&self) -> bool {
        true
    }

    /// A fork calls no tool again that the first run has called.
    fn replay_class(&self) -> ReplayClass {
        ReplayClass::Said
    }

    fn required_permissions(&self) -> &'static [Permission] {
        &[Permission::Mcp]
    }

    fn request(&self) -> Value {
        plain(self)
    }

    fn redact(&mut self, cleaner: &Cleaner) {
        if let McpOp::CallTool(call) = self {
            cleaner.text(&mut call.tool);
            for value in call.arguments.values_mut() {
                cleaner.value(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(repeatable: bool) -> McpOp {
        McpOp::CallTool(ToolCall {
            server: "docs".to_owned(),
            tool: "note".to_owned(),
            arguments: Map::new(),
            definition: "0".to_owned(),
            repeatable,
            seconds: None,
        })
    }

    #[test]
    fn only_what_changes_something_is_in_doubt_after_a_crash() {
        assert_eq!(call(false).in_doubt().map(|failure| failure.code), Some(Code::ToolInDoubt));
        assert_eq!((call(false).recovery(), call(true).recovery()), (Recovery::Probe, Recovery::Retry));
        assert_eq!(McpOp::Tools { server: "docs".to_owned() }.recovery(), Recovery::Retry);
    }

    #[test]
    fn a_request_is_recorded_as_it_is_read() {
        for op in [call(true), call(false), McpOp::Tools { server: "docs".to_owned() }] {
            assert_eq!(serde_json::from_value::<McpOp>(op.request()).unwrap(), op);
        }
    }
}
