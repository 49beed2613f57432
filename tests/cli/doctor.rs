//! The promise: the doctor says which model would be asked, where, with which key, and over which network, shows no secret, and
//! asks nobody unless it is told to.

use serde_json::Value;

use crate::support::env::{Env, KEY};
use crate::support::model_server::{ModelServer, Response};
use crate::support::tls::sample;

/// Returns the findings of one check.
#[track_caller]
fn findings(env: &Env, arguments: &[&str], check: &str) -> Vec<Value> {
    let ended = env.nietz(["doctor", "--json"]).args(arguments.iter().copied()).go();
    assert!(matches!(ended.code, Some(0 | 5)) && !format!("{ended:?}").contains("planted"), "{ended:?}");
    let lines = ended.stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
    let found: Vec<Value> = lines.filter(|line| line["check"] == check).collect();
    let missing = ended.stdout.contains("\"state\":\"missing\"");
    assert_eq!(ended.code, Some(if missing { 5 } else { 0 }), "{}", ended.stdout);
    assert!(!found.is_empty(), "{check}: {}", ended.stdout);
    found
}

/// Returns the state, the finding and the hint of a check that has one finding.
#[track_caller]
fn found(env: &Env, arguments: &[&str], check: &str) -> (String, String, String) {
    let found = findings(env, arguments, check);
    let part = |name: &str| found[0][name].as_str().unwrap_or_default().to_owned();
    (part("state"), env.normal(&part("found")), part("hint"))
}

fn ok(found: &str) -> (String, String, String) {
    ("ok".to_owned(), found.to_owned(), String::new())
}

#[test]
fn the_model_that_would_be_asked_is_told_with_its_address_key_and_price_and_without_secrets() {
    let env = Env::new().var("OPENAI_BASE_URL", "http://user:planted-password@127.0.0.1:1/v1?key=planted-query");
    assert_eq!(found(&env, &[], "provider"), ok("openai at http://127.0.0.1:1/v1, by OpenAI's chat completions"));
    assert_eq!(found(&env, &[], "key"), ok("from OPENAI_API_KEY"));
    assert_eq!(found(&env, &[], "keys"), ok("openai from OPENAI_API_KEY"));
    assert_eq!(found(&env, &[], "model"), ok("openai/gpt-6.1-terra: OPENAI_API_KEY is set"));
    assert_eq!(found(&env, &[], "price").0, "weak", "an address of the user's own has no known price");

    let env =
        Env::new().without("OPENAI_BASE_URL").config("models: {aliases: {strong: anthropic/claude-sonnet-5-5}}\n");
    let (state, price, _) = found(&env, &["--model", "openai/gpt-4.1"], "price");
    assert!(state == "ok" && price.starts_with("$2, $8 for a million tokens"), "{price}");
    assert!(found(&env, &["--model", "openai/gpt-4.1"], "window").1.contains(" tokens, request and reply together"));
    assert!(found(&env, &["--model", "openai/gpt-4.1"], "cache").1.contains("from its cache costs $0.5 "));
    // A model whose key is not there, by its alias.
    let (state, key, hint) = found(&env, &["--model", "strong"], "key");
    assert_eq!((state.as_str(), key.as_str()), ("missing", "there is no key for anthropic"));
    assert_eq!(hint, "set ANTHROPIC_API_KEY, or store it: nietz models key anthropic");
    assert_eq!(found(&env, &["--model", "azure/mine"], "provider").1, "azure has no address");
    assert_eq!(found(&env, &["--model", "nothing"], "model").0, "missing");
}

#[test]
fn nobody_is_asked_and_no_command_is_run_unless_the_user_says_so() {
    let server = ModelServer::start(|_| Response::text("ready"));
    let env = Env::with(&server)
        .without("OPENAI_API_KEY")
        .var("OLLAMA_HOST", &server.url())
        .config("models: {providers: {openai: {key_command: [touch, it-was-run]}}}\n");
    assert_eq!(found(&env, &[], "key"), ok("from a command"));
    let env = env.config("{}\n").without("OPENAI_BASE_URL");
    assert!(found(&env, &[], "model").1.starts_with("there is no key: a server of this machine is asked"));
    assert_eq!(found(&env, &[], "keys").0, "weak");
    assert_eq!(server.calls(), 0);
    assert!(!env.home().join("it-was-run").exists());
}

#[test]
fn a_call_tells_time_tokens_cost_and_who_answered_or_what_to_do() {
    let server = ModelServer::start(|_| Response::text("ready"));
    let env = Env::with(&server).config("models: {prices: {openai/test: {input: 1, output: 2}}}\n");
    let (state, told, _) = found(&env, &["--model", "openai/test", "--call"], "call");
    assert!(state == "ok" && told.contains(" answered for openai/test after ") && told.contains(" s, with "), "{told}");
    assert!(told.contains(" tokens in and ") && told.contains(" out, for $0.0000"), "{told}");
    assert_eq!((server.calls(), server.requests()[0].body["max_tokens"].as_u64()), (1, Some(256)));

    let server = ModelServer::start(|_| Response::error(401, &format!("who is {KEY}?")));
    let (state, told, hint) = found(&Env::with(&server), &["--model", "openai/test", "--call"], "call");
    assert_eq!((state.as_str(), told.as_str()), ("missing", "openai refused the key in OPENAI_API_KEY (401)"));
    assert_eq!(hint, "put a valid key into OPENAI_API_KEY, or check that it may use test");
}

#[test]
fn the_network_is_told_without_the_passwords_in_it() {
    let env = Env::new();
    assert!(found(&env, &[], "proxy").1.starts_with("none: "));
    let env = env
        .var("https_proxy", "http://user:planted-password@proxy.company.test:3128")
        .var("ALL_PROXY", "socks5://proxy.company.test:1080")
        .var("NO_PROXY", "intern.company.test");
    assert_eq!(
        found(&env, &[], "proxy"),
        ok("http://proxy.company.test:3128 for https (https_proxy), socks5://proxy.company.test:1080 for all else \
            (ALL_PROXY); without one: this machine and intern.company.test (NO_PROXY)")
    );
    let env = Env::new().var("SSL_CERT_FILE", &sample("ca.pem").display().to_string());
    let (state, told, _) = found(&env, &[], "ca");
    assert!(state == "ok" && told.contains("authorities are built in") && told.contains("SSL_CERT_FILE="), "{told}");
    let (state, told, _) = found(&Env::new().var("SSL_CERT_FILE", "/no/such.pem"), &[], "ca");
    assert!(state == "weak" && told.contains("/no/such.pem"), "{told}");
}

#[test]
fn files_room_and_terminal_are_told() {
    let env = Env::new();
    let told: Vec<String> =
        findings(&env, &[], "config").iter().map(|row| env.normal(row["found"].as_str().unwrap_or_default())).collect();
    assert_eq!(
        told,
        [
            "/tmp/test/home/config.yaml (yours) is read",
            "/tmp/test/work/nietz.yaml (the project's) is not there",
            "/tmp/test/home/keys.yaml (stored keys) is not there",
        ]
    );
    let (_, told, _) = found(&env, &[], "home");
    assert!(told.starts_with("/tmp/test/home: ") && told.ends_with(" MB are free"), "{told}");
    assert_eq!(
        found(&env, &[], "terminal"),
        ok("standard input is no terminal, standard output no terminal, without colours")
    );
    let mut seat = env.nietz(["doctor"]).var("TERM", "xterm").at_a_terminal();
    // The line is folded to the width.
    seat.sees("standard output a terminal");
    seat.sees("with colours");
    seat.end();
}
