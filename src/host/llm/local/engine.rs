//! One model in memory, and one reply at a time from it.

use std::path::Path;

use serde_json::Value;

use super::gguf::Gguf;
use super::grammar::{Bounds, Grammars, Guide};
use super::prompt::Template;
use super::sample::{Sampler, discourage};
use super::transformer::Transformer;
use super::vocabulary::{Decoder, Vocabulary};
use crate::error::{Code, Failure, Result};
use crate::model::chat::{ChatReply, ChatRequest, Finish, ToolCall, Usage};

/// How long a reply may get where the request does not say.
const MAX_TOKENS: usize = 2048;
/// The temperature where the request names none, as the makers of the default model recommend.
const TEMPERATURE: f64 = 0.7;
/// How far back repeating oneself counts.
const LATELY: usize = 64;
/// The first attempt at a structured reply, and the second one, which is kept short to make sure.
const ROOMY: Bounds = Bounds { text: 800, items: 12 };
const TIGHT: Bounds = Bounds { text: 200, items: 5 };

pub(super) struct Engine {
    model: String,
    transformer: Transformer,
    vocabulary: Vocabulary,
    template: Template,
    grammars: Grammars,
}

/// What a reply in the making tells.
pub(super) enum Heard<'a> {
    Delta(&'a str),
    Again(&'a str),
}

struct Generated {
    text: String,
    tokens: usize,
    finish: Finish,
}

impl Engine {
    pub(super) fn load(model: &str, path: &Path, stop: &dyn Fn() -> bool) -> Result<Engine> {
        let mut file = Gguf::open(path)?;
        let vocabulary = Vocabulary::read(&file)?;
        let template = Template::new(file.text("tokenizer.chat_template")?)?;
        let grammars = Grammars::new(vocabulary.env());
        let transformer = Transformer::read(&mut file, stop)?;
        Ok(Engine { model: model.to_owned(), transformer, vocabulary, template, grammars })
    }

    /// Answers one request; `None` when it was stopped. `seed` holds where the request has none.
    pub(super) fn chat(
        &mut self,
        request: &ChatRequest,
        seed: u64,
        hear: &mut dyn FnMut(Heard),
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
        let seed = request.seed.unwrap_or(seed);
        let mut usage = Usage { input: prompt.len() as u64, ..Usage::default() };
        let structured = request.schema.is_some();
        let mut wrong = String::new();
        for (bounds, seed) in [(ROOMY, seed), (TIGHT, seed.wrapping_add(1))] {
            if !wrong.is_empty() {
                hear(Heard::Again(&wrong));
            }
            let bounds = Bounds { text: bounds.text.min((most as u64 * 2).max(40)), ..bounds };
            let guide = self.grammars.guide(request, bounds)?;
            let sampler = Sampler::new(request.temperature.unwrap_or(TEMPERATURE), seed);
            let Some((made, known)) = self.generate(&prompt, guide, sampler, most, request, hear, stop)? else {
                return Ok(None);
            };
            usage.output += made.tokens as u64;
            usage.cached = usage.cached.max(known as u64);
            if let Some(call) = tool_call(request, &made) {
                let (text, model, finish) = (String::new(), self.model.clone(), Finish::ToolCalls);
                return Ok(Some(ChatReply { text, tool_calls: vec![call], usage, model, finish }));
            }
            wrong = match (made.finish, &request.schema) {
                (Finish::Length, Some(_)) => format!("the reply was cut at its limit of {most} tokens"),
                (_, Some(schema)) => invalid(schema, &made.text).unwrap_or_default(),
                (_, None) => String::new(),
            };
            if wrong.is_empty() {
                let (model, finish) = (self.model.clone(), made.finish);
                return Ok(Some(ChatReply { text: made.text, tool_calls: Vec::new(), usage, model, finish }));
            }
        }
        debug_assert!(structured);
        Err(Failure::new(Code::ReplyInvalid, format!("local/{} gave no valid reply in two attempts", self.model))
            .because(wrong)
            .hint("ask for fewer fields, allow more tokens, or use a larger model"))
    }

    #[allow(clippy::too_many_arguments)]
    fn generate(
        &mut self,
        prompt: &[u32],
        mut guide: Option<Guide>,
        mut sampler: Sampler,
        most: usize,
        request: &ChatRequest,
        hear: &mut dyn FnMut(Heard),
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<(Generated, usize)>> {
        let Some((mut logits, known)) = self.transformer.start(prompt, stop)? else { return Ok(None) };
        let mut said: Vec<u32> = Vec::new();
        let mut text = String::new();
        let mut decoder = Decoder::default();
        let finish = loop {
            match &mut guide {
                Some(guide) => guide.mask(&mut logits)?,
                None => discourage(&mut logits, &said[said.len().saturating_sub(LATELY)..]),
            }
            let Some(token) = sampler.choose(&logits) else { break Finish::Stop };
            if self.vocabulary.is_special(token) {
                break Finish::Stop;
            }
            let mut tokens = vec![token];
            if let Some(guide) = &mut guide {
                tokens.extend(guide.take(token)?);
            }
            let new: String = tokens.iter().map(|token| decoder.push(self.vocabulary.bytes(*token))).collect();
            text.push_str(&new);
            // What may be a tool call is not for the reader.
            if !new.is_empty() && (request.tools.is_empty() || !text.starts_with('{')) {
                hear(Heard::Delta(&new));
            }
            said.extend_from_slice(&tokens);
            if guide.as_ref().is_some_and(Guide::is_done) {
                break Finish::Stop;
            }
            if said.len() >= most {
                break Finish::Length;
            }
            match self.transformer.go_on(&tokens, stop)? {
                Some(next) => logits = next,
                None => return Ok(None),
            }
        };
        text.push_str(decoder.finish());
        Ok(Some((Generated { text, tokens: said.len(), finish }, known)))
    }
}

/// Returns the tool call that a reply is, if it is one.
fn tool_call(request: &ChatRequest, made: &Generated) -> Option<ToolCall> {
    if request.tools.is_empty() || made.finish == Finish::Length {
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
fn invalid(schema: &Value, text: &str) -> Option<String> {
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => return Some(format!("the reply is not JSON: {error}")),
    };
    let checker = jsonschema::draft202012::new(schema).ok()?;
    checker.validate(&value).err().map(|fault| format!("the reply is not valid: {fault}"))
}
