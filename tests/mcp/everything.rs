//! A server that somebody else wrote to show all of the protocol, `@modelcontextprotocol/server-everything`: `.ci/clients/run`
//! installs it. The same calls bring the same by standard input and output and by an address, and are given back without it.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::CALLER;
use crate::editors::foreign::{installed, node};
use crate::support::env::{Env, RUN};

const SERVER: &str = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";

/// What is called, and what it brings.
fn calls() -> Vec<(&'static str, Value, Value)> {
    let weather = json!({ "temperature": 33, "conditions": "Cloudy", "humidity": 82 });
    let linked = "Here are 2 resource links to resources available in this server:\n\n\
        [resource: demo://resource/dynamic/blob/1 Resource 1: plaintext resource]\n\n\
        [resource: demo://resource/dynamic/text/2 Resource 2: plaintext resource]";
    vec![
        ("echo", json!({ "message": "tea" }), json!({ "text": "Echo: tea" })),
        ("get-sum", json!({ "a": 2, "b": 3 }), json!({ "text": "The sum of 2 and 3 is 5." })),
        (
            "get-structured-content",
            json!({ "location": "New York" }),
            json!({ "text": weather.to_string(), "value": weather }),
        ),
        (
            "get-tiny-image",
            json!({}),
            json!({ "text": "Here's the image you requested:\n\n[image: image/png, 4035 bytes]\n\nThe image above is the MCP logo." }),
        ),
        ("get-resource-links", json!({ "count": 2 }), json!({ "text": linked })),
        (
            "trigger-long-running-operation",
            json!({ "duration": 1, "steps": 4 }),
            json!({ "text": "Long running operation completed. Duration: 1 seconds, Steps: 4." }),
        ),
    ]
}

/// Makes each call in a run of its own, and gives it back when the server's name is gone.
fn all_calls(config: &str) {
    for (tool, arguments, expected) in calls() {
        let env = Env::new().flow("caller", CALLER).config(config);
        let arguments = arguments.to_string();
        let ended = env.run(["caller", "--tool", tool, "--arguments", &arguments]).go().exits(0);
        // Where a server has both, its text is that of the value, in an order of its own.
        let mut brought = ended.result();
        if let Some(text) = expected.get("value").and(brought["text"].as_str()) {
            brought["text"] = serde_json::from_str::<Value>(text).expect("the value as text").to_string().into();
        }
        assert_eq!(brought, expected, "{tool}");
        let env = env.config("{}\n");
        env.nietz(["test", "--from-run", RUN, "--name", "found"]).go().exits(0);
        env.nietz(["test"]).go().exits(0);
        println!("server-everything: {tool} brought what it should, and is given back without it");
    }
    let env = Env::new().flow("caller", CALLER).config(config);
    let wrong = env.run(["caller", "--tool", "get-sum", "--arguments", r#"{"a":"x","b":3}"#, "--catch"]).go().exits(0);
    let message = wrong.result()["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("Invalid arguments for tool get-sum"), "{message}");
    let none = env.nietz(["run", "caller", "--tool", "get-summ"]).var("NIETZ_RUN", "r2").go().exits(1);
    assert!(none.stderr.contains("has no tool") && none.stderr.contains("get-sum, get-tiny-image"), "{none:?}");
}

#[test]
fn a_server_of_others_is_called_by_its_standard_input_and_output_in_the_sandbox() {
    let Some(folder) = installed() else { return };
    let node = node();
    let folders: Vec<&Path> = [Some(folder.as_path()), node.parent()].into_iter().flatten().collect();
    let command = json!([node, folder.join(SERVER), "stdio"]);
    all_calls(&format!("mcp: {{docs: {{command: {command}, read: {}}}}}\n", json!(folders)));
}

/// A server at an address, ended with this.
struct Served(Child, String);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.kill().expect("the server ends");
        self.0.wait().expect("the server has ended");
    }
}

fn serve(folder: &Path) -> Served {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let mut command = Command::new(node());
    command.arg(folder.join(SERVER)).arg("streamableHttp").env("PORT", port.to_string());
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the server starts");
    let said = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut lines = said.lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("listening on port")), "the server says that it listens");
    // Whatever it says later is read, so that it never waits for a reader.
    std::thread::spawn(move || lines.for_each(drop));
    Served(child, format!("http://127.0.0.1:{port}/mcp"))
}

#[test]
fn a_server_of_others_is_called_at_its_address() {
    let Some(folder) = installed() else { return };
    let served = serve(&folder);
    all_calls(&format!("mcp: {{docs: {{url: '{}'}}}}\n", served.1));
}
