//! The promise: what is remembered helps, and whatever the memory holds, or however it fails, no session ends by it.

use serde_json::{Value, json};

use super::asked::file;
use super::{FOLDER, call, debug, edits, has, memory_of, project, step, task};
use crate::debug::desk::usual;
use crate::support::env::Env;
use crate::support::git::git;
use crate::support::model_server::{ModelServer, Request, Response};
use crate::support::process::Ended;

const UNITTEST: &str = "python3 -B -m unittest -v";
const SPAN: &[(&str, &str)] = &[
    ("span.py", "def width(a, b):\n    return a - b\n"),
    (
        "test_span.py",
        "import unittest\nfrom span import width\n\n\nclass Test(unittest.TestCase):\n    def test_width(self):\n        \
         self.assertEqual(width(2, 5), 3)\n",
    ),
];

fn said(ended: &Ended) -> Vec<String> {
    let line = |event: Value| event["markdown"].as_str().unwrap_or_default().to_owned();
    ended.of_type("said").into_iter().map(line).collect()
}

/// How often something was said.
fn times(ended: &Ended, part: &str) -> usize {
    said(ended).iter().filter(|line| line.contains(part)).count()
}

/// A debugging session that is left after its first question.
fn questioned(env: &Env, problem: &str, more: &[&str]) -> Ended {
    let server = ModelServer::start(|request| Response::text(usual(request)));
    let call = env.run(["debug", problem]).args(more.iter().copied()).var("OPENAI_BASE_URL", &server.url());
    let ended = call.var("NIETZ_RUN", "questioned").stdin("exit\n\n").go();
    assert_eq!(ended.result()["outcome"], "abandoned", "{ended:?}");
    assert!(times(&ended, "**[T") == 1, "the first question is put: {ended:?}");
    ended
}

/// Two shots at a goal, none of which reaches it; returns what models were told, too.
fn shots(env: &Env) -> (Ended, Vec<String>) {
    let server = ModelServer::start(|request: &Request| match step(request) {
        0 => call("write_file", &json!({ "path": "notes.txt", "text": "x\n" })),
        _ => Response::text("I did it."),
    });
    let arguments =
        ["shots-on-goal", "mend it", "--validate", UNITTEST, "--model-a", "openai/a", "--model-b", "openai/b"];
    let ended = env.run(arguments).var("OPENAI_BASE_URL", &server.url()).var("NIETZ_RUN", "shots").go();
    assert_eq!(ended.refused()["status"], "failed", "{ended:?}");
    (ended, server.requests().iter().map(task).collect())
}

/// An assertion failure has no place in the code: the memory does not know one.
#[test]
fn what_was_remembered_of_an_assertion_helps_every_mode_and_ends_none() {
    if !has("python3") {
        return;
    }
    let server = ModelServer::start(edits("span.py", &[("return a - b", "return b - a")]));
    let env = project(&server, SPAN);
    let mut memory = memory_of(&env, &debug(&env, "r1", &["--test", UNITTEST]));
    let failure = memory["executions"][0]["failures"][0].as_object_mut().expect("it is a failure");
    assert_eq!(failure["error_type"], "AssertionError");
    // A failure without a place in the project, as older memories have it for each assertion.
    assert_eq!(failure.remove("source_location").expect("it has a place")["file"], "test_span.py");
    let id = memory["session_id"].as_str().expect("it has an id").to_owned();
    let text = serde_yaml::to_string(&memory).expect("it is YAML");
    env.write(&format!("{FOLDER}/sessions/{id}.yaml"), text);

    // Another test fails by an assertion, too: that alone makes nothing alike.
    git(&env.workspace(), ["checkout", "-q", "nietz/r1"]);
    env.write("area.py", "def area(a, b):\n    return a + b\n");
    let test = SPAN[1].1.replace("span", "area").replace("width(2, 5), 3", "area(2, 3), 6").replace("width", "area");
    env.write("test_area.py", test);
    git(&env.workspace(), ["add", "-A", "--", "area.py", "test_area.py"]);
    git(&env.workspace(), ["commit", "-q", "-m", "area"]);

    let ended = questioned(&env, "the total of an order is wrong", &[]);
    assert_eq!(times(&ended, "debug memory"), 0, "{:?}", said(&ended));
    let (ended, told) = shots(&env);
    assert!(!told.iter().any(|task| task.contains("Past observations")), "{told:#?}");
    assert_eq!(times(&ended, "debug memory"), 0, "{:?}", said(&ended));
    // What the shots left is the past of the next session: the same test fails there.
    let server = ModelServer::start(edits("area.py", &[("return a + b", "return a * b")]));
    let arguments = ["run", "--json", "--model", "openai/test", "debug-memory", "--test", UNITTEST];
    let ended = env.nietz(arguments).var("OPENAI_BASE_URL", &server.url()).var("NIETZ_RUN", "r2").go();
    assert_eq!((&ended.result()["status"], &ended.result()["recalled"]), (&json!("passed"), &json!(1)), "{ended:?}");
}

/// Sets each value below to null, one at a time.
fn with_nulls(value: &Value) -> Vec<Value> {
    let mut found = vec![Value::Null];
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                for changed in with_nulls(member) {
                    let mut whole = value.clone();
                    whole[name] = changed;
                    found.push(whole);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                for changed in with_nulls(item) {
                    let mut whole = value.clone();
                    whole[index] = changed;
                    found.push(whole);
                }
            }
        }
        _ => {}
    }
    found
}

const PROBLEM: &str = "a TypeError in src/price.py after the deploy";
const PAST: &str = "On 2026-01-05 a TypeError like this one, in src/price.py";
const CANNOT_HELP: &str = "The debug memory cannot help here, and is left out: ";
const LEFT_OUT: &str = "The debug memory leaves out what it cannot read: ";

