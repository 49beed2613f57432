//! The promise to whoever tidies up: what sessions have left is listed first, removed when that is agreed to, and a result that is
//! merged nowhere stays unless it is named as well.

use serde_json::json;

use super::basics::{CHECK, divided, env, good, rows, shoot, step};
use crate::support::env::Env;
use crate::support::git::git;
use crate::support::model_server::{ModelServer, Response};
use crate::support::process::Ended;

fn branches(env: &Env) -> Vec<String> {
    let listed = git(&env.workspace(), ["for-each-ref", "--format=%(refname:short)", "refs/heads/nietz"]);
    listed.lines().map(str::to_owned).collect()
}

fn clean(env: &Env, run: &str, more: &[&str]) -> Ended {
    let call = ["shots-on-goal", "clean"].into_iter().chain(more.iter().copied());
    env.nietz(["run"]).args(call).var("NIETZ_RUN", run).go()
}

#[test]
fn branches_are_listed_and_removed_where_that_is_agreed_to() {
    let server = ModelServer::start(divided);
    let env = env(&server);
    shoot(&env, &["--validate", CHECK, "--run", "grep"]).result();
    git(&env.workspace(), ["branch", "nietz/other-run", "main"]);
    let before = branches(&env);
    assert!(before.len() > 8, "{before:?}");

    let listed = clean(&env, "c1", &[]).exits(0).stdout;
    assert!(listed.contains("r1  branch    nietz/r1-g1-a1\n"), "{listed}");
    assert!(listed.contains("r1  stays     nietz/r1: the result, which is not merged"), "{listed}");
    assert!(listed.contains("Nothing is removed: nobody is there to ask."), "{listed}");
    assert_eq!(branches(&env), before, "nothing is removed unasked");

    let env = env.file("no.yaml", "clean: false\n");
    let answered = clean(&env, "c2", &["--answers", "no.yaml"]).exits(0);
    assert_eq!(branches(&env), before, "{answered:?}");

    let result = env.run(["shots-on-goal", "clean", "--yes"]).var("NIETZ_RUN", "c3").go().result();
    assert_eq!(result, json!({ "branches": before.len() - 2, "worktrees": 0 }));
    assert_eq!(branches(&env), ["nietz/other-run", "nietz/r1"], "the result and what is no session's stay");
    git(&env.workspace(), ["merge", "-q", "--no-ff", "-m", "take it", "nietz/r1"]);
    clean(&env, "c4", &["--yes"]).exits(0);
    assert_eq!(branches(&env), ["nietz/other-run"], "a result that is merged goes, too");
    assert!(!rows(&env, "merge").is_empty(), "the record stays");
    let mut left: Vec<_> = std::fs::read_dir(env.path(".nietz/runs"))
        .expect("there are runs")
        .map(|entry| entry.expect("it can be read").file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["c3", "c4", "r1"], "one that removed nothing leaves no run");
}

#[test]
fn a_result_that_is_not_merged_goes_only_if_all_is_to_go() {
    let server = ModelServer::start(good);
    let env = env(&server);
    shoot(&env, &["--validate", CHECK]).result();
    clean(&env, "c1", &["--yes"]).exits(0);
    assert_eq!(branches(&env), ["nietz/r1"]);
    clean(&env, "c2", &["--yes", "--all"]).exits(0);
    assert_eq!(branches(&env), [""; 0]);
    let said = clean(&env, "c3", &["--yes"]).exits(0).stdout;
    assert!(said.contains("There is nothing to remove."), "{said}");
}

#[test]
fn a_session_that_was_killed_is_removed_with_its_worktrees_only_if_it_is_named() {
    let server = ModelServer::start(|request| match step(request) {
        // A model that is asked for the second time is never answered: the session dies there.
        1 => Response::silence(),
        _ => good(request),
    });
    let env = env(&server);
    let call = ["shots-on-goal", "--model-a", "openai/a", "--validate", CHECK, "say done in work.txt"];
    let mut running = env.run(call).spawn();
    running.until(|| rows(&env, "tool_call").len() == 1);
    running.kill();
    let count = || git(&env.workspace(), ["worktree", "list"]).lines().count();
    assert!(count() > 1, "it leaves its worktrees");
    // Another session's name begins with the same letters.
    git(&env.workspace(), ["branch", "nietz/r10-g1-a1", "main"]);

    let said = clean(&env, "c1", &["--yes"]).exits(0).stdout;
    assert!(said.contains("r1  stays     not over: nietz resume r1"), "{said}");
    assert!(count() > 1);
    let said = clean(&env, "c2", &["--yes", "r1"]).exits(0).stdout;
    assert!(said.contains("r1  worktree  g1-a1\n") && said.contains("r1  worktree  validation\n"), "{said}");
    assert_eq!(count(), 1);
    assert_eq!(branches(&env), ["nietz/r10-g1-a1"]);
    assert_eq!(clean(&env, "c3", &["--yes", "nowhere"]).code, Some(2), "a session that is not there is wrong usage");
}

#[test]
fn a_branch_that_is_checked_out_stays() {
    let server = ModelServer::start(good);
    let env = env(&server);
    shoot(&env, &["--validate", CHECK]).result();
    git(&env.workspace(), ["checkout", "-q", "nietz/r1-g1-a1"]);
    let said = clean(&env, "c1", &["--yes", "--all"]).exits(0).stdout;
    assert!(said.contains("r1  stays     nietz/r1-g1-a1: it is checked out"), "{said}");
    assert_eq!(branches(&env), ["nietz/r1-g1-a1"]);
}
