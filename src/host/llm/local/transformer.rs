//! The network itself: the llama family of architectures, of which qwen2 is a member with biases.
//!
//! It is written on candle's tensors and quantized products rather than on candle's ready-made models,
//! because three things are needed that those do not give: the embeddings stay quantized (0.9 GB less),
//! a prompt continues the one before it where they agree, and a pass can be stopped between layers.
//!
//! The same text must come of the same seed, whatever was cached: numbers differ in their last bits with
//! the number of rows that are computed at once. So a prompt is always computed in the same pieces of
//! [`CHUNK`] tokens, and only whole pieces of it are kept for the next prompt.

use candle_core::quantized::QMatMul;
use candle_core::{CpuStorage, D, DType, Device, InplaceOp1, Layout, Module, Tensor};

use super::broken;
use super::gguf::Gguf;
use crate::error::Result;

/// How many tokens of a prompt are computed at once.
const CHUNK: usize = 64;
/// The longest conversation, whatever the model was trained for: its memory grows with it.
const CONTEXT: usize = 16_384;

struct Linear {
    weight: QMatMul,
    bias: Option<Tensor>,
}

struct Layer {
    attention_norm: Tensor,
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    feed_norm: Tensor,
    gate: Linear,
    up: Linear,
    down: Linear,
    /// Keys and values of the tokens so far, `[heads, room, width]` each.
    keys: Tensor,
    values: Tensor,
}

pub(super) struct Transformer {
    embeddings: QMatMul,
    layers: Vec<Layer>,
    norm: Tensor,
    head: QMatMul,
    heads: usize,
    kv_heads: usize,
    width: usize,
    epsilon: f64,
    rope: Rope,
    /// The most tokens that a conversation may have.
    pub(super) context: usize,
    room: usize,
    /// The tokens whose keys and values are in the caches.
    tokens: Vec<u32>,
    /// How many of them were computed in whole pieces of a prompt.
    settled: usize,
}

type Candle<T> = candle_core::Result<T>;

impl Linear {
    fn read(file: &mut Gguf, name: &str) -> Result<Linear> {
        let weight = QMatMul::from_qtensor(file.matrix(&format!("{name}.weight"))?).map_err(broken)?;
        let bias = format!("{name}.bias");
        let bias = if file.has_tensor(&bias) { Some(file.vector(&bias)?) } else { None };
        Ok(Linear { weight, bias })
    }

    fn forward(&self, x: &Tensor) -> Candle<Tensor> {
        let y = self.weight.forward(x)?;
        match &self.bias {
            Some(bias) => y.broadcast_add(bias),
            None => Ok(y),
        }
    }
}

impl Transformer {
    /// Reads the network; `stop` is asked between layers, since reading takes seconds.
    pub(super) fn read(file: &mut Gguf, stop: &dyn Fn() -> bool) -> Result<Transformer> {
        let family = file.text("general.architecture")?.to_owned();
        let interleaved = match family.as_str() {
            "llama" => true,
            "qwen2" => false,
            other => return Err(broken(format!("the engine does not know the architecture {other:?}"))),
        };
        let heads = file.number(&format!("{family}.attention.head_count"))?;
        let kv_heads = file.number(&format!("{family}.attention.head_count_kv"))?;
        let hidden = file.number(&format!("{family}.embedding_length"))?;
        if heads == 0 || kv_heads == 0 || heads % kv_heads != 0 || hidden % (2 * heads) != 0 {
            return Err(broken("the model file's numbers of heads do not fit together"));
        }
        let width = hidden / heads;
        let room = 1024;
        let mut layers = Vec::new();
        for layer in 0..file.number(&format!("{family}.block_count"))? {
            if stop() {
                return Err(broken("loading was stopped"));
            }
            let name = |part: &str| format!("blk.{layer}.{part}");
            let cache = || Tensor::zeros((kv_heads, room, width), DType::F32, &Device::Cpu).map_err(broken);
            layers.push(Layer {
                attention_norm: file.vector(&name("attn_norm.weight"))?,
                query: Linear::read(file, &name("attn_q"))?,
                key: Linear::read(file, &name("attn_k"))?,
                value: Linear::read(file, &name("attn_v"))?,
                output: Linear::read(file, &name("attn_output"))?,
                feed_norm: file.vector(&name("ffn_norm.weight"))?,
                gate: Linear::read(file, &name("ffn_gate"))?,
                up: Linear::read(file, &name("ffn_up"))?,
                down: Linear::read(file, &name("ffn_down"))?,
                keys: cache()?,
                values: cache()?,
            });
        }
        let embeddings = QMatMul::from_qtensor(file.matrix("token_embd.weight")?).map_err(broken)?;
        let head = match file.has_tensor("output.weight") {
            true => QMatMul::from_qtensor(file.matrix("output.weight")?).map_err(broken)?,
            // The model speaks with the matrix that it reads with.
            false => embeddings.clone(),
        };
        Ok(Transformer {
            embeddings,
            layers,
            norm: file.vector("output_norm.weight")?,
            head,
            heads,
            kv_heads,
            width,
            epsilon: f64::from(file.float(&format!("{family}.attention.layer_norm_rms_epsilon"))?),
            rope: Rope { base: file.float(&format!("{family}.rope.freq_base"))?, interleaved },
            context: file.number(&format!("{family}.context_length"))?.min(CONTEXT),
            room,
            tokens: Vec::new(),
            settled: 0,
        })
    }

