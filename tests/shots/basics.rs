//! The promise of the migrations mode: whatever models do, the repository is safe and the record is whole.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::env::Env;
use crate::support::git::{git, init};
use crate::support::kills;
use crate::support::model_server::{ModelServer, Request, Response};
use crate::support::process::{Call, Ended};

pub(crate) const CHECK: &str = "sh check.sh";
/// A repository whose goal is reached when `work.txt` says so.
pub(crate) fn env(server: &ModelServer) -> Env {
    let env = Env::with(server)
        .file("work.txt", "one\ntodo\nthree\n")
        .file("check.sh", "grep -q '^done$' work.txt && echo fine\n")
        .file("big/README", "read me\n");
    init(&env.workspace());
    env
}

pub(crate) fn shoot(env: &Env, more: &[&str]) -> Ended {
    call_of(env, more).go()
}

/// The call of a session, to be started.
pub(crate) fn call_of(env: &Env, more: &[&str]) -> Call {
    env.run(["shots-on-goal", "--model-a", "openai/a", "--model-b", "openai/b"].into_iter().chain(more.iter().copied()))
        .args(["say done in work.txt"])
}

/// The rows of a table.
pub(crate) fn rows(env: &Env, table: &str) -> Vec<Value> {
    let path = env.path(&format!(".nietz/shots-on-goal/r1/{table}.jsonl"));
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a row is JSON")).collect()
}

pub(crate) fn column(env: &Env, table: &str, name: &str) -> Vec<Value> {
    rows(env, table).into_iter().map(|row| row[name].clone()).collect()
}

/// How many replies of the model this conversation has.
pub(crate) fn step(request: &Request) -> usize {
    request.turns().iter().filter(|(role, _)| role == "assistant").count()
}

/// What the conversation began with, without the list of the other parts: their texts are the goals of other attempts.
pub(crate) fn task(request: &Request) -> String {
    let prompt = prompt(request);
    let Some(at) = prompt.find("\nAll parts of ") else { return prompt };
    let end = prompt[at..].find("\n\n").map_or(prompt.len(), |length| at + length);
    format!("{}{}", &prompt[..at], &prompt[end..])
}

/// The whole prompt that the conversation began with.
pub(crate) fn prompt(request: &Request) -> String {
    request.turns().into_iter().find(|(role, _)| role == "user").expect("there is a prompt").1
}

pub(crate) fn call(name: &str, arguments: &Value) -> Response {
    Response::text("").usage(10, 5).tool_call("t", name, &arguments.to_string())
}

pub(crate) fn replace(old: &str, new: &str) -> Response {
    call("replace_in_file", &json!({ "path": "work.txt", "old": old, "new": new }))
}

/// A model that does what is asked.
pub(crate) fn good(request: &Request) -> Response {
    match step(request) {
        0 => call("read_file", &json!({ "path": "work.txt" })),
        1 => replace("todo", "done"),
        2 => call("run", &json!({ "command": CHECK })),
        _ => Response::text("I did it.").usage(10, 5),
    }
}

fn show(env: &Env, what: &str) -> String {
    git(&env.workspace(), ["show", what])
}

