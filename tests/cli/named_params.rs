//! The promise: what a param names, a commit, a persona or a run, is there when a run begins; what is misspelt is wrong usage, says
//! what there is, and leaves no run.

use serde_json::json;

use crate::support::env::Env;
use crate::support::git::{git, init};

const FLOW: &str = r#"
return require("@nietz").flow {
  name = "names", summary = "Names things", host_api = 2, permissions = { git = "read" },
  params = {
    base = { type = "revision", positional = true, order = 1, help = "Where it began" },
    head = { type = "revision", positional = true, order = 2, default = "HEAD", help = "Where it ends" },
    voice = { type = "persona" },
    reviewer = { type = "persona", many = true, min_items = 2, max_items = 3, default = { "guide", "sceptic" }, help = "Who" },
  },
  run = function(ctx)
    local p = ctx.params
    return { base = p.base or "none", head = p.head, voice = p.voice or "none", reviewer = p.reviewer }
  end,
}
"#;

fn env() -> Env {
    let mut env = Env::new().flow("names", FLOW).file(".gitignore", ".nietz\n");
    for slug in ["guide", "sceptic", "builder"] {
        env = env.file(&format!("personas/{slug}.md"), format!("---\nname: {slug}\n---\nYou are the {slug}.\n"));
    }
    init(&env.workspace());
    git(&env.workspace(), ["commit", "-q", "--allow-empty", "-m", "second"]);
    git(&env.workspace(), ["branch", "feature/refunds"]);
    env
}

#[test]
fn a_flow_gets_the_words_of_commits_and_personas_that_are_there() {
    let env = env();
    assert_eq!(
        env.run(["names"]).go().result(),
        json!({ "base": "none", "head": "HEAD", "voice": "none", "reviewer": ["guide", "sceptic"] })
    );
    // Words that would be a file or standard input for a text.
    let given =
        ["names", "@~1", "feature/refunds", "--voice", "builder", "--reviewer", "builder", "--reviewer", "guide"];
    assert_eq!(
        env.run(given).var("NIETZ_RUN", "r2").stdin("answers").go().result(),
        json!({ "base": "@~1", "head": "feature/refunds", "voice": "builder", "reviewer": ["builder", "guide"] })
    );
    let help = env.nietz(["run", "names", "--help"]).go().exits(0).stdout;
    for said in ["[BASE]", "--voice <PERSONA>", "Who [default: guide, sceptic] [2 to 3 of them]"] {
        assert!(help.contains(said), "{said}: {help}");
    }
    assert!(!help.contains("@FILE"), "{help}");
}

#[test]
fn what_is_not_there_is_wrong_usage_and_leaves_no_run() {
    let env = env();
    for (arguments, said, hint) in [
        (
            vec!["nowhere"],
            "base: there is no commit `nowhere` in this repository",
            "branches here: feature/refunds, main;",
        ),
        (
            vec!["main", "feature/refund"],
            "head: there is no commit `feature/refund`",
            "did you mean `feature/refunds`?",
        ),
        (vec!["@~9"], "base: there is no commit `@~9`", "branches here"),
        (vec!["-"], "base: `-` is not a revision", "give a branch"),
        (vec!["@notes.txt"], "base: there is no commit `@notes.txt`", "branches here"),
        (vec!["HEAD:a.txt"], "base: `HEAD:a.txt` is not a revision", "give a branch"),
        (vec!["--voice", "giude"], "voice: there is no persona `giude`", "did you mean `guide`?"),
        (vec!["--reviewer", "guide"], "reviewer: must have at least 2 items, and has 1", ""),
        (vec!["--reviewer", "guide", "--reviewer", "zzz"], "reviewer: there is no persona `zzz`", ""),
    ] {
        let ended = env.nietz(["run", "names"].into_iter().chain(arguments.iter().copied())).go().exits(2);
        assert!(
            ended.stderr.contains("error[usage]") && ended.stderr.contains(said),
            "{arguments:?}: {}",
            ended.stderr
        );
        assert!(ended.stderr.contains(hint) && !ended.stderr.contains("resume"), "{arguments:?}: {}", ended.stderr);
        assert!(!env.path(".nietz/runs").exists() || env.nietz(["runs"]).go().stdout.is_empty(), "{arguments:?}");
    }
    // A default is held to it, too, and a fork.
    env.run(["names"]).go().exits(0);
    for set in ["base=nowhere", "voice=giude", "reviewer=guide"] {
        let ended = env.nietz(["fork", "r1", "--set", set]).var("NIETZ_RUN", "r2").go();
        assert_eq!(ended.code, Some(2), "{set}: {}", ended.stderr);
    }
    git(&env.workspace(), ["checkout", "-q", "--orphan", "empty"]);
    let ended = env.nietz(["run", "names"]).var("NIETZ_RUN", "r3").go();
    assert!(ended.stderr.contains("head: the repository has no commit"), "{}", ended.stderr);
}

const AGAIN: &str = r#"
local nietz = require("@nietz")
return nietz.flow {
  name = "again", summary = "Takes up an earlier run of its own", host_api = 2,
  params = { before = { type = "run", positional = true } },
  run = function(ctx)
    local before = ctx.params.before
    if before == nil then
      return "a first time"
    end
    require("@nietz/ui").say(`After {before.run}, which said: {before.result}.`)
    return "once more"
  end,
}
"#;

#[test]
fn latest_names_the_newest_run_in_a_flows_own_param_too() {
    let env = Env::new().flow("again", AGAIN);
    let nothing = env.nietz(["run", "again", "latest"]).go().exits(2);
    assert!(nothing.stderr.contains("error[run-not-found]"), "{}", nothing.stderr);
    env.run(["again"]).var("NIETZ_RUN", "b").go().exits(0);
    env.run(["again"]).var("NIETZ_RUN", "a").go().exits(0);
    let said = env.nietz(["run", "again", "latest"]).var("NIETZ_RUN", "c").go().exits(0).stdout;
    assert!(said.contains("After a, which said: a first time."), "{said}");
    // The one that has just ended is the newest now, and a name that a run has is that run's.
    let said = env.nietz(["run", "again", "latest"]).var("NIETZ_RUN", "latest").go().exits(0).stdout;
    assert!(said.contains("After c, which said: once more."), "{said}");
    let said = env.nietz(["run", "again", "latest"]).var("NIETZ_RUN", "d").go().exits(0).stdout;
    assert!(said.contains("After latest, which said: once more."), "{said}");
}
