//! The promise: a run never uses more than it may. At a limit it waits, and goes on with more; what it used is
//! told by model and persona, and before it starts it says what it may do.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Request, Response};

const BRANCHES: &str = include_str!("../support/flows/branches.lua");
const CHATTER: &str = include_str!("../support/flows/chatter.lua");

/// A service whose replies are as long as they may be, up to 1,000 tokens.
fn wordy() -> ModelServer {
    ModelServer::start(|request| {
        let limit = request.body["max_completion_tokens"].as_u64().or(request.body["max_tokens"].as_u64());
        Response::text(format!("<{}>", request.prompt())).usage(50, limit.unwrap_or(1000).min(1000))
    })
}

fn used(ended: &[Value]) -> u64 {
    ended
        .iter()
        .map(|event| event["usage"]["input"].as_u64().unwrap() + event["usage"]["output"].as_u64().unwrap())
        .sum()
}

#[test]
fn at_the_limit_of_calls_the_run_waits_and_goes_on_with_more() {
    let server = wordy();
    let env = Env::with(&server).flow("branches", BRANCHES);
    let waiting = env.run(["branches", "--max-calls", "10"]).go().exits(6);
    assert_eq!((waiting.failure().as_str(), server.calls()), ("budget-used-up", 10));
    assert_eq!(waiting.ending()["status"], "waiting");
    // The limit belongs to the run: it holds for the resume, too.
    env.resume().go().exits(6);
    assert_eq!(server.calls(), 10);
    env.resume().args(["--max-calls", "17"]).go().exits(0);
    let mut prompts: Vec<String> = server.requests().iter().map(Request::prompt).collect();
    prompts.sort();
    prompts.dedup();
    assert_eq!((server.calls(), prompts.len()), (17, 17), "nothing was called twice");
}

#[test]
fn eight_calls_side_by_side_do_not_overshoot_together() {
    for limit in [0, 700, 3_000, 9_500] {
        let server = wordy();
        let env = Env::with(&server).flow("branches", BRANCHES);
        let waiting = env.run(["branches", "--max-tokens", &limit.to_string()]).go().exits(6);
        let used = used(&waiting.of_type("call_ended"));
        assert!(used <= limit, "{used} of {limit}");
        assert!(limit < 1_500 || used > limit / 2, "most of it can be used: {used} of {limit}");
    }
}

/// A service that is paid for 8,000 bytes at a time and never comes to an end of them, or does so every third time.
fn breaking(third: bool) -> ModelServer {
    ModelServer::start(move |request| {
        let reply = Response::text("so it is. ".repeat(800)).usage(50, 1000);
        if third && request.number.is_multiple_of(3) { reply } else { reply.without_end() }
    })
}

#[test]
fn what_attempts_without_a_reply_used_is_used() {
    let stubborn = CHATTER.replace(
        "return llm.chat {",
        "for _ = 1, 30 do pcall(llm.chat, { prompt = \"go on\" }) end\n\t\treturn llm.chat {",
    );
    let config = "models: {retry: {attempts: 3, total_seconds: 20, base_delay_ms: 1}, \
                  prices: {openai/test: {input: 2, output: 10}}}\n";
    for (third, limit) in
        [(false, ["--max-tokens", "12000"]), (true, ["--max-tokens", "12000"]), (false, ["--max-cost", "0.12"])]
    {
        let server = breaking(third);
        let env = Env::with(&server).flow("chatter", &stubborn).config(config);
        let waiting = env.run(["chatter"]).args(limit).go().exits(6);
        assert_eq!(waiting.failure(), "budget-used-up");
        let made = server.calls();
        assert!((3..=12).contains(&made), "{made} attempts of 1,000 tokens and a cent each, {limit:?}");
        // What is recorded is used in the processes after it, too.
        env.resume().go().exits(6);
        assert!(server.calls() <= made + 3, "{made} and then {}", server.calls());
    }
}

#[test]
fn a_limit_on_cost_needs_a_price_and_keeps_to_it() {
    let server = wordy();
    let env = Env::with(&server).flow("branches", BRANCHES);
    let failed = env.run(["branches", "--max-cost", "0.02"]).go().exits(1);
    assert_eq!((failed.failure().as_str(), server.calls()), ("price-unknown", 0));
    let env = Env::with(&server)
        .flow("branches", BRANCHES)
        .config("models: {prices: {openai/test: {input: 2, output: 10}}}\n");
    let waiting = env.run(["branches", "--max-cost", "0.02"]).go().exits(6);
    // A call costs 50 tokens at 2 dollars and up to 1,000 at 10 dollars for a million: about a cent.
    let spent = &waiting.ending()["spent"][0];
    assert_eq!((&spent["model"], &spent["calls"]), (&json!("openai/test"), &json!(2)));
    let cost = spent["cost"].as_f64().unwrap();
    assert!(cost <= 0.02 && cost > 0.015, "{cost}");
}

