//! Tests of the engine with real weights.
//!
//! They look for a model file in the folder that `NIETZ_TEST_MODELS` names, and print that they are skipped
//! if there is none. The smallest model is enough, since they prove the plumbing.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::catalogue;
use super::engine::{Engine, GenerationEvent};
use super::gguf::Gguf;
use super::prefixes::Place;
use super::vocabulary::Vocabulary;
use super::weights;
use crate::error::Code;
use crate::model::chat::{ChatReply, ChatRequest, FinishReason, Message, Role, Tool, ToolChoice};

fn request(text: &str) -> ChatRequest {
    let message = Message {
        attachments: Vec::new(),
        role: Role::User,
        content: text.into(),
        state: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
    };
    ChatRequest {
        model: "local/toy".into(),
        system: Some("You are terse.".into()),
        messages: vec![message],
        schema: None,
        tools: Vec::new(),
        tool_choice: None,
        max_tokens: Some(48),
        temperature: Some(1.0),
        top_p: None,
        stop: Vec::new(),
        provider_options: serde_json::Map::new(),
        seed: Some(7),
        effort: None,
    }
}

/// Returns the path of a model's file, or prints what is skipped.
fn weights(name: &str) -> Option<PathBuf> {
    let model = catalogue::find(name).expect("it is in the catalogue");
    let dir = std::env::var_os("NIETZ_TEST_MODELS").map(PathBuf::from);
    let path = dir.and_then(|dir| weights::find(model, &dir));
    if path.is_none() {
        eprintln!("skipped: no weights; set NIETZ_TEST_MODELS to a folder with {}", model.file);
    }
    path
}

/// Loads the smallest model, or prints that the test is skipped.
fn engine() -> Option<Alone> {
    // One engine at a time: several in one process would wait for each other's threads.
    static ONE: Mutex<()> = Mutex::new(());
    let turn = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = weights("smollm2-135m")?;
    Some(Alone {
        engine: Engine::load("smollm2-135m", &path, None, &|| false).expect("the file is whole"),
        _turn: turn,
    })
}

struct Alone {
    engine: Engine,
    _turn: MutexGuard<'static, ()>,
}

impl std::ops::Deref for Alone {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl std::ops::DerefMut for Alone {
    fn deref_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }
}

fn reply(engine: &mut Engine, request: &ChatRequest) -> ChatReply {
    let mut streamed = String::new();
    let mut on_event = |event: GenerationEvent<'_>| match event {
        GenerationEvent::Alive => {}
        GenerationEvent::Delta(text) => streamed.push_str(text),
        GenerationEvent::Retry(_) => streamed.clear(),
    };
    let reply = engine.chat(request, 0, &mut on_event, &|| false).expect("it answers").expect("nobody stopped it");
    if request.tools.is_empty() {
        assert_eq!(streamed, reply.text, "the pieces are the whole");
    }
    reply
}

#[test]
fn reading_a_long_prompt_gives_signs_of_life() {
    let Some(mut engine) = engine() else { return };
    let mut before = 0;
    let mut spoke = false;
    let mut on_event = |event: GenerationEvent<'_>| match event {
        GenerationEvent::Alive if !spoke => before += 1,
        GenerationEvent::Delta(_) => spoke = true,
        GenerationEvent::Alive | GenerationEvent::Retry(_) => {}
    };
    let long = request(&"one two three four ".repeat(60));
    engine.chat(&long, 0, &mut on_event, &|| false).expect("it answers").expect("nobody stopped it");
    assert!(before >= 3, "{before} signs");
}

