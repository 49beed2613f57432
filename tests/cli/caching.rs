//! The promise: what a conversation has sent is paid for once, where a provider keeps it; what stands alone pays for no cache;
//! and what was read, written and saved is counted and told.

use serde_json::{Value, json};

use crate::shots::basics::{CHECK, call, step};
use crate::support::env::{Env, KEY};
use crate::support::git::init;
use crate::support::model_server::cache::{Cache, Counted};
use crate::support::model_server::{ModelServer, Request, Response};
use crate::support::strict::keys;

/// A model of Anthropic's at a server of one's own, with the prices of the last family but one.
const MODEL: &str = "anthropic/claude-sonnet-5-5";
const CONFIG: &str = "models: {retry: {attempts: 3, total_seconds: 20, base_delay_ms: 1}, prices: {anthropic/claude-sonnet-5-5: \
                      {input: 2, output: 10, cached: 0.2, cache_write: 2.5}}}\n";

fn env(server: &ModelServer) -> Env {
    Env::new().var("ANTHROPIC_API_KEY", KEY).var("ANTHROPIC_BASE_URL", &server.url()).config(CONFIG)
}

/// How many marks a request has.
fn marks(request: &Request) -> usize {
    request.body.to_string().matches("cache_control").count()
}

/// A call, a conversation of three, and a persona that speaks three times.
const TALK: &str = r#"
local llm = require("@nietz/llm")
local nietz = require("@nietz")

return nietz.flow {
	name = "talk",
	summary = "Talks alone, in turns, and as somebody",
	params = { kind = { type = "string", required = true } },
	permissions = { llm = true },
	run = function(ctx)
		local kind, long = ctx.params.kind, string.rep("so it was written, ", 400)
		if kind == "alone" then
			return llm.chat { system = long, prompt = long }.text
		elseif kind == "turns" then
			local said = llm.chat { system = long, prompt = long }
			for turn = 1, 3 do
				said = llm.chat { system = long, messages = said.messages, prompt = `and {turn}?` }
			end
			return said.text
		end
		for turn = 1, 3 do
			llm.chat { system = long, prompt = `of {turn}` }
		end
		return "said"
	end,
}
"#;

#[test]
fn a_call_that_stands_alone_pays_for_no_cache_and_a_conversation_does_once() {
    let expected = [
        ("alone", vec![0]),
        // System prompt and two turns, from the second call on.
        ("turns", vec![0, 3, 3, 3]),
        // What a persona is told is kept when it speaks again.
        ("somebody", vec![0, 1, 1]),
    ];
    for (kind, expected) in expected {
        let cache = Cache::default();
        let server = ModelServer::start(cache.before(|_| Response::text("so it is")));
        let env = env(&server).flow("talk", TALK);
        let ended = env.run_on(MODEL, ["talk", "--kind", kind]).go().exits(0);
        assert_eq!(server.requests().iter().map(marks).collect::<Vec<_>>(), expected, "{kind}");
        let Counted { input, read, written, .. } = cache.counted();
        let usage = &ended.ending()["usage"];
        assert_eq!(usage["input"], input, "{kind}");
        let count = |name: &str| usage[name].as_u64().unwrap_or(0);
        assert_eq!((count("cached"), count("cache_written")), (read, written), "{kind}");
        assert_eq!(read > 0, kind != "alone", "{kind}: {:?}", cache.counted());
    }
}

/// A model that reads forty files and changes every other of them.
fn busy(request: &Request) -> Response {
    match step(request) {
        at @ 0..39 if at % 2 == 0 => call("read_file", &json!({ "path": format!("part{}.txt", at / 2) })),
        at @ 0..39 => {
            let file = format!("part{}.txt", at / 2);
            let old = "100: the quick brown fox";
            call("replace_in_file", &json!({ "path": file, "old": old, "new": "100: done" }))
        }
        _ => Response::text("I did it."),
    }
}

#[test]
fn an_attempt_of_forty_calls_pays_a_quarter_of_its_input_at_most() {
    let cache = Cache::default();
    let server = ModelServer::start(cache.before(busy));
    let env = (0..20).fold(env(&server), |env, number| {
        let lines = (0..200).map(|line| format!("{line}: the quick brown fox jumps over the lazy dog\n"));
        env.file(&format!("part{number}.txt"), lines.collect::<String>())
    });
    let env = env.file("check.sh", "grep -q done part18.txt\n");
    init(&env.workspace());
    let goal = ["shots-on-goal", "--validate", CHECK, "say done in each part"];
    let ended = env.run_on(MODEL, goal).go().exits(0);
    assert_eq!(ended.result()["status"], "success");
    let counted = cache.counted();
    assert_eq!(counted.calls, 40);
    assert!(counted.input > 500_000, "as much as an attempt sends: {counted:?}");
    println!("the price of all input with the cache is {:.3} of that without", counted.ratio());
    assert!(counted.ratio() <= 0.25, "{:.3} of the price without a cache: {counted:?}", counted.ratio());
    // What nietz says of it is what the service has counted.
    let spent = &ended.ending()["spent"][0];
    let count = |name: &str| spent["usage"][name].as_u64().unwrap_or(0);
    assert_eq!(
        (count("input"), count("cached"), count("cache_written")),
        (counted.input, counted.read, counted.written)
    );
    let (cost, saved) = (spent["cost"].as_f64().unwrap(), spent["saved"].as_f64().unwrap());
    #[allow(clippy::cast_precision_loss)]
    let whole = (2.0 * counted.input as f64 + 10.0 * count("output") as f64) / 1e6;
    assert!((cost + saved - whole).abs() < 1e-9 && saved > 2.0 * cost, "{cost} paid, {saved} saved of {whole}");
}

