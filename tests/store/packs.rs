//! The promise: a worker runs a flow of a pack as far as a person has signed off exactly this content, and says what its machine lacks.

use super::children::{Team, end};
use super::hosts::{journal, status};
use crate::cli::packs::{author, release, source};
use crate::support::env::Env;

/// A machine on which this version of the pack is installed, and trusted by whoever uses it.
fn machine(team: &Team<'_>, author: &Env, tag: &str) -> Env {
    let env = team.machine();
    env.nietz(["pack", "add", "--yes", &source(author, tag)]).go().exits(0);
    env
}

fn queue(env: &Env, run: &str) {
    env.nietz(["run", "--queue", "--model", "openai/test", "retro"]).var("NIETZ_RUN", run).go().exits(0);
}

/// Lets a worker of this machine try, until it is stuck or done.
fn worked(team: &Team<'_>, env: &Env, run: &str) -> String {
    let worker = team.worker(env, &[]);
    loop {
        let now = status(&team.database, run);
        if ["done", "failed", "stuck"].contains(&now.as_str()) {
            end(worker);
            return now;
        }
        // What is left to others is delivered again, and nobody else is there.
        if super::workers::children(worker.id()).is_empty() {
            team.expire_all();
        }
    }
}

#[test]
fn a_worker_runs_what_was_signed_off_of_a_pack_and_no_other_content() {
    let Some(team) = Team::new(None) else { return };
    let author = author(&team.server);
    let before = team.server.chats();
    let one = machine(&team, &author, "v1.0.0");
    // That its user trusts it is nothing to a worker.
    queue(&one, "r1");
    assert_eq!(worked(&team, &one, "r1"), "stuck");
    let inbox = one.nietz(["inbox"]).go().exits(0).stdout;
    for part in ["pack-untrusted", "retro", "nietz trust add retro --team"] {
        assert!(inbox.contains(part), "{part}: {inbox}");
    }
    assert_eq!(team.server.chats(), before, "nothing was asked");
    let signed = one.nietz(["trust", "add", "retro", "--team"]).go().exits(0);
    assert!(signed.stdout.contains("signed off for team: the pack retro"), "{signed:?}");
    one.nietz(["resume", "r1", "--queue"]).go().exits(0);
    assert_eq!(worked(&team, &one, "r1"), "done");
    let lines = journal(&team.database, "r1").lines;
    let result = &lines.last().expect("it has lines")["is"]["end"]["result"];
    assert_eq!(result.as_array().map(Vec::len), Some(2), "{result}");
    assert_eq!(team.server.chats(), before + 2);

    // Another content was not signed off, whatever its name is.
    release(&author, "1.1.0");
    let other = machine(&team, &author, "v1.1.0");
    queue(&other, "r2");
    assert_eq!(worked(&team, &other, "r2"), "stuck");
    let inbox = one.nietz(["inbox"]).go().exits(0).stdout;
    assert!(inbox.contains("r2") && inbox.contains("pack-untrusted"), "{inbox}");
    assert_eq!(team.server.chats(), before + 2);
    one.nietz(["resume", "r2", "--queue"]).go().exits(0);
    assert_eq!(worked(&team, &one, "r2"), "done", "the machine with the content that was signed off does it");
    // What was signed off is taken back by its name.
    one.nietz(["trust", "revoke", "retro", "--team"]).go().exits(0);
    queue(&one, "r3");
    assert_eq!(worked(&team, &one, "r3"), "stuck");
}

#[test]
fn a_machine_without_the_pack_leaves_it_to_others_and_says_what_it_lacks() {
    let Some(team) = Team::new(None) else { return };
    let author = author(&team.server);
    let (has, lacks) = (machine(&team, &author, "v1.0.0"), team.machine());
    // The project's lock says which content is meant, and the machine has not fetched it.
    lacks.write("nietz.lock", has.read("nietz.lock"));
    has.nietz(["trust", "add", "retro", "--team"]).go().exits(0);
    queue(&has, "r1");
    assert_eq!(worked(&team, &lacks, "r1"), "stuck");
    let inbox = has.nietz(["inbox"]).go().exits(0).stdout;
    assert!(inbox.contains("retro") && inbox.contains("nietz pack add --locked"), "what to do: {inbox}");
    lacks.nietz(["pack", "add", "--locked"]).go().exits(0);
    has.nietz(["resume", "r1", "--queue"]).go().exits(0);
    assert_eq!(worked(&team, &lacks, "r1"), "done");
    lacks.nietz(["verify", "r1"]).go().exits(0);
}
