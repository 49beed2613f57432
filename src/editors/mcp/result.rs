//! What a call returns of a run: text for who reads it, and the same as data.

use rmcp::model::{CallToolResult, ContentBlock, Resource};
use serde_json::{Map, Value, json};

use super::{McpOptions, resources};
use crate::editors::form;
use crate::error::Failure;
use crate::model::question::{Question, QuestionKind};
use crate::model::text::clean;

/// Returns the result of a call that could not be done.
pub(super) fn failed(failure: &Failure) -> CallToolResult {
    let hint = failure.hint.as_ref().map(|hint| format!("\n{}", clean(hint))).unwrap_or_default();
    let details: String = failure.details.iter().map(|detail| format!("\n- {}", clean(detail))).collect();
    let text = format!("[{}] {}{details}{hint}", failure.code.name(), clean(&failure.message));
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// Returns a result without data.
pub(super) fn plain(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn result(said: &str, told: &str, data: Value) -> CallToolResult {
    let text = [said, told].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n");
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(data);
    result
}

/// Returns the result of a run that is under way.
pub(super) fn running(run: &str, said: &str, doing: &str) -> CallToolResult {
    let doing = if doing.is_empty() { String::new() } else { format!(" ({doing})") };
    let told = format!("The run {run} is still under way{doing}, and goes on by itself. Call `wait` with this run.");
    result(said, &told, json!({ "run": run, "status": "running" }))
}

/// Returns the result of a run that waits for an answer.
pub(super) fn waiting(run: &str, said: &str, question: &Question, options: &McpOptions) -> CallToolResult {
    let how = match (question.kind, question.approval, options.model_may_answer) {
        (_, true, _) => format!(
            "It approves something, and counts only from the user themselves: by `nietz answer {run} VALUE` in a terminal \
             (or `nietz resume {run}`, once nobody is at it), or in `nietz view`. Tell them."
        ),
        (QuestionKind::Confirm, ..) => format!(
            "Ask the user. A no can be given back with `answer`; a yes approves something, and counts only from the user \
             themselves: by `nietz answer {run} yes` in a terminal (or `nietz resume {run}`, once nobody is at it), or in \
             `nietz view`."
        ),
        (_, _, true) => "Ask the user, or answer yourself, and call `answer`; say whose words these are.".to_owned(),
        (_, _, false) => {
            "Ask the user, and call `answer` with their own words. Do not answer in their place.".to_owned()
        }
    };
    let told = format!("The run {run} waits for an answer.\n\n{}\n\n{how}", form::text(question));
    let mut shown = serde_json::to_value(question).unwrap_or_default();
    shown["effect"] = question.effect.as_deref().into();
    result(said, &told, json!({ "run": run, "status": "waiting", "question": shown }))
}

/// Returns the result of a run whose process has ended.
pub(super) fn ended(run: &str, said: &str, end: &Value) -> CallToolResult {
    let status = end["status"].as_str().unwrap_or("failed");
    let mut data = Map::new();
    data.insert("run".to_owned(), run.into());
    data.insert("status".to_owned(), status.into());
    for member in ["result", "verdict", "failure", "usage"] {
        if !end[member].is_null() {
            data.insert(member.to_owned(), end[member].clone());
        }
    }
    let failure = &end["failure"];
    let why = match failure["message"].as_str() {
        Some(message) if status != "done" => {
            let hint = failure["hint"].as_str().map(|hint| format!(" {}", clean(hint))).unwrap_or_default();
            format!("[{}] {}{hint}", failure["code"].as_str().unwrap_or_default(), clean(message))
        }
        _ => String::new(),
    };
    let told = match status {
        // What it returned is told where it said nothing.
        "done" if said.is_empty() && !end["result"].is_null() => end["result"].to_string(),
        "done" => String::new(),
        _ if run.is_empty() => why,
        _ => format!("The run {run} is {status}. {why}\nIt can be gone on with: `resume`."),
    };
    let mut result = result(said, &told, Value::Object(data));
    if !run.is_empty() {
        let page = Resource::new(resources::page(run), format!("report of {run}"));
        result.content.push(ContentBlock::resource_link(page.with_mime_type("text/html")));
    }
    result.is_error = Some(status == "failed");
    result
}
