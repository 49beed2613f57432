//! The promise: a run has one place and one history. No link leads a run elsewhere, nobody else reads what was said, and
//! whatever is done to its files meanwhile, two processes never write one journal.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::support::env::{Env, RUN};
use crate::support::model_server::{ModelServer, Response};

const SHORT: &str = include_str!("../support/flows/short.lua");
const EDITS: &str = include_str!("../support/flows/edits.lua");
const ANSWER: &str = "more\n";

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

fn short() -> (ModelServer, Env) {
    let server = ModelServer::start(|_| Response::text("a reply"));
    let env = Env::with(&server).flow("short", SHORT);
    (server, env)
}

#[test]
fn a_run_is_for_its_user_alone_and_the_folder_of_runs_is_not() {
    let (_server, env) = short();
    // A folder that came with a checkout is closed, too.
    std::fs::create_dir_all(env.path(".nietz/runs/r1")).expect("it can be made");
    env.run(["short"]).stdin(ANSWER).go().exits(0);
    assert_eq!(mode(&env.journal_path()), 0o600);
    assert_eq!(mode(env.journal_path().parent().expect("a folder")), 0o700);
    // Somebody else of the group has runs of their own beside it.
    let usual = mode(&env.path("notes"));
    assert_eq!((mode(&env.path(".nietz")), mode(&env.path(".nietz/runs"))), (usual, usual));
    let left: Vec<String> = std::fs::read_dir(env.path(".nietz/runs/r1"))
        .expect("it is there")
        .map(|entry| entry.expect("it can be read").file_name().into_string().expect("UTF-8"))
        .collect();
    assert_eq!(left, ["journal.jsonl"]);
}

#[test]
fn no_link_on_the_way_to_a_journal_is_followed() {
    let cases = [
        (".nietz", "", true),
        (".nietz/runs", "", true),
        (".nietz/runs/r1", "", true),
        (".nietz/.gitignore", "ignored", false),
        (".nietz/runs/r1/journal.jsonl", "journal", false),
        (".nietz/runs/r1/output", "", true),
    ];
    for (link, file, is_folder) in cases {
        let (server, env) = short();
        let outside = env.home().join("outside");
        std::fs::create_dir(&outside).expect("it can be made");
        let link = env.path(link);
        std::fs::create_dir_all(link.parent().expect("a folder")).expect("it can be made");
        symlink(if is_folder { outside.clone() } else { outside.join(file) }, &link).expect("it can be made");
        let refused = env.run(["short"]).stdin(ANSWER).go().exits(5);
        assert!(refused.stderr.contains("error[path-refused]"), "{}", refused.stderr);
        assert!(refused.stderr.contains(&format!("{} is a link", link.display())), "{}", refused.stderr);
        assert_eq!(std::fs::read_dir(&outside).expect("it is there").count(), 0, "{}", link.display());
        assert_eq!(server.calls(), 0);
    }
}

/// A run that a link leads to is nobody's here: it is not listed, and no verb reads it.
#[test]
fn a_run_behind_a_link_is_none() {
    let (_server, env) = short();
    env.run(["short"]).stdin(ANSWER).go().exits(0);
    let outside = env.home().join("r1");
    std::fs::rename(env.path(".nietz/runs/r1"), &outside).expect("it can be moved");
    symlink(&outside, env.path(".nietz/runs/r1")).expect("it can be made");
    std::fs::create_dir(env.path(".nietz/runs/r2")).expect("it can be made");
    symlink(outside.join("journal.jsonl"), env.path(".nietz/runs/r2/journal.jsonl")).expect("it can be made");
    for run in ["r1", "r2"] {
        for verb in ["log", "resume", "verify", "fork"] {
            let ended = env.nietz([verb, run]).go().exits(2);
            assert!(ended.stderr.contains("error[run-not-found]"), "{verb} {run}: {}", ended.stderr);
        }
    }
    assert!(!env.nietz(["runs"]).go().exits(0).stdout.contains("short"));
}

