//! The promise to models that work with tools: they are told what they would otherwise miss, and held to their work.

use serde_json::{Value, json};

use super::basics::{BREAKDOWN, CHECK, call, column, env, replace, rows, shoot, step, task};
use crate::support::git::git;
use crate::support::model_server::{ModelServer, Request, Response};

/// What the model was told last.
fn told(request: &Request) -> String {
    let last = request.body["messages"].as_array().and_then(|messages| messages.last()).expect("there are messages");
    last["content"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_model_that_talks_asks_again_or_overwrites_is_told_so() {
    let server = ModelServer::start(|request| {
        let step = step(request);
        let choice = &request.body["tool_choice"];
        assert_eq!(choice, &if step < 2 { json!("required") } else { Value::Null }, "step {step}");
        let read = call("read_file", &json!({ "path": "work.txt" }));
        let file = json!({ "path": "work.txt", "text": "done\n" });
        let (write, many) = (call("write_file", &file), call("write_files", &json!({ "files": [file] })));
        match step {
            0 => {
                assert!(task(request).contains("The files of the repository:\nbig/README\ncheck.sh\nwork.txt\n"));
                Response::text("I would say done in work.txt.")
            }
            1 => {
                assert!(told(request).contains("no file has changed, so nothing is done yet"), "{}", told(request));
                many
            }
            2 => {
                assert!(
                    told(request).starts_with(
                        "error: nothing was done\nwork.txt: error: work.txt is there already, and you have not read it"
                    ),
                    "{}",
                    told(request)
                );
                read
            }
            3 => read,
            4 => {
                assert!(told(request).contains("asked just this already"), "{}", told(request));
                write
            }
            5 => {
                assert_eq!(told(request), "written: 1 lines, in the place of all 3 that were there");
                read
            }
            _ => {
                assert_eq!(told(request), "1\tdone", "what was written can be read");
                Response::text("Done.")
            }
        }
    });
    let env = env(&server);
    assert_eq!(shoot(&env, &["--validate", CHECK]).result()["status"], "success");
    assert_eq!(server.requests().len(), 7);
}

#[test]
fn a_model_that_goes_on_talking_is_told_once() {
    let server = ModelServer::start(|_| Response::text("I cannot: work.txt is holy."));
    let env = env(&server);
    let result = shoot(&env, &["--validate", CHECK, "--max-breakdowns", "0"]).refused();
    assert_eq!((server.requests().len(), &result["status"]), (2, &json!("failed")));
    let detail = column(&env, "attempt_result", "status_detail").remove(0);
    assert!(detail.as_str().unwrap().contains("work.txt is holy"), "{detail}");
}

#[test]
fn a_breakdown_that_has_looked_enough_is_asked_once_for_what_it_has_seen() {
    for listens in [true, false] {
        let server = ModelServer::start(move |request| {
            let path = ["big", "."][step(request) % 2];
            let folder = call("list_folder", &json!({ "path": path }));
            match (task(request).contains("break the goal down"), step(request)) {
                (true, 3) if listens => {
                    assert_eq!(told(request), "error: no tool call is left. Answer now, from what you have seen");
                    Response::text(BREAKDOWN)
                }
                (true, _) => folder,
                (false, 0) => call("write_file", &json!({ "path": "x.txt", "text": task(request) })),
                _ => Response::text("Done."),
            }
        });
        let env = env(&server);
        let more = ["--validate", CHECK, "--run", "grep", "--max-tools", "2", "--max-breakdowns", "1"];
        shoot(&env, &more).refused();
        let calls = rows(&env, "tool_call").into_iter().filter(|row| row["attempt_id"] == 2).count();
        let status = column(&env, "attempt_result", "status").remove(1);
        assert_eq!((calls, status), (2, json!(if listens { "success" } else { "tool_limit" })));
    }
}

#[test]
fn a_model_is_told_when_all_that_validates_passes_and_not_before() {
    let server = ModelServer::start(|request| {
        let run = |command: &str| call("run", &json!({ "command": command }));
        let told = told(request);
        let reached = told.contains("[all that validates this exits with 0 now.");
        assert_eq!(reached, [3, 7].contains(&step(request)), "step {}: {told}", step(request));
        match step(request) {
            0 => replace("todo", "done"),
            1 | 6 => run("grep -c read big/README"),
            2 | 5 => run(CHECK),
            // What does not validate may have changed something.
            3 => run("grep -c three work.txt"),
            4 => replace("three", "three\nfour"),
            _ => Response::text("Done."),
        }
    });
    let env = env(&server);
    let more = ["--validate", CHECK, "--validate", "grep -c read big/README", "--run", "grep"];
    assert_eq!(shoot(&env, &more).result()["status"], "success");
    assert_eq!(server.requests().len(), 8);
}

#[test]
fn of_many_files_a_model_is_told_the_folders() {
    let server = ModelServer::start(|_| Response::text("I cannot."));
    let env = (0..61).fold(env(&server), |env, number| env.file(&format!("many/{number}.txt"), "x"));
    git(&env.workspace(), ["add", "-A"]);
    git(&env.workspace(), ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "many"]);
    shoot(&env, &["--validate", CHECK, "--max-breakdowns", "0"]).refused();
    let prompt = task(&server.requests()[0]);
    let listed = "The files of the repository:\nbig/ (1 files)\ncheck.sh\nmany/ (61 files)\nwork.txt\n";
    assert!(prompt.contains(listed), "{prompt}");
}
