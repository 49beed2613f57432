//! The promise: each exit status means one thing, for scripts and for whatever watches them.

use std::io::Write;
use std::process::Command;
use std::time::Duration;

use crate::support::env::Env;
use crate::support::git::init;
use crate::support::model_server::{Gate, ModelServer, Response};
use crate::support::process::Running;

const BRANCHES: &str = r#"
local nietz, llm, task = require("@nietz"), require("@nietz/llm"), require("@nietz/task")
local function ask(prompt)
  return function() return llm.chat({ prompt = prompt }).text end
end
return nietz.flow {
  name = "branches", summary = "Asks side by side", permissions = { llm = true },
  run = function() return task.all { a = ask("a"), b = ask("b"), c = ask("c") } end,
}
"#;
const COMMANDS: &str = include_str!("../support/flows/commands.lua");
const FLOW: &str = include_str!("../support/flows/ends.lua");
const WORKTREE: &str = include_str!("../support/flows/worktree.lua");

fn silent(gate: &Gate) -> (ModelServer, Env) {
    let gate = gate.clone();
    let server = ModelServer::start(move |_| Response::text("hello to you").held_by(&gate));
    let env = Env::with(&server).flow("ends", FLOW);
    (server, env)
}

#[test]
fn each_way_to_end_has_its_exit_status() {
    // 3 and 6 are in `model_faults`.
    let cases = [
        ("fine", 0, ""),
        ("error", 1, "flow-error"),
        ("usage", 2, "usage"),
        ("invalid", 4, "document-invalid"),
        ("outside", 5, "path-refused"),
        ("ask", 7, "answer-missing"),
    ];
    for (how, exit, code) in cases {
        let env = Env::new().flow("ends", FLOW);
        let ended = env.run(["ends", how]).go();
        assert_eq!((ended.code, ended.failure().as_str()), (Some(exit), code), "{how}: {ended:?}");
    }
    let env = Env::new().flow("ends", FLOW);
    for wrong in [vec![], vec!["ends"], vec!["ends", "fine", "--no-such-option"], vec!["no-such-flow"]] {
        env.nietz(["run"]).args(wrong).go().exits(2);
    }
    env.nietz(["no-such-verb"]).go().exits(2);
}

#[test]
fn a_verdict_of_no_is_a_run_that_is_done_with_its_own_exit_status() {
    let env = Env::new().flow("ends", FLOW);
    let no = env.run(["ends", "no"]).go().exits(8);
    let end = no.events().into_iter().next_back().expect("a last event");
    assert_eq!((&end["status"], &end["result"]["against"]), (&"done".into(), &2.into()), "{no:?}");
    assert_eq!(end["verdict"], serde_json::json!({ "ok": false, "why": "two of three are against it" }));
    let run = end["run"].as_str().expect("a run").to_owned();
    let said = env.nietz(["runs"]).go().exits(0).stdout;
    assert!(said.contains("done, no"), "{said}");
    let listed: serde_json::Value =
        serde_json::from_str(&env.nietz(["runs", "--json"]).go().exits(0).stdout).expect("one run");
    assert_eq!((&listed["status"], &listed["verdict"]), (&"done".into(), &end["verdict"]));
    env.nietz(["check", &format!(".nietz/runs/{run}/journal.jsonl")]).go().exits(0);
    env.nietz(["resume", &run]).go().exits(8);

    // A cassette keeps it, too.
    env.nietz(["test", "--from-run", &run]).go().exits(0);
    env.nietz(["test"]).go().exits(0);
    let flow = FLOW.replace("two of three are", "all are");
    let changed = env.flow("ends", &flow).nietz(["test"]).go().exits(1);
    assert!(changed.stdout.contains("the verdict is another") || changed.stderr.contains("the verdict is another"));

    let env = Env::new().flow("ends", FLOW);
    assert_eq!(env.run(["ends", "yes"]).go().exits(0).events().pop().expect("an end")["verdict"]["ok"], true);
    let failed = Env::new().flow("ends", FLOW).run(["ends", "no-then-error"]).go().exits(1);
    assert_eq!(failed.events().pop().expect("an end").get("verdict"), None, "{failed:?}");
    let plain = Env::new().flow("ends", FLOW).nietz(["run", "ends", "no"]).go().exits(8);
    assert!(plain.stderr.contains("the verdict is no: two of three are against it"), "{plain:?}");
}

