//! Tests how many calls run at once, what a dropped call leaves behind, and where keys come from.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::model_server::{Gate, ModelServer, Response};
use super::{call, client, client_with, quick, request};
use crate::host::llm::{Client, ClientSettings, ProviderConfig};
use crate::host::{CallEvent, Models};

#[tokio::test]
async fn a_hundred_calls_go_side_by_side() {
    let server = ModelServer::start(|request| Response::text(request.prompt()).delay(Duration::from_millis(200)));
    let client = client(&server);
    let start = Instant::now();
    let calls = (0..100).map(|number| {
        let client = &client;
        async move { call(client, &request("openai/m", &format!("call {number}"))).await.0.unwrap().text }
    });
    for (number, text) in join_all(calls).await.into_iter().enumerate() {
        assert_eq!(text, format!("call {number}"));
    }
    // One after another they would take twenty seconds.
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[tokio::test]
async fn no_more_calls_than_allowed_are_under_way_at_once() {
    let server = ModelServer::start(|_| Response::text("x").delay(Duration::from_millis(5)));
    let mut config = quick();
    let provider = ProviderConfig { max_parallel: NonZeroUsize::new(3), ..ProviderConfig::default() };
    config.providers.insert("openai".into(), provider);
    let client = client_with(&server, &config);
    let chat_request = request("openai/m", "x");
    join_all((0..12).map(|_| call(&client, &chat_request))).await;
    assert_eq!((server.calls(), server.most_at_once() <= 3), (12, true), "{}", server.most_at_once());
}

#[tokio::test]
async fn a_dropped_call_gives_its_place_back() {
    let gate = Gate::default();
    let server_gate = gate.clone();
    let server = ModelServer::start(move |request| match request.number {
        1 => Response::text("one two three four").cut_after(usize::MAX).held_by(&server_gate),
        _ => Response::text("next"),
    });
    let mut config = quick();
    let provider = ProviderConfig { max_parallel: NonZeroUsize::new(1), ..ProviderConfig::default() };
    config.providers.insert("openai".into(), provider);
    let client = client_with(&server, &config);
    let chat_request = request("openai/m", "x");
    // The first call hangs at the gate, and the time limit drops it.
    assert!(tokio::time::timeout(Duration::from_millis(50), call(&client, &chat_request)).await.is_err());
    assert_eq!(call(&client, &chat_request).await.0.unwrap().text, "next");
    gate.open();
}

#[tokio::test]
async fn a_wait_that_is_asked_for_is_reported_before_it_begins() {
    let server = ModelServer::start(|_| Response::error(429, "slow down").header("retry-after", "100"));
    let client = client(&server);
    let chat_request = request("openai/m", "x");
    let (reported, mut waits) = tokio::sync::mpsc::unbounded_channel();
    let mut report = |event: CallEvent<'_>| {
        if let CallEvent::Retry { wait_ms, .. } = event {
            reported.send(wait_ms).expect("it is listened to");
        }
    };
    tokio::select! {
        _ = client.chat(&chat_request, &mut report) => panic!("it should wait"),
        wait = waits.recv() => assert!((100_000..101_000).contains(&wait.unwrap()), "{wait:?}"),
    }
}

#[tokio::test]
async fn a_provider_of_ones_own_needs_no_key_or_gets_it_from_a_command_once() {
    let server = ModelServer::start(|request| Response::text(request.header("authorization")));
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("ran");
    let script = format!("echo >> {mark:?}; echo from-a-command; echo not the key", mark = mark);
    let provider = |key_command: Option<Vec<String>>| ProviderConfig {
        base_url: Some(server.url()),
        key_command,
        ..ProviderConfig::default()
    };
    let mut config = quick();
    config.providers.insert("open".into(), provider(None));
    config.providers.insert("shut".into(), provider(Some(["/bin/sh", "-c", &script].map(str::to_owned).into())));
    let client = Client::new(ClientSettings::from_environment(&Default::default(), &config).unwrap());
    assert_eq!(call(&client, &request("open/m", "x")).await.0.unwrap().text, "");
    let chat_request = request("shut/m", "x");
    for (reply, ..) in join_all((0..3).map(|_| call(&client, &chat_request))).await {
        assert_eq!(reply.unwrap().text, "Bearer from-a-command");
    }
    assert_eq!(std::fs::read_to_string(mark).unwrap().lines().count(), 1, "it ran once");
}
