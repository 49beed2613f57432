//! Code that the developer names is read, numbered and trimmed; nothing outside is read unasked; long traces are cut.

use serde_json::json;

use super::desk::{Desk, For, PROBLEM, all_of, said, says};

/// What the model was sent for its first question.
fn first(desk: &Desk) -> String {
    all_of(&desk.asked(For::Question)[0])
}

#[test]
fn files_that_are_named_are_read_with_their_line_numbers() {
    let desk = Desk::new()
        .file("src/price.py", "def load(key):\n    return cache[key]\n")
        .file("src/deep/store.rs", "fn store() {}\n")
        .file("notes.txt", "nothing\n");
    let ended = desk
        .talk(
            ["stale since src/price.py:2 changed, not in node.js, see https://example.org/x.html, cache.get(key) or v1.2"],
            &["I looked into `store.rs` too, and ./notes.txt", "exit", ""],
        )
        .exits(0);
    says(&ended, &["Read `src/price.py`, 2 lines.", "Read `src/deep/store.rs`, 1 line.", "Read `notes.txt`, 1 line."]);
    assert_eq!(ended.asked(), ["answer", "answer", "reflection"], "nothing else looked like a file");
    assert!(first(&desk).contains("--- src/price.py\n    1  def load(key):\n    2      return cache[key]\n"));
    assert!(!first(&desk).contains("fn store"));
    assert!(all_of(&desk.asked(For::Question)[1]).contains("--- src/deep/store.rs"));
    assert_eq!(desk.saved()["codeFiles"], serde_json::json!(["src/price.py", "src/deep/store.rs", "notes.txt"]));
}

