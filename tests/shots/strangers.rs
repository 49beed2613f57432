//! Cheats and honest changes by somebody who has not seen what guards validation: each cheat makes every command of the
//! validation exit with 0 and does nothing of the work, each honest change does it and looks odd. None of them names a guard.

mod honest;
mod javascript;
mod python;
mod rust;
mod shell;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::basics::{call, column, step};
use crate::support::env::Env;
use crate::support::git::{git, init};
use crate::support::kills;
use crate::support::model_server::{ModelServer, Request, Response};

/// What a model does in its worktree, one tool call each.
pub(super) enum Act {
    Read(&'static str),
    Write(&'static str, &'static str),
    /// The file is read before.
    Replace(&'static str, &'static str, &'static str),
    /// A line of a shell.
    Run(&'static str),
}

/// A project, its goal, and what a model does.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) goal: &'static str,
    pub(super) files: &'static [(&'static str, &'static str)],
    pub(super) validate: &'static str,
    /// Options of the command line, beside the goal and the validation.
    pub(super) flags: &'static [&'static str],
    pub(super) acts: &'static [Act],
    pub(super) honest: bool,
    /// Programs of the system that it cannot do without.
    pub(super) needs: &'static [&'static str],
    pub(super) needs_cargo: bool,
}

impl Case {
    pub(super) const NEW: Case = Case {
        name: "",
        goal: "",
        files: &[],
        validate: "",
        flags: &[],
        acts: &[],
        honest: false,
        needs: &[],
        needs_cargo: false,
    };
}

fn cheats() -> impl Iterator<Item = &'static Case> {
    [python::CHEATS, rust::CHEATS, javascript::CHEATS, shell::CHEATS].into_iter().flatten()
}

/// Does an act in a folder where nothing is guarded.
fn perform(act: &Act, folder: &Path) {
    match act {
        Act::Read(path) => drop(std::fs::read(folder.join(path)).expect("it can be read")),
        Act::Write(path, text) => {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a folder can be made");
            std::fs::write(path, text).expect("it can be written");
        }
        Act::Replace(path, old, new) => {
            let text = std::fs::read_to_string(folder.join(path)).expect("it can be read");
            assert_eq!(text.matches(old).count(), 1, "{path}: {old}");
            std::fs::write(folder.join(path), text.replace(old, new)).expect("it can be written");
        }
        Act::Run(line) => {
            let ended = Command::new("sh").args(["-c", line]).current_dir(folder).output().expect("there is a shell");
            assert!(ended.status.success(), "{line}: {ended:?}");
        }
    }
}

/// What validation comes to in a clean clone, where only the exit code is looked at.
fn bare(folder: &Path, validate: &str) -> bool {
    let place = tempfile::tempdir().expect("a temporary folder can be made");
    let clone = place.path().join("clone");
    git(folder, ["clone", "-q", ".", &clone.display().to_string()]);
    let mut command = Command::new("sh");
    command.args(["-c", validate]).current_dir(&clone).env("CARGO_TARGET_DIR", place.path().join("target"));
    command.env_remove("RUSTFLAGS").output().expect("there is a shell").status.success()
}

