//! Prompt caching: what a server is asked to keep of a request, so that the next one costs less.
//!
//! Anthropic's API keeps nothing that is not marked, and what it keeps costs a quarter more than other input once, and a
//! tenth or less from then on. So a request is marked only if another one will probably begin like it ([`Sent::marks`]). All
//! other providers cache by themselves; some find what they have more often if they are told which conversation it is
//! ([`conversation`]).
//!
//! Marks come after the content key: a flow asks for the same with them and without them.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde::Serialize;

use super::catalogue;
use super::families::ModelProfile;
use super::provider::{Provider, Wire};
use super::refusal::RequestPart;
use crate::model::chat::{ChatRequest, Message, Role};
use crate::model::digest::Digest;

/// The member that marks a block, on each wire that has marks.
const MEMBER: &str = "cache_control";

/// How many tokens a prompt must have to be kept, where that is not known of the model.
const USUAL_MINIMUM: u64 = 1024;

/// About how many bytes a token has. A mark that comes too early is passed over by the server, and costs nothing.
const BYTES: u64 = 4;

/// The most turns that are marked: the last one, for the next request, and the one before it, which the previous request
/// has marked. A server looks only at twenty blocks before a mark for what it has, and a turn may have more.
const TURNS: usize = 2;

/// The mark of a block up to whose end a server is to keep the request, for five minutes after it was last used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Mark {
    r#type: &'static str,
}

/// The only mark that there is.
pub(super) const MARK: Mark = Mark { r#type: "ephemeral" };

/// What is marked in a request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Marks {
    /// Its tools and its system prompt.
    pub(super) start: bool,
    /// The conversation.
    pub(super) turns: bool,
}

/// What requests of this process began with, as far as they were answered.
#[derive(Default)]
pub(super) struct Sent(RefCell<BTreeSet<[u8; 16]>>);

impl Sent {
    /// Decides what is marked in a request. A conversation is marked if it will go on: it has tools, or an answer stands in
    /// it. Tools and system prompt are marked then, too, and if this process has sent the same before: a persona speaks more than
    /// once. So a call that stands alone pays nothing for a cache that nobody would read.
    ///
    /// Nothing is marked where the wire has no marks, where the server has refused them in this run, and where the flow says
    /// itself, by its provider options, what is kept.
    pub(super) fn marks(&self, provider: &Provider, profile: &ModelProfile, request: &ChatRequest) -> Marks {
        let own = request.provider_options.contains_key(MEMBER);
        if !has_marks(provider, request) || own || profile.refuses(RequestPart::CacheControl) {
            return Marks::default();
        }
        let answered = request.messages.iter().any(|message| message.role == Role::Assistant);
        let turns = answered || !request.tools.is_empty();
        Marks { start: turns || self.0.borrow().contains(&start(request)), turns }
    }

    /// Notes that a request was answered.
    pub(super) fn note(&self, provider: &Provider, request: &ChatRequest) {
        if has_marks(provider, request) {
            self.0.borrow_mut().insert(start(request));
        }
    }
}

fn has_marks(provider: &Provider, request: &ChatRequest) -> bool {
    // OpenRouter passes marks on to those who have them.
    let passed_on = provider.name == "openrouter" && !provider.moved && request.model.contains("/anthropic/");
    provider.wire == Wire::Anthropic || passed_on
}

/// Returns the digest of what a request begins with.
fn start(request: &ChatRequest) -> [u8; 16] {
    Digest::of_json(&(&request.model, &request.system, &request.tools, &request.schema)).bytes()
}

/// The places of marks in a request.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Places {
    /// Whether the system prompt, or without one the last tool, is marked.
    pub(super) start: bool,
    /// The messages or turns that are marked, at their end.
    pub(super) turns: Vec<usize>,
}

/// Returns where a request to a model, as its provider names it, is marked. `start` is the size of its tools and its system prompt in bytes, and `turns` says of each
/// message or turn whether the model wrote it, and its size.
///
/// There are three marks at most, of the four that a request may have.
pub(super) fn places(marks: Marks, model: &str, start: usize, turns: &[(bool, usize)]) -> Places {
    if marks == Marks::default() {
        return Places::default();
    }
    let least = minimum(model).saturating_mul(BYTES);
    let is_enough = |bytes: usize| bytes as u64 >= least;
    let mut places = Places { start: marks.start && is_enough(start), turns: Vec::new() };
    let mut bytes = start;
    for (index, (by_model, size)) in turns.iter().enumerate() {
        bytes += size;
        let ends = turns.get(index + 1).is_none_or(|(next, _)| *next);
        if marks.turns && !by_model && ends && is_enough(bytes) {
            places.turns.push(index);
        }
    }
    places.turns.drain(..places.turns.len().saturating_sub(TURNS));
    places
}

/// Returns how many tokens a request must have up to a mark to be kept.
fn minimum(model: &str) -> u64 {
    // OpenRouter writes `anthropic/claude-sonnet-5.5`.
    let model = match model.split_once("anthropic/") {
        Some((_, model)) => format!("anthropic/{}", model.replace('.', "-")),
        None => format!("anthropic/{model}"),
    };
    catalogue::cache_minimum(&model).unwrap_or(USUAL_MINIMUM)
}

/// Returns the size of a message on the wire, about, in bytes.
pub(super) fn size(message: &Message) -> usize {
    message.size() + message.tool_calls.iter().map(|call| call.name.len() + call.arguments.len()).sum::<usize>()
}