/// The expected tokens are llama.cpp's for the same files.
#[test]
fn text_becomes_the_tokens_that_the_model_was_trained_with() {
    let text = "Hello world 1234, it's fine\n\n  x\t€ naïve 日本 🙂 <|im_end|>";
    let spaces = "   three  spaces\r\n a1b22";
    let smol: (&[u32], &[u32]) = (
        &[
            19556, 905, 216, 33, 34, 35, 36, 28, 357, 506, 4979, 8866, 1792, 197, 14195, 15486, 46494, 17097, 241, 115,
            40993, 47526, 2067, 108, 306, 79, 486, 108, 46,
        ],
        &[256, 1296, 216, 5600, 2738, 253, 33, 82, 34, 34],
    );
    let qwen: (&[u32], &[u32]) = (
        &[
            9707, 1879, 220, 16, 17, 18, 19, 11, 432, 594, 6915, 271, 220, 856, 197, 15056, 94880, 586, 75402, 21894,
            27484, 82639, 318, 6213, 91, 29,
        ],
        &[256, 2326, 220, 12621, 319, 264, 16, 65, 17, 17],
    );
    for (name, (for_text, for_spaces)) in [("smollm2-135m", smol), ("qwen2.5-coder-1.5b", qwen)] {
        let Some(path) = weights(name) else { continue };
        let vocabulary = Vocabulary::read(&Gguf::open(&path).expect("readable")).expect("it has words");
        for (text, tokens) in [(text, for_text), (spaces, for_spaces)] {
            let mut encoded = Vec::new();
            vocabulary.encode_plain(text, &mut encoded);
            assert_eq!(encoded, tokens, "{name}");
            let bytes: Vec<u8> = encoded.iter().flat_map(|token| vocabulary.bytes(*token)).copied().collect();
            assert_eq!(String::from_utf8_lossy(&bytes), text);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_text_whatever_was_said_before() {
    let Some(mut engine) = engine() else { return };
    let long = request(&"Tell me about the sea and the ships on it. ".repeat(20));
    let first = reply(&mut engine, &long);
    assert_eq!(first.usage.cached, 0);
    // Now with a part of the prompt in the cache, after another conversation, and as part of a longer prompt.
    let again = reply(&mut engine, &long);
    assert!(again.usage.cached > 100 && again.usage.cached < again.usage.input);
    assert_eq!(again.text, first.text);
    let mut grown = long.clone();
    grown.messages.push(Message { role: Role::Assistant, content: "Ships sail.".into(), ..long.messages[0].clone() });
    grown.messages.push(Message { content: "And the sea?".into(), ..long.messages[0].clone() });
    let warm = reply(&mut engine, &grown);
    assert!(warm.usage.cached > 100);
    // The conversation is cached after others, until there are too many of them.
    reply(&mut engine, &request("Something else."));
    let warm_again = reply(&mut engine, &grown);
    assert!(warm_again.usage.cached > 100);
    assert_eq!(warm_again.text, warm.text);
    for other in ["One", "Two", "Three", "Four"] {
        reply(
            &mut engine,
            &request(&format!("{other}. {}", "Tell me about the hills and the sheep there. ".repeat(20))),
        );
    }
    let cold = reply(&mut engine, &grown);
    assert_eq!(cold.usage.cached, 0);
    assert_eq!(warm.text, cold.text);
    assert_ne!(reply(&mut engine, &ChatRequest { seed: Some(8), ..long.clone() }).text, first.text);
}

#[test]
fn two_hundred_random_schemas_give_two_hundred_valid_replies() {
    let Some(mut engine) = engine() else { return };
    let mut dice = Dice(1);
    for round in 0..200 {
        let schema = schema(&mut dice, 0);
        let chat_request = ChatRequest {
            schema: Some(schema.clone()),
            max_tokens: Some(250),
            seed: Some(round),
            ..request("Fill the form with something.")
        };
        let text = reply(&mut engine, &chat_request).text;
        let value: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text} for {schema}"));
        assert!(jsonschema::draft202012::is_valid(&schema, &value), "{value} for {schema}");
    }
}

#[test]
fn a_reply_that_must_be_short_is_cut_and_says_so_or_fails_when_it_has_a_form() {
    let Some(mut engine) = engine() else { return };
    let short = ChatRequest { max_tokens: Some(5), ..request("Write a long story.") };
    let cut = reply(&mut engine, &short);
    assert_eq!((cut.finish, cut.usage.output), (FinishReason::Length, 5));
    let list = json!({ "type": "array", "items": { "type": "string", "minLength": 90 }, "minItems": 9 });
    let mut retries = 0;
    let mut on_event = |event: GenerationEvent<'_>| retries += usize::from(matches!(event, GenerationEvent::Retry(_)));
    let failure = engine.chat(&ChatRequest { schema: Some(list), ..short }, 0, &mut on_event, &|| false);
    assert_eq!(failure.expect_err("it has no room").code, Code::ReplyInvalid);
    assert_eq!(retries, 1);
}

#[test]
fn a_beginning_that_was_kept_on_disk_gives_the_same_reply_and_a_broken_one_is_replaced() {
    let Some(path) = weights("smollm2-135m") else { return };
    let turn = engine();
    let models = tempfile::tempdir().expect("a folder");
    let place = Place { models: models.path().to_owned(), program: path.clone() };
    let load = || Engine::load("smollm2-135m", &path, Some(&place), &|| false).expect("the file is whole");
    let asked = ChatRequest { system: Some("You tell of the sea and of its ships. ".repeat(20)), ..request("Begin.") };
    let mut first = load();
    let cold = reply(&mut first, &asked);
    first.finish();
    assert_eq!(cold.usage.cached, 0);
    let kept = super::prefixes::size(models.path());
    assert!(kept > 0, "it was kept");
    let warm = reply(&mut load(), &asked);
    assert!(warm.usage.cached > 100, "{:?}", warm.usage);
    assert_eq!(warm.text, cold.text);
    let other = ChatRequest { seed: Some(9), ..asked.clone() };
    let expected = reply(&mut first, &other).text;
    assert_eq!(reply(&mut load(), &other).text, expected);
    // A file that is not whole is taken away, and the prompt computed as if there were none.
    let file =
        std::fs::read_dir(models.path().join("prefixes")).expect("a folder").flatten().next().expect("a file").path();
    let whole = std::fs::read(&file).expect("it is there");
    let mut torn = whole.clone();
    torn[100] ^= 1;
    std::fs::write(&file, torn).expect("writable");
    let mut again = load();
    let replaced = reply(&mut again, &asked);
    assert_eq!((replaced.usage.cached, &replaced.text), (0, &cold.text));
    again.finish();
    assert_eq!(std::fs::read(&file).expect("it is there again"), whole);
    drop(turn);
}

#[test]
fn a_name_of_the_template_in_a_text_is_only_text() {
    let Some(mut engine) = engine() else { return };
    let plain = reply(&mut engine, &request("Hello")).usage.input;
    let tricked = reply(&mut engine, &request("Hello<|im_end|>")).usage.input;
    assert!(tricked > plain + 1, "the name was read as one token");
}

#[test]
fn a_tool_is_called_with_arguments_of_its_form() {
    let Some(mut engine) = engine() else { return };
    let parameters = json!({ "type": "object", "required": ["n"], "additionalProperties": false,
        "properties": { "n": { "$ref": "#/$defs/n" } }, "$defs": { "n": { "type": "integer" } } });
    let tool = Tool { name: "roll".into(), description: "Rolls dice.".into(), parameters: parameters.clone() };
    let mut calls = 0;
    for seed in 0..12 {
        let chat_request = ChatRequest { tools: vec![tool.clone()], seed: Some(seed), ..request("Roll 3 dice.") };
        for call in reply(&mut engine, &chat_request).tool_calls {
            calls += 1;
            let arguments: Value = serde_json::from_str(&call.arguments).expect("JSON");
            assert!(jsonschema::draft202012::is_valid(&parameters, &arguments), "{arguments}");
            assert_eq!((call.name.as_str(), call.id.as_str()), ("roll", "local-1"));
        }
    }
    eprintln!("{calls} of 12 replies were tool calls");
    for seed in 0..12 {
        let tool_choice = Some(ToolChoice::Required);
        let tools = vec![tool.clone()];
        let chat_request = ChatRequest { tools, tool_choice, seed: Some(seed), ..request("Tell me a joke.") };
        assert_eq!(reply(&mut engine, &chat_request).tool_calls.len(), 1, "seed {seed}");
    }
}

#[test]
fn a_stop_is_heard_before_the_next_layer() {
    let Some(mut engine) = engine() else { return };
    let chat_request = ChatRequest { max_tokens: Some(2000), ..request("Write a long story.") };
    let pieces = std::cell::Cell::new(0);
    let stop = || pieces.get() >= 3;
    let outcome = engine.chat(&chat_request, 0, &mut |_| pieces.set(pieces.get() + 1), &stop).expect("no failure");
    assert_eq!((outcome, pieces.get()), (None, 3));
    // A stopped call leaves nothing behind.
    let text = reply(&mut engine, &request("Hello")).text;
    drop(engine);
    assert_eq!(reply(&mut self::engine().expect("weights"), &request("Hello")).text, text);
}

#[test]
fn a_conversation_that_is_too_long_is_refused() {
    let Some(mut engine) = engine() else { return };
    let failure = engine.chat(&request(&"one two three ".repeat(9_000)), 0, &mut |_| (), &|| false);
    assert_eq!(failure.expect_err("too long").code, Code::ContextExceeded);
}

/// SplitMix64, so that the schemas are the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ (mixed >> 27)) >> 33) % sides
    }
}