/// Whatever is cleared up in the folder of a run, a second process stays out, or the first one ends.
#[test]
fn no_second_process_gets_in_by_way_of_a_file_that_was_removed_or_replaced() {
    let env = Env::new().flow("edits", EDITS).file("notes/one.yaml", "slug: one\ncount: 1\n");
    let mut running = env.run(["edits"]).spawn();
    running.wait_for("asked");
    for entry in std::fs::read_dir(env.path(".nietz/runs/r1")).expect("it is there") {
        let path = entry.expect("it can be read").path();
        if path.file_name().is_some_and(|name| name != "journal.jsonl") {
            std::fs::remove_file(path).expect("it can be removed");
        }
    }
    let busy = env.nietz(["resume", RUN]).go().exits(1);
    assert!(busy.stderr.contains("error[run-busy]"), "{}", busy.stderr);
    running.say("go\n");
    running.close();
    running.end().exits(0);
    assert_eq!(env.read("notes/one.yaml"), "by: go\ncount: 2\nslug: one\n");
}

#[test]
fn a_run_whose_journal_went_away_says_so_and_writes_nothing_more() {
    type Deed = fn(&Env);
    let removed: Deed = |env| std::fs::remove_file(env.journal_path()).expect("it can be removed");
    let replaced: Deed = |env| {
        let bytes = std::fs::read(env.journal_path()).expect("it can be read");
        std::fs::remove_file(env.journal_path()).expect("it can be removed");
        std::fs::write(env.journal_path(), bytes).expect("it can be written");
    };
    let folder_removed: Deed = |env| std::fs::remove_dir_all(env.path(".nietz")).expect("it can be removed");
    let folder_renamed: Deed =
        |env| std::fs::rename(env.path(".nietz/runs/r1"), env.path(".nietz/runs/r9")).expect("it can be renamed");
    for (what, deed) in [
        ("removed", removed),
        ("replaced", replaced),
        ("folder removed", folder_removed),
        ("folder renamed", folder_renamed),
    ] {
        let env = Env::new().flow("edits", EDITS).file("notes/one.yaml", "slug: one\ncount: 1\n");
        let mut running = env.run(["edits"]).spawn();
        running.wait_for("asked");
        deed(&env);
        let places = [env.journal_path(), env.path(".nietz/runs/r9/journal.jsonl")];
        let before = places.each_ref().map(|place| std::fs::read(place).ok());
        running.say("go\n");
        running.close();
        let ended = running.end().exits(1);
        assert_eq!(ended.failure(), "disk-failed", "{what}");
        let message = ended.ending()["failure"]["message"].to_string();
        assert!(message.contains("was moved, removed or replaced while the run went on"), "{what}: {message}");
        assert_eq!(places.each_ref().map(|place| std::fs::read(place).ok()), before, "{what}");
        assert_eq!(env.read("notes/one.yaml"), "slug: one\ncount: 1\n", "{what}");
        if what == "folder renamed" {
            std::fs::rename(env.path(".nietz/runs/r9"), env.path(".nietz/runs/r1")).expect("it can be renamed");
            env.resume().stdin("go\n").go().exits(0);
            assert_eq!(env.read("notes/one.yaml"), "by: go\ncount: 2\nslug: one\n");
        }
    }
}

/// A broken journal is copied and then cut where it is: it stays locked, whoever looks at it meanwhile.
#[test]
fn a_journal_that_is_cut_stays_the_file_that_is_locked() {
    use std::os::unix::fs::MetadataExt;
    let (_server, env) = short();
    env.run(["short"]).stdin(ANSWER).go().exits(0);
    let mut bytes = std::fs::read(env.journal_path()).expect("it is there");
    let at = bytes.len() - 200;
    bytes[at] ^= 1;
    std::fs::write(env.journal_path(), &bytes).expect("it can be written");
    let inode = || std::fs::metadata(env.journal_path()).expect("it is there").ino();
    let before = inode();
    env.nietz(["resume", RUN, "--whole"]).stdin(ANSWER).go().exits(0);
    assert_eq!(inode(), before);
    let kept = env.path(".nietz/runs/r1/journal.broken-1.jsonl");
    assert_eq!((std::fs::read(&kept).expect("it is kept"), mode(&kept)), (bytes, 0o600));
}
