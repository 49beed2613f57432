//! One model in memory, and one reply at a time from it.

use std::path::Path;

use serde_json::Value;

use super::gguf::Gguf;
use super::grammar::{Grammars, Guide, LengthBounds, count_strings};
use super::prompt::ChatTemplate;
use super::sample::{Sampler, discourage};
use super::transformer::Transformer;
use super::vocabulary::{Decoder, Vocabulary};
use crate::error::{Code, Failure, Result};
use crate::model::chat::{ChatReply, ChatRequest, FinishReason, ToolCall, Usage};

/// How long a reply may get where the request does not say.
const MAX_TOKENS: usize = 2048;
/// The temperature where the request names none, as the makers of the default model recommend.
const TEMPERATURE: f64 = 0.7;
/// How far back repeating oneself counts.
const LATELY: usize = 64;
/// How much of a list and of a text the first attempt at a structured reply may have, and the second.
const ROOMY: LengthBounds = LengthBounds { text: 800, items: 12 };
const TIGHT: LengthBounds = LengthBounds { text: 200, items: 4 };

pub(super) struct Engine {
    model: String,
    transformer: Transformer,
    vocabulary: Vocabulary,
    template: ChatTemplate,
    grammars: Grammars,
}

/// What a reply in the making tells.
pub(super) enum GenerationEvent<'a> {
    Delta(&'a str),
    Retry(&'a str),
}

/// What all attempts at one reply have in common.
struct GenerationTask<'a> {
    request: &'a ChatRequest,
    prompt: Vec<u32>,
    most: usize,
    stop: &'a dyn Fn() -> bool,
}

struct GeneratedText {
    text: String,
    tokens: usize,
    finish: FinishReason,
    /// How many tokens of the prompt were known from the one before.
    known: usize,
}

impl Engine {
    pub(super) fn load(model: &str, path: &Path, stop: &dyn Fn() -> bool) -> Result<Engine> {
        let file = Gguf::open(path)?;
        let vocabulary = Vocabulary::read(&file)?;
        let template = ChatTemplate::new(file.text("tokenizer.chat_template")?)?;
        let grammars = Grammars::new(vocabulary.env());
        let transformer = Transformer::read(&file, stop)?;
        Ok(Engine { model: model.to_owned(), transformer, vocabulary, template, grammars })
    }

