//! What a model can do in its worktree: look at a part of anything, change many places at once, delete, move, patch, and see
//! what it has done; and no tool leads out of it.

use serde_json::{Value, json};

use super::basics::{CHECK, call, column, env, killed_at, rows, shoot, step};
use crate::support::git::git;
use crate::support::model_server::{ModelServer, Request, Response};

/// Calls that work, each with what it answers.
fn work() -> Vec<(&'static str, Value, &'static str)> {
    let lines = (1..=300).map(|number| format!("needle {number}\n")).collect::<String>();
    let edit = |path: &str, old: &str, new: &str| json!({ "path": path, "old": old, "new": new });
    let patch = "--- a/work.txt\n+++ b/work.txt\n@@ -1,9 +1,9 @@\n one\n-todo\n+done\n three\n";
    vec![
        (
            "read_file",
            json!({"path": "work.txt", "from_line": 2, "lines": 1}),
            "2\ttodo\n[lines 2 to 2 of 3; go on with from_line 3]",
        ),
        ("read_file", json!({"path": "work.txt", "from_line": 9}), "[it has 3 lines]"),
        ("list_tree", json!({"depth": 1}), "big/ (1 files)\ncheck.sh\nwork.txt"),
        (
            "write_files",
            json!({"files": [{"path": "src/a.txt", "text": "old old\nold\n"}, {"path": "src/many.txt", "text": lines}]}),
            "src/a.txt: written\nsrc/many.txt: written",
        ),
        (
            "replace_in_file",
            json!({"path": "src/a.txt", "old": "old", "new": "new", "all": true}),
            "replaced in 3 places",
        ),
        (
            "edit_files",
            json!({"edits": [edit("src/a.txt", "new new\n", "first\n"), edit("src/a.txt", "nothing", "x"), edit("big/README", "read", "look at")]}),
            "src/a.txt: replaced in line 1\nsrc/a.txt: error: `src/a.txt` has the text 0 times, and it must be there exactly once\nbig/README: replaced in line 1",
        ),
        (
            "insert_in_file",
            json!({"path": "src/a.txt", "line": 1, "text": "second"}),
            "1 lines stand behind line 1 now",
        ),
        (
            "read_files",
            json!({"paths": ["src/a.txt", "gone"]}),
            "=== src/a.txt\n1\tfirst\n2\tsecond\n3\tnew\n=== gone\nerror: `gone` does not exist",
        ),
        (
            "grep",
            json!({"pattern": "^needle (7|8)$", "context": 1}),
            "src/many.txt-6- needle 6\nsrc/many.txt:7: needle 7\nsrc/many.txt:8: needle 8\nsrc/many.txt-9- needle 9",
        ),
        ("grep", json!({"pattern": "needle|first", "files_only": true}), "src/a.txt: 1\nsrc/many.txt: 300"),
        (
            "move",
            json!({"moves": [{"from": "src/a.txt", "to": "lib/deep/b.txt"}, {"from": "big", "to": "large"}]}),
            "src/a.txt: moved to lib/deep/b.txt\nbig: moved to large",
        ),
        ("delete", json!({"paths": ["src", "large/README"]}), "src: deleted\nlarge/README: deleted"),
        ("apply_patch", json!({"patch": patch}), "applied to work.txt"),
        (
            "diff",
            json!({"path": "lib"}),
            "diff --git a/lib/deep/b.txt b/lib/deep/b.txt\nnew file mode 100644\nindex 0000000000000000000000000000000000000000..acca43bb1cc54f4a30d8ffc4ef8e7b3b2ed4d9f0\n--- /dev/null\n+++ b/lib/deep/b.txt\n@@ -0,0 +1,3 @@\n+first\n+second\n+new\n",
        ),
    ]
}

fn working(request: &Request) -> Response {
    match work().get(step(request)) {
        Some((name, arguments, _)) => call(name, arguments),
        None => Response::text("I did it.").usage(10, 5),
    }
}

