//! The neural network: the llama family of architectures, of which qwen2 is a member with biases.
//!
//! It does three things that ready-made implementations do not: the embeddings stay quantized (0.9 GB less), a prompt
//! reuses what it shares with an earlier prompt, and a pass can be stopped between layers.
//!
//! The same seed must give the same text, whatever was cached. So a prompt is computed in chunks of [`CHUNK`] tokens that
//! begin at the same places, of which only whole ones are kept for the next prompt: what is kept is what would be
//! computed again.
//!
//! A flow alternates between conversations (a persona, a judge, a score), whose prompts grow. So the last [`KEPT`]
//! conversations are kept, and a prompt continues the one with which it shares the most tokens.

use rayon::prelude::*;

use super::dot::Kernels;
use super::engine_failure;
use super::exponential;
use super::gguf::Gguf;
use super::quantized::{Matrix, QuantizedRows};
use crate::error::Result;

/// How many tokens of a prompt are computed at once.
pub(super) const CHUNK: usize = 64;
/// The most tokens of a conversation, whatever the model was trained for: its memory grows with it.
pub(super) const CONTEXT: usize = 16_384;
/// How many conversations are kept at most.
const KEPT: usize = 4;
/// How many tokens the kept conversations may have together, unless one alone has more: 57 kB a token with 1.5 billion
/// weights.
const KEPT_TOKENS: usize = 8_192;

struct Linear {
    weight: Matrix,
    bias: Option<Vec<f32>>,
}

struct TransformerLayer {
    attention_norm: Vec<f32>,
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    feed_norm: Vec<f32>,
    gate: Linear,
    up: Linear,
    down: Linear,
}

/// Keys and values of a conversation for one layer and one head, token by token.
#[derive(Clone, Default)]
struct KeyValueCache {
    keys: Vec<f32>,
    values: Vec<f32>,
}

/// The computed state of one conversation.
struct Conversation {
    /// By layer, and by head in the layer.
    caches: Vec<Vec<KeyValueCache>>,
    tokens: Vec<u32>,
    /// How many of the tokens were computed in whole chunks of a prompt.
    reusable: usize,
}

pub(super) struct Transformer {
    embeddings: Matrix,
    layers: Vec<TransformerLayer>,
    norm: Vec<f32>,
    /// The output matrix; `None` if the embeddings are tied, which means that they serve as the output matrix, too.
    head: Option<Matrix>,
    heads: usize,
    kv_heads: usize,
    width: usize,
    epsilon: f32,
    rope: Rope,
    /// The most tokens that a conversation may have.
    pub(super) context: usize,
    /// The kept conversations, the one that was used last in front: that one is continued.
    conversations: Vec<Conversation>,
}

impl Linear {
    fn read(file: &Gguf, name: &str, columns: usize, rows: usize) -> Result<Linear> {
        let weight = file.matrix(&format!("{name}.weight"))?;
        let name = format!("{name}.bias");
        let bias = if file.has_tensor(&name) { Some(file.vector(&name)?) } else { None };
        let fits = weight.columns == columns && weight.rows == rows;
        if !fits || bias.as_ref().is_some_and(|bias| bias.len() != rows) {
            return Err(engine_failure(format!("{name} of the model file does not have the size that it must have")));
        }
        Ok(Linear { weight, bias })
    }

    fn forward(&self, x: &QuantizedRows) -> Vec<f32> {
        let mut y = self.weight.multiply(x);
        if let Some(bias) = &self.bias {
            y.chunks_exact_mut(bias.len()).for_each(|row| add(row, bias));
        }
        y
    }
}

impl Conversation {
    /// Returns how many tokens of a prompt need not be computed again. At least the last token must be, since its
    /// logits are needed.
    fn shared_prefix(&self, prompt: &[u32]) -> usize {
        let agreed = self.tokens.iter().zip(prompt).take_while(|(old, new)| old == new).count();
        agreed.min(self.reusable).min(prompt.len().saturating_sub(1)) / CHUNK * CHUNK
    }

