//! Tools of the Model Context Protocol, in both of its eras.

use serde_json::{Value, json};

use super::client::{Client, data, text};
use super::{TALK, journal, talk};
use crate::cli::flow_commands::POLL;
use crate::support::env::Env;
use crate::support::model_server::{Gate, ModelServer, Response};

fn told_by(env: &Env, run: &str) -> Vec<String> {
    let by = journal(env, run).into_iter().filter_map(|line| line["outcome"]["by"].as_str().map(str::to_owned));
    by.collect()
}

#[test]
fn questions_are_forms_of_the_client_s_and_the_person_s_own_answers() {
    let (server, env) = talk();
    let mut client = Client::legacy(&env, &[], true);
    let tools = client.request("tools/list", json!({}));
    let tool =
        tools["result"]["tools"].as_array().into_iter().flatten().find(|tool| tool["name"] == "flow_talk").cloned();
    let tool = tool.unwrap_or_else(|| panic!("{tools}"));
    assert_eq!(tool["inputSchema"]["required"], json!(["about"]));
    assert_eq!(tool["annotations"]["readOnlyHint"], true);
    let app = client.request("resources/read", json!({ "uri": tool["_meta"]["ui"]["resourceUri"] }));
    assert_eq!(app["result"]["contents"][0]["mimeType"], "text/html;profile=mcp-app", "{app}");
    client.answers = [json!("green"), json!("tea"), json!(true)].into();
    let result = client.call("flow_talk", json!({ "about": "the sea" }));
    assert_eq!(data(&result, "status"), "done", "{result}");
    let expected = json!({ "colour": "green", "more": "tea", "sure": true, "last": "You said more tea." });
    assert_eq!(result["structuredContent"]["result"], expected);
    let link = result["content"].as_array().and_then(|parts| parts.iter().find(|part| part["type"] == "resource_link"));
    let page = link.map(|link| client.request("resources/read", json!({ "uri": link["uri"] }))).unwrap_or_default();
    assert!(page["result"]["contents"][0]["text"].as_str().is_some_and(|text| text.contains("<html")), "{result}");
    let [colour, more, sure] = client.forms.as_slice() else { panic!("{:?}", client.forms) };
    let message = colour["message"].as_str().unwrap_or_default();
    assert!(message.contains("Ada: Let us talk about the sea.") && message.ends_with("Which colour?"), "{message}");
    let field = &colour["requestedSchema"]["properties"]["answer"];
    assert_eq!(field["oneOf"][0], json!({ "const": "red", "title": "Red, as roses" }));
    assert!(more["message"].as_str().is_some_and(|text| text.contains("Grace: You said colour green.")), "{more}");
    assert_eq!(sure["requestedSchema"]["properties"]["answer"]["type"], "boolean");
    assert_eq!((server.chats(), told_by(&env, data(&result, "run"))), (2, Vec::new()));
    assert_eq!(client.leave().code, Some(0));
}

