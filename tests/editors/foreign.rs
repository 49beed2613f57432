//! Clients of others, from their registries: `.ci/clients/run` installs them and sets `NIETZ_TEST_CLIENTS`, the folder in which
//! they are. Each bundled flow comes to its end through one client of each protocol, and through all with `NIETZ_TEST_WHOLE`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::shots::basics::{CHECK, divided};
use crate::support::env::Env;
use crate::support::git::init;
use crate::support::kills::whole;
use crate::support::model_server::{ModelServer, Request, Response};
use crate::{brainstorm, council, debug, debug_memory};

/// A flow, what it is given and said, and the member of its result that tells a good end.
pub(super) struct Played {
    flow: &'static str,
    pub(super) arguments: Value,
    answers: Vec<&'static str>,
    end: (&'static str, &'static str),
    pub(super) server: ModelServer,
    pub(super) env: Env,
    options: Vec<String>,
}

const SETUP: &str =
    "echo 1..1\nif grep -q done work.txt; then echo 'ok 1 - work'; else echo 'not ok 1 - work'; exit 1; fi\n";

/// What a script answers to a model's request.
type Script = Box<dyn Fn(&Request) -> Response + Send + Sync>;

/// Returns a flow with all that it takes to come to its end.
pub(super) fn played(flow: &str) -> Played {
    let (flow, script, arguments, answers, end): (_, Script, _, Vec<&'static str>, _) = match flow {
        "brainstorm" => {
            use brainstorm::table::{FULL, MORE, TOPIC};
            let brain = brainstorm::model::Brain::default();
            let answers = vec!["", FULL, "party", "", "", "party exit", MORE, "panel", "", "panel exit", "finish"];
            let script: Script = Box::new(move |request| Response::text(brain.reply(request).to_string()));
            ("brainstorm", script, json!({ "topic": TOPIC, "no-clarify": true }), answers, ("status", "completed"))
        }
        "council" => {
            let brain = council::model::Brain::default();
            let script: Script = Box::new(move |request| brain.answer(request).usage(100, 50));
            let arguments = json!({ "request": council::table::REQUEST, "pause": false, "control": true });
            ("council", script, arguments, Vec::new(), ("status", "completed"))
        }
        "debug" => {
            let script: Script = Box::new(|request| Response::text(debug::desk::usual(request)));
            let answers = vec![
                "src/price.py:2 reads it",
                "the log shows an old key",
                "found it",
                "",
                "look at the age of the key",
            ];
            ("debug", script, json!({ "problem": debug::desk::PROBLEM }), answers, ("outcome", "solved"))
        }
        "shots-on-goal" => {
            let script: Script = Box::new(divided);
            let arguments = json!({
                "goal": "say done in work.txt", "validate": CHECK, "model_a": "openai/a", "model_b": "openai/b",
            });
            ("shots-on-goal", script, arguments, Vec::new(), ("status", "success"))
        }
        _ => {
            let script: Script = Box::new(debug_memory::edits("work.txt", &[("todo", "done")]));
            ("debug-memory", script, json!({ "test": "sh check.sh" }), Vec::new(), ("status", "passed"))
        }
    };
    let server = ModelServer::start(script);
    let mut env = Env::with(&server).without("NIETZ_RUN");
    let mut options = vec!["--model".to_owned(), "openai/test".to_owned()];
    if matches!(flow, "shots-on-goal" | "debug-memory") {
        let check = if flow == "shots-on-goal" { "grep -q '^done$' work.txt && echo fine\n" } else { SETUP };
        env = env.file("work.txt", "one\ntodo\nthree\n").file("check.sh", check).file("big/README", "read me\n");
        init(&env.workspace());
        let command = if flow == "shots-on-goal" { CHECK } else { "sh check.sh" };
        options.extend(["--allow-command".to_owned(), command.to_owned()]);
    }
    Played { flow, arguments, answers, end, server, env, options }
}

/// Returns the node that the clients run on: some want a newer one than the system may have.
pub(crate) fn node() -> PathBuf {
    std::env::var_os("NIETZ_TEST_NODE").map_or_else(|| PathBuf::from("/usr/bin/node"), PathBuf::from)
}