#[test]
fn the_first_shot_succeeds_and_everything_is_on_record() {
    let server = ModelServer::start(good);
    let env = env(&server);
    env.write("work.txt", "the user's own change\n");
    let result = shoot(&env, &["--validate", CHECK]).result();
    assert_eq!(
        (result["status"].as_str(), result["branch"].as_str(), result["tokens"].as_u64()),
        (Some("success"), Some("nietz/r1"), Some(60)),
        "{result}"
    );
    assert_eq!(show(&env, "nietz/r1:work.txt"), "one\ndone\nthree");
    assert_eq!(env.read("work.txt"), "the user's own change\n");
    assert_eq!(git(&env.workspace(), ["worktree", "list"]).lines().count(), 1, "no worktree is left");

    let attempt = &rows(&env, "attempt")[0];
    assert!(attempt["prompt"].as_str().unwrap().contains("- `sh check.sh`\n"));
    assert_eq!((&attempt["model"], &attempt["attempt_type"]), (&json!("openai/a"), &json!("implementation")));
    let result = &rows(&env, "attempt_result")[0];
    assert_eq!((&result["status"], &result["status_detail"]), (&json!("success"), &json!("I did it.")));
    assert!(result["diff"].as_str().unwrap().contains("-todo\n+done\n"));
    assert_eq!(column(&env, "tool_call", "tool_name"), ["read_file", "replace_in_file", "run"]);
    assert_eq!(column(&env, "tool_call", "output")[2].as_str().unwrap().lines().nth(1), Some("fine"));
    assert_eq!(column(&env, "validation_run", "exit_code"), [0]);
    assert_eq!(column(&env, "merge", "result_commit_sha"), [git(&env.workspace(), ["rev-parse", "nietz/r1"])]);
    assert_eq!(column(&env, "session_end", "final_status"), ["success"]);
    assert_eq!(rows(&env, "attempt_tool").len(), 17);
    for entry in std::fs::read_dir(env.path(".nietz/shots-on-goal/r1")).unwrap() {
        let path = entry.unwrap().path();
        let checked = env.nietz(["check", path.to_str().unwrap()]).go();
        assert_eq!(checked.code, Some(0), "{checked:?}");
    }
    let path = ".nietz/shots-on-goal/r1/merge.jsonl";
    env.write(path, env.read(path).replace("\"to_branch_id\":1", "\"to_branch_id\":7"));
    let checked = env.nietz(["check", path]).go().exits(4);
    assert!(checked.stdout.contains("there is no row 7 in `branch`"), "{checked:?}");
}

pub(crate) const BREAKDOWN: &str = r#"{"sub_goals": [
    {"goal": "put alpha into a.txt", "validation": ["grep -q alpha a.txt"]},
    {"goal": "put beta into b.txt", "validation": ["grep -q beta b.txt", "grep -q alpha a.txt"]},
    {"goal": "say done in work.txt for good", "validation": ["grep -q done work.txt"]}]}"#;

/// A model A that fails, and a model B that breaks down and works.
pub(crate) fn divided(request: &Request) -> Response {
    let task = task(request);
    let goal = ["put alpha", "put beta", "for good"].into_iter().find(|goal| task.contains(*goal));
    if request.body["model"] == "a" {
        return match step(request) {
            0 => call("write_file", &json!({ "path": "wrong.txt", "text": "x" })),
            _ => Response::text("Done, I think."),
        };
    }
    match (task.contains("break the goal down"), goal, step(request)) {
        (true, _, 0) => call("write_file", &json!({ "path": "x", "text": "x" })),
        (true, _, 1) => call("list_folder", &json!({ "path": "." })),
        (true, _, 2) => Response::text(
            r#"{"sub_goals": [{"goal": "look around a bit", "validation": ["rm -r x"]},
            {"goal": "look around a bit", "validation": []}, {"goal": "look around a bit", "validation": []}]}"#,
        ),
        (true, ..) => Response::text(BREAKDOWN),
        (_, Some("put alpha"), 0) => call("write_file", &json!({ "path": "a.txt", "text": "alpha\n" })),
        (_, Some("put beta"), 0) => call("write_files", &json!({ "files": [{ "path": "b.txt", "text": "beta\n" }] })),
        (_, Some("for good"), 0) => replace("todo", "done"),
        _ => Response::text("Done."),
    }
}

