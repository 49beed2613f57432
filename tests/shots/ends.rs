//! The promise to whoever waits for a session: its exit status, its last lines and the files that it writes are enough to decide
//! whether to merge, and its commits can stand in anybody's history.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::basics::{CHECK, call, column, divided, env, good, replace, rows, shoot, step};
use crate::support::env::Env;
use crate::support::git::{git, init};
use crate::support::model_server::{ModelServer, Request, Response};
use crate::support::process::Ended;

/// A check that runs two tests, as a runner of TAP says it.
const TAP: &str = "echo 1..2; echo ok 1 - stands\ngrep -q '^done$' work.txt && echo ok 2 - done && exit\necho not ok 2 - done; exit 1\n";

fn tested(server: &ModelServer) -> Env {
    let env = env(server).file("check.sh", TAP);
    git(&env.workspace(), ["commit", "-q", "-a", "-m", "tap"]);
    env
}

fn said(ended: &Ended) -> String {
    let texts: Vec<String> =
        ended.of_type("said").iter().map(|event| event["markdown"].as_str().unwrap_or_default().to_owned()).collect();
    texts.join("\n")
}

#[test]
fn the_exit_status_says_whether_the_goal_was_reached() {
    let server = ModelServer::start(good);
    let env = env(&server);
    assert_eq!(shoot(&env, &["--validate", CHECK]).code, Some(0));
    let server = ModelServer::start(|request| match step(request) {
        0 => replace("todo", "nearly"),
        _ => Response::text("Done."),
    });
    let env = tested(&server);
    let ended = shoot(&env, &["--validate", CHECK, "--max-breakdowns", "0"]);
    assert_eq!((ended.code, ended.refused()["status"].as_str()), (Some(8), Some("failed")), "{ended:?}");
    assert_eq!(column(&env, "session_end", "final_status"), ["failed"]);
    let said = said(&ended);
    let nearest = "Nearest came attempt 1, on `nietz/r1-g1-a1`: ";
    assert!(said.contains(nearest) && said.contains("Look at it: `git diff "), "{said}");
    assert!(!said.contains("Merge it"), "there is nothing to merge: {said}");
}

#[test]
fn the_end_has_a_table_the_tests_the_files_and_how_to_merge() {
    let server = ModelServer::start(divided);
    let env = tested(&server);
    let ended = shoot(&env, &["--validate", CHECK, "--validate", "true", "--run", "grep"]);
    let said = said(&ended);
    let lines: Vec<&str> = said.lines().map(str::trim_end).collect();
    let line = |end: &str| {
        let found = lines.iter().find(|line| line.ends_with(end));
        (*found.unwrap_or_else(|| panic!("{end}: {said}"))).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("  part"), "status attempts files +/- tests tokens cost part");
    for (goal, counts, end) in [
        (1, "success 2 3 +3/-1 2", "?  1: say done in work.txt"),
        (2, "success 1 1 +1/-0 -", "?    2: put alpha into a.txt"),
        (4, "success 1 1 +1/-1 -", "?    4: say done in work.txt for good"),
    ] {
        let end_words = end.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(line(end), format!("{counts} {} {end_words}", tokens(&env, goal)));
    }
    assert!(line("?  all").starts_with("5 "), "{said}");
    for shown in [
        "2 of 2 commands passed, 2 tests executed; the tests of `true` cannot be counted",
        " a.txt    | +1 -0",
        " work.txt | +1 -1",
        " 3 files changed, 3 lines added, 1 deleted",
        "success: reached with its parts, the last of them by attempt 5",
    ] {
        assert!(lines.contains(&shown), "{shown}\n{said}");
    }
    assert!(said.contains("Merge it: `git merge --no-ff nietz/r1`"), "{said}");
}

/// The tokens of the attempts at a goal.
fn tokens(env: &Env, goal: u64) -> u64 {
    let attempts: Vec<Value> = rows(env, "attempt").into_iter().filter(|row| row["goal_id"] == goal).collect();
    let own = |row: &Value| attempts.iter().any(|attempt| attempt["id"] == row["attempt_id"]);
    let used = rows(env, "attempt_usage").into_iter().filter(own);
    used.map(|row| row["input_tokens"].as_u64().unwrap() + row["output_tokens"].as_u64().unwrap()).sum()
}