#[test]
fn a_model_edits_many_places_deletes_moves_patches_and_sees_what_it_did() {
    let server = ModelServer::start(working);
    let env = env(&server);
    let ended = shoot(&env, &["--validate", CHECK]);
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
    let outputs = column(&env, "tool_call", "output");
    for ((name, arguments, expected), output) in work().iter().zip(&outputs) {
        let output = output.as_str().expect("a text");
        // The names of git's objects are shortened or not by its version.
        let plain = |text: &str| text.lines().filter(|line| !line.starts_with("index ")).collect::<Vec<_>>().join("\n");
        assert_eq!(plain(output), plain(expected), "{name} {arguments}");
    }
    let files = git(&env.workspace(), ["ls-tree", "-r", "--name-only", "nietz/r1"]);
    assert_eq!(files.lines().collect::<Vec<_>>(), ["check.sh", "lib/deep/b.txt", "work.txt"]);
}

#[test]
fn a_long_search_and_a_long_file_are_paged() {
    fn script(request: &Request) -> Response {
        let lines = (1..=450).map(|number| format!("needle {number} {}\n", "x".repeat(200))).collect::<String>();
        match step(request) {
            0 => call("write_file", &json!({"path": "long.txt", "text": lines})),
            1 => call("grep", &json!({"pattern": "needle"})),
            2 => call("grep", &json!({"pattern": "needle", "skip": 400})),
            3 => call("read_file", &json!({"path": "long.txt"})),
            4 => call("delete", &json!({"paths": ["long.txt"]})),
            _ => Response::text("That is all."),
        }
    }
    let server = ModelServer::start(script);
    let env = env(&server);
    shoot(&env, &["--validate", CHECK, "--max-breakdowns", "0"]).refused();
    let outputs = column(&env, "tool_call", "output");
    let last =
        |index: usize| outputs[index].as_str().and_then(|text| text.lines().last()).unwrap_or_default().to_owned();
    assert_eq!(last(1), "[there are more: go on with skip 200]");
    assert!(last(2).starts_with("long.txt:450: needle 450"), "{}", last(2));
    assert_eq!(outputs[2].as_str().map(|text| text.lines().count()), Some(50));
    assert!(last(3).starts_with("[lines 1 to 2") && last(3).contains("of 450; go on with from_line"), "{}", last(3));
}

