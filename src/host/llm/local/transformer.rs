//! The network itself: the llama family of architectures, of which qwen2 is a member with biases.
//!
//! Three things are needed here that ready-made models do not give: the embeddings stay quantized (0.9 GB less), a prompt
//! continues the one before it where they agree, and a pass can be stopped between layers.
//!
//! The same text must come of the same seed, whatever was cached. So each token's numbers are computed in the same order
//! whether it is computed alone or among others, and a prompt is computed in pieces of [`CHUNK`] tokens, of which only
//! whole ones are kept for the next prompt.
//!
//! A flow asks in turns: in a persona's voice, as a judge, for a score, each time with a prompt that grew. So the last
//! [`KEPT`] conversations are kept, and a prompt goes on from the one that it agrees with most.

use rayon::prelude::*;

use super::dot::Kernels;
use super::engine_failure;
use super::gguf::Gguf;
use super::quantized::{Matrix, QuantizedRows};
use crate::error::Result;

/// How many tokens of a prompt are computed at once.
const CHUNK: usize = 64;
/// The longest conversation, whatever the model was trained for: its memory grows with it.
const CONTEXT: usize = 16_384;
/// How many conversations are kept at most.
const KEPT: usize = 4;
/// How many tokens they may have together, unless one alone has more: 57 kB each with 1.5 billion weights.
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

/// Keys and values of a conversation for one layer and one head, token after token.
#[derive(Clone, Default)]
struct KeyValueCache {
    keys: Vec<f32>,
    values: Vec<f32>,
}

/// What was computed of one conversation.
struct Conversation {
    /// By layer, and by head in it.
    caches: Vec<Vec<KeyValueCache>>,
    tokens: Vec<u32>,
    /// How many of them were computed in whole pieces of a prompt.
    reusable: usize,
}

pub(super) struct Transformer {
    embeddings: Matrix,
    layers: Vec<TransformerLayer>,
    norm: Vec<f32>,
    /// The matrix that it speaks with, where that is not the one that it reads with.
    head: Option<Matrix>,
    heads: usize,
    kv_heads: usize,
    width: usize,
    epsilon: f32,
    rope: Rope,
    /// The most tokens that a conversation may have.
    pub(super) context: usize,
    /// The conversations that are kept, the one that was used last in front: it is the one that goes on.
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
    /// Returns how many tokens of a prompt need not be computed again. At least the last one must be, since the
    /// logits are its.
    fn shared_prefix(&self, prompt: &[u32]) -> usize {
        let agreed = self.tokens.iter().zip(prompt).take_while(|(old, new)| old == new).count();
        agreed.min(self.reusable).min(prompt.len().saturating_sub(1)) / CHUNK * CHUNK
    }

    /// Gives up what follows the first tokens, and what a stopped pass left.
    fn truncate(&mut self, tokens: usize, width: usize) {
        self.tokens.truncate(tokens);
        self.reusable = self.reusable.min(tokens);
        for cache in self.caches.iter_mut().flatten() {
            cache.keys.truncate(tokens * width);
            cache.values.truncate(tokens * width);
        }
    }

    /// Returns a conversation that begins like this one, with its own memory.
    fn branch(&self, known: usize, width: usize) -> Conversation {
        let begin = |cache: &KeyValueCache| KeyValueCache {
            keys: cache.keys[..known * width].to_vec(),
            values: cache.values[..known * width].to_vec(),
        };
        let caches = self.caches.iter().map(|heads| heads.iter().map(begin).collect()).collect();
        Conversation { caches, tokens: self.tokens[..known].to_vec(), reusable: known }
    }
}