#[test]
fn a_report_fits_a_pull_request_and_a_patch_applies() {
    let server = ModelServer::start(|request| match step(request) {
        0 => replace("todo", "done"),
        1 => call("write_file", &json!({ "path": ".github/workflows/ci.yml", "text": "on: push\n" })),
        _ => Response::text("I said | done <b>there</b>."),
    });
    let env = tested(&server);
    let more = ["--validate", CHECK, "--report", "report.md", "--patch", "out/change.patch"];
    let ended = shoot(&env, &more);
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
    let report = env.read("report.md");
    for part in [
        "# say done in work.txt\n\nReached. reached with attempt 1\n",
        "## Validation\n\n1 of 1 command passed, 2 tests executed.\n\n- `sh check.sh`: exit code 0, 2 tests\n",
        "## Look at this before you merge it\n\n- ",
        ".github/workflows/ci.yml",
        "| part | status | attempts | files | +/- | tests | tokens | cost |\n| --- |",
        "| 1: say done in work.txt | success | 1 | 2 | +2/-1 | 2 |",
        " work.txt                 | +1 -1",
        "- ✓ goal 1, implementation 1 by openai/a: success. I said \\| done &lt;b&gt;there&lt;/b&gt;.\n",
        "Session r1, for main: models openai/a and openai/b; ",
    ] {
        assert!(report.contains(part), "{part}\n{report}");
    }
    git(&env.workspace(), ["apply", "out/change.patch"]);
    assert_eq!(env.read("work.txt"), "one\ndone\nthree\n");
    assert_eq!(git(&env.workspace(), ["diff", "nietz/r1", "--", "work.txt"]), "");

    // What is there is not overwritten, and that is told before anything is paid for.
    let calls = server.calls();
    let ended = env.run(["shots-on-goal", "--report", "report.md", "again"]).var("NIETZ_RUN", "r2").go();
    assert_eq!((ended.code, server.calls()), (Some(2), calls), "{ended:?}");
    // It can be had later, too.
    let shown = env.nietz(["run", "shots-on-goal", "report"]).var("NIETZ_RUN", "r3").go().exits(0).stdout;
    assert!(shown.contains("## Validation"), "{shown}");
    env.nietz(["run", "shots-on-goal", "report", "--report", "later.md"]).var("NIETZ_RUN", "r4").go().exits(0);
    assert_eq!(env.read("later.md"), report);
}

#[test]
fn a_patch_that_would_not_apply_is_not_written() {
    let server = ModelServer::start(|request| match step(request) {
        0 => replace("todo", "done"),
        1 => call("run", &json!({ "command": "printf 'a\\000b' > pic.bin" })),
        _ => Response::text("Done."),
    });
    let env = tested(&server);
    let ended = shoot(&env, &["--validate", CHECK, "--patch", "change.patch"]);
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
    assert!(!env.path("change.patch").exists());
    assert!(said(&ended).contains("No patch is written: the patch holds what is no text"), "{}", said(&ended));
    assert!(said(&ended).contains("git diff --binary"), "{}", said(&ended));
    assert!(said(&ended).contains(" pic.bin  | binary"), "{}", said(&ended));
}

const LONG: &str = "say done in work.txt, and mind that this goal is so long that it would never fit into the first line of a commit\n\nIt has a second paragraph.";

