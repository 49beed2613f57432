//! What models run: single tests where there is no shell, long outputs that are shown in parts, whole paths as tracebacks have
//! them; what only looks changes nothing; and who comes near a limit is told.

use serde_json::{Value, json};

use super::basics::{BREAKDOWN, CHECK, call, column, env, replace, rows, shoot, step, task};
use crate::support::env::Env;
use crate::support::git::{git, init};
use crate::support::model_server::{ModelServer, Request, Response};

const UNITTEST: &str = "/usr/bin/python3 -m unittest";

/// The text of an output of a tool call, by its place.
fn output(env: &Env, index: usize) -> String {
    column(env, "tool_call", "output")[index].as_str().expect("a text").to_owned()
}

#[test]
fn a_single_test_of_a_validating_command_is_run_where_there_is_no_shell() {
    let server = ModelServer::start(|request| match step(request) {
        0 => call("run", &json!({ "command": format!("{UNITTEST} test_both.Both.test_two") })),
        1 => call("run", &json!({ "command": format!("{UNITTEST} ../outside") })),
        2 => call("write_file", &json!({ "path": "both.py", "text": "ONE = 1\nTWO = 2\n" })),
        _ => Response::text("I did it."),
    });
    let env = Env::with(&server)
        .file("test_both.py", "import unittest\nfrom both import *\nclass Both(unittest.TestCase):\n    def test_one(self):\n        self.assertEqual(ONE, 1)\n    def test_two(self):\n        self.assertEqual(TWO, 2)\n")
        .file("both.py", "");
    init(&env.workspace());
    let ended = shoot(&env, &["--validate", UNITTEST, "--no-run", "--max-breakdowns", "0"]);
    let first = output(&env, 0);
    assert!(first.starts_with("exit code 1\n") && first.contains("Ran 1 test"), "{first}\n{ended:?}");
    assert!(output(&env, 1).contains("is not allowed"), "{}", output(&env, 1));
    let prompt = &server.requests()[0].prompt();
    assert!(prompt.contains(&format!("single tests as `{UNITTEST} MODULE.CLASS.NAME`")), "{prompt}");
}

/// The worktree's folder, which a command has told with other signs in the place of slashes: outputs have no such paths.
fn folder(request: &Request) -> String {
    let told = request.turns().into_iter().find(|(role, _)| role == "tool").expect("a command was run").1;
    told.lines().nth(1).unwrap_or_default().replace('|', "/")
}

#[test]
fn whole_paths_into_the_worktree_are_what_they_mean() {
    let server = ModelServer::start(|request| {
        if step(request) == 0 {
            return call("run", &json!({ "command": "pwd | tr / '|'" }));
        }
        let at = folder(request);
        match step(request) {
            1 => call("read_file", &json!({ "path": format!("{at}/work.txt") })),
            2 => call("list_folder", &json!({ "path": at })),
            3 => call("find_files", &json!({ "glob": format!("{at}/*.txt") })),
            4 => call(
                "edit_files",
                &json!({ "edits": [{ "path": format!("{at}/big/README"), "old": "read", "new": "see" }] }),
            ),
            5 => call("move", &json!({ "moves": [{ "from": format!("{at}/big"), "to": format!("{at}/large") }] })),
            6 => call(
                "apply_patch",
                &json!({ "patch": format!("--- {at}/work.txt\n+++ {at}/work.txt\n@@ -1,3 +1,3 @@\n one\n-todo\n+done\n three\n") }),
            ),
            7 => call("grep", &json!({ "pattern": "see me", "glob": format!("{at}/large/**") })),
            8 => call("read_file", &json!({ "path": format!("{at}x/work.txt") })),
            _ => Response::text("I did it."),
        }
    });
    let env = env(&server);
    let ended = shoot(&env, &["--validate", CHECK]);
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
    let expected = [
        (1, "1\tone\n2\ttodo\n3\tthree"),
        (2, "big/\ncheck.sh\nwork.txt"),
        (3, "work.txt"),
        (4, "big/README: replaced in line 1"),
        (5, "big: moved to large"),
        (6, "applied to work.txt"),
        (7, "large/README:1: see me"),
    ];
    for (index, expected) in expected {
        assert_eq!(output(&env, index), expected, "{index}");
    }
    assert!(output(&env, 8).starts_with("error: "), "{}", output(&env, 8));
}