#[test]
fn a_failed_shot_is_broken_down_and_the_parts_are_merged() {
    let server = ModelServer::start(divided);
    let env = env(&server);
    let ended = shoot(&env, &["--validate", CHECK, "--run", "grep"]);
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
    for (file, text) in [("a.txt", "alpha"), ("b.txt", "beta"), ("work.txt", "one\ndone\nthree")] {
        assert_eq!(show(&env, &format!("nietz/r1:{file}")), text);
    }
    assert_eq!(
        column(&env, "attempt", "attempt_type"),
        ["implementation", "breakdown", "implementation", "implementation", "implementation"]
    );
    assert_eq!(column(&env, "attempt", "model"), ["openai/a", "openai/b", "openai/b", "openai/b", "openai/b"]);
    assert_eq!(column(&env, "attempt_result", "status"), ["completed", "success", "success", "success", "success"]);
    assert_eq!(column(&env, "goal", "parent_goal_id"), [Value::Null, json!(1), json!(1), json!(1)]);
    assert_eq!(column(&env, "goal", "created_by_attempt_id"), [Value::Null, json!(2), json!(2), json!(2)]);
    assert_eq!(column(&env, "goal", "order"), [1, 1, 2, 3]);
    assert_eq!(rows(&env, "merge").len(), 6);
    // The breakdown could not write: that tool was not there.
    let tools: Vec<Value> = rows(&env, "attempt_tool").into_iter().filter(|row| row["attempt_id"] == 2).collect();
    assert_eq!(tools.len(), 9);
    assert_eq!(column(&env, "tool_call", "tool_name")[1..3], ["write_file", "list_folder"]);
    let refused = column(&env, "tool_call", "output")[1].to_string();
    assert!(refused.contains("there is no tool \\\"write_file\\\": there is "), "{refused}");
    assert!(refused.contains("read_file") && !refused.contains("replace_in_file"), "{refused}");
    assert_eq!(column(&env, "goal_end", "status"), ["success"; 4]);
    // The next one is told what was tried.
    let prompt = &column(&env, "attempt", "prompt")[1];
    for told in ["Attempt 1 by openai/a: completed. `sh check.sh` exited with 1", "It changed wrong.txt."] {
        assert!(prompt.as_str().unwrap().contains(told), "{prompt}");
    }
    // The last sub-goal's attempt brought the whole: the root's validation was run for it.
    let last = rows(&env, "validation_run").pop().unwrap();
    assert_eq!(
        (&last["validation_step_id"], &last["attempt_result_id"], &last["exit_code"]),
        (&json!(1), &json!(5), &json!(0))
    );
    let history = git(&env.workspace(), ["log", "--first-parent", "--format=%s", "nietz/r1"]);
    assert!(history.starts_with("Merge sub-goal 4: say done in work.txt for good\nMerge sub-goal 3"), "{history}");
    let shown = env.nietz(["run", "shots-on-goal", "show"]).var("NIETZ_RUN", "r2").go();
    for line in [
        "✓ goal 1: say done in work.txt",
        "  ✓ goal 2: put alpha into a.txt",
        "for each of 4 goals reached",
        "✗ implementation 1 (openai/a",
        "openai/a: 0 of 1 alone",
    ] {
        assert!(shown.stdout.contains(line), "{line}\n{}", shown.stdout);
    }
}

#[test]
fn the_limit_of_tools_ends_an_attempt_and_keeps_its_work() {
    let server = ModelServer::start(|request| {
        call("write_file", &json!({ "path": format!("f{}.txt", step(request)), "text": "x" }))
    });
    let env = env(&server);
    let result = shoot(&env, &["--validate", CHECK, "--max-tools", "3", "--max-breakdowns", "0"]).refused();
    assert_eq!(result["status"], "failed");
    let end = &rows(&env, "attempt_result")[0];
    assert_eq!(end["status"], "tool_limit");
    assert_eq!(rows(&env, "tool_call").len(), 3);
    let commit = end["end_commit_sha"].as_str().unwrap();
    assert_eq!(show(&env, &format!("{commit}:f2.txt")), "x");
    assert_eq!(git(&env.workspace(), ["branch", "--contains", commit, "--format=%(refname:short)"]), "nietz/r1-g1-a1");
}

/// What the first attempt ended with, and what became of the session.
fn limited(env: &Env, limits: &[&str]) -> (Value, Value, Value) {
    let more = ["--validate", CHECK, "--max-breakdowns", "1"].into_iter().chain(limits.iter().copied());
    let result = shoot(env, &more.collect::<Vec<_>>()).refused();
    let end = &rows(env, "attempt_result")[0];
    (end["status"].clone(), end["status_detail"].clone(), result["detail"].clone())
}

