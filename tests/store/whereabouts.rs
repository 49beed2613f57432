//! The promise: a run that has made branches goes on where they are. Elsewhere it is refused with what to do, and left to that machine.

use super::children::{Team, end};
use super::hosts::status;
use crate::support::env::Env;
use crate::support::git;

const WORKS: &str = r#"
local git = require("@nietz/git")
local nietz = require("@nietz")
local ui = require("@nietz/ui")
return nietz.flow { name = "works", summary = "Works on a branch", host_api = 2, permissions = { git = true },
  run = function(ctx)
    local name = "nietz/" .. ctx.run
    git.branch(name, git.head().commit)
    local tree = git.worktree({ name = "w", branch = name })
    tree:write("a.txt", "tea\n")
    local first = tree:commit("first").commit
    ui.ask { id = "go", prompt = "Go on?" }
    tree:write("b.txt", "tea\n")
    local second = tree:commit("second").commit
    tree:remove()
    return git.changed(first, second)
  end }
"#;

fn machine(team: &Team<'_>) -> Env {
    let env = team.machine().flow("works", WORKS);
    git::init(&env.workspace());
    env
}

#[test]
fn a_run_with_branches_goes_on_where_they_are_and_is_refused_elsewhere() {
    let Some(team) = Team::new(None) else { return };
    let (one, other) = (machine(&team), machine(&team));
    one.run(["works"]).go().exits(7);
    let lines = "SELECT count(*) FROM nietz.line";
    let before = team.ask(lines);
    let refused = other.resume().stdin("{\"id\": \"go\", \"answer\": \"yes\"}\n").go();
    assert_ne!(refused.code, Some(0), "{refused:?}");
    for part in ["git-failed", "has made the branch nietz/r1", "another machine", "go on where that repository is"] {
        assert!(refused.stderr.contains(part) || refused.stdout.contains(part), "{part}: {refused:?}");
    }
    assert_eq!(team.ask(lines), before, "nothing of it was done");
    assert_eq!(status(&team.database, "r1"), "waiting", "and it waits as before");

    // A worker there leaves it to others; in the end people see why.
    other.nietz(["answer", "r1", "yes"]).go().exits(0);
    let worker = team.worker(&other, &[]);
    while status(&team.database, "r1") != "stuck" {
        if super::workers::children(worker.id()).is_empty() {
            team.expire_all();
        }
    }
    end(worker);
    let inbox = other.nietz(["inbox"]).go().exits(0).stdout;
    assert!(inbox.contains("has made the branch nietz/r1"), "{inbox}");

    one.nietz(["resume", "r1", "--queue"]).go().exits(0);
    let worker = team.worker(&one, &[]);
    team.until("SELECT status FROM nietz.run", "done");
    end(worker);
    assert_eq!(one.resume().go().result(), serde_json::json!(["b.txt"]));
    assert_eq!(git::git(&one.workspace(), ["log", "--format=%s", "nietz/r1"]), "second\nfirst\nfirst");
    one.nietz(["verify", "r1"]).go().exits(0);
}
