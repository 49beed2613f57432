//! The promise before anybody is paid: the user's own commands are run on what a session starts from, and one whose validation
//! can prove nothing does not begin; a part that is reached already is reached.

use serde_json::{Value, json};

use super::basics::{CHECK, call, column, env, good, replace, rows, shoot, step, task};
use crate::support::env::Env;
use crate::support::git::{git, init};
use crate::support::model_server::{ModelServer, Request, Response};

/// A validation that passes before anything is changed.
const FINE: &str = "grep -q read big/README";

fn branches(env: &Env) -> String {
    git(&env.workspace(), ["branch", "--list", "nietz/*"])
}

#[test]
fn validation_that_passes_already_ends_a_session_that_nobody_attends() {
    let server = ModelServer::start(good);
    let env = env(&server);
    let ended = env.nietz(["run", "shots-on-goal", "say done in work.txt", "--validate", FINE]).go().exits(2);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    for part in ["passes before anything is changed", FINE, "--done-when", "--accept-unvalidated"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!((server.calls(), branches(&env).as_str()), (0, ""), "nobody was asked, and nothing is left");
}

#[test]
fn a_command_that_fails_now_proves_a_goal_whose_validation_passes_already() {
    let server = ModelServer::start(good);
    let env = env(&server);
    let ended = shoot(&env, &["--validate", FINE, "--done-when", CHECK]);
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
    assert_eq!(column(&env, "validation_step", "command"), [FINE, CHECK]);
    assert_eq!(column(&env, "validation_run", "exit_code"), [0, 0]);
    let flags = &column(&env, "session", "flags")[0];
    assert_eq!((&flags["validate"], &flags["done_when"]), (&json!([FINE]), &json!([CHECK])));
}

#[test]
fn without_other_validation_the_proof_alone_validates() {
    let server = ModelServer::start(good);
    let env = env(&server);
    assert_eq!(shoot(&env, &["--done-when", CHECK]).result()["status"], "success");
    assert_eq!(column(&env, "validation_run", "exit_code"), [0]);
}

#[test]
fn what_a_proof_looks_at_may_be_changed_and_what_it_runs_may_not() {
    for (script, end) in [("exit 0\n", "completed"), ("grep -q '^done$' work.txt && echo fine\n", "success")] {
        let server = ModelServer::start(move |request| match step(request) {
            0 => call(
                "write_file",
                &json!({ "path": "work.txt", "text": if end == "success" { "done\n" } else { "no\n" } }),
            ),
            1 => call("read_files", &json!({ "paths": ["work.txt", "check.sh"] })),
            2 => call("write_file", &json!({ "path": "check.sh", "text": script })),
            3 => call(
                "write_file",
                &json!({ "path": "work.txt", "text": if end == "success" { "done\n" } else { "no\n" } }),
            ),
            _ => Response::text("Done."),
        });
        let env = env(&server);
        let proofs = ["--done-when", CHECK, "--done-when", "! grep -q todo work.txt"];
        let ended = shoot(&env, &[&proofs[..], &["--validate", FINE, "--max-breakdowns", "0"]].concat());
        let _ = if end == "success" { ended.result() } else { ended.refused() };
        assert_eq!(column(&env, "attempt_result", "status"), [end]);
        assert_eq!(column(&env, "validation_run", "exit_code"), [0, u8::from(end != "success"), 0]);
    }
}

#[test]
fn a_proof_that_passes_already_is_refused_by_name() {
    let server = ModelServer::start(good);
    let env = env(&server);
    let ended = shoot(&env, &["--validate", CHECK, "--done-when", FINE]).exits(2);
    let message = ended.ending()["failure"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.starts_with(&format!("`{FINE}` of --done-when passes before anything is changed")), "{message}");
    assert_eq!((server.calls(), branches(&env).as_str()), (0, ""));
}

#[test]
fn who_accepts_it_has_the_models_word_and_the_record_says_so() {
    let server = ModelServer::start(good);
    let env = env(&server);
    let ended = shoot(&env, &["--validate", FINE, "--accept-unvalidated"]);
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
    let detail = column(&env, "attempt_result", "status_detail").remove(0);
    assert_eq!(detail, "unvalidated: what validates passed before, too. I did it.");
}

/// A model that proposes a proof: first one that passes already.
fn proposing(request: &Request) -> Response {
    let asked = task(request);
    if !asked.contains("Give one line for a shell") {
        return good(request);
    }
    let command =
        if asked.contains("`grep -q todo work.txt` passes already") { CHECK } else { "grep -q todo work.txt" };
    Response::text(json!({ "why": "The word stands there then.", "command": command }).to_string()).usage(10, 5)
}

#[test]
fn where_somebody_is_there_a_model_proposes_a_proof_and_the_user_agrees() {
    // An empty line takes what was proposed; what the user types in its place must fail now, too.
    for (lines, proof) in [("\n", CHECK), ("grep -q three work.txt\ngrep -q done work.txt\n", "grep -q done work.txt")]
    {
        let server = ModelServer::start(proposing);
        let env = env(&server);
        let arguments = ["run", "shots-on-goal", "--model", "openai/a", "--answers", "-", "--validate", FINE];
        let ended = env.nietz(arguments).args(["say done in work.txt"]).stdin(lines).go().exits(0);
        let shown = &ended.stdout;
        assert!(shown.contains("The word stands there then.") && shown.contains("It fails now."), "{shown}");
        assert_eq!(
            shown.contains("`grep -q three work.txt` passes already: it must fail now"),
            proof != CHECK,
            "{shown}"
        );
        assert_eq!(column(&env, "validation_step", "command"), [FINE, proof]);
        assert_eq!(column(&env, "attempt_result", "status"), ["success"]);
        assert_eq!(column(&env, "session", "flags")[0]["done_when"], json!([proof]));
    }
}

#[test]
fn without_a_shell_for_what_a_model_proposes_nobody_is_asked() {
    let server = ModelServer::start(proposing);
    let env = env(&server);
    shoot(&env, &["--validate", FINE, "--no-run"]).exits(2);
    assert_eq!(server.calls(), 0);
}

const PARTS: &str = r#"{"sub_goals": [
    {"goal": "put alpha into a.txt", "validation": ["grep -q alpha a.txt"]},
    {"goal": "put beta into b.txt", "validation": ["grep -q beta b.txt", "grep -q alpha a.txt"]},
    {"goal": "say done in work.txt for good", "validation": ["grep -q done work.txt"]}]}"#;