#[test]
fn without_forms_the_person_s_words_are_relayed_and_approve_nothing() {
    let (server, env) = talk();
    let mut client = Client::legacy(&env, &[], false);
    let result = client.call("flow_talk", json!({ "about": "tea" }));
    assert_eq!((data(&result, "status"), server.chats()), ("waiting", 0));
    let run = data(&result, "run").to_owned();
    assert!(text(&result).contains("Which colour?\n- `red`: Red, as roses"), "{}", text(&result));
    let wrong = client.call("answer", json!({ "run": run, "answer": "blue" }));
    assert!(wrong["isError"] == true && text(&wrong).contains("answer with red or green"), "{wrong}");
    let mine = client.call("answer", json!({ "run": run, "answer": "red", "said_by": "model" }));
    assert!(mine["isError"] == true && text(&mine).contains("ask them"), "{mine}");
    let result = client.call("answer", json!({ "run": run, "answer": "red" }));
    assert!(text(&result).starts_with("**Grace:** You said colour red."), "{}", text(&result));
    let result = client.call("answer", json!({ "run": run, "answer": "milk", "said_by": "user" }));
    assert!(text(&result).contains("nietz resume"), "{}", text(&result));
    let refused = client.call("answer", json!({ "run": run, "answer": true }));
    assert!(refused["isError"] == true && text(&refused).contains("counts only from the person"), "{refused}");
    assert_eq!(client.leave().code, Some(0));
    // Nobody is at the run any more: the person goes on in a terminal, and says yes.
    let ended = loop {
        let ended = env.nietz(["resume", run.as_str(), "--json"]).stdin("yes\n").go();
        // The process of the client that left may take a moment to end.
        if ended.code != Some(1) {
            break ended;
        }
        assert!(ended.stderr.contains("run-busy"), "{ended:?}");
    };
    assert_eq!(ended.result()["sure"], true);
    assert_eq!((told_by(&env, &run), server.chats()), (vec!["relayed".to_owned(); 2], 2));
    let log = env.nietz(["log", run.as_str()]).go().exits(0).stdout;
    assert!(log.contains("red (told by a model, which relayed it)"), "{log}");
}

#[test]
fn a_model_answers_only_where_the_user_lets_it_and_that_is_recorded() {
    let (_server, env) = talk();
    let mut client = Client::legacy(&env, &["--model-may-answer"], false);
    let run = data(&client.call("flow_talk", json!({ "about": "tea" })), "run").to_owned();
    client.call("answer", json!({ "run": run, "answer": "red", "said_by": "model" }));
    client.call("answer", json!({ "run": run, "answer": "milk", "said_by": "user" }));
    let refused = client.call("answer", json!({ "run": run, "answer": "yes", "said_by": "model" }));
    assert!(text(&refused).contains("counts only from the person"), "{refused}");
    let done = client.call("answer", json!({ "run": run, "answer": "no", "said_by": "model" }));
    assert_eq!(data(&done, "status"), "done");
    assert_eq!(told_by(&env, &run), ["model", "relayed", "model"]);
}

#[test]
fn since_2026_a_call_returns_its_question_and_is_made_again_with_the_answer() {
    let (server, env) = talk();
    let mut client = Client::modern(&env, &[]);
    let call = |client: &mut Client, state: &Value, answer: &Value| {
        let mut params = json!({ "name": "flow_talk", "arguments": { "about": "tea" } });
        if !state.is_null() {
            params["requestState"] = state.clone();
            params["inputResponses"] = json!({ "answer": { "action": "accept", "content": { "answer": answer } } });
        }
        let reply = client.request("tools/call", params);
        assert!(reply["error"].is_null(), "{reply}");
        reply["result"].clone()
    };
    let first = call(&mut client, &Value::Null, &Value::Null);
    assert_eq!(first["resultType"], "input_required", "{first}");
    let form = &first["inputRequests"]["answer"];
    assert_eq!(form["method"], "elicitation/create", "{form}");
    let second = call(&mut client, &first["requestState"], &json!("red"));
    assert!(
        second["inputRequests"]["answer"]["params"]["message"].as_str().is_some_and(|text| text.ends_with("And then?"))
    );
    // The same again, as after a connection that was lost: nothing is asked, answered or paid for twice.
    let again = call(&mut client, &first["requestState"], &json!("green"));
    assert_eq!(
        again["requestState"].as_str().map(|state| state.rsplit_once(' ').map(|it| it.0.to_owned())),
        second["requestState"].as_str().map(|state| state.rsplit_once(' ').map(|it| it.0.to_owned()))
    );
    assert_eq!(server.chats(), 1);
    // Another process goes on with it: all that it needs is in the state and in the journal.
    assert_eq!(client.leave().code, Some(0));
    let mut client = Client::modern(&env, &[]);
    let third = loop {
        let third = call(&mut client, &second["requestState"], &json!("milk"));
        if third["isError"] != true {
            break third;
        }
    };
    let last = call(&mut client, &third["requestState"], &json!(true));
    assert_eq!(last["structuredContent"]["result"]["sure"], true, "{last}");
    assert_eq!(last["structuredContent"]["result"]["colour"], "red");
    assert_eq!(server.chats(), 2);
}