    /// Starts a conversation: computes what is new of the prompt, and returns the logits of what comes
    /// next and how many tokens were known from the prompt before. `None` when it was stopped.
    pub(super) fn start(&mut self, prompt: &[u32], stop: &dyn Fn() -> bool) -> Result<Option<(Vec<f32>, usize)>> {
        let agreed = self.tokens.iter().zip(prompt).take_while(|(old, new)| old == new).count();
        // At least the last token is computed, since the logits are its.
        let known = agreed.min(self.settled).min(prompt.len().saturating_sub(1)) / CHUNK * CHUNK;
        self.tokens.truncate(known);
        self.settled = known;
        let mut logits = None;
        while self.tokens.len() < prompt.len() {
            let start = self.tokens.len();
            let end = prompt.len().min(start + CHUNK);
            let Some(next) = self.advance(&prompt[start..end], end == prompt.len(), stop)? else { return Ok(None) };
            if end - start == CHUNK {
                self.settled = end;
            }
            logits = next;
        }
        logits.map(|logits| Some((logits, known))).ok_or_else(|| broken("the prompt is empty"))
    }

    /// Adds tokens that were chosen, and returns the logits of the one after them.
    pub(super) fn go_on(&mut self, tokens: &[u32], stop: &dyn Fn() -> bool) -> Result<Option<Vec<f32>>> {
        Ok(self.advance(tokens, true, stop)?.flatten())
    }

    /// Computes tokens after those in the caches. Stopped half-way, it leaves the caches as they were.
    fn advance(&mut self, tokens: &[u32], speak: bool, stop: &dyn Fn() -> bool) -> Result<Option<Option<Vec<f32>>>> {
        let done = self.pass(tokens, speak, stop).map_err(broken)?;
        if done.is_some() {
            self.tokens.extend_from_slice(tokens);
        }
        Ok(done)
    }

    fn pass(&mut self, tokens: &[u32], speak: bool, stop: &dyn Fn() -> bool) -> Candle<Option<Option<Vec<f32>>>> {
        let (rows, start) = (tokens.len(), self.tokens.len());
        self.make_room(start + rows)?;
        let turns = self.rope.turns(start, rows, self.width);
        let mut x = self.embeddings.embedding(&Tensor::new(tokens, &Device::Cpu)?)?;
        for index in 0..self.layers.len() {
            if stop() {
                return Ok(None);
            }
            let layer = &self.layers[index];
            let normed = norm(&x, &layer.attention_norm, self.epsilon)?;
            x = (&x + self.attention(layer, &normed, start, &turns)?)?;
            let normed = norm(&x, &layer.feed_norm, self.epsilon)?;
            let fed = (layer.gate.forward(&normed)?.silu()? * layer.up.forward(&normed)?)?;
            x = (&x + layer.down.forward(&fed)?)?;
        }
        if !speak {
            return Ok(Some(None));
        }
        let last = norm(&x.narrow(0, rows - 1, 1)?.contiguous()?, &self.norm, self.epsilon)?;
        Ok(Some(Some(self.head.forward(&last)?.flatten_all()?.to_vec1()?)))
    }

