//! The promise to whoever has an agent: a flow is answered by it only where they named it themselves, it is given nothing but the
//! words, and what it asks for is refused and told. The agent here is a real process that speaks the published protocol (`agent.py`).

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::env::{Env, KEY, RUN};

const FLOW: &str = r#"
local llm = require("@nietz/llm")
return require("@nietz").flow {
  name = "asks", summary = "Asks", host_api = 2, permissions = { llm = true },
  params = { schema = { type = "boolean", default = false } },
  run = function(ctx)
    local schema = { type = "object", required = { "size" }, properties = { size = { enum = { "S", "M", "L" } } } }
    local reply = llm.chat {
      prompt = "How big is it?", system = "Be brief.",
      schema = if ctx.params.schema then schema else nil,
    }
    return { text = reply.text, value = reply.value, usage = reply.usage, cost = reply.cost }
  end,
}"#;

/// The user's configuration with an agent `mine` that behaves like this.
fn config(mode: &str, more: &str) -> String {
    let command = json!(["/usr/bin/python3", "-c", include_str!("agent.py"), mode]);
    format!("models: {{agents: {{mine: {{command: {command}{more}}}}}}}\n")
}

fn with(mode: &str) -> Env {
    Env::new().flow("asks", FLOW).config(&config(mode, ""))
}

