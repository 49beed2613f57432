//! One model in memory, which generates one reply at a time.

use std::path::Path;

use super::attempts;
use super::gguf::Gguf;
use super::grammar::{Grammars, Guide};
use super::prefixes::{Place, Prefixes};
use super::prompt::ChatTemplate;
use super::sample::{Sampler, discourage};
use super::transformer::Transformer;
use super::vocabulary::{Decoder, Vocabulary};
use crate::error::Result;
use crate::host::llm::stop_texts::StopTexts;
use crate::model::chat::{ChatReply, ChatRequest, FinishReason, Usage};

/// How many of the last tokens are discouraged as repetitions.
const LATELY: usize = 64;
pub(super) struct Engine {
    model: String,
    transformer: Transformer,
    vocabulary: Vocabulary,
    template: ChatTemplate,
    grammars: Grammars,
    /// The kept beginnings of prompts, if there is a folder for them.
    prefixes: Option<Prefixes>,
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
    /// Loads the weights at `path`. Beginnings of prompts are kept at `place`, if there is one.
    pub(super) fn load(model: &str, path: &Path, place: Option<&Place>, stop: &dyn Fn() -> bool) -> Result<Engine> {
        let file = Gguf::open(path)?;
        let vocabulary = Vocabulary::read(&file)?;
        let template = ChatTemplate::new(file.text("tokenizer.chat_template")?)?;
        let grammars = Grammars::new(vocabulary.env());
        let transformer = Transformer::read(&file, stop)?;
        // Where the files cannot be looked at, nothing is kept.
        let prefixes = place.and_then(|place| Prefixes::new(place, path, file.header()).ok());
        Ok(Engine { model: model.to_owned(), transformer, vocabulary, template, grammars, prefixes })
    }

    /// Waits until all that is to be kept of prompts is on disk.
    #[cfg(test)]
    pub(super) fn finish(&mut self) {
        if let Some(prefixes) = &mut self.prefixes {
            prefixes.finish();
        }
    }

    /// Answers one request; `None` if `stop` ended it. `seed` counts where the request has none.
    pub(super) fn chat(
        &mut self,
        request: &ChatRequest,
        seed: u64,
        on_event: &mut dyn FnMut(GenerationEvent),
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<ChatReply>> {
        attempts::refuse_options(request)?;
        let (prompt, stable) = self.template.encode(request, &self.vocabulary)?;
        let max_tokens = attempts::room(request, &self.model, prompt.len(), self.transformer.context)?;
        if let Some(prefixes) = &mut self.prefixes {
            prefixes.restore(&prompt, stable, &mut self.transformer);
        }
        let mut usage = Usage { input: prompt.len() as u64, ..Usage::default() };
        let task = GenerationTask { request, prompt, max_tokens, stop };
        let seed = request.seed.unwrap_or(seed);
        let mut error: Option<String> = None;
        let [roomy, tight] = attempts::bounds(request, max_tokens);
        for (bounds, seed) in [(roomy, seed), (tight, seed.wrapping_add(1))] {
            if let Some(error) = &error {
                on_event(GenerationEvent::Retry(error));
            }
            let guide = self.grammars.guide(request, bounds)?;
            let sampler = Sampler::new(request.temperature.unwrap_or(attempts::TEMPERATURE), request.top_p, seed);
            let Some(generated) = self.generate(&task, guide, sampler, on_event)? else { return Ok(None) };
            usage.output += generated.tokens as u64;
            usage.cached = usage.cached.max(generated.cached_tokens as u64);
            if let Some(call) = attempts::tool_call(request, &generated.text, generated.finish) {
                let reply = attempts::reply(&self.model, String::new(), FinishReason::ToolCalls, usage);
                return Ok(Some(ChatReply { tool_calls: vec![call], ..reply }));
            }
            error = attempts::problem(request, &generated.text, generated.finish, max_tokens);
            if error.is_none() {
                return Ok(Some(attempts::reply(&self.model, generated.text, generated.finish, usage)));
            }
        }
        Err(attempts::gave_up(&self.model, error))
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
        if let Some(prefixes) = &mut self.prefixes {
            prefixes.keep(&self.transformer);
        }
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
