//! The promise: nietz works in the networks that companies have. Their authorities and proxies are those of the usual variables,
//! what no further attempt can heal is not tried again, and a server that is not there is told at once.

use std::time::{Duration, Instant};

use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};
use crate::support::tls::{Between, sample};

const NAME: &str = "https://models.company.test/v1";

fn hello() -> ModelServer {
    ModelServer::start(|_| Response::text("hello from within"))
}

fn ask(env: &Env) -> crate::support::process::Ended {
    env.nietz(["run", "ask", "Who?", "--model", "openai/test"]).go()
}

fn times(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

#[test]
fn an_authority_of_the_company_and_its_proxy_are_used_by_the_usual_variables() {
    let server = hello();
    let (tls, ca) = (Between::tls(server.address()), sample("ca.pem"));
    let direct = format!("https://{}/v1", tls.address);
    let ended = ask(&Env::new().var("OPENAI_BASE_URL", &direct).var("SSL_CERT_FILE", &ca.display().to_string()));
    assert_eq!(ended.exits(0).stdout, "hello from within\n");

    let proxy = Between::proxy(tls.address);
    for (name, address) in [
        ("HTTPS_PROXY", format!("http://{}", proxy.address)),
        ("https_proxy", proxy.address.to_string()),
        ("ALL_PROXY", format!("http://user:pass@{}", proxy.address)),
    ] {
        let env = Env::new().var("OPENAI_BASE_URL", NAME).var("SSL_CERT_FILE", &ca.display().to_string());
        assert_eq!(ask(&env.var(name, &address)).exits(0).stdout, "hello from within\n", "{name}");
    }
    assert_eq!(proxy.seen(), vec!["CONNECT models.company.test:443 HTTP/1.1"; 3]);
    assert_eq!(server.calls(), 4);
}

#[test]
fn a_certificate_that_is_not_trusted_is_told_once_with_what_to_do() {
    let server = hello();
    let tls = Between::tls(server.address());
    let proxy = format!("http://{}", Between::proxy(tls.address).address);
    let at = |url: &str, name: &str, value: &str| {
        ask(&Env::new().var("OPENAI_BASE_URL", url).var("HTTPS_PROXY", &proxy).var(name, value))
    };
    let unknown = at(NAME, "SSL_CERT_DIR", "").exits(3);
    assert!(unknown.stderr.contains("the certificate of https://models.company.test cannot be trusted"), "{unknown:?}");
    assert!(unknown.stderr.contains("its issuer is not trusted here"), "{unknown:?}");
    assert!(unknown.stderr.contains("SSL_CERT_FILE"), "{unknown:?}");
    assert_eq!(times(&unknown.stderr, "tried"), 0, "{unknown:?}");

    let absent = at(NAME, "SSL_CERT_FILE", "/no/such/file.pem").exits(3);
    assert!(absent.stderr.contains("/no/such/file.pem"), "{absent:?}");

    let ca = sample("ca.pem").display().to_string();
    let another = at("https://other.company.test/v1", "SSL_CERT_FILE", &ca).exits(3);
    assert!(another.stderr.contains("it is another server's"), "{another:?}");
    assert_eq!(server.calls(), 0);
}

#[test]
fn what_is_on_this_machine_is_reached_by_no_proxy_and_what_no_proxy_names_is_not_either() {
    let server = hello();
    let proxy = Between::proxy(server.address());
    let through = format!("http://{}", proxy.address);
    let env = Env::with(&server).var("HTTP_PROXY", &through).var("ALL_PROXY", &through);
    assert_eq!(ask(&env).exits(0).stdout, "hello from within\n");
    assert_eq!(proxy.seen(), Vec::<String>::new());

    let plain = |exceptions: &str| {
        let env = Env::new().var("OPENAI_BASE_URL", "http://models.company.invalid/v1").var("http_proxy", &through);
        ask(&env.var("NO_PROXY", exceptions).config("models: {retry: {attempts: 1}}\n"))
    };
    assert_eq!(plain("another.invalid").exits(0).stdout, "hello from within\n");
    assert_eq!(proxy.seen(), ["POST http://models.company.invalid/v1/chat/completions HTTP/1.1"]);
    plain(".company.invalid").exits(3);
    assert_eq!((proxy.seen().len(), server.calls()), (1, 2));

    let wrong = ask(&Env::with(&server).var("HTTPS_PROXY", "http://user:secret@:x")).exits(1);
    assert!(wrong.stderr.contains("HTTPS_PROXY is not the address of a proxy"), "{wrong:?}");
    assert!(!wrong.stderr.contains("secret"), "{wrong:?}");
}

#[test]
fn a_server_that_is_not_there_is_told_at_once_and_in_a_pipe_too() {
    // Nothing listens on this machine: no further attempt can help.
    let began = Instant::now();
    let refused = ask(&Env::new().config("models: {retry: {attempts: 5, base_delay_ms: 60000}}\n")).exits(3);
    assert!(refused.stderr.contains("nothing listens at http://127.0.0.1:1 (openai)"), "{refused:?}");
    assert!(began.elapsed() < Duration::from_secs(60), "{refused:?}");

    // Elsewhere the network may come back: it is said before it is waited for.
    let env = Env::new().var("OPENAI_BASE_URL", "http://models.company.invalid/v1");
    let ended = ask(&env.config("models: {retry: {attempts: 3, total_seconds: 20, base_delay_ms: 1}}\n")).exits(3);
    let told = "openai at http://models.company.invalid cannot be reached";
    assert_eq!(times(&ended.stderr, &format!("{told}; trying again in")), 1, "{ended:?}");
    assert!(ended.stderr.contains("tried 3 times"), "{ended:?}");
}

#[test]
fn a_server_of_one_s_own_on_this_machine_needs_no_key() {
    let server = hello();
    let env = Env::with(&server).without("OPENAI_API_KEY");
    assert_eq!(ask(&env).exits(0).stdout, "hello from within\n");
    assert!(!server.requests()[0].headers.contains_key("authorization"));
    let elsewhere = Env::new().without("OPENAI_API_KEY").var("OPENAI_BASE_URL", "http://models.company.invalid/v1");
    let missing = ask(&elsewhere).exits(1);
    assert!(missing.stderr.contains("OPENAI_API_KEY"), "{missing:?}");
}

#[test]
fn clouds_are_reached_in_their_own_ways() {
    let server = hello();
    let azure = Env::new()
        .var("AZURE_OPENAI_ENDPOINT", &format!("http://{}/", server.address()))
        .var("AZURE_OPENAI_API_KEY", "azure-key-0123");
    let ended = azure.nietz(["run", "ask", "Who?", "--model", "azure/my-deployment"]).go();
    assert_eq!(ended.exits(0).stdout, "hello from within\n");
    // The older form of its addresses: a version in the query, the deployment in the path.
    let older = Env::new().var("OLD_KEY", "azure-key-4567").config(&format!(
        "models: {{providers: {{old: {{base_url: 'http://{}/openai/deployments/{{model}}?api-version=2024-10-21', key_env: \
         OLD_KEY, key_header: api-key}}}}}}\n",
        server.address()
    ));
    let ended = older.nietz(["run", "ask", "Who?", "--model", "old/mine"]).go();
    assert_eq!(ended.exits(0).stdout, "hello from within\n");
    let bedrock = Env::new().var("BEDROCK_BASE_URL", &server.url()).var("AWS_BEARER_TOKEN_BEDROCK", "bedrock-key-0123");
    let ended = bedrock.nietz(["run", "ask", "Who?", "--model", "bedrock/openai.gpt-oss-120b"]).go();
    assert_eq!(ended.exits(0).stdout, "hello from within\n");
    let seen: Vec<_> = server
        .requests()
        .iter()
        .map(|request| {
            (request.path.clone(), format!("{}{}", request.header("api-key"), request.header("authorization")))
        })
        .collect();
    let expected = [
        ("/openai/v1/chat/completions", "azure-key-0123"),
        ("/openai/deployments/mine/chat/completions?api-version=2024-10-21", "azure-key-4567"),
        ("/v1/chat/completions", "Bearer bedrock-key-0123"),
    ];
    assert_eq!(seen, expected.map(|(path, key)| (path.to_owned(), key.to_owned())));

    let nowhere = Env::new().nietz(["run", "ask", "Who?", "--model", "bedrock/openai.gpt-oss-120b"]).go().exits(1);
    assert!(nowhere.stderr.contains("bedrock has no address") && nowhere.stderr.contains("AWS_REGION"), "{nowhere:?}");
}

#[test]
fn a_token_that_has_expired_is_asked_for_again_and_no_token_is_shown() {
    let server = ModelServer::start(|request| match request.header("authorization") {
        "Bearer token-number-2" => Response::text("hello from within"),
        _ => Response::error(401, "token-number-1 has expired"),
    });
    let env = Env::new().var("VERTEX_BASE_URL", &server.url()).var("NIETZ_RUN", "expired").config(
        "models: {providers: {vertex: {key_command: [sh, -c, 'echo x >> count; echo token-number-$(wc -l < count | tr -d \" \")']}}}\n",
    );
    let ended = env.nietz(["run", "ask", "Who?", "--model", "vertex/google/small", "--verbose"]).go().exits(0);
    assert_eq!((ended.stdout.as_str(), server.calls()), ("hello from within\n", 2), "{ended:?}");
    let journal = env.read(".nietz/runs/expired/journal.jsonl");
    assert!(!journal.contains("token-number") && !ended.stderr.contains("token-number"), "{ended:?}");

    // A token that is refused again is the user's matter.
    let refusing = ModelServer::start(|_| Response::error(401, "go away"));
    let env = env.var("VERTEX_BASE_URL", &refusing.url()).var("NIETZ_RUN", "refused");
    let ended = env.nietz(["run", "ask", "Who?", "--model", "vertex/google/small"]).go().exits(1);
    assert!(ended.stderr.contains("models.providers.vertex.key_command"), "{ended:?}");
    assert_eq!(refusing.calls(), 2);
}