/// What the agent got.
fn got(env: &Env) -> Vec<Value> {
    let log = std::fs::read_to_string(env.home().join("agent.jsonl")).unwrap_or_default();
    log.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

fn prompts(env: &Env) -> Vec<String> {
    let prompts = got(env).into_iter().filter(|message| message["method"] == "session/prompt");
    prompts.map(|message| message["params"]["prompt"][0]["text"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn an_agent_that_the_user_names_answers_in_an_empty_folder_and_is_offered_nothing() {
    let env = with("text");
    let ended = env.run_on("acp/mine", ["asks"]).go().exits(0);
    let result = ended.result();
    assert!(result["text"].as_str().is_some_and(|text| text.starts_with("Hello from nietz-agent-")), "{result}");
    assert_eq!(result["usage"]["input"], 20);
    assert!(result["cost"].is_null(), "nobody knows what it costs: {result}");
    let got = got(&env);
    let capabilities = json!({ "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false });
    assert_eq!(got[1]["params"]["clientCapabilities"], capabilities);
    let place = got.iter().find(|entry| entry["cwd"].is_string()).expect("a session was made");
    assert_eq!(place["files"], json!([]));
    let mode = got.iter().find(|message| message["method"] == "session/set_mode").expect("it began in another one");
    assert_eq!(mode["params"], json!({ "sessionId": "s1", "modeId": "default" }));
    let names = place["environment"].to_string();
    assert!(names.contains("\"HOME\"") && !names.contains("OPENAI_API_KEY"), "{names}");
    let prompt = prompts(&env).remove(0);
    assert!(prompt.contains("use no tools") && prompt.ends_with("Be brief.\n\nHow big is it?"), "{prompt}");
    // What it said is recorded: no agent is asked again.
    env.nietz(["test", "--from-run", RUN]).go().exits(0);
    let env = env.config("{}\n");
    env.nietz(["test"]).go().exits(0);
    assert_eq!(prompts(&env).len(), 1);
    let folder = place["cwd"].as_str().expect("a path");
    assert!(!std::path::Path::new(folder).exists(), "its folder is gone with it: {folder}");
}

#[test]
fn a_value_by_a_schema_is_asked_for_in_words_and_again_where_it_is_none() {
    let env = with("schema");
    let ended = env.run_on("acp/mine", ["asks", "--schema"]).go().exits(0);
    assert_eq!(ended.result()["value"], json!({ "size": "M" }));
    let [first, second] = &prompts(&env)[..] else { panic!("{:?}", prompts(&env)) };
    assert!(first.contains("Reply with one JSON value") && first.contains(r#""enum":["S","M","L"]"#), "{first}");
    assert!(
        second.contains("===== you\nIt is of size M, I think.") && second.contains("That reply cannot be used"),
        "{second}"
    );
    let processes = got(&env).into_iter().filter(|message| message["method"] == "initialize").count();
    assert_eq!(processes, 1, "one process, a session for each call");
}

#[test]
fn what_an_agent_asks_for_is_refused_and_told() {
    let env = with("permission");
    let ended = env.run_on("acp/mine", ["asks"]).go().exits(0);
    let answer: Value = serde_json::from_str(ended.result()["text"].as_str().expect("a text")).expect("it is JSON");
    assert_eq!(answer, json!({ "outcome": { "outcome": "selected", "optionId": "no" } }));
    let notice = "acp/mine wanted to do this, and was refused: rm -rf ␛[31m/";
    assert!(ended.stdout.contains(notice) && !ended.stdout.contains('\u{1b}'), "{ended:?}");

    let env = with("files");
    let ended = env.run_on("acp/mine", ["asks"]).go().exits(0);
    assert_eq!(ended.result()["text"], "-32601 -32601");
    for method in ["fs/read_text_file", "terminal/create"] {
        assert!(ended.stdout.contains(&format!("acp/mine asked for `{method}`: nietz offers it none")), "{ended:?}");
    }
}

#[test]
fn an_agent_that_fails_is_told_by_what_it_says_without_keys() {
    for (mode, code, why) in [
        ("dies", "model-broken", "acp/mine: it ended (exit status: 9)"),
        ("wrong", "model-broken", "it ended its turn with no reason"),
        ("version", "model-broken", "it speaks version 2 of the Agent Client Protocol"),
        ("logged-out", "key-missing", "acp/mine has no login: Authentication required"),
        ("refuses", "model-refused", "acp/mine refuses to answer"),
    ] {
        let env = with(mode);
        let ended = env.run_on("acp/mine", ["asks"]).go();
        assert_eq!(ended.failure(), code, "{mode}: {ended:?}");
        assert!(ended.stdout.contains(why), "{mode}: {ended:?}");
        assert!(!ended.stdout.contains(KEY), "{mode}: {ended:?}");
    }
    let ended = with("dies").run_on("acp/mine", ["asks"]).go();
    assert!(ended.stdout.contains("out of memory, [redacted:OPENAI_API_KEY]"), "{ended:?}");
}

/// Waits for the end of the agent's process.
fn is_gone(env: &Env) -> bool {
    let process = got(env).iter().find_map(|entry| entry["pid"].as_u64()).expect("it began");
    let until = Instant::now() + Duration::from_secs(30);
    while Instant::now() < until {
        let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // One that ended and was not waited for yet is a Z.
        if state.is_empty() || state.contains(") Z ") {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

#[test]
fn an_agent_that_takes_too_long_is_ended() {
    let env = Env::new().flow("asks", FLOW).config(&config("holds", ", seconds: 2"));
    let ended = env.run_on("acp/mine", ["asks"]).go().exits(3);
    assert!(ended.stdout.contains("acp/mine took longer than 2 seconds"), "{ended:?}");
    assert!(is_gone(&env));
}

#[test]
fn ctrl_c_ends_the_agent_and_leaves_a_call_that_is_made_again() {
    let env = with("holds");
    let pipe = env.home().join("held");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is there").success());
    let running = env.run_on("acp/mine", ["asks"]).in_a_group().spawn();
    assert_eq!(std::fs::read_to_string(&pipe).expect("it began"), "held");
    running.interrupt();
    running.end().exits(130);
    assert!(is_gone(&env));
    assert!(env.journal().of_kind("chat")[0].outcome.is_null(), "an interruption is no outcome");
    let env = env.config(&config("text", ""));
    let resumed = env.resume().go().exits(0);
    assert!(resumed.result()["text"].as_str().is_some_and(|text| text.starts_with("Hello")), "{resumed:?}");
}

#[test]
fn nobody_but_the_user_names_an_agent() {
    // A flow that names one that the user has, and did not name.
    let flow = FLOW.replace("system = ", "model = \"acp/mine\", system = ").replace("\"asks\"", "\"names\"");
    let env = with("text").flow("names", &flow);
    let refused = env.run(["names"]).go().exits(5);
    assert!(refused.stdout.contains("only you can name it"), "{refused:?}");
    // A project's file.
    for (text, place) in [
        ("models: {default: acp/mine}\n", "models.default"),
        ("models: {aliases: {quick: acp/mine}}\n", "models.aliases.quick"),
        ("models: {agents: {mine: {command: [evil]}}}\n", "models.agents"),
    ] {
        let env = with("text").file("nietz.yaml", text);
        let refused = env.run(["asks"]).go().exits(1);
        let told = format!("{}{}", refused.stdout, refused.stderr);
        assert!(told.contains("config-invalid") && told.contains(place) && told.contains("your own"), "{text}: {told}");
        assert!(got(&env).is_empty());
    }
}

#[test]
fn the_command_line_can_name_a_command_and_a_run_is_resumed_with_it() {
    let env = Env::new().flow("asks", FLOW);
    let program = env.home().join("my-agent");
    let text = format!("#!/usr/bin/python3\nimport sys\nsys.argv[1:] = ['text']\n{}", include_str!("agent.py"));
    std::fs::write(&program, text).expect("the home can be written");
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("it is ours");
    let model = format!("acp/{} --acp", program.display());
    let ended = env.run_on(&model, ["asks"]).go().exits(0);
    assert!(ended.result()["text"].as_str().is_some_and(|text| text.starts_with("Hello")), "{ended:?}");
    for wrong in ["acp/no-such-agent", "acp/./my-agent", "acp/cluade", "acp"] {
        let refused = env.run_on(wrong, ["asks"]).var("NIETZ_RUN", "r2").go();
        assert!(refused.code == Some(1) && refused.stdout.contains("model-unknown"), "{wrong}: {refused:?}");
    }
    assert!(env.run_on("acp/cluade", ["asks"]).go().stdout.contains("did you mean acp/claude?"));
}

#[test]
fn an_agent_takes_no_tools_and_says_so_and_is_never_the_default() {
    let flow = FLOW.replace(
        "system = \"Be brief.\",",
        "tools = { send = { description = \"Sends\", parameters = { type = \"object\" }, run = function() end } },",
    );
    let env = Env::new().flow("asks", &flow).config(&config("text", ""));
    let refused = env.run_on("acp/mine", ["asks"]).go().exits(1);
    assert!(refused.stdout.contains("acp/mine takes no tools of flows: `send` is one"), "{refused:?}");
    let env = with("text").without("OPENAI_API_KEY").without("OPENAI_BASE_URL");
    let plan = env.nietz(["run", "asks", "--plan"]).go().exits(0).stdout;
    assert!(!plan.contains("acp/"), "{plan}");
    let doctor = env.nietz(["doctor"]).go().stdout;
    assert!(doctor.contains("acp/mine is `/usr/bin/python3") && doctor.contains("your own agent"), "{doctor}");
}
