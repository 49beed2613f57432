//! The promise to models that work on parts: they read which part is theirs, what became of the others, and today's files.

use insta::assert_snapshot;

use super::basics::{CHECK, env, prompt, replace, shoot, step};
use super::parts::{breaks_down, goal, outcome, sub, subs, write};
use crate::support::model_server::{ModelServer, Request, Response};

/// Part 1 is merged, part 2 fails, part 3 is broken down, and then the whole is tried again.
fn script(request: &Request) -> Response {
    match (breaks_down(request), goal(request).as_str(), step(request)) {
        (true, "say done in work.txt", _) => subs(&[
            sub("put alpha into a.txt", &[], "grep -qx alpha a.txt"),
            sub("put beta into b.txt", &[1], "grep -qx beta b.txt"),
            sub("put gamma into c.txt", &[1], "grep -qx gamma c.txt"),
        ]),
        (true, ..) => {
            subs(&[sub("make the file c.txt", &[], "test -e c.txt"), sub("write gamma there", &[1], "false")])
        }
        (_, "put alpha into a.txt", 0) => write("a.txt", "alpha\n"),
        (_, "make the file c.txt", 0) => write("c.txt", "\n"),
        (_, "say done in work.txt", 0) if prompt(request).contains("\na.txt\n") => replace("todo", "done"),
        (_, _, 0) => write("wrong.txt", "x"),
        _ => Response::text("I did what I could."),
    }
}

fn prompts() -> Vec<String> {
    let server = ModelServer::start(script);
    let env = env(&server);
    let more = ["--validate", CHECK, "--run", "grep", "--parallel", "1", "--max-depth", "3", "--max-breakdowns", "3"];
    let ended = shoot(&env, &[&more[..], &["--plan-first"]].concat());
    assert_eq!(outcome(&ended)["status"], "success", "{ended:?}");
    server.requests().iter().filter(|request| request.method == "POST" && step(request) == 0).map(prompt).collect()
}

/// The first prompt for a goal that has all of these.
fn find(prompts: &[String], parts: &[&str]) -> String {
    let all = |text: &&String| parts.iter().all(|part| text.contains(part));
    prompts.iter().find(all).unwrap_or_else(|| panic!("no prompt has {parts:?}: {prompts:#?}")).clone()
}

#[test]
fn prompts_are_whole_and_nothing_in_them_runs_together() {
    let prompts = prompts();
    assert_snapshot!(prompts[0], @"");
    assert_snapshot!(prompts[1], @"");
    assert_snapshot!(find(&prompts, &["changing files:\n\nwrite gamma there"]), @"");
    assert_snapshot!(find(&prompts, &["break the goal down", "The goal: put gamma into c.txt"]), @"");
    assert_snapshot!(find(&prompts, &["changing its files:\n\nsay done in work.txt"]), @"");
}
