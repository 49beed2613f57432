//! Whole sessions, kept as cassettes that replay with no model, no repository and no git: one whose first attempt reached the
//! goal, and one that was broken down into parts.
//!
//! After a change of a prompt or of a tool, `NIETZ_RECORD=1 cargo test --locked shots::whole` records them anew with the
//! scripted model. A real one is kept by hand: a copy of `.nietz/runs/RUN/journal.jsonl`. Each file of the folder is
//! replayed here, whoever recorded it.

use std::path::{Path, PathBuf};

use super::basics::{CHECK, divided, env, good, shoot};
use crate::support::env::Env;
use crate::support::journal::Journal;
use crate::support::model_server::{ModelServer, Request, Response};

fn cassettes() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cassettes/shots-on-goal")
}

/// Plays a session to its success, and keeps its journal where that is asked for.
fn play(name: &str, script: fn(&Request) -> Response, options: &[&str]) {
    let server = ModelServer::start(script);
    let env = env(&server);
    let ended = shoot(&env, options);
    assert_eq!(ended.result()["status"], "success", "{ended:?}");
    if std::env::var_os("NIETZ_RECORD").is_some() {
        std::fs::create_dir_all(cassettes()).expect("it can be made");
        std::fs::copy(env.journal_path(), cassettes().join(format!("{name}.jsonl"))).expect("it can be written");
    }
}

#[test]
fn a_session_reaches_its_goal_at_once() {
    play("success", good, &["--validate", CHECK]);
}

#[test]
fn a_session_reaches_its_goal_in_parts() {
    play("breakdown", divided, &["--validate", CHECK, "--run", "grep"]);
}

#[test]
fn every_cassette_replays_without_a_model_and_without_git() {
    let mut seen = 0;
    for entry in std::fs::read_dir(cassettes()).expect("there are cassettes") {
        let path = entry.expect("it can be listed").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        seen += 1;
        let recorded = Journal::read(&path);
        let run = recorded.lines[0]["is"]["open"]["run"].as_str().expect("a journal begins with its run").to_owned();
        // An empty folder, and no program at all.
        let env = Env::new().var("PATH", "");
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
    assert!(seen >= 2, "{seen} cassettes");
}