fn schema(dice: &mut Dice, depth: u64) -> Value {
    match dice.below(if depth < 2 { 12 } else { 8 }) {
        0 => json!({ "type": "string" }),
        1 => json!({ "type": "string", "minLength": 2, "maxLength": 20 + dice.below(20) }),
        2 => json!({ "enum": ["red", "green", 3, null] }),
        3 => json!({ "type": "integer", "minimum": dice.below(5), "maximum": 5 + dice.below(100) }),
        4 => json!({ "type": "number" }),
        5 => json!({ "type": ["boolean", "null"] }),
        6 => json!({ "type": "string", "format": "date" }),
        7 => json!({ "type": "string", "pattern": "^[a-z]{2,6}-[0-9]{1,3}$" }),
        8 => json!({ "type": "array", "items": schema(dice, depth + 1), "minItems": dice.below(3), "maxItems": 3 }),
        9 => json!({ "anyOf": [schema(dice, depth + 1), schema(dice, depth + 1)] }),
        _ => {
            let names = ["title", "why", "score", "naïve"];
            let names = &names[..1 + dice.below(4) as usize];
            let required: Vec<&str> = names.iter().copied().filter(|_| dice.below(3) > 0).collect();
            let fields = names.iter().map(|name| ((*name).to_owned(), schema(dice, depth + 1)));
            json!({ "type": "object", "properties": fields.collect::<serde_json::Map<_, _>>(), "required": required })
        }
    }
}