/// Returns the size of tools on the wire, about, in bytes.
pub(super) fn tools_size(request: &ChatRequest) -> usize {
    let size =
        |tool: &crate::model::chat::Tool| tool.name.len() + tool.description.len() + tool.parameters.to_string().len();
    request.tools.iter().map(size).sum()
}

/// Returns a name for the conversation of a request that stays the same while it grows, for providers that find more in their
/// caches with it: `None` for all others, and at any address but their own.
pub(super) fn conversation(provider: &Provider, request: &ChatRequest) -> Option<String> {
    let wants = matches!(provider.name.as_str(), "openai" | "xai") && !provider.moved;
    let first = request.messages.first();
    let begin = (&request.model, &request.system, &request.tools, first);
    wants.then(|| format!("nietz-{}", Digest::of_json(&begin)))
}

/// Returns the member of a body by which OpenAI finds what it has of a conversation, on both of its wires; `None` where a flow's
/// provider options have it.
pub(super) fn key(provider: &Provider, request: &ChatRequest) -> Option<String> {
    let own = request.provider_options.contains_key("prompt_cache_key");
    conversation(provider, request).filter(|_| provider.name == "openai" && !own)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::host::llm::tests::{message, request};
    use crate::host::llm::{ClientSettings, ModelsConfig};

    fn settings() -> ClientSettings {
        ClientSettings::from_environment(&Default::default(), &ModelsConfig::default()).expect("nothing is set")
    }

    fn provider(name: &str) -> Provider {
        settings().providers.into_iter().find(|provider| provider.name == name).expect("it is known")
    }

    fn places_of(model: &str, marks: Marks, start: usize, turns: &[(bool, usize)]) -> (bool, Vec<usize>) {
        let Places { start, turns } = places(marks, model, start, turns);
        (start, turns)
    }

    #[test]
    fn a_conversation_that_goes_on_is_marked_and_a_call_that_stands_alone_is_not() {
        let (anthropic, profile, sent) = (provider("anthropic"), ModelProfile::default(), Sent::default());
        let mut one = request("anthropic/claude-sonnet-5-5", "hello");
        let marks = |request: &ChatRequest| sent.marks(&anthropic, &profile, request);
        assert_eq!(marks(&one), Marks::default());
        sent.note(&anthropic, &one);
        // The same persona speaks again, about something else.
        one.messages[0].content = "and now?".to_owned();
        assert_eq!(marks(&one), Marks { start: true, turns: false });
        one.system = Some("another one".to_owned());
        assert_eq!(marks(&one), Marks::default());
        one.messages.extend([message(Role::Assistant, "well"), message(Role::User, "so?")]);
        assert_eq!(marks(&one), Marks { start: true, turns: true });
        one.messages.truncate(1);
        one.tools = serde_json::from_value(json!([{"name": "look", "parameters": {}}])).unwrap();
        assert_eq!(marks(&one), Marks { start: true, turns: true });
        // Whoever says it in the provider's own words says all of it.
        one.provider_options.insert("cache_control".to_owned(), json!({"type": "ephemeral", "ttl": "1h"}));
        assert_eq!(marks(&one), Marks::default());
        one.provider_options.clear();
        let mut refusing = ModelProfile::default();
        refusing.learn(RequestPart::CacheControl);
        assert_eq!(sent.marks(&anthropic, &refusing, &one), Marks::default());
        assert_eq!(sent.marks(&provider("openai"), &profile, &one), Marks::default());
        assert_eq!(sent.marks(&provider("openrouter"), &profile, &one), Marks::default());
        one.model = "openrouter/anthropic/claude-sonnet-5.5".to_owned();
        assert_eq!(sent.marks(&provider("openrouter"), &profile, &one), Marks { start: true, turns: true });
    }

    #[test]
    fn marks_stand_at_the_end_of_the_last_two_turns_where_there_is_enough_before_them() {
        let all = Marks { start: true, turns: true };
        let (user, model) = (|bytes| (false, bytes), |bytes| (true, bytes));
        let turns = [user(4096), model(10), user(10), user(10), model(10), user(10)];
        assert_eq!(places_of("claude-sonnet-4-6", all, 4096, &turns), (true, vec![3, 5]));
        assert_eq!(places_of("claude-sonnet-4-6", Marks { turns: false, ..all }, 4096, &turns), (true, vec![]));
        assert_eq!(places_of("claude-sonnet-4-6", Marks::default(), 4096, &turns), (false, vec![]));
        // 1,024 tokens are about 4,096 bytes; this model wants 4,096 tokens, and the one after it 512.
        assert_eq!(places_of("claude-sonnet-4-6", all, 0, &turns[2..]), (false, vec![]));
        assert_eq!(places_of("claude-haiku-4-5", all, 4096, &turns), (false, vec![]));
        assert_eq!(places_of("claude-sonnet-5-5", all, 2048, &turns[..1]), (true, vec![0]));
        // What is in the middle of a reply ends no turn.
        assert_eq!(places_of("anthropic/claude-sonnet-5.5", all, 2048, &[user(9), model(9)]), (true, vec![0]));
    }

    #[test]
    fn a_conversation_keeps_its_name_while_it_grows() {
        let mut one = request("openai/gpt-6.1-terra", "hello");
        let name = conversation(&provider("openai"), &one);
        one.messages.extend([message(Role::Assistant, "well"), message(Role::User, "so?")]);
        assert!(name.is_some() && name == conversation(&provider("openai"), &one));
        one.messages[0].content = "another".to_owned();
        assert_ne!(name, conversation(&provider("openai"), &one));
        assert_eq!(conversation(&provider("groq"), &one), None);
    }
}