/// A client makes one call again some ten times before it gives up; what comes after is asked by another call.
#[test]
fn since_2026_the_other_tools_return_questions_and_take_their_answers() {
    let (_server, env) = talk();
    let mut client = Client::modern(&env, &[]);
    let begun = client.request("tools/call", json!({ "name": "flow_talk", "arguments": { "about": "tea" } }));
    let state = begun["result"]["requestState"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned();
    let run = state.split(' ').next().unwrap_or_default().to_owned();
    let again = |client: &mut Client, tool: &str, state: &Value, answer: &Value| {
        let mut params = json!({ "name": tool, "arguments": { "run": run } });
        if !state.is_null() {
            params["requestState"] = state.clone();
            params["inputResponses"] = json!({ "answer": { "action": "accept", "content": { "answer": answer } } });
        }
        client.request("tools/call", params)["result"].clone()
    };
    let asked = again(&mut client, "resume", &Value::Null, &Value::Null);
    let second = again(&mut client, "resume", &asked["requestState"], &json!("red"));
    assert!(second["inputRequests"].to_string().contains("And then?"), "{second}");
    let third = again(&mut client, "wait", &second["requestState"], &json!("milk"));
    assert!(third["inputRequests"].to_string().contains("Merge it?"), "{third}");
    let refused = again(&mut client, "cancel", &third["requestState"], &json!(true));
    assert_eq!(refused["isError"], true, "{refused}");
    let done = again(&mut client, "resume", &third["requestState"], &json!(true));
    assert_eq!(done["structuredContent"]["result"]["sure"], true, "{done}");
}

#[test]
fn a_long_run_returns_in_time_is_told_of_and_waited_for() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = ModelServer::start(move |_| Response::text("At last.").held_by(&held));
    let flow = r#"
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local ui = require("@nietz/ui")
return nietz.flow { name = "long", summary = "Takes long", host_api = 2, permissions = { llm = true }, run = function()
  ui.progress("round", 1, 3)
  return llm.chat { prompt = "x", label = "Listening" }.text
end }"#;
    let env = Env::with(&server).without("NIETZ_RUN").flow("long", flow);
    let mut client = Client::legacy(&env, &["--patience", "1s"], true);
    let id =
        client.send("tools/call", json!({ "name": "flow_long", "arguments": {}, "_meta": { "progressToken": "p1" } }));
    let result = client.reply(id)["result"].clone();
    assert_eq!(data(&result, "status"), "running", "{result}");
    let run = data(&result, "run").to_owned();
    let progress: Vec<&Value> = client.told.iter().filter(|told| told["method"] == "notifications/progress").collect();
    assert!(
        progress.iter().any(|told| {
            told["params"]["message"].as_str().is_some_and(|text| text.ends_with("round 1/3 · Listening"))
        }),
        "{progress:?}"
    );
    assert!(progress.iter().all(|told| told["params"]["progressToken"] == "p1"));
    assert!(text(&client.call("runs", json!({ "status": "running" }))).contains(&run));
    let still = client.call("wait", json!({ "run": run, "seconds": 0 }));
    assert_eq!(data(&still, "status"), "running");
    gate.open();
    let done = client.call("wait", json!({ "run": run, "seconds": 60 }));
    assert_eq!(done["structuredContent"]["result"], "At last.");
    let page = client.request("resources/read", json!({ "uri": format!("nietz://runs/{run}/report") }));
    assert!(page["result"]["contents"][0]["text"].as_str().is_some_and(|text| text.contains("<html")), "{page}");
    let shown = client.request("resources/read", json!({ "uri": format!("nietz://runs/{run}") }));
    assert_eq!(shown["result"]["contents"][0]["mimeType"], "text/markdown", "{shown}");
}

