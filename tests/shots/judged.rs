//! The promise of judging: work is judged by what it left and not by how it ended, and what came nearer is not thrown away.

use serde_json::{Value, json};

use super::basics::{CHECK, call, column, env, killed_at, replace, rows, shoot, step, task};
use crate::support::env::Env;
use crate::support::git::{git, init};
use crate::support::model_server::{ModelServer, Request, Response};

#[test]
fn what_validates_is_a_success_however_the_model_has_ended() {
    // Ended by the limit of calls, by silence, and by a provider that takes no more.
    type End = fn() -> Response;
    let cases: [(&[&str], End, &str); 3] = [
        (&["--max-tools", "1"], || call("list_folder", &json!({ "path": "." })), "tool_limit: "),
        (&["--idle", "2"], Response::silence, "timeout: nothing happened for 2 s"),
        (&[], || Response::error(400, "context_length_exceeded: too long"), "error: "),
    ];
    for (more, end, detail) in cases {
        let server = ModelServer::start(move |request| match step(request) {
            0 => replace("todo", "done"),
            _ => end(),
        });
        let env = env(&server);
        let ended = shoot(&env, &[&["--validate", CHECK, "--max-breakdowns", "0"], more].concat());
        assert_eq!(ended.result()["status"], "success", "{detail}: {ended:?}");
        let result = rows(&env, "attempt_result").remove(0);
        assert_eq!(result["status"], "success", "{result}");
        assert!(result["status_detail"].as_str().unwrap_or_default().starts_with(detail), "{result}");
        assert_eq!(column(&env, "validation_run", "exit_code"), [0], "{detail}");
        assert_eq!(git(&env.workspace(), ["show", "nietz/r1:work.txt"]), "one\ndone\nthree");
    }
}

#[test]
fn what_does_not_validate_keeps_the_status_of_its_end_and_its_row() {
    let server = ModelServer::start(|request| match step(request) {
        0 => replace("todo", "nearly"),
        _ => Response::error(400, "context_length_exceeded: too long"),
    });
    let env = env(&server);
    shoot(&env, &["--validate", CHECK, "--max-breakdowns", "0"]).refused();
    let result = rows(&env, "attempt_result").remove(0);
    assert_eq!(result["status"], "error", "{result}");
    assert!(result["status_detail"].as_str().unwrap_or_default().ends_with("`sh check.sh` exited with 1"), "{result}");
    assert_eq!(column(&env, "validation_run", "exit_code"), [1]);
}

/// Three tests, as TAP: two of them fail at first.
const TAP: &str = "echo 1..3\necho 'ok 1 - is there'\nend=0\n\
    for word in two three; do\n  grep -q $word words.txt && echo \"ok 2 - says $word\" && continue\n  \
    printf 'not ok 2 - says %s\\n  ---\\n  error: expected the word %s\\n  ...\\n' $word $word\n  end=1\ndone\nexit $end\n";

fn words(server: &ModelServer) -> Env {
    let env = Env::with(server).file("words.txt", "one\n").file("check.sh", TAP);
    init(&env.workspace());
    env
}

/// A model that does a half, then the other, and cannot break down.
fn halves(request: &Request) -> Response {
    let is_a = !task(request).contains("What was tried before");
    match (task(request).contains("break the goal down"), step(request)) {
        (true, _) => Response::text("I cannot."),
        (_, 0) => {
            call("run", &json!({ "command": if is_a { "echo two >> words.txt" } else { "echo three >> words.txt" } }))
        }
        _ => Response::text("Done."),
    }
}

#[test]
fn the_next_attempt_goes_on_from_one_that_came_nearer() {
    let server = ModelServer::start(halves);
    let env = words(&server);
    let ended = shoot(&env, &["--validate", CHECK, "--max-breakdowns", "1"]);
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
    assert_eq!(git(&env.workspace(), ["show", "nietz/r1:words.txt"]), "one\ntwo\nthree");
    // Its branch says where it is from.
    let end = column(&env, "attempt_result", "end_commit_sha").remove(0);
    let attempt = rows(&env, "attempt").remove(2);
    assert_eq!(attempt["start_commit_sha"], end);
    let tree = rows(&env, "worktree").into_iter().find(|row| row["id"] == attempt["worktree_id"]).expect("it has one");
    let all = rows(&env, "branch");
    let branch = all.iter().find(|row| row["id"] == tree["branch_id"]).expect("it has one");
    let first = all.iter().find(|row| row["id"] == branch["parent_branch_id"]).expect("it has a parent");
    assert_eq!(branch["parent_commit_sha"], end);
    assert!(first["name"].as_str().unwrap_or_default().ends_with("-g1-a1"), "{first}");
    // The model is told so, and what was done, what failed and why.
    let prompt = attempt["prompt"].as_str().expect("a text");
    for part in [
        "Your worktree begins with the work of attempt 1, which came nearer to the goal",
        "What attempt 1 had changed:\n```diff\ndiff --git a/words.txt b/words.txt\n",
        "\n+two\n",
        "`sh check.sh`: 1 of 3 tests failed:\n  - says three: expected the word three",
    ] {
        assert!(prompt.contains(part), "{part}\n{prompt}");
    }
}

