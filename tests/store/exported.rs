//! The promise of `nietz documents export`: what stands in a store comes out as the files that its flows name, valid as these, for whoever may
//! read it, and over nothing that somebody else has changed.

use super::hosts::on;
use crate::brainstorm::model::Brain;
use crate::brainstorm::table::{FULL, TOPIC};
use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};
use crate::support::postgres::{self, Database};
use crate::support::process::Ended;

/// A flow with documents of the team's, and of whoever runs it.
const BOARD: &str = r#"
local documents = require("@nietz/documents")
local nietz = require("@nietz")
local text = { type = "object", required = { "text" }, additionalProperties = false, properties = { text = { type = "string" } } }
return nietz.flow {
  name = "board", summary = "Keeps cards", host_api = 2,
  params = { text = { type = "string", positional = true, required = true } },
  collections = {
    cards = { path = "board/{slug}.yaml", shared = true, schema = text },
    own = { path = "mine/{slug}.yaml", schema = text },
    log = { path = "board/log.jsonl", shared = true, schema = text },
  },
  run = function(ctx)
    local card = { text = ctx.params.text }
    documents.collection("cards"):save(card, { key = { slug = "first" }, overwrite = true })
    documents.collection("own"):save(card, { key = { slug = "first" }, overwrite = true })
    documents.collection("log"):append(card)
    return nil
  end,
}
"#;

const SESSION: &str = ".project-memory/brainstorm-sessions/checkout-that-survives-a-payment-outage.yaml";

/// A machine of somebody who may do this.
fn of(database: &Database<'_>, env: Env, name: &str, kinds: &[&str]) -> Env {
    drop(database.role(name, 1, kinds));
    on(database, env).var("NIETZ_STORE", &database.url_as(&format!("{name}_{}", database.name)))
}

fn write(env: &Env, run: &str, text: &str) {
    env.run(["board", text]).var("NIETZ_RUN", run).go().exits(0);
}

fn export(env: &Env, more: &[&str]) -> Ended {
    env.nietz(["documents", "export"]).args(more.iter().copied()).go()
}

/// The files that were written, without those that the test has put there.
fn files(env: &Env) -> Vec<String> {
    let all = walkdir::WalkDir::new(env.workspace()).sort_by_file_name().into_iter().flatten();
    let files = all.filter(|entry| entry.file_type().is_file());
    let paths = files.map(|entry| entry.path().strip_prefix(env.workspace()).expect("below").display().to_string());
    paths.filter(|path| !path.starts_with("flows/")).collect()
}

#[test]
fn documents_come_out_as_the_files_that_would_have_been_there_without_a_store() {
    let Some(database) = postgres::database() else { return };
    database.session().get("SELECT nietz.sign(1, 'folder', '[\"*\"]')");
    let models = ModelServer::start(|request| Response::text(Brain::default().reply(request).to_string()));
    let hold = |env: &Env| {
        let lines = [FULL, "a", "a", "quit"].map(|line| format!("{line}\n")).concat();
        env.run(["brainstorm", TOPIC, "--no-clarify", "--no-hmw"]).stdin(lines).go().exits(0);
        write(env, "r2", "é: \"a\"");
    };
    let machine = || Env::with(&models).flow("board", BOARD);
    let (in_files, on_server) = (machine(), of(&database, machine(), "ann", &["asker", "worker"]));
    hold(&in_files);
    hold(&on_server);
    assert!(files(&on_server).is_empty(), "with a store nothing stands on the machine: {:?}", files(&on_server));

    let told = export(&on_server, &[]).exits(0);
    assert!(told.stdout.ends_with("4 written, 0 kept as they were\n"), "{told:?}");
    let documents = [SESSION, "board/first.yaml", "board/log.jsonl", "mine/first.yaml"];
    assert_eq!(files(&on_server), documents);
    for path in documents {
        assert!(in_files.path(path).exists());
        // What a brainstorm asks depends on chance, which is another one for each workspace.
        assert!(path == SESSION || on_server.read(path) == in_files.read(path), "{path}");
        assert!(told.stdout.contains(&format!("{path} (ann")), "who wrote it is told: {told:?}");
    }
    // As files of anybody's, without a store.
    let plain = machine();
    let into = plain.workspace().display().to_string();
    export(&on_server, &["--into", &into]).exits(0);
    let checked = plain.nietz(["check"]).go().exits(0);
    for path in documents {
        assert!(checked.stdout.contains(&format!("{path}: valid")), "{path}: {checked:?}");
    }
}

