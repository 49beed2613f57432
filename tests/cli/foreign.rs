//! The promise: what a journal grants and names holds where the same user began that run, and nowhere else. Whoever
//! brings a journal along gets nothing by it, and what it recorded is still of use.

use std::path::Path;

use insta::assert_snapshot;
use serde_json::json;

use crate::support::env::{Env, RUN};
use crate::support::git;
use crate::support::model_server::{ModelServer, Response};

const SHORT: &str = include_str!("../support/flows/short.lua");
const WORKTREE: &str = include_str!("../support/flows/worktree.lua");
const READS: &str = r#"return require("@nietz").flow {
  name = "reads", summary = "Reads a file", params = { path = { type = "string", positional = true, required = true } },
  permissions = { files = true },
  run = function(ctx) return require("@nietz/files").read(ctx.params.path).text end,
}"#;

/// Puts a run's folder into another workspace, as a checkout would bring it.
fn bring(from: &Env, to: &Env, run: &str) {
    copy(&from.path(".nietz/runs/r1"), &to.path(&format!(".nietz/runs/{run}")));
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder can be made");
    for entry in std::fs::read_dir(from).expect("it can be listed") {
        let entry = entry.expect("it can be read");
        match entry.path().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => drop(std::fs::copy(entry.path(), to.join(entry.file_name())).expect("it can be copied")),
        }
    }
}

/// A run that was begun and not ended: killed when its first line was written.
fn begun<'a>(env: &Env, arguments: impl IntoIterator<Item = &'a str>) {
    let killed = env.run(arguments).var("NIETZ_FAULT", "kill@1").go();
    assert_eq!(killed.signal, Some(9), "{killed:?}");
}

