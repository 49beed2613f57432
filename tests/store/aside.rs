//! The promise: what would fail on each worker in the same way is put aside at once, with its reason, and goes on when that is mended.

use super::children::{Team, end};
use super::hosts::{on, status};
use crate::support::env::Env;
use crate::support::postgres::shared;

const READS: &str = r#"
local nietz = require("@nietz")
local files = require("@nietz/files")
return nietz.flow { name = "reads", summary = "Reads", permissions = { files = true },
  run = function() return files.read("a.txt") end }
"#;

fn machine(team: &Team<'_>) -> Env {
    team.machine().flow("reads", READS).file("a.txt", "tea")
}

#[test]
fn a_flow_that_the_team_does_not_trust_waits_for_a_signature_and_is_delivered_once() {
    let Some(team) = Team::new(None) else { return };
    team.ask("SELECT nietz.revoke(1, 'folder')");
    let env = machine(&team);
    env.nietz(["run", "--queue", "reads"]).var("NIETZ_RUN", "r1").go().exits(0);
    let worker = team.worker(&env, &[]);
    team.until("SELECT status FROM nietz.run", "stuck");
    assert_eq!(team.ask("SELECT count(*) FROM pgmq.q_nietz_1"), "0", "it is not delivered again");
    let inbox = env.nietz(["inbox"]).go().exits(0).stdout;
    assert!(inbox.contains("stuck") && inbox.contains("folder-untrusted"), "{inbox}");
    assert!(inbox.contains("nietz trust add --team"), "what to do: {inbox}");
    team.ask("SELECT nietz.sign(1, 'folder', '[\"files\"]')");
    env.nietz(["resume", "r1", "--queue"]).go().exits(0);
    team.until("SELECT status FROM nietz.run", "done");
    end(worker);
    assert_eq!(env.nietz(["inbox"]).go().exits(0).stdout, "nothing waits for an answer\n");
}

#[test]
fn what_only_this_machine_lacks_is_left_to_others_and_said_when_it_is_stuck() {
    let Some(team) = Team::new(None) else { return };
    let (has, lacks) = (machine(&team), team.machine());
    has.nietz(["run", "--queue", "reads"]).var("NIETZ_RUN", "r1").go().exits(0);
    // On this machine the other one's folder can be seen, too.
    let hide = |from: &str, to: &str| std::fs::rename(has.path(from), has.path(to)).expect("it can be renamed");
    hide("flows/reads.lua", "hidden");
    let worker = team.worker(&lacks, &[]);
    while status(&team.database, "r1") != "stuck" {
        if super::workers::children(worker.id()).is_empty() {
            team.expire_all();
        }
    }
    end(worker);
    let inbox = has.nietz(["inbox"]).go().exits(0).stdout;
    assert!(inbox.contains("flow-not-found"), "{inbox}");
    hide("hidden", "flows/reads.lua");
    has.nietz(["resume", "r1", "--queue"]).go().exits(0);
    let worker = team.worker(&has, &[]);
    team.until("SELECT status FROM nietz.run", "done");
    end(worker);
}

#[test]
fn a_run_that_is_done_says_so_as_one_in_files_does() {
    let Some(team) = Team::new(None) else { return };
    let on_server = team.machine();
    let in_files = crate::cli::children::env(&team.server);
    let ended: Vec<_> = [&on_server, &in_files]
        .map(|env| {
            let first = env.run(["part", "1"]).go();
            let again = env.resume().go();
            assert_eq!(again.result().is_string(), first.result().is_string(), "{again:?}");
            let notices: Vec<String> = again
                .of_type("notice")
                .iter()
                .map(|notice| notice["text"].as_str().unwrap_or_default().to_owned())
                .collect();
            let plain = env.nietz(["resume", crate::support::env::RUN]).go();
            (again.code, notices, plain.code, plain.stderr.contains("this run was done already"))
        })
        .into();
    assert_eq!(ended[0], ended[1]);
    assert_eq!(ended[0].0, Some(0));
    assert_eq!(team.server.chats(), 6, "nothing is asked again");
}

#[test]
fn a_migration_that_ended_behind_the_queues_script_is_gone_on_with() {
    let Some(server) = shared() else { return };
    let database = server.empty_database();
    let env = on(&database, Env::new());
    // The queue is made, and the next script fails.
    database.session().get("CREATE SCHEMA nietz");
    let failed = env.nietz(["store", "migrate"]).go();
    assert_ne!(failed.code, Some(0), "{failed:?}");
    assert_eq!(database.session().get("SELECT to_regclass('pgmq.meta') IS NOT NULL"), "t");
    database.session().get("DROP SCHEMA nietz");
    env.nietz(["store", "migrate"]).go().exits(0);
    env.nietz(["store", "check"]).go().exits(0);
    // Somebody else's is not taken for it.
    let theirs = server.empty_database();
    let script = std::fs::read_to_string(&crate::support::postgres::queue()[0]).expect("it is there");
    theirs.session().get(&format!("BEGIN; {script}; COMMIT"));
    let refused = on(&theirs, Env::new()).nietz(["store", "migrate"]).go();
    assert!(refused.stderr.contains("store-version"), "{refused:?}");
}
