//! Services that misbehave: the client repeats the call, says what is wrong, and never shows a key.

use std::collections::BTreeMap;

use super::model_server::{ModelServer, Response};
use super::{BOTH, KEY, call, client, client_with, quick, request, variables};
use crate::error::Code;
use crate::host::llm::{Client, ClientSettings, ProviderConfig};

#[tokio::test]
async fn what_may_pass_is_tried_again_and_reported() {
    let faults: [fn() -> Response; 12] = [
        || Response::error(429, "slow down"),
        || Response::error(429, "slow down").header("retry-after", "0"),
        || Response::error(429, "slow down").header("retry-after-ms", "3"),
        || Response::error(429, "slow down").header("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"),
        || Response::error(500, "oops"),
        || Response::plain(502, "<html>bad gateway"),
        || Response::error(503, "later"),
        || Response::error(504, "late"),
        || Response::error(529, "overloaded"),
        || Response::text("half of the text").cut_after(150),
        || Response::text("all, and no end").without_end(),
        || Response::text("and then").then_error("overloaded_error", "Overloaded"),
    ];
    for model in BOTH {
        for (number, fault) in faults.iter().enumerate() {
            let fault = *fault;
            let server = ModelServer::start(move |request| match request.number {
                1 => fault(),
                _ => Response::text("at last"),
            });
            let (reply, _, retries) = call(&client(&server), &request(model, "x")).await;
            assert_eq!(reply.unwrap().text, "at last", "fault {number} on {model}");
            assert_eq!((server.calls(), retries.len(), retries[0].0), (2, 1, 2), "fault {number} on {model}");
        }
    }
}

#[tokio::test]
async fn what_does_not_pass_fails_after_the_attempts_with_its_code() {
    let faults: [(fn() -> Response, Code); 8] = [
        (|| Response::error(429, "slow down"), Code::ModelOverloaded),
        (|| Response::error(529, "overloaded"), Code::ModelOverloaded),
        (|| Response::error(500, "oops"), Code::ModelBroken),
        (|| Response::text("half of the text").cut_after(150), Code::ModelBroken),
        (|| Response::text("all, and no end").without_end(), Code::ModelBroken),
        (|| Response::stream("data: {\"choices\": [{\"delta\n\ndata: }\n\n"), Code::ModelBroken),
        (|| Response::stream(b"data: \xff\xfe\n\n".as_slice()), Code::ModelBroken),
        (|| Response::stream("data: [DONE]\n\n"), Code::ModelBroken),
    ];
    for model in BOTH {
        for (number, (fault, code)) in faults.iter().enumerate() {
            let fault = *fault;
            let server = ModelServer::start(move |_| fault());
            let (reply, _, retries) = call(&client(&server), &request(model, "x")).await;
            let failure = reply.expect_err("no attempt went well");
            assert_eq!(failure.code, *code, "fault {number} on {model}: {failure}");
            assert!(failure.message.ends_with("; tried 5 times"), "{failure}");
            assert!(failure.hint.is_some());
            assert_eq!((server.calls(), retries.len()), (5, 4));
        }
    }
}

#[tokio::test]
async fn what_cannot_pass_is_said_at_once() {
    let long = format!("the field is wrong \u{1b}[31m because {}", "x".repeat(200));
    let faults = [
        (401, format!("bad key {KEY}"), Code::KeyRefused, "_API_KEY (401)"),
        (403, String::new(), Code::KeyRefused, "_API_KEY (403)"),
        (400, format!("Incorrect API key provided: {KEY}"), Code::KeyRefused, "_API_KEY"),
        (402, "pay first".to_owned(), Code::BudgetUsedUp, "pay first"),
        (404, "no such model".to_owned(), Code::ModelUnknown, "does not know the model small: no such model"),
        (400, long, Code::ModelRefused, "the field is wrong ␛[31m because xx"),
        (422, format!("I saw {KEY} there"), Code::ModelRefused, "I saw [redacted] there"),
        (418, String::new(), Code::ModelRefused, "(418)"),
    ];
    for model in BOTH {
        for (status, server_message, code, words) in faults.clone() {
            let server = ModelServer::start(move |_| Response::error(status, &server_message));
            let (reply, _, retries) = call(&client(&server), &request(model, "x")).await;
            let failure = reply.unwrap_err();
            assert_eq!(failure.code, code, "{failure}");
            assert!(failure.message.contains(words) && failure.message.len() < 200, "{failure}");
            assert!(!format!("{failure:?}").contains(KEY), "{failure:?}");
            assert_eq!((server.chats(), retries.len()), (1, 0));
        }
    }
}