#[test]
fn a_command_of_a_flow_is_one_whatever_stands_before_it() {
    let env = Env::new().flow("commands", COMMANDS);
    for arguments in [vec!["--json", "--seed", "1", "commands", "count", "3"], vec!["commands", "count", "3", "--json"]]
    {
        assert_eq!(env.nietz(["run"]).args(arguments).go().result(), 3);
        assert!(!env.path(".nietz").exists(), "it changed nothing and leaves no run");
    }
    let wrong = env.nietz(["run", "commands", "--loud", "count", "3"]).go().exits(2);
    assert!(wrong.stderr.contains("`count` takes no param `loud`"), "{}", wrong.stderr);
}

#[test]
fn a_flow_without_the_permission_to_call_a_model_is_refused() {
    let env = Env::new().flow("ends", &FLOW.replace("permissions = { llm = true },", ""));
    let refused = env.nietz(["run", "--json", "ends", "talk"]).go().exits(5);
    assert_eq!(refused.failure(), "permission-refused");
}

#[test]
fn a_key_that_is_missing_or_a_configuration_that_is_wrong_ends_with_1() {
    let env =
        Env::new().flow("ends", FLOW).var("OPENAI_API_KEY", "").var("OPENAI_BASE_URL", "https://models.invalid/v1");
    assert_eq!(env.run(["ends", "talk"]).go().exits(1).failure(), "key-missing");
    let env = Env::new().flow("ends", FLOW).config("models: {defualt: x}\n");
    let wrong = env.nietz(["run", "ends", "fine"]).go().exits(1);
    assert!(wrong.stderr.contains("error[config-invalid]") && wrong.stderr.contains("defualt"), "{}", wrong.stderr);
}

#[test]
fn a_waiting_run_goes_on_with_its_answer() {
    let env = Env::new().flow("ends", FLOW);
    let waiting = env.run(["ends", "ask"]).go().exits(7);
    assert_eq!(waiting.ending()["status"], "waiting");
    assert_eq!(env.resume().stdin("Xanthippe\n").go().result(), "Xanthippe");
}

/// One that catches every failure, too.
#[test]
fn an_interrupted_flow_is_told_nothing_and_goes_on_as_if_nothing_had_been() {
    for how in ["talk", "stubborn"] {
        let gate = Gate::default();
        let (server, env) = silent(&gate);
        let running = env.run(["ends", how]).spawn();
        assert!(server.wait_for_calls(1, Duration::from_secs(30)));
        running.interrupt();
        let ended = running.end().exits(130);
        assert_eq!((ended.failure().as_str(), &ended.ending()["status"]), ("interrupted", &"interrupted".into()));
        assert_eq!(env.journal().of_kind("chat")[0].outcome, serde_json::Value::Null, "{how}");
        gate.open();
        assert_eq!(env.resume().go().result(), "hello to you", "{how}");
        assert_eq!(server.calls(), 2, "the call that was under way, and no other");
    }
}

#[test]
fn whatever_was_under_way_side_by_side_is_dropped_and_what_was_finished_is_kept() {
    for signal in [Running::interrupt, Running::terminate, Running::hang_up] {
        let gate = Gate::default();
        let held = gate.clone();
        let server = ModelServer::start(move |request| {
            let reply = Response::text(request.prompt());
            if request.prompt() == "c" { reply.held_by(&held) } else { reply }
        });
        let env = Env::with(&server).flow("branches", BRANCHES);
        let mut running = env.run(["branches"]).spawn();
        assert!(server.wait_for_calls(3, Duration::from_secs(30)));
        running.until(|| env.journal().of_kind("chat").iter().filter(|call| call.finished()).count() == 2);
        signal(&running);
        let ended = running.end().exits(130);
        assert_eq!(ended.ending()["calls"], 2);
        gate.open();
        assert_eq!(env.resume().go().result(), serde_json::json!({"a": "a", "b": "b", "c": "c"}));
        assert_eq!(server.calls(), 4);
    }
}

