//! The promise: end a run by any signal, in any effect, as often as you like, alone or with others beside it: what it
//! comes to is what it would have come to, nothing is paid twice and nothing is lost.
//!
//! Effects that are over at once (a read, the clock, chance) have no instant to be hit in; `kill_matrix` ends runs
//! after each line of their journals, those of such effects too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;

use crate::support::env::{Env, RUN};
use crate::support::git::{git, init};
use crate::support::journal::Journal;
use crate::support::kills;
use crate::support::model_server::{Gate, ModelServer, Request, Response};
use crate::support::process::Running;

const FLOW: &str = include_str!("../support/flows/signals.lua");

/// What is under way when the signal comes, and what holds it there.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Effect {
    /// A call, held by the model.
    Chat,
    /// A question that nobody answers.
    Ask,
    /// A command that may be run again, and one that may not: each sleeps.
    Again,
    Once,
    /// A call of git with these words in it.
    Git(&'static str),
    /// Something that writes to this folder of documents, which is locked: a save, a row, a deletion.
    Document(&'static str),
}

const EFFECTS: [Effect; 14] = [
    Effect::Chat,
    Effect::Ask,
    Effect::Again,
    Effect::Once,
    Effect::Git("update-ref refs/heads"),
    Effect::Git("worktree add"),
    Effect::Git("commit-tree"),
    Effect::Git("clean -ffdxq"),
    Effect::Git("merge-tree"),
    Effect::Git("diff-tree -r -p"),
    Effect::Git("for-each-ref"),
    Effect::Document("saved"),
    Effect::Document("rows"),
    Effect::Document("doomed"),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Signal {
    Interrupt,
    Terminate,
    HangUp,
    Kill,
}

/// What no call of git has in it.
const NO_WORDS: &str = "no words of git";

const SIGNALS: [Signal; 4] = [Signal::Interrupt, Signal::Terminate, Signal::HangUp, Signal::Kill];
const BRANCHES: [usize; 2] = [1, 3];
const TIMES: [usize; 3] = [1, 2, 5];

/// One cell of the matrix.
#[derive(Clone, Copy, Debug)]
struct Cell {
    effect: Effect,
    signal: Signal,
    branches: usize,
    times: usize,
}

/// What every disturbed run is compared with.
struct Reference {
    documents: BTreeMap<String, String>,
    branches: String,
    result: Value,
    calls: usize,
}

fn script(request: &Request) -> Response {
    Response::text(format!("{}: said", request.prompt()))
}

/// A command that notes each time that it is run, and sleeps the first `held` times in the branch `b`.
fn command(name: &str, held: usize) -> String {
    format!(
        "echo x >> {name}.mark; wc -l < {name}.mark; held=0; case $PWD in *-b) held={held};; esac; \
         [ $(wc -l < {name}.mark) -gt $held ] || exec sleep 1000"
    )
}

/// A workspace, with a git that waits at what has these words in it, if it is to.
fn env(server: &ModelServer, words: &str) -> Env {
    let mut env = Env::with(server).flow("signals", FLOW).file("a.txt", "one\n").file(".gitignore", "*.mark\n");
    for name in ["a", "b", "c"] {
        env = env.file(&format!("doomed/{name}.yaml"), format!("slug: {name}\n"));
    }
    env = env.file("saved/other.yaml", "slug: other\n").file("rows/other.jsonl", "{}\n");
    init(&env.workspace());
    let bin = bin(&env);
    std::fs::create_dir(&bin).expect("a folder can be made");
    let made = std::process::Command::new("mkfifo").arg(bin.join("gate")).status().expect("it is there");
    assert!(made.success());
    // Whoever takes the file `hold` is held.
    let script = format!(
        "#!/bin/sh\nbin='{bin}'\ncase \"$*\" in *'{words}'*)\n  if mv \"$bin/hold\" \"$bin/taken\" 2> /dev/null; then\n    \
         echo >> \"$bin/begun\"; read go < \"$bin/gate\"\n    \
         /usr/bin/git \"$@\"; code=$?; echo >> \"$bin/ended\"; exit $code\n  fi;;\nesac\nexec /usr/bin/git \"$@\"\n",
        bin = bin.display()
    );
    std::fs::write(bin.join("git"), script).expect("it can be written");
    std::fs::set_permissions(bin.join("git"), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let path = format!("{}:/usr/bin:/bin", bin.display());
    env.var("PATH", &path)
}

fn bin(env: &Env) -> PathBuf {
    env.home().join("bin")
}

fn lines(file: &Path) -> usize {
    std::fs::read_to_string(file).unwrap_or_default().lines().count()
}

fn answers(but: Option<&str>) -> String {
    let ids = ["sure-a", "sure-b", "sure-c"].into_iter().filter(|id| Some(*id) != but);
    ids.map(|id| format!("{{\"id\": \"{id}\", \"answer\": true}}\n")).collect()
}

/// The documents and what is on the branches.
fn left(env: &Env) -> (BTreeMap<String, String>, String) {
    let mut documents = env.documents();
    // What a killed save has written beside its document is nobody's document.
    let beside =
        |path: &str| path.rsplit('/').next().is_some_and(|name| name.starts_with(".nietz-") && name.ends_with(".tmp"));
    documents.retain(|path, _| !path.starts_with(".git/") && !beside(path));
    (documents, git(&env.workspace(), ["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads"]))
}

fn reference(branches: usize) -> &'static Reference {
    static ALL: [OnceLock<Reference>; 2] = [OnceLock::new(), OnceLock::new()];
    let place = BRANCHES.iter().position(|count| *count == branches).expect("it is one of them");
    ALL[place].get_or_init(|| {
        let server = ModelServer::start(script);
        let env = env(&server, NO_WORDS);
        let ended = begin(&env, branches, 0, 0).stdin(answers(None)).go();
        let result = ended.result();
        let (documents, branches) = left(&env);
        Reference { documents, branches, result, calls: server.calls() }
    })
}

fn begin(env: &Env, branches: usize, again: usize, once: usize) -> crate::support::process::Call {
    let (again, once) = (command("again", again), command("once", once));
    env.run(["signals", "--branches", &branches.to_string(), "--again", &again, "--once", &once])
}

fn mark(env: &Env, name: &str) -> usize {
    let file = walkdir::WalkDir::new(env.home())
        .into_iter()
        .flatten()
        .find(|entry| entry.file_name() == format!("{name}.mark").as_str() && of_b(entry.path()));
    file.map_or(0, |entry| lines(entry.path()))
}

fn of_b(path: &Path) -> bool {
    path.parent().is_some_and(|folder| folder.to_string_lossy().ends_with(&format!("{RUN}-b")))
}

fn send(running: Running, signal: Signal, release: impl FnOnce()) -> Option<i32> {
    match signal {
        Signal::Interrupt => running.interrupt(),
        Signal::Terminate => running.terminate(),
        Signal::HangUp => running.hang_up(),
        Signal::Kill => {
            let code = running.kill().code;
            release();
            return code;
        }
    }
    release();
    running.end().code
}

#[track_caller]
fn check(cell: Cell) {
    let Cell { effect, signal, branches, times } = cell;
    let reference = reference(branches);
    let gate = Gate::default();
    let held = gate.clone();
    let server = ModelServer::start(move |request| match effect {
        Effect::Chat if request.prompt() == "say b" => script(request).held_by(&held),
        _ => script(request),
    });
    let words = if let Effect::Git(words) = effect { words } else { NO_WORDS };
    let env = env(&server, words);
    let folder = if let Effect::Document(folder) = effect { Some(env.path(folder)) } else { None };
    let hold = |is: Effect| if effect == is { times } else { 0 };
    let answered = answers((effect == Effect::Ask).then_some("sure-b"));
    let (mut finished, mut in_flight) = (0, 0);
    // By branch and command: those that were under way when the run was ended.
    let mut cut = BTreeSet::new();
    for time in 1..=times {
        let lock = folder.as_ref().map(|folder| {
            let lock = File::open(folder).expect("it is there");
            lock.lock().expect("it can be locked");
            lock
        });
        if let Effect::Git(_) = effect {
            std::fs::write(bin(&env).join("hold"), "").expect("it can be written");
        }
        let call = match time {
            1 => begin(&env, branches, hold(Effect::Again), hold(Effect::Once)),
            _ => env.resume(),
        };
        let mut running = call.stdin(answered.clone()).spawn();
        let is_held = |running: &Running| match effect {
            Effect::Chat => server.requests().iter().filter(|request| request.prompt() == "say b").count() == time,
            Effect::Ask => true,
            Effect::Again => mark(&env, "again") == time,
            Effect::Once => mark(&env, "once") == time,
            Effect::Git(_) => lines(&bin(&env).join("begun")) == time,
            Effect::Document(_) => running.has_open(folder.as_ref().expect("it is a document's")),
        };
        if effect == Effect::Ask {
            while running.wait_for("asked")["question"]["id"] != "sure-b" {}
        }
        // What is over after the first time is not held again.
        if !running.until_or_over(is_held) {
            drop(lock);
            running.close();
            assert_eq!(running.end().code, Some(0), "{cell:?}, time {time}");
            break;
        }
        let mut pipe = None;
        let code = send(running, signal, || {
            drop(lock);
            if let Effect::Git(_) = effect {
                let file = File::options().read(true).write(true).open(bin(&env).join("gate"));
                let mut file = file.expect("the pipe is there");
                file.write_all(b"go\n").expect("there is room in it");
                pipe = Some(file);
            }
        });
        assert_eq!(code, (signal != Signal::Kill).then_some(130), "{cell:?}, time {time}");
        if let Effect::Git(_) = effect {
            while lines(&bin(&env).join("ended")) < time {
                std::thread::yield_now();
            }
        }
        let journal = env.journal();
        finished = journal.of_kind("chat").into_iter().filter(|chat| chat.finished()).count();
        in_flight += journal.of_kind("chat").len() - finished;
        for exec in journal.of_kind("exec").into_iter().filter(|exec| exec.outcome.is_null()) {
            let command = if exec.request["repeatable"] == true { "again" } else { "once" };
            cut.insert((exec.request["tree"].as_str().expect("a command has its worktree").to_owned(), command));
        }
        no_interruption_is_an_outcome(cell, &journal);
    }
    gate.open();
    let before = std::fs::read(env.journal_path()).expect("there is a journal");
    let ended = env.resume().stdin(answers(None)).go();
    let result = ended.result();
    let mut expected = reference.result.clone();
    for (branch, command) in &cut {
        expected[branch][command] = match *command {
            "once" => "command-in-doubt".into(),
            // Run again, as it may be: how often it came as far as to count itself, it tells.
            _ => result[branch][command].clone(),
        };
    }
    if effect == Effect::Again {
        assert_eq!(result["b"]["again"], format!("{}\n", times + 1), "{cell:?}");
    }
    assert!(effect != Effect::Once || cut.contains(&("b".to_owned(), "once")), "{cell:?}");
    assert_eq!(result, expected, "{cell:?}");
    let (documents, refs) = left(&env);
    assert_eq!(documents, reference.documents, "{cell:?}");
    assert_eq!(refs, reference.branches, "{cell:?}");
    assert_eq!(git(&env.workspace(), ["worktree", "list"]).lines().count(), 1, "{cell:?}: a worktree is left");
    let after = std::fs::read(env.journal_path()).expect("there is a journal");
    let whole = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    assert!(after.starts_with(&before[..whole]), "{cell:?}: a line was rewritten");
    // With branches side by side, only what was in flight is called again; in which order the others come is not
    // compared: to be tightened to the very history of the undisturbed run.
    let made = ended.of_type("call_started").len();
    assert!(made <= reference.calls - finished, "{cell:?}: {made} calls were made, {finished} were finished");
    let mut bodies: BTreeMap<String, usize> = BTreeMap::new();
    for request in server.requests() {
        *bodies.entry(request.body.to_string()).or_default() += 1;
    }
    let again: usize = bodies.values().map(|count| count - 1).sum();
    assert!(
        bodies.len() == reference.calls && again <= in_flight,
        "{cell:?}: {again} calls twice, {in_flight} in flight"
    );
}

/// No outcome says that the run was interrupted, whatever the signal was.
#[track_caller]
fn no_interruption_is_an_outcome(cell: Cell, journal: &Journal) {
    for effect in journal.effects().into_values() {
        assert_ne!(effect.outcome["failure"]["code"], "interrupted", "{cell:?}: {effect:?}");
    }
}

/// Each effect once a day, with signals, branches and times that differ; all of them by `.ci/long kill`.
fn cells() -> Vec<Cell> {
    let mut all = Vec::new();
    for (row, effect) in EFFECTS.into_iter().enumerate() {
        for (column, signal) in SIGNALS.into_iter().enumerate() {
            for (place, branches) in BRANCHES.into_iter().enumerate() {
                for (count, times) in TIMES.into_iter().enumerate() {
                    let of_the_day = column == row % 4 && place == row / 4 % 2 && count == row % 2;
                    if of_the_day || kills::whole() {
                        all.push(Cell { effect, signal, branches, times });
                    }
                }
            }
        }
    }
    all
}

#[test]
fn a_run_killed_by_any_signal_in_any_effect_comes_to_the_same_end() {
    kills::for_each(&cells(), check);
}
