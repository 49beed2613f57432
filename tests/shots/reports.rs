//! The promise: a session's page shows the tree of goals with its attempts, what validated, what changed, and how to take it.

use super::basics::{CHECK, call_of, divided, env};
use crate::support::model_server::ModelServer;

#[test]
fn the_page_of_a_session_shows_its_goals_attempts_and_changes() {
    let server = ModelServer::start(divided);
    let env = env(&server);
    let ended = call_of(&env, &["--validate", CHECK, "--run", "grep"]).patient().go();
    assert_eq!(ended.result()["status"], "success");
    let page = env.page("shots-on-goal");
    for part in [
        "say done in work.txt",
        "put alpha into a.txt",
        "attempt 1: openai/a, implementation",
        "attempt 2: openai/b, breakdown",
        "git merge --no-ff nietz/r1",
        "grep -q beta b.txt",
        "<span class=\"new\">+beta</span>",
    ] {
        assert!(page.contains(part), "{part} is missing: {page}");
    }
    // The shot that failed, and the goals that were reached.
    assert!(page.contains("✗</span> attempt 1") && page.contains("✓</span> put alpha"), "{page}");
}

#[test]
fn the_page_of_a_session_that_did_not_reach_its_goal_says_so() {
    let server = ModelServer::start(|_| crate::support::model_server::Response::text("I cannot."));
    let env = env(&server);
    call_of(&env, &["--validate", CHECK, "--max-depth", "1"]).patient().go().exits(8);
    let page = env.page("shots-on-goal-failed");
    assert!(page.contains("failed") && !page.contains("git merge"), "{page}");
}