    /// Drops all but the first tokens, including what a stopped pass left.
    fn truncate(&mut self, tokens: usize, width: usize) {
        self.tokens.truncate(tokens);
        self.reusable = self.reusable.min(tokens);
        for cache in self.caches.iter_mut().flatten() {
            cache.keys.truncate(tokens * width);
            cache.values.truncate(tokens * width);
        }
    }

    /// Returns a copy of the first `known` tokens of this conversation.
    fn branch(&self, known: usize, width: usize) -> Conversation {
        let begin = |cache: &KeyValueCache| KeyValueCache {
            keys: cache.keys[..known * width].to_vec(),
            values: cache.values[..known * width].to_vec(),
        };
        let caches = self.caches.iter().map(|heads| heads.iter().map(begin).collect()).collect();
        Conversation { caches, tokens: self.tokens[..known].to_vec(), reusable: known }
    }
}

/// The architectures that are known.
const FAMILIES: [&str; 2] = ["llama", "qwen2"];

/// Returns what of a model the engine does not know, for people; `None` if it knows all.
pub(super) fn unknown_part(file: &Gguf) -> Option<String> {
    let family = file.text("general.architecture").unwrap_or("no name");
    if !FAMILIES.contains(&family) {
        return Some(format!("its architecture, {family}"));
    }
    if file.has_tensor("rope_freqs.weight")
        || file.text(&format!("{family}.rope.scaling.type")).is_ok_and(|it| it != "none")
    {
        return Some("its positions, which are scaled".to_owned());
    }
    if file.number(&format!("{family}.expert_count")).is_ok_and(|count| count > 0) {
        return Some("its experts".to_owned());
    }
    if let Some(tensor) = file.unknown_tensor() {
        return Some(format!("how {tensor} is stored"));
    }
    let vocabulary = file.text("tokenizer.ggml.model").unwrap_or("no name");
    (vocabulary != "gpt2").then(|| format!("its kind of vocabulary, {vocabulary}"))
}

impl Transformer {
    /// Reads the network. `stop` is checked between layers, since reading may take seconds.
    pub(super) fn read(file: &Gguf, stop: &dyn Fn() -> bool) -> Result<Transformer> {
        let family = file.text("general.architecture")?;
        let interleaved = match family {
            "llama" => true,
            "qwen2" => false,
            other => return Err(engine_failure(format!("the engine does not know the architecture {other:?}"))),
        };
        let heads = file.number(&format!("{family}.attention.head_count"))?;
        let kv_heads = file.number(&format!("{family}.attention.head_count_kv"))?;
        let hidden = file.number(&format!("{family}.embedding_length"))?;
        let feed_forward = file.number(&format!("{family}.feed_forward_length"))?;
        if heads == 0 || kv_heads == 0 || hidden == 0 || heads % kv_heads != 0 || hidden % (2 * heads) != 0 {
            return Err(engine_failure("the model file's numbers of heads do not fit together"));
        }
        let width = hidden / heads;
        let norm = |name: &str| {
            let norm = file.vector(name)?;
            if norm.len() == hidden {
                Ok(norm)
            } else {
                Err(engine_failure(format!("{name} has not the model's width")))
            }
        };
        let mut layers = Vec::new();
        for layer in 0..file.number(&format!("{family}.block_count"))? {
            if stop() {
                return Err(engine_failure("loading was stopped"));
            }
            let name = |part: &str| format!("blk.{layer}.{part}");
            layers.push(TransformerLayer {
                attention_norm: norm(&name("attn_norm.weight"))?,
                query: Linear::read(file, &name("attn_q"), hidden, hidden)?,
                key: Linear::read(file, &name("attn_k"), hidden, kv_heads * width)?,
                value: Linear::read(file, &name("attn_v"), hidden, kv_heads * width)?,
                output: Linear::read(file, &name("attn_output"), hidden, hidden)?,
                feed_norm: norm(&name("ffn_norm.weight"))?,
                gate: Linear::read(file, &name("ffn_gate"), hidden, feed_forward)?,
                up: Linear::read(file, &name("ffn_up"), hidden, feed_forward)?,
                down: Linear::read(file, &name("ffn_down"), feed_forward, hidden)?,
            });
        }
        let embeddings = file.matrix("token_embd.weight")?;
        let head = if file.has_tensor("output.weight") { Some(file.matrix("output.weight")?) } else { None };
        if embeddings.columns != hidden || head.as_ref().is_some_and(|head| head.columns != hidden) {
            return Err(engine_failure("the model file's words have not the model's width"));
        }
        Ok(Transformer {
            embeddings,
            layers,
            norm: norm("output_norm.weight")?,
            head,
            heads,
            kv_heads,
            width,
            epsilon: file.float(&format!("{family}.attention.layer_norm_rms_epsilon"))?,
            rope: Rope { base: file.float(&format!("{family}.rope.freq_base"))?, interleaved },
            context: file.context()?.min(CONTEXT),
            conversations: Vec::new(),
        })
    }