#[tokio::test]
async fn a_wait_beyond_the_limit_fails_at_once_as_a_quota() {
    let server = ModelServer::start(|_| Response::error(429, "daily limit").header("retry-after", "86400"));
    let failure = call(&client(&server), &request("openai/m", "x")).await.0.unwrap_err();
    assert_eq!((failure.code, server.calls()), (Code::BudgetUsedUp, 1));
    assert!(failure.hint.unwrap().contains("resume the run after"), "it says when");
    let server = ModelServer::start(|_| {
        let body = r#"{"error": {"code": "insufficient_quota", "message": "You exceeded your quota"}}"#;
        Response::plain(429, body)
    });
    let failure = call(&client(&server), &request("openai/m", "x")).await.0.unwrap_err();
    assert_eq!((failure.code, server.calls()), (Code::BudgetUsedUp, 1));
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_a_web_page_is_no_reply() {
    let other = ModelServer::start(|_| Response::text("stolen"));
    let target = other.url();
    let server = ModelServer::start(move |request| match request.number {
        1 => Response::redirect(&target),
        _ => Response::plain(200, "<html>hello").header("content-type", "text/html"),
    });
    let client = client(&server);
    for words in ["a redirect (307)", "a web page"] {
        let failure = call(&client, &request("openai/m", "x")).await.0.unwrap_err();
        assert_eq!(failure.code, Code::ModelBroken);
        assert!(failure.message.contains(words), "{failure}");
    }
    assert_eq!((server.calls(), other.calls()), (2, 0), "nobody got the key, and nothing was tried again");
}

#[tokio::test]
async fn a_service_that_is_not_there_is_unreachable() {
    let server = ModelServer::start(|_| Response::text("x"));
    let mut variables = variables(&server);
    // Nothing listens on port 1 of the loopback.
    variables.insert("OPENAI_BASE_URL".into(), "http://user:planted-password@127.0.0.1:1/v1".into());
    let client = Client::new(ClientSettings::from_environment(&variables, &quick()).unwrap());
    let (reply, _, retries) = call(&client, &request("openai/m", "x")).await;
    let failure = reply.unwrap_err();
    assert_eq!((failure.code, retries.len()), (Code::ModelUnreachable, 0));
    assert!(failure.message.contains("nothing listens at http://127.0.0.1:1"), "{failure}");
    assert!(!format!("{failure:?}").contains("planted"), "{failure:?}");
}

#[tokio::test]
async fn silence_is_an_end_too_before_the_first_byte_and_after() {
    for model in BOTH {
        let server = ModelServer::start(|request| match request.number {
            1 => Response::silence(),
            2 => Response::text("half of the text").silent_after(150),
            _ => Response::text("at last"),
        });
        let mut config = quick();
        let provider = ProviderConfig { timeout_seconds: Some(0.1), ..ProviderConfig::default() };
        config.providers = ["openai", "anthropic"].map(|name| (name.to_owned(), provider.clone())).into();
        let (reply, _, retries) = call(&client_with(&server, &config), &request(model, "x")).await;
        assert_eq!(reply.unwrap().text, "at last");
        assert_eq!(retries.iter().map(|(attempt, _)| *attempt).collect::<Vec<_>>(), [2, 3]);
    }
}

#[tokio::test]
async fn a_reply_that_does_not_end_is_given_up_at_the_largest_size() {
    for endless in [
        // One endless line, an endless reply that is not streamed, and endless comments.
        Response::stream(format!("data: {}", "x".repeat(17 << 20))),
        Response::plain(200, format!("[{}", "1,".repeat(9 << 20))).header("content-type", "application/json"),
        Response::stream(": ping\n\n".repeat(9 << 20)),
    ] {
        let server = ModelServer::start(move |_| endless.clone());
        let mut config = quick();
        config.retry.attempts = 1;
        let failure = call(&client_with(&server, &config), &request("openai/m", "x")).await.0.unwrap_err();
        assert_eq!(failure.code, Code::ModelBroken);
        assert!(failure.message.contains("is larger than any reply should be"), "{failure}");
    }
}

#[tokio::test]
async fn text_that_is_whole_counts_even_if_nonsense_or_nothing_follows() {
    let end = "data: {\"choices\":[{\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\n";
    for after in ["data: nonsense\n\n", "data: {\"error\": {\"message\": \"late\"}}\n\n", ""] {
        let server = ModelServer::start(move |_| Response::stream(format!("{end}{after}")));
        assert_eq!(call(&client(&server), &request("openai/m", "x")).await.0.unwrap().text, "ok");
        assert_eq!(server.calls(), 1);
    }
    let server = ModelServer::start(move |_| Response::stream(end).cut_after(end.len()));
    assert_eq!(call(&client(&server), &request("openai/m", "x")).await.0.unwrap().text, "ok");
}

#[tokio::test]
async fn a_model_that_declines_is_not_asked_again() {
    for reply in [
        r#"{"choices":[{"delta":{"content":"par"},"finish_reason":"content_filter"}]}"#,
        r#"{"choices":[{"delta":{"refusal":"I will not."},"finish_reason":"stop"}]}"#,
    ] {
        let server = ModelServer::start(move |_| Response::stream(format!("data: {reply}\n\ndata: [DONE]\n\n")));
        let failure = call(&client(&server), &request("openai/m", "x")).await.0.unwrap_err();
        assert_eq!((failure.code, server.calls()), (Code::ModelRefused, 1), "{failure}");
    }
}

#[tokio::test]
async fn without_a_key_nothing_is_sent_and_the_variable_is_named() {
    let client = Client::new(ClientSettings::from_environment(&BTreeMap::new(), &quick()).unwrap());
    let failure = call(&client, &request("gemini/x", "x")).await.0.unwrap_err();
    assert_eq!(failure.code, Code::KeyMissing);
    assert!(failure.hint.unwrap().contains("GEMINI_API_KEY or GOOGLE_API_KEY"));
    for model in ["local/x", "nowhere/x", "gpt-4.1"] {
        assert_eq!(call(&client, &request(model, "x")).await.0.unwrap_err().code, Code::ModelUnknown);
    }
}
