//! A model service with a cache of prompts, which counts what of its input was read from it and written to it.
//!
//! On Anthropic's wire it keeps what is marked and nothing else, as the provider's page on prompt caching says (2026-11): a
//! mark keeps all that comes before its end, if that is 1,024 tokens or more; a request reads the longest prefix that is kept,
//! looked for at each of its marks and at up to twenty blocks before it; there are four marks at most. On the other wire it keeps
//! everything, in blocks of 1,024 tokens, as OpenAI does. Either way it keeps what it has *answered*, for five minutes after it
//! was last used, so that calls side by side find nothing of each other. A token is four bytes of JSON.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Request, Response, Wire};

/// The fewest tokens that are kept, and on the wire without marks the size of a block.
const BLOCK: u64 = 1024;

/// How many blocks before a mark are looked at.
const LOOK_BACK: usize = 20;

/// The most marks of a request.
const MOST_MARKS: usize = 4;

/// How long something is kept after it was last used.
const KEPT: Duration = Duration::from_secs(300);

/// The prices of a token that is read from the cache and of one that is written to it, where any other costs 1.
const READ: f64 = 0.1;
const WRITTEN: f64 = 1.25;

/// The cache of a service.
#[derive(Clone, Default)]
pub struct Cache(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// When each prefix was last used, by its digest.
    kept: HashMap<u64, Instant>,
    counted: Counted,
}

/// What a service has counted, in tokens of input.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counted {
    pub calls: u64,
    pub input: u64,
    pub read: u64,
    pub written: u64,
}

impl Counted {
    /// Returns the price of all input with the cache over its price without.
    pub fn ratio(self) -> f64 {
        let [input, read, written] = [self.input, self.read, self.written].map(|tokens| tokens as f64);
        (READ * read + WRITTEN * written + (input - read - written)) / input
    }
}

/// A part of a request up to its end.
#[derive(Clone, Copy)]
struct Prefix {
    digest: u64,
    tokens: u64,
    marked: bool,
}

impl Cache {
    /// Puts the cache before a script: its replies get the counts of tokens that the cache has made.
    pub fn before(
        &self,
        script: impl Fn(&Request) -> Response + Send + Sync + 'static,
    ) -> impl Fn(&Request) -> Response + Send + Sync + 'static {
        let cache = self.clone();
        move |request| {
            let prefixes = prefixes(request);
            let marks = prefixes.iter().filter(|prefix| prefix.marked).count();
            if request.wire() == Wire::Anthropic && marks > MOST_MARKS {
                let message = format!("A maximum of 4 blocks with cache_control may be provided. Found {marks}.");
                return Response::error(400, &message);
            }
            let (input, read, written) = cache.look(request.wire(), &prefixes);
            let cache = cache.clone();
            let wire = request.wire();
            script(request).counted(input, read, written).when_answered(move || {
                cache.keep(wire, &prefixes);
                let mut state = cache.0.lock().expect("nobody panics while it is held");
                let counted = &mut state.counted;
                counted.calls += 1;
                counted.input += input;
                counted.read += read;
                counted.written += written;
            })
        }
    }

    /// Returns what was counted so far, of calls that were answered.
    pub fn counted(&self) -> Counted {
        self.0.lock().expect("nobody panics while it is held").counted
    }

    /// Returns how many tokens a request has, and how many of them are read and written.
    fn look(&self, wire: Wire, prefixes: &[Prefix]) -> (u64, u64, u64) {
        let state = self.0.lock().expect("nobody panics while it is held");
        let is_kept = |prefix: &&Prefix| state.kept.get(&prefix.digest).is_some_and(|used| used.elapsed() < KEPT);
        let ends = candidates(wire, prefixes);
        let looked_at = ends.iter().flat_map(|&end| {
            let back = if wire == Wire::Anthropic { LOOK_BACK } else { 0 };
            &prefixes[end.saturating_sub(back)..=end]
        });
        let read = looked_at.filter(is_kept).map(|prefix| prefix.tokens).max().unwrap_or(0);
        let last = ends.iter().map(|&end| prefixes[end].tokens).max().unwrap_or(0);
        (prefixes.last().map_or(0, |prefix| prefix.tokens), read, last.saturating_sub(read))
    }

    fn keep(&self, wire: Wire, prefixes: &[Prefix]) {
        let mut state = self.0.lock().expect("nobody panics while it is held");
        for end in candidates(wire, prefixes) {
            state.kept.insert(prefixes[end].digest, Instant::now());
        }
    }
}

/// Returns the positions of the prefixes that can be kept.
fn candidates(wire: Wire, prefixes: &[Prefix]) -> Vec<usize> {
    let can = |prefix: &Prefix| match wire {
        Wire::Anthropic => prefix.marked && prefix.tokens >= BLOCK,
        Wire::OpenAi => prefix.tokens > 0 && prefix.tokens.is_multiple_of(BLOCK),
    };
    (0..prefixes.len()).filter(|&index| can(&prefixes[index])).collect()
}

/// Returns a part of a request without its marks.
pub fn unmarked(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(unmarked).collect()),
        Value::Object(members) => {
            let rest = members.iter().filter(|(name, _)| *name != "cache_control");
            rest.map(|(name, value)| (name.clone(), unmarked(value))).collect()
        }
        value => value.clone(),
    }
}