#[test]
fn when_its_time_is_over_the_run_waits() {
    let server = ModelServer::start(|request| match request.number {
        1 => Response::silence(),
        _ => Response::text("well again"),
    });
    let env = Env::with(&server).flow("chatter", CHATTER);
    let waiting = env.run(["chatter", "--max-time", "0.3s"]).go().exits(6);
    assert_eq!(waiting.failure(), "budget-used-up");
    assert_eq!(env.resume().args(["--max-time", "1m"]).go().result(), "well again");
}

#[test]
fn after_a_quota_of_the_provider_no_other_call_is_started() {
    let server = ModelServer::start(|_| Response::error(402, "pay"));
    let env =
        Env::with(&server).flow("branches", BRANCHES).config("models: {providers: {openai: {max_parallel: 1}}}\n");
    env.run(["branches"]).go().exits(6);
    let first = server.calls();
    assert!(first <= 8, "{first}: those under way may end, and nothing follows them");
}

#[test]
fn the_tightest_of_flow_user_and_project_holds_unless_one_is_given() {
    let server = wordy();
    let flow = CHATTER.replace("permissions", "budget = { calls = 1, time = \"1h\" },\n\tpermissions");
    let env = Env::with(&server)
        .flow("chatter", &flow)
        .config("budget: {calls: 5, tokens: 5000}\n")
        .file("nietz.yaml", "budget: {calls: 9, tokens: 4000, cost: 2}\n");
    let plan: Value = serde_json::from_str(&env.run(["chatter", "--plan"]).go().exits(0).stdout).unwrap();
    assert_eq!(plan["budget"], json!({"calls": 1, "tokens": 4000, "cost": 2.0, "time": "1h"}));
    let given = ["chatter", "--plan", "--max-calls", "7", "--max-time", "90"];
    let plan: Value = serde_json::from_str(&env.run(given).go().exits(0).stdout).unwrap();
    assert_eq!(plan["budget"], json!({"calls": 7, "tokens": 4000, "cost": 2.0, "time": "1m30s"}));
}

#[test]
fn a_plan_says_what_a_run_may_do_and_does_nothing() {
    let server = wordy();
    let env = Env::with(&server).file("personas/none.md", "");
    let plan = env.nietz(["run", "brainstorm", "a topic", "--plan", "--max-cost", "0.5", "--max-time", "20m"]).go();
    let told = plan.exits(0).stdout.replace(server.url().trim_end_matches("/v1"), "http://SERVER");
    assert_snapshot!(told, @r"
    flow          brainstorm: Thinks an idea through with you, until somebody could build it
    from          bundled:flows/brainstorm.lua
    model         openai/gpt-6.1-terra (OPENAI_API_KEY is set)
                  asked at http://SERVER/v1
    prices        openai/gpt-6.1-terra: not known; a limit on cost cannot be kept with it
    files         reads any of this folder
    documents     reads and writes docs/briefs/{slug}/brief-{date}.md (briefs)
                  reads and writes .project-memory/brainstorm-history.jsonl (finished)
                  reads and writes docs/briefs/{slug}/journal-{date}.md (journals)
                  reads and writes brainstorm-{slug}.yaml (rescued)
                  reads and writes .project-memory/brainstorm-sessions/{slug}.yaml (sessions)
                  reads and writes .project-memory/brainstorm-stats.json (statistics)
    Lua           10 s without an effect, 256 MB of memory
    budget        3000 calls, 0.50 US dollars, 20m
    nothing else  no other file, no other address, no process
    ");
    assert_eq!(server.calls(), 0);
    assert!(!env.path(".nietz").exists(), "no run was begun");
}

#[test]
fn what_a_run_used_is_told_by_model_and_persona() {
    let server = wordy();
    let flow = r#"
local nietz, llm, task = require("@nietz"), require("@nietz/llm"), require("@nietz/task")
return nietz.flow {
  name = "voices", summary = "Two voices", permissions = { llm = true },
  run = function()
    local said = task.all {
      a = function() return llm.chat { label = "Hypatia", prompt = "one" } end,
      b = function() return llm.chat { label = "Zeno", model = "lab/qwen", prompt = "two" } end,
    }
    assert(said.a.cost and not said.b.cost)
    llm.chat { label = "Hypatia", prompt = "three" }
  end,
}"#;
    let config = format!(
        "models: {{prices: {{openai/gpt-6.1-terra: {{input: 2, output: 8}}}}, providers: {{lab: {{base_url: {}}}}}}}\n",
        server.url()
    );
    let env = Env::with(&server).flow("voices", flow).config(&config);
    let ended = env.nietz(["run", "voices", "--model", "openai/gpt-6.1-terra"]).go().exits(0);
    let told = ended.stderr.lines().skip_while(|line| !line.starts_with("done in")).collect::<Vec<_>>().join("\n");
    let told = told.replacen("done in 1s", "done in 0s", 1);
    assert_snapshot!(told, @r"
    done in 0s · 3 calls · 150 tokens in, 3,000 out · no price is known for lab/qwen
      Zeno (lab/qwen)                  1 call   50 in  1,000 out  price unknown
      Hypatia (openai/gpt-6.1-terra)  2 calls  100 in  2,000 out        $0.0162
    ");
}