#[test]
fn a_file_that_somebody_has_changed_stays_and_what_is_the_same_is_not_written_again() {
    let Some(database) = postgres::database() else { return };
    let env = of(&database, Env::new().flow("board", BOARD), "ann", &["asker", "worker"]);
    database.session().get("SELECT nietz.sign(1, 'folder', '[\"*\"]')");
    write(&env, "r1", "one");
    export(&env, &[]).exits(0);
    let again = export(&env, &[]).exits(0);
    assert!(again.stdout.ends_with("0 written, 0 kept as they were\n"), "{again:?}");

    env.write("board/first.yaml", "text: mine\n");
    let kept = export(&env, &["--json"]).exits(1);
    assert_eq!(env.read("board/first.yaml"), "text: mine\n");
    let told: Vec<serde_json::Value> =
        kept.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let short: Vec<_> =
        told.iter().map(|one| (one["path"].as_str(), one["shared"].clone(), one["kept"].clone())).collect();
    assert_eq!(
        short,
        [
            (Some("board/first.yaml"), true.into(), true.into()),
            (Some("board/log.jsonl"), true.into(), false.into()),
            (Some("mine/first.yaml"), false.into(), false.into()),
        ]
    );
    // What has changed in the store is no newer version of a file that stands here.
    write(&env, "r2", "two");
    let kept = export(&env, &[]).exits(1);
    assert!(kept.stdout.contains("board/first.yaml") && kept.stdout.contains("stays (--replace)"), "{kept:?}");
    assert!(kept.stdout.ends_with("0 written, 3 kept as they were\n"), "{kept:?}");
    export(&env, &["--replace"]).exits(0);
    assert_eq!(env.read("board/first.yaml"), "text: two\n");
    assert_eq!(env.read("board/log.jsonl").lines().count(), 2);
}

#[test]
fn whoever_reads_gets_what_is_shared_and_nobody_else_gets_anything() {
    let Some(database) = postgres::database() else { return };
    database.session().get("SELECT nietz.sign(1, 'folder', '[\"*\"]')");
    let board = || Env::new().flow("board", BOARD);
    let ann = of(&database, board(), "ann", &["asker", "worker"]);
    write(&ann, "r1", "one");
    // A reader has no flow that knows these documents, and needs none.
    let reader = of(&database, Env::new(), "audit", &["reader"]);
    let told = export(&reader, &[]).exits(0);
    assert!(told.stdout.ends_with("2 written, 0 kept as they were\n"), "{told:?}");
    assert_eq!(files(&reader), ["board/first.yaml", "board/log.jsonl"], "Ann's own are hers");
    let unknown = reader.nietz(["check", "board/first.yaml"]).go();
    assert_ne!(unknown.code, Some(0), "no flow here knows it, and that is said: {unknown:?}");
    let none = reader.nietz(["check"]).go().exits(0);
    assert!(!none.stdout.contains("board/"), "{none:?}");

    let stranger = of(&database, Env::new(), "stranger", &[]);
    let refused = export(&stranger, &[]);
    assert!(refused.code != Some(0) && files(&stranger).is_empty(), "{refused:?}");
    let with_files = export(&board(), &[]).exits(2);
    assert!(with_files.stderr.contains("needs a store"), "{with_files:?}");
}

/// Whoever may write documents writes no files of version control or of nietz on the machines of others, and none outside.
#[test]
fn a_document_at_a_path_that_no_collection_can_have_comes_out_nowhere() {
    let Some(database) = postgres::database() else { return };
    let env = of(&database, Env::new(), "ann", &["asker", "worker"]);
    let mut owner = database.session();
    for path in [
        ".git/hooks/post-commit",
        "a/../../out.yaml",
        "/tmp/nietz-out.yaml",
        "nietz.yaml",
        ".nietz/runs/r1/journal.jsonl",
    ] {
        // The store itself may refuse it.
        drop(owner.say(&format!("SELECT nietz.save_document(1, '', '{path}', 'x', 'd', NULL)")));
    }
    owner.get("SELECT nietz.save_document(1, '', 'plain.yaml', 'x', 'd', NULL)");
    let told = export(&env, &[]).exits(0);
    assert_eq!(files(&env), ["plain.yaml"], "{told:?}");
    assert!(!env.path("../out.yaml").exists() && !std::path::Path::new("/tmp/nietz-out.yaml").exists());
}
