//! Encodes a request as tokens, by the model's own chat template and with instructions for tools and schemas.
//!
//! The template stands in the model's file. Text of people never goes through it: the template gets a mark for
//! each text, so that neither the template nor a control token's name in a text (`<|im_end|>`) can change who
//! is speaking.

use minijinja::{Environment, context, syntax::SyntaxConfig};
use serde_json::{Value, json};

use super::engine_failure;
use super::shape;
use super::vocabulary::Vocabulary;
use crate::error::Result;
use crate::model::chat::{ChatRequest, Message, Role, ToolCall};

/// Surrounds the number of a text in the rendered template. It is a private-use character, which no template
/// has reason to write.
pub(super) const MARK: char = '\u{f8f0}';
/// The default system prompt. Templates differ in what they do without one, so there always is one.
const SYSTEM: &str = "You are a helpful assistant.";

pub(super) struct ChatTemplate {
    environment: Environment<'static>,
}

impl ChatTemplate {
    pub(super) fn new(source: &str) -> Result<ChatTemplate> {
        let mut environment = Environment::new();
        // The settings of the library that these templates were written for.
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(engine_failure)?;
        environment.set_syntax(syntax);
        environment.set_fuel(Some(10_000_000));
        environment.add_template_owned("chat", source.to_owned()).map_err(engine_failure)?;
        Ok(ChatTemplate { environment })
    }

    /// Returns the tokens of a request's prompt, and how many of them are the template's beginning and the system prompt, which
    /// come again in other requests.
    pub(super) fn encode(&self, request: &ChatRequest, vocabulary: &Vocabulary) -> Result<(Vec<u32>, usize)> {
        let messages = messages(request);
        let turn = |(nth, (role, _)): (usize, &(&str, String))| {
            context! { role => *role, content => format!("{MARK}{nth}{MARK}") }
        };
        let turns: Vec<minijinja::Value> = messages.iter().enumerate().map(turn).collect();
        let template = self.environment.get_template("chat").map_err(engine_failure)?;
        let rendered =
            template.render(context! { messages => turns, add_generation_prompt => true }).map_err(engine_failure)?;
        let (mut tokens, mut stable) = (Vec::new(), 0);
        for (nth, piece) in rendered.split(MARK).enumerate() {
            match (nth % 2, piece.parse::<usize>().ok().and_then(|number| messages.get(number))) {
                (1, Some((_, text))) => vocabulary.encode_plain(text, &mut tokens),
                (1, None) => return Err(engine_failure("the model's chat template is not usable")),
                _ => vocabulary.encode_template(piece, &mut tokens),
            }
            if nth == 1 {
                stable = tokens.len();
            }
        }
        Ok((tokens, stable))
    }
}

/// Returns who says what, with instructions for tools and schemas.
pub(super) fn messages(request: &ChatRequest) -> Vec<(&'static str, String)> {
    let mut system = request.system.clone().unwrap_or_else(|| SYSTEM.to_owned());
    if !request.tools.is_empty() {
        system.push_str(&about_tools(request));
    }
    let mut messages = vec![("system", system)];
    for message in &request.messages {
        messages.push(match message.role {
            Role::User => ("user", message.content.clone()),
            Role::Assistant => ("assistant", with_calls(message)),
            Role::Tool => ("user", format!("Result of {}:\n{}", caller(request, message), message.content)),
        });
    }
    // Appended at the end, so that the next call of the conversation still begins with the same tokens.
    if let Some((_, last)) = messages.last_mut() {
        if !request.tools.is_empty() {
            last.push_str(&how_to_call(request));
        }
        if let Some(schema) = request.schema.as_ref().filter(|_| !request.wants_tool()) {
            last.push_str(&format!("\n\nAnswer in JSON, like this: {}", shape::of(schema)));
        }
    }
    messages
}

fn about_tools(request: &ChatRequest) -> String {
    let mut text = "\n\nYou can use these tools:\n".to_owned();
    for tool in &request.tools {
        text.push_str(&format!("- {}: {} Arguments: {}\n", tool.name, tool.description, tool.parameters));
    }
    text
}

/// Returns the instructions for tool calls. They come last, because small models best follow what they read last.
fn how_to_call(request: &ChatRequest) -> String {
    let names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    let when = match request.wants_tool() {
        true => "Use one now.",
        false => "Use a tool when you need it; when you have what you need, answer without.",
    };
    format!(
        "\n\n(To use a tool, your whole answer is one line of JSON: {{\"tool\": NAME, \"arguments\": {{…}}}}, where NAME \
         is one of {}. {when})",
        names.join(", ")
    )
}

/// Returns an assistant's message with its tool calls, in the form in which the model must write them.
fn with_calls(message: &Message) -> String {
    let mut text = message.content.clone();
    for call in &message.tool_calls {
        let arguments = serde_json::from_str(&call.arguments).unwrap_or_else(|_| Value::from(call.arguments.as_str()));
        text.push_str(&json!({ "tool": call.name, "arguments": arguments }).to_string());
    }
    text
}

/// Returns the name of the tool whose result this message is.
fn caller<'a>(request: &'a ChatRequest, result: &Message) -> &'a str {
    let mut calls = request.messages.iter().flat_map(|message| &message.tool_calls);
    let call: Option<&ToolCall> = calls.find(|call| result.tool_call_id.as_ref() == Some(&call.id));
    call.map_or("the tool", |call| &call.name)
}
