//! The promise of the statuses and of the rows of validation: each says what the specification means by it, and no command is
//! run twice on the same files.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::basics::{CHECK, call, column, divided, env, replace, rows, shoot, step};
use crate::support::env::Env;
use crate::support::kills;
use crate::support::model_server::{Gate, ModelServer, Response};

/// A command that fails at once, unless something is there for which it never ends.
const PATIENT: &str = "test ! -e slow.txt || exec sleep 100000; sh check.sh";

#[test]
fn what_shots_side_by_side_wait_for_is_over_as_soon_as_one_validates() {
    for waits_for in ["a reply", "a command", "validation"] {
        let gate = Arc::new(Gate::default());
        let (held, count) = (gate.clone(), AtomicU64::new(0));
        let server = ModelServer::start(move |request| {
            let is_slow = request.body["messages"].to_string().contains("\"name\":\"write_file\"");
            match step(request) {
                0 if count.fetch_add(1, Ordering::SeqCst) == 0 => replace("todo", "done").held_by(&held),
                0 => call("write_file", &json!({ "path": "slow.txt", "text": "x" })),
                1 if is_slow && waits_for == "a reply" => {
                    held.open();
                    Response::silence()
                }
                1 if is_slow && waits_for == "a command" => call("run", &json!({ "command": "sleep 100000" })),
                _ => Response::text("Done."),
            }
        });
        let env = env(&server);
        let arguments = ["shots-on-goal", "--model-a", "openai/a", "--validate", PATIENT, "--shots", "2"];
        let mut running = env.run(arguments).args(["say done in work.txt"]).spawn();
        running.until(|| match waits_for {
            "a command" => begun(&env, "sleep 100000", "program") == 1,
            "validation" => begun(&env, PATIENT, "shell") == 2,
            _ => gate.is_open(),
        });
        gate.open();
        running.close();
        let ended = running.end();
        assert_eq!(ended.result()["status"], "success", "{waits_for}: {ended:?}");
        let results = rows(&env, "attempt_result");
        let (first, stopped) = match results.as_slice() {
            [one, other] if one["status"] == "success" => (one, other),
            [one, other] => (other, one),
            _ => panic!("{waits_for}: {results:?}"),
        };
        let detail = format!("superseded: attempt {} validated before this one ended", first["attempt_id"]);
        assert_eq!((&stopped["status"], &stopped["status_detail"]), (&json!("error"), &json!(detail)), "{waits_for}");
        // Nothing was validated for it, and what it had done is on its branch, also the command that was ended.
        assert_eq!(column(&env, "validation_run", "attempt_result_id"), [first["id"].clone()], "{waits_for}");
        assert!(stopped["diff"].as_str().unwrap_or_default().contains("slow.txt"), "{waits_for}: {stopped}");
        let outputs = column(&env, "tool_call", "output");
        let ran = outputs.iter().filter(|text| text.as_str().is_some_and(|text| text.contains("it was stopped")));
        assert_eq!(ran.count(), usize::from(waits_for == "a command"), "{waits_for}: {outputs:?}");
        // Going again gives back the same.
        let again = env.resume().go();
        assert_eq!((again.result(), rows(&env, "attempt_result")), (ended.result(), results), "{waits_for}");
        assert_eq!(env.nietz(["verify", "r1"]).go().code, Some(0), "{waits_for}");
    }
}

#[test]
fn every_step_of_a_validation_is_run_and_has_its_row_unless_the_first_failure_is_to_end_it() {
    for (more, exits) in [(&[][..], &[1, 0, 2][..]), (&["--fail-fast"][..], &[1][..])] {
        let server = ModelServer::start(|request| match step(request) {
            0 => replace("todo", "nearly"),
            _ => Response::text("Done."),
        });
        let env = env(&server);
        let steps = ["--validate", CHECK, "--validate", "grep -q read big/README", "--validate", "grep -q x nowhere"];
        shoot(&env, &[&steps[..], &["--max-breakdowns", "0"], more].concat()).refused();
        assert_eq!(column(&env, "validation_run", "exit_code"), exits, "{more:?}");
        let detail = column(&env, "attempt_result", "status_detail").remove(0);
        let said = detail.as_str().unwrap_or_default();
        assert!(said.starts_with("`sh check.sh` exited with 1"), "{said}");
        assert_eq!(said.contains("`grep -q x nowhere` exited with 2"), more.is_empty(), "{said}");
    }
}

