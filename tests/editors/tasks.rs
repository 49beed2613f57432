//! Runs as tasks: a call returns at once, and the client asks how far it is, from whichever server is there.

use serde_json::{Value, json};

use super::client::Client;
use super::talk;
use crate::support::env::Env;
use crate::support::model_server::{Gate, ModelServer, Response};

/// Asks until the task is no longer on its way.
fn settled(client: &mut Client, task: &str) -> Value {
    loop {
        let reply = client.request("tasks/get", json!({ "taskId": task }));
        assert!(reply["error"].is_null(), "{reply}");
        if reply["result"]["status"] != "working" {
            return reply["result"].clone();
        }
    }
}

/// Answers the one question of a task, and returns its name.
fn answer(client: &mut Client, task: &str, asked: &Value, action: &str, answer: &Value) -> String {
    let requests = asked["inputRequests"].as_object().unwrap_or_else(|| panic!("{asked}"));
    let effect = requests.keys().next().expect("a question").clone();
    let response = json!({ "action": action, "content": { "answer": answer } });
    let reply = client.request("tasks/update", json!({ "taskId": task, "inputResponses": { &effect: response } }));
    assert!(reply["error"].is_null(), "{reply}");
    effect
}

fn begin(client: &mut Client) -> String {
    let begun = client.request("tools/call", json!({ "name": "flow_talk", "arguments": { "about": "tea" } }));
    assert_eq!(begun["result"]["resultType"], "task", "{begun}");
    begun["result"]["taskId"].as_str().expect("a task").to_owned()
}

fn chosen(client: &mut Client, task: &str, answers: &[Value]) -> Value {
    for given in answers {
        let asked = settled(client, task);
        assert_eq!(asked["status"], "input_required", "{asked}");
        answer(client, task, &asked, "accept", given);
    }
    settled(client, task)
}

#[test]
fn a_task_is_asked_answered_and_completed_with_the_run_s_result() {
    let (server, env) = talk();
    let mut client = Client::with_tasks(&env, &[]);
    let task = begin(&mut client);
    let asked = settled(&mut client, &task);
    let form = asked["inputRequests"].as_object().and_then(|all| all.values().next()).cloned().unwrap_or_default();
    assert_eq!(form["method"], "elicitation/create", "{asked}");
    assert!(form["params"]["message"].as_str().is_some_and(|text| text.contains("Ada: Let us talk")), "{form}");
    let done = chosen(&mut client, &task, &[json!("red"), json!("milk"), json!(true)]);
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(done["result"]["structuredContent"]["result"]["colour"], "red", "{done}");
    assert_eq!(server.chats(), 2);
    // It is the run, and stays what it is.
    let again = settled(&mut client, &task);
    assert_eq!(again["result"]["structuredContent"]["result"], done["result"]["structuredContent"]["result"]);
    assert!(env.nietz(["runs", "--json"]).go().exits(0).stdout.contains(&task));
}

/// The official inspector is such a client: `--cli`, 2.12.0.
#[test]
fn a_client_of_the_era_before_is_given_results_whatever_extension_it_says_it_has() {
    let (_server, env) = talk();
    let capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let mut client = Client::legacy_with(&env, &[], &capabilities);
    let told = client.request("tools/call", json!({ "name": "flow_talk", "arguments": { "about": "tea" } }));
    assert_eq!(told["result"]["structuredContent"]["status"], "waiting", "{told}");
}

#[test]
fn a_task_outlives_its_server() {
    let (server, env) = talk();
    let mut client = Client::with_tasks(&env, &[]);
    let task = begin(&mut client);
    let asked = settled(&mut client, &task);
    answer(&mut client, &task, &asked, "accept", &json!("green"));
    let second = settled(&mut client, &task);
    client.kill();
    let mut client = Client::with_tasks(&env, &[]);
    // The process that was left may take a moment to end.
    let still = settled(&mut client, &task);
    assert_eq!(
        still["inputRequests"].as_object().map(|all| all.keys().next().cloned()),
        second["inputRequests"].as_object().map(|all| all.keys().next().cloned()),
        "{still}"
    );
    let done = loop {
        let asked = settled(&mut client, &task);
        let requests = asked["inputRequests"].as_object().expect("it asks").clone();
        let effect = requests.keys().next().expect("a question");
        let response = json!({ "action": "accept", "content": { "answer": "milk" } });
        let reply = client.request("tasks/update", json!({ "taskId": task, "inputResponses": { effect: response } }));
        if reply["error"].is_null() {
            break chosen(&mut client, &task, &[json!(false)]);
        }
        assert!(reply.to_string().contains("run-busy"), "{reply}");
    };
    assert_eq!(done["result"]["structuredContent"]["result"]["sure"], false, "{done}");
    assert_eq!(server.chats(), 2);
}

#[test]
fn a_person_who_does_not_answer_ends_the_task_and_not_the_run() {
    let (_server, env) = talk();
    let mut client = Client::with_tasks(&env, &[]);
    let task = begin(&mut client);
    let asked = settled(&mut client, &task);
    answer(&mut client, &task, &asked, "decline", &Value::Null);
    let put_off = settled(&mut client, &task);
    assert_eq!(put_off["status"], "completed", "{put_off}");
    assert_eq!(put_off["result"]["structuredContent"]["status"], "waiting", "{put_off}");
}

#[test]
fn a_task_is_cancelled_and_its_run_goes_on_later() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = ModelServer::start(move |_| Response::text("Well.").held_by(&held));
    let env = Env::with(&server).without("NIETZ_RUN").flow("talk", super::TALK);
    let mut client = Client::with_tasks(&env, &[]);
    let task = begin(&mut client);
    let asked = settled(&mut client, &task);
    answer(&mut client, &task, &asked, "accept", &json!("red"));
    assert!(server.wait_for_calls(1, std::time::Duration::from_secs(60)));
    let reply = client.request("tasks/cancel", json!({ "taskId": task }));
    assert!(reply["error"].is_null(), "{reply}");
    assert_eq!(settled(&mut client, &task)["status"], "cancelled");
    gate.open();
    for wrong in ["nothing", "../../etc", ""] {
        let reply = client.request("tasks/get", json!({ "taskId": wrong }));
        assert_eq!(reply["error"]["code"], -32602, "{reply}");
    }
}