impl Transformer {
    /// Reads the network; `stop` is asked between layers, since reading may take seconds.
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
        let inner = file.number(&format!("{family}.feed_forward_length"))?;
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
                gate: Linear::read(file, &name("ffn_gate"), hidden, inner)?,
                up: Linear::read(file, &name("ffn_up"), hidden, inner)?,
                down: Linear::read(file, &name("ffn_down"), inner, hidden)?,
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
            context: file.number(&format!("{family}.context_length"))?.min(CONTEXT),
            conversations: Vec::new(),
        })
    }

    /// Starts a conversation: computes what is new of the prompt, and returns the logits of what comes
    /// next and how many tokens were known from a prompt before. `None` when it was stopped.
    pub(super) fn start(&mut self, prompt: &[u32], stop: &dyn Fn() -> bool) -> Result<Option<(Vec<f32>, usize)>> {
        let known = self.reuse_conversation(prompt);
        let mut logits = None;
        let mut start = known;
        while start < prompt.len() {
            let end = prompt.len().min(start + CHUNK);
            let Some(next) = self.advance(&prompt[start..end], end == prompt.len(), stop)? else { return Ok(None) };
            if end - start == CHUNK {
                self.conversations[0].reusable = end;
            }
            logits = next;
            start = end;
        }
        logits.map(|logits| Some((logits, known))).ok_or_else(|| engine_failure("the prompt is empty"))
    }

    /// Puts the conversation in front that this prompt goes on from, and returns how much of it is known.
    fn reuse_conversation(&mut self, prompt: &[u32]) -> usize {
        let best = (0..self.conversations.len())
            .max_by_key(|index| (self.conversations[*index].shared_prefix(prompt), usize::MAX - index));
        let known = best.map_or(0, |best| self.conversations[best].shared_prefix(prompt));
        let front = match best {
            // It is this conversation, grown or said anew; what followed in it is given up.
            Some(best) if 2 * known > self.conversations[best].reusable => {
                let mut conversation = self.conversations.remove(best);
                conversation.truncate(known, self.width);
                conversation
            }
            // It is another one, even where both begin alike.
            Some(best) if known > 0 => self.conversations[best].branch(known, self.width),
            _ => {
                let caches = vec![vec![KeyValueCache::default(); self.kv_heads]; self.layers.len()];
                Conversation { caches, tokens: Vec::new(), reusable: 0 }
            }
        };
        self.conversations.insert(0, front);
        known
    }

    /// Gives up the conversations that were not used for the longest time, as far as the bounds ask for it.
    fn evict_conversations(&mut self) {
        self.conversations.truncate(KEPT);
        while self.conversations.len() > 1
            && self.conversations.iter().map(|one| one.tokens.len()).sum::<usize>() > KEPT_TOKENS
        {
            self.conversations.pop();
        }
    }

    /// Adds tokens that were chosen, and returns the logits of the one after them.
    pub(super) fn continue_with(&mut self, tokens: &[u32], stop: &dyn Fn() -> bool) -> Result<Option<Vec<f32>>> {
        Ok(self.advance(tokens, true, stop)?.flatten())
    }

    /// Computes tokens after those in the caches. Stopped half-way, it leaves the caches as they were.
    fn advance(&mut self, tokens: &[u32], speak: bool, stop: &dyn Fn() -> bool) -> Result<Option<Option<Vec<f32>>>> {
        let start = self.conversations[0].tokens.len();
        let done = self.pass(tokens, speak, stop)?;
        match done {
            Some(_) => self.conversations[0].tokens.extend_from_slice(tokens),
            None => self.conversations[0].truncate(start, self.width),
        }
        self.evict_conversations();
        Ok(done)
    }

    fn pass(&mut self, tokens: &[u32], speak: bool, stop: &dyn Fn() -> bool) -> Result<Option<Option<Vec<f32>>>> {
        let turns = self.rope.rotations(self.conversations[0].tokens.len(), tokens.len(), self.width);
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
            let attended = self.attention(index, &x, &turns);
            add(&mut x, &attended);
            let layer = &self.layers[index];
            let normed =
                QuantizedRows::new(&norm(&x, &layer.feed_norm, self.epsilon), &[&layer.gate.weight, &layer.up.weight]);
            let mut fed = layer.gate.forward(&normed);
            let up = layer.up.forward(&normed);
            fed.par_chunks_mut(SHARE).zip(up.par_chunks(SHARE)).for_each(|(fed, up)| {
                fed.iter_mut().zip(up).for_each(|(fed, up)| *fed = *fed / (1.0 + (-*fed).exp()) * up);
            });
            add(&mut x, &layer.down.forward(&QuantizedRows::new(&fed, &[&layer.down.weight])));
        }
        if !speak {
            return Ok(Some(None));
        }
        let last = norm(&x[x.len() - self.norm.len()..], &self.norm, self.epsilon);
        let head = self.head.as_ref().unwrap_or(&self.embeddings);
        Ok(Some(Some(head.multiply(&QuantizedRows::new(&last, &[head])))))
    }

    fn attention(&mut self, index: usize, x: &[f32], turns: &[(f32, f32)]) -> Vec<f32> {
        let (layer, caches) = (&self.layers[index], &mut self.conversations[0].caches[index]);
        let (width, shared) = (self.width, self.heads / self.kv_heads);
        let weights = [&layer.query.weight, &layer.key.weight, &layer.value.weight];
        let normed = QuantizedRows::new(&norm(x, &layer.attention_norm, self.epsilon), &weights);
        let mut query = layer.query.forward(&normed);
        let mut key = layer.key.forward(&normed);
        let value = layer.value.forward(&normed);
        self.rope.rotate(&mut query, width, turns);
        self.rope.rotate(&mut key, width, turns);
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
                // A token sees those before it, and itself.
                let (row, cache) = (at / self.heads, &caches[at % self.heads / shared]);
                let seen = (start + row + 1) * width;
                let mut weights: Vec<f32> =
                    cache.keys[..seen].chunks_exact(width).map(|key| kernels.floats(query, key) * scale).collect();
                softmax(&mut weights);
                for (weight, value) in weights.iter().zip(cache.values.chunks_exact(width)) {
                    kernels.add(mixed, value, *weight);
                }
            },
        );
        layer.output.forward(&QuantizedRows::new(&mixed, &[&layer.output.weight]))
    }
}