/// A model B whose first part brings the second one, too.
fn eager(request: &Request) -> Response {
    let task = task(request);
    let files = json!({ "files": [{ "path": "a.txt", "text": "alpha\n" }, { "path": "b.txt", "text": "beta\n" }] });
    match (request.body["model"] == "a", task.contains("break the goal down"), step(request)) {
        (true, _, 0) => call("write_file", &json!({ "path": "wrong.txt", "text": "x" })),
        (_, true, _) => Response::text(PARTS),
        (_, _, 0) if task.contains("put alpha") => call("write_files", &files),
        (_, _, 0) if task.contains("for good") => replace("todo", "done"),
        _ => Response::text("Done."),
    }
}

#[test]
fn a_part_that_is_reached_already_is_reached_and_nobody_attempts_it() {
    let server = ModelServer::start(eager);
    let env = env(&server);
    let ended = shoot(&env, &["--validate", CHECK, "--run", "grep"]);
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
    let end = |goal: u64| rows(&env, "goal_end").into_iter().find(|row| row["goal_id"] == goal).expect("it has ended");
    assert_eq!((&end(3)["status"], &end(3)["status_detail"]), (&json!("success"), &json!("reached already")));
    let attempts: Vec<Value> = rows(&env, "attempt").into_iter().filter(|row| row["goal_id"] == 3).collect();
    assert_eq!(attempts, Vec::<Value>::new());
    assert_eq!(git(&env.workspace(), ["show", "nietz/r1:b.txt"]), "beta");
}

#[test]
fn below_the_top_of_a_repository_commands_run_where_the_user_stands() {
    let server = ModelServer::start(|request| match step(request) {
        0 => call("replace_in_file", &json!({ "path": "one/work.txt", "old": "todo", "new": "done" })),
        1 => call("run", &json!({ "command": CHECK })),
        _ => Response::text("I did it."),
    });
    let env = Env::with(&server)
        .file("one/work.txt", "todo\n")
        .file("one/check.sh", "grep -q '^done$' work.txt && echo fine\n")
        .file("other/work.txt", "todo\n");
    init(&env.workspace());
    let arguments = ["shots-on-goal", "--validate", CHECK, "say done in work.txt"];
    let ended = env.run(arguments).within("one").go();
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
    assert_eq!(git(&env.workspace(), ["show", "nietz/r1:one/work.txt"]), "done");
}
