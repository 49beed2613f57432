//! The one list of the providers that are known by name. A new provider is a row here and nothing else.
//!
//! A row holds for the provider's own address. At any other address (a proxy, a gateway, a server of one's
//! own) less is taken for granted; `settings.rs` decides how much.

use super::provider::{MaxTokensField, Wire};

/// What is known of a provider without any configuration.
pub(super) struct ProviderDefaults {
    pub(super) name: &'static str,
    /// The address; `{NAME}` stands for the variable NAME, and without it there is no address. `{NAME:-word}` stands for the
    /// variable and a hyphen, and for nothing if it is `word`.
    pub(super) base_url: &'static str,
    /// The variable that moves the provider to another address.
    pub(super) base_variable: &'static str,
    /// The variables that may hold its key, the usual one first.
    pub(super) key_variables: &'static [&'static str],
    pub(super) needs_key: bool,
    /// The header that takes the key, if it is not the wire's usual one.
    pub(super) key_header: Option<&'static str>,
    /// The command that prints a key where no variable has one. Such keys may be short-lived.
    pub(super) key_command: &'static [&'static str],
    pub(super) wire: Wire,
    /// Whether the provider enforces a JSON Schema by itself.
    pub(super) json_schema: bool,
    pub(super) max_tokens_field: MaxTokensField,
    /// The model for callers that name none. If absent, the server at `models_path` names one.
    pub(super) model: Option<&'static str>,
    /// Where a server on this machine lists its models, which also shows whether it runs.
    pub(super) models_path: Option<&'static str>,
    /// Whether its models are called by names that the user gave them, which its list does not have.
    pub(super) own_names: bool,
}

/// Month and year of the models below: those that people get who choose none.
pub const AS_OF: &str = "November 2026";

/// The values that most providers share.
const USUAL: ProviderDefaults = ProviderDefaults {
    name: "",
    base_url: "",
    base_variable: "",
    key_variables: &[],
    needs_key: true,
    key_header: None,
    key_command: &[],
    wire: Wire::OpenAi,
    json_schema: true,
    max_tokens_field: MaxTokensField::MaxTokens,
    model: None,
    models_path: None,
    own_names: false,
};

/// Every provider, in the order in which the first one with a key is chosen.
pub(super) const ALL: &[ProviderDefaults] = &[
    ProviderDefaults {
        name: "openai",
        base_url: "https://api.openai.com/v1",
        base_variable: "OPENAI_BASE_URL",
        key_variables: &["OPENAI_API_KEY"],
        max_tokens_field: MaxTokensField::MaxCompletionTokens,
        model: Some("gpt-6.1-terra"),
        ..USUAL
    },
    ProviderDefaults {
        name: "anthropic",
        base_url: "https://api.anthropic.com",
        base_variable: "ANTHROPIC_BASE_URL",
        key_variables: &["ANTHROPIC_API_KEY"],
        wire: Wire::Anthropic,
        model: Some("claude-sonnet-5-5"),
        ..USUAL
    },
    ProviderDefaults {
        name: "gemini",
        base_url: "https://generativelanguage.googleapis.com/v1beta/openai",
        base_variable: "GEMINI_BASE_URL",
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        model: Some("gemini-3.8-flash"),
        ..USUAL
    },
    ProviderDefaults {
        name: "openrouter",
        base_url: "https://openrouter.ai/api/v1",
        base_variable: "OPENROUTER_BASE_URL",
        key_variables: &["OPENROUTER_API_KEY"],
        // Some of the models behind it enforce a schema, some refuse the request, some ignore the schema.
        json_schema: false,
        model: Some("anthropic/claude-sonnet-5.5"),
        ..USUAL
    },
    ProviderDefaults {
        name: "groq",
        base_url: "https://api.groq.com/openai/v1",
        base_variable: "GROQ_BASE_URL",
        key_variables: &["GROQ_API_KEY"],
        // Only a few of its models enforce a schema.
        json_schema: false,
        model: Some("openai/gpt-oss-120b"),
        ..USUAL
    },
    ProviderDefaults {
        name: "deepseek",
        base_url: "https://api.deepseek.com/v1",
        base_variable: "DEEPSEEK_BASE_URL",
        key_variables: &["DEEPSEEK_API_KEY"],
        json_schema: false,
        model: Some("deepseek-flash"),
        ..USUAL
    },
    ProviderDefaults {
        name: "xai",
        base_url: "https://api.x.ai/v1",
        base_variable: "XAI_BASE_URL",
        key_variables: &["XAI_API_KEY"],
        model: Some("grok-4.7"),
        ..USUAL
    },
    // The address of a resource, such as https://NAME.openai.azure.com; models are the names of its deployments.
    ProviderDefaults {
        name: "azure",
        base_url: "{AZURE_OPENAI_ENDPOINT}/openai/v1",
        base_variable: "AZURE_OPENAI_BASE_URL",
        key_variables: &["AZURE_OPENAI_API_KEY"],
        key_header: Some("api-key"),
        max_tokens_field: MaxTokensField::MaxCompletionTokens,
        own_names: true,
        ..USUAL
    },
    // Of the models behind it, few enforce a schema.
    ProviderDefaults {
        name: "bedrock",
        base_url: "https://bedrock-runtime.{AWS_REGION}.amazonaws.com/openai/v1",
        base_variable: "BEDROCK_BASE_URL",
        key_variables: &["AWS_BEARER_TOKEN_BEDROCK"],
        json_schema: false,
        ..USUAL
    },
    // Models are named with their publisher: vertex/google/gemini-3.8-flash.
    ProviderDefaults {
        name: "vertex",
        // The location `global` has no prefix.
        base_url: "https://{GOOGLE_CLOUD_LOCATION:-global}aiplatform.googleapis.com/v1/projects/{GOOGLE_CLOUD_PROJECT}/locations/{GOOGLE_CLOUD_LOCATION}/endpoints/openapi",
        base_variable: "VERTEX_BASE_URL",
        key_variables: &["VERTEX_ACCESS_TOKEN"],
        key_command: &["gcloud", "auth", "print-access-token"],
        ..USUAL
    },
    ProviderDefaults {
        name: "ollama",
        base_url: "http://127.0.0.1:11434/v1",
        base_variable: "OLLAMA_HOST",
        key_variables: &["OLLAMA_API_KEY"],
        needs_key: false,
        models_path: Some("/api/tags"),
        ..USUAL
    },
];
