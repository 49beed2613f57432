//! The promise: each example is short, works at once, and is played without a model.

use crate::support::env::{Env, RUN};
use crate::support::model_server::{ModelServer, Response};

#[test]
fn each_example_is_short_and_its_tests_pass_without_a_model() {
    let env = Env::new();
    for (like, least) in [("two-sides", 40), ("retro", 80), ("review", 80), ("agent", 80)] {
        env.nietz(["new", "flow", like, "--like", like]).go().exits(0);
        let lines = env.read(&format!("flows/{like}.lua")).lines().count();
        assert!((least..=150).contains(&lines), "{like} has {lines} lines");
    }
    let checked = env.nietz(["check"]).go().exits(0).stdout;
    assert!(checked.lines().all(|line| line.ends_with(": valid")), "{checked}");
    let told = env.nietz(["test"]).go().exits(0).stdout;
    assert!(told.contains("7 passed, 0 failed"), "{told}");
    assert!(env.documents().values().all(|text| !text.contains("NAME")), "every name is filled in");
}

#[test]
fn the_agent_reads_files_asks_before_it_writes_and_cites_only_what_it_has_read() {
    let server = ModelServer::start(|request| match request.number {
        1 => Response::text("").tool_call("a", "search", r#"{"pattern":"round\\("}"#),
        2 => Response::text("").tool_call("b", "read", r#"{"path":"price.py","from":1}"#),
        3 => Response::text(r#"{"claims":[{"text":"Rounded.","file":"shop.py","line":1}],"answer":"There."}"#),
        4 => Response::text("").tool_call("c", "note", r#"{"name":"prices","text":"Rounded once."}"#),
        _ => Response::text(r#"{"claims":[{"text":"Rounded.","file":"price.py","line":2}],"answer":"Here."}"#),
    });
    let env = Env::with(&server).file("price.py", "def price(x):\n    return round(x, 2)\n");
    env.nietz(["new", "flow", "desk", "--like", "agent"]).go().exits(0);
    // Nobody is there to be asked: the run waits, and nothing is written.
    let line = ["run", "--model", "openai/test", "desk", "Where is a price rounded?"];
    let ended = env.nietz(line).go().exits(7);
    assert!(ended.stdout.contains("May the model call `note`") && !env.path("notes").exists(), "{ended:?}");
    assert_eq!(server.calls(), 4);
    let refused = server.requests()[3].body.to_string();
    assert!(refused.contains("you have not read shop.py:1"), "{refused}");
    let ended = env.nietz(["resume", RUN, "--answers", "-"]).stdin("y\n").go().exits(0);
    assert!(ended.stdout.contains("- Rounded. (`price.py:2`)"), "{ended:?}");
    assert_eq!((server.calls(), env.read("notes/prices.md").trim_end()), (5, "Rounded once."));
    let kept = env.nietz(["run", "desk", "notes"]).go().exits(0).stdout;
    assert!(kept.contains("**prices**: Rounded once."), "{kept}");
}
