//! What is wrong with a conversation: results without calls, calls without results, thoughts that did not come back.

use serde_json::{Value, json};

use super::messages::signature;
use super::voice::seal;
use super::{at, list};

fn messages(body: &Value) -> &[Value] {
    list(&body["messages"])
}

fn assistants(body: &Value) -> impl Iterator<Item = (usize, &Value)> {
    messages(body).iter().enumerate().filter(|(_, message)| message["role"] == "assistant")
}

/// Where the user spoke last.
fn turn_begins(body: &Value) -> usize {
    let is_result = |content: &Value| content[0]["type"] == "tool_result";
    let asks = |message: &Value| message["role"] == "user" && !is_result(&message["content"]);
    messages(body).iter().rposition(asks).unwrap_or(0)
}

/// The calls of chat completions that no tool message answers at once.
pub(super) fn unanswered(body: &Value) -> Option<String> {
    let all = messages(body);
    assistants(body).find_map(|(index, message)| {
        let answers = all[index + 1..].iter().take_while(|message| message["role"] == "tool");
        let answers: Vec<&Value> = answers.map(|message| &message["tool_call_id"]).collect();
        let open = list(&message["tool_calls"]).iter().find(|call| !answers.contains(&&call["id"]))?;
        Some(open["id"].as_str().unwrap_or_default().to_owned())
    })
}

/// A message of a tool that no call came before: its index.
pub(super) fn uncalled(body: &Value) -> Option<String> {
    let all = messages(body);
    let tools = all.iter().enumerate().filter(|(_, message)| message["role"] == "tool");
    let mut stray = tools.filter(|(index, message)| {
        let before = all[..*index].iter().rev().find(|message| message["role"] != "tool");
        let calls = before.map(|before| list(&before["tool_calls"])).unwrap_or_default();
        !calls.iter().any(|call| call["id"] == message["tool_call_id"])
    });
    stray.next().map(|(index, _)| index.to_string())
}

/// A message of an assistant that has neither content nor calls: its index.
pub(super) fn silent(body: &Value) -> Option<String> {
    let is_empty = |content: &Value| content.is_null() || content == "";
    let mut empty = assistants(body)
        .filter(|(_, message)| is_empty(&message["content"]) && list(&message["tool_calls"]).is_empty());
    empty.next().map(|(index, _)| index.to_string())
}

/// A conversation that ends with an assistant.
pub(super) fn prefilled(body: &Value) -> Option<String> {
    let last = messages(body).last()?;
    (last["role"] == "assistant" && last["prefix"] != true).then(|| "assistant".to_owned())
}

/// A user who speaks right behind a tool.
pub(super) fn user_behind_tool(body: &Value) -> Option<String> {
    let mut pairs = messages(body).windows(2);
    pairs.any(|pair| pair[0]["role"] == "tool" && pair[1]["role"] == "user").then(|| "user".to_owned())
}

/// An id of a call that is not nine letters and digits.
pub(super) fn id_of_other_form(body: &Value) -> Option<String> {
    let calls = assistants(body).flat_map(|(_, message)| list(&message["tool_calls"]));
    let mut ids = calls.filter_map(|call| call["id"].as_str());
    ids.find(|id| id.len() != 9 || !id.chars().all(|c| c.is_ascii_alphanumeric())).map(str::to_owned)
}

/// A call whose arguments are no object: its name.
pub(super) fn torn_arguments(body: &Value) -> Option<String> {
    let mut calls = assistants(body).flat_map(|(_, message)| list(&message["tool_calls"]));
    let torn = calls.find(|call| {
        let text = at(call, "/function/arguments").as_str().unwrap_or_default();
        !serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object())
    })?;
    Some(at(torn, "/function/name").as_str().unwrap_or_default().to_owned())
}

