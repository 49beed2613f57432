//! What the developer shows besides words: a pipe, files with `@`, a diff, the output of a command, attachments. It reaches the
//! model word for word with the numbers of its lines, and stays in the session.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};

use super::desk::{Desk, For, PROBLEM, all_of, said, says};
use crate::support::env::RUN;
use crate::support::git;
use crate::support::process::Call;

const FLOW: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/flows/debug.lua");

/// As Python wrote it.
const TRACE: &str = "Traceback (most recent call last):\n  File \"app/main.py\", line 3, in <module>\n    print(total(read()))\n  \
                     File \"app/rows.py\", line 2, in total\n    return sum(int(row) for row in rows)\n  \
                     File \"app/rows.py\", line 2, in <genexpr>\n    return sum(int(row) for row in rows)\n\
                     ValueError: invalid literal for int() with base 10: 'n/a'\n";

/// The smallest PNG that a program writes: one pixel.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82";

fn project() -> Desk {
    Desk::new()
        .file("app/main.py", "from rows import total, read\n\nprint(total(read()))\n")
        .file("app/rows.py", "def total(rows):\n    return sum(int(row) for row in rows)\n")
}

/// A call as a person types it: text in and out.
fn plain<'a>(desk: &Desk, arguments: impl IntoIterator<Item = &'a str>) -> Call {
    desk.env.nietz(["run", "--seed", "1", "--model", "openai/test", FLOW]).args(arguments)
}

fn first(desk: &Desk) -> String {
    all_of(&desk.asked(For::Question)[0])
}

