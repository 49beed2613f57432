//! How a provider speaks: what of its thoughts is seen, how it calls tools, what it counts.

use serde_json::{Value, json};

use super::super::wire::{REPLY_TOOL, Reply};
use super::{Request, Response, at, chat, list, messages, responses, schemas, word};

/// How a provider speaks.
pub struct Voice {
    /// So many tokens are thought before the first word: a lower limit leaves no room for any.
    pub thinks: u64,
    /// Whether it thinks where nobody asks for it.
    pub unasked: bool,
    pub thought: Thought,
    pub calls: Calls,
    /// Why a stream with calls ends.
    pub called: &'static str,
    /// What the ids of its calls begin with, and how many letters follow.
    pub id: (&'static str, usize),
    pub usage: fn(Tokens) -> Value,
    pub counts: Counts,
    /// A comment that is sent while one waits; empty where there is none.
    pub waits: &'static str,
    /// Members that stand in each piece besides, as a JSON object.
    pub beside: &'static str,
    /// What is sent before the first piece, as JSON; empty where there is nothing.
    pub first: &'static str,
}

/// Chat completions as OpenAI has them, by a model that does not think.
pub(super) const PLAIN: Voice = Voice {
    thinks: 0,
    unasked: false,
    thought: Thought::Unseen,
    calls: Calls::InPieces,
    called: "tool_calls",
    id: ("call_", 24),
    usage: openai_usage,
    counts: Counts::WhenAsked,
    waits: "",
    beside: "{}",
    first: "",
};

/// What of a thought is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thought {
    Unseen,
    /// Plain, in this member beside the text.
    Beside(&'static str),
    /// Plain and as a list of details, of which each goes back unchanged.
    Details,
    /// A seal at the first tool call, or beside the text.
    AtCall,
    /// Parts of the content.
    Parts,
    /// Within the text, between tags.
    InText,
    /// Blocks before all others; their words may be left out.
    Block {
        words: bool,
        bound: bool,
    },
    /// Items of their own, sealed.
    Item,
}

/// How tool calls are streamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// With an index; the arguments in pieces.
    InPieces,
    Whole,
    /// Whole, each in a piece of its own, with nothing but its id to tell it by.
    WholeWithoutIndex,
}

/// Where a stream says how many tokens it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// In a piece of its own, if `stream_options.include_usage` asks for it.
    WhenAsked,
    /// In a piece of its own, always.
    Always,
    /// In the last piece with a choice.
    WithTheLast,
    /// Groq's: in `x_groq` of the last piece, and as the others do if it is asked for.
    XGroq,
}

#[derive(Clone, Copy, Debug)]
pub struct Tokens {
    pub input: u64,
    /// Without what was thought.
    pub output: u64,
    pub thought: u64,
}

/// What is said in reply to one request.
pub(super) struct Said {
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
    pub(super) thinks: bool,
    pub(super) tokens: Tokens,
    pub(super) too_long: bool,
}

pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

impl Voice {
    /// Whether the model thinks before it answers this.
    pub(super) fn thinks(&self, body: &Value) -> bool {
        let effort = body["reasoning_effort"].as_str().or(at(body, "/reasoning/effort").as_str());
        let kind = at(body, "/thinking/type").as_str();
        let forced = matches!(at(body, "/tool_choice/type").as_str(), Some("any" | "tool"));
        let off = effort == Some("none") || matches!(kind, Some("disabled" | "between_tools")) || forced;
        self.thinks > 0 && !off && (self.unasked || kind.is_some())
    }

    /// Puts what a script says into the words of this provider. At home, ids of calls are its own, what is held to a schema
    /// has the form that was promised, and thoughts count; elsewhere what is said can be compared with what a plain server says.
    pub(super) fn says(&self, request: &Request, response: Response, at_home: bool) -> Response {
        let Some(reply) = response.reply_of() else { return response };
        assert!(!reply.without_end && reply.error.is_none(), "a strict server has no faults of its own");
        let said = self.said(&request.body, reply, at_home);
        let streamed = request.body["stream"] == true;
        let body = match request.path.rsplit('/').next() {
            Some("messages") => messages::render(self, &request.body, &said),
            Some("responses") => responses::render(&request.body, &said),
            _ => chat::render(self, &request.body, &said),
        };
        response.in_words(if streamed { "text/event-stream" } else { "application/json" }, body)
    }

    fn said(&self, body: &Value, reply: &Reply, at_home: bool) -> Said {
        let thinks = self.thinks(body);
        let call = |(index, [id, name, arguments]): (usize, &[String; 3])| Call {
            id: if at_home { self.new_id(body, index) } else { id.clone() },
            name: name.clone(),
            arguments: arguments.clone(),
        };
        let mut calls: Vec<Call> = reply.calls.iter().enumerate().map(call).collect();
        let mut text = if at_home { schemas::as_promised(body, &reply.text) } else { reply.text.clone() };
        let by_tool = list(&body["tools"]).iter().any(|tool| tool["name"] == REPLY_TOOL);
        if by_tool && calls.is_empty() && !reply.too_long {
            let name = REPLY_TOOL.to_owned();
            calls.push(Call { id: self.new_id(body, 0), name, arguments: std::mem::take(&mut text) });
        }
        let (input, output) = reply.usage;
        Said {
            text,
            calls,
            thinks,
            tokens: Tokens { input, output, thought: if thinks && at_home { 20 } else { 0 } },
            too_long: reply.too_long,
        }
    }

    fn new_id(&self, body: &Value, index: usize) -> String {
        let (before, letters) = self.id;
        let long = word(&json!([body, index])) + &word(&json!([index, body]));
        format!("{before}{}", &long[..letters])
    }

    /// What was thought and ought to have come back in this turn, where no refusal says so.
    pub(super) fn lost(&self, body: &Value) -> Option<String> {
        if !self.thinks(body) {
            return None;
        }
        match self.thought {
            Thought::Item => responses::lost(body),
            Thought::Details => {
                let messages = list(&body["messages"]);
                let begins = messages.iter().rposition(|message| message["role"] == "user")?;
                let of_turn = messages.iter().skip(begins).filter(|message| !message["tool_calls"].is_null());
                let mut bare = of_turn.filter(|message| list(&message["reasoning_details"]).is_empty());
                bare.next().map(|message| format!("reasoning_details did not come back with {}", message["tool_calls"]))
            }
            Thought::Unseen
            | Thought::Beside(_)
            | Thought::AtCall
            | Thought::Parts
            | Thought::InText
            | Thought::Block { .. } => None,
        }
    }
}

/// What a model thinks of a conversation.
pub(super) fn thought(body: &Value) -> String {
    format!("sealed-{}", word(&json!([body["messages"], body["input"]])))
}

/// The seal of a text that this model made.
pub(super) fn seal(body: &Value, of: &Value) -> String {
    format!("sealed-{}", word(&json!([body["model"], of])))
}

/// Cuts a text into a few pieces, as a model streams it.
pub(super) fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(chars.len().div_ceil(4).max(1)).map(|piece| piece.iter().collect()).collect()
}

/// Counts as OpenAI has them: what was thought is part of what was written.
pub(super) fn openai_usage(Tokens { input, output, thought }: Tokens) -> Value {
    let output = output + thought;
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
        "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": thought, "audio_tokens": 0}})
}

/// Counts without any details.
pub(super) fn bare_usage(Tokens { input, output, thought }: Tokens) -> Value {
    let output = output + thought;
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output})
}