#[test]
fn tokens_money_and_time_end_an_attempt_and_keep_its_work() {
    let busy = || {
        ModelServer::start(|request| match step(request) {
            0..5 => call("write_file", &json!({ "path": format!("f{}.txt", step(request)), "text": "x" })),
            _ => Response::silence(),
        })
    };
    // Each call uses 10 tokens in and 5 out: 60 millionths of a dollar.
    const PRICES: &str = "models: {prices: {openai/a: {input: 2, output: 8}, openai/b: {input: 2, output: 8}}}\n";
    let cases: [(&[&str], &str, &str, bool); 4] = [
        (&["--attempt-tokens", "40"], "tool_limit", "the limit of 40 tokens; `sh check.sh` exited with 1", true),
        (
            &["--attempt-cost", "0.0001"],
            "tool_limit",
            "the limit of 0.0001 US dollars; `sh check.sh` exited with 1",
            true,
        ),
        (&["--attempt-cost", "0.0001"], "tool_limit", "its cost is limited, and the price is not known", false),
        (&["--attempt-seconds", "4"], "tool_limit", "the limit of 4 seconds; `sh check.sh` exited with 1", true),
    ];
    for (limits, status, detail, priced) in cases {
        let server = busy();
        let env = if priced { env(&server).config(PRICES) } else { env(&server) };
        let more = [limits, &["--session-tokens", "1"]].concat();
        let (ended, why, session) = limited(&env, &more);
        assert_eq!((ended.as_str(), why.as_str()), (Some(status), Some(detail)), "{limits:?}");
        assert_eq!(session, "the session's limit of 1 tokens", "{limits:?}");
        let end = &rows(&env, "attempt_result")[0];
        if priced {
            assert_eq!(show(&env, &format!("{}:f0.txt", end["end_commit_sha"].as_str().unwrap())), "x", "{limits:?}");
            assert!(rows(&env, "attempt_usage")[0]["cost"].as_f64().unwrap() > 0.0, "{limits:?}");
        }
    }
}

#[test]
fn the_sessions_limits_start_no_further_attempt() {
    for (limits, detail) in [
        (["--session-cost", "0.00005"], "the session's limit of 0.00005 US dollars"),
        (["--session-tokens", "10"], "the session's limit of 10 tokens"),
    ] {
        let server = ModelServer::start(|request| match step(request) {
            0 => call("write_file", &json!({ "path": "f.txt", "text": "x" })),
            _ => Response::text("I tried").usage(10, 5),
        });
        let prices = "models: {prices: {openai/a: {input: 2, output: 8}, openai/b: {input: 2, output: 8}}}\n";
        let env = env(&server).config(prices);
        let (ended, _, session) = limited(&env, &limits);
        assert_eq!((&ended, session.as_str()), (&json!("completed"), Some(detail)));
        assert_eq!(rows(&env, "attempt").len(), 1, "{limits:?}");
    }
}

#[test]
fn silence_ends_an_attempt_and_keeps_its_work() {
    let server = ModelServer::start(|request| match step(request) {
        0 => call("write_file", &json!({ "path": "f.txt", "text": "x" })),
        _ => Response::silence(),
    });
    let env = env(&server);
    shoot(&env, &["--validate", CHECK, "--idle", "1", "--max-breakdowns", "0"]).refused();
    let end = &rows(&env, "attempt_result")[0];
    let detail = "nothing happened for 1 s; `sh check.sh` exited with 1";
    assert_eq!((&end["status"], &end["status_detail"]), (&json!("timeout"), &json!(detail)));
    assert_eq!(show(&env, &format!("{}:f.txt", end["end_commit_sha"].as_str().unwrap())), "x");
}