#[test]
fn a_call_that_is_cancelled_stops_its_run_which_can_go_on() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = ModelServer::start(move |_| Response::text("Well.").held_by(&held));
    let env = Env::with(&server).without("NIETZ_RUN").flow("talk", TALK);
    let mut client = Client::legacy(&env, &[], true);
    let id = client.send("tools/call", json!({ "name": "flow_talk", "arguments": { "about": "tea" } }));
    let form = client.until_asked();
    client.fill(&form, &json!("red"));
    assert!(server.wait_for_calls(1, std::time::Duration::from_secs(60)));
    client.notify("notifications/cancelled", json!({ "requestId": id, "reason": "the user" }));
    let run = loop {
        let listed = text(&client.call("runs", json!({})));
        if listed.contains("interrupted") {
            break listed.trim_start_matches("- ").split(' ').next().unwrap_or_default().to_owned();
        }
    };
    gate.open();
    client.answers = [json!("milk"), json!(false)].into();
    let done = client.call("resume", json!({ "run": run }));
    assert_eq!(done["structuredContent"]["result"]["colour"], "red", "{done}");
}

/// Who stops a run and goes on with it at once is not told of the stop: CI saw that on 2026-11-27, where a run was listed as
/// interrupted before its process had said so.
#[test]
fn a_run_that_is_stopped_is_gone_on_with_at_once() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = ModelServer::start(move |_| Response::text("Well.").held_by(&held));
    let env = Env::with(&server).without("NIETZ_RUN").flow("talk", TALK);
    let mut client = Client::legacy(&env, &["--patience", "1s"], true);
    client.answers = [json!("red")].into();
    let called = client.call("flow_talk", json!({ "about": "tea" }));
    assert_eq!(data(&called, "status"), "running", "{called}");
    let run = data(&called, "run").to_owned();
    let stopped = text(&client.call("cancel", json!({ "run": run })));
    assert!(stopped.contains("`resume` goes on with it"), "{stopped}");
    let resumed = client.call("resume", json!({ "run": run }));
    assert_eq!(data(&resumed, "status"), "running", "{resumed}");
    gate.open();
    client.answers = [json!("milk"), json!(false)].into();
    let done = client.call("wait", json!({ "run": run, "seconds": 60 }));
    assert_eq!(done["structuredContent"]["result"]["colour"], "red", "{done}");
}