    /// Starts a conversation: computes the new part of the prompt, and returns the logits of the next token and how many
    /// tokens were cached from an earlier prompt. `on_progress` is called after each piece of the prompt that others follow.
    /// `None` if `stop` ended it.
    pub(super) fn start(
        &mut self,
        prompt: &[u32],
        on_progress: &mut dyn FnMut(),
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<(Vec<f32>, usize)>> {
        let cached = self.reuse_conversation(prompt);
        let mut logits = None;
        let mut start = cached;
        while start < prompt.len() {
            let end = prompt.len().min(start + CHUNK);
            let Some(next) = self.advance(&prompt[start..end], end == prompt.len(), stop)? else { return Ok(None) };
            if end - start == CHUNK {
                self.conversations[0].reusable = end;
            }
            logits = next;
            start = end;
            if start < prompt.len() {
                on_progress();
            }
        }
        logits.map(|logits| Some((logits, cached))).ok_or_else(|| engine_failure("the prompt is empty"))
    }

    /// Moves the conversation that this prompt continues to the front, and returns how many of its tokens are cached.
    fn reuse_conversation(&mut self, prompt: &[u32]) -> usize {
        let best = (0..self.conversations.len())
            .max_by_key(|index| (self.conversations[*index].shared_prefix(prompt), usize::MAX - index));
        let shared = best.map_or(0, |best| self.conversations[best].shared_prefix(prompt));
        let front = match best {
            // The prompt continues this conversation or repeats it: what followed is dropped.
            Some(best) if 2 * shared > self.conversations[best].reusable => {
                let mut conversation = self.conversations.remove(best);
                conversation.truncate(shared, self.width);
                conversation
            }
            // Another conversation that merely begins alike: both are kept.
            Some(best) if shared > 0 => self.conversations[best].branch(shared, self.width),
            _ => {
                let caches = vec![vec![KeyValueCache::default(); self.kv_heads]; self.layers.len()];
                Conversation { caches, tokens: Vec::new(), reusable: 0 }
            }
        };
        self.conversations.insert(0, front);
        shared
    }

    /// Returns how many tokens of a prompt need not be computed again.
    pub(super) fn known(&self, prompt: &[u32]) -> usize {
        self.conversations.iter().map(|conversation| conversation.shared_prefix(prompt)).max().unwrap_or(0)
    }

    /// Returns how many keys and values so many tokens have.
    pub(super) fn numbers_of(&self, tokens: usize) -> usize {
        self.layers.len() * self.kv_heads * 2 * tokens * self.width
    }

    /// Returns the keys and values of tokens that a prompt began with; `None` if they are not known any more.
    pub(super) fn numbers(&self, tokens: &[u32]) -> Option<Vec<f32>> {
        let begins = |it: &&Conversation| it.reusable >= tokens.len() && it.tokens.starts_with(tokens);
        let conversation = self.conversations.iter().find(begins)?;
        let length = tokens.len() * self.width;
        let mut numbers = Vec::with_capacity(self.numbers_of(tokens.len()));
        for cache in conversation.caches.iter().flatten() {
            numbers.extend_from_slice(&cache.keys[..length]);
            numbers.extend_from_slice(&cache.values[..length]);
        }
        Some(numbers)
    }

    /// Takes tokens as computed, with as many keys and values as [`numbers_of`](Self::numbers_of) says.
    pub(super) fn insert(&mut self, tokens: &[u32], numbers: &[f32]) {
        let mut numbers = numbers.chunks_exact(tokens.len() * self.width);
        let mut next = || numbers.next().map(<[f32]>::to_vec).unwrap_or_default();
        let mut head = || KeyValueCache { keys: next(), values: next() };
        let caches = (0..self.layers.len()).map(|_| (0..self.kv_heads).map(|_| head()).collect()).collect();
        self.conversations.insert(0, Conversation { caches, tokens: tokens.to_vec(), reusable: tokens.len() });
        self.evict_conversations();
    }

    /// Drops the least recently used conversations that exceed the limits.
    fn evict_conversations(&mut self) {
        self.conversations.truncate(KEPT);
        while self.conversations.len() > 1
            && self.conversations.iter().map(|conversation| conversation.tokens.len()).sum::<usize>() > KEPT_TOKENS
        {
            self.conversations.pop();
        }
    }

    /// Appends chosen tokens, and returns the logits of the next token.
    pub(super) fn continue_with(&mut self, tokens: &[u32], stop: &dyn Fn() -> bool) -> Result<Option<Vec<f32>>> {
        Ok(self.advance(tokens, true, stop)?.flatten())
    }

    /// Computes tokens after those in the caches. If it is stopped half-way, the caches stay as they were.
    fn advance(
        &mut self,
        tokens: &[u32],
        wants_logits: bool,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Option<Vec<f32>>>> {
        let start = self.conversations[0].tokens.len();
        let done = self.pass(tokens, wants_logits, stop)?;
        match done {
            Some(_) => self.conversations[0].tokens.extend_from_slice(tokens),
            None => self.conversations[0].truncate(start, self.width),
        }
        self.evict_conversations();
        Ok(done)
    }

    fn pass(
        &mut self,
        tokens: &[u32],
        wants_logits: bool,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Option<Vec<f32>>>> {
        let rotations = self.rope.rotations(self.conversations[0].tokens.len(), tokens.len(), self.width);
        let mut x = Vec::with_capacity(tokens.len() * self.embeddings.columns);
        for token in tokens {
            if !self.embeddings.append_row(*token as usize, &mut x) {
                return Err(engine_failure(format!("the model has no token {token}")));
            }
        }
        for index in 0..self.layers.len() {
            if stop() {
                return Ok(None);
            }
            let attended = self.attention(index, &x, &rotations);
            add(&mut x, &attended);
            let layer = &self.layers[index];
            let normed =
                QuantizedRows::new(&norm(&x, &layer.feed_norm, self.epsilon), &[&layer.gate.weight, &layer.up.weight]);
            let mut fed = layer.gate.forward(&normed);
            let up = layer.up.forward(&normed);
            let kernels = Kernels::detect();
            let shares = fed.par_chunks_mut(SHARE).zip(up.par_chunks(SHARE));
            shares.for_each(|(fed, up)| exponential::gate(kernels, fed, up));
            add(&mut x, &layer.down.forward(&QuantizedRows::new(&fed, &[&layer.down.weight])));
        }
        if !wants_logits {
            return Ok(Some(None));
        }
        let last = norm(&x[x.len() - self.norm.len()..], &self.norm, self.epsilon);
        let head = self.head.as_ref().unwrap_or(&self.embeddings);
        Ok(Some(Some(head.multiply(&QuantizedRows::new(&last, &[head])))))
    }

    fn attention(&mut self, index: usize, x: &[f32], rotations: &[(f32, f32)]) -> Vec<f32> {
        let (layer, caches) = (&self.layers[index], &mut self.conversations[0].caches[index]);
        let (width, shared) = (self.width, self.heads / self.kv_heads);
        let weights = [&layer.query.weight, &layer.key.weight, &layer.value.weight];
        let normed = QuantizedRows::new(&norm(x, &layer.attention_norm, self.epsilon), &weights);
        let mut query = layer.query.forward(&normed);
        let mut key = layer.key.forward(&normed);
        let value = layer.value.forward(&normed);
        self.rope.rotate(&mut query, width, rotations);
        self.rope.rotate(&mut key, width, rotations);
        let start = caches[0].keys.len() / width;
        for (key, value) in key.chunks_exact(self.kv_heads * width).zip(value.chunks_exact(self.kv_heads * width)) {
            for (cache, (key, value)) in caches.iter_mut().zip(key.chunks_exact(width).zip(value.chunks_exact(width))) {
                cache.keys.extend_from_slice(key);
                cache.values.extend_from_slice(value);
            }
        }
        let kernels = Kernels::detect();
        let scale = 1.0 / (width as f32).sqrt();
        let mut mixed = vec![0.0; query.len()];
        mixed.par_chunks_exact_mut(width).zip(query.par_chunks_exact(width)).enumerate().for_each(
            |(at, (mixed, query))| {
                // A token attends to those before it and to itself.
                let (row, cache) = (at / self.heads, &caches[at % self.heads / shared]);
                let seen = (start + row + 1) * width;
                let mut weights: Vec<f32> =
                    cache.keys[..seen].chunks_exact(width).map(|key| kernels.floats(query, key) * scale).collect();
                exponential::softmax(kernels, &mut weights);
                for (weight, value) in weights.iter().zip(cache.values.chunks_exact(width)) {
                    kernels.add(mixed, value, *weight);
                }
            },
        );
        layer.output.forward(&QuantizedRows::new(&mixed, &[&layer.output.weight]))
    }
}

/// How many numbers a thread takes at a time where each number is little work.
const SHARE: usize = 1024;

fn add(x: &mut [f32], y: &[f32]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
}

fn norm(x: &[f32], weight: &[f32], epsilon: f32) -> Vec<f32> {
    let kernels = Kernels::detect();
    let mut normed = Vec::with_capacity(x.len());
    for row in x.chunks_exact(weight.len()) {
        let size = (kernels.floats(row, row) / row.len() as f32 + epsilon).sqrt();
        normed.extend(row.iter().zip(weight).map(|(x, weight)| x / size * weight));
    }
    normed
}

/// Rotary position embedding: rotates pairs of numbers by their position. Llama's files pair neighbours, qwen2's halves.
struct Rope {
    base: f32,
    interleaved: bool,
}

impl Rope {
    /// Returns sine and cosine for each row and each pair.
    fn rotations(&self, start: usize, rows: usize, width: usize) -> Vec<(f32, f32)> {
        let speeds: Vec<f32> = (0..width / 2).map(|pair| self.base.powf(-2.0 * pair as f32 / width as f32)).collect();
        (start..start + rows).flat_map(|at| speeds.iter().map(move |speed| (at as f32 * speed).sin_cos())).collect()
    }

    fn rotate(&self, x: &mut [f32], width: usize, rotations: &[(f32, f32)]) {
        let half = width / 2;
        let row = x.len() / (rotations.len() / half);
        for (row, rotations) in x.chunks_exact_mut(row).zip(rotations.chunks_exact(half)) {
            for head in row.chunks_exact_mut(width) {
                for (pair, (sin, cos)) in rotations.iter().enumerate() {
                    let (i, j) = if self.interleaved { (2 * pair, 2 * pair + 1) } else { (pair, pair + half) };
                    let (a, b) = (head[i], head[j]);
                    head[i] = a * cos - b * sin;
                    head[j] = a * sin + b * cos;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, Conversation};

    #[test]
    fn a_prompt_goes_on_in_whole_pieces_from_what_it_agrees_with() {
        let tokens: Vec<u32> = (0..200).collect();
        let known = |reusable, prompt: &[u32]| {
            Conversation { caches: Vec::new(), tokens: tokens.clone(), reusable }.shared_prefix(prompt)
        };
        let mut other = tokens.clone();
        other[150] = 0;
        assert_eq!([known(200, &tokens), known(200, &other), known(100, &tokens)], [192, 128, 64]);
        assert_eq!(known(200, &tokens[..2 * CHUNK]), CHUNK, "the last token is computed again");
        assert_eq!(known(200, &[9, 9]), 0);
    }
}