#[test]
fn a_merge_in_conflict_is_recorded_and_the_next_shot_is_told() {
    let folder = std::sync::Arc::new(std::sync::Mutex::new(None::<std::path::PathBuf>));
    let work = folder.clone();
    let server = ModelServer::start(move |request| {
        if task(request).contains("break the goal down") {
            return Response::text("no JSON at all");
        }
        if !task(request).contains("cannot be merged") && step(request) == 3 {
            // Somebody moves the goal's branch while the attempt goes on.
            let work = work.lock().unwrap().clone().unwrap();
            let blob = work.join("other");
            std::fs::write(&blob, "one\nother\nthree\n").unwrap();
            let id = git(&work, ["hash-object", "-w", "other"]);
            std::fs::remove_file(&blob).unwrap();
            let listed = git(&work, ["ls-tree", "nietz/r1"]);
            let tree: String = listed
                .lines()
                .map(|line| {
                    if line.ends_with("\twork.txt") {
                        format!("100644 blob {id}\twork.txt\n")
                    } else {
                        format!("{line}\n")
                    }
                })
                .collect();
            std::fs::write(work.join(".git/tree"), tree).unwrap();
            let tree = git(&work, ["-c", "alias.t=!git mktree < .git/tree", "t"]);
            let commit = git(&work, ["commit-tree", &tree, "-p", "nietz/r1", "-m", "other"]);
            git(&work, ["update-ref", "refs/heads/nietz/r1", &commit]);
        }
        match (task(request).contains("cannot be merged"), step(request)) {
            (true, 0) => replace("other", "done"),
            (true, _) => Response::text("Now it is."),
            _ => good(request),
        }
    });
    let env = env(&server);
    *folder.lock().unwrap() = Some(env.workspace());
    let ended = shoot(&env, &["--validate", CHECK, "--max-breakdowns", "1"]);
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
    let conflict = &rows(&env, "merge_conflict")[0];
    assert_eq!(conflict["paths"], json!(["work.txt"]));
    assert_eq!(column(&env, "attempt_result", "status"), ["success", "error", "success"]);
    let told = column(&env, "attempt", "prompt")[2].as_str().unwrap().to_owned();
    assert!(told.contains("cannot be merged: conflicts in work.txt"), "{told}");
    assert_eq!(show(&env, "nietz/r1:work.txt"), "one\ndone\nthree");
}

#[test]
fn tampering_with_the_validation_does_not_help_and_is_said() {
    for honest in [false, true] {
        let server = ModelServer::start(move |request| match step(request) {
            0 => call("read_file", &json!({ "path": "check.sh" })),
            1 => call("write_file", &json!({ "path": "check.sh", "text": "exit 0\n" })),
            2 if honest => replace("todo", "done"),
            _ => Response::text("It validates."),
        });
        let env = env(&server);
        let ended = shoot(&env, &["--validate", CHECK, "--max-breakdowns", "0"]);
        let result = if honest { ended.result() } else { ended.refused() };
        let end = &rows(&env, "attempt_result")[0];
        assert!(end["status_detail"].as_str().unwrap().starts_with("tampered: check.sh; "), "{end}");
        match honest {
            true => {
                assert_eq!(show(&env, "nietz/r1:check.sh"), env.read("check.sh").trim_end(), "the original is merged")
            }
            false => assert_eq!((&end["status"], &result["status"]), (&json!("completed"), &json!("failed"))),
        }
    }
}

#[test]
fn the_same_files_with_the_same_result_end_the_loop() {
    let server = ModelServer::start(|request| match (task(request).contains("break the goal down"), step(request)) {
        (true, _) => Response::text("never"),
        (_, 0) => replace("todo", "nearly"),
        _ => Response::text("Done."),
    });
    let env = env(&server);
    let result = shoot(&env, &["--validate", CHECK]).refused();
    assert_eq!(result["status"], "failed");
    assert!(result["detail"].as_str().unwrap().starts_with("stalled: attempt 3 "), "{result}");
    assert_eq!(rows(&env, "attempt").len(), 3);
}

#[test]
fn without_validation_nothing_succeeds_unless_that_is_accepted() {
    for (more, status) in [(&["--max-breakdowns", "0"][..], "failed"), (&["--accept-unvalidated"][..], "success")] {
        let server = ModelServer::start(|request| match step(request) {
            0 => replace("todo", "done"),
            _ => Response::text("Done."),
        });
        let env = env(&server);
        let ended = shoot(&env, more);
        let result = if status == "success" { ended.result() } else { ended.refused() };
        assert_eq!(result["status"], status);
        let end = &rows(&env, "attempt_result")[0];
        assert_eq!(end["status"], if status == "failed" { "completed" } else { "success" });
        assert_eq!(end["status_detail"], "unvalidated: Done.");
    }
}