/// An environment in which git makes no worktree, the first time, before somebody has written to the returned pipe.
fn slow_git() -> (Env, std::path::PathBuf, std::path::PathBuf) {
    let env = Env::new().flow("worktree", WORKTREE).file("a.txt", "a\n");
    init(&env.workspace());
    let bin = env.home().join("bin");
    let (begun, gate) = (bin.join("begun"), bin.join("gate"));
    std::fs::create_dir(&bin).expect("a folder can be made");
    assert!(Command::new("mkfifo").arg(&gate).status().expect("it is there").success());
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *'worktree add'*)\n  echo >> '{0}'; [ $(wc -l < '{0}') -gt 1 ] || read go < '{1}';;\nesac\n\
         exec /usr/bin/git \"$@\"\n",
        begun.display(),
        gate.display()
    );
    std::fs::write(bin.join("git"), script).expect("it can be written");
    std::fs::set_permissions(bin.join("git"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("it is ours");
    let path = format!("{}:/usr/bin:/bin", bin.display());
    (env.var("PATH", &path), begun, gate)
}

/// Lets git go on, for as long as the returned file is open; blocks nobody where git does not read.
fn let_go(gate: &std::path::Path) -> std::fs::File {
    let mut pipe = std::fs::File::options().read(true).write(true).open(gate).expect("the pipe is there");
    pipe.write_all(b"go\n").expect("there is room in it");
    pipe
}

fn lines(file: &std::path::Path) -> usize {
    std::fs::read_to_string(file).unwrap_or_default().lines().count()
}

#[test]
fn git_is_waited_for_and_what_it_has_done_is_not_done_again() {
    let (env, begun, gate) = slow_git();
    let mut running = env.run(["worktree", "true"]).in_a_group().spawn();
    running.until(|| lines(&begun) == 1);
    running.interrupt();
    let open = let_go(&gate);
    running.end().exits(130);
    drop(open);
    assert!(env.resume().go().result()["ok"] == true);
    assert_eq!(lines(&begun), 1);
}

#[test]
fn a_second_interrupt_waits_for_nothing_and_what_git_was_doing_is_looked_at() {
    let (env, begun, gate) = slow_git();
    let mut running = env.run(["worktree", "true"]).spawn();
    running.until(|| lines(&begun) == 1);
    // Two signals of one kind may come as one.
    running.interrupt();
    running.terminate();
    running.end().exits(130);
    let _open = let_go(&gate);
    assert!(env.resume().go().result()["ok"] == true);
    assert_eq!(lines(&begun), 2, "made anew, when the first one was over");
}

#[test]
fn an_interrupted_command_is_over_and_is_run_again_only_if_it_may() {
    for (repeatable, code) in [(true, None), (false, Some("command-in-doubt"))] {
        let env = Env::new().flow("worktree", WORKTREE);
        init(&env.workspace());
        let script = "test -e mark || { touch mark; exec sleep 1000; }";
        let more = if repeatable { &["--repeatable"][..] } else { &["--handled"] };
        let mut running = env.run(["worktree", script]).args(more.iter().copied()).spawn();
        let marked =
            || walkdir::WalkDir::new(env.home()).into_iter().flatten().any(|entry| entry.file_name() == "mark");
        running.until(marked);
        running.interrupt();
        running.end().exits(130);
        assert_eq!(env.journal().of_kind("exec")[0].outcome, serde_json::Value::Null);
        let result = env.resume().go().result();
        assert_eq!(result["ran"]["code"].as_str(), code, "{result}");
    }
}

#[test]
fn an_interrupt_at_an_open_question_ends_with_130_and_it_is_put_again() {
    let env = Env::new().flow("ends", FLOW);
    let mut running = env.run(["ends", "ask"]).spawn();
    running.wait_for("asked");
    running.interrupt();
    running.end().exits(130);
    let ended = env.resume().stdin("Xanthippe\n").go();
    assert_eq!((ended.result(), ended.asked()), ("Xanthippe".into(), vec!["name".to_owned()]));
}