#[test]
fn what_was_saved_is_told_wherever_the_cost_is() {
    let cache = Cache::default();
    let server = ModelServer::start(cache.before(|_| Response::text("so it is")));
    let env = env(&server).flow("talk", TALK);
    let told = env.nietz(["run", "--model", MODEL, "talk", "--kind", "turns"]).go().exits(0);
    assert!(told.stderr.contains("(caching saved $0.0"), "{}", told.stderr);
    let runs: Value =
        serde_json::from_str(&env.nietz(["runs", "--json"]).go().exits(0).stdout).expect("a line of JSON");
    let (cost, saved) = (runs["cost"].as_f64().unwrap(), runs["saved"].as_f64().unwrap());
    assert!(cost > 0.0 && saved > 0.0, "{runs}");
    let log = env.nietz(["log", "r1"]).go().exits(0).stdout;
    assert!(log.lines().last().is_some_and(|end| end.contains("caching saved $")), "{log}");
    // More was written than read: a call of two, and nobody goes on. That saved nothing, and nothing is said.
    let short = TALK.replace("for turn = 1, 3 do\n\t\t\t\tsaid", "for turn = 1, 1 do\n\t\t\t\tsaid");
    let server = ModelServer::start(Cache::default().before(|_| Response::text("so it is")));
    let env = self::env(&server).flow("talk", &short);
    let told = env.nietz(["run", "--model", MODEL, "talk", "--kind", "turns"]).go().exits(0);
    assert!(told.stderr.contains("tokens in") && !told.stderr.contains("caching"), "{}", told.stderr);
}

#[test]
fn a_server_that_knows_no_marks_is_asked_without_them_and_no_key_changes() {
    let answer = |_: &Request| Response::text("so it is");
    let knowing = ModelServer::start(answer);
    let with = env(&knowing).flow("talk", TALK);
    with.run_on(MODEL, ["talk", "--kind", "turns"]).go().exits(0);
    let strange = ModelServer::start(move |request| match marks(request) {
        0 => answer(request),
        _ => Response::error(400, "system.0.cache_control: Extra inputs are not permitted"),
    });
    let without = env(&strange).flow("talk", TALK);
    let ended = without.run_on(MODEL, ["talk", "--kind", "turns"]).go().exits(0);
    let told: Vec<Value> = ended.of_type("notice");
    assert_eq!(told.iter().filter(|notice| notice.to_string().contains("cannot be told what to cache")).count(), 1);
    assert_eq!(strange.requests().iter().map(marks).collect::<Vec<_>>(), [0, 3, 0, 0, 0], "it is remembered");
    assert_eq!(keys(&with), keys(&without));
}

#[test]
fn a_flow_that_says_what_is_kept_says_all_of_it() {
    let server = ModelServer::start(|_| Response::text("so it is"));
    let own = TALK.replace(
        "messages = said.messages,",
        "messages = said.messages, provider_options = { anthropic = { cache_control = { type = \"ephemeral\" } } },",
    );
    env(&server).flow("talk", &own).run_on(MODEL, ["talk", "--kind", "turns"]).go().exits(0);
    assert_eq!(server.requests().iter().map(marks).collect::<Vec<_>>(), [0, 1, 1, 1]);
    assert_eq!(server.requests()[1].body["cache_control"]["type"], "ephemeral");
}

#[test]
fn a_run_whose_model_is_switched_off_soon_begins_with_that() {
    const QUIET: &str = r#"
local nietz = require("@nietz")

return nietz.flow {
	name = "quiet",
	summary = "Could call a model, and does not",
	permissions = { llm = true },
	run = function() return "nothing" end,
}
"#;
    let env = Env::new().without("OPENAI_BASE_URL").flow("quiet", QUIET);
    let told = |day: &str, run: &str| {
        let clock = format!("{day}T10:30:00Z");
        let call = env.run_on("openai/gpt-5", ["quiet"]).var("NIETZ_CLOCK", &clock).var("NIETZ_RUN", run);
        let ended = call.go().exits(0);
        let notices = ended.of_type("notice").iter().map(|notice| notice["text"].to_string()).collect::<Vec<_>>();
        notices.into_iter().filter(|text| text.contains("switched off")).collect::<Vec<_>>()
    };
    assert_eq!(told("2026-01-09", "r1"), [""; 0]);
    let last_days = told("2026-12-09", "r2");
    assert_eq!(last_days.len(), 1, "{last_days:?}");
    assert!(last_days[0].contains("openai/gpt-5 is switched off on 2026-12-11, in 2 days"), "{last_days:?}");
}
