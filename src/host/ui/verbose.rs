//! The output that `--verbose` adds: each request to a model and its reply, in readable form. The gate and the
//! front end have already removed secrets.

use std::fmt::Write as _;

use crate::host::ui::out::safe;
use crate::model::chat::{ChatReply, ChatRequest, FinishReason, Message, Role};

/// Returns a request as lines, each with its line end.
pub(super) fn request_text(request: &ChatRequest) -> String {
    let mut out = format!("→ {}", safe(&request.model));
    if let Some(limit) = request.max_tokens {
        let _ = write!(out, ", at most {limit} tokens");
    }
    if let Some(effort) = request.effort {
        let _ = write!(out, ", effort {}", effort.name());
    }
    if let Some(temperature) = request.temperature {
        let _ = write!(out, ", temperature {temperature}");
    }
    if let Some(top_p) = request.top_p {
        let _ = write!(out, ", top_p {top_p}");
    }
    for stop in &request.stop {
        let _ = write!(out, ", up to {}", safe(&format!("{stop:?}")));
    }
    for (name, value) in &request.provider_options {
        let _ = write!(out, ", {}", safe(&format!("{name}: {value}")));
    }
    out.push('\n');
    if let Some(system) = &request.system {
        part(&mut out, "system", system);
    }
    for message in &request.messages {
        self::message(&mut out, message);
    }
    for tool in &request.tools {
        part(&mut out, "tool", &format!("{}: {}", tool.name, tool.description));
    }
    if let Some(schema) = &request.schema {
        part(&mut out, "schema", &schema.to_string());
    }
    out
}

/// Returns a reply as lines, each with its line end.
pub(super) fn reply_text(reply: &ChatReply) -> String {
    let why = match reply.finish {
        FinishReason::Stop => "done",
        FinishReason::ToolCalls => "wants tools",
        FinishReason::Length => "cut by the limit",
    };
    let usage = reply.usage;
    let model = safe(&reply.model);
    let thought = if usage.reasoning > 0 { format!(", {} of them thinking", usage.reasoning) } else { String::new() };
    let mut out = format!("← {model}, {why}, {} tokens in, {} out{thought}\n", usage.input, usage.output);
    if !reply.text.is_empty() {
        part(&mut out, "text", &reply.text);
    }
    for call in &reply.tool_calls {
        part(&mut out, "call", &format!("{} {}", call.name, call.arguments));
    }
    out
}

fn message(out: &mut String, message: &Message) {
    let who = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool result",
    };
    if !message.content.is_empty() || message.tool_calls.is_empty() {
        part(out, who, &message.content);
    }
    for call in &message.tool_calls {
        part(out, who, &format!("calls {} {}", call.name, call.arguments));
    }
}

fn part(out: &mut String, head: &str, text: &str) {
    let text = safe(text.trim_end());
    let _ = writeln!(out, "  {head}: {}", text.replace('\n', "\n    "));
}
