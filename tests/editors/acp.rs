//! The Agent Client Protocol: sessions whose prompts begin runs and answer their questions.

use serde_json::{Value, json};

use super::client::Client;
use super::talk;
use crate::support::env::Env;

/// A client with a session.
struct Editor {
    client: Client,
    session: String,
    modes: Value,
}

impl Editor {
    fn start(env: &Env, has_forms: bool) -> Editor {
        let mut editor = Editor::unopened(env, has_forms);
        let cwd = env.workspace().display().to_string();
        let opened = editor.client.request("session/new", json!({ "cwd": cwd, "mcpServers": [] }));
        editor.session = opened["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{opened}")).to_owned();
        editor.modes = opened["result"]["modes"].clone();
        editor
    }

    fn unopened(env: &Env, has_forms: bool) -> Editor {
        let mut client = Client::start(env, &["acp", "--model", "openai/test"]);
        let capabilities = if has_forms { json!({ "elicitation": { "form": {} } }) } else { json!({}) };
        let begun = client.request("initialize", json!({ "protocolVersion": 1, "clientCapabilities": capabilities }));
        assert_eq!(begun["result"]["agentCapabilities"]["loadSession"], true, "{begun}");
        Editor { client, session: String::new(), modes: Value::Null }
    }

    /// Says something, and returns why the turn ended and what was shown.
    fn say(&mut self, text: &str) -> (String, String) {
        self.client.told.clear();
        let params = json!({ "sessionId": self.session, "prompt": [{ "type": "text", "text": text }] });
        let reply = self.client.request("session/prompt", params);
        let reason = reply["result"]["stopReason"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned();
        (reason, self.shown("agent_message_chunk"))
    }

    fn shown(&self, kind: &str) -> String {
        let updates = self.client.told.iter().map(|told| &told["params"]["update"]);
        let texts = updates.filter(|update| update["sessionUpdate"] == kind);
        texts.filter_map(|update| update["content"]["text"].as_str()).collect()
    }
}

#[test]
fn a_slash_command_begins_a_run_and_plain_turns_answer_it() {
    let (server, env) = talk();
    let mut editor = Editor::start(&env, false);
    assert!(editor.modes["availableModes"].to_string().contains("council"), "{}", editor.modes);
    let (reason, shown) = editor.say("/talk the sea");
    assert_eq!(reason, "end_turn");
    assert!(
        shown.contains("**Ada:** Let us talk about **the sea**.") && shown.contains("- `red`: Red, as roses"),
        "{shown}"
    );
    let (_, shown) = editor.say("blue");
    assert!(shown.contains("answer with red or green"), "{shown}");
    let (_, shown) = editor.say("red");
    assert!(shown.contains("**Grace:** You said colour red.") && shown.contains("And then?"), "{shown}");
    // The editor is closed, and opened again tomorrow.
    let session = editor.session.clone();
    assert_eq!(editor.client.leave().code, Some(0));
    let mut editor = Editor::unopened(&env, false);
    let cwd = env.workspace().display().to_string();
    let listed = editor.client.request("session/list", json!({ "cwd": cwd }));
    assert!(listed.to_string().contains(&session), "{listed}");
    let loaded = editor.client.request("session/load", json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] }));
    assert!(loaded["error"].is_null(), "{loaded}");
    assert!(editor.shown("agent_message_chunk").contains("And then?"), "{:?}", editor.client.told);
    editor.session = session;
    let shown = loop {
        let (_, shown) = editor.say("milk");
        if !shown.contains("run-busy") {
            break shown;
        }
    };
    assert!(shown.contains("Merge it?"), "{shown}");
    let (reason, _) = editor.say("yes");
    assert_eq!((reason.as_str(), server.chats()), ("end_turn", 2));
    let ended = env.nietz(["runs", "--json"]).go().exits(0).stdout;
    assert!(ended.contains("\"done\""), "{ended}");
}

#[test]
fn questions_are_forms_where_the_editor_has_them() {
    let (server, env) = talk();
    let mut editor = Editor::start(&env, true);
    editor.client.answers = [json!("green"), json!("tea"), json!(true)].into();
    let (reason, shown) = editor.say("/talk the sea");
    assert_eq!((reason.as_str(), server.chats(), editor.client.forms.len()), ("end_turn", 2, 3), "{shown}");
    assert!(editor.client.forms[0]["sessionId"] == editor.session.as_str(), "{:?}", editor.client.forms[0]);
}

#[test]
fn a_mode_is_a_flow_that_plain_words_begin() {
    let (_server, env) = talk();
    let mut editor = Editor::start(&env, false);
    let (_, shown) = editor.say("hello");
    assert!(shown.contains("`/talk`: Talks"), "{shown}");
    let set = editor.client.request("session/set_mode", json!({ "sessionId": editor.session, "modeId": "talk" }));
    assert!(set["error"].is_null(), "{set}");
    let wrong = editor.client.request("session/set_mode", json!({ "sessionId": editor.session, "modeId": "none" }));
    assert!(wrong["error"].is_object());
    let (_, shown) = editor.say("the sea");
    assert!(shown.contains("**the sea**"), "{shown}");
}

#[test]
fn what_no_editor_should_send_ends_nothing() {
    let (_server, env) = talk();
    let mut editor = Editor::start(&env, false);
    assert_eq!(editor.client.request("no/such", json!({}))["error"]["code"], -32601);
    for (method, params) in [
        ("session/new", json!({ "cwd": "relative", "mcpServers": [] })),
        ("session/new", json!({ "cwd": "/nowhere/at/all", "mcpServers": [] })),
        ("session/new", json!({})),
        ("session/load", json!({ "sessionId": "../../x", "cwd": env.workspace(), "mcpServers": [] })),
        ("session/prompt", json!({ "sessionId": "none", "prompt": [] })),
        ("session/prompt", json!({ "sessionId": editor.session, "prompt": "text" })),
    ] {
        let reply = editor.client.request(method, params.clone());
        assert!(reply["error"].is_object(), "{method} {params}: {reply}");
    }
    editor.client.raw(&"x".repeat(20 << 20));
    editor.client.raw("{\"id\": {}}");
    editor.client.raw("[");
    let (_, shown) = editor.say("/talk --trust=1 x");
    assert!(shown.contains("takes no --trust"), "{shown}");
    let (_, shown) = editor.say("/talk @/etc/passwd");
    assert!(shown.contains("**@/etc/passwd**"), "{shown}");
}
