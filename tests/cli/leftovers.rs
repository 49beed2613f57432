//! The promise: whatever a command, a model or the user leaves behind, an attempt ends with a row, and a session with its
//! end.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::shots::basics::{CHECK, call, column, env, replace, rows, shoot, step};
use crate::support::env::Env;
use crate::support::git::{broken, git, init};
use crate::support::model_server::{ModelServer, Request, Response};
use crate::support::process::Ended;

/// A model that leaves something behind, and then does what is asked.
fn leaves(script: &'static str) -> impl Fn(&Request) -> Response + Send + Sync + 'static {
    move |request| match step(request) {
        0 => call("run", &json!({ "command": format!("sh -c \"{script}\"") })),
        1 => replace("todo", "done"),
        _ => Response::text("I did it."),
    }
}

const LEAVES: [&str; 5] = ["--validate", CHECK, "--run", "sh", "--no-memory"];

/// The run of a session is done, and its first attempt has its end, as has its worktree.
#[track_caller]
fn ended(what: &str, env: &Env, ended: &Ended, status: &str) -> Value {
    let reached = column(env, "session_end", "final_status") == ["success"];
    assert_eq!(ended.code, Some(if reached { 0 } else { 8 }), "{what}: {ended:?}");
    assert_eq!(column(env, "attempt_result", "attempt_id"), [1], "{what}");
    assert_eq!(column(env, "attempt_result", "status"), [status], "{what}: {ended:?}");
    assert_eq!(rows(env, "session_end").len(), 1, "{what}");
    assert_eq!(rows(env, "goal_end").len(), 1, "{what}");
    rows(env, "attempt_result")[0].clone()
}

#[track_caller]
fn no_worktree_is_left(what: &str, env: &Env) {
    assert_eq!(column(env, "worktree_end", "worktree_id").len(), rows(env, "worktree").len(), "{what}");
    assert_eq!(git(&env.workspace(), ["worktree", "list"]).lines().count(), 1, "{what}");
}

/// Paths with what is committed there.
type Kept = &'static [(&'static str, &'static str)];

#[test]
fn what_a_command_makes_of_tracked_folders_and_files_is_committed_as_it_is() {
    let cases: [(&str, &str, Kept); 4] = [
        ("a folder behind a link", "mv big real; ln -s real big", &[("big", "real"), ("real/README", "read me")]),
        ("a file in the place of a folder", "rm -r big; echo file > big", &[("big", "file")]),
        (
            "a folder in the place of a file",
            "rm big/README; mkdir big/README; echo now > big/README/now",
            &[("big/README/now", "now")],
        ),
        (
            "a pipe in the place of a file",
            "rm big/README; mkfifo big/README big/other; echo new > big/new",
            &[("big/new", "new")],
        ),
    ];
    for (what, script, kept) in cases {
        let server = ModelServer::start(leaves(script));
        let env = env(&server);
        let run = shoot(&env, &LEAVES);
        let end = ended(what, &env, &run, "success");
        no_worktree_is_left(what, &env);
        for (path, text) in kept {
            assert_eq!(git(&env.workspace(), ["show", &format!("nietz/r1:{path}")]), *text, "{what}");
        }
        assert!(end["diff"].as_str().is_some_and(|diff| diff.contains("+done")), "{what}: {end}");
        let told = run.stdout.contains("`big/README` (is neither a file nor a link)");
        assert_eq!(told, what.starts_with("a pipe"), "{what}: {}", run.stdout);
    }
}

/// Has an environment belong to somebody without rights, who runs this program, where the tests have all rights.
fn as_somebody(env: &Env) -> Option<std::path::PathBuf> {
    let folder = env.workspace().parent().expect("it has one").to_owned();
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    // Somebody cannot go where the tests were built.
    let program = folder.join("nietz");
    std::fs::copy(env!("CARGO_BIN_EXE_nietz"), &program).expect("there is room");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    assert!(Command::new("chown").args(["-R", "65534:65534"]).arg(&folder).status().expect("it is there").success());
    Some(program)
}

#[test]
fn what_nobody_may_read_is_read_by_its_owner_and_removed() {
    let cases = [
        ("a file", "echo x > secret; chmod 000 secret work.txt; chmod 600 work.txt"),
        ("a folder", "mkdir -p deep/er; touch deep/er/f; chmod 000 deep/er deep big"),
        ("a folder that can only be listed", "mkdir -p some/er; touch some/er/f; chmod 400 some/er big"),
        ("the worktree", "echo x > secret; chmod 000 ."),
    ];
    for (what, script) in cases {
        let server = ModelServer::start(leaves(script));
        let env = env(&server);
        let run = match as_somebody(&env) {
            Some(program) => shoot_by(&env, &program),
            None => shoot(&env, &LEAVES),
        };
        ended(what, &env, &run, "success");
        let all = git_of_somebody(&env, &["ls-tree", "-r", "--name-only", "nietz/r1"]);
        let expected = match what {
            "a folder" => "big/README\ncheck.sh\ndeep/er/f\nwork.txt",
            "a folder that can only be listed" => "big/README\ncheck.sh\nsome/er/f\nwork.txt",
            _ => "big/README\ncheck.sh\nsecret\nwork.txt",
        };
        assert_eq!(all, expected, "{what}");
        assert_eq!(git_of_somebody(&env, &["worktree", "list"]).lines().count(), 1, "{what}");
    }
}

fn shoot_by(env: &Env, program: &Path) -> Ended {
    let models = ["--model-a", "openai/a", "--model-b", "openai/b"];
    let program = program.to_str().expect("a path of ours");
    env.run(std::iter::once("shots-on-goal").chain(models).chain(LEAVES))
        .args(["say done in work.txt"])
        .instead(program)
        .by("setpriv", ["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .go()
}

fn git_of_somebody(env: &Env, arguments: &[&str]) -> String {
    let trusted = format!("safe.directory={}", env.workspace().display());
    git(&env.workspace(), ["-c", &trusted].into_iter().chain(arguments.iter().copied()))
}

/// A clone that has the top folder alone, without what the files of others were.
fn partial(server: &ModelServer) -> Env {
    let env = Env::with(server);
    let origin = env.home().join("origin");
    for (path, text) in
        [("work.txt", "one\ntodo\n"), ("check.sh", "grep -q '^done$' work.txt\n"), ("lib/old.txt", "old\n")]
    {
        let path = origin.join(path);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("a folder can be made");
        std::fs::write(path, text).expect("a file can be written");
    }
    init(&origin);
    git(&origin, ["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", origin.display());
    git(&env.workspace(), ["clone", "-q", "--filter=blob:none", "--sparse", &url, "."]);
    env
}

#[test]
fn a_partial_clone_is_worked_in_as_far_as_it_goes() {
    let server = ModelServer::start(leaves("mkdir -p lib && echo new > lib/old.txt && echo more > lib/new.txt"));
    let env = partial(&server);
    let end = ended("a partial clone", &env, &shoot(&env, &LEAVES), "success");
    no_worktree_is_left("a partial clone", &env);
    assert_eq!(git(&env.workspace(), ["show", "nietz/r1:lib/new.txt"]), "more");
    let diff = end["diff"].as_str().expect("a text");
    assert!(diff.contains("+done") && diff.contains("diff --git a/lib/old.txt b/lib/old.txt\n["), "{diff}");
}

#[test]
fn in_a_sparse_checkout_commands_see_all_that_is_committed() {
    let server = ModelServer::start(leaves("echo new >> lib/old.txt"));
    let env = env(&server)
        .file("lib/old.txt", "old\n")
        .file("check.sh", "grep -q '^done$' work.txt && grep -q new lib/old.txt\n");
    git(&env.workspace(), ["add", "-A"]);
    git(&env.workspace(), ["commit", "-q", "-m", "lib"]);
    git(&env.workspace(), ["sparse-checkout", "set", "big"]);
    assert!(!env.path("lib").exists());
    ended("a sparse checkout", &env, &shoot(&env, &LEAVES), "success");
    assert_eq!(git(&env.workspace(), ["show", "nietz/r1:lib/old.txt"]), "old\nnew");
    assert!(!env.path("lib").exists(), "the user's own checkout is as it was");
}

#[test]
fn a_branch_that_leaves_no_room_for_others_is_told_before_anything_is_paid() {
    let server = ModelServer::start(leaves("true"));
    let env = env(&server);
    git(&env.workspace(), ["branch", "nietz"]);
    let refused = shoot(&env, &LEAVES).exits(1);
    let failure = &refused.ending()["failure"];
    assert_eq!(failure["hint"], "rename it: git branch -m nietz ANOTHER", "{failure}");
    assert_eq!(server.calls(), 0);
}

#[test]
fn a_result_branch_that_somebody_checks_out_is_left_alone_and_the_work_is_kept() {
    let workspace = std::sync::Arc::new(std::sync::OnceLock::<std::path::PathBuf>::new());
    let here = std::sync::Arc::clone(&workspace);
    let server = ModelServer::start(move |request| {
        if step(request) == 0 {
            git(here.get().expect("it is known"), ["checkout", "-q", "nietz/r1"]);
        }
        leaves("true")(request)
    });
    let env = env(&server);
    workspace.set(env.workspace()).expect("it is set once");
    let run = shoot(&env, &LEAVES);
    ended("a branch that is checked out", &env, &run, "success");
    no_worktree_is_left("a branch that is checked out", &env);
    let session = &rows(&env, "session_end")[0];
    let detail = session["status_detail"].as_str().expect("a text");
    assert_eq!(session["final_status"], "failed");
    assert!(detail.contains("attempt 1 validates on nietz/r1-g1-a1, and cannot be merged"), "{detail}");
    assert!(detail.contains("is checked out in a worktree"), "{detail}");
    assert!(rows(&env, "merge").is_empty());
    assert_eq!(git(&env.workspace(), ["show", "nietz/r1-g1-a1:work.txt"]), "one\ndone\nthree");
    assert_eq!(git(&env.workspace(), ["status", "--porcelain", "-uno"]), "", "the user's checkout is as they made it");
}

/// Where git itself cannot go on, the attempt is over, and the record says why.
#[test]
fn what_git_fails_at_ends_an_attempt_and_not_the_session() {
    let cases = [
        ("commit", "*write-tree*", 1, "error", "the work cannot be committed: git write-tree: it is broken"),
        // The first three are of the workspace as it is and of the worktrees of the validation and of the attempt.
        ("restore", "*read-tree*", 4, "error", "there is no clean checkout to validate: git read-tree: it is broken"),
        ("diff", "*'diff-tree -r -p'*", 1, "success", ""),
        ("changed", "*diff-tree*", 1, "error", "there is no clean checkout to validate: git diff-tree: it is broken"),
        ("remove", "*for-each-ref*", 1, "success", ""),
    ];
    for (what, pattern, from, status, detail) in cases {
        let server = ModelServer::start(leaves("true"));
        let env = broken(env(&server), pattern, from);
        let run = shoot(&env, &[&LEAVES[..], &["--max-breakdowns", "0"]].concat());
        let end = ended(what, &env, &run, status);
        let said = end["status_detail"].as_str().expect("a text");
        assert!(said.starts_with(detail), "{what}: {said}");
        match what {
            "diff" | "changed" => {
                assert!(end["diff"].as_str().is_some_and(|diff| diff.contains("it is broken")), "{what}: {end}")
            }
            "remove" => {
                assert!(rows(&env, "worktree_end").is_empty() && run.stdout.contains("stays: git for-each-ref"))
            }
            _ => no_worktree_is_left(what, &env),
        }
    }
}

const SNAPSHOT: &str = r#"
local git, nietz = require("@nietz/git"), require("@nietz")
return nietz.flow {
  name = "snapshot", summary = "Takes the workspace as it is", permissions = { git = true },
  run = function() return git.files(git.snapshot().commit).paths end,
}
"#;

#[test]
fn a_workspace_is_taken_as_the_user_has_left_it() {
    let server = ModelServer::start(leaves("true"));
    let env = env(&server);
    let shell = "mv big real; ln -s real big; rm work.txt; mkfifo work.txt; echo new > new.txt";
    assert!(
        Command::new("sh").args(["-c", shell]).current_dir(env.workspace()).status().expect("it is there").success()
    );
    let env = env.flow("snapshot", SNAPSHOT);
    let taken = env.run(["snapshot"]).go();
    assert_eq!(taken.result(), json!(["big", "check.sh", "flows/snapshot.lua", "new.txt", "real/README"]));
    let told = "left out of what the run works on: `work.txt` (is neither a file nor a link)";
    assert_eq!(taken.of_type("notice")[0]["text"], told, "{taken:?}");
}
