//! One model in memory, which generates one reply at a time.

use std::path::Path;

use serde_json::Value;

use super::gguf::Gguf;
use super::grammar::{Grammars, Guide, LengthBounds, count_strings};
use super::prompt::ChatTemplate;
use super::sample::{Sampler, discourage};
use super::transformer::Transformer;
use super::vocabulary::{Decoder, Vocabulary};
use crate::error::{Code, Failure, Result};
use crate::host::llm::stop_texts::StopTexts;
use crate::model::chat::{ChatReply, ChatRequest, FinishReason, ToolCall, Usage};
use crate::model::text::excerpt;

/// The most tokens of a reply, where the request sets no limit.
const MAX_TOKENS: usize = 2048;
/// The temperature where the request sets none, as the makers of the default model recommend.
const TEMPERATURE: f64 = 0.7;
/// How many of the last tokens are discouraged as repetitions.
const LATELY: usize = 64;
/// How long texts and lists may get in the first attempt at a structured reply, and in the second.
const ROOMY: LengthBounds = LengthBounds { text: 800, items: 12 };
const TIGHT: LengthBounds = LengthBounds { text: 200, items: 4 };

pub(super) struct Engine {
    model: String,
    transformer: Transformer,
    vocabulary: Vocabulary,
    template: ChatTemplate,
    grammars: Grammars,
}

/// The progress of a reply.
pub(super) enum GenerationEvent<'a> {
    /// A sign that it works: a part of the prompt is read, a piece of a possible tool call is there.
    Alive,
    Delta(&'a str),
    Retry(&'a str),
}

/// What all attempts at one reply share.
struct GenerationTask<'a> {
    request: &'a ChatRequest,
    prompt: Vec<u32>,
    max_tokens: usize,
    stop: &'a dyn Fn() -> bool,
}

struct GeneratedText {
    text: String,
    tokens: usize,
    finish: FinishReason,
    /// How many tokens of the prompt were cached from the previous prompt.
    cached_tokens: usize,
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