#[test]
fn a_missing_file_is_answered_by_asking_for_its_path_once() {
    let desk = Desk::new().file("lib/real.py", "x = 1\n").file("a/same.py", "a = 1\n").file("b/same.py", "b = 2\n");
    let ended = desk
        .talk(
            ["it breaks in wrong.py"],
            &["lib/real.py", "wrong.py again, gone.py and same.py", "", "b/same.py", "exit", ""],
        )
        .exits(0);
    assert_eq!(ended.asked(), ["path", "answer", "path", "path", "answer", "reflection"]);
    let prompts: Vec<String> = ended
        .of_type("asked")
        .iter()
        .map(|event| event["question"]["prompt"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert!(prompts[0].starts_with("I cannot find wrong.py."), "{prompts:?}");
    assert!(prompts[3].starts_with("same.py could be several files: a/same.py, b/same.py."), "{prompts:?}");
    assert_eq!(desk.saved()["codeFiles"], serde_json::json!(["lib/real.py", "b/same.py"]));
    assert!(all_of(&desk.asked(For::Question)[1]).contains("They named gone.py, which you do not have"));
}

#[test]
fn what_is_outside_of_the_workspace_is_read_only_when_granted() {
    let outside = tempfile::tempdir().expect("a folder");
    let path = outside.path().canonicalize().expect("it is there").join("other.py");
    std::fs::write(&path, "secret_of_other = 1\n").expect("it can be written");
    let name = path.display().to_string();
    let problem = format!("it breaks in {name}");
    let desk = Desk::new();
    let ended = desk.talk([problem.as_str()], &["", "exit", ""]).exits(0);
    says(&ended, &["was not read", "is outside of the workspace", "--allow-read"]);
    assert_eq!(ended.asked(), ["outside", "answer", "reflection"]);
    assert!(!first(&desk).contains("secret_of_other"));
    assert_eq!(desk.saved()["codeFiles"], serde_json::json!([]));
    let folder = path.parent().expect("it has one").display().to_string();
    let granted = Desk::new();
    granted.talk([problem.as_str(), "--allow-read", &folder], &["exit", ""]).exits(0);
    assert!(first(&granted).contains("secret_of_other"));
    assert_eq!(granted.saved()["codeFiles"], serde_json::json!([name]));
    // A link out of the workspace is no way around it.
    let linked = Desk::new();
    std::os::unix::fs::symlink(&path, linked.env.path("link.py")).expect("it can be made");
    linked.talk(["it breaks in link.py"], &["exit", ""]).exits(0);
    assert!(!first(&linked).contains("secret_of_other"));
}

#[test]
fn a_file_outside_is_granted_within_the_session_and_nothing_is_paid_for_twice() {
    let outside = tempfile::tempdir().expect("a folder");
    let path = outside.path().canonicalize().expect("it is there").join("other.py");
    std::fs::write(&path, "value_of_other = 1\n").expect("it can be written");
    let folder = path.parent().expect("it has one").display().to_string();
    let desk = Desk::new();
    let mention = format!("it is read in {}", path.display());
    let left = desk.talk([PROBLEM], &[mention.as_str()]).exits(7);
    let prompt = left.of_type("asked").last().expect("a question is open")["question"]["prompt"].to_string();
    assert!(prompt.contains(&format!("nietz resume r1 --allow-read {folder}")), "{prompt}");
    let calls = desk.server.calls();
    let ended = desk.env.resume().args(["--allow-read", &folder]).stdin("\nexit\n\n").go().exits(0);
    says(&ended, &[&format!("Read `{}`, 1 line.", path.display())]);
    assert!(all_of(&desk.asked(For::Question)[1]).contains("value_of_other"));
    assert_eq!(desk.asked(For::Question).len(), 2, "{calls} calls before");
}

#[test]
fn files_that_are_known_by_their_names_alone_are_read_and_words_like_them_are_words() {
    let desk = Desk::new()
        .file("Dockerfile", "FROM scratch\n")
        .file("build/Makefile.am", "all:\n")
        .file(".env.example", "KEY=\n")
        .file(".github/workflows/ci.yml", "on: push\n")
        .file("go.mod", "module shop\n");
    let problem =
        "the Dockerfile, build/Makefile.am, .env.example and .github/workflows/ci.yml; go.mod too. No Jenkinsfile here";
    let ended = desk.talk([problem], &["exit", ""]).exits(0);
    assert_eq!(ended.asked(), ["answer", "reflection"], "{}", said(&ended));
    let read = json!(["Dockerfile", "build/Makefile.am", ".env.example", ".github/workflows/ci.yml", "go.mod"]);
    assert_eq!(desk.saved()["codeFiles"], read);
}

#[test]
fn a_long_file_is_trimmed_in_the_middle_and_keeps_its_numbers_and_the_line_that_was_named() {
    let text: String =
        (1..=3000).map(|line| format!("line {line} of a long file, with something to fill it\n")).collect();
    assert!(text.len() > 100_000);
    let desk = Desk::new().file("long.py", &text);
    desk.talk(["it breaks in long.py:1500", "--context", "400000"], &["exit", ""]).exits(0);
    let sent = first(&desk);
    for kept in [1, 100, 1480, 1500, 1520, 2601, 3000] {
        assert!(sent.contains(&format!("{kept:5}  line {kept} of")), "line {kept} is missing");
    }
    for left in [101, 1479, 1521, 2600] {
        assert!(!sent.contains(&format!("line {left} of")), "line {left} is there");
    }
    assert!(
        sent.contains("… lines 101 to 1479 are left out …") && sent.contains("(3000 lines, 2459 of them left out)")
    );
    // A model with a small window gets less of it, both ends and the named line still.
    let small = Desk::new().file("long.py", &text);
    small.talk(["it breaks in long.py:1500", "--context", "8000"], &["exit", ""]).exits(0);
    let sent = first(&small);
    assert!(sent.len() < 8000 * 4, "{}", sent.len());
    for kept in [1, 1500, 3000] {
        assert!(sent.contains(&format!("{kept:5}  line {kept} of")), "line {kept} is missing");
    }
}

#[test]
fn of_a_long_stack_trace_the_frames_that_matter_are_sent_and_all_of_it_is_kept() {
    let mut trace = "The import fails:\nTraceback (most recent call last):\n".to_owned();
    trace.push_str("  File \"app/main.py\", line 10, in <module>\n    run()\n");
    for number in 0..12 {
        trace.push_str(&format!(
            "  File \"/usr/lib/python3.12/site-packages/lib/f{number}.py\", line 3, in call\n    call()\n"
        ));
    }
    trace.push_str("  File \"app/rows.py\", line 2, in parse\n    int(row)\nValueError: invalid literal 'x'");
    let desk = Desk::new().file("app/main.py", "run()\n").file("app/rows.py", "def parse(row):\n    int(row)\n");
    let ended = desk.talk([trace.as_str()], &["exit", ""]).exits(0);
    let sent = first(&desk);
    for kept in
        ["app/main.py\", line 10", "app/rows.py\", line 2", "ValueError: invalid literal 'x'", "The import fails"]
    {
        assert!(sent.contains(kept), "{kept} is missing");
    }
    assert!(!sent.contains("f5.py") && sent.contains("lines of frames in other people's code"), "{sent}");
    assert_eq!(desk.saved()["problemDescription"], trace.as_str());
    assert_eq!(desk.saved()["codeFiles"], serde_json::json!(["app/main.py", "app/rows.py"]), "{}", said(&ended));
}

#[test]
fn nothing_is_read_that_nobody_named() {
    let desk = Desk::new().file("src/secret.py", "hidden = 1\n");
    desk.session(&["it is the cache", "exit", ""]).exits(0);
    assert!(desk.server.requests().iter().all(|request| !all_of(request).contains("hidden")));
    assert_eq!(desk.saved()["codeFiles"], serde_json::json!([]), "{PROBLEM}");
}