#[test]
fn of_shots_side_by_side_the_one_that_validates_is_kept() {
    let count = AtomicU64::new(0);
    let server = ModelServer::start(move |request| match step(request) {
        0 if count.fetch_add(1, Ordering::SeqCst) == 0 => replace("todo", "nearly"),
        0 => replace("todo", "done"),
        // So long that all of them are at it together.
        _ => Response::text("Done.").delay(Duration::from_millis(1500)),
    });
    let env = env(&server);
    let ended = shoot(&env, &["--validate", CHECK, "--shots", "3"]);
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
    // Others that were at it when one validated are superseded, however far they were.
    let statuses = column(&env, "attempt_result", "status");
    assert_eq!(statuses.len(), 3);
    assert!(statuses.contains(&json!("success")), "{statuses:?}");
    assert_eq!((rows(&env, "merge").len(), server.most_at_once()), (1, 3));
    assert_eq!(show(&env, "nietz/r1:work.txt"), "one\ndone\nthree");
}

#[test]
fn paths_and_commands_of_a_model_are_held_in() {
    let server = ModelServer::start(|request| match step(request) {
        0 => call("read_file", &json!({ "path": "../../secret" })),
        1 => call("write_file", &json!({ "path": ".git/hooks/x", "text": "x" })),
        2 => call("run", &json!({ "command": "rm -rf /" })),
        3 => call("run", &json!({ "command": "grep x work.txt; rm work.txt" })),
        4 => call("run", &json!({ "command": "grep -c 'o' work.txt" })),
        _ => Response::text("Done."),
    });
    let env = env(&server);
    shoot(&env, &["--validate", CHECK, "--run", "grep", "--no-run", "--max-breakdowns", "0"]).refused();
    let outputs = column(&env, "tool_call", "output");
    for (output, part) in outputs.iter().zip([
        "leads out of the worktree",
        "belongs to git",
        "is not allowed",
        "is not allowed",
        "exit code 0\n2\n",
    ]) {
        assert!(output.as_str().unwrap().contains(part), "{output}");
    }
}

#[test]
fn a_service_that_is_down_ends_the_run_and_not_the_attempt() {
    let up = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_up = up.clone();
    let server = ModelServer::start(move |request| match step(request) {
        2 if !is_up.load(Ordering::SeqCst) => Response::error(503, "come back later"),
        _ => good(request),
    });
    let env = env(&server);
    shoot(&env, &["--validate", CHECK]).exits(3);
    assert_eq!(rows(&env, "attempt_result").len(), 0);
    up.store(true, Ordering::SeqCst);
    assert_eq!(env.resume().go().result()["status"], "success");
    assert_eq!((rows(&env, "attempt").len(), rows(&env, "tool_call").len()), (1, 3));
}

/// All rows and refs, without what differs from one folder to the next.
fn everything(env: &Env) -> Value {
    let mut tables: Vec<String> = std::fs::read_dir(env.path(".nietz/shots-on-goal/r1"))
        .map(|all| all.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect())
        .unwrap_or_default();
    tables.sort();
    let read = |name: &String| {
        (name.clone(), json!(without_worktree(env, &env.read(&format!(".nietz/shots-on-goal/r1/{name}")))))
    };
    let rows: serde_json::Map<String, Value> = tables.iter().map(read).collect();
    let work = env.workspace();
    json!({ "rows": rows, "refs": git(&work, ["for-each-ref"]), "worktrees": git(&work, ["worktree", "list"]).lines().count() })
}

fn without_worktree(env: &Env, text: &str) -> String {
    let text = env.normal(text);
    // The folder of worktrees is named by the workspace's path.
    let Some(at) = text.find("/worktrees/") else { return text };
    let name = text[at + 11..].split('/').next().unwrap_or_default().to_owned();
    text.replace(&name, "X")
}

/// Kills a session after some lines of its journal, resumes it, and compares all that can be seen.
pub(crate) fn killed_at(script: fn(&Request) -> Response, more: &[&str], few: u64) {
    let server = ModelServer::start(script);
    let reference = env(&server);
    let ended = shoot(&reference, more);
    let (result, expected) = (ended.result(), everything(&reference));
    let lines = reference.journal().lines.len() as u64;
    kills::for_each(&kills::points(lines, few), |line| {
        let server = ModelServer::start(script);
        let env = env(&server);
        let killed = env
            .run(
                ["shots-on-goal", "--model-a", "openai/a", "--model-b", "openai/b"]
                    .into_iter()
                    .chain(more.iter().copied()),
            )
            .args(["say done in work.txt"])
            .var("NIETZ_FAULT", &format!("kill@{line}"))
            .go();
        assert_eq!(killed.signal, Some(9), "line {line}");
        let ended = env.resume().go();
        assert_eq!(ended.result(), result, "killed after line {line}");
        assert_eq!(everything(&env), expected, "killed after line {line}");
    });
}