    /// Answers one request; `None` if `stop` ended it. `seed` counts where the request has none.
    pub(super) fn chat(
        &mut self,
        request: &ChatRequest,
        seed: u64,
        on_event: &mut dyn FnMut(GenerationEvent),
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<ChatReply>> {
        if let Some(option) = request.provider_options.keys().next() {
            let message = format!("the local engine has no option `{}`", excerpt(option));
            return Err(
                Failure::new(Code::RequestInvalid, message).hint("it knows temperature, top_p, stop and max_tokens")
            );
        }
        let prompt = self.template.encode(request, &self.vocabulary)?;
        let room = self.transformer.context.saturating_sub(prompt.len());
        if room < 16 {
            return Err(Failure::new(
                Code::ContextExceeded,
                format!("{} tokens are more than local/{} can read", prompt.len(), self.model),
            )
            .because(format!("the most that it takes is {}, its reply included", self.transformer.context))
            .hint("make the conversation shorter, or use a model with a larger context"));
        }
        let max_tokens = request.max_tokens.map_or(MAX_TOKENS, |max_tokens| max_tokens as usize).min(room);
        let mut usage = Usage { input: prompt.len() as u64, ..Usage::default() };
        let task = GenerationTask { request, prompt, max_tokens, stop };
        let seed = request.seed.unwrap_or(seed);
        let mut error: Option<String> = None;
        for (bounds, seed) in [(ROOMY, seed), (tight_bounds(request, max_tokens), seed.wrapping_add(1))] {
            if let Some(error) = &error {
                on_event(GenerationEvent::Retry(error));
            }
            let guide = self.grammars.guide(request, bounds)?;
            let sampler = Sampler::new(request.temperature.unwrap_or(TEMPERATURE), request.top_p, seed);
            let Some(generated) = self.generate(&task, guide, sampler, on_event)? else { return Ok(None) };
            usage.output += generated.tokens as u64;
            usage.cached = usage.cached.max(generated.cached_tokens as u64);
            let reply = |text, tool_calls, finish| {
                Ok(Some(ChatReply {
                    text,
                    tool_calls,
                    state: None,
                    usage,
                    model: self.model.clone(),
                    finish,
                    cost: None,
                    saved: 0.0,
                    refused: Vec::new(),
                    retries: Vec::new(),
                    lost: None,
                }))
            };
            if let Some(call) = tool_call(request, &generated) {
                return reply(String::new(), vec![call], FinishReason::ToolCalls);
            }
            error = match (&request.schema, generated.finish) {
                (None, _) => None,
                (Some(_), FinishReason::Length) => {
                    Some(format!("the reply was cut at its limit of {max_tokens} tokens"))
                }
                (Some(schema), _) => validation_error(schema, &generated.text),
            };
            if error.is_none() {
                return reply(generated.text, Vec::new(), generated.finish);
            }
        }
        let failure =
            Failure::new(Code::ReplyInvalid, format!("local/{} gave no valid reply in two attempts", self.model));
        Err(failure
            .because(error.unwrap_or_default())
            .hint("ask for fewer fields, allow more tokens, or use a larger model"))
    }

    fn generate(
        &mut self,
        task: &GenerationTask,
        mut guide: Option<Guide>,
        mut sampler: Sampler,
        on_event: &mut dyn FnMut(GenerationEvent),
    ) -> Result<Option<GeneratedText>> {
        let Some((mut logits, cached_tokens)) =
            self.transformer.start(&task.prompt, &mut || on_event(GenerationEvent::Alive), task.stop)?
        else {
            return Ok(None);
        };
        let mut output: Vec<u32> = Vec::new();
        let mut text = String::new();
        // What is a reply in a fixed form does not end before its form does.
        let mut stops = StopTexts::new(if guide.is_none() { &task.request.stop } else { &[] });
        let mut decoder = Decoder::default();
        let finish = loop {
            match &mut guide {
                Some(guide) => guide.mask(&mut logits)?,
                None => discourage(&mut logits, &output[output.len().saturating_sub(LATELY)..]),
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
            let stopped = stops.cut(&mut text);
            // A possible tool call is not shown to the reader.
            if task.request.tools.is_empty() || !text.starts_with('{') {
                stops.show(&text, stopped, &mut |text| on_event(GenerationEvent::Delta(text)));
            } else {
                on_event(GenerationEvent::Alive);
            }
            output.extend_from_slice(&tokens);
            if stopped || guide.as_ref().is_some_and(Guide::is_done) {
                break FinishReason::Stop;
            }
            if output.len() >= task.max_tokens {
                break FinishReason::Length;
            }
            match self.transformer.continue_with(&tokens, task.stop)? {
                Some(next) => logits = next,
                None => return Ok(None),
            }
        };
        let rest = decoder.finish();
        text.push_str(rest);
        stops.cut(&mut text);
        if task.request.tools.is_empty() || !text.starts_with('{') {
            stops.show(&text, true, &mut |text| on_event(GenerationEvent::Delta(text)));
        }
        Ok(Some(GeneratedText { text, tokens: output.len(), finish, cached_tokens }))
    }
}

/// Returns bounds by which a reply fits into its tokens, if its schema leaves enough open.
fn tight_bounds(request: &ChatRequest, max_tokens: usize) -> LengthBounds {
    let strings = request.schema.as_ref().map_or(1, |schema| count_strings(schema, TIGHT.items)).max(1);
    // A token is three letters or more in most languages; half of the tokens are left for keys and punctuation.
    LengthBounds { text: (max_tokens as u64 * 3 / 2 / strings).clamp(8, TIGHT.text), ..TIGHT }
}

/// Returns the tool call in a reply, if the reply is one.
fn tool_call(request: &ChatRequest, generated: &GeneratedText) -> Option<ToolCall> {
    if request.tools.is_empty() || generated.finish == FinishReason::Length {
        return None;
    }
    let value: Value = serde_json::from_str(&generated.text).ok()?;
    let name = value.get("tool")?.as_str()?.to_owned();
    let arguments = value.get("arguments")?.to_string();
    request.tools.iter().find(|tool| tool.name == name)?;
    let earlier_calls: usize = request.messages.iter().map(|message| message.tool_calls.len()).sum();
    Some(ToolCall { id: format!("local-{}", earlier_calls + 1), name, arguments })
}

/// Returns what is wrong with a structured reply. This check is needed because the guide does not know every keyword.
fn validation_error(schema: &Value, text: &str) -> Option<String> {
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => return Some(format!("the reply is not JSON: {error}")),
    };
    let checker = jsonschema::draft202012::new(schema).ok()?;
    checker.validate(&value).err().map(|error| format!("the reply is not valid: {error}"))
}
