//! The documents of flows as resources, with the schemas that they are held to.

use serde_json::{Value, json};

use super::client::Client;
use super::talk;

const NOTES: &str = r#"
local documents = require("@nietz/documents")
local nietz = require("@nietz")
local notes = documents.collection("notes")
return nietz.flow {
  name = "notes", summary = "Keeps notes", host_api = 2,
  collections = { notes = { path = ".data/meine notizen/{slug}.yaml", format = "yaml", keys = { slug = "/slug" }, schema = {
    type = "object", required = { "slug", "text" },
    properties = { slug = { type = "string" }, text = { type = "string" } } } } },
  params = { text = { type = "string", positional = true, required = true } },
  run = function(ctx)
    notes:save { slug = "erste", text = ctx.params.text }
    return true
  end,
}"#;

fn read(client: &mut Client, uri: &str) -> Value {
    let reply = client.request("resources/read", json!({ "uri": uri }));
    assert!(reply["error"].is_null(), "{uri}: {reply}");
    reply["result"]["contents"][0].clone()
}

#[test]
fn documents_and_their_schemas_are_listed_and_read() {
    let (_server, env) = talk();
    let env = env.flow("notes", NOTES).var("PLANTED_API_KEY", "planted-secret-value");
    let mut client = Client::legacy(&env, &[], true);
    let done = client.call("flow_notes", json!({ "text": "The tide is high." }));
    assert_eq!(done["structuredContent"]["status"], "done", "{done}");
    // A person may have written into it by hand.
    env.write(".data/meine notizen/zweite.yaml", "slug: zweite\ntext: planted-secret-value\n");
    let listed = client.request("resources/list", json!({}));
    let all = listed["result"]["resources"].as_array().cloned().unwrap_or_default();
    let found =
        |uri: &str| all.iter().find(|one| one["uri"] == uri).cloned().unwrap_or_else(|| panic!("{uri}: {listed}"));
    let document = found("nietz://documents/notes/notes/.data/meine%20notizen/erste.yaml");
    assert_eq!(document["mimeType"], "application/yaml");
    assert!(document["description"].as_str().is_some_and(|text| text.contains("nietz://schemas/notes/notes")));
    assert_eq!(found("nietz://schemas/notes/notes")["mimeType"], "application/schema+json");
    let text = read(&mut client, "nietz://documents/notes/notes/.data/meine%20notizen/erste.yaml");
    assert!(text["text"].as_str().is_some_and(|text| text.contains("The tide is high.")), "{text}");
    let schema = read(&mut client, "nietz://schemas/notes/notes");
    let schema: Value = serde_json::from_str(schema["text"].as_str().unwrap_or_default()).expect("it is JSON");
    assert_eq!(schema["properties"]["text"]["type"], "string");
    let secret = read(&mut client, "nietz://documents/notes/notes/.data/meine%20notizen/zweite.yaml");
    assert!(!secret.to_string().contains("planted-secret-value"), "{secret}");
    let templates = client.request("resources/templates/list", json!({}));
    assert!(templates.to_string().contains("nietz://documents/{flow}/{collection}/{+path}"), "{templates}");
    std::fs::write(env.home().join("secret.yaml"), "slug: x\ntext: no\n").expect("the home can be written");
    for uri in [
        "nietz://documents/notes/notes/.data/meine%20notizen/../../../home/secret.yaml",
        "nietz://documents/notes/notes/.data/meine%20notizen/%2e%2e/%2e%2e/secret.yaml",
        "nietz://documents/notes/notes//etc/passwd",
        "nietz://documents/notes/notes/flows/notes.lua",
        "nietz://documents/notes/none/x",
        "nietz://documents/none/notes/x",
        "nietz://documents/notes",
        "nietz://schemas/notes",
        "nietz://schemas/notes/none",
    ] {
        let refused = client.request("resources/read", json!({ "uri": uri }));
        assert!(refused["error"].is_object(), "{uri}: {refused}");
    }
}