    /// Answers one request; `None` when it was stopped. `seed` holds where the request has none.
    pub(super) fn chat(
        &mut self,
        request: &ChatRequest,
        seed: u64,
        hear: &mut dyn FnMut(GenerationEvent),
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<ChatReply>> {
        let prompt = self.template.encode(request, &self.vocabulary)?;
        let room = self.transformer.context.saturating_sub(prompt.len());
        if room < 16 {
            return Err(Failure::new(
                Code::ModelRefused,
                format!("{} tokens are more than local/{} can read", prompt.len(), self.model),
            )
            .because(format!("the most that it takes is {}, its reply included", self.transformer.context))
            .hint("make the conversation shorter, or use a model with a larger context"));
        }
        let most = request.max_tokens.map_or(MAX_TOKENS, |most| most as usize).min(room);
        let mut usage = Usage { input: prompt.len() as u64, ..Usage::default() };
        let task = GenerationTask { request, prompt, most, stop };
        let seed = request.seed.unwrap_or(seed);
        let mut wrong: Option<String> = None;
        for (bounds, seed) in [(ROOMY, seed), (tight_bounds(request, most), seed.wrapping_add(1))] {
            if let Some(wrong) = &wrong {
                hear(GenerationEvent::Retry(wrong));
            }
            let guide = self.grammars.guide(request, bounds)?;
            let sampler = Sampler::new(request.temperature.unwrap_or(TEMPERATURE), seed);
            let Some(made) = self.generate(&task, guide, sampler, hear)? else { return Ok(None) };
            usage.output += made.tokens as u64;
            usage.cached = usage.cached.max(made.known as u64);
            let reply = |text, tool_calls, finish| {
                Ok(Some(ChatReply {
                    text,
                    tool_calls,
                    state: None,
                    usage,
                    model: self.model.clone(),
                    finish,
                    cost: None,
                    refused: Vec::new(),
                    lost: None,
                }))
            };
            if let Some(call) = tool_call(request, &made) {
                return reply(String::new(), vec![call], FinishReason::ToolCalls);
            }
            wrong = match (&request.schema, made.finish) {
                (None, _) => None,
                (Some(_), FinishReason::Length) => Some(format!("the reply was cut at its limit of {most} tokens")),
                (Some(schema), _) => validation_error(schema, &made.text),
            };
            if wrong.is_none() {
                return reply(made.text, Vec::new(), made.finish);
            }
        }
        let failure =
            Failure::new(Code::ReplyInvalid, format!("local/{} gave no valid reply in two attempts", self.model));
        Err(failure
            .because(wrong.unwrap_or_default())
            .hint("ask for fewer fields, allow more tokens, or use a larger model"))
    }

    fn generate(
        &mut self,
        task: &GenerationTask,
        mut guide: Option<Guide>,
        mut sampler: Sampler,
        hear: &mut dyn FnMut(GenerationEvent),
    ) -> Result<Option<GeneratedText>> {
        let Some((mut logits, known)) = self.transformer.start(&task.prompt, task.stop)? else { return Ok(None) };
        let mut said: Vec<u32> = Vec::new();
        let mut text = String::new();
        let mut decoder = Decoder::default();
        let finish = loop {
            match &mut guide {
                Some(guide) => guide.mask(&mut logits)?,
                None => discourage(&mut logits, &said[said.len().saturating_sub(LATELY)..]),
            }
            let Some(token) = sampler.choose(&logits) else { break FinishReason::Stop };
            if self.vocabulary.is_special(token) {
                break FinishReason::Stop;
            }
            let mut tokens = vec![token];
            if let Some(guide) = &mut guide {
                tokens.extend(guide.take(token)?);
            }
            let new: String = tokens.iter().map(|token| decoder.push(self.vocabulary.bytes(*token))).collect();
            text.push_str(&new);
            // What may be a tool call is not for the reader.
            if !new.is_empty() && (task.request.tools.is_empty() || !text.starts_with('{')) {
                hear(GenerationEvent::Delta(&new));
            }
            said.extend_from_slice(&tokens);
            if guide.as_ref().is_some_and(Guide::is_done) {
                break FinishReason::Stop;
            }
            if said.len() >= task.most {
                break FinishReason::Length;
            }
            match self.transformer.continue_with(&tokens, task.stop)? {
                Some(next) => logits = next,
                None => return Ok(None),
            }
        };
        let rest = decoder.finish();
        if !rest.is_empty() {
            text.push_str(rest);
            hear(GenerationEvent::Delta(rest));
        }
        Ok(Some(GeneratedText { text, tokens: said.len(), finish, known }))
    }
}

/// Returns bounds with which a reply fits into its tokens, if its schema leaves enough open.
fn tight_bounds(request: &ChatRequest, most: usize) -> LengthBounds {
    let strings = request.schema.as_ref().map_or(1, |schema| count_strings(schema, TIGHT.items)).max(1);
    // A token is three letters or more in most languages, and half of the tokens are for the rest.
    LengthBounds { text: (most as u64 * 3 / 2 / strings).clamp(8, TIGHT.text), ..TIGHT }
}

/// Returns the tool call that a reply is, if it is one.
fn tool_call(request: &ChatRequest, made: &GeneratedText) -> Option<ToolCall> {
    if request.tools.is_empty() || made.finish == FinishReason::Length {
        return None;
    }
    let value: Value = serde_json::from_str(&made.text).ok()?;
    let name = value.get("tool")?.as_str()?.to_owned();
    let arguments = value.get("arguments")?.to_string();
    request.tools.iter().find(|tool| tool.name == name)?;
    let before: usize = request.messages.iter().map(|message| message.tool_calls.len()).sum();
    Some(ToolCall { id: format!("local-{}", before + 1), name, arguments })
}

/// Returns what is wrong with a structured reply. The guide does not know every keyword.
fn validation_error(schema: &Value, text: &str) -> Option<String> {
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => return Some(format!("the reply is not JSON: {error}")),
    };
    let checker = jsonschema::draft202012::new(schema).ok()?;
    checker.validate(&value).err().map(|fault| format!("the reply is not valid: {fault}"))
}
