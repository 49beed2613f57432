//! The network itself: the llama family of architectures, of which qwen2 is a member with biases.
//!
//! It is written on candle's tensors and quantized products rather than on candle's ready-made models,
//! because three things are needed that those do not give: the embeddings stay quantized (0.9 GB less),
//! a prompt continues the one before it where they agree, and a pass can be stopped between layers.
//!
//! The same text must come of the same seed, whatever was cached: numbers differ in their last bits with
//! the number of rows that are computed at once. So a prompt is always computed in the same pieces of
//! [`CHUNK`] tokens, and only whole pieces of it are kept for the next prompt.
//!
//! A flow asks in turns: in a persona's voice, as a judge, for a score, each time with a prompt that grew. So the last
//! [`KEPT`] conversations are kept, and a prompt goes on from the one that it agrees with most.

use candle_core::quantized::QMatMul;
use candle_core::{CpuStorage, D, DType, Device, InplaceOp1, Layout, Module, Tensor};

use super::broken;
use super::gguf::Gguf;
use crate::error::Result;

/// How many tokens of a prompt are computed at once.
const CHUNK: usize = 64;
/// The longest conversation, whatever the model was trained for: its memory grows with it.
const CONTEXT: usize = 16_384;
/// How many conversations are kept at most.
const KEPT: usize = 4;
/// For how many tokens they may have room together, unless one alone needs more: 57 kB each with 1.5 billion weights.
const KEPT_ROOM: usize = 8_192;
/// For how many tokens a conversation has room when it begins.
const ROOM: usize = 1024;

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
}

/// What was computed of one conversation.
struct Conversation {
    /// Keys and values of its tokens by layer, `[heads, room, width]` each.
    caches: Vec<(Tensor, Tensor)>,
    room: usize,
    tokens: Vec<u32>,
    /// How many of them were computed in whole pieces of a prompt.
    settled: usize,
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
    /// The conversations that are kept, the one that was used last in front: it is the one that goes on.
    kept: Vec<Conversation>,
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

impl Conversation {
    fn new(layers: usize, heads: usize, room: usize, width: usize) -> Candle<Conversation> {
        let cache = || Tensor::zeros((heads, room, width), DType::F32, &Device::Cpu);
        let caches = (0..layers).map(|_| Ok((cache()?, cache()?))).collect::<Candle<_>>()?;
        Ok(Conversation { caches, room, tokens: Vec::new(), settled: 0 })
    }

    /// Returns how many tokens of a prompt need not be computed again. At least the last one must be, since the
    /// logits are its.
    fn known(&self, prompt: &[u32]) -> usize {
        let agreed = self.tokens.iter().zip(prompt).take_while(|(old, new)| old == new).count();
        agreed.min(self.settled).min(prompt.len().saturating_sub(1)) / CHUNK * CHUNK
    }

    /// Returns a conversation that begins like this one, with its own memory.
    fn branch(&self, known: usize, room: usize) -> Candle<Conversation> {
        let copy = |cache: &Tensor| -> Candle<Tensor> {
            let (heads, _, width) = cache.dims3()?;
            let wider = Tensor::zeros((heads, room, width), DType::F32, &Device::Cpu)?;
            if known > 0 {
                wider.slice_set(&cache.narrow(1, 0, known)?.contiguous()?, 1, 0)?;
            }
            Ok(wider)
        };
        let caches =
            self.caches.iter().map(|(keys, values)| Ok((copy(keys)?, copy(values)?))).collect::<Candle<_>>()?;
        Ok(Conversation { caches, room, tokens: self.tokens[..known].to_vec(), settled: known })
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
        let mut layers = Vec::new();
        for layer in 0..file.number(&format!("{family}.block_count"))? {
            if stop() {
                return Err(broken("loading was stopped"));
            }
            let name = |part: &str| format!("blk.{layer}.{part}");
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
            kept: Vec::new(),
        })
    }

    /// Starts a conversation: computes what is new of the prompt, and returns the logits of what comes
    /// next and how many tokens were known from a prompt before. `None` when it was stopped.
    pub(super) fn start(&mut self, prompt: &[u32], stop: &dyn Fn() -> bool) -> Result<Option<(Vec<f32>, usize)>> {
        let known = self.recall(prompt).map_err(broken)?;
        let mut logits = None;
        let mut start = known;
        while start < prompt.len() {
            let end = prompt.len().min(start + CHUNK);
            let Some(next) = self.advance(&prompt[start..end], end == prompt.len(), stop)? else { return Ok(None) };
            if end - start == CHUNK {
                self.kept[0].settled = end;
            }
            logits = next;
            start = end;
        }
        logits.map(|logits| Some((logits, known))).ok_or_else(|| broken("the prompt is empty"))
    }