#[test]
fn a_wrong_path_brings_the_right_one_or_the_tools_that_show_it() {
    let server = ModelServer::start(|request| match step(request) {
        0 => call("read_file", &json!({ "path": "src/README" })),
        1 => call("read_file", &json!({ "path": "nowhere.txt" })),
        2 => replace("todo", "done"),
        _ => Response::text("I did it."),
    });
    let env = env(&server);
    shoot(&env, &["--validate", CHECK]).result();
    assert_eq!(output(&env, 0), "error: `src/README` does not exist; did you mean big/README?");
    let hint = output(&env, 1);
    assert_eq!(hint, "error: `nowhere.txt` does not exist; find_files, list_folder and list_tree show what does");
    let offered = server.requests()[0].body["tools"].clone();
    for named in ["find_files", "list_folder", "list_tree"] {
        let is_there = offered.as_array().into_iter().flatten().any(|tool| tool["function"]["name"] == named);
        assert!(is_there, "{named}: {offered}");
    }
}

/// Writes 4000 lines, of which two tell of an error in the middle.
const LONG: &str = "seq -f 'line %g of a long output' 1 4000 | sed -e '2000s/.*/error[E0308]: mismatched types/' -e '2001s/.*/ --> src:7/'; exit 3";

#[test]
fn a_long_output_keeps_its_ends_and_its_errors_and_is_paged() {
    let server = ModelServer::start(|request| match step(request) {
        0 => call("run", &json!({ "command": LONG })),
        1 => call("read_output", &json!({ "from_line": 1999, "lines": 3 })),
        2 => call("read_output", &json!({ "number": 1, "pattern": "line 399[89] " })),
        3 => call("read_output", &json!({ "number": 7 })),
        4 => call("read_output", &json!({})),
        5 => replace("todo", "done"),
        _ => Response::text("I did it."),
    });
    let env = env(&server);
    let ended = shoot(&env, &["--validate", CHECK]);
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
    let shown = output(&env, 0);
    assert!(shown.starts_with("exit code 3\nline 1 of a long output\n"), "{}", &shown[..200]);
    assert!(shown.ends_with("line 4000 of a long output"), "{}", &shown[shown.len() - 200..]);
    assert!(shown.contains("\n2000\terror[E0308]: mismatched types\n[the end, from line "), "{shown}");
    assert!(shown.contains("of 4000 are left out; read_output shows them, as output 1]\n"), "{shown}");
    assert!(shown.len() < 30_000, "{}", shown.len());
    let line = |number: usize| format!("{number}\tline {number} of a long output");
    let more = "[there are more of 4000 lines: go on with from_line 2002]";
    assert_eq!(
        output(&env, 1),
        format!("{}\n2000\terror[E0308]: mismatched types\n2001\t --> src:7\n{more}", line(1999))
    );
    assert_eq!(output(&env, 2), format!("{}\n{}", line(3998), line(3999)));
    assert_eq!(output(&env, 3), "error: there is no such output: kept are: 1");
    assert!(output(&env, 4).ends_with("go on with from_line 301]"), "{}", output(&env, 4));
}

/// A model A that fails, and a B that looks by changing files before it breaks down.
fn looking(request: &Request) -> Response {
    match (request.body["model"] == "a", step(request)) {
        (true, 0) => call("write_file", &json!({ "path": "wrong.txt", "text": "x" })),
        (true, _) => Response::text("Done, I think."),
        (_, 0) => call(
            "run",
            &json!({ "command": "sed -i s/todo/done/ work.txt && touch new.txt && sh check.sh | tail -n 1" }),
        ),
        (_, 1) => call("read_file", &json!({ "path": "work.txt" })),
        (_, 2) => call("run", &json!({ "command": "ls | head -n 9" })),
        _ => Response::text(BREAKDOWN),
    }
}

#[test]
fn what_a_breakdown_runs_is_taken_back_before_it_looks_again() {
    let server = ModelServer::start(looking);
    let env = env(&server);
    shoot(&env, &["--validate", CHECK, "--max-breakdowns", "1", "--max-tools", "20"]);
    let rows = rows(&env, "tool_call");
    let of_breakdown: Vec<&str> =
        rows.iter().filter(|row| row["attempt_id"] == 2).map(|row| row["output"].as_str().expect("a text")).collect();
    assert_eq!(
        of_breakdown,
        [
            "exit code 0\nfine\n\n[what this has changed is taken back: you only look here]",
            "1\tone\n2\ttodo\n3\tthree",
            "exit code 0\nbig\ncheck.sh\nwork.txt\n",
        ]
    );
    let end = column(&env, "attempt_result", "end_commit_sha")[1].clone();
    assert_eq!(end, column(&env, "attempt", "start_commit_sha")[1], "nothing of it is committed");
}