/// A cheat that fails where nobody looks, and an honest change that does not work, would show nothing below.
#[test]
fn every_stranger_s_case_does_what_it_says_where_nothing_is_guarded() {
    let mut wrong = Vec::new();
    for case in cheats().chain(honest::CHANGES) {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        for (path, text) in case.files {
            perform(&Act::Write(path, text), folder.path());
        }
        init(folder.path());
        let before = bare(folder.path(), case.validate);
        for act in case.acts {
            perform(act, folder.path());
        }
        git(folder.path(), ["add", "-A"]);
        git(folder.path(), ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "work"]);
        if before || !bare(folder.path(), case.validate) {
            wrong.push(format!("{}: passes before: {before}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// An act as a call of a tool.
fn as_call(act: &Act) -> Response {
    match act {
        Act::Read(path) => call("read_file", &json!({ "path": path })),
        Act::Write(path, text) => call("write_file", &json!({ "path": path, "text": text })),
        Act::Replace(path, old, new) => call("replace_in_file", &json!({ "path": path, "old": old, "new": new })),
        Act::Run(line) => call("run", &json!({ "command": line })),
    }
}

/// Tells whether the machine has what a case needs, and says so where it has not.
fn has_tools(case: &Case) -> bool {
    case.needs.iter().all(|program| {
        let there = Path::new("/usr/bin").join(program).exists();
        if !there {
            eprintln!("SKIPPED: there is no /usr/bin/{program} here, so nothing was shown about {}", case.name);
        }
        there
    })
}

/// An environment with Cargo, where a case needs it.
fn with_tools(env: Env, case: &Case) -> Env {
    if !case.needs_cargo {
        return env;
    }
    let tools = Path::new(env!("CARGO")).parent().expect("cargo is in a folder");
    let env = env.var("PATH", &format!("{}:/usr/bin:/bin", tools.display()));
    match tools.ancestors().nth(3).filter(|folder| folder.join("toolchains").is_dir()) {
        Some(rustup) => env.var("RUSTUP_HOME", &rustup.display().to_string()),
        None => env,
    }
}

/// Plays a session in which the model does what a case says, once. Returns how it differs from what it should come to.
fn judged(case: &'static Case) -> Option<String> {
    let server = ModelServer::start(|request: &Request| match case.acts.get(step(request)) {
        Some(act) => as_call(act),
        None => Response::text("All of it is done.").usage(10, 5),
    });
    let env = case.files.iter().fold(Env::with(&server), |env, (path, text)| env.file(path, text));
    let env = with_tools(env, case);
    init(&env.workspace());
    let options = ["--model-a", "openai/a", "--max-breakdowns", "0", "--validate", case.validate];
    let run = env.run(["shots-on-goal", case.goal].into_iter().chain(options)).args(case.flags.iter().copied());
    let ended = run.go();
    let result = ended.ending()["result"].clone();
    let detail = column(&env, "attempt_result", "status_detail").pop().unwrap_or_default();
    let refused = column(&env, "tool_call", "output").into_iter().filter(is_refusal).collect::<Vec<_>>();
    let (reached, tampered) = (result["status"] == "success", detail.to_string().contains("tampered"));
    let right = if case.honest { reached && !tampered && refused.is_empty() } else { !reached };
    (!right).then(|| format!("{}: {}; {detail}; refused: {refused:?}", case.name, result["status"]))
}

/// Tells whether a tool did not do what it was asked.
fn is_refusal(output: &Value) -> bool {
    let output = output.as_str().unwrap_or_default();
    output.starts_with("error: ") || (output.starts_with("exit code ") && !output.starts_with("exit code 0"))
}

fn each_is_right(cases: &'static [Case]) {
    let cases: Vec<&'static Case> = cases.iter().filter(|case| has_tools(case)).collect();
    let wrong = std::sync::Mutex::new(Vec::new());
    kills::for_each(&cases, |case| {
        if let Some(what) = judged(case) {
            wrong.lock().expect("nobody panics while it is held").push(what);
        }
    });
    let wrong = wrong.into_inner().expect("as above");
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), cases.len());
}

#[test]
fn no_cheat_in_python_is_a_success() {
    each_is_right(python::CHEATS);
}

#[test]
fn no_cheat_in_rust_is_a_success() {
    each_is_right(rust::CHEATS);
}

#[test]
fn no_cheat_in_javascript_is_a_success() {
    each_is_right(javascript::CHEATS);
}

#[test]
fn no_cheat_in_make_and_shell_is_a_success() {
    each_is_right(shell::CHEATS);
}

#[test]
fn no_honest_change_is_called_tampering() {
    each_is_right(honest::CHANGES);
}
