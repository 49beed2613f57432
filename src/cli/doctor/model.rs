//! Checks of the model that would be asked: where it is, with which key, what it takes and costs, and, if the user wants it,
//! whether it answers.

use std::time::Instant;

use serde_json::json;

use crate::cli::doctor::{CheckOutcome, CheckState, DoctorArgs, finding};
use crate::cli::models::{key_text, price_text};
use crate::error::{Code, Failure, Result};
use crate::host::llm::{Client, KeyState, ProviderFacts, Wire, catalogue_as_of, window};
use crate::host::{CallEvent, Models};
use crate::model::chat::{ChatReply, ChatRequest};
use crate::model::text::line;
use crate::run::machine::Machine;

/// What the model is asked, and the most tokens of its answer: enough for a model that thinks before one word.
const QUESTION: &str = "Answer with the one word: ready";
const MOST_TOKENS: u32 = 256;

/// Says which providers have a key, and where each key comes from.
pub(super) fn keys(machine: &Machine, _: &DoctorArgs) -> Result<Vec<CheckOutcome>> {
    let client = crate::run::models::client(machine)?;
    let has_key = |key: &KeyState| !matches!(key, KeyState::NotNeeded | KeyState::Missing(_));
    let told: Vec<String> = client
        .key_states()
        .filter(|(_, key)| has_key(key))
        .map(|(provider, key)| format!("{provider} {}", key_text(&key)))
        .collect();
    Ok(vec![match told.is_empty() {
        true => finding("keys", CheckState::Weak, "no provider has a key")
            .hint("set the variable of one (`nietz models` names it), or `nietz models key PROVIDER`"),
        false => finding("keys", CheckState::Ok, told.join("; ")),
    }])
}

/// Says which model would be asked, and all that is known of it without asking.
pub(super) fn model(machine: &Machine, args: &DoctorArgs) -> Result<Vec<CheckOutcome>> {
    let client = crate::run::models::client(machine)?;
    let facts = match client.facts(args.model.as_deref()) {
        Ok(facts) => facts,
        Err(failure) => return Ok(vec![failed("model", &failure)]),
    };
    let Some(model) = facts.model else {
        return Ok(vec![finding("model", CheckState::Ok, facts.why)]);
    };
    let mut findings = facts.provider.as_ref().map(provider).unwrap_or_default();
    findings.push(finding("model", CheckState::Ok, format!("{model}: {}", facts.why)));
    findings.push(match window(&machine.config.models.windows, &model) {
        Some(window) => finding("window", CheckState::Ok, format!("{window} tokens, request and reply together")),
        None => finding("window", CheckState::Weak, "it is not known how much it takes in one call")
            .hint(format!("`models: {{windows: {{{model}: …}}}}` in config.yaml says it")),
    });
    findings.extend(prices(&client, &model));
    findings.push(match facts.efforts.as_deref() {
        Some([]) => finding("effort", CheckState::Ok, "it has no steps of thinking"),
        Some(efforts) => {
            let names: Vec<&str> = efforts.iter().map(|effort| effort.name()).collect();
            finding("effort", CheckState::Ok, format!("it takes {}", names.join(", ")))
        }
        None => finding("effort", CheckState::Ok, "it is not known which steps of thinking it has"),
    });
    Ok(findings)
}

/// Says which engine runs local models, and why.
#[cfg(feature = "local")]
pub(super) fn engine(machine: &Machine, _: &DoctorArgs) -> Result<Vec<CheckOutcome>> {
    Ok(vec![match crate::run::models::local_engine(machine) {
        Ok(choice) => finding("engine", CheckState::Ok, choice.describe()),
        Err(failure) => failed("engine", &failure),
    }])
}

fn provider(facts: &ProviderFacts) -> Vec<CheckOutcome> {
    let ProviderFacts { name, address, wire, key } = facts;
    let wire = match wire {
        Wire::OpenAi => "OpenAI's chat completions",
        Wire::Anthropic => "Anthropic's messages",
        Wire::Responses => "OpenAI's responses",
    };
    let Some(address) = address else {
        let KeyState::Missing(names) = key else { return Vec::new() };
        let found = format!("{name} has no address");
        return vec![finding("provider", CheckState::Missing, found).hint(format!("set {}", names.join(" and ")))];
    };
    let known = finding("provider", CheckState::Ok, format!("{name} at {address}, by {wire}"));
    let key = match key {
        KeyState::Missing(names) => finding("key", CheckState::Missing, format!("there is no key for {name}"))
            .hint(format!("set {}, or store it: nietz models key {name}", names.join(" or "))),
        key => finding("key", CheckState::Ok, key_text(key)),
    };
    vec![known, key]
}