#[test]
fn a_validating_command_tells_which_files_validation_takes_from_the_start() {
    let server = ModelServer::start(|request| match step(request) {
        0 => call("read_file", &json!({ "path": "check.sh" })),
        1 => call("write_file", &json!({ "path": "check.sh", "text": "true\n" })),
        2 => call("run", &json!({ "command": CHECK })),
        3 => call("run", &json!({ "command": "git diff --stat | cat" })),
        _ => Response::text("It passes."),
    });
    let env = env(&server);
    shoot(&env, &["--validate", CHECK, "--max-breakdowns", "0"]);
    let said = output(&env, 2);
    let note = "[validation takes these as they were at the start, and not as they are here: check.sh]";
    assert!(said.starts_with("exit code 0\n") && said.ends_with(note), "{said}");
    assert!(!said.contains("all that validates this exits with 0"), "{said}");
    assert!(!output(&env, 3).contains("validation takes"), "other commands do not tell it");
}

#[test]
fn who_comes_near_a_limit_of_calls_or_turns_is_told_twice_and_then_it_ends() {
    /// One file a call, so many calls a turn.
    fn busy(request: &Request, calls: usize) -> Response {
        (0..calls).fold(Response::text("").usage(10, 5), |response, at| {
            let path = format!("f{}-{at}.txt", step(request));
            response.tool_call(&format!("t{at}"), "write_file", &json!({ "path": path, "text": "x" }).to_string())
        })
    }
    type Case<'a> = (&'a [&'a str], usize, &'a str, [usize; 2], usize, &'a str);
    let cases: [Case<'_>; 2] = [
        (&["--max-tools", "12"], 1, "12 tool calls", [1, 8], 12, "the limit of 12 tool calls"),
        (&["--max-turns", "12"], 3, "12 turns", [3, 24], 36, "the limit of 12 turns of the model"),
    ];
    for (limits, calls, name, told, all, detail) in cases {
        let server = ModelServer::start(move |request| busy(request, calls));
        let env = env(&server);
        shoot(&env, &[&["--validate", CHECK, "--max-breakdowns", "0"], limits].concat());
        let outputs = column(&env, "tool_call", "output");
        let with_note: Vec<(usize, &str)> = outputs
            .iter()
            .filter_map(Value::as_str)
            .enumerate()
            .filter(|(_, text)| text.contains("are left"))
            .collect();
        let expected = [10, 3]
            .map(|left| format!("written\n[{left} of {name} are left: bring what is begun to an end that validates]"));
        assert_eq!(with_note, [(told[0], expected[0].as_str()), (told[1], expected[1].as_str())], "{limits:?}");
        assert_eq!(outputs.len(), all, "{limits:?}");
        let end = &rows(&env, "attempt_result")[0];
        assert_eq!(end["status"], "tool_limit", "{limits:?}: {end}");
        assert!(end["status_detail"].as_str().is_some_and(|said| said.contains(detail)), "{limits:?}: {end}");
        let last = server.requests().last().map(|request| request.body.to_string()).unwrap_or_default();
        assert!(last.contains(&format!("[3 of {name} are left")), "the model itself reads it: {last}");
    }
}

#[test]
fn fifty_edits_in_one_turn_fit_what_is_allowed_by_default() {
    let server = ModelServer::start(|request| match step(request) {
        0 => (0..50).fold(Response::text(""), |response, at| {
            let edit = json!({ "path": format!("m/f{at}.txt"), "old": "todo", "new": "done" });
            response.tool_call(&format!("t{at}"), "replace_in_file", &edit.to_string())
        }),
        1 => call("run", &json!({ "command": "grep -L done m/*.txt | wc -l" })),
        _ => Response::text("All fifty."),
    });
    let env = (0..50).fold(env(&server), |env, at| env.file(&format!("m/f{at}.txt"), "todo\n"));
    git(&env.workspace(), ["add", "m"]);
    git(&env.workspace(), ["commit", "-qm", "fifty"]);
    let ended = shoot(&env, &["--validate", "test $(grep -l done m/*.txt | wc -l) = 50"]);
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
    assert_eq!(output(&env, 50), "exit code 0\n0\n");
    let prompt = task(&server.requests()[0]);
    assert!(prompt.contains("You have 200 tool calls."), "{prompt}");
}