fn evidence(desk: &Desk) -> Vec<Value> {
    desk.saved()["nietz"]["evidence"].as_array().cloned().unwrap_or_default()
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

#[test]
fn a_traceback_from_a_pipe_is_one_piece_of_evidence_and_not_ten_answers() {
    let desk = project();
    let ended = plain(&desk, ["why does the import fail?"]).stdin(TRACE).go().exits(7);
    assert!(ended.stdout.contains("Evidence: `standard input`, 8 lines; questions name it `traceback`."), "{ended:?}");
    assert_eq!(desk.asked(For::Question).len(), 1, "one question, and nothing was answered");
    let shown = first(&desk);
    assert!(
        shown.contains("--- traceback: what came by a pipe\n    1  Traceback (most recent call last):\n"),
        "{shown}"
    );
    assert!(shown.contains("    8  ValueError: invalid literal for int() with base 10: 'n/a'"), "{shown}");
    // What it names is read: the developer need not.
    assert!(shown.contains("--- app/rows.py\n    1  def total(rows):\n"), "{shown}");
    let saved = desk.saved();
    assert_eq!(saved["problemDescription"], "why does the import fail?");
    assert_eq!(
        (saved["transcript"].as_array().map(Vec::len), &saved["transcript"][0]["response"]),
        (Some(1), &json!(""))
    );
    let piece = &saved["nietz"]["evidence"][0];
    assert_eq!(piece["text"], TRACE.trim_end_matches('\0'));
    assert_eq!((&piece["kind"], &piece["turn"], &piece["lines"]), (&json!("pipe"), &json!(0), &json!(8)));
    assert_eq!((&piece["bytes"], piece["sha256"].as_str().map(str::len)), (&json!(TRACE.len()), Some(64)));
    // The run goes on with it, and nothing is asked or paid for twice.
    let ended = desk.env.resume().stdin("it is row 7\nexit\n\n").go().exits(0);
    assert_eq!(ended.result()["outcome"], "abandoned");
    assert_eq!(desk.asked(For::Question).len(), 2);
    assert!(all_of(&desk.asked(For::Question)[1]).contains("    8  ValueError: invalid literal"));
    assert_eq!(evidence(&desk).len(), 1);
}

#[test]
fn a_pipe_answers_only_where_that_is_said() {
    let desk = project();
    let ended = plain(&desk, [PROBLEM, "--answers", "-"]).stdin("the log shows an old key\nexit\n\n").go().exits(0);
    assert!(!ended.stdout.contains("Evidence"), "{ended:?}");
    assert_eq!(desk.saved()["transcript"][0]["response"], "the log shows an old key");
    // A pipe that says nothing is nothing.
    let quiet = project();
    let ended = plain(&quiet, [PROBLEM]).stdin("").go().exits(7);
    assert!(!ended.stdout.contains("Evidence") && evidence(&quiet).is_empty(), "{ended:?}");
}

#[test]
fn a_dash_is_the_problem_from_a_pipe_and_all_of_it_evidence() {
    let desk = project();
    plain(&desk, ["-"]).stdin(TRACE).go().exits(7);
    assert_eq!(desk.saved()["problemDescription"], "Traceback (most recent call last):");
    assert!(first(&desk).contains("    8  ValueError"), "{}", first(&desk));
    assert_eq!(evidence(&desk)[0]["kind"], "pipe");
    // Without a word about the problem a pipe is as much.
    let alone = project();
    plain(&alone, []).stdin(TRACE).go().exits(7);
    assert_eq!(alone.saved()["problemDescription"], "Traceback (most recent call last):");
    assert_eq!(evidence(&alone).len(), 1);
}

#[test]
fn at_a_terminal_the_pipe_is_evidence_and_the_keyboard_answers() {
    for term in ["xterm", "dumb"] {
        let desk = project().file("trace.txt", TRACE);
        let call = plain(&desk, ["why?"]).var("TERM", term);
        let mut seat = call.by("sh", ["-c", "cat trace.txt | exec \"$0\" \"$@\""]).at_a_terminal();
        seat.sees("8 lines");
        seat.sees("Your answer");
        seat.types("the third row has no number\r");
        seat.sees("Turn 2");
        seat.sees("Your answer");
        seat.types("exit\r");
        seat.sees("Enter to skip");
        seat.types("\r");
        assert_eq!(seat.end(), Some(0), "{term}");
        assert_eq!(desk.saved()["transcript"][0]["response"], "the third row has no number");
    }
}

#[test]
fn files_with_an_at_sign_are_evidence_whole_or_by_their_lines() {
    let lines: String = (1..=60).map(|line| format!("line {line} of it\n")).collect();
    let desk = project().file("notes/long.txt", &lines);
    let ended = desk
        .talk(["it fails, see @app/rows.py and ask @nobody"], &["@notes/long.txt:12-14, @gone.py too", "exit", ""])
        .exits(0);
    says(
        &ended,
        &[
            "Evidence: `app/rows.py`, 2 lines.",
            "Evidence: `notes/long.txt`, lines 12 to 14.",
            "There is no file `gone.py`.",
        ],
    );
    assert!(first(&desk).contains("--- app/rows.py\n    1  def total"), "{}", first(&desk));
    let second = all_of(&desk.asked(For::Question)[1]);
    assert!(second.contains("   12  line 12 of it\n   13  line 13 of it\n   14  line 14 of it\n"), "{second}");
    assert!(!second.contains("line 11 of it") && !second.contains("line 15 of it"), "{second}");
    assert!(second.contains("They named gone.py, which you do not have"), "{second}");
    let pieces = evidence(&desk);
    assert_eq!(pieces[0]["text"], "def total(rows):\n    return sum(int(row) for row in rows)\n");
    assert_eq!(
        (&pieces[0]["name"], &pieces[0]["kind"], &pieces[0]["turn"]),
        (&json!("app/rows.py"), &json!("file"), &json!(0))
    );
    assert_eq!((&pieces[1]["range"], &pieces[1]["turn"]), (&json!("12-14"), &json!(1)));
    assert_eq!(pieces[1]["text"], "line 12 of it\nline 13 of it\nline 14 of it");
    assert_eq!(desk.saved()["codeFiles"], json!(["app/rows.py", "notes/long.txt"]));
}

#[test]
fn what_differs_from_a_revision_is_evidence() {
    let desk = project().file(".gitignore", ".nietzschian/\n");
    git::init(&desk.env.workspace());
    desk.env.write("app/rows.py", "def total(rows):\n    return sum(float(row) for row in rows)\n");
    desk.env.write("app/new.py", "new = 1\n");
    let ended = desk.talk([PROBLEM, "--diff", "HEAD"], &["exit", ""]).exits(0);
    says(
        &ended,
        &["Evidence: what differs from HEAD, in 2 files (0 of them too long to be shown); questions name it `diff`."],
    );
    let shown = first(&desk);
    assert!(shown.contains("-    return sum(int(row) for row in rows)"), "{shown}");
    assert!(shown.contains("+    return sum(float(row) for row in rows)") && shown.contains("+new = 1"), "{shown}");
    assert_eq!((&evidence(&desk)[0]["name"], &evidence(&desk)[0]["kind"]), (&json!("git diff HEAD"), &json!("diff")));
}

#[test]
fn a_difference_without_a_revision_is_from_what_is_committed() {
    let changed = || {
        let desk = project().file(".gitignore", ".nietzschian/\n");
        git::init(&desk.env.workspace());
        desk.env.write("app/new.py", "new = 1\n");
        desk
    };
    for arguments in [[PROBLEM, "--diff", "--no-memory"], ["--diff=HEAD", PROBLEM, "--no-memory"]] {
        let desk = changed();
        let ended = desk.talk(arguments, &["exit", ""]).exits(0);
        says(&ended, &["Evidence: what differs from HEAD, in 1 file ("]);
    }
    let wrong = changed().talk([PROBLEM, "--diff", "no-such-revision"], &[]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[test]
fn a_commands_output_is_seen_before_the_first_question_and_again_when_it_has_changed() {
    static WORK: OnceLock<PathBuf> = OnceLock::new();
    // The developer changes a file while the first question is asked.
    let desk = Desk::with(|what, _| {
        if what == For::Question {
            std::fs::write(WORK.get().expect("it is set").join("state.txt"), "state: warm\n")
                .expect("it can be written");
        }
        None
    })
    .file("state.txt", "state: cold\n")
    .file(".gitignore", ".nietzschian/\n");
    WORK.set(desk.env.workspace()).expect("once");
    git::init(&desk.env.workspace());
    let command = "cat state.txt; pwd; exit 3";
    let ended = desk.talk([PROBLEM, "--run", command], &["/again", "/again", "it was cold", "exit", ""]).exits(0);
    says(
        &ended,
        &[
            &format!("`{command}` ends with exit code 3; its output is evidence, which questions name `run`:"),
            "says the same as before",
        ],
    );
    assert_eq!(ended.asked(), ["answer", "answer", "answer", "answer", "reflection"], "the question stays open");
    let place = desk.env.workspace().canonicalize().expect("it is there").display().to_string();
    let shown = first(&desk);
    assert!(
        shown.contains(&format!("--- run: what `{command}` printed, exit code 3\n    1  state: cold\n    2  {place}")),
        "{shown}"
    );
    let second = all_of(&desk.asked(For::Question)[1]);
    assert!(second.contains("    1  state: cold\n") && second.contains("    1  state: warm\n"), "{second}");
    assert!(!second.contains("worktrees/") && !said(&ended).contains("worktrees/"));
    let pieces = evidence(&desk);
    assert_eq!(pieces.len(), 2, "what says the same is no new evidence");
    assert_eq!((&pieces[1]["turn"], &pieces[1]["exit"]), (&json!(1), &json!(3)));
    assert_eq!(git::git(&desk.env.workspace(), ["branch", "--format=%(refname:short)"]), "main");
}

#[test]
fn a_project_with_a_virtualenv_is_verified_from_the_start_and_the_failing_test_need_not_be_committed() {
    if !has("python3") {
        return;
    }
    static WORK: OnceLock<PathBuf> = OnceLock::new();
    let desk = Desk::with(|what, _| {
        if what == For::Question {
            let fixed = "from pricelib import RATE\n\ndef gross(net):\n    return net + net * RATE\n";
            std::fs::write(WORK.get().expect("it is set").join("price.py"), fixed).expect("it can be written");
        }
        None
    })
    .file(".gitignore", ".nietzschian/\n.venv/\n")
    .file("price.py", "from pricelib import RATE\n\ndef gross(net):\n    return net * RATE\n");
    let folder = desk.env.workspace();
    WORK.set(folder.clone()).expect("once");
    let made = Command::new("python3").args(["-m", "venv", "--without-pip", ".venv"]).current_dir(&folder).status();
    if !made.is_ok_and(|status| status.success()) {
        return;
    }
    let lib = std::fs::read_dir(folder.join(".venv/lib")).expect("it is there").flatten().next().expect("python's");
    std::fs::write(lib.path().join("site-packages/pricelib.py"), "RATE = 0.5\n").expect("it can be written");
    git::init(&folder);
    desk.env.write("check.py", "from price import gross\n\nassert gross(10) == 15, gross(10)\nprint('fine')\n");
    let command = ".venv/bin/python -B check.py";
    let ended = desk.talk([PROBLEM, "--verify", command], &["solved", ""]).exits(0);
    says(
        &ended,
        &[
            &format!("`{command}` ends with exit code 1; its output is evidence, which questions name `check`:"),
            "AssertionError: 5.0",
            &format!("`{command}` passes: the fix holds."),
        ],
    );
    assert!(first(&desk).contains("AssertionError: 5.0") && first(&desk).contains("--- check.py"), "{}", first(&desk));
    assert_eq!(evidence(&desk)[0]["kind"], "verify");
    assert_eq!(desk.saved()["nietz"]["verification"], json!({"command": command, "exit": 0, "holds": true}));
}

#[test]
fn what_passes_or_cannot_run_at_the_start_is_said_to() {
    let desk = Desk::new().file("a.txt", "a\n").file(".gitignore", ".nietzschian/\n");
    git::init(&desk.env.workspace());
    let ended = desk.talk([PROBLEM, "--verify", "cat a.txt"], &["exit", ""]).exits(0);
    says(&ended, &["`cat a.txt` passes as the files are: it does not show the problem."]);
    let other = Desk::new().file("a.txt", "a\n").file(".gitignore", ".nietzschian/\n");
    git::init(&other.env.workspace());
    let ended = other.talk([PROBLEM, "--verify", "no-such-program --all"], &["solved", ""]).exits(0);
    says(&ended, &["`no-such-program --all` cannot run here: `no-such-program` is not found."]);
    assert!(!said(&ended).contains("still fails"), "{}", said(&ended));
    assert_eq!(other.saved()["nietz"]["verification"], Value::Null);
}

#[test]
fn attachments_are_evidence_and_images_go_with_the_question() {
    let desk = project().file("server.log", "boot\nstale key\n");
    std::fs::write(desk.env.path("screen.png"), PNG).expect("it can be written");
    let ended = desk.talk([PROBLEM, "--attach", "server.log", "screen.png"], &["exit", ""]).exits(0);
    says(&ended, &["Evidence: `server.log`, 2 lines.", "Evidence: `screen.png`, which the model is shown as it is."]);
    assert!(first_text(&desk).contains("    2  stale key"));
    let body = desk.asked(For::Question)[0].body.to_string();
    assert!(body.contains("data:image/png;base64,"), "{body}");
    let pieces = evidence(&desk);
    assert_eq!((&pieces[0]["kind"], &pieces[0]["text"]), (&json!("attachment"), &json!("boot\nstale key\n")));
    assert_eq!((&pieces[1]["name"], &pieces[1]["bytes"]), (&json!("screen.png"), &json!(PNG.len())));
}

#[test]
fn an_image_in_an_answer_is_shown_where_the_model_can_see_and_ends_no_session_where_it_cannot() {
    let desk = project();
    std::fs::write(desk.env.path("screen.png"), PNG).expect("it can be written");
    let ended = desk.talk([PROBLEM], &["see @gone.png", "and @screen.png", "exit", ""]).exits(0);
    says(&ended, &["There is no file `gone.png`.", "Evidence: `screen.png`, which the model is shown as it is."]);
    let asked = desk.asked(For::Question);
    assert!(!asked[1].body.to_string().contains("data:image") && asked[2].body.to_string().contains("data:image/png"));
    let blind = project();
    std::fs::write(blind.env.path("screen.png"), PNG).expect("it can be written");
    let call = blind.env.run_on("openai/gpt-3.5-turbo", [FLOW, PROBLEM]);
    let ended = call.stdin("see @screen.png\nexit\n\n").go().exits(0);
    says(&ended, &["The model is not shown what it cannot see"]);
    assert_eq!(blind.asked(For::Question).len(), 2);
}

#[test]
fn what_was_shown_is_the_developers_own_and_may_be_quoted() {
    let quoting = "Line 2 has `total = sum(int(row) for row in rows)`; what is `row` in the third turn?";
    for (shown, tries) in [("one\ntotal = sum(int(row) for row in rows)\n", 1), ("one\ntwo\n", 3)] {
        let desk = Desk::with(move |what, _| (what == For::Question).then(|| quoting.to_owned()));
        plain(&desk, ["why?"]).stdin(shown).go().exits(7);
        assert_eq!(desk.asked(For::Question).len(), tries, "{shown}");
    }
}

#[test]
fn of_a_long_difference_the_files_that_are_left_out_are_named() {
    let desk = project().file(".gitignore", ".nietzschian/\n");
    git::init(&desk.env.workspace());
    desk.env.write("a/table.csv", "row;row;row;row;row;row;row\n".repeat(9000));
    desk.env.write("b.py", "b = 1\n");
    let ended = desk.talk([PROBLEM, "--diff", "HEAD"], &["exit", ""]).exits(0);
    says(&ended, &["in 2 files (1 of them too long to be shown)"]);
    assert!(
        first(&desk).contains("+b = 1") && first(&desk).contains("Left out, because it is long: a/table.csv (1 hunks)")
    );
}

/// All that stands in the first request, wherever its texts are.
fn first_text(desk: &Desk) -> String {
    desk.asked(For::Question)[0].body["messages"][0]["content"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn files_and_pipes_of_any_size_are_shown_by_their_ends_and_no_session_ends_by_them() {
    let log = |name: &str, bytes: usize| -> String {
        let mut text = String::with_capacity(bytes + 100);
        let mut line = 1;
        while text.len() < bytes {
            text.push_str(&format!("{name} {line}: the quick brown fox jumps over the lazy dog\n"));
            line += 1;
        }
        text
    };
    let five = log("five", 5_000_000);
    let lines = five.lines().count();
    let desk = Desk::new()
        .file("a.log", &log("a", 1_200_000))
        .file("b.log", &log("b", 3_000_000))
        .file("c.log", &log("c", 900_000))
        .file("d.log", &log("d", 900_000))
        .file("five.log", &five);
    let context = ["it breaks in a.log:7000", "--context", "200000"];
    let answers =
        ["b.log:30000 too", "@c.log and @d.log:9000", "and all of @five.log", "five.log:50000 is odd", "exit", ""];
    let ended = desk.talk(context, &answers).exits(0);
    assert!(!said(&ended).contains("was not read"), "{}", said(&ended));
    says(&ended, &[&format!("Evidence: `five.log`, {lines} lines.")]);
    let asked: Vec<String> = desk.asked(For::Question).iter().map(all_of).collect();
    for (turn, parts) in [
        (0, vec!["    1  a 1:", "  100  a 100:", " 7000  a 7000:", "… lines 101 to 6979 are left out …"]),
        (1, vec!["    1  b 1:", "30000  b 30000:", "30020  b 30020:"]),
        (2, vec!["    1  c 1:", " 9000  d 9000:"]),
        (3, vec!["    1  five 1:"]),
        (4, vec!["50000  five 50000:"]),
    ] {
        for part in parts {
            assert!(asked[turn].contains(part), "{part:?} is missing in turn {turn}");
        }
    }
    assert!(asked[3].contains(&format!("{lines}  five {lines}:")), "the end is there");
    let pieces = evidence(&desk);
    assert!(pieces.iter().all(|piece| piece["kind"] == "file"));
    assert_eq!((&pieces[2]["file"], &pieces[2]["text"]), (&json!("five.log"), &Value::Null), "{}", pieces[2]["name"]);
    // It goes on after an interruption as it went before.
    let calls = desk.server.calls();
    desk.env.nietz(["resume", RUN, "--json"]).go();
    assert_eq!(desk.server.calls(), calls);
    // A pipe of that size, too.
    let piped = Desk::new();
    plain(&piped, ["why?"]).stdin(log("pipe", 5_000_000)).go().exits(7);
    assert!(first(&piped).contains("    1  pipe 1:"));
    assert_eq!(evidence(&piped)[0]["file"], format!(".nietz/runs/{RUN}"));
    piped.env.resume().stdin("the first line\nexit\n\n").go().exits(0);
}

#[test]
fn one_line_of_megabytes_is_cut_and_shown() {
    let desk = Desk::new().file("app.min.js", &"var a=1;".repeat(400_000));
    desk.talk(["it breaks in app.min.js"], &["exit", ""]).exits(0);
    let shown = first(&desk);
    assert!(shown.contains("    1  var a=1;var a=1;") && shown.len() < 20_000, "{}", shown.len());
}