#[test]
fn commits_have_short_subjects_the_goal_the_session_and_what_the_model_said() {
    let server = ModelServer::start(good);
    let env = env(&server);
    let more = [
        "--author",
        "Ada Lovelace <ada@example.org>",
        "--co-authored-by",
        "Grace Hopper <grace@example.org>",
        "--validate",
        CHECK,
    ];
    let call = ["shots-on-goal", "--model-a", "openai/a"].into_iter().chain(more).chain([LONG]);
    env.run(call).go().result();
    let log = |format: &str| git(&env.workspace(), ["log", "-z", format, "main..nietz/r1"]);
    for subject in log("--format=%s").split('\0') {
        assert!(subject.chars().count() <= 72, "{subject}");
    }
    let work = git(&env.workspace(), ["log", "-1", "--format=%B", "nietz/r1-g1-a1"]);
    let expected = "say done in work.txt, and mind that this goal is so long that it would…\n\n\
                    say done in work.txt, and mind that this goal is so long that it would\n\
                    never fit into the first line of a commit\n\nIt has a second paragraph.\n\nI did it.\n\n\
                    Session: r1\nGoal: 1\nAttempt: 1 by openai/a, completed\nCo-authored-by: Grace Hopper <grace@example.org>";
    assert_eq!(work.trim_end(), expected);
    let merge = git(&env.workspace(), ["log", "-1", "--format=%B", "nietz/r1"]);
    assert!(merge.starts_with("Merge attempt 1 at goal 1: say done in work.txt, and mind"), "{merge}");
    let trailers = git(&env.workspace(), ["log", "-1", "--format=%(trailers:key=Session,valueonly)", "nietz/r1"]);
    assert_eq!(trailers.trim(), "r1", "programs can read them");
    assert_eq!(log("--format=%an <%ae>, %cn"), ["Ada Lovelace <ada@example.org>, nietz"; 2].join("\0") + "\0");
    let wrong = env.run(["shots-on-goal", "--author", "Ada", "x"]).var("NIETZ_RUN", "r2").go();
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[test]
fn squashed_the_result_is_one_commit() {
    let server = ModelServer::start(divided);
    let env = env(&server);
    let ended = shoot(&env, &["--validate", CHECK, "--run", "grep", "--squash", "--author", "Ada <ada@example.org>"]);
    assert_eq!(ended.result()["branch"], "nietz/r1-squashed", "{ended:?}");
    let work = env.workspace();
    assert_eq!(git(&work, ["log", "--format=%an: %s", "main..nietz/r1-squashed"]), "Ada: say done in work.txt");
    assert_eq!(git(&work, ["diff", "nietz/r1", "nietz/r1-squashed"]), "");
    let end = &rows(&env, "session_end")[0];
    assert_eq!(end["commit_sha"], git(&work, ["rev-parse", "nietz/r1-squashed"]));
    let branch = rows(&env, "branch").into_iter().find(|row| row["id"] == end["branch_id"]).unwrap();
    assert_eq!(branch["name"], "nietz/r1-squashed");
    assert!(said(&ended).contains("Merge it: `git merge nietz/r1-squashed`"), "{}", said(&ended));
    git(&work, ["merge", "-q", "--ff-only", "nietz/r1-squashed"]);
}

#[test]
fn a_name_that_is_no_utf8_is_committed() {
    let script = |request: &Request| match step(request) {
        0 => replace("todo", "done"),
        1 => call("run", &json!({ "command": "sh odd.sh" })),
        _ => Response::text("Done."),
    };
    let server = ModelServer::start(script);
    let env = Env::with(&server)
        .file("work.txt", "one\ntodo\nthree\n")
        .file("check.sh", "grep -q '^done$' work.txt\n")
        .file("odd.sh", "printf x > \"$(printf 'odd\\377name')\"\n");
    init(&env.workspace());
    let ended = shoot(&env, &["--validate", CHECK, "--run", "sh odd.sh"]);
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
    let listed = std::process::Command::new("git")
        .args(["ls-tree", "-r", "-z", "--name-only", "nietz/r1"])
        .current_dir(env.workspace())
        .output()
        .expect("git is there");
    assert!(listed.stdout.split(|byte| *byte == 0).any(|name| name == b"odd\xffname"), "{listed:?}");
    assert!(said(&ended).contains(" odd\u{fffd}name | +1 -0"), "it is named: {}", said(&ended));
}

#[test]
fn the_plan_names_the_models_that_take_turns() {
    let server = ModelServer::start(good);
    let env = env(&server);
    let call = ["run", "shots-on-goal", "--plan", "--model-a", "openai/a", "--model-b", "openai/b", "x"];
    let plan = env.nietz(call).go().exits(0).stdout;
    assert!(plan.contains("openai/a (--model-a)") && plan.contains("openai/b (--model-b)"), "{plan}");
    assert!(plan.contains("openai/a: not known"), "its price, too: {plan}");
    let plan = env.nietz(call.into_iter().chain(["--json"])).go().exits(0).stdout;
    let plan: Value = serde_json::from_str(&plan).expect("it is JSON");
    let named = json!([{ "option": "--model-a", "model": "openai/a" }, { "option": "--model-b", "model": "openai/b" }]);
    assert_eq!(plan["named_models"], named);
    assert_eq!(server.calls(), 0);
}

#[test]
fn a_branch_of_the_users_is_what_a_session_is_for() {
    let server = ModelServer::start(good);
    // The branch that is named, from which it starts, whatever is checked out.
    let env = env(&server);
    let work = env.workspace();
    git(&work, ["checkout", "-q", "-b", "other"]);
    git(&work, ["commit", "-q", "--allow-empty", "-m", "not for this"]);
    shoot(&env, &["--base", "main", "--validate", CHECK]).result();
    assert_eq!(column(&env, "session", "base_branch"), ["main"]);
    assert_eq!(git(&work, ["merge-base", "nietz/r1", "other"]), git(&work, ["rev-parse", "main"]));
    let wrong = env.run(["shots-on-goal", "--base", "nowhere", "x"]).var("NIETZ_RUN", "r2").go();
    assert_eq!((wrong.code, wrong.failure().as_str()), (Some(2), "usage"), "{wrong:?}");
    // Without a branch that is checked out: origin's own, and else one that is usual.
    for origin in [true, false] {
        let env = super::basics::env(&server);
        let work = env.workspace();
        if origin {
            git(&work, ["update-ref", "refs/remotes/origin/trunk", "HEAD"]);
            git(&work, ["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk"]);
        }
        git(&work, ["checkout", "-q", "--detach"]);
        let ended = shoot(&env, &["--validate", CHECK]);
        assert_eq!(ended.result()["status"], "success", "{ended:?}");
        let branch = if origin { "trunk" } else { "main" };
        assert_eq!(column(&env, "session", "base_branch"), [branch]);
        assert!(said(&ended).contains(&format!("is noted as work for {branch}")), "{}", said(&ended));
    }
    // There is none: it is asked for before anything is paid for.
    let env = super::basics::env(&server);
    git(&env.workspace(), ["checkout", "-q", "--detach"]);
    git(&env.workspace(), ["branch", "-q", "-m", "main", "odd"]);
    let calls = server.calls();
    let ended = shoot(&env, &["--validate", CHECK]);
    assert_eq!((ended.code, server.calls()), (Some(2), calls), "{ended:?}");
}

#[test]
fn the_attempt_that_was_merged_is_named_and_not_the_last_one() {
    // Of two shots side by side, only the first one validates.
    let asked = AtomicBool::new(false);
    let server = ModelServer::start(move |request| match step(request) {
        0 if !asked.swap(true, Ordering::SeqCst) => replace("todo", "done"),
        0 => replace("todo", "nearly"),
        _ => Response::text("Done."),
    });
    let env = env(&server);
    let result = shoot(&env, &["--validate", CHECK, "--shots", "3"]).result();
    let results = rows(&env, "attempt_result");
    let good = results.iter().find(|row| row["status"] == "success").expect("one validates");
    let detail = format!("reached with attempt {}", good["attempt_id"]);
    assert_eq!((&result["detail"], &column(&env, "session_end", "status_detail")[0]), (&json!(detail), &json!(detail)));
}

#[test]
fn its_help_says_what_it_is_and_what_may_be_granted() {
    let server = ModelServer::start(good);
    let help = env(&server).nietz(["run", "shots-on-goal", "--help"]).go().exits(0).stdout;
    assert!(help.starts_with("Works on a goal in git worktrees with two models in turn"), "{help}");
    for part in ["--no-sandbox", "--allow-net", "--validate", "query"] {
        assert!(help.contains(part), "{part}");
    }
}
