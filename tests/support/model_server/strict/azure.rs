//! Azure's OpenAI (`/openai/v1`) with GPT-5.6 and later: OpenAI's rules, Azure's key and errors.
//!
//! Models are called by the names of their deployments. Those of [`RULES`] are named as their models are, and are asked as those
//! are, on Responses; those of [`OWN_NAMES`] have names of their own, by which nobody knows what they are.
//!
//! By learn.microsoft.com (api-version-lifecycle, foundry/openai/how-to/reasoning, 2026), and by the sources of each rule.

use super::errors;
use super::openai_4_1::{OPEN_SCHEMA, OPTIONAL, SCHEMA, STRANGE_THOUGHT, TOOL_SCHEMA, UNANSWERED};
use super::openai_chat::{EFFORT, GOOD, MAX_TOKENS, NO_SAMPLING, STOP, TEMPERATURE, TOOLS, VOICE};
use super::openai_responses::{self, RULES_OF_RESPONSES, SEALED};
use super::rules::{Key, Rule, Rules, Test};
use super::voice::Voice;

const HOST: &str = "nietz-test.openai.azure.com";

const KEY: Key = Key {
    header: "api-key",
    before: "",
    status: 401,
    says: "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource.",
};

const NO_MODEL: Rule = Rule::new(
    Test::Has(&["/model"]),
    "The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again.",
    r#"{"model": "gpt-4.1"}"#,
    "long known",
)
.status(404);

pub(super) const RULES: Rules = Rules {
    name: "Azure, gpt-5.6 and later",
    host: HOST,
    path: "/openai/v1/responses",
    key: KEY,
    models: ["gpt-6.1-terra", "gpt-6-luna"],
    no_model: NO_MODEL,
    errors: errors::azure,
    good: openai_responses::GOOD,
    rules: RULES_OF_RESPONSES,
    voice: SEALED,
};

pub(super) const OWN_NAMES: Rules = Rules {
    name: "Azure, deployments of any name",
    host: HOST,
    path: "/openai/v1/chat/completions",
    key: KEY,
    models: ["our-strong-one", "our-quick-one"],
    no_model: NO_MODEL,
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
    // The first piece tells what of the prompt was filtered.
    voice: Voice {
        first: r#"{"choices": [], "created": 0, "id": "", "model": "", "object": "",
            "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]}"#,
        ..VOICE
    },
};