#[test]
fn with_continue_never_each_attempt_begins_anew_and_the_nearest_is_named() {
    let server = ModelServer::start(halves);
    let env = words(&server);
    let ended = shoot(&env, &["--validate", CHECK, "--max-breakdowns", "1", "--continue", "never"]);
    assert_eq!(ended.refused()["status"], "failed", "{ended:?}");
    let starts = column(&env, "attempt", "start_commit_sha");
    assert_eq!(starts[0], starts[2]);
    let prompts = column(&env, "attempt", "prompt");
    let prompt = prompts[2].as_str().expect("a text");
    assert!(prompt.contains("\n+two\n") && prompt.contains("Your worktree has nothing of that work."), "{prompt}");
    let name = "Nearest came attempt 1, on `nietz/r1-g1-a1`: the command failed, 1 of 3 tests failed.";
    let said: Vec<Value> = ended.of_type("said");
    assert!(said.iter().any(|event| event.to_string().contains(name)), "{said:?}");
}

#[test]
fn an_attempt_that_spoils_a_test_is_not_gone_on_from() {
    let server = ModelServer::start(|request| {
        let spoil = !task(request).contains("What was tried before");
        match (task(request).contains("break the goal down"), step(request)) {
            (true, _) => Response::text("I cannot."),
            // What passed before fails then.
            (_, 0) if spoil => call("run", &json!({ "command": "echo two > words.txt" })),
            (_, 0) => call("run", &json!({ "command": "echo two >> words.txt; echo three >> words.txt" })),
            _ => Response::text("Done."),
        }
    });
    let env = Env::with(&server).file("words.txt", "one\n").file("check.sh", TAP.replace("two three", "one two three"));
    init(&env.workspace());
    let ended = shoot(&env, &["--validate", CHECK, "--max-breakdowns", "1"]);
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
    let starts = column(&env, "attempt", "start_commit_sha");
    assert_eq!(starts[0], starts[2]);
    assert_eq!(git(&env.workspace(), ["show", "nietz/r1:words.txt"]), "one\ntwo\nthree");
}

#[test]
fn a_long_diff_is_cut_in_the_next_prompt_and_that_is_said() {
    let server = ModelServer::start(|request| match (task(request).contains("break the goal down"), step(request)) {
        (true, _) => Response::text("I cannot."),
        (_, 0) => call("write_file", &json!({ "path": "long.txt", "text": "a line of it\n".repeat(4000) })),
        _ => Response::text("Done."),
    });
    let env = env(&server);
    shoot(&env, &["--validate", CHECK, "--max-breakdowns", "1"]).refused();
    let prompts = column(&env, "attempt", "prompt");
    let prompt = prompts.last().and_then(Value::as_str).expect("a text");
    assert!(prompt.contains("What attempt 1 had changed (only the beginning of it):\n```diff\n"), "{prompt}");
    assert!((20_000..30_000).contains(&prompt.len()), "{}", prompt.len());
}

#[test]
fn equal_wrong_shots_of_one_round_count_once_and_are_no_stall() {
    let server = ModelServer::start(|request| match (task(request).contains("break the goal down"), step(request)) {
        (true, _) => Response::text("I cannot."),
        (_, 0) => replace("todo", if !task(request).contains("What was tried before") { "nearly" } else { "done" }),
        _ => Response::text("Done."),
    });
    let env = env(&server);
    let ended = shoot(&env, &["--validate", CHECK, "--shots", "3", "--max-breakdowns", "1"]);
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
    let prompts = column(&env, "attempt", "prompt");
    let told = prompts[3].as_str().expect("a text");
    assert_eq!(told.matches("`sh check.sh` exited with 1").count(), 1, "{told}");
    assert!(
        told.contains("- Attempts 1, 2, 3, which left the same files with the same result, by openai/a: completed.")
    );
}

/// A model A that does a half, which another command shows, and a model B that does the other.
fn stepwise(request: &Request) -> Response {
    let is_a = !task(request).contains("What was tried before");
    match (task(request).contains("break the goal down"), step(request)) {
        (true, _) => Response::text("I cannot."),
        (_, 0) if is_a => call("write_file", &json!({ "path": "half.txt", "text": "half\n" })),
        (_, 0) => replace("todo", "done"),
        _ => Response::text("Done."),
    }
}

#[test]
fn killed_after_any_line_a_session_that_goes_on_from_the_best_comes_to_the_same() {
    killed_at(stepwise, &["--validate", CHECK, "--validate", "grep -q half half.txt", "--max-breakdowns", "1"], 6);
}
