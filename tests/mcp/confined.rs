//! What a server that is a program may read, reach and be told.

use serde_json::{Value, json};

use super::{CALLER, config};
use crate::support::env::{Env, KEY};

/// What a server with these fields sees of some places.
fn about(env: Env, more: &str, paths: &[String]) -> Value {
    let env = env.flow("caller", CALLER).config(&config("good", &format!(", seconds: 50{more}")));
    let arguments = json!({ "paths": paths }).to_string();
    let ended = env.run(["caller", "--tool", "about", "--arguments", &arguments]).go().exits(0);
    ended.result()["value"].clone()
}

#[test]
fn a_server_has_a_private_home_the_network_and_nothing_of_the_user_s() {
    let env = Env::new().file("secret.txt", "x").var("DOCS_LANG", "fr");
    std::fs::write(env.home().join("mine.txt"), "x").expect("the home can be written");
    let places = [env.path("secret.txt"), env.home().join("mine.txt"), env.home(), env.workspace()];
    let places: Vec<String> = places.iter().map(|path| path.display().to_string()).collect();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it has one").port();
    let seen = about(env, &format!(", set: {{PORT: '{port}'}}"), &places);
    for place in &places {
        assert_eq!(seen["seen"][place.as_str()], false, "{place}: {seen}");
    }
    assert_eq!(seen["network"], true, "{seen}");
    assert!(!seen["environment"].to_string().contains(KEY) && seen["environment"]["DOCS_LANG"].is_null(), "{seen}");
    assert_eq!(seen["environment"]["HOME"], seen["cwd"]);
    assert!(seen["cwd"].as_str().is_some_and(|cwd| cwd.ends_with("/servers/docs")), "{seen}");
}

#[test]
fn a_server_sees_more_only_as_the_user_says() {
    let env = Env::new().file("read.txt", "x").var("DOCS_LANG", "fr").var("OTHER", "no");
    let folder = env.home().parent().expect("it is in a folder").join("shared");
    std::fs::create_dir(&folder).expect("a folder can be made");
    std::fs::write(folder.join("page.txt"), "x").expect("it can be written");
    let places = [env.path("read.txt"), folder.join("page.txt")].map(|path| path.display().to_string());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let more = format!(
        ", workspace: true, read: ['{}'], env: [DOCS_LANG], set: {{DOCS_MODE: small, PORT: '{}'}}, network: false",
        folder.display(),
        listener.local_addr().expect("it has one").port()
    );
    let seen = about(env, &more, &places);
    assert_eq!(seen["network"], false, "{seen}");
    assert_eq!((&seen["seen"][&places[0]], &seen["seen"][&places[1]]), (&json!(true), &json!(true)), "{seen}");
    let environment = &seen["environment"];
    assert_eq!((&environment["DOCS_LANG"], &environment["DOCS_MODE"]), (&json!("fr"), &json!("small")));
    assert!(environment["OTHER"].is_null(), "{environment}");
}

#[test]
fn a_server_keeps_its_home_and_ends_with_the_run() {
    let env = Env::new().flow("caller", CALLER).config(&config("good", ", seconds: 50"));
    env.run(["caller"]).go().exits(0);
    env.run(["caller"]).var("NIETZ_RUN", "r2").go().exits(0);
    let log = std::fs::read_to_string(env.home().join("servers/docs/asked.jsonl")).expect("the home is kept");
    assert_eq!(log.lines().filter(|line| line.contains("\"initialize\"")).count(), 2, "each run has its own");
}