/// How often a command was begun: `shell` for the user's own, `program` for a model's line of a shell.
fn begun(env: &Env, command: &str, by: &str) -> usize {
    let text = std::fs::read_to_string(env.journal_path()).unwrap_or_default();
    let given = match by {
        "shell" => format!("\"shell\":{}", json!(command)),
        _ => format!("\"program\":[\"sh\",\"-c\",{}]", json!(command)),
    };
    text.lines().filter(|line| line.contains(&given)).count()
}

#[test]
fn no_command_is_run_twice_on_the_same_files_and_each_result_has_its_rows() {
    // An attempt that changes nothing has what was seen at the start.
    let server = ModelServer::start(|_| Response::text("I would rather not."));
    let idle = env(&server);
    shoot(&idle, &["--validate", CHECK, "--max-breakdowns", "0"]).refused();
    assert_eq!((begun(&idle, CHECK, "shell"), column(&idle, "validation_run", "exit_code")), (1, vec![json!(1)]));
    assert!(
        column(&idle, "attempt_result", "status_detail")[0].as_str().unwrap_or_default().starts_with("unchanged: ")
    );
    let server = ModelServer::start(divided);
    let parts = env(&server);
    let ended = shoot(&parts, &["--validate", CHECK, "--validate", "grep -q read big/README", "--run", "grep"]);
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
    // At the start, after the first attempt, and on the parts together: never on the last part alone.
    assert_eq!(begun(&parts, CHECK, "shell"), 3);
    let last = rows(&parts, "validation_run").pop().expect("there are rows");
    assert_eq!((&last["attempt_result_id"], &last["exit_code"]), (&json!(5), &json!(0)));
}

/// However the shots of a round were under way: each has one result, and one of them is merged.
#[test]
fn killed_with_shots_side_by_side_a_session_comes_to_its_end_without_a_fault_in_the_record() {
    let start = || {
        let count = AtomicU64::new(0);
        ModelServer::start(move |request| match step(request) {
            0 if count.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) => replace("todo", "done"),
            0 => call("write_file", &json!({ "path": "other.txt", "text": "x" })),
            1 => call("list_folder", &json!({ "path": "big" })),
            2 => call("list_folder", &json!({ "path": "." })),
            _ => Response::text("Done.").usage(10, 5),
        })
    };
    let more = ["--validate", CHECK, "--shots", "3", "--max-breakdowns", "0"];
    let server = start();
    let reference = env(&server);
    shoot(&reference, &more).result();
    let lines = reference.journal().lines.len() as u64;
    kills::for_each(&kills::points(lines, 6), |line| {
        let server = start();
        let env = env(&server);
        let models = ["shots-on-goal", "--model-a", "openai/a", "--model-b", "openai/b"];
        let call = env.run(models.into_iter().chain(more)).args(["say done in work.txt"]);
        let killed = call.var("NIETZ_FAULT", &format!("kill@{line}")).go();
        if killed.signal.is_some() {
            let ended = env.resume().go();
            assert_eq!(ended.result()["status"], "success", "killed after line {line}: {ended:?}");
        }
        let mut attempts: Vec<u64> =
            column(&env, "attempt_result", "attempt_id").iter().filter_map(Value::as_u64).collect();
        attempts.sort_unstable();
        assert_eq!(attempts, [1, 2, 3], "killed after line {line}");
        assert_eq!(rows(&env, "merge").len(), 1, "killed after line {line}");
        for entry in std::fs::read_dir(env.path(".nietz/shots-on-goal/r1")).expect("there is a record") {
            let path = entry.expect("it can be read").path();
            env.nietz(["check", path.to_str().expect("UTF-8")]).go().exits(0);
        }
    });
}
