//! The promise: a flow finds any commit that a person can name, and what is not committed, and only looks.

use serde_json::{Value, json};

use crate::support::env::Env;
use crate::support::git::{git, init};

const FLOW: &str = r#"
local nietz, git = require("@nietz"), require("@nietz/git")
local function code(name, ...)
  local ok, problem = pcall(git[name], ...)
  return if ok then "fine" else problem.code
end
return nietz.flow {
  name = "look", summary = "Looks at commits", permissions = { git = "read" },
  params = { short = { type = "string", required = true } },
  run = function(ctx)
    local found = {}
    for name, revision in {
      head = "HEAD", before = "HEAD~1", at = "@", before_at = "@~1", tag = "v0", remote = "origin/main", short = ctx.params.short,
      first = "main~2", heads = "heads/side", side = "side^", absent = "nowhere", far = "HEAD~99", other = "topic",
    } do
      found[name] = git.resolve(revision) or "none"
    end
    local log = git.log { from = "v0", to = "main" }
    return {
      found = found,
      refused = {
        option = code("resolve", "--all"), range = code("resolve", "a..b"), time = code("resolve", "HEAD@{1}"),
        search = code("resolve", ":/first"), diff = code("diff", "nowhere", "HEAD"), most = code("log", { most = 0 }),
      },
      base = git.merge_base("main", "side"), alone = git.merge_base("main", "alone") or "none",
      log = log, two = git.log { most = 2 }, a = git.log { path = "a.txt" },
      staged = git.staged().patch, unstaged = git.unstaged().patch,
      diff = git.diff("HEAD~1", "HEAD").patch, changed = git.changed("v0", "HEAD"), files = git.files("v0").paths,
    }
  end,
}
"#;

/// Three commits on `main`, the first with a tag; a branch and a remote's branch at the second; one that shares nothing.
fn env() -> (Env, Vec<String>) {
    let env = Env::new().flow("look", FLOW).file("a.txt", "one\n").file(".gitignore", ".nietz\n");
    let work = env.workspace();
    init(&work);
    git(&work, ["tag", "-a", "v0", "-m", "the first"]);
    env.write("b.txt", "two\n");
    git(&work, ["add", "b.txt"]);
    git(&work, ["commit", "-q", "-m", "second\n\nwith a body"]);
    git(&work, ["update-ref", "refs/remotes/origin/main", "HEAD"]);
    git(&work, ["branch", "side"]);
    env.write("a.txt", "three\n");
    git(&work, ["commit", "-q", "-am", "third"]);
    let empty = git(&work, ["hash-object", "-t", "tree", "/dev/null"]);
    let alone = git(&work, ["commit-tree", &empty, "-m", "alone"]);
    git(&work, ["branch", "alone", &alone]);
    let commits = ["HEAD~2", "HEAD~1", "HEAD"].map(|name| git(&work, ["rev-parse", name]));
    (env, commits.to_vec())
}

fn messages(log: &Value) -> Vec<&str> {
    let commits = log["commits"].as_array().map(Vec::as_slice).unwrap_or_default();
    commits.iter().filter_map(|commit| commit["message"].as_str()).collect()
}

#[test]
fn commits_are_found_by_the_names_that_people_give_them() {
    let (env, commits) = env();
    let result = env.run(["look", "--short", &commits[1][..9]]).go().result();
    let [first, second, third] = [0, 1, 2].map(|at| commits[at].as_str());
    assert_eq!(
        result["found"],
        json!({ "head": third, "before": second, "at": third, "before_at": second, "tag": first, "remote": second, "short": second, "first": first,
            "heads": second, "side": first, "absent": "none", "far": "none", "other": "none" })
    );
    let wrong = "request-invalid";
    assert_eq!(
        result["refused"],
        json!({ "option": wrong, "range": wrong, "time": wrong, "search": wrong, "diff": "git-failed", "most": wrong })
    );
    assert_eq!((&result["base"], &result["alone"]), (&json!(second), &json!("none")));
    assert_eq!(messages(&result["log"]), ["third", "second\n\nwith a body"]);
    assert_eq!(result["log"]["commits"][0]["parents"], json!([second]));
    assert_eq!(result["log"]["commits"][0]["author"], "Somebody");
    assert_eq!(result["log"]["commits"][0]["time"], 1_767_950_000);
    assert_eq!((messages(&result["two"]).len(), &result["two"]["cut"]), (2, &json!(true)));
    assert_eq!(messages(&result["a"]), ["third", "first"]);
    assert!(result["diff"].as_str().expect("a patch").contains("-one\n+three\n"), "{result}");
    assert_eq!(result["changed"], json!(["a.txt", "b.txt"]));
    assert_eq!(result["files"], json!([".gitignore", "a.txt", "flows/look.lua"]));
}

#[test]
fn what_is_staged_and_what_is_not_are_told_apart_and_the_index_stays_as_it_is() {
    let (env, commits) = env();
    let work = env.workspace();
    env.write("b.txt", "staged\n");
    git(&work, ["add", "b.txt"]);
    env.write("b.txt", "changed\n");
    // Touched, and not changed: no part of any patch.
    env.write("a.txt", "three\n");
    let index = std::fs::read(env.path(".git/index")).expect("an index");
    let run = |env: &Env| env.run(["look", "--short", &commits[0]]).go().result();
    let result = run(&env);
    assert_eq!(std::fs::read(env.path(".git/index")).expect("an index"), index);
    let (staged, unstaged) =
        (result["staged"].as_str().expect("a patch"), result["unstaged"].as_str().expect("a patch"));
    assert!(staged.contains("-two\n+staged\n") && !staged.contains("a.txt"), "{staged}");
    assert!(unstaged.contains("-staged\n+changed\n") && !unstaged.contains("a.txt"), "{unstaged}");

    // Recorded: whatever happens to the repository, a resumed run sees what it saw.
    let journal = env.journal();
    env.write("b.txt", "later\n");
    git(&work, ["commit", "-q", "-am", "fourth"]);
    assert_eq!(env.resume().go().result(), result);
    assert_eq!(env.journal().lines.len(), journal.lines.len());
}
