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

    let wrong = ask(&Env::with(&server).var("HTTPS_PROXY", "http://user:secret@:x")).exits(3);
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
    let missing = ask(&elsewhere).exits(3);
    assert!(missing.stderr.contains("OPENAI_API_KEY"), "{missing:?}");
}