#[test]
fn no_tool_leads_out_of_the_worktree_or_into_what_belongs_to_git_or_nietz() {
    const PATHS: [&str; 7] =
        [".git/config", ".nietz/x", "../out", "/etc/hostname", "a/../../out", "sub/nietz.yaml", "check.sh/.."];
    fn script(request: &Request) -> Response {
        let path = PATHS.get(step(request) / 4);
        let Some(path) = path else { return Response::text("Nothing works.") };
        match step(request) % 4 {
            0 => call("delete", &json!({"paths": [path]})),
            1 => call("move", &json!({"moves": [{"from": "work.txt", "to": path}]})),
            2 => call("move", &json!({"moves": [{"from": path, "to": "here.txt"}]})),
            _ => call("apply_patch", &json!({"patch": format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n")})),
        }
    }
    let server = ModelServer::start(script);
    let env = env(&server);
    let before = git(&env.workspace(), ["rev-parse", "HEAD"]);
    shoot(&env, &["--validate", CHECK, "--max-breakdowns", "0"]).refused();
    for row in rows(&env, "tool_call") {
        let output = row["output"].as_str().expect("a text");
        assert!(output.starts_with("error: "), "{row}");
    }
    assert_eq!(rows(&env, "tool_call").len(), PATHS.len() * 4);
    assert_eq!(git(&env.workspace(), ["rev-parse", "HEAD"]), before);
}

#[test]
fn a_patch_that_does_not_fit_changes_nothing_and_says_where() {
    fn script(request: &Request) -> Response {
        let patch = "--- a/check.sh\n+++ b/check.sh\n@@ -1 +1 @@\n-grep -q '^done$' work.txt && echo fine\n+true\n--- a/work.txt\n+++ b/work.txt\n@@ -1,2 +1,2 @@\n nowhere\n-todo\n+done\n";
        match step(request) {
            0 => call("apply_patch", &json!({ "patch": patch })),
            1 => call("diff", &json!({})),
            2 => call("move", &json!({"moves": [{"from": "work.txt", "to": "check.sh"}]})),
            _ => Response::text("It does not fit."),
        }
    }
    let server = ModelServer::start(script);
    let env = env(&server);
    shoot(&env, &["--validate", CHECK, "--max-breakdowns", "0"]).refused();
    let outputs = column(&env, "tool_call", "output");
    let said = outputs[0].as_str().expect("a text");
    assert!(said.starts_with("error: the patch does not fit, and nothing of it was applied"), "{said}");
    assert_eq!(outputs[1], "(nothing has changed)");
    assert_eq!(outputs[2], "error: nothing was done\nwork.txt: error: `check.sh` is there already");
}

#[test]
fn killed_after_any_line_of_deletions_moves_and_patches_a_session_comes_to_the_same() {
    killed_at(working, &["--validate", CHECK], 12);
}

/// Lines of a shell, each with a part of what it answers in the sandbox.
const LINES: [(&str, &str); 5] = [
    ("printf 'one\\ndone\\n' > work.txt && rm -r big && ls | tail -n 1", "exit code 0\nwork.txt\n"),
    ("grep -c done < work.txt; exit 3", "exit code 3\n1\n"),
    ("touch \"$HOME/../left\" /etc/left 2>&1 | head -n 1", "cannot touch"),
    ("cat /proc/1/environ 2>&1 | tr '\\0' '\\n' | grep -c OPENAI", "\n0\n"),
    ("git log --oneline | wc -l", "exit code 0\n1\n"),
];

fn shelling(request: &Request) -> Response {
    match LINES.get(step(request)) {
        Some((command, _)) => call("run", &json!({ "command": command })),
        None => Response::text("I did it."),
    }
}

#[test]
fn a_model_has_a_shell_in_the_sandbox() {
    let server = ModelServer::start(shelling);
    let env = env(&server);
    let ended = shoot(&env, &["--validate", CHECK]);
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
    for ((command, part), output) in LINES.iter().zip(column(&env, "tool_call", "output")) {
        assert!(output.as_str().expect("a text").contains(part), "{command}: {output}");
    }
    assert!(!std::path::Path::new("/etc/left").exists());
    assert_eq!(column(&env, "session", "flags")[0]["shell"], true, "the record says that there was one");
}

#[test]
fn without_a_sandbox_or_with_no_run_there_is_no_shell() {
    for flag in ["--no-sandbox", "--no-run"] {
        let server = ModelServer::start(shelling);
        let env = env(&server);
        shoot(&env, &["--validate", CHECK, "--max-breakdowns", "0", flag]).refused();
        for output in column(&env, "tool_call", "output") {
            assert!(output.as_str().expect("a text").contains("is not allowed"), "{flag}: {output}");
        }
        assert_eq!(column(&env, "session", "flags")[0]["shell"], false, "{flag}");
        let prompt = server.requests().first().map(|request| request.prompt()).unwrap_or_default();
        assert!(!prompt.contains("line of a shell"), "{flag}: {prompt}");
    }
}

#[test]
fn a_command_that_writes_nothing_is_no_silence_of_the_model() {
    let server = ModelServer::start(|request| match step(request) {
        0 => call("run", &json!({ "command": "sleep 2; sed -i s/todo/done/ work.txt" })),
        _ => Response::text("I did it."),
    });
    let env = env(&server);
    let ended = shoot(&env, &["--validate", CHECK, "--idle", "1", "--max-breakdowns", "0"]);
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
}
