//! What a session costs: what is stable stands first in every prompt, so that a provider that keeps prompts reads most of it again.

use serde_json::json;

use super::desk::{For, purpose, response, usual};
use crate::support::env::{Env, KEY};
use crate::support::model_server::cache::{Cache, Counted};
use crate::support::model_server::{ModelServer, Response};

/// A model of Anthropic's, which keeps only what is marked.
const MARKED: &str = "anthropic/claude-sonnet-5-5";
const CONFIG: &str = "models: {retry: {attempts: 3, total_seconds: 20, base_delay_ms: 1}, prices: \
                      {anthropic/claude-sonnet-5-5: {input: 2, output: 10, cached: 0.2, cache_write: 2.5}}}\n";

/// A file of the size that people have trouble with.
fn shop() -> String {
    (1..=150).map(|line| format!("    price_{line} = cache.get(sku, version={line}) or load(sku, {line})\n")).collect()
}

/// A problem as people paste it.
const PROBLEM: &str = "the shop shows stale prices after a deploy, see src/shop.py; what the nightly check says:
Traceback (most recent call last):
  File \"src/nightly.py\", line 88, in main
    check_prices(shop, database)
  File \"src/nightly.py\", line 41, in check_prices
    raise StalePrice(sku, shown, stored)
nightly.StalePrice: 4411 is shown as 12.50 and stored as 13.90 since 2026-01-09 12:00:03";

/// Ten answers of somebody who looks, believes and rules out.
const ANSWERS: [&str; 10] = [
    "src/shop.py reads them: the page shows 12.50 and the database has 13.90 since the deploy at noon",
    "I believe that the cache is emptied by every deploy, it always was, at least nobody ever told me otherwise",
    "the log of the deploy has no line about the cache, neither today nor on the two days before, I looked at all three",
    "so it is not emptied by the deploy; then the keys should at least expire after an hour, that part works",
    "redis says ttl -1 for the key price:4411, and -1 for each of the twenty others that I asked about",
    "it cannot be the database replica, because I asked the primary and the replica and both say 13.90",
    "the key is written in load(), with set(key, value) and nothing else, as far as I can see in line 42",
    "before the change of last Tuesday it was setex(key, 3600, value), git blame says so, and nobody wrote why",
    "it happens for every article whose price changed after noon, and for none whose price did not change",
    "on the staging server the ttl is 3600 for all keys, and staging still has the version of last Monday",
];

/// Plays the ten turns and returns what the service has counted.
fn played(env: impl Fn(&ModelServer) -> Env, model: Option<&str>) -> Counted {
    let cache = Cache::default();
    let server = ModelServer::start(cache.before(|request| {
        Response::text(match purpose(request) {
            For::Question => format!(
                "In turn {}: which of the two did you look at?",
                request.body["messages"].as_array().map_or(0, Vec::len)
            ),
            For::Tags => {
                // What they looked at and what they only believe: the ledger fills as in a real session.
                let heard = response(request);
                let quote = heard.split([',', ':']).next().unwrap_or_default().trim();
                let what = if quote.contains("believe") || quote.contains("should") { "believed" } else { "seen" };
                json!({"tags": ["checked-logs"], "entries": [{"what": what, "quote": quote}]}).to_string()
            }
            _ => usual(request),
        })
    }));
    let env = env(&server).file("src/shop.py", shop()).file("src/nightly.py", "check_prices(shop, database)\n");
    let typed: String = ANSWERS.iter().map(|line| format!("{line}\n")).collect();
    let flow = concat!(env!("CARGO_MANIFEST_DIR"), "/flows/debug.lua");
    let arguments = [flow, PROBLEM];
    let call = match model {
        Some(model) => env.run_on(model, arguments),
        None => env.run(arguments),
    };
    call.stdin(format!("{typed}exit\n\n")).go().exits(0);
    cache.counted()
}

/// Without a ledger and with the same answers, these ten turns sent 78,041 tokens, at 0.365 and 0.652 of the price without a cache;
/// when the ledger came they sent 78,034, at 0.365 and 0.405.
const MOST_INPUT: u64 = 78_041;

#[test]
fn ten_turns_cost_four_tenths_at_most_where_prompts_are_kept_and_no_more_is_sent() {
    let by_itself = played(Env::with, None);
    let marked = played(
        |server| Env::new().var("ANTHROPIC_API_KEY", KEY).var("ANTHROPIC_BASE_URL", &server.url()).config(CONFIG),
        Some(MARKED),
    );
    for (wire, counted) in [("by itself", by_itself), ("marked", marked)] {
        assert!(counted.ratio() <= 0.4, "{wire}: {:.3} of the price without a cache: {counted:?}", counted.ratio());
        assert!(counted.input <= MOST_INPUT, "{wire}: {counted:?}");
    }
}
