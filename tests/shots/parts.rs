//! The promise of a breakdown: A and B take turns, parts are worked on side by side, and one that fails ends no other.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::basics::{CHECK, call, column, env, prompt, replace, rows, shoot, step};
use crate::support::env::Env;
use crate::support::git::git;
use crate::support::kills;
use crate::support::model_server::{Gate, ModelServer, Request, Response};
use crate::support::process::Ended;

/// The goal that an attempt has, or that a breakdown is asked for.
pub(super) fn goal(request: &Request) -> String {
    let prompt = prompt(request);
    let at = ["changing its files:", "changing files:", "The goal: "]
        .iter()
        .find_map(|head| prompt.find(head).map(|at| at + head.len()))
        .expect("a prompt says its goal");
    prompt[at..].trim_start().lines().next().expect("a goal is no empty text").to_owned()
}

pub(super) fn breaks_down(request: &Request) -> bool {
    prompt(request).contains("break the goal down")
}

pub(super) fn write(path: &str, text: &str) -> Response {
    call("write_file", &json!({ "path": path, "text": text }))
}

pub(super) fn sub(goal: &str, after: &[u64], check: &str) -> Value {
    json!({ "goal": goal, "after": after, "validation": [check] })
}

pub(super) fn subs(all: &[Value]) -> Response {
    Response::text(json!({ "sub_goals": all }).to_string()).usage(10, 5)
}

/// What a session came to, however it ended.
pub(super) fn outcome(ended: &Ended) -> Value {
    ended.ending()["result"].clone()
}

/// The status of each goal's end, by the beginning of the goal.
fn ends(env: &Env) -> Vec<(String, String)> {
    let texts = column(env, "goal", "goal_text");
    let text = |value: &Value| value.as_str().expect("it is a text").to_owned();
    let ends = rows(env, "goal_end");
    let of = |id: usize| ends.iter().find(|end| end["goal_id"] == id).map_or("none".into(), |end| text(&end["status"]));
    texts.iter().enumerate().map(|(at, goal)| (text(goal), of(at + 1))).collect()
}

fn status_of(env: &Env, goal: &str) -> String {
    ends(env).into_iter().find(|(text, _)| text.starts_with(goal)).expect("there is such a goal").1
}

/// All tables of a session are valid, and so are the references between them.
pub(super) fn check_tables(env: &Env) {
    for entry in std::fs::read_dir(env.path(".nietz/shots-on-goal/r1")).expect("there is a record") {
        let path = entry.expect("it can be read").path();
        let checked = env.nietz(["check", path.to_str().expect("it is UTF-8")]).go();
        assert_eq!(checked.code, Some(0), "{checked:?}");
    }
}

/// Two parts, of which the second needs the first and is never reached: `b.txt` never has that line.
fn half_divided(request: &Request) -> Response {
    match (breaks_down(request), goal(request).as_str(), step(request)) {
        (true, ..) => subs(&[
            sub("put alpha into a.txt", &[], "grep -qx alpha a.txt"),
            sub("put beta into b.txt", &[1], "grep -qx beta b.txt"),
        ]),
        (_, "put alpha into a.txt", 0) => write("a.txt", "alpha\n"),
        (_, "put beta into b.txt", 0) => write("b.txt", "gamma\n"),
        (_, "put beta into b.txt", _) => Response::text("There is no beta to be had."),
        // The second shot finds what part 1 brought.
        (_, "say done in work.txt", 0) if prompt(request).contains("\na.txt\n") => replace("todo", "done"),
        (_, "say done in work.txt", 0) => write("wrong.txt", "x"),
        _ => Response::text("I did what I could."),
    }
}