    fn attention(&self, layer: &Layer, x: &Tensor, start: usize, turns: &[(f32, f32)]) -> Candle<Tensor> {
        let (rows, width, shared) = (x.dim(0)?, self.width, self.heads / self.kv_heads);
        let scale = 1.0 / (width as f64).sqrt();
        let query = (self.rope.turn(layer.query.forward(x)?, width, turns)? * scale)?;
        let key = self.rope.turn(layer.key.forward(x)?, width, turns)?;
        let value = layer.value.forward(x)?;
        let by_head = |t: Tensor| t.reshape((rows, self.kv_heads, width))?.transpose(0, 1)?.contiguous();
        layer.keys.slice_set(&by_head(key)?, 1, start)?;
        layer.values.slice_set(&by_head(value)?, 1, start)?;
        let keys = layer.keys.narrow(1, 0, start + rows)?;
        let values = layer.values.narrow(1, 0, start + rows)?;
        // Heads that share keys and values are one taller matrix.
        let query = query.reshape((rows, self.kv_heads, shared, width))?.permute((1, 2, 0, 3))?;
        let query = query.contiguous()?.reshape((self.kv_heads, shared * rows, width))?;
        let weights = query.matmul(&keys.transpose(1, 2)?)?;
        weights.inplace_op1(&CausalSoftmax { rows, start })?;
        let mixed = weights.matmul(&values)?.reshape((self.kv_heads, shared, rows, width))?;
        layer.output.forward(&mixed.permute((2, 0, 1, 3))?.contiguous()?.reshape((rows, self.heads * width))?)
    }

    fn make_room(&mut self, needed: usize) -> Candle<()> {
        if needed <= self.room {
            return Ok(());
        }
        let room = needed.next_power_of_two().min(self.context.max(needed));
        for layer in &mut self.layers {
            for cache in [&mut layer.keys, &mut layer.values] {
                let wider = Tensor::zeros((self.kv_heads, room, self.width), DType::F32, &Device::Cpu)?;
                wider.slice_set(&cache.narrow(1, 0, self.tokens.len())?.contiguous()?, 1, 0)?;
                *cache = wider;
            }
        }
        self.room = room;
        Ok(())
    }
}

fn norm(x: &Tensor, weight: &Tensor, epsilon: f64) -> Candle<Tensor> {
    let mean = x.sqr()?.mean_keepdim(D::Minus1)?;
    x.broadcast_div(&(mean + epsilon)?.sqrt()?)?.broadcast_mul(weight)
}

/// Tells positions apart by turning pairs of numbers: neighbours in llama's files, halves in qwen2's.
struct Rope {
    base: f32,
    interleaved: bool,
}

impl Rope {
    /// Returns sine and cosine for each of the rows and pairs.
    fn turns(&self, start: usize, rows: usize, width: usize) -> Vec<(f32, f32)> {
        let speeds: Vec<f32> = (0..width / 2).map(|pair| self.base.powf(-2.0 * pair as f32 / width as f32)).collect();
        (start..start + rows).flat_map(|at| speeds.iter().map(move |speed| (at as f32 * speed).sin_cos())).collect()
    }

    fn turn(&self, x: Tensor, width: usize, turns: &[(f32, f32)]) -> Candle<Tensor> {
        let shape = x.dims2()?;
        let mut numbers: Vec<f32> = x.flatten_all()?.to_vec1()?;
        let half = width / 2;
        for (row, turns) in numbers.chunks_exact_mut(shape.1).zip(turns.chunks_exact(half)) {
            for head in row.chunks_exact_mut(width) {
                for (pair, (sin, cos)) in turns.iter().enumerate() {
                    let (i, j) = if self.interleaved { (2 * pair, 2 * pair + 1) } else { (pair, pair + half) };
                    let (a, b) = (head[i], head[j]);
                    head[i] = a * cos - b * sin;
                    head[j] = a * sin + b * cos;
                }
            }
        }
        Tensor::from_vec(numbers, shape, &Device::Cpu)
    }
}

/// Turns scores into weights, in place; a token gives no weight to those after it.
struct CausalSoftmax {
    rows: usize,
    start: usize,
}

impl InplaceOp1 for CausalSoftmax {
    fn name(&self) -> &'static str {
        "causal-softmax"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Candle<()> {
        let (CpuStorage::F32(scores), Some((from, to))) = (storage, layout.contiguous_offsets()) else {
            candle_core::bail!("scores are contiguous f32")
        };
        for (index, row) in scores[from..to].chunks_exact_mut(self.start + self.rows).enumerate() {
            let (seen, hidden) = row.split_at_mut(self.start + index % self.rows + 1);
            let most = seen.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            seen.iter_mut().for_each(|score| *score = (*score - most).exp());
            let sum: f32 = seen.iter().sum();
            seen.iter_mut().for_each(|score| *score /= sum);
            hidden.fill(0.0);
        }
        Ok(())
    }
}
