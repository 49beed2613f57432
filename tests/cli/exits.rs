//! The promise: each exit status means one thing, for scripts and for whatever watches them.

use std::time::Duration;

use crate::support::env::Env;
use crate::support::model_server::{Gate, ModelServer, Response};

const COMMANDS: &str = include_str!("../support/flows/commands.lua");
const FLOW: &str = include_str!("../support/flows/ends.lua");

fn silent(gate: &Gate) -> (ModelServer, Env) {
    let gate = gate.clone();
    let server = ModelServer::start(move |_| Response::text("hello to you").held_by(&gate));
    let env = Env::with(&server).flow("ends", FLOW);
    (server, env)
}

#[test]
fn each_way_to_end_has_its_exit_status() {
    // 3 and 6 are in `model_faults`.
    let cases = [
        ("fine", 0, ""),
        ("error", 1, "flow-error"),
        ("usage", 2, "usage"),
        ("invalid", 4, "document-invalid"),
        ("outside", 5, "path-refused"),
        ("ask", 7, "answer-missing"),
    ];
    for (how, exit, code) in cases {
        let env = Env::new().flow("ends", FLOW);
        let ended = env.run(["ends", how]).go();
        assert_eq!((ended.code, ended.failure().as_str()), (Some(exit), code), "{how}: {ended:?}");
    }
    let env = Env::new().flow("ends", FLOW);
    for wrong in [vec![], vec!["ends"], vec!["ends", "fine", "--no-such-option"], vec!["no-such-flow"]] {
        env.nietz(["run"]).args(wrong).go().exits(2);
    }
    env.nietz(["no-such-verb"]).go().exits(2);
}

#[test]
fn a_command_of_a_flow_is_one_whatever_stands_before_it() {
    let env = Env::new().flow("commands", COMMANDS);
    for arguments in [vec!["--json", "--seed", "1", "commands", "count", "3"], vec!["commands", "count", "3", "--json"]]
    {
        assert_eq!(env.nietz(["run"]).args(arguments).go().result(), 3);
        std::fs::remove_dir_all(env.path(".nietz")).expect("there was a run");
    }
    let wrong = env.nietz(["run", "commands", "--loud", "count", "3"]).go().exits(2);
    assert!(wrong.stderr.contains("`count` takes no param `loud`"), "{}", wrong.stderr);
}

#[test]
fn a_flow_without_the_permission_to_call_a_model_is_refused() {
    let env = Env::new().flow("ends", &FLOW.replace("permissions = { llm = true },", ""));
    let refused = env.nietz(["run", "--json", "ends", "talk"]).go().exits(5);
    assert_eq!(refused.failure(), "permission-refused");
}

#[test]
fn a_key_that_is_missing_or_a_configuration_that_is_wrong_ends_with_1() {
    let env = Env::new().flow("ends", FLOW).var("OPENAI_API_KEY", "");
    assert_eq!(env.run(["ends", "talk"]).go().exits(1).failure(), "key-missing");
    let env = Env::new().flow("ends", FLOW).config("models: {defualt: x}\n");
    let wrong = env.nietz(["run", "ends", "fine"]).go().exits(1);
    assert!(wrong.stderr.contains("error[config-invalid]") && wrong.stderr.contains("defualt"), "{}", wrong.stderr);
}

#[test]
fn a_waiting_run_goes_on_with_its_answer() {
    let env = Env::new().flow("ends", FLOW);
    let waiting = env.run(["ends", "ask"]).go().exits(7);
    assert_eq!(waiting.ending()["status"], "waiting");
    assert_eq!(env.resume().stdin("Xanthippe\n").go().result(), "Xanthippe");
}

#[test]
fn the_first_interrupt_lets_the_flow_end_well() {
    let gate = Gate::default();
    let (server, env) = silent(&gate);
    let running = env.run(["ends", "well"]).spawn();
    assert!(server.wait_for_calls(1, Duration::from_secs(30)));
    running.interrupt();
    let ended = running.end();
    assert_eq!(ended.result(), "abandoned");
    assert_eq!(ended.of_type("said")[0]["markdown"], "Goodbye.");
}

#[test]
fn an_interrupt_that_nobody_handles_ends_with_130_and_the_run_goes_on_later() {
    let gate = Gate::default();
    let (server, env) = silent(&gate);
    let running = env.run(["ends", "talk"]).spawn();
    assert!(server.wait_for_calls(1, Duration::from_secs(30)));
    running.interrupt();
    let ended = running.end().exits(130);
    assert_eq!((ended.failure().as_str(), &ended.ending()["status"]), ("interrupted", &"interrupted".into()));
    gate.open();
    assert_eq!(env.resume().go().result(), "hello to you");
}

#[test]
fn the_second_interrupt_stops_at_once_and_the_run_goes_on_later() {
    let gate = Gate::default();
    let (server, env) = silent(&gate);
    let running = env.run(["ends", "stubborn"]).spawn();
    assert!(server.wait_for_calls(1, Duration::from_secs(30)));
    running.interrupt();
    assert!(server.wait_for_calls(2, Duration::from_secs(30)), "the flow goes on after the first");
    running.interrupt();
    running.end().exits(130);
    gate.open();
    assert_eq!(env.resume().go().result(), "hello to you");
    assert_eq!(server.calls(), 3, "what was interrupted and handled is not done again");
}

#[test]
fn an_interrupt_at_an_open_question_ends_with_130_and_it_is_put_again() {
    let env = Env::new().flow("ends", FLOW);
    let mut running = env.run(["ends", "ask"]).spawn();
    running.wait_for("asked");
    running.interrupt();
    running.end().exits(130);
    let ended = env.resume().stdin("Xanthippe\n").go();
    assert_eq!((ended.result(), ended.asked()), ("Xanthippe".into(), vec!["name".to_owned()]));
}