/// A call of this turn whose seal is missing or was made for another call: `NAME, position INDEX`.
pub(super) fn unsealed_call(body: &Value) -> Option<String> {
    let of_turn = assistants(body).filter(|(index, _)| *index > turn_begins(body));
    of_turn.filter(|(_, message)| !message["tool_calls"].is_null()).find_map(|(index, message)| {
        let call = &message["tool_calls"][0];
        let function = &call["function"];
        let given = at(call, "/extra_content/google/thought_signature");
        let own = seal(body, &json!([function["name"], function["arguments"]]));
        let passes = *given == own || given == "skip_thought_signature_validator";
        (!passes).then(|| format!("{}` , position {index}", function["name"].as_str().unwrap_or_default()))
    })
}

/// A call that came back without the member for its thought; an empty one will do.
pub(super) fn no_reasoning_content(body: &Value) -> Option<String> {
    if at(body, "/thinking/type") == "disabled" {
        return None;
    }
    let mut calls = assistants(body).filter(|(_, message)| !list(&message["tool_calls"]).is_empty());
    calls.find(|(_, message)| message["reasoning_content"].is_null()).map(|(index, _)| index.to_string())
}

/// A thought of Claude's that was changed, or is another model's: where it stands.
pub(super) fn foreign_thought(body: &Value) -> Option<String> {
    wrong_seal(body, false)
}

/// A thought of Claude's that was made for another conversation: where it stands.
pub(super) fn unbound_thought(body: &Value) -> Option<String> {
    wrong_seal(body, true)
}

fn wrong_seal(body: &Value, bound: bool) -> Option<String> {
    assistants(body).find_map(|(index, message)| {
        let blocks = list(&message["content"]).iter().enumerate();
        let mut thoughts = blocks.filter(|(_, block)| block["type"] == "thinking" && !block["signature"].is_null());
        let wrong = thoughts.find(|(_, block)| block["signature"] != signature(body, index, &block["thinking"], bound));
        wrong.map(|(at, _)| format!("messages.{index}.content.{at}"))
    })
}

/// A thought of Claude's that lacks its signature: where it stands.
pub(super) fn unsigned_thought(body: &Value) -> Option<String> {
    assistants(body).find_map(|(index, message)| {
        let mut blocks = list(&message["content"]).iter().enumerate();
        let (at, _) = blocks.find(|(_, block)| block["type"] == "thinking" && block["signature"].is_null())?;
        Some(format!("messages.{index}.content.{at}"))
    })
}

/// With a budget of thoughts, a turn with a call that does not begin with one: where it stands, and what stands there.
pub(super) fn no_thought_first(body: &Value) -> Option<String> {
    if at(body, "/thinking/type") != "enabled" {
        return None;
    }
    let of_turn = assistants(body).filter(|(index, _)| *index > turn_begins(body));
    of_turn.map(|(index, message)| (index, list(&message["content"]))).find_map(|(index, blocks)| {
        let calls = blocks.iter().any(|block| block["type"] == "tool_use");
        let first = blocks.first()?["type"].as_str().unwrap_or_default();
        let thought = ["thinking", "redacted_thinking"].contains(&first);
        (calls && !thought).then(|| {
            format!("messages.{index}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{first}`")
        })
    })
}

/// The uses of tools on Anthropic's wire that the next message does not answer: where, and which.
pub(super) fn unanswered_use(body: &Value) -> Option<String> {
    let all = messages(body);
    assistants(body).find_map(|(index, message)| {
        let next = all.get(index + 1).map(|next| list(&next["content"])).unwrap_or_default();
        let answers: Vec<&Value> = next.iter().map(|block| &block["tool_use_id"]).collect();
        let mut uses = list(&message["content"]).iter().filter(|block| block["type"] == "tool_use");
        let open = uses.find(|block| !answers.contains(&&block["id"]))?;
        Some(format!(
            "messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {}",
            open["id"].as_str().unwrap_or_default()
        ))
    })
}

/// Marks for the cache beyond the four that there may be: how many.
pub(super) fn too_many_marks(body: &Value) -> Option<String> {
    let marks = body.to_string().matches("\"cache_control\":{").count();
    (marks > 4).then(|| marks.to_string())
}