/// Returns the folder in which the clients are installed. They come from a registry, which is not there in every test.
pub(crate) fn installed() -> Option<PathBuf> {
    std::env::var_os("NIETZ_TEST_CLIENTS").map(PathBuf::from)
}

/// Runs a client of others with a description of what to do, and returns what it tells.
fn drive(folder: &Path, client: &str, mode: &str, played: &Played) -> Value {
    let told = json!({
        "nietz": env!("CARGO_BIN_EXE_nietz"), "mode": mode, "flow": played.flow, "arguments": played.arguments,
        "answers": played.answers, "options": played.options, "cwd": played.env.workspace(),
        "transcript": std::env::var("NIETZ_TEST_TRANSCRIPTS").ok().map(|to| format!("{to}/{client}-{mode}-{}.txt", played.flow)),
    });
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/clients");
    let (program, script) = match client {
        "python" => (folder.join("venv/bin/python3"), here.join("python.py")),
        other => (node(), here.join(format!("{other}.mjs"))),
    };
    let mut command = Command::new(program);
    command.arg(script).arg(told.to_string()).env("NIETZ_TEST_CLIENTS", folder);
    for (name, value) in played.env.variables() {
        command.env(name, value);
    }
    let output = command.output().expect("the client starts");
    let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let last = said.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|_| panic!("{client} {mode} {}: {said}\n{wrong}", played.flow))
}

/// What the one run came to, as its journal has it.
fn result(env: &Env) -> Value {
    let runs = std::fs::read_dir(env.path(".nietz/runs")).expect("there is a run").flatten();
    let names: Vec<String> = runs.filter_map(|run| run.file_name().into_string().ok()).collect();
    let runs: Vec<&String> = names.iter().filter(|name| !name.starts_with('.')).collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    let journal = super::journal(env, runs[0]);
    journal.last().map(|last| last["end"]["result"].clone()).unwrap_or_default()
}

const FLOWS: [&str; 5] = ["brainstorm", "council", "debug", "shots-on-goal", "debug-memory"];

fn all(clients: &[(&str, &str)]) {
    let Some(folder) = installed() else { return };
    for (number, flow) in FLOWS.iter().enumerate() {
        for (place, (client, mode)) in clients.iter().enumerate() {
            // Each flow by one client at least; each client by one flow.
            if !whole() && place % FLOWS.len() != number && place != number % clients.len() {
                continue;
            }
            let played = played(flow);
            let told = drive(&folder, client, mode, &played);
            let (member, end) = played.end;
            let result = result(&played.env);
            assert_eq!(result[member], end, "{client} {mode} {flow}: {told} {result}");
            assert!(played.server.chats() > 0);
            println!("{client} {mode}: {flow} came to `{end}` with {} questions", told["asked"]);
        }
    }
}

#[test]
fn clients_of_the_model_context_protocol_take_flows_to_their_ends() {
    all(&[
        ("mcp", "legacy"),
        ("mcp", "pinned"),
        ("mcp", "auto"),
        ("mcp", "none"),
        ("mcp", "sdk"),
        ("mcp", "http"),
        ("tasks", "forms"),
    ]);
}

#[test]
fn clients_of_the_agent_client_protocol_take_flows_to_their_ends() {
    all(&[("acp", "forms"), ("acp", "plain"), ("python", "plain"), ("acpx", "plain")]);
}

/// What it does not pass is told with reasons in `conformance.yaml`; what passes although it stands there fails, too.
#[test]
fn the_conformance_suite_passes_but_for_what_is_left_out() {
    let Some(folder) = installed() else { return };
    let (_server, env) = super::talk();
    let told = json!({
        "nietz": env!("CARGO_BIN_EXE_nietz"), "options": ["--model", "openai/test"], "cwd": env.workspace(), "answers": [],
    });
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/clients/conformance.mjs");
    let mut command = Command::new(node());
    command.arg(script).arg(told.to_string()).env("NIETZ_TEST_CLIENTS", &folder).envs(env.variables());
    let output = command.output().expect("the suite starts");
    let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{wrong}");
    assert!(said.contains("\"code\":0"), "{said}\n{wrong}");
}
