//! Which agents there are: those that are known by name, and what the user's own `config.yaml` says under `models.agents`.

use serde::Deserialize;

/// How long a call may take, in seconds, unless the user says otherwise.
pub(super) const SECONDS: f64 = 900.0;

/// The agents that are known: the name, the commands that start it, of which the first one that is there counts, and how to get it.
pub(super) const KNOWN: &[(&str, &[&[&str]], &str)] = &[
    (
        "claude",
        &[&["claude-agent-acp"], &["claude-code-acp"]],
        "npm install -g @agentclientprotocol/claude-agent-acp, and log in once with `claude`",
    ),
    ("codex", &[&["codex-acp"]], "npm install -g @agentclientprotocol/codex-acp, and log in once with `codex`"),
    ("gemini", &[&["gemini", "--acp"]], "npm install -g @google/gemini-cli, and log in once with `gemini`"),
];

/// An agent. Absent fields keep what is known of one of this name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentConfig {
    /// The program that speaks the Agent Client Protocol by standard input and output, and its arguments.
    pub command: Option<Vec<String>>,
    /// Variables that it is told although they hold keys of models.
    pub env: Vec<String>,
    /// How long a call may take.
    pub seconds: Option<f64>,
}