#[test]
fn killed_after_any_line_a_session_comes_to_the_same_rows_and_commits() {
    killed_at(good, &["--validate", CHECK], 8);
}

#[test]
fn killed_here_and_there_a_long_session_comes_to_the_same_rows_and_commits() {
    killed_at(divided, &["--validate", CHECK, "--run", "grep"], 5);
}

#[test]
fn killed_at_any_moment_a_session_comes_to_the_same_rows_and_commits_and_leaves_nothing() {
    let arguments = [
        "shots-on-goal",
        "--model-a",
        "openai/a",
        "--model-b",
        "openai/b",
        "--validate",
        CHECK,
        "say done in work.txt",
    ];
    let server = ModelServer::start(good);
    let reference = env(&server);
    let result = reference.run(arguments).go().result();
    let expected = everything(&reference);
    let length = std::fs::metadata(reference.journal_path()).expect("it is there").len();
    let (seeds, times) = kills::rounds();
    kills::for_each(&seeds, |seed| {
        let server = ModelServer::start(good);
        let env = env(&server);
        let resume = || env.resume();
        let ended = kills::anywhere(&env, &mut kills::Chance(seed), (times, length), env.run(arguments), resume);
        assert_eq!(ended.result(), result, "seed {seed}");
        assert_eq!(everything(&env), expected, "seed {seed}");
        assert_eq!(kills::strays(&env), Vec::<String>::new(), "seed {seed}");
    });
}

#[test]
fn a_worktree_s_place_is_outside_of_the_repository() {
    let server = ModelServer::start(good);
    let env = env(&server);
    shoot(&env, &["--validate", CHECK]).result();
    for path in column(&env, "worktree", "path") {
        let path = Path::new(path.as_str().unwrap()).to_owned();
        assert!(!path.starts_with(env.workspace()) && !path.exists(), "{}", path.display());
    }
}

/// However often, also in the middle of a command that a model runs.
#[test]
fn an_interrupted_session_goes_on_as_if_nothing_had_been() {
    let script = |request: &Request| match step(request) {
        0 => replace("todo", "done"),
        1 => call("run", &json!({ "command": "sh slow.sh" })),
        _ => Response::text("I did it.").usage(10, 5),
    };
    let server = ModelServer::start(script);
    let env = Env::with(&server)
        .file("work.txt", "one\ntodo\nthree\n")
        .file("check.sh", "grep -q '^done$' work.txt && echo fine\n")
        .file("slow.sh", "test -e mark.2 && rm mark.1 mark.2 && exit 0\ntest -e mark.1 && touch mark.2 || touch mark.1\nexec sleep 1000\n");
    init(&env.workspace());
    let marked = |name: &str| {
        let mut all = walkdir::WalkDir::new(env.home()).into_iter().flatten();
        all.any(|entry| entry.file_name() == name)
    };
    let models = ["--model-a", "openai/a", "--model-b", "openai/b"];
    let arguments = ["shots-on-goal", "say done in work.txt", "--validate", CHECK, "--run", "sh slow.sh"];
    let mut running = env.run(arguments.into_iter().chain(models)).spawn();
    running.until(|| marked("mark.1"));
    running.interrupt();
    running.end().exits(130);
    let mut running = env.resume().spawn();
    running.until(|| marked("mark.2"));
    running.terminate();
    running.end().exits(130);
    let result = env.resume().go().result();
    assert_eq!((&result["status"], server.calls()), (&json!("success"), 3), "{result}");
    assert_eq!(column(&env, "tool_call", "tool_name"), ["replace_in_file", "run"]);
    assert_eq!(column(&env, "tool_call", "output")[1], "exit code 0\n");
    assert_eq!(git(&env.workspace(), ["worktree", "list"]).lines().count(), 1, "no worktree is left");
}