#[test]
fn only_flows_that_the_user_trusts_are_offered() {
    let (_server, env) = talk();
    let names = |client: &mut Client| {
        let tools = client.request("tools/list", json!({}));
        let names = tools["result"]["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    let trusted = names(&mut Client::legacy(&env, &[], true));
    assert!(trusted.contains(&"flow_talk".to_owned()) && trusted.contains(&"flow_council".to_owned()), "{trusted:?}");
    let few = names(&mut Client::legacy(&env, &["--flows", "council,talk"], true));
    assert_eq!(few.iter().filter(|name| name.starts_with("flow_")).count(), 2, "{few:?}");
    std::fs::remove_file(env.home().join("trust.yaml")).expect("it is there");
    let untrusted = names(&mut Client::legacy(&env, &[], true));
    assert!(
        !untrusted.contains(&"flow_talk".to_owned()) && untrusted.contains(&"flow_council".to_owned()),
        "{untrusted:?}"
    );
    let refused = env.nietz(["mcp", "--flows", "talk"]).go().exits(2);
    assert!(refused.stderr.contains("flow-not-found") && refused.stderr.contains("nietz trust add"), "{refused:?}");
}

#[test]
fn a_command_that_only_task_spawn_begins_is_offered_to_nobody() {
    let env = Env::new().flow("poll", POLL);
    let mut client = Client::legacy(&env, &["--flows", "poll"], true);
    let tools = client.request("tools/list", json!({})).to_string();
    assert!(tools.contains("Lists them") && !tools.contains("vote"), "{tools}");
    let called = client.call("flow_poll", json!({ "command": "vote" }));
    assert!(called.to_string().contains("list"), "those that there are: {called}");
    assert!(!env.path(".nietz/runs").exists(), "nothing was begun");
}

#[test]
fn a_flow_is_a_prompt_whose_text_tells_a_model_what_to_call() {
    let (_server, env) = talk();
    let mut client = Client::legacy(&env, &[], true);
    let prompts = client.request("prompts/list", json!({}));
    assert!(prompts.to_string().contains("flow_talk"), "{prompts}");
    let prompt = client.request("prompts/get", json!({ "name": "flow_talk", "arguments": { "about": "the sea" } }));
    let said = prompt["result"]["messages"][0]["content"]["text"].as_str().unwrap_or_default();
    assert!(said.contains("`flow_talk`") && said.contains("the sea"), "{prompt}");
}

#[test]
fn a_flow_that_was_changed_is_read_again() {
    let (_server, env) = talk();
    let about = |env: &Env| {
        let listed = Client::legacy(env, &["--flows", "talk"], true).request("tools/list", json!({}));
        listed["result"]["tools"][0]["description"].as_str().unwrap_or_else(|| panic!("{listed}")).to_owned()
    };
    assert!(about(&env).starts_with("Talks."));
    // It is known by now, and what is known is not believed of another text.
    assert!(about(&env).starts_with("Talks."));
    env.write("flows/talk.lua", TALK.replace("\"Talks\"", "\"Speaks\""));
    assert!(about(&env).starts_with("Speaks."), "{}", about(&env));
}

/// What a person of an inspector saw on 2026-11-26: a command (`/hint`) put the question again, and it stood nowhere any more; a form
/// that was sent as it was began was refused; a list of runs stayed as it was.
#[test]
fn a_form_sent_as_it_is_begins_a_run_and_a_command_keeps_the_question_in_sight() {
    let flow = r#"
local nietz = require("@nietz")
local ui = require("@nietz/ui")
return nietz.flow { name = "hints", summary = "Asks", host_api = 2,
  params = { about = { type = "string", positional = true, help = "What about" }, memory = { type = "boolean", default = true,
    help = "Forget what was" }, names = { type = "string", many = true, default = {}, help = "Who" } },
  commands = { list = { summary = "Lists", params = { format = { type = "string", choices = { "text", "issue" }, default = "text",
    help = "How" }, all = { type = "boolean", default = false, help = "All" } }, run = function() end } },
  run = function(ctx)
    ui.say("What did the log show?")
    while true do
      local said, command = ui.ask { id = "a", prompt = "Say it", commands = { { name = "hint", summary = "puts it narrower" } } }
      if command == nil then return { said = said, memory = ctx.params.memory, names = #ctx.params.names } end
      ui.say("Look at its last line.")
    end
  end,
}"#;
    let env = Env::new().without("NIETZ_RUN").flow("hints", flow);
    let mut client = Client::legacy(&env, &[], true);
    client.answers = [json!("/hint"), json!("a stale key")].into();
    let sent = json!({ "about": "prices", "memory": true, "names": {}, "format": "text", "all": false });
    let result = client.call("flow_hints", sent);
    assert_eq!(
        result["structuredContent"]["result"],
        json!({ "said": "a stale key", "memory": true, "names": 0 }),
        "{result}"
    );
    let messages: Vec<&str> = client.forms.iter().filter_map(|form| form["message"].as_str()).collect();
    assert_eq!(
        messages,
        ["What did the log show?\n\nSay it", "What did the log show?\n\nLook at its last line.\n\nSay it"]
    );
    let told = client.told.iter().filter(|told| told["method"] == "notifications/resources/list_changed");
    assert_eq!(told.count(), 2, "that a run has begun, and that it has ended: {:?}", client.told);
    let listed = client.request("resources/list", json!({}));
    assert_eq!(listed["result"]["resources"][0]["title"], "hints: prices", "{listed}");
}