    /// Puts the conversation in front that this prompt goes on from, and returns how much of it is known.
    fn recall(&mut self, prompt: &[u32]) -> Candle<usize> {
        let best = (0..self.kept.len()).max_by_key(|index| (self.kept[*index].known(prompt), usize::MAX - index));
        let known = best.map_or(0, |best| self.kept[best].known(prompt));
        match best {
            // It is this conversation, grown or said anew; what followed in it is given up.
            Some(best) if 2 * known > self.kept[best].settled => {
                let mut conversation = self.kept.remove(best);
                conversation.tokens.truncate(known);
                conversation.settled = known;
                self.kept.insert(0, conversation);
            }
            // It is another one, even where both begin alike.
            Some(best) if known > 0 => {
                let branch = self.kept[best].branch(known, ROOM.max(known.next_power_of_two()))?;
                self.kept.insert(0, branch);
            }
            _ => {
                self.kept.insert(0, Conversation::new(self.layers.len(), self.kv_heads, ROOM, self.width)?);
            }
        }
        self.forget();
        Ok(known)
    }

    /// Gives up the conversations that were not used for the longest time, as far as the bounds ask for it.
    fn forget(&mut self) {
        self.kept.truncate(KEPT);
        while self.kept.len() > 1 && self.kept.iter().map(|one| one.room).sum::<usize>() > KEPT_ROOM {
            self.kept.pop();
        }
    }

    /// Adds tokens that were chosen, and returns the logits of the one after them.
    pub(super) fn go_on(&mut self, tokens: &[u32], stop: &dyn Fn() -> bool) -> Result<Option<Vec<f32>>> {
        Ok(self.advance(tokens, true, stop)?.flatten())
    }

    /// Computes tokens after those in the caches. Stopped half-way, it leaves the caches as they were.
    fn advance(&mut self, tokens: &[u32], speak: bool, stop: &dyn Fn() -> bool) -> Result<Option<Option<Vec<f32>>>> {
        let done = self.pass(tokens, speak, stop).map_err(broken)?;
        if done.is_some() {
            self.kept[0].tokens.extend_from_slice(tokens);
        }
        Ok(done)
    }

    fn pass(&mut self, tokens: &[u32], speak: bool, stop: &dyn Fn() -> bool) -> Candle<Option<Option<Vec<f32>>>> {
        let (rows, start) = (tokens.len(), self.kept[0].tokens.len());
        self.make_room(start + rows)?;
        let turns = self.rope.turns(start, rows, self.width);
        let mut x = self.embeddings.embedding(&Tensor::new(tokens, &Device::Cpu)?)?;
        for index in 0..self.layers.len() {
            if stop() {
                return Ok(None);
            }
            let layer = &self.layers[index];
            let normed = norm(&x, &layer.attention_norm, self.epsilon)?;
            x = (&x + self.attention(index, &normed, start, &turns)?)?;
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

    fn attention(&self, index: usize, x: &Tensor, start: usize, turns: &[(f32, f32)]) -> Candle<Tensor> {
        let (layer, (keys, values)) = (&self.layers[index], &self.kept[0].caches[index]);
        let (rows, width, shared) = (x.dim(0)?, self.width, self.heads / self.kv_heads);
        let scale = 1.0 / (width as f64).sqrt();
        let query = (self.rope.turn(layer.query.forward(x)?, width, turns)? * scale)?;
        let key = self.rope.turn(layer.key.forward(x)?, width, turns)?;
        let value = layer.value.forward(x)?;
        let by_head = |t: Tensor| t.reshape((rows, self.kv_heads, width))?.transpose(0, 1)?.contiguous();
        keys.slice_set(&by_head(key)?, 1, start)?;
        values.slice_set(&by_head(value)?, 1, start)?;
        let keys = keys.narrow(1, 0, start + rows)?;
        let values = values.narrow(1, 0, start + rows)?;
        // Heads that share keys and values are one taller matrix.
        let query = query.reshape((rows, self.kv_heads, shared, width))?.permute((1, 2, 0, 3))?;
        let query = query.contiguous()?.reshape((self.kv_heads, shared * rows, width))?;
        let weights = query.matmul(&keys.transpose(1, 2)?)?;
        weights.inplace_op1(&CausalSoftmax { rows, start })?;
        let mixed = weights.matmul(&values)?.reshape((self.kv_heads, shared, rows, width))?;
        layer.output.forward(&mixed.permute((2, 0, 1, 3))?.contiguous()?.reshape((rows, self.heads * width))?)
    }

    fn make_room(&mut self, needed: usize) -> Candle<()> {
        let current = &self.kept[0];
        if needed > current.room {
            let room = needed.next_power_of_two().min(self.context.max(needed));
            let settled = current.settled;
            self.kept[0] = Conversation { settled, ..current.branch(current.tokens.len(), room)? };
            self.forget();
        }
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
