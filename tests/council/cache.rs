//! What a council costs where a service keeps what it was sent: nearly all of a prompt is what was sent before.

use super::model::{Brain, restless};
use super::table::REQUEST;
use crate::support::env::Env;
use crate::support::model_server::ModelServer;
use crate::support::model_server::cache::{Cache, Counted};

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
