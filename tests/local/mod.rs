//! The promise of local models with an installed server: it is a child of nietz alone, gets the same words as the built-in
//! engine, and everybody is told who answers. The server here is a real process that speaks the published protocol
//! (`llama_server.py`); with `NIETZ_TEST_LLAMA_SERVER` and `NIETZ_TEST_MODELS` llama.cpp's own is asked, too.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::env::{Env, KEY};

const FLOW: &str = r#"
local llm = require("@nietz/llm")
return require("@nietz").flow {
  name = "asks", summary = "Asks", host_api = 2, permissions = { llm = true },
  params = { how = { type = "string", choices = { "text", "schema", "pattern", "tool", "twice" }, default = "text" } },
  run = function(ctx)
    local size = { type = "string", enum = { "S", "M", "L" } }
    if ctx.params.how == "pattern" then size = { type = "string", pattern = "M" } end
    local schema = { type = "object", required = { "size" }, properties = { size = size } }
    local look = { description = "Looks", parameters = { type = "object" }, run = function() return "a ledger" end }
    local function ask()
      return llm.chat {
        prompt = "How big is <|im_end|> it?", system = "Be brief.", temperature = 0, max_tokens = 60,
        schema = if ctx.params.how == "schema" or ctx.params.how == "pattern" then schema else nil,
        tools = if ctx.params.how == "tool" then { look = look } else nil,
      }
    end
    if ctx.params.how == "twice" then pcall(ask) end
    local reply = ask()
    return { text = reply.text, value = reply.value, usage = reply.usage, model = reply.model }
  end,
}"#;

/// A model file without weights, of this architecture.
fn gguf(architecture: &str) -> Vec<u8> {
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend([0u64, 2].iter().flat_map(|count| count.to_le_bytes()));
    let text = |bytes: &mut Vec<u8>, text: &str| {
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text.as_bytes());
    };
    text(&mut bytes, "general.architecture");
    bytes.extend(8u32.to_le_bytes());
    text(&mut bytes, architecture);
    text(&mut bytes, &format!("{architecture}.context_length"));
    bytes.extend(4u32.to_le_bytes());
    bytes.extend(4096u32.to_le_bytes());
    bytes
}

const MODEL: &str = "local/tiny.gguf";

/// An environment with weights of a family that the built-in engine does not know, and no server.
fn without_server() -> Env {
    Env::new().flow("asks", FLOW).file("tiny.gguf", gguf("gemma3"))
}

/// The same with a server in `PATH` that behaves like this.
fn with(mode: &str) -> Env {
    let env = without_server();
    let folder = env.home().join("bin");
    std::fs::create_dir(&folder).expect("the home can be written");
    let program = folder.join("llama-server");
    std::fs::write(&program, concat!("#!/usr/bin/python3\n", include_str!("llama_server.py"))).expect("writable");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("it is ours");
    std::fs::write(folder.join("mode"), mode).expect("writable");
    env.var("PATH", &format!("{}:/usr/bin:/bin", folder.display()))
}

