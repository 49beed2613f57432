//! Azure's OpenAI (`/openai/v1`) with GPT-5.6 and later: OpenAI's rules for models that are called by the names of their
//! deployments, and a first piece that tells what was filtered.
//!
//! By learn.microsoft.com (api-version-lifecycle, foundry/openai/how-to/reasoning, 2026), and by the sources of each rule.

use super::errors;
use super::openai_4_1::{OPEN_SCHEMA, OPTIONAL, SCHEMA, STRANGE_THOUGHT, TOOL_SCHEMA, UNANSWERED};
use super::openai_chat::{EFFORT, GOOD, MAX_TOKENS, NO_SAMPLING, STOP, TEMPERATURE, TOOLS, VOICE};
use super::rules::{Key, Rule, Rules, Test};
use super::voice::Voice;

pub(super) const RULES: Rules = Rules {
    name: "Azure OpenAI, gpt-5.6 and later",
    host: "nietz-test.openai.azure.com",
    path: "/openai/v1/chat/completions",
    key: Key {
        header: "api-key",
        before: "",
        status: 401,
        says: "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource.",
    },
    models: ["gpt-6.1-terra", "gpt-6-luna"],
    no_model: Rule::new(
        Test::Has(&["/model"]),
        "The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again.",
        r#"{"model": "gpt-4.1"}"#,
        "long known",
    )
    .status(404),
    errors: errors::azure,
    good: GOOD,
    rules: &[
        TEMPERATURE,
        NO_SAMPLING,
        MAX_TOKENS,
        STOP,
        EFFORT,
        TOOLS,
        STRANGE_THOUGHT,
        UNANSWERED,
        SCHEMA,
        OPEN_SCHEMA,
        OPTIONAL,
        TOOL_SCHEMA,
    ],
    voice: Voice {
        first: r#"{"choices": [], "created": 0, "id": "", "model": "", "object": "",
            "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]}"#,
        ..VOICE
    },
};