/// A workspace with one session that is like the problem.
fn remembered() -> Env {
    let (path, text) = file(1, "2026-01-05", "passed", "TypeError", "src/price.py", Some(("unchecked", 1, 1.0)));
    Env::new().file(&path, text).file("src/price.py", "price = None\n")
}

fn folder(env: &Env) -> std::path::PathBuf {
    env.path(&format!("{FOLDER}/sessions"))
}

#[test]
fn what_cannot_be_read_is_said_once_and_what_can_still_helps() {
    let whole: Value =
        serde_yaml::from_str(&file(7, "2026-01-05", "passed", "TypeError", "src/cart.py", None).1).expect("YAML");
    let write = |env: &Env, name: &str, bytes: &[u8]| {
        std::fs::write(folder(env).join(name), bytes).expect("it can be written");
    };
    // A broken file, one that is no text, one of another version, all values that can be missing.
    type Spoil<'a> = &'a dyn Fn(&Env);
    let spoils: [(Spoil<'_>, &str); 5] = [
        (&|env| write(env, "broken.yaml", b"session_id: [\n"), LEFT_OUT),
        (&|env| write(env, "image.yaml", b"\x89PNG\r\n\xff\xfe\0"), LEFT_OUT),
        (&|env| write(env, "later.yaml", b"schema_version: 9\nsession_id: x\nsessions: {}\n"), LEFT_OUT),
        (
            &|env| {
                for (index, value) in with_nulls(&whole).into_iter().enumerate() {
                    write(env, &format!("null-{index}.yaml"), serde_yaml::to_string(&value).expect("YAML").as_bytes());
                }
            },
            LEFT_OUT,
        ),
        // It calls itself by a name that leads elsewhere: no file is opened by that name, and it counts as any other.
        (
            &|env| {
                let text = file(8, "2026-01-04", "passed", "TypeError", "src/price.py", None).1;
                let text = text.replace("00000000-0000-4000-8000-000000000008", "../../x");
                write(env, "astray.yaml", text.as_bytes());
            },
            "On 2026-01-04 a TypeError like this one, in src/price.py",
        ),
    ];
    for (spoil, notice) in spoils {
        let env = remembered();
        spoil(&env);
        let ended = questioned(&env, PROBLEM, &[]);
        assert_eq!((times(&ended, notice), times(&ended, PAST)), (1, 1), "{:#?}", said(&ended));
        let ended = env.nietz(["run", "debug-memory", "patterns"]).go().exits(0);
        assert!(ended.stdout.contains("unchecked"), "{ended:?}");
    }
}

#[test]
fn a_memory_that_cannot_be_asked_is_left_out_and_said_to_be() {
    let env = remembered();
    std::fs::write(env.home().join("index"), "not a folder").expect("it can be written");
    assert_eq!(times(&questioned(&env, PROBLEM, &[]), CANNOT_HELP), 1);
    let env = remembered();
    std::fs::write(env.home().join("index"), "not a folder").expect("it can be written");
    let ended = questioned(&env, PROBLEM, &["--lang", "fr"]);
    assert_eq!((times(&ended, "on fait sans elle"), times(&ended, "debug memory")), (1, 0), "{:#?}", said(&ended));

    let env = remembered();
    std::fs::remove_dir_all(folder(&env)).expect("it is there");
    std::os::unix::fs::symlink("/", folder(&env)).expect("a link can be made");
    assert_eq!(times(&questioned(&env, PROBLEM, &[]), CANNOT_HELP), 1);

    // Another program holds the index.
    let env = remembered();
    env.nietz(["run", "debug-memory", "stats"]).go().exits(0);
    let held: Vec<rusqlite::Connection> = walkdir::WalkDir::new(env.home().join("index"))
        .into_iter()
        .map(|entry| entry.expect("it can be listed").into_path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "db"))
        .map(|path| {
            let database = rusqlite::Connection::open(path).expect("it is a database");
            database.execute_batch("BEGIN EXCLUSIVE").expect("nobody else holds it");
            database
        })
        .collect();
    assert!(!held.is_empty());
    assert_eq!(times(&questioned(&env, PROBLEM, &[]), CANNOT_HELP), 1);
}

#[test]
fn tests_are_mended_and_goals_are_shot_at_where_nothing_can_be_remembered() {
    if !has("python3") {
        return;
    }
    const NOT_KEPT: &str = "This session goes on, and is not in the debug memory: ";
    const STAY: &str = "Old sessions stay where they are in the debug memory: ";
    for (spoilt, notices) in [(FOLDER, [1, 1, 1]), ("", [1, 1, 0])] {
        let server = ModelServer::start(edits("span.py", &[("return a - b", "return b - a")]));
        let env = project(&server, SPAN);
        let (path, old) = file(1, "2025-01-05", "passed", "AssertionError", "span.py", None);
        if spoilt != FOLDER {
            env.write(&path, old);
        }
        match spoilt {
            "" => std::fs::write(env.home().join("index"), "not a folder").expect("it can be written"),
            folder => env.write(folder, "not a folder"),
        };
        let (ended, _) = shots(&env);
        assert_eq!(times(&ended, CANNOT_HELP), notices[0], "{:#?}", said(&ended));
        let ended = debug(&env, "r1", &["--test", UNITTEST]);
        assert_eq!(ended.result()["status"], "passed", "{ended:?}");
        let found = [CANNOT_HELP, STAY, NOT_KEPT].map(|notice| times(&ended, notice));
        assert_eq!(found, notices, "{spoilt}: {:#?}", said(&ended));
        // Who asks the memory itself hears why it does not answer.
        assert_ne!(debug(&env, "r2", &["query", "span"]).code, Some(0));
    }
}
