//! What a council costs where a service keeps what it was sent: nearly all of a prompt is what was sent before.

use serde_json::{Value, json};

use super::model::{Brain, restless};
use super::table::REQUEST;
use crate::support::env::Env;
use crate::support::journal::Recorded;
use crate::support::model_server::cache::{Cache, Counted};
use crate::support::model_server::{ModelServer, Request, Response};

/// Facts as somebody brings them, about 900 tokens.
fn context() -> String {
    (1..=60).map(|number| format!("Fact {number} is that team {number} deploys {number} times a month. ")).collect()
}

fn hold(variable: &str, model: &str, suffix: &str) -> Counted {
    let cache = Cache::default();
    let brain = Brain {
        stand: restless,
        seats: vec!["Senior Architect", "QA Engineer", "Tech Lead", "Security Expert"],
        ..Brain::default()
    };
    let server = ModelServer::start(cache.before(move |request| brain.answer(request)));
    let url = server.url();
    let base = url.trim_end_matches("/v1");
    let env = Env::new().var(variable, &format!("{base}{suffix}")).var("ANTHROPIC_API_KEY", "a-key");
    let context = context();
    env.run_on(model, ["council", REQUEST, "--no-pause", "--cycles", "3", "--context", &context]).go().result();
    cache.counted()
}

#[test]
fn a_council_of_three_cycles_pays_at_most_0_65_of_the_price_of_its_input() {
    let anthropic = hold("ANTHROPIC_BASE_URL", "anthropic/claude-sonnet-4-5", "");
    let openai = hold("OPENAI_BASE_URL", "openai/test", "/v1");
    println!("anthropic {:.2} {anthropic:?}\nopenai {:.2} {openai:?}", anthropic.ratio(), openai.ratio());
    assert!(anthropic.calls >= 17, "{anthropic:?}");
    assert!(anthropic.ratio() <= 0.65 && openai.ratio() <= 0.65, "{:.2} {:.2}", anthropic.ratio(), openai.ratio());
}

/// So many letters of plain words.
fn letters(count: usize) -> String {
    "the fee is charged twice when a tenant leaves in the middle of a month, and nobody has counted how often "
        .chars()
        .cycle()
        .take(count)
        .collect()
}

/// Makes the lines of a reply as long as those of a strong model were in a council that was written by hand.
fn lengthen(value: &mut Value, name: &str) {
    let most = match name {
        "report" => 260,
        "points" | "why" | "recommends" | "text" | "decision" | "tradeoffs" => 150,
        "against" => 450,
        "assumptions" | "next_steps" | "because" | "rejected" => 120,
        _ => 0,
    };
    match value {
        Value::String(text) if text.len() < most && !text.is_empty() => {
            let more = letters(most - text.len());
            text.push_str(&format!(" {more}"));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| lengthen(item, name)),
        Value::Object(members) => {
            members.iter_mut().for_each(|(member, value)| {
                let name = if member == "text" { name } else { member };
                lengthen(value, name);
            });
        }
        _ => {}
    }
}

/// How many letters a memo has beside what is told of the facts: about a thousand words.
const MEMO: usize = 6000;

/// Gives a list so many items like its first one.
fn repeat(value: &mut Value, name: &str, count: usize) {
    if let Some(first) = value[name].get(0).cloned() {
        value[name] = vec![first; count].into();
    }
}

/// Ten facts of the user's in one line, as an answer tells them: merged.
fn merged(first: usize) -> String {
    let list =
        |before: &str| (first..first + 10).map(|number| format!("{before}{number}")).collect::<Vec<_>>().join(", ");
    format!("Facts of deploys: teams {} deploy {} times a month [{}].", list(""), list(""), list("U"))
}

/// A reply as long as a strong model's: the memo tells all of the user's facts, merged, is looked through and written anew, and so does
/// the plain answer's.
fn prolix(brain: &Brain, facts: usize, request: &Request) -> Response {
    let mut value = brain.reply(request);
    if !value["sure"].is_null() {
        let point = value["points"][0].clone();
        let again = format!("{} again", point.as_str().unwrap_or_default());
        value["points"] = json!([point, again]);
    }
    for (name, count) in [("tradeoffs", 4), ("assumptions", 2), ("next_steps", 6)] {
        repeat(&mut value, name, count);
    }
    if value["misses"].is_array() {
        value["misses"] = json!(["U1", "U2", "U3"]);
        let stumble = json!({"words": letters(40), "why": letters(160)});
        value["stumbles"] = vec![stumble; 4].into();
    }
    lengthen(&mut value, "");
    if let Some(memo) = value["memo"].as_str() {
        let told: Vec<String> = (0..facts / 10).map(|line| merged(10 * line + 1)).collect();
        value["memo"] = format!("{memo}\n\n{}\n\n{}", letters(MEMO), told.join(" ")).into();
    }
    let text = value.to_string();
    let output = text.len() as u64 / 4;
    Response::text(text).usage(0, output)
}

/// The price of a token of input is 1: of one that is written 5, of one that is read from a cache 0.1, of one that is kept there 1.25.
fn price(call: &Recorded) -> f64 {
    let count = |name: &str| call.outcome["ok"]["usage"][name].as_f64().unwrap_or(0.0);
    let (read, kept) = (count("cached"), count("cache_written"));
    count("input") - read - kept + 0.1 * read + 1.25 * kept + 5.0 * count("output")
}

/// The prices of the calls of a council of three cycles with five seats, or of one plain answer, where so many facts are known.
fn prices(worth: &'static str, facts: usize, options: &[&str], lines: &str) -> Vec<f64> {
    let brain = Brain {
        stand: restless,
        worth,
        hole: "Nobody has said who looks after the second service at night, and one sentence in the plan would mend it.",
        seats: vec!["Senior Architect", "QA Engineer", "Tech Lead", "Security Expert"],
        ..Brain::default()
    };
    let server = ModelServer::start(Cache::default().before(move |request| prolix(&brain, facts, request)));
    let url = server.url();
    let env = Env::new().var("ANTHROPIC_BASE_URL", url.trim_end_matches("/v1")).var("ANTHROPIC_API_KEY", "a-key");
    let facts: String = context().split_inclusive(". ").take(facts).collect();
    let call = env.run_on("anthropic/claude-sonnet-4-5", ["council", REQUEST, "--context", &facts]);
    call.args(options.to_vec()).stdin(lines.to_owned()).go().result();
    env.journal().of_kind("chat").iter().map(price).collect()
}

/// On a service that keeps what is marked, with replies as long as a strong model's. Half of a council's price is what it writes.
#[test]
fn a_council_costs_at_most_eight_times_a_plain_answer_whether_much_or_little_is_known() {
    for (facts, most) in [(60, 8.0), (20, 8.0)] {
        let council = prices("council", facts, &["--no-pause", "--cycles", "3"], "");
        // The other call of that run asks whether a council is worth it.
        let plain = prices("plain", facts, &[], "\n").into_iter().fold(0.0, f64::max);
        assert!(plain > 1000.0 && council.len() >= 20, "{plain} {}", council.len());
        let times = council.iter().sum::<f64>() / plain;
        println!("{facts} facts, {} calls: {times:.1} times", council.len());
        println!("council {:.0}, plain {plain:.0}", council.iter().sum::<f64>());
        assert!(times <= most, "{facts} facts: {times:.1} times");
    }
}