/// Returns the prefixes of a request: up to each of its blocks where there are marks, up to each 1,024 tokens elsewhere.
fn prefixes(request: &Request) -> Vec<Prefix> {
    let mut hasher = DefaultHasher::new();
    request.body["model"].to_string().hash(&mut hasher);
    let mut bytes = 0;
    if request.wire() == Wire::Anthropic {
        let prefix = |block: Value| {
            let mark = block.get("cache_control");
            let text = unmarked(&block).to_string();
            text.hash(&mut hasher);
            bytes += text.len() as u64;
            Prefix { digest: hasher.finish(), tokens: bytes / 4, marked: mark.is_some() }
        };
        return blocks(&request.body).into_iter().map(prefix).collect();
    }
    let whole: String = blocks(&request.body).iter().map(Value::to_string).collect();
    let piece = |piece: &[u8]| {
        piece.hash(&mut hasher);
        bytes += piece.len() as u64;
        Prefix { digest: hasher.finish(), tokens: bytes / 4, marked: false }
    };
    whole.as_bytes().chunks(BLOCK as usize * 4).map(piece).collect()
}

/// Returns what a model reads of a request, in its order: tools, system prompt, conversation.
fn blocks(body: &Value) -> Vec<Value> {
    let all = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut blocks = all(&body["tools"]);
    blocks.extend(texts(&body["system"], "system"));
    // What changes how a conversation is read makes it another one (Anthropic's page on prompt caching, 2026-11).
    blocks.push(json!([body["tool_choice"], body["thinking"]]));
    for message in all(&body["messages"]) {
        let role = message["role"].as_str().unwrap_or_default();
        blocks.extend(texts(&message["content"], role));
        blocks.extend(all(&message["tool_calls"]));
    }
    blocks
}

/// Returns the blocks of a text or of a list of blocks. One text is one block, however it is written.
fn texts(content: &Value, role: &str) -> Vec<Value> {
    let blocks = match content {
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        Value::Array(blocks) => blocks.clone(),
        _ => Vec::new(),
    };
    let from = |mut block: Value| {
        block["role"] = role.into();
        block
    };
    blocks.into_iter().map(from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request with a turn of so many blocks, of 1,100 tokens each, and a mark at these.
    fn request(blocks: usize, marked: &[usize]) -> Request {
        let block = |index| {
            let mut block = json!({"type": "text", "text": format!("{index}").repeat(4400)[..4400]});
            if marked.contains(&index) {
                block["cache_control"] = json!({"type": "ephemeral"});
            }
            block
        };
        let content: Vec<Value> = (10..10 + blocks).map(block).collect();
        let body = json!({"model": "m", "messages": [{"role": "user", "content": content}]});
        Request {
            number: 1,
            method: "POST".to_owned(),
            path: "/v1/messages".to_owned(),
            headers: Default::default(),
            raw: Vec::new(),
            body,
        }
    }

    /// Answers a request, and returns what was read and written of it.
    fn answer(cache: &Cache, request: &Request) -> (bool, bool) {
        let prefixes = prefixes(request);
        let (_, read, written) = cache.look(request.wire(), &prefixes);
        cache.keep(request.wire(), &prefixes);
        (read > 0, written > 0)
    }

    #[test]
    fn what_is_marked_is_kept_and_found_from_twenty_blocks_behind_it() {
        let cache = Cache::default();
        assert_eq!(answer(&cache, &request(5, &[])), (false, false));
        assert_eq!(answer(&cache, &request(5, &[14])), (false, true));
        assert_eq!(answer(&cache, &request(5, &[14])), (true, false));
        assert_eq!(answer(&cache, &request(25, &[34])), (true, true), "twenty blocks behind it");
        let cache = Cache::default();
        answer(&cache, &request(5, &[14]));
        assert_eq!(answer(&cache, &request(26, &[35])), (false, true), "one too many");
        let cache = Cache::default();
        answer(&cache, &request(5, &[14]));
        assert_eq!(answer(&cache, &request(26, &[14, 35])), (true, true), "a mark where it ends finds it");
    }

    #[test]
    fn what_is_not_answered_yet_is_not_found_and_five_marks_are_refused() {
        let cache = Cache::default();
        let script = cache.before(|_| Response::text("so it is"));
        for _ in 0..2 {
            script(&request(5, &[14]));
        }
        assert_eq!((cache.counted(), answer(&cache, &request(5, &[14]))), (Counted::default(), (false, true)));
        let refused = format!("{:?}", script(&request(5, &[10, 11, 12, 13, 14])));
        assert!(refused.contains("status: 400"), "{refused}");
    }

    #[test]
    fn the_other_wire_keeps_whole_blocks_of_what_it_was_sent() {
        let cache = Cache::default();
        let request = |blocks| Request { path: "/v1/chat/completions".to_owned(), ..request(blocks, &[]) };
        assert_eq!(answer(&cache, &request(3)), (false, true));
        let prefixes = prefixes(&request(5));
        let (input, read, written) = cache.look(Wire::OpenAi, &prefixes);
        assert_eq!((read, (read + written) % BLOCK, input > read + written), (3 * BLOCK, 0, true));
    }
}