#[test]
fn a_journal_that_was_brought_along_grants_no_reading() {
    let theirs = Env::new().flow("reads", READS);
    let mine = Env::new().flow("reads", READS);
    let secret = mine.home().join("secret");
    std::fs::write(&secret, "private").expect("the home can be written");
    let secret = secret.display().to_string();
    begun(&theirs, ["reads", &secret, "--allow-read", "/"]);
    bring(&theirs, &mine, RUN);

    let refused = mine.nietz(["resume"]).go().exits(2);
    assert_snapshot!(mine.normal(&refused.stderr), @r"
    error[run-not-found]: there is no run of yours here that can go on
      - not begun by you in this folder: r1
    hint: nothing that a foreign run grants or names holds: `nietz explain run-foreign`
    ");
    let refused = mine.resume().go().exits(5);
    assert_snapshot!(mine.normal(&refused.stderr), @r#"
    error[run-foreign]: run r1 was not begun by you in this folder: nothing that its journal grants or names holds
      - /tmp/test/home/runs has no record of it
      - its journal says: flow reads, reading /, params {"path":"/tmp/test/home/secret"}
    hint: look at it: nietz log r1; go on with it by what you give: nietz resume r1 -- FLOW [ARGS]
    "#);
    // The same words, without the permission that the journal grants.
    let ended = mine.resume().args(["--", "reads", &secret]).go().exits(5);
    assert_eq!(ended.failure(), "permission-refused");
    let listed = mine.nietz(["runs"]).go().exits(0);
    assert_snapshot!(mine.normal(&listed.stdout), @r"
    RUN  FLOW   STATUS                                CALLS  COST  STARTED           TOPIC
    r1   reads  failed (permission-refused), foreign  0      -     2026-01-09 10:30  /tmp/test/home/secret
    ");
    // It is the user's to grant.
    assert_eq!(mine.resume().args(["--", "reads", &secret, "--allow-read", &secret]).go().result(), "private");
    // Where it was begun, it is its user's own.
    assert_eq!(theirs.nietz(["resume", "--json"]).go().result(), "private");
}

#[test]
fn a_journal_that_was_brought_along_starts_no_command() {
    let env = |name: &str| {
        let env = Env::new().flow("worktree", WORKTREE).file("name", name);
        git::init(&env.workspace());
        env
    };
    let (theirs, mine) = (env("theirs"), env("mine"));
    let owned = mine.home().join("owned");
    let script = format!("touch '{}'", owned.display());
    begun(&theirs, ["worktree", "--no-sandbox", "--", &script]);
    bring(&theirs, &mine, "99991231-235959-ffff");
    bring(&theirs, &mine, RUN);
    for arguments in
        [&["resume"][..], &["resume", RUN], &["resume", "9999"], &["fork", RUN], &["resume", RUN, "--no-sandbox"]]
    {
        let ended = mine.nietz(arguments.iter().copied()).var("NIETZ_RUN", "f1").go();
        assert!(matches!(ended.code, Some(2 | 5)), "{arguments:?}: {ended:?}");
    }
    assert!(!owned.exists());
    // The folder's name is the run's: a copy of it under another name is not taken for the run.
    let renamed = mine.nietz(["resume", "9999", "--", "worktree", "--", "true"]).go().exits(2);
    assert!(renamed.stderr.contains("the journal of 99991231-235959-ffff is that of a run r1"), "{}", renamed.stderr);
    // What the user gives is what holds: this text, in the sandbox.
    let ended = mine.nietz(["fork", RUN, "--json", "--", "worktree", "--", &script]).var("NIETZ_RUN", "f1").go();
    assert_ne!(ended.result()["ran"]["exit"], 0, "{ended:?}");
    let ended = mine.resume().args(["--", "worktree", "--", "echo mine"]).go();
    assert_eq!(ended.result()["ran"]["output"], "mine\n");
    assert!(!owned.exists());
    // The fork is the user's own.
    mine.nietz(["resume", "f1", "--json"]).go().exits(0);
}

#[test]
fn what_a_foreign_run_recorded_is_given_back_and_not_paid_for_again() {
    let server = ModelServer::start(|_| Response::text("a reply"));
    let theirs = Env::with(&server).flow("short", SHORT);
    theirs.run(["short", "cocoa"]).go().exits(7);
    assert_eq!(server.calls(), 1);
    let mine = Env::with(&server).flow("short", SHORT);
    bring(&theirs, &mine, RUN);
    mine.nietz(["log", RUN]).go().exits(0);
    let given = ["--", "short", "cocoa", "--model", "openai/test"];
    mine.resume().args(given).stdin("more\n").go().exits(0);
    assert_eq!(server.calls(), 1, "the reply is in the journal");
    assert!(mine.read("notes/first.yaml").contains("a reply"));
    // It is foreign as before, and can be made a test of.
    mine.resume().go().exits(5);
    mine.nietz(["test", "--from-run", RUN]).go().exits(0);
    mine.nietz(["why", RUN, "2"]).go().exits(0);
    mine.nietz(["test"]).go().exits(0);
    // The command line has to name the flow that it is of, and says it for foreign runs alone.
    let other = mine.resume().args(["--", "brainstorm", "x"]).go().exits(2);
    assert!(other.stderr.contains("r1 is a run of short, not of brainstorm"), "{}", other.stderr);
    let own = theirs.resume().args(given).go().exits(2);
    assert!(own.stderr.contains("run r1 is your own"), "{}", own.stderr);
    // Models are those of this command line as well.
    let elsewhere = Env::with(&server).flow("short", SHORT);
    bring(&theirs, &elsewhere, RUN);
    elsewhere.resume().args(["--", "short", "cocoa", "--model", "openai/other"]).stdin("more\n").go().exits(0);
    assert_eq!(server.requests()[1].body["model"], "other");
}

#[test]
fn resume_without_a_name_takes_the_users_own_run_whatever_else_is_there() {
    let theirs = Env::new().flow("short", SHORT);
    begun(&theirs, ["short"]);
    let server = ModelServer::start(|_| Response::text("a reply"));
    let mine = Env::with(&server).flow("short", SHORT);
    mine.run(["short"]).go().exits(7);
    bring(&theirs, &mine, "zz-brought");
    let brought = mine.path(".nietz/runs/zz-brought/journal.jsonl");
    let before = std::fs::read(&brought).expect("it was brought");
    mine.nietz(["resume", "--json"]).stdin("more\n").go().exits(0);
    assert!(mine.path("notes/first.yaml").exists(), "the user's own went on");
    assert_eq!(std::fs::read(&brought).expect("it is there"), before, "the other one is left alone");
    let listed = mine.nietz(["runs"]).go().exits(0);
    assert_snapshot!(listed.stdout, @r"
    RUN         FLOW   STATUS                     CALLS  COST  STARTED           TOPIC
    r1          short  done                       1      -     2026-01-09 10:30  tea
    zz-brought  short  stopped half-way, foreign  -      -     2026-01-09 10:30  tea
    ");
    let line = mine.nietz(["runs", "--json"]).go().exits(0).stdout;
    assert!(line.lines().last().expect("two runs").contains("\"foreign\":true"), "{line}");
}

#[test]
fn a_run_that_was_copied_or_whose_first_line_was_exchanged_is_foreign() {
    let env = Env::new().flow("reads", READS).file("a.txt", "a").file("b.txt", "b");
    begun(&env, ["reads", "a.txt"]);
    let journal = std::fs::read(env.journal_path()).expect("there is a journal");
    // The same folder under another name, the same workspace in another place, and a link to the runs of this one.
    bring(&env, &env, "r2");
    env.nietz(["resume", "r2"]).go().exits(5);
    for below in ["flows", ".nietz"] {
        copy(&env.path(below), &env.path("copied").join(below));
    }
    env.nietz(["-C", "copied", "resume", RUN]).go().exits(5);
    std::fs::create_dir(env.path("linked")).expect("a folder can be made");
    std::os::unix::fs::symlink(env.path(".nietz"), env.path("linked/.nietz")).expect("links can be made");
    env.nietz(["-C", "linked", "resume", RUN]).go().exits(5);
    // Another journal of a run of that name, which this user began as well.
    let other = Env::new().flow("reads", READS);
    begun(&other, ["reads", "b.txt"]);
    bring(&other, &env, RUN);
    env.resume().go().exits(5);
    std::fs::write(env.journal_path(), journal).expect("it can be written");
    assert_eq!(env.resume().go().result(), "a");
}

#[test]
fn a_run_that_cannot_be_recorded_goes_on_and_says_what_that_means() {
    let env = Env::new().flow("reads", READS).file("a.txt", "a");
    std::fs::write(env.home().join("runs"), "in the way").expect("the home can be written");
    let ended = env.run(["reads", "a.txt"]).go();
    assert_eq!(ended.result(), "a");
    let notices = json!(ended.of_type("notice")).to_string();
    assert!(notices.contains("cannot be noted as your own") && notices.contains("home/runs"), "{notices}");
    env.resume().go().exits(5);
    // Who cannot read the key has none: it is said, and nothing is overwritten.
    std::fs::remove_file(env.home().join("runs")).expect("it is there");
    env.run(["reads", "a.txt"]).var("NIETZ_RUN", "r2").go().exits(0);
    let key = env.home().join("runs/key");
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o666)).expect("it is the user's");
    let refused = env.nietz(["resume", "r2"]).go().exits(5);
    assert!(refused.stderr.contains("is not a file that only you can read"), "{}", refused.stderr);
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("it is the user's");
    env.nietz(["resume", "r2"]).go().exits(0);
}

#[test]
fn the_name_of_a_run_is_never_a_path() {
    let env = Env::new().flow("short", SHORT);
    let outside = env.home().join("outside").display().to_string();
    for name in ["../../../escape", &outside, "..", ".", ".hidden", "a/b", "-x", "a\u{1b}[2J"] {
        let refused = env.run(["short"]).var("NIETZ_RUN", name).go().exits(2);
        assert!(refused.stderr.contains("is not a valid name for a run"), "{name}: {}", refused.stderr);
    }
    assert!(!Path::new(&outside).exists() && !env.path("../escape").exists() && !env.path(".nietz").exists());
    env.run(["short"]).var("NIETZ_RUN", "CI-4_2.b").go();
    assert!(env.path(".nietz/runs/CI-4_2.b/journal.jsonl").is_file());
}

#[test]
fn a_test_that_is_recorded_leaves_no_record_of_a_run() {
    let server = ModelServer::start(|_| Response::text("a reply"));
    let env = Env::with(&server).flow("short", SHORT);
    env.nietz(["test", "--record", "short", "--", "--model", "openai/test"]).stdin("more\n").go().exits(0);
    assert!(!env.home().join("runs").exists());
}

#[test]
fn many_runs_that_came_along_are_told_in_a_few_words() {
    let theirs = Env::new().flow("reads", READS);
    begun(&theirs, ["reads", "x"]);
    let mine = Env::new().flow("reads", READS);
    (1..=40).for_each(|number| bring(&theirs, &mine, &format!("run-{number:02}")));
    let refused = mine.nietz(["resume"]).go().exits(2);
    assert!(refused.stderr.contains("run-40, run-39, run-38, run-37, run-36, and 35 more"), "{}", refused.stderr);
    let refused = mine.nietz(["log", "run-"]).go().exits(2);
    assert!(refused.stderr.contains("run-05, and 35 more") && !refused.stderr.contains("run-06"), "{}", refused.stderr);
}

#[test]
fn a_result_that_came_along_is_taken_by_its_whole_name_and_told() {
    const NEXT: &str = r#"return require("@nietz").flow { name = "next", summary = "s",
      params = { before = { type = "run", positional = true } },
      run = function(ctx) return if ctx.params.before then ctx.params.before.result else "first" end }"#;
    let theirs = Env::new().flow("next", &NEXT.replace("first", "forged"));
    theirs.run(["next"]).go().exits(0);
    let mine = Env::new().flow("next", NEXT);
    mine.run(["next"]).var("NIETZ_RUN", "own-1").go().exits(0);
    bring(&theirs, &mine, "run-9");
    let next = |before: &str, id: &str| mine.run(["next", before]).var("NIETZ_RUN", id).go();
    let refused = next("run", "r2").exits(2);
    assert!(refused.stderr.contains("is given by its whole name"), "{}", refused.stderr);
    let taken = next("run-9", "r3").exits(0);
    assert_eq!(taken.result(), "forged");
    assert!(taken.stdout.contains("run-9 was not begun by you in this folder"), "{}", taken.stdout);
    let own = next("own", "r4").exits(0);
    assert_eq!((own.result(), own.stdout.contains("not begun by you")), (json!("first"), false));
}

#[test]
fn a_run_that_came_along_takes_nothing_from_one_of_the_user_s_own() {
    const ASKS: &str = r#"return require("@nietz").flow { name = "asks", summary = "s",
      run = function() return require("@nietz/ui").ask { id = "q", prompt = "Who are you?" } end }"#;
    let theirs = Env::new().flow("asks", ASKS);
    theirs.run(["asks"]).go().exits(7);
    theirs.nietz(["fork", RUN, "--json"]).var("NIETZ_RUN", "f1").go().exits(7);
    let mine = Env::new().flow("asks", ASKS);
    assert_eq!(
        mine.nietz(["run", "asks", "--json"]).stdin("{\"id\":\"q\",\"answer\":\"PRIVATE\"}\n").go().result(),
        "PRIVATE"
    );
    copy(&theirs.path(".nietz/runs/f1"), &mine.path(".nietz/runs/f1"));
    let waits = mine.nietz(["resume", "f1", "--json", "--", "asks"]).go().exits(7);
    assert!(!waits.stdout.contains("PRIVATE"), "{}", waits.stdout);
    assert!(waits.stdout.contains("which is your own: nothing is taken from it"), "{}", waits.stdout);
    // Where both came along, the one goes on with what the other recorded.
    let other = Env::new().flow("asks", ASKS);
    theirs.nietz(["resume", RUN, "--json"]).stdin("{\"id\":\"q\",\"answer\":\"theirs\"}\n").go().exits(0);
    copy(&theirs.path(".nietz/runs"), &other.path(".nietz/runs"));
    let done = other.nietz(["resume", "f1", "--json", "--", "asks"]).go();
    assert!(!done.stdout.contains("which is your own"), "{}", done.stdout);
}
