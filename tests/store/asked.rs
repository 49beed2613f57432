//! The promise of the command line: a run is left to workers with a tag, for a time, and waited for; what it asks is seen and answered
//! from anywhere, checked as at the terminal; and who may do what is said there, too.

use super::children::{Team, end};
use super::hosts::{expire, status};
use crate::support::env::Env;
use crate::support::process::{Call, Ended};

const CHOOSES: &str = r#"
local nietz = require("@nietz")
local ui = require("@nietz/ui")
return nietz.flow { name = "chooses", summary = "Asks twice", host_api = 2, run = function()
  local colour = ui.choose { id = "colour", prompt = "Which colour?", options = { "red", "green" } }
  return { colour, ui.confirm { id = "sure", prompt = "Are you sure of it?" } }
end }
"#;

fn queue(env: &Env, run: &str, more: &[&str]) -> Call {
    let call = env.nietz(["run", "--queue", "--seed", "1", "--model", "openai/test"]).args(more.iter().copied());
    call.args(["part", "1"]).var("NIETZ_RUN", run).patient()
}

/// A worker that ends when nothing is due for it.
fn once(env: &Env, more: &[&str]) {
    env.nietz(["worker", "--until-idle"]).args(more.iter().copied()).patient().go().exits(0);
}

#[test]
fn a_run_is_left_to_workers_with_its_tag_and_for_its_time() {
    let Some(team) = Team::new(None) else { return };
    let env = team.machine();
    queue(&env, "r1", &["--tag", "gpu"]).go().exits(0);
    queue(&env, "r2", &["--at", "2999-01-01T06:00:00+01:00"]).go().exits(0);
    once(&env, &[]);
    assert_eq!((status(&team.database, "r1").as_str(), status(&team.database, "r2").as_str()), ("queued", "queued"));
    queue(&env, "r3", &[]).go().exits(0);
    once(&env, &["--tag", "gpu", "--only-tagged"]);
    assert_eq!((status(&team.database, "r1").as_str(), status(&team.database, "r3").as_str()), ("done", "queued"));
    expire(&team.database, "r2");
    once(&env, &["--tag", "gpu"]);
    assert_eq!(team.ask("SELECT string_agg(status, ',') FROM nietz.run"), "done,done,done");
    let wrong = queue(&env, "r4", &["--at", "tomorrow"]).go().exits(2);
    assert!(wrong.stderr.contains("`tomorrow` is no time"), "{wrong:?}");
    assert_eq!(team.ask("SELECT count(*) FROM nietz.run"), "3", "nothing is queued");
}

/// What failed would fail again: it waits for a person, who may have mended it.
#[test]
fn a_run_that_failed_is_not_delivered_again_before_somebody_says_so() {
    let Some(team) = Team::new(None) else { return };
    let fails = "local nietz = require(\"@nietz\")\nreturn nietz.flow { name = \"fails\", summary = \"Fails\", host_api = 2,\n\
                 run = function() nietz.fail(\"out of tea\") end }\n";
    let env = team.machine().flow("fails", fails);
    env.nietz(["run", "--queue", "fails"]).var("NIETZ_RUN", "r1").go().exits(0);
    once(&env, &[]);
    assert_eq!(team.ask("SELECT status, claim FROM nietz.run"), "failed|1");
    assert_eq!(team.ask("SELECT count(*) FROM pgmq.q_nietz_1"), "0");
    once(&env, &[]);
    assert_eq!(team.ask("SELECT status, claim FROM nietz.run"), "failed|1");
    env.write("flows/fails.lua", fails.replace("nietz.fail(\"out of tea\")", "return 1"));
    env.nietz(["resume", "r1", "--queue"]).go().exits(0);
    once(&env, &[]);
    assert_eq!(team.ask("SELECT status, claim FROM nietz.run"), "done|2");
}

#[test]
fn who_waits_for_a_queued_run_has_its_end_as_their_own() {
    let Some(team) = Team::new(None) else { return };
    let (here, there) = (team.machine(), team.machine());
    let worker = team.worker(&there, &[]);
    let ended = queue(&here, "r1", &["--wait"]).go().exits(0);
    assert_eq!(ended.stdout, "queued: r1\nr1: done\nn3\n", "{ended:?}");
    let waits = queue(&here, "r2", &["--wait", "--json"]).args(["--asks"]).spawn();
    team.until("SELECT status FROM nietz.run WHERE name = 'r2'", "waiting");
    there.nietz(["answer", "r2", "apples"]).go().exits(0);
    let ended: Ended = waits.end().exits(0);
    assert_eq!(ended.ending()["status"], "done", "{ended:?}");
    let waits = queue(&here, "r3", &["--wait"]).args(["--asks"]).spawn();
    team.until("SELECT status FROM nietz.run WHERE name = 'r3'", "waiting");
    there.nietz(["cancel", "r3"]).go().exits(0);
    let ended = waits.end();
    assert!(ended.code != Some(0) && ended.stderr.contains("run-cancelled"), "{ended:?}");
    end(worker);
}

