//! The promise: a full disk, a folder that cannot be written, a document that somebody else changed and a
//! second process lose nothing: the run says what it met, and goes on when it is mended.

use crate::support::env::{Env, RUN};
use crate::support::model_server::{ModelServer, Response};

const FLOW: &str = include_str!("../support/flows/short.lua");
const EDITS: &str = include_str!("../support/flows/edits.lua");
const ANSWER: &str = "more\n";

fn server() -> ModelServer {
    ModelServer::start(|_| Response::text("a reply ".repeat(100)))
}

#[test]
fn a_disk_that_is_full_at_any_line_of_the_journal_ends_the_run_and_resuming_ends_right() {
    let calm = server();
    let reference = Env::with(&calm).flow("short", FLOW);
    reference.run(["short"]).stdin(ANSWER).go().exits(0);
    let lines = reference.journal().lines.len();
    for line in 1..=lines {
        let server = server();
        let env = Env::with(&server).flow("short", FLOW);
        let full = env.run(["short"]).var("NIETZ_FAULT", &format!("full@{line}")).stdin(ANSWER).go().exits(1);
        let said = format!("{}{}", full.stdout, full.stderr);
        assert!(said.contains("disk-failed") && said.contains("free some space"), "line {line}: {said}");
        if line == 1 {
            // Nothing has begun: it can be begun again.
            env.run(["short"]).stdin(ANSWER).go().exits(0);
        } else {
            env.resume().stdin(ANSWER).go().exits(0);
        }
        assert_eq!(env.documents(), reference.documents(), "line {line}");
        // The lost line may have been the outcome of the call.
        assert!(server.calls() <= 2, "line {line}");
    }
}

/// Tests may run as root, who may write to any folder; so a file stands where the folder should be.
#[test]
fn a_folder_that_cannot_be_made_is_named_and_the_run_goes_on_when_it_can() {
    let server = server();
    let env = Env::with(&server).flow("short", FLOW).file("notes", "a file, not a folder");
    let failed = env.run(["short"]).stdin(ANSWER).go().exits(5);
    let message = failed.ending()["failure"]["message"].to_string();
    assert!(message.contains("notes/first.yaml has a file where it needs a folder"), "{message}");
    assert_eq!(env.read("notes"), "a file, not a folder");
    std::fs::remove_file(env.path("notes")).expect("it can be removed");
    env.resume().go().exits(0);
    assert_eq!(server.calls(), 1);

    let blocked = Env::with(&server).flow("short", FLOW).file(".nietz", "a file, not a folder");
    let failed = blocked.run(["short"]).stdin(ANSWER).go().exits(1);
    assert!(failed.stderr.contains("error[disk-failed]: cannot create "), "{}", failed.stderr);
    assert_eq!(server.calls(), 1, "nothing is paid for that cannot be recorded");
}

#[test]
fn a_document_that_was_edited_meanwhile_is_left_as_it_is() {
    let env = Env::new().flow("edits", EDITS).file("notes/one.yaml", "slug: one\ncount: 1\n");
    let mut running = env.run(["edits"]).spawn();
    running.wait_for("asked");
    env.write("notes/one.yaml", "slug: one\ncount: 7\n");
    running.say("go\n");
    running.close();
    let failed = running.end().exits(1);
    assert_eq!(failed.failure(), "document-changed");
    assert_eq!(env.read("notes/one.yaml"), "slug: one\ncount: 7\n");
    // Put back as the run knew it, the run goes on.
    env.write("notes/one.yaml", "slug: one\ncount: 1\n");
    env.resume().go().exits(0);
    assert_eq!(env.read("notes/one.yaml"), "by: go\ncount: 2\nslug: one\n");
}

#[test]
fn two_processes_never_write_one_journal() {
    let env = Env::new().flow("edits", EDITS).file("notes/one.yaml", "slug: one\ncount: 1\n");
    let mut running = env.run(["edits"]).spawn();
    running.wait_for("asked");
    for arguments in [vec!["resume", RUN], vec!["run", "edits"]] {
        let busy = env.nietz(arguments).go().exits(1);
        assert!(busy.stderr.contains("error[run-busy]"), "{}", busy.stderr);
    }
    let listed = env.nietz(["runs"]).go().exits(0);
    assert!(listed.stdout.contains("running"), "{}", listed.stdout);
    running.say("go\n");
    running.close();
    running.end().exits(0);
    assert_eq!(env.read("notes/one.yaml"), "by: go\ncount: 2\nslug: one\n");
}

#[test]
fn of_two_runs_that_save_one_document_one_is_told_and_no_update_is_lost() {
    let env = Env::new().flow("edits", EDITS).file("notes/one.yaml", "slug: one\ncount: 1\n");
    let mut runs: Vec<_> =
        ["first", "second"].iter().map(|id| env.run(["edits"]).var("NIETZ_RUN", id).spawn()).collect();
    // Both have read the same count before either may write.
    runs.iter_mut().for_each(|run| drop(run.wait_for("asked")));
    // Both would write the very same text, and one of the two counts would be lost.
    runs.iter_mut().for_each(|run| run.say("go\n"));
    let ended: Vec<_> = runs
        .into_iter()
        .map(|mut run| {
            run.close();
            run.end()
        })
        .collect();
    let mut codes: Vec<_> = ended.iter().map(|ended| ended.code).collect();
    codes.sort();
    assert_eq!(codes, [Some(0), Some(1)], "{ended:?}");
    let loser = ended.iter().find(|ended| ended.code == Some(1)).expect("one of them");
    assert_eq!(loser.failure(), "document-changed");
    assert_eq!(env.read("notes/one.yaml"), "by: go\ncount: 2\nslug: one\n");
}
