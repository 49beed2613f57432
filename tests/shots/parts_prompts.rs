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
    assert_snapshot!(prompts[0], @r#"
    A goal is to be reached in this git repository, and nobody has tried yet. You look at the repository as it is now, with tools
    that only read, and break the goal down into parts.

    The goal: say done in work.txt

    The files of the repository:
    big/README
    check.sh
    work.txt

    It counts as reached when each of these commands exits with 0:
    - `sh check.sh`

    Give 1 to 20 sub-goals that together reach the goal: as few as it takes, and none that is reached already. Each is worked on in
    a worktree of its own, and merged when it validates. Each sub-goal

    - is a concrete change to files that somebody can make in fewer than 20 tool calls, and names those files;
    - says in `after` the numbers of the sub-goals that must be merged before it can begin, all of them listed before it; `[]`
      where it needs none;
    - is no exploration, no plan and no documentation of what was found;
    - has validation: one or more commands that exit with 0 when this sub-goal is reached, whether or not the others are, and
      would fail before. Each can be any line of a shell; it runs in a sandbox.

    You have 200 tool calls. Answer with the JSON value alone.
    "#);
    assert_snapshot!(prompts[1], @r#"
    You are working in a git repository, in a worktree of your own. Your task is one part of a larger goal. Reach this part, and
    nothing else, by changing files:

    put alpha into a.txt

    The larger goal, so that you know what your part is for. It is not your task:
    - say done in work.txt

    All parts of it, and where each stands:
    1. (yours) put alpha into a.txt
    2. (to come) put beta into b.txt
    3. (to come) put gamma into c.txt
    What is merged is in your files already. Leave the other parts to those who work on them: each starts from the same files,
    and what you change beyond your part may be in the way when all are merged.

    The files of the repository:
    big/README
    check.sh
    work.txt

    The goal counts as reached when each of these commands exits with 0, run in this order on a clean checkout of what you
    leave, in a sandbox:
    - `grep -qx alpha a.txt`
    These files are taken from the original commit for that, so changing them does not help:
    - `check.sh`
    - `**/*{test,check,verify,validate}*.sh`

    You have 200 tool calls. Look before you write: read the files that matter, then change as little as the goal
    needs. You may run any line of a shell, in a sandbox. Your work is committed for you.

    When the goal is reached, stop calling tools and say in one or two sentences what you did. If you cannot reach it, say
    what stands in the way.
    "#);
    assert_snapshot!(find(&prompts, &["changing files:\n\nwrite gamma there"]), @r#"
    You are working in a git repository, in a worktree of your own. Your task is one part of a larger goal. Reach this part, and
    nothing else, by changing files:

    write gamma there

    The larger goals, each a part of the one above it, so that you know what your part is for. They are not your task:
    - say done in work.txt
    - put beta into b.txt

    All parts of the last of these, and where each stands:
    1. (merged) make the file c.txt
    2. (yours) write gamma there
    What is merged is in your files already. Leave the other parts to those who work on them: each starts from the same files,
    and what you change beyond your part may be in the way when all are merged.

    The files of the repository:
    a.txt
    big/README
    c.txt
    check.sh
    work.txt

    The goal counts as reached when each of these commands exits with 0, run in this order on a clean checkout of what you
    leave, in a sandbox:
    - `false`
    These files are taken from the original commit for that, so changing them does not help:
    - `check.sh`
    - `**/*{test,check,verify,validate}*.sh`

    You have 200 tool calls. Look before you write: read the files that matter, then change as little as the goal
    needs. You may run any line of a shell, in a sandbox. Your work is committed for you.

    When the goal is reached, stop calling tools and say in one or two sentences what you did. If you cannot reach it, say
    what stands in the way.
    "#);
    assert_snapshot!(find(&prompts, &["break the goal down", "The goal: put beta into b.txt"]), @r#"
    A model tried to reach a goal in this git repository, and did not. You look at the repository as it is now, with tools
    that only read, and break the goal down into parts.

    The goal: put beta into b.txt

    It is one part of a larger goal, which is not your task:
    - say done in work.txt

    All parts of that, and where each stands:
    1. (merged) put alpha into a.txt
    2. (yours) put beta into b.txt
    3. (to come) put gamma into c.txt

    The files of the repository:
    a.txt
    big/README
    check.sh
    work.txt

    It counts as reached when each of these commands exits with 0:
    - `grep -qx beta b.txt`

    What was tried, and how it ended. Nothing of what failed is in the files:
    - Attempt 3 by openai/b: completed. `grep -qx beta b.txt` exited with 2. I did what I could. It changed wrong.txt. `grep -qx beta b.txt` wrote at last:
    grep: b.txt: No such file or directory


    Give 1 to 20 sub-goals that together reach the goal: as few as it takes, and none that is reached already. Each is worked on in
    a worktree of its own, and merged when it validates. Each sub-goal

    - is a concrete change to files that somebody can make in fewer than 20 tool calls, and names those files;
    - says in `after` the numbers of the sub-goals that must be merged before it can begin, all of them listed before it; `[]`
      where it needs none;
    - avoids what went wrong before;
    - is no exploration, no plan and no documentation of what was found;
    - has validation: one or more commands that exit with 0 when this sub-goal is reached, whether or not the others are, and
      would fail before. Each can be any line of a shell; it runs in a sandbox.

    You have 200 tool calls. Answer with the JSON value alone.
    "#);
    assert_snapshot!(find(&prompts, &["changing its files:\n\nsay done in work.txt"]), @r#"
    You are working in a git repository, in a worktree of your own. Reach this goal by changing its files:

    say done in work.txt

    The files of the repository:
    a.txt
    big/README
    check.sh
    work.txt

    The goal counts as reached when each of these commands exits with 0, run in this order on a clean checkout of what you
    leave, in a sandbox:
    - `sh check.sh`
    These files are taken from the original commit for that, so changing them does not help:
    - `check.sh`
    - `**/*{test,check,verify,validate}*.sh`

    What was tried before, and how it ended:
    - Part 1 "put alpha into a.txt" is reached and merged: its work is in the files.
    - Part 2 "put beta into b.txt" failed, and none of its work is in the files: stalled: attempt 10 left the same files with the same result as one before. What was tried last: Attempt 10 by openai/b: completed. `grep -qx beta b.txt` exited with 2. I did what I could. It changed c.txt, wrong.txt. `grep -qx beta b.txt` wrote at last:
    grep: b.txt: No such file or directory

    - Part 3 "put gamma into c.txt" failed, and none of its work is in the files: all 3 breakdowns are used. What was tried last: Attempt 11 by openai/b: completed. `grep -qx gamma c.txt` exited with 2. I did what I could. It changed wrong.txt. `grep -qx gamma c.txt` wrote at last:
    grep: c.txt: No such file or directory

    Your worktree has nothing of that work.
    Do not repeat what failed; find out why it did.

    You have 200 tool calls. Look before you write: read the files that matter, then change as little as the goal
    needs. You may run any line of a shell, in a sandbox. Your work is committed for you.

    When the goal is reached, stop calling tools and say in one or two sentences what you did. If you cannot reach it, say
    what stands in the way.
    "#);
}