#[test]
fn an_answer_from_elsewhere_is_checked_as_at_the_terminal_and_says_who_gave_it() {
    let Some(team) = Team::new(None) else { return };
    let env = team.machine().flow("chooses", CHOOSES);
    let other = team.machine();
    env.nietz(["run", "--queue", "chooses"]).var("NIETZ_RUN", "r1").go().exits(0);
    let worker = team.worker(&env, &[]);
    team.until("SELECT status FROM nietz.run", "waiting");
    let inbox = other.nietz(["inbox"]).go().exits(0).stdout;
    for part in ["r1 (chooses): waiting, since ", "[colour] Which colour?", "red | green"] {
        assert!(inbox.contains(part), "{part}: {inbox}");
    }
    let refused = other.nietz(["answer", "r1", "blue"]).go();
    assert!(refused.code != Some(0) && refused.stderr.contains("answer-invalid"), "{refused:?}");
    let refused = other.nietz(["answer", "r1", "sure", "yes"]).go();
    assert!(refused.code != Some(0), "nobody has asked that yet: {refused:?}");
    assert_eq!(status(&team.database, "r1"), "waiting");
    other.nietz(["answer", "r1", "colour", "green"]).go().exits(0);
    team.until("SELECT status = 'waiting' AND questions::text LIKE '%sure of it%' FROM nietz.run", "t");
    other.nietz(["answer", "r1", "y"]).go().exits(0);
    team.until("SELECT status FROM nietz.run", "done");
    end(worker);
    let result = env.nietz(["resume", "r1", "--json"]).go().result();
    assert_eq!(result, serde_json::json!(["green", true]));
    assert_eq!(team.ask("SELECT string_agg(DISTINCT who::text, ',') FROM nietz.answer"), "nietz");
}

#[test]
fn who_may_do_what_is_said_on_the_command_line() {
    let Some(team) = Team::new(None) else { return };
    let owner = team.machine();
    let name = format!("bob_{}", team.database.name);
    team.ask(&format!("CREATE ROLE {name} LOGIN"));
    let url = team.database.url_as(&name);
    // As an option, in place of the variable.
    let bob = team.machine().without("NIETZ_STORE");
    let ask = |run: &str| {
        let call = bob.nietz(["run", "--store", &url, "--queue", "--model", "openai/test", "part", "1"]);
        call.var("NIETZ_RUN", run).go()
    };
    let stranger = ask("r1");
    assert!(stranger.code != Some(0) && stranger.stderr.contains("store-refused"), "{stranger:?}");
    owner.nietz(["store", "admit", &name, "asker"]).go().exits(0);
    ask("r1").exits(0);
    assert_eq!(team.ask("SELECT began_by FROM nietz.run"), name, "a run says who began it");
    let status = owner.nietz(["store", "status"]).go().exits(0).stdout;
    assert!(status.contains(&format!("{name}: asker")) && !status.contains("signs off"), "{status}");
    let works = bob.nietz(["worker", "--store", &url, "--until-idle"]).go();
    assert!(works.code != Some(0), "{works:?}");
    let signs = bob.nietz(["trust", "add", "--team", "--store", &url]).go();
    assert!(signs.code != Some(0), "{signs:?}");
    owner.nietz(["store", "dismiss", &name, "asker"]).go().exits(0);
    let gone = ask("r2");
    assert!(gone.code != Some(0), "{gone:?}");
    assert_eq!(team.ask("SELECT count(*) FROM nietz.run"), "1");
}

const READS: &str = r#"
local files = require("@nietz/files")
local nietz = require("@nietz")
return nietz.flow { name = "reads", summary = "Reads a file", host_api = 2, permissions = { files = true },
  params = { path = { type = "string", positional = true, required = true } },
  run = function(ctx) return (files.read(ctx.params.path) or {}).text end }
"#;

#[test]
fn what_a_run_was_granted_holds_on_a_worker_that_was_granted_it_too() {
    let Some(team) = Team::new(None) else { return };
    let outside = tempfile::tempdir().expect("a temporary folder");
    let path = outside.path().canonicalize().expect("it is there").join("a.txt").display().to_string();
    std::fs::write(&path, "tea").expect("it can be written");
    let env = team.machine().flow("reads", READS);
    let ask = |run: &str| {
        env.nietz(["run", "--queue", "--allow-read", &path, "reads", &path]).var("NIETZ_RUN", run).go().exits(0);
    };
    ask("r1");
    once(&env, &[]);
    assert_eq!(status(&team.database, "r1"), "failed", "this worker reads nothing outside of its workspace");
    ask("r2");
    once(&env, &["--allow-read", &path]);
    let last = super::hosts::journal(&team.database, "r2").lines.pop().expect("it has lines");
    assert_eq!(last["is"]["end"]["result"], "tea", "{last}");
}
