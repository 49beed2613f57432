//! Whole sessions, kept as cassettes that replay with no model, no key and nobody to answer: one that was solved, one
//! that ended after its lifeline, one that was killed in the middle of a model call and resumed.
//!
//! After a change of a prompt, `NIETZ_RECORD=1 cargo test --locked debug::whole` records them anew with the scripted model.
//! A real one is kept by hand: `nietz run debug …`, then `nietz test --from-run RUN --name NAME` and a copy of what that
//! writes. `relay.jsonl` was played by hand, each reply of the model written from the prompts alone. In `local.jsonl` the built-in
//! model answered, its weights under llama.cpp's server. Each file of the folder is replayed here, whoever recorded it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::desk::{Desk, For, PROBLEM, purpose, typed, usual};
use crate::support::env::Env;
use crate::support::journal::Journal;
use crate::support::kills;
use crate::support::model_server::{Gate, ModelServer, Response};

fn cassettes() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cassettes/debug")
}

/// Keeps the journal where it is asked for.
fn record(env: &Env, name: &str) {
    if std::env::var_os("NIETZ_RECORD").is_some() {
        std::fs::copy(env.journal_path(), cassettes().join(format!("{name}.jsonl"))).expect("it can be written");
    }
}

/// A session of the bundled flow, so that the journal names no path of ours.
fn play(desk: &Desk, lines: &[&str]) -> serde_json::Value {
    desk.env.run(["debug", PROBLEM]).stdin(typed(lines)).go().exits(0).result()
}

#[test]
fn a_session_ends_solved() {
    let desk = Desk::new().file("src/price.py", "def load(sku):\n    return cache[sku]\n");
    let lines = [
        "src/price.py:2 reads it",
        "the log shows a key from before the deploy",
        "so nothing writes it again",
        "found it",
        "look at the age of the key",
    ];
    assert_eq!(play(&desk, &lines)["outcome"], "solved");
    record(&desk.env, "solved");
}

#[test]
fn a_session_ends_after_its_lifeline() {
    let desk = Desk::new();
    let lines = ["no idea", "just tell me", "I give up", "still no idea", "I give up", ""];
    assert_eq!(play(&desk, &lines)["outcome"], "abandoned");
    record(&desk.env, "abandoned");
}

#[test]
fn a_session_that_is_killed_in_a_model_call_goes_on_and_pays_for_nothing_twice() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = ModelServer::start(move |request| {
        let reply = Response::text(usual(request));
        let third = purpose(request) == For::Question && request.prompt().contains("it is written once");
        if third { reply.held_by(&held) } else { reply }
    });
    let desk = Desk { env: Env::with(&server), server };
    let mut running = desk.env.run(["debug", PROBLEM]).spawn();
    running.say("the key is old\nit is written once\n");
    let held_call = |desk: &Desk| desk.asked(For::Question).len() == 3 && desk.asked(For::Tags).len() == 2;
    loop {
        // Counted before it is looked at: a call that comes in between is not waited for.
        let seen = desk.server.calls();
        if held_call(&desk) {
            break;
        }
        assert!(desk.server.wait_for_calls(seen + 1, Duration::from_secs(30)), "the call never comes");
    }
    running.kill();
    gate.open();
    assert_eq!(desk.saved()["transcript"][1]["response"], "it is written once", "saved before the call");
    let ended = desk.env.resume().stdin("by nobody\nsolved\n\nlook at the writer\n").go();
    assert_eq!(ended.result()["outcome"], "solved");
    let session = desk.saved();
    assert_eq!((&session["questionsToRootCause"], &session["nietz"]["scoredBy"]), (&4.into(), &"model".into()));
    let paid = desk.env.journal().of_kind("chat").len();
    assert!(desk.server.calls() <= paid + 2, "only the calls that were killed are made twice");
    record(&desk.env, "resumed");
}

#[test]
fn a_kill_or_a_full_disk_at_any_time_loses_nothing() {
    let lines = "answer: [the key is old, just tell me, I give up, still nothing, solved]\nexplains-all: true\nreflection: look\n";
    let arguments = ["debug", PROBLEM, "--answers", "answers.yaml"];
    let calm = Desk::new().file("answers.yaml", lines);
    let result = calm.env.run(arguments).go().result();
    let count = calm.env.journal().lines.len();
    for line in kills::points(count as u64 - 3, 4).into_iter().map(|point| point + 2) {
        for (fault, code) in [("full", Some(1)), ("kill", None)] {
            let desk = Desk::new().file("answers.yaml", lines);
            let broken = desk.env.run(arguments).var("NIETZ_FAULT", &format!("{fault}@{line}")).go();
            assert_eq!(broken.code, code, "{fault}@{line}: {broken:?}");
            let resumed = desk.env.resume().args(["--answers", "answers.yaml"]).go();
            assert_eq!(resumed.result(), result, "{fault}@{line}");
            assert_eq!(desk.saved(), calm.saved(), "{fault}@{line}");
        }
    }
}

#[test]
fn killed_at_any_moment_a_session_comes_to_the_same_documents_and_leaves_nothing() {
    let lines = "answer: [the key is old, just tell me, I give up, still nothing, solved]\nexplains-all: true\nreflection: look\n";
    let arguments = ["debug", PROBLEM, "--answers", "answers.yaml"];
    let calm = Desk::new().file("answers.yaml", lines);
    let result = calm.env.run(arguments).go().result();
    let length = std::fs::metadata(calm.env.journal_path()).expect("it is there").len();
    let (seeds, times) = kills::rounds();
    kills::for_each(&seeds, |seed| {
        let desk = Desk::new().file("answers.yaml", lines);
        let resume = || desk.env.resume().args(["--answers", "answers.yaml"]);
        let ended =
            kills::anywhere(&desk.env, &mut kills::Chance(seed), (times, length), desk.env.run(arguments), resume);
        assert_eq!(ended.result(), result, "seed {seed}");
        assert_eq!(desk.env.documents(), calm.env.documents(), "seed {seed}");
        assert_eq!(kills::strays(&desk.env), Vec::<String>::new(), "seed {seed}");
    });
}

#[test]
fn every_cassette_replays_without_a_model() {
    assert!(replay_all(&cassettes()) >= 4, "one is played by hand");
}

/// Takes each journal of a folder to its end with no model, no key and nobody there, and holds the result to what was recorded. Returns
/// how many there are.
pub(crate) fn replay_all(folder: &Path) -> usize {
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("there are cassettes") {
        let path = entry.expect("it can be listed").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        seen += 1;
        let recorded = Journal::read(&path);
        let run = recorded.lines[0]["is"]["open"]["run"].as_str().expect("a journal begins with its run").to_owned();
        let env = Env::new();
        let place = env.path(&format!(".nietz/runs/{run}/journal.jsonl"));
        std::fs::create_dir_all(place.parent().expect("it is in a folder")).expect("it can be made");
        std::fs::copy(&path, &place).expect("it can be copied");
        env.own(&run);
        let ended = env.nietz(["resume", &run, "--json"]).go();
        assert_eq!(ended.code, Some(0), "{name} (this file says how it is recorded anew): {ended:?}");
        let end = recorded.lines.iter().rev().find_map(|line| line["is"].get("end")).expect("it was taken to its end");
        assert_eq!(ended.result(), end["result"], "{name}");
        let nothing_new =
            ended.of_type("notice").iter().any(|notice| notice.to_string().contains("nothing was done again"));
        assert!(nothing_new, "{name}: {ended:?}");
    }
    seen
}