/// How many numbers a thread takes at a time where each is little work.
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

/// Turns scores into weights.
fn softmax(scores: &mut [f32]) {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    scores.iter_mut().for_each(|score| *score = (*score - most).exp());
    let sum: f32 = scores.iter().sum();
    scores.iter_mut().for_each(|score| *score /= sum);
}

/// Tells positions apart by turning pairs of numbers: neighbours in llama's files, halves in qwen2's.
struct Rope {
    base: f32,
    interleaved: bool,
}

impl Rope {
    /// Returns sine and cosine for each of the rows and pairs.
    fn rotations(&self, start: usize, rows: usize, width: usize) -> Vec<(f32, f32)> {
        let speeds: Vec<f32> = (0..width / 2).map(|pair| self.base.powf(-2.0 * pair as f32 / width as f32)).collect();
        (start..start + rows).flat_map(|at| speeds.iter().map(move |speed| (at as f32 * speed).sin_cos())).collect()
    }

    fn rotate(&self, x: &mut [f32], width: usize, turns: &[(f32, f32)]) {
        let half = width / 2;
        let row = x.len() / (turns.len() / half);
        for (row, turns) in x.chunks_exact_mut(row).zip(turns.chunks_exact(half)) {
            for head in row.chunks_exact_mut(width) {
                for (pair, (sin, cos)) in turns.iter().enumerate() {
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
        let known = |settled, prompt: &[u32]| {
            Conversation { caches: Vec::new(), tokens: tokens.clone(), reusable: settled }.shared_prefix(prompt)
        };
        let mut other = tokens.clone();
        other[150] = 0;
        assert_eq!([known(200, &tokens), known(200, &other), known(100, &tokens)], [192, 128, 64]);
        assert_eq!(known(200, &tokens[..2 * CHUNK]), CHUNK, "the last token is computed again");
        assert_eq!(known(200, &[9, 9]), 0);
    }
}