#[test]
fn where_the_parts_do_not_reach_it_a_shoots_again_and_is_told_what_became_of_them() {
    let server = ModelServer::start(half_divided);
    let env = env(&server);
    let ended = shoot(&env, &["--validate", CHECK, "--run", "grep", "--max-breakdowns", "1"]);
    assert_eq!(outcome(&ended)["status"], "success", "{ended:?}");
    let turns: Vec<(Value, Value)> =
        rows(&env, "attempt").iter().map(|row| (row["model"].clone(), row["goal_id"].clone())).collect();
    let expected = [("openai/a", 1), ("openai/b", 1), ("openai/b", 2), ("openai/b", 3), ("openai/a", 1)];
    assert_eq!(turns, expected.map(|(model, goal)| (json!(model), json!(goal))));
    let told = column(&env, "attempt", "prompt")[4].as_str().unwrap().to_owned();
    for part in [
        "Part 1 \"put alpha into a.txt\" is reached and merged: its work is in the files.",
        "Part 2 \"put beta into b.txt\" failed, and none of its work is in the files: all 1 breakdowns are used.",
        "There is no beta to be had.",
        "It changed b.txt.",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    assert_eq!(column(&env, "goal", "order"), [1, 1, 2]);
    check_tables(&env);
}

/// Parts 1 and 2 need nothing, 3 needs 2, which fails, and 4 needs 1. 1 is held until 2 has begun, and 2 until 1 has.
fn side_by_side() -> impl Fn(&Request) -> Response {
    let (first, second) = (Gate::default(), Gate::default());
    move |request| match (breaks_down(request), goal(request).as_str(), step(request)) {
        (true, ..) => subs(&[
            sub("put alpha into a.txt", &[], "grep -qx alpha a.txt"),
            sub("put beta into b.txt", &[], "grep -qx beta b.txt"),
            sub("put gamma into c.txt", &[2], "grep -qx gamma c.txt"),
            sub("put delta into d.txt", &[1], "grep -qx delta d.txt"),
        ]),
        (_, "put alpha into a.txt", 0) => {
            first.open();
            write("a.txt", "alpha\n").held_by(&second)
        }
        (_, "put beta into b.txt", 0) => {
            second.open();
            write("b.txt", "no\n").held_by(&first)
        }
        (_, "put gamma into c.txt", 0) => write("c.txt", "gamma\n"),
        (_, "put delta into d.txt", 0) => write("d.txt", "delta\n"),
        (_, "say done in work.txt", 0) => write("wrong.txt", "x"),
        _ => Response::text("Done."),
    }
}

#[test]
fn parts_that_need_nothing_are_worked_on_side_by_side_and_a_failure_ends_only_what_needs_it() {
    let server = ModelServer::start(side_by_side());
    let env = env(&server);
    let ended = shoot(&env, &["--validate", CHECK, "--run", "grep", "--max-breakdowns", "1"]);
    assert_eq!(outcome(&ended)["status"], "failed", "{ended:?}");
    for (goal, status) in [
        ("say done", "failed"),
        ("put alpha", "success"),
        ("put beta", "failed"),
        ("put gamma", "not_started"),
        ("put delta", "success"),
    ] {
        assert_eq!(status_of(&env, goal), status, "{goal}: {:?}", ends(&env));
    }
    let work = env.workspace();
    for (file, text) in [("a.txt", "alpha"), ("d.txt", "delta")] {
        assert_eq!(git(&work, ["show", &format!("nietz/r1:{file}")]), text);
    }
    assert!(server.most_at_once() >= 2);
    // Each of the two is told of the other, and what comes later of what was merged.
    let read = |goal: &str| {
        let asked =
            server.requests().into_iter().find(|request| request.method == "POST" && self::goal(request) == goal);
        prompt(&asked.expect("it was worked on"))
    };
    assert!(read("put alpha into a.txt").contains("\n2. (in work beside yours) put beta into b.txt\n"));
    assert!(read("put beta into b.txt").contains("\n1. (in work beside yours) put alpha into a.txt\n"));
    let last = read("put delta into d.txt");
    assert!(last.contains("\n1. (merged) put alpha into a.txt\n") && last.contains("\na.txt\n"), "{last}");
    check_tables(&env);
}

#[test]
fn with_parallel_1_parts_are_worked_on_one_after_the_other() {
    let server = ModelServer::start(|request| match (breaks_down(request), step(request)) {
        (true, _) => subs(&[
            sub("put alpha into a.txt", &[], "grep -qx alpha a.txt"),
            sub("put beta into b.txt", &[], "grep -qx beta b.txt"),
            sub("put delta into d.txt", &[], "grep -qx delta d.txt"),
        ]),
        (_, 0) => match goal(request).as_str() {
            "put alpha into a.txt" => write("a.txt", "alpha\n"),
            "put beta into b.txt" => write("b.txt", "beta\n"),
            "put delta into d.txt" => call(
                "write_files",
                &json!({ "files": [{ "path": "d.txt", "text": "delta\n" }, { "path": "e.txt", "text": "x" }] }),
            ),
            _ => write("wrong.txt", "x"),
        },
        _ => Response::text("Done."),
    });
    let env = env(&server);
    let ended = shoot(&env, &["--validate", "grep -q delta d.txt", "--run", "grep", "--parallel", "1"]);
    assert_eq!((&outcome(&ended)["status"], server.most_at_once()), (&json!("success"), 1), "{ended:?}");
    // None had to take in what others had merged: of each part there are the merge of its attempt and that of itself.
    assert_eq!(rows(&env, "merge").len(), 6);
}

/// Two parts that are worked on at the same time: the one that is merged second finds a head that it does not know.
fn both(first: Response, second: Response, again: Response) -> impl Fn(&Request) -> Response {
    let begun = (Gate::default(), Gate::default());
    let shots = AtomicUsize::new(0);
    move |request| match (breaks_down(request), goal(request).as_str(), step(request)) {
        (true, ..) => subs(&[
            sub("say alpha in work.txt", &[], "grep -q alpha work.txt && test $(wc -l < work.txt) -le 4"),
            sub("say beta in work.txt", &[], "grep -q beta work.txt && test $(wc -l < work.txt) -le 4"),
        ]),
        (_, "say done in work.txt", 0) => write("wrong.txt", "x"),
        (_, "say alpha in work.txt", 0) if !begun.0.is_open() => {
            begun.0.open();
            first.clone().held_by(&begun.1)
        }
        (_, "say beta in work.txt", 0) if !begun.1.is_open() => {
            begun.1.open();
            second.clone().held_by(&begun.0)
        }
        // Whichever was merged second.
        (_, _, 0) => {
            assert_eq!(shots.fetch_add(1, Ordering::SeqCst), 0, "one part is tried again, once");
            again.clone()
        }
        _ => Response::text("Done."),
    }
}

#[test]
fn a_part_in_conflict_with_one_that_was_merged_meanwhile_is_tried_again_from_there() {
    let server = ModelServer::start(both(
        replace("todo", "alpha"),
        replace("todo", "beta"),
        call("run", &json!({ "command": "printf 'one\\nalpha beta\\nthree\\n' > work.txt" })),
    ));
    let env = env(&server);
    let ended = shoot(&env, &["--validate", "grep -rq 'alpha beta' ."]);
    assert_eq!(outcome(&ended)["status"], "success", "{ended:?}");
    assert_eq!(git(&env.workspace(), ["show", "nietz/r1:work.txt"]), "one\nalpha beta\nthree");
    let conflicts = rows(&env, "merge_conflict");
    assert_eq!((conflicts.len(), &conflicts[0]["paths"]), (1, &json!(["work.txt"])));
    let told = column(&env, "attempt", "prompt").pop().unwrap();
    assert!(told.as_str().unwrap().contains("cannot be merged: conflicts in work.txt"), "{told}");
    check_tables(&env);
}

#[test]
fn what_does_not_validate_together_with_what_was_merged_meanwhile_is_not_merged() {
    // Each adds a line at an end of its own, and both are one line too many.
    let server = ModelServer::start(both(
        replace("one\n", "alpha\none\n"),
        replace("three\n", "three\nbeta\n"),
        call("run", &json!({ "command": "printf 'alpha\\none\\nthree\\nbeta\\n' > work.txt" })),
    ));
    let env = env(&server);
    let ended = shoot(&env, &["--validate", "grep -rq alpha . && grep -rq beta ."]);
    assert_eq!(outcome(&ended)["status"], "success", "{ended:?}");
    assert_eq!(git(&env.workspace(), ["show", "nietz/r1:work.txt"]), "alpha\none\nthree\nbeta");
    assert_eq!(rows(&env, "merge_conflict").len(), 0);
    let told = column(&env, "attempt", "prompt").pop().unwrap();
    assert!(told.as_str().unwrap().contains("Together with what was merged meanwhile: `grep -q "), "{told}");
    check_tables(&env);
}

#[test]
fn with_plan_first_a_goal_is_broken_down_before_anybody_shoots_at_it() {
    let server = ModelServer::start(|request| match (breaks_down(request), step(request)) {
        (true, _) => subs(&[sub("say done in the middle of work.txt", &[], "grep -qx done work.txt")]),
        (_, 0) => replace("todo", "done"),
        _ => Response::text("Done."),
    });
    let env = env(&server);
    let ended = shoot(&env, &["--validate", CHECK, "--run", "grep", "--plan-first"]);
    assert_eq!(outcome(&ended)["status"], "success", "{ended:?}");
    assert_eq!(column(&env, "attempt", "attempt_type"), ["breakdown", "implementation"]);
    assert_eq!(column(&env, "attempt", "goal_id"), [1, 2]);
    assert_eq!(column(&env, "goal", "created_by_attempt_id"), [Value::Null, json!(1)]);
    check_tables(&env);
}

#[test]
fn a_part_that_comes_after_a_later_one_is_sent_back() {
    let server = ModelServer::start(|request| match (breaks_down(request), step(request)) {
        (true, 0) => call("list_folder", &json!({ "path": "." })),
        (true, 1) => subs(&[sub("say done in the middle of work.txt", &[1], "grep -qx done work.txt")]),
        (true, _) => {
            let told = request.prompt();
            assert!(told.contains("sub-goal 1 comes after 1: list them so that each comes behind those"), "{told}");
            subs(&[sub("say done in the middle of work.txt", &[], "grep -qx done work.txt")])
        }
        (_, 0) => replace("todo", "done"),
        _ => Response::text("Done."),
    });
    let env = env(&server);
    let ended = shoot(&env, &["--validate", CHECK, "--run", "grep", "--plan-first"]);
    assert_eq!(outcome(&ended)["status"], "success", "{ended:?}");
}

#[test]
fn where_no_part_can_have_a_command_that_is_said_before_the_first_call_and_b_shoots_in_place_of_dividing() {
    let server = ModelServer::start(|request| {
        assert!(!breaks_down(request), "nobody is paid for parts that cannot be validated");
        let model = request.body["model"].as_str().unwrap_or_default().to_owned();
        match step(request) {
            0 => write("tried.txt", &format!("{model} {}", prompt(request).matches("Attempt ").count())),
            _ => Response::text("I cannot."),
        }
    });
    let env = env(&server);
    let ended = shoot(&env, &["--validate", CHECK, "--no-run", "--max-breakdowns", "2"]);
    assert_eq!(column(&env, "attempt", "model"), ["openai/a", "openai/b", "openai/a"], "{ended:?}");
    let result = outcome(&ended);
    assert_eq!(result["status"], "failed");
    assert!(
        result["detail"].as_str().unwrap().starts_with("3 shots did not reach it, and parts of the goal"),
        "{result}"
    );
    let plain = env.nietz(["run", "shots-on-goal", "say done", "--model", "openai/b", "--validate", CHECK, "--no-run"]);
    let plain = plain.args(["--max-breakdowns", "1"]).var("NIETZ_RUN", "r2").go().stdout;
    let (said, began) = (plain.find("The goal will not be broken down: "), plain.find(" begins"));
    assert!(said.is_some() && said < began, "{plain}");
    assert!(plain.contains("but only `sh check.sh`. `--run PROGRAM` allows such commands"), "{plain}");
}

#[test]
fn shots_side_by_side_are_by_the_models_and_at_the_temperatures_that_were_given() {
    let server = ModelServer::start(|request| match step(request) {
        0 => replace("todo", if request.body["model"] == "c" { "done" } else { "nearly" }),
        _ => Response::text("Done."),
    });
    let env = env(&server);
    let ended = shoot(
        &env,
        &[
            "--validate",
            CHECK,
            "--shot-model",
            "openai/b",
            "--shot-model",
            "openai/c",
            "--shot-temperature",
            "0",
            "--shot-temperature",
            "0.5",
            "--max-breakdowns",
            "0",
        ],
    );
    assert_eq!(outcome(&ended)["status"], "success", "{ended:?}");
    let mut asked: Vec<(String, String)> = server
        .requests()
        .iter()
        .filter(|request| request.method == "POST" && step(request) == 0)
        .map(|request| (request.body["model"].to_string(), request.body["temperature"].to_string()))
        .collect();
    asked.sort();
    let expected = [("\"a\"", "0.0"), ("\"b\"", "0.5"), ("\"c\"", "0.0")];
    assert_eq!(asked, expected.map(|(model, temperature)| (model.to_owned(), temperature.to_owned())));
    let mut models = column(&env, "attempt", "model");
    models.sort_by_key(Value::to_string);
    assert_eq!(models, ["openai/a", "openai/b", "openai/c"]);
}

#[test]
fn killed_here_and_there_parts_side_by_side_come_to_the_same_end() {
    let more = ["--validate", CHECK, "--run", "grep", "--max-breakdowns", "1"];
    let begin = |env: &Env| {
        let models = ["shots-on-goal", "--model-a", "openai/a", "--model-b", "openai/b"];
        env.run(models.into_iter().chain(more)).args(["say done in work.txt"])
    };
    let server = ModelServer::start(side_by_side());
    let reference = env(&server);
    let ended = begin(&reference).go();
    let mut expected = ends(&reference);
    expected.sort();
    let lines = reference.journal().lines.len() as u64;
    kills::for_each(&kills::points(lines, 6), |line| {
        let server = ModelServer::start(side_by_side());
        let env = env(&server);
        let killed = begin(&env).var("NIETZ_FAULT", &format!("kill@{line}")).go();
        // Which line comes when is another matter each time, and there may be fewer.
        if killed.signal == Some(9) {
            let resumed = env.resume().go();
            assert_eq!(outcome(&resumed)["status"], outcome(&ended)["status"], "killed after line {line}: {resumed:?}");
        }
        let mut found = ends(&env);
        found.sort();
        assert_eq!(found, expected, "killed after line {line}");
        check_tables(&env);
        assert_eq!(git(&env.workspace(), ["worktree", "list"]).lines().count(), 1, "killed after line {line}");
        env.nietz(["verify", "r1"]).go().exits(0);
    });
}

#[test]
fn a_goals_branch_that_somebody_has_checked_out_ends_its_session_and_not_the_run() {
    let folder = std::sync::Arc::new(std::sync::Mutex::new(None::<std::path::PathBuf>));
    let work = folder.clone();
    let server = ModelServer::start(move |request| match step(request) {
        0 => replace("todo", "done"),
        _ => {
            let work = work.lock().unwrap().clone().expect("it is told");
            git(&work, ["checkout", "-q", "nietz/r1"]);
            Response::text("Done.")
        }
    });
    let env = env(&server);
    *folder.lock().unwrap() = Some(env.workspace());
    let ended = shoot(&env, &["--validate", CHECK]);
    let result = outcome(&ended);
    let why = "attempt 1 validates on nietz/r1-g1-a1, and cannot be merged: the branch `nietz/r1` is checked out in a worktree";
    assert_eq!(result["status"], "failed", "{ended:?}");
    assert!(result["detail"].as_str().unwrap().starts_with(why), "{result}");
    assert_eq!(git(&env.workspace(), ["show", "nietz/r1-g1-a1:work.txt"]), "one\ndone\nthree");
}
