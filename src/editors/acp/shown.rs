//! What of a run's events an editor is shown: messages by who speaks, plans for what counts, and calls of models as tool calls.

use std::collections::HashMap;

use agent_client_protocol_schema::v1::{
    ContentBlock, ContentChunk, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate, TextContent,
    ToolCall, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use serde_json::Value;

use super::session::Session;
use super::wire::Wire;
use crate::model::text::{clean, excerpt};

/// What of a run was shown in this turn.
pub(super) struct Shown<'a> {
    wire: &'a Wire,
    session: &'a Session,
    pub seen: usize,
    /// The calls whose text is shown, in the order in which they began. The first is shown as it comes, the others after it.
    streams: Vec<Stream>,
    /// The calls whose text nobody sees, by their keys: what they are called.
    ended: HashMap<String, String>,
    /// What the run does: each with how far it is.
    plan: Vec<(String, u64, u64)>,
}

/// A text that is shown while it comes.
struct Stream {
    call: String,
    label: String,
    text: String,
    /// How much of the text was sent.
    sent: usize,
    over: bool,
}

impl<'a> Shown<'a> {
    /// Begins behind so many events.
    pub(super) fn from(wire: &'a Wire, session: &'a Session, seen: usize) -> Shown<'a> {
        Shown { wire, session, seen, streams: Vec::new(), ended: HashMap::new(), plan: Vec::new() }
    }

    fn say(&self, text: &str) {
        self.wire.notify("session/update", &self.session.chunk(text));
    }

    /// Shows an event.
    pub(super) fn take(&mut self, event: &Value) {
        let text = |name: &str| event[name].as_str().unwrap_or_default();
        let update = |update| self.wire.notify("session/update", &self.session.update(update));
        let call = text("call").to_owned();
        match text("type") {
            "said" => {
                let markdown = clean(text("markdown").trim_end());
                let from = text("from");
                let from = if from.is_empty() { String::new() } else { format!("**{}:** ", clean(from)) };
                self.say(&format!("{from}{markdown}\n\n"));
            }
            "notice" => self.say(&format!("*{}*\n\n", clean(text("text")))),
            "call_started" if event["show"] == true => {
                let label = clean(text("label"));
                self.streams.push(Stream { call, label, text: String::new(), sent: 0, over: false });
            }
            "call_started" => {
                let name = if text("label").is_empty() { text("model") } else { text("label") };
                let tool =
                    ToolCall::new(call.clone(), excerpt(name)).kind(ToolKind::Think).status(ToolCallStatus::InProgress);
                update(SessionUpdate::ToolCall(tool));
                self.ended.insert(call, name.to_owned());
            }
            "call_delta" | "call_retried" => {
                if let Some(stream) = self.streams.iter_mut().find(|stream| stream.call == call) {
                    if text("type") == "call_delta" {
                        stream.text.push_str(text("text"));
                    } else if stream.sent == 0 {
                        stream.text.clear();
                    } else {
                        // What was shown stays; the text begins anew below it.
                        stream.text.push_str("\n\n");
                    }
                }
                self.flush();
            }
            "call_thought" => {
                let content = ContentBlock::Text(TextContent::new(clean(text("text"))));
                update(SessionUpdate::AgentThoughtChunk(ContentChunk::new(content)));
            }
            "call_ended" => {
                let has_failed = !event["failure"].is_null();
                if let Some(stream) = self.streams.iter_mut().find(|stream| stream.call == call) {
                    stream.over = true;
                }
                if self.ended.remove(&call).is_some() {
                    let status = if has_failed { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
                    let fields = ToolCallUpdateFields::new().status(status);
                    update(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(call, fields)));
                }
                self.flush();
            }
            "status" => {
                self.plan.retain(|(_, _, total)| *total > 0);
                let line = text("text").lines().next().unwrap_or_default();
                if !line.is_empty() {
                    self.plan.push((clean(line), 0, 0));
                }
                self.show_plan();
            }
            "progress" => {
                let (done, total) =
                    (event["done"].as_u64().unwrap_or_default(), event["total"].as_u64().unwrap_or_default());
                let label = clean(text("label"));
                match self.plan.iter_mut().find(|(known, _, total)| *known == label && *total > 0) {
                    Some(entry) => (entry.1, entry.2) = (done, total),
                    None => self.plan.push((label, done, total)),
                }
                self.show_plan();
            }
            _ => {}
        }
    }

    /// Sends what can be shown of the first call, and of those behind it once it is over.
    fn flush(&mut self) {
        while let Some(stream) = self.streams.first_mut() {
            let mut out = String::new();
            if stream.sent == 0 && !stream.text.is_empty() && !stream.label.is_empty() {
                out = format!("**{}:** ", stream.label);
            }
            out += &clean(&stream.text[stream.sent..]);
            stream.sent = stream.text.len();
            if stream.over && stream.sent > 0 {
                out += "\n\n";
            }
            let is_over = stream.over;
            if !out.is_empty() {
                self.say(&out);
            }
            if !is_over {
                return;
            }
            self.streams.remove(0);
        }
    }

    fn show_plan(&self) {
        let entry = |(label, done, total): &(String, u64, u64)| {
            let content = if *total > 0 { format!("{label} ({done}/{total})") } else { label.clone() };
            let status = match *total > 0 && done >= total {
                true => PlanEntryStatus::Completed,
                false => PlanEntryStatus::InProgress,
            };
            PlanEntry::new(content, PlanEntryPriority::Medium, status)
        };
        let plan = Plan::new(self.plan.iter().map(entry).collect());
        self.wire.notify("session/update", &self.session.update(SessionUpdate::Plan(plan)));
    }
}