fn prices(client: &Client, model: &str) -> [CheckOutcome; 2] {
    let Some(price) = client.price(model) else {
        return [
            finding("price", CheckState::Weak, "it is not known what it costs, and no budget in dollars can be held")
                .hint(format!("`models: {{prices: {{{model}: {{input: …, output: …}}}}}}` in config.yaml says it")),
            finding("cache", CheckState::Ok, "it is not known what its cache saves"),
        ];
    };
    let as_of = catalogue_as_of();
    let cost = format!("{} for a million tokens in and out (known as of {as_of})", price_text(Some(price)));
    let cache = match price.cached {
        Some(cached) => {
            format!("what is read from its cache costs ${cached} for a million tokens, not ${}", price.input)
        }
        None => "what is read from its cache costs as much as other input".to_owned(),
    };
    [finding("price", CheckState::Ok, cost), finding("cache", CheckState::Ok, cache)]
}

/// Asks the model for one word, if the user wants that.
pub(super) fn call(machine: &Machine, args: &DoctorArgs) -> Result<Vec<CheckOutcome>> {
    if !args.call {
        return Ok(Vec::new());
    }
    let client = crate::run::models::client(machine)?;
    let begun = Instant::now();
    let reply = crate::run::runtime()?.block_on(ask(machine, &client, args.model.as_deref()));
    Ok(vec![match reply {
        Ok((model, reply)) => {
            let cost = match client.price(&model).map(|price| price.of(reply.usage)) {
                Some(cost) => format!("${cost:.6}"),
                None => "nobody knows how many dollars".to_owned(),
            };
            let (input, output) = (reply.usage.input, reply.usage.output);
            let found = format!(
                "{} answered for {model} after {:.1} s, with {input} tokens in and {output} out, for {cost}",
                line(&reply.model),
                begun.elapsed().as_secs_f64(),
            );
            finding("call", CheckState::Ok, found)
        }
        Err(failure) => failed("call", &failure),
    }])
}

async fn ask(machine: &Machine, client: &Client, name: Option<&str>) -> Result<(String, ChatReply)> {
    let model = client.resolve(name).await?;
    not_far_away(machine, &model)?;
    let question = json!({"role": "user", "content": QUESTION});
    let request: ChatRequest =
        serde_json::from_value(json!({"model": model, "messages": [question], "max_tokens": MOST_TOKENS}))
            .map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
    let mut ignore = |_: CallEvent<'_>| {};
    let reply = client.chat(&request, &mut ignore).await?;
    Ok((model, reply))
}

/// Refuses a local model that would have to be fetched first.
#[cfg(feature = "local")]
fn not_far_away(machine: &Machine, model: &str) -> Result<()> {
    use crate::host::llm::{local::weights, weights_path};
    let Some(name) = model.strip_prefix("local/").filter(|_| weights_path(model).is_none()) else { return Ok(()) };
    let is_here = |present: &weights::ModelFile| present.model.name == name && present.bytes == present.model.bytes;
    match weights::list(&machine.models_folder()).iter().any(is_here) {
        true => Ok(()),
        false => Err(Failure::new(Code::ModelUnknown, format!("{model} is not on this machine yet"))
            .hint(format!("nietz models pull {name}"))),
    }
}

#[cfg(not(feature = "local"))]
fn not_far_away(_: &Machine, _: &str) -> Result<()> {
    Ok(())
}

/// Returns the finding for what does not work, with what its failure says to do.
fn failed(check: &'static str, failure: &Failure) -> CheckOutcome {
    let mut found = failure.message.clone();
    for detail in &failure.details {
        found.push_str("; ");
        found.push_str(detail);
    }
    let finding = finding(check, CheckState::Missing, line(&found).into_owned());
    match &failure.hint {
        Some(hint) => finding.hint(line(hint).into_owned()),
        None => finding,
    }
}
