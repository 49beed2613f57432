//! Voices of a party look into the project before they speak, where `--about` has named some of it.

use serde_json::Value;

use super::model::Brain;
use super::table::{TOPIC, Table, says};
use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Request, Response};

fn has_tools(request: &Request) -> bool {
    request.body["tools"].as_array().is_some_and(|tools| !tools.is_empty())
}

/// The request without what was looked up since, and what that was.
fn split(request: &Request) -> (Request, Vec<Value>) {
    let mut before = request.clone();
    let messages = before.body["messages"].as_array_mut().expect("messages");
    let looked = messages.iter().filter(|message| message["role"] == "tool").map(|message| message["content"].clone());
    let looked = looked.collect();
    messages.retain(|message| message["role"] != "tool" && message["tool_calls"].is_null());
    (before, looked)
}

#[test]
fn voices_look_into_the_project_that_was_named_and_nobody_does_without_one() {
    for about in [true, false] {
        let server = ModelServer::start(|request| match split(request) {
            (_, looked) if has_tools(request) && looked.is_empty() => {
                Response::text("").tool_call("c", "grep", r#"{"pattern": "two \\w+"}"#)
            }
            (before, _) => Response::text(Brain::default().reply(&before).to_string()),
        });
        let env = Env::with(&server).file("docs/orders.md", "Orders wait.\nFor two days.\n");
        let table = Table { env, server };
        let mut flags = vec![TOPIC, "--no-clarify", "--no-hmw"];
        if about {
            flags.extend(["--about", "docs"]);
        }
        let ended = table.talk(flags, &["party", "a day at most", "quit"]).exits(0);
        let looking: Vec<Request> = table.server.requests().into_iter().filter(has_tools).collect();
        assert_eq!(!looking.is_empty(), about);
        if about {
            let found: Vec<Value> = looking.iter().flat_map(|request| split(request).1).collect();
            assert!(found.contains(&"docs/orders.md:2: For two days.".into()), "{found:?}");
            assert!(
                looking.iter().all(|request| split(request).0.prompt().contains("The team is asked")),
                "voices alone"
            );
            says(&ended, &[r#"looked:* `grep "two \w+"`"#]);
        }
    }
}