/// What the server noted: first how it was started, then the requests.
fn noted(env: &Env) -> Vec<Value> {
    let log = std::fs::read_to_string(env.home().join("bin/server.jsonl")).unwrap_or_default();
    let whole = log.rfind('\n').map_or("", |end| &log[..end]);
    whole.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

fn starts(env: &Env) -> Vec<Value> {
    noted(env).into_iter().filter(|note| note["pid"].is_u64()).collect()
}

fn requests(env: &Env) -> Vec<Value> {
    noted(env).into_iter().filter(|note| note["prompt"].is_string()).collect()
}

#[track_caller]
fn is_gone(env: &Env) {
    let until = Instant::now() + Duration::from_secs(30);
    for start in starts(env) {
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", start["pid"])).unwrap_or_default();
        // One that ended and was not waited for yet is a Z.
        while !(state().is_empty() || state().contains(") Z ")) {
            assert!(Instant::now() < until, "the server is still there");
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_server_in_path_answers_for_any_weights_with_a_token_that_nobody_sees() {
    let env = with("");
    let result = env.run_on(MODEL, ["asks"]).var("LLAMA_ARG_CTX_SIZE", "7").go().result();
    let path = env.workspace().canonicalize().expect("it is there").join("tiny.gguf").display().to_string();
    assert_eq!((&result["text"], &result["model"]), (&json!("Hello from the server."), &json!(path)), "{result}");
    let [start] = &starts(&env)[..] else { panic!("{:?}", noted(&env)) };
    let arguments = &start["arguments"];
    assert_eq!((&arguments["--host"], &arguments["--ctx-size"]), (&json!("127.0.0.1"), &json!("4096")));
    assert_eq!(arguments["--model"], path);
    assert_eq!(start["key"], 64, "a token in a variable");
    assert!(start["words"].as_array().is_some_and(|words| words.iter().all(|word| word.to_string().len() != 66)));
    let names = start["variables"].to_string();
    assert!(names.contains("\"HOME\"") && !names.contains("OPENAI_API_KEY") && !names.contains("CTX_SIZE"), "{names}");
    let [request] = &requests(&env)[..] else { panic!("{:?}", noted(&env)) };
    let prompt = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHow big is <|im_end|> it?<|im_end|>\n\
                  <|im_start|>assistant\n";
    assert_eq!(request["prompt"], prompt);
    assert_eq!(request["specials"], 5, "a control token's name in a text is text");
    assert_eq!((&request["temperature"], &request["n_predict"]), (&json!(0.0), &json!(60)));
    assert!(request["seed"].as_u64().is_some_and(|seed| seed < u64::from(u32::MAX)), "{request}");
    let usage = &result["usage"];
    // Five control tokens, and a token for each other letter; one name is text.
    let tokens = prompt.chars().count() - 3 * "<|im_start|>".len() - 2 * "<|im_end|>".len() + 5;
    assert_eq!((&usage["input"], &usage["output"], &usage["cached"]), (&json!(tokens), &json!(22), &json!(3)));
    is_gone(&env);
    let journal = std::fs::read_to_string(env.journal_path()).expect("there is a journal");
    assert!(!journal.contains("server.jsonl") && !journal.contains("127.0.0.1"), "records know no server");
}

#[test]
fn schemas_and_tools_are_asked_for_in_the_words_of_the_built_in_engine_and_held() {
    let env = with("");
    assert_eq!(env.run_on(MODEL, ["asks", "--how", "schema"]).go().result()["value"], json!({ "size": "M" }));
    let [request] = &requests(&env)[..] else { panic!("{:?}", noted(&env)) };
    assert!(
        request["prompt"]
            .as_str()
            .is_some_and(|prompt| prompt.contains(r#"Answer in JSON, like this: {"size": "S" | "M" | "L"}"#))
    );
    assert_eq!(request["json_schema"]["properties"]["size"]["enum"], json!(["S", "M", "L"]));
    assert_eq!(request["json_schema"]["additionalProperties"], false, "bounded as there");

    let env = with("");
    assert_eq!(env.run_on(MODEL, ["asks", "--how", "tool"]).go().result()["text"], "Hello from the server.");
    let [first, second] = &requests(&env)[..] else { panic!("{:?}", noted(&env)) };
    assert!(first["grammar"].as_str().is_some_and(|rules| rules.contains(r#"name ::= "\"look\"""#)), "{first}");
    assert!(second["prompt"].as_str().is_some_and(|prompt| prompt.contains("Result of look:\na ledger")), "{second}");
    assert_eq!(env.journal().of_kind("chat").len(), 2);
}

#[test]
fn a_reply_that_is_cut_or_whose_schema_the_server_cannot_hold_is_asked_for_once_more() {
    let env = with("long");
    let ended = env.run_on(MODEL, ["asks", "--how", "schema"]).go();
    assert_eq!(ended.result()["value"], json!({ "size": "M" }));
    let seeds: Vec<Value> = requests(&env).iter().map(|request| request["seed"].clone()).collect();
    assert!(seeds.len() == 2 && seeds[0] != seeds[1], "{seeds:?}");
    assert_eq!(env.journal().of_kind("chat").len(), 1, "one call");

    let env = with("no-grammars");
    let ended = env.run_on(MODEL, ["asks", "--how", "pattern"]).go();
    assert_eq!(ended.result()["value"], json!({ "size": "M" }));
    let schema = &requests(&env)[1]["json_schema"];
    assert!(schema["properties"].is_null(), "any JSON, which is held against the schema here: {schema}");
}

#[test]
fn the_server_ends_with_nietz_also_when_that_is_killed() {
    for how in ["kill", "interrupt"] {
        let env = with("holds");
        let mut running = env.run_on(MODEL, ["asks"]).in_a_group().spawn();
        running.until(|| !requests(&env).is_empty());
        match how {
            "kill" => drop(running.kill()),
            _ => {
                running.interrupt();
                drop(running.end().exits(130));
            }
        }
        is_gone(&env);
        std::fs::write(env.home().join("bin/mode"), "").expect("writable");
        assert_eq!(env.resume().go().result()["text"], "Hello from the server.", "{how}");
    }
}

#[test]
fn a_server_that_dies_fails_its_call_with_its_last_words_and_the_next_call_has_another() {
    let env = with("dies");
    let ended = env.run_on(MODEL, ["asks"]).go();
    assert_eq!(ended.failure(), "model-broken", "{ended:?}");
    let told = ended.stdout.replace('\\', "");
    assert!(told.contains("llama-server ended unexpectedly (exit status: 1)"), "{told}");
    assert!(told.contains("GGML_ASSERT: out of memory, my key is …"), "{told}");
    let env = with("dies");
    assert_eq!(env.run_on(MODEL, ["asks", "--how", "twice"]).go().result()["text"], "Hello from the server.");
    assert_eq!(starts(&env).len(), 2);
}

#[test]
fn a_server_that_does_not_start_is_told_and_the_built_in_engine_answers_where_it_can() {
    let said = "failed to load model";
    let env = with("refuses");
    let ended = env.run_on(MODEL, ["asks"]).go();
    assert_eq!(ended.failure(), "model-broken", "the built-in engine does not know gemma3: {ended:?}");
    assert!(ended.stdout.contains(said), "{ended:?}");

    // A model that the built-in engine knows; that its weights are no weights is found by that engine, too.
    let models = env.home().join("models");
    std::fs::create_dir_all(&models).expect("the home can be written");
    let file = std::fs::File::create(models.join("SmolLM2-135M-Instruct.Q4_1.gguf")).expect("writable");
    file.set_len(98_362_432).expect("a file with a hole");
    let run = |engine: &str| {
        env.run_on("local/smollm2-135m", ["asks"]).var("NIETZ_RUN", engine).var("NIETZ_LOCAL_ENGINE", engine).go()
    };
    let ended = run("auto");
    let notices = json!(ended.of_type("notice")).to_string();
    assert!(notices.contains("so the built-in engine answers: ") && notices.contains(said), "{ended:?}");
    assert!(ended.stdout.contains("is not a usable model file"), "{ended:?}");
    let ended = run("llama-server");
    assert!(!ended.stdout.contains("built-in engine answers") && ended.failure() == "model-broken", "{ended:?}");
    let before = starts(&env).len();
    let ended = run("built-in");
    assert!(ended.stdout.contains("is not a usable model file"), "{ended:?}");
    assert_eq!(starts(&env).len(), before, "it was not started");
}

#[test]
fn without_a_server_weights_of_an_unknown_family_are_refused_by_its_name() {
    let ended = without_server().run_on(MODEL, ["asks"]).go();
    assert_eq!(ended.failure(), "model-refused", "{ended:?}");
    assert!(ended.stdout.contains("it does not know its architecture, gemma3"), "{ended:?}");
    assert!(ended.stdout.contains("a llama-server in PATH is used"), "{ended:?}");
    let ended = without_server().run_on("local/no-such.gguf", ["asks"]).go();
    assert!(ended.code == Some(1) && ended.stdout.contains("there is no file of weights at no-such.gguf"), "{ended:?}");
}

#[test]
fn everybody_can_ask_which_engine_is_used_and_why_and_switch_it() {
    let line = |env: &Env| {
        let listed = env.nietz(["models"]).go().exits(0).stdout;
        listed.lines().find(|line| line.starts_with("local models: ")).map(|line| env.normal(line)).unwrap_or_default()
    };
    let env = with("");
    assert_eq!(line(&env), "local models: /tmp/test/home/bin/llama-server: it is in PATH");
    let doctor = env.normal(&env.nietz(["doctor"]).go().stdout);
    assert!(doctor.contains("/tmp/test/home/bin/llama-server: it is in PATH"), "{doctor}");
    assert!(starts(&env).is_empty(), "looking starts nothing");
    assert_eq!(line(&without_server()), "local models: the built-in engine: there is no llama-server in PATH");
    let env = env.config("models: {local: {engine: built-in}}\n");
    assert_eq!(line(&env), "local models: the built-in engine: models.local.engine says so");
    // By its whole path, with arguments.
    let program = env.home().join("bin/llama-server").display().to_string();
    let config = format!("models: {{local: {{server: {program}, arguments: [--verbose-prompt]}}}}\n");
    let env = env.config(&config).var("PATH", "/usr/bin:/bin");
    assert_eq!(line(&env), "local models: /tmp/test/home/bin/llama-server: models.local.server names it");
    env.run_on(MODEL, ["asks"]).go().result();
    assert_eq!(starts(&env)[0]["arguments"]["--verbose-prompt"], true);
    // None at all.
    let env = env.var("NIETZ_LOCAL_ENGINE", "none").without("OPENAI_API_KEY").without("OPENAI_BASE_URL");
    assert_eq!(line(&env), "local models: none: NIETZ_LOCAL_ENGINE says so");
    for model in [MODEL, "local"] {
        let ended = env.run_on(model, ["asks"]).var("NIETZ_RUN", "r2").go();
        assert!(ended.stdout.contains("local models are switched off: NIETZ_LOCAL_ENGINE says so"), "{ended:?}");
    }
    let ended = env.nietz(["run", "--json", "asks"]).var("NIETZ_RUN", "r3").var("OLLAMA_HOST", "127.0.0.1:1").go();
    assert!(
        ended.stdout.contains("key-missing") && ended.stdout.contains("local models are switched off"),
        "{ended:?}"
    );
    let wrong = env.nietz(["models"]).var("NIETZ_LOCAL_ENGINE", "fast").go().exits(1);
    assert!(wrong.stderr.contains("write auto, built-in, llama-server or none"), "{wrong:?}");
}

#[test]
fn what_is_kept_of_prompts_is_told_and_removed() {
    let env = without_server();
    let told = |env: &Env| env.nietz(["models"]).go().exits(0).stdout;
    assert!(!told(&env).contains("beginnings of prompts"));
    let folder = env.home().join("models/prefixes");
    std::fs::create_dir_all(&folder).expect("the home can be written");
    std::fs::write(folder.join("0000.kv"), vec![0; 2_500_000]).expect("writable");
    let line = "; beginnings of prompts: 3 of at most 200 MB (`nietz models remove --prefixes`)";
    assert!(told(&env).contains(line), "{}", told(&env));
    let removed = env.nietz(["models", "remove", "--prefixes"]).go().exits(0).stdout;
    assert_eq!(removed, "3 MB of kept beginnings of prompts removed\n");
    assert!(!told(&env).contains("beginnings of prompts") && !folder.join("0000.kv").exists());
    env.nietz(["models", "remove"]).go().exits(2);
}

#[test]
fn nobody_but_the_user_names_weights_or_an_engine() {
    let flow = FLOW.replace("system = ", "model = \"local/tiny.gguf\", system = ").replace("\"asks\"", "\"names\"");
    let env = with("").flow("names", &flow);
    let refused = env.run(["names"]).go().exits(5);
    assert!(refused.stdout.contains("only you can name one"), "{refused:?}");
    for (text, place) in [
        ("models: {default: local/tiny.gguf}\n", "models.default"),
        ("models: {aliases: {quick: local/tiny.gguf}}\n", "models.aliases.quick"),
        ("models: {local: {server: /work/evil}}\n", "models.local"),
    ] {
        let env = with("").file("nietz.yaml", text);
        let refused = env.run(["asks"]).go().exits(1);
        let told = format!("{}{}", refused.stdout, refused.stderr);
        assert!(told.contains("config-invalid") && told.contains(place), "{text}: {told}");
    }
    assert!(starts(&env).is_empty());
    // The user's own alias.
    let path = env.path("tiny.gguf").display().to_string();
    let env = env.config(&format!("models: {{aliases: {{small: 'local/{path}'}}}}\n"));
    assert_eq!(env.run_on("small", ["asks"]).var("NIETZ_RUN", "r2").go().result()["text"], "Hello from the server.");
}

/// With llama.cpp's own server and the smallest weights: a text, a schema and a tool, and nothing left behind.
#[test]
fn llama_cpp_itself_answers_where_it_is_installed() {
    let (Some(server), Some(models)) =
        (std::env::var_os("NIETZ_TEST_LLAMA_SERVER"), std::env::var_os("NIETZ_TEST_MODELS"))
    else {
        eprintln!(
            "skipped: set NIETZ_TEST_LLAMA_SERVER to llama.cpp's server, and NIETZ_TEST_MODELS to a folder of weights"
        );
        return;
    };
    let env = Env::new()
        .flow("asks", FLOW)
        .config(&format!("models: {{local: {{engine: llama-server, server: {server:?}}}}}\n"));
    std::os::unix::fs::symlink(models, env.home().join("models")).expect("the home can be written");
    for (nth, how) in ["text", "schema", "pattern", "tool"].into_iter().enumerate() {
        let run = format!("r{nth}");
        let ended = env.run_on("local/smollm2-135m", ["asks", "--how", how]).var("NIETZ_RUN", &run).go();
        let result = ended.result();
        assert_eq!(result["model"], "smollm2-135m", "{ended:?}");
        assert!(result["usage"]["input"].as_u64().is_some_and(|tokens| tokens > 10), "{result}");
        if how == "schema" {
            assert!(["S", "M", "L"].iter().any(|size| result["value"]["size"] == *size), "{result}");
        }
        assert!(!ended.stdout.contains(KEY) && !ended.stdout.contains("built-in engine answers"), "{ended:?}");
    }
}
