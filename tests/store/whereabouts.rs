//! The promise: a run that has made branches goes on where they are. Elsewhere it is refused with what to do, and left to that machine;
//! if that one is lost, it begins anew in a run of its own, which pays for nothing again and leaves the first one no line more.

use std::time::Duration;

use serde_json::{Value, json};

use super::children::{Team, end};
use super::hosts::{expire, journal, on, status};
use crate::shots::basics::{CHECK, call_of, env as repository, good};
use crate::support::env::Env;
use crate::support::git;
use crate::support::kills::points;
use crate::support::model_server::{Gate, ModelServer};
use crate::support::postgres;

const WORKS: &str = r#"
local git = require("@nietz/git")
local nietz = require("@nietz")
local ui = require("@nietz/ui")
return nietz.flow { name = "works", summary = "Works on a branch", host_api = 2, permissions = { git = true },
  run = function(ctx)
    local name = "nietz/" .. ctx.run
    git.branch(name, git.head().commit)
    local tree = git.worktree({ name = "w", branch = name })
    tree:write("a.txt", "tea\n")
    local first = tree:commit("first").commit
    ui.ask { id = "go", prompt = "Go on?" }
    tree:write("b.txt", "tea\n")
    local second = tree:commit("second").commit
    tree:remove()
    return git.changed(first, second)
  end }
"#;

fn machine(team: &Team<'_>) -> Env {
    let env = team.machine().flow("works", WORKS);
    git::init(&env.workspace());
    env
}

#[test]
fn a_run_with_branches_goes_on_where_they_are_and_is_refused_elsewhere() {
    let Some(team) = Team::new(None) else { return };
    let (one, other) = (machine(&team), machine(&team));
    one.run(["works"]).go().exits(7);
    let lines = "SELECT count(*) FROM nietz.line";
    let before = team.ask(lines);
    let refused = other.resume().stdin("{\"id\": \"go\", \"answer\": \"yes\"}\n").go();
    assert_ne!(refused.code, Some(0), "{refused:?}");
    for part in ["git-failed", "has made the branch nietz/r1", "another machine", "go on where that repository is"] {
        assert!(refused.stderr.contains(part) || refused.stdout.contains(part), "{part}: {refused:?}");
    }
    assert_eq!(team.ask(lines), before, "nothing of it was done");
    assert_eq!(status(&team.database, "r1"), "waiting", "and it waits as before");

    // A worker there leaves it to others; in the end people see why.
    other.nietz(["answer", "r1", "yes"]).go().exits(0);
    let worker = team.worker(&other, &[]);
    while status(&team.database, "r1") != "stuck" {
        if super::workers::children(worker.id()).is_empty() {
            team.expire_all();
        }
    }
    end(worker);
    let inbox = other.nietz(["inbox"]).go().exits(0).stdout;
    assert!(inbox.contains("has made the branch nietz/r1"), "{inbox}");

    one.nietz(["resume", "r1", "--queue"]).go().exits(0);
    let worker = team.worker(&one, &[]);
    team.until("SELECT status FROM nietz.run", "done");
    end(worker);
    assert_eq!(one.resume().go().result(), serde_json::json!(["b.txt"]));
    assert_eq!(git::git(&one.workspace(), ["log", "--format=%s", "nietz/r1"]), "second\nfirst\nfirst");
    one.nietz(["verify", "r1"]).go().exits(0);
}

/// Pays for a plan, keeps rows of what it does, commits before and behind a question, and pays again.
const PAYS: &str = r#"
local documents = require("@nietz/documents")
local git = require("@nietz/git")
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local random = require("@nietz/random")
local ui = require("@nietz/ui")
local row = { type = "object", required = { "id", "run", "what" } }
return nietz.flow { name = "pays", summary = "Works for money", host_api = 2, permissions = { git = true, llm = true },
  collections = { log = { path = "log/all.jsonl", shared = true, schema = row } },
  run = function(ctx)
    local log = documents.collection("log")
    local plan = llm.chat({ prompt = "plan it step 1 after nothing" }).text
    log:append({ id = random.uuid(), run = ctx.run, what = "begun" })
    local name = "nietz/" .. ctx.run
    git.branch(name, git.head().commit)
    local tree = git.worktree({ name = "w", branch = name })
    tree:write("a.txt", plan)
    local first = tree:commit("first").commit
    local answer = ui.ask { id = "go", prompt = "Go on?" }
    local said = llm.chat({ prompt = "do it step 2 after " .. answer }).text
    tree:write("b.txt", said)
    local second = tree:commit("second").commit
    tree:remove()
    log:append({ id = random.uuid(), run = ctx.run, what = "done" })
    return { ctx.run, plan, git.changed(first, second) }
  end }
"#;

const ANSWER: &str = "{\"id\": \"go\", \"answer\": \"yes\"}\n";

fn paying(team: &Team<'_>) -> Env {
    let env = team.machine().flow("pays", PAYS);
    git::init(&env.workspace());
    env
}

/// The rows of all runs, as `RUN WHAT`, and how many ids they have.
fn rows(team: &Team<'_>) -> (Vec<String>, usize) {
    let all = team.ask("SELECT body FROM nietz.document_row ORDER BY at");
    let all: Vec<Value> = all.lines().map(|row| serde_json::from_str(row).expect("JSON")).collect();
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let ids: std::collections::BTreeSet<String> = all.iter().map(|row| text(row, "id")).collect();
    (all.iter().map(|row| format!("{} {}", text(row, "run"), text(row, "what"))).collect(), ids.len())
}

#[test]
fn a_run_whose_machine_is_lost_begins_anew_elsewhere_and_pays_for_nothing_again() {
    let Some(team) = Team::new(None) else { return };
    let (one, other) = (paying(&team), paying(&team));
    one.run(["pays"]).go().exits(7);
    assert_eq!(team.server.chats(), 1);
    let here = one.nietz(["fork", "r1", "--lost"]).go().exits(2);
    assert!(here.stderr.contains("nothing of it is lost") && here.stderr.contains("nietz resume r1"), "{here:?}");
    let refused = other.resume().stdin(ANSWER).go();
    assert!(refused.stderr.contains("nietz fork r1 --lost"), "what to do: {refused:?}");
    assert_eq!(status(&team.database, "r1"), "waiting");

    let ended = other.nietz(["fork", "r1", "--lost", "--json"]).stdin(ANSWER).go();
    assert_eq!(ended.result(), json!(["r1-anew", "n1", ["b.txt"]]), "{ended:?}");
    assert_eq!(team.server.chats(), 2, "the plan was paid for");
    assert_eq!(
        (status(&team.database, "r1").as_str(), status(&team.database, "r1-anew").as_str()),
        ("cancelled", "done")
    );
    let (told, ids) = rows(&team);
    assert_eq!((told, ids), (["r1 begun", "r1-anew begun", "r1-anew done"].map(str::to_owned).into(), 3));
    assert_eq!(git::git(&other.workspace(), ["log", "--format=%s", "nietz/r1-anew"]), "second\nfirst\nfirst");
    let listed = other.nietz(["runs"]).go().exits(0).stdout;
    assert!(listed.contains("fork of r1") && listed.contains("cancelled"), "{listed}");
    other.nietz(["verify", "r1-anew"]).go().exits(0);

    // Once is enough, and what is lost stays so.
    let again = other.nietz(["fork", "r1", "--lost"]).go().exits(2);
    assert!(again.stderr.contains("r1-anew"), "{again:?}");
    let back = one.resume().stdin(ANSWER).go();
    assert!(back.code != Some(0) && format!("{back:?}").contains("run-cancelled"), "{back:?}");
    assert_eq!(team.server.chats(), 2);
}

#[test]
fn what_begins_anew_is_killed_at_any_line_and_comes_to_the_same_end() {
    let lines = 22;
    for line in points(lines, 6) {
        let Some(team) = Team::new(None) else { return };
        let (one, other) = (paying(&team), paying(&team));
        one.run(["pays"]).go().exits(7);
        let call = other.nietz(["fork", "r1", "--lost", "--json"]).stdin(ANSWER);
        let killed = call.var("NIETZ_FAULT", &format!("kill@{line}")).go();
        assert_eq!(killed.signal, Some(9), "line {line}: {killed:?}");
        assert_eq!(status(&team.database, "r1"), "cancelled", "line {line}");
        expire(&team.database, "r1-anew");
        let ended = other.nietz(["resume", "r1-anew", "--json"]).stdin(ANSWER).go();
        let result = ended.result();
        assert_eq!((&result[1], &result[2]), (&json!("n1"), &json!(["b.txt"])), "line {line}: {ended:?}");
        let journal = journal(&team.database, "r1-anew");
        assert!(journal.lines.len() as u64 >= lines, "line {line}: each of them is met: {}", journal.lines.len());
        let paid = team.server.requests().iter().filter(|request| request.prompt().contains("plan it")).count();
        assert_eq!(paid, 1, "line {line}: the plan was paid for");
        assert!(team.server.chats() <= 3, "line {line}: only what was under way is asked again");
        let (told, ids) = rows(&team);
        assert_eq!((told.len(), ids), (3, 3), "line {line}: {told:?}");
        other.nietz(["verify", "r1-anew"]).go().exits(0);
    }
}

#[test]
fn who_is_at_it_is_not_lost_and_who_comes_back_writes_nothing_more() {
    let gate = Gate::default();
    let Some(team) = Team::new(Some(gate.clone())) else { return };
    let (one, other) = (paying(&team), paying(&team));
    let running = one.run(["pays"]).stdin(ANSWER).patient().spawn();
    assert!(team.server.wait_for_calls(2, Duration::from_secs(60)), "it is in its second step");
    let alive = other.nietz(["fork", "r1", "--lost"]).go();
    assert!(alive.code != Some(0) && alive.stderr.contains("run-busy"), "{alive:?}");
    assert_eq!(status(&team.database, "r1"), "running");
    assert_eq!(team.ask("SELECT count(*) FROM nietz.run"), "1", "nothing was begun");

    running.freeze();
    expire(&team.database, "r1");
    let queued = other.nietz(["fork", "r1", "--lost", "--queue"]).go().exits(0);
    assert!(queued.stdout.contains("queued: r1-anew"), "{queued:?}");
    let before = journal(&team.database, "r1").lines;
    gate.open();
    running.thaw();
    let ended = running.end();
    assert!(ended.code != Some(0), "{ended:?}");
    assert_eq!(journal(&team.database, "r1").lines, before, "it writes no line more");
    let worker = team.worker(&other, &[]);
    team.until("SELECT status FROM nietz.run WHERE name = 'r1-anew'", "done");
    end(worker);
    // The answer that it had was given to it, and is not asked for again.
    let journal = journal(&team.database, "r1-anew");
    assert_eq!(journal.lines.last().expect("it has lines")["is"]["end"]["result"][0], "r1-anew");
    assert_eq!(rows(&team).0, ["r1 begun", "r1-anew begun", "r1-anew done"]);
    other.nietz(["verify", "r1-anew"]).go().exits(0);
}

/// A session of the mode whose record names commits: it has a record of its own, which is whole, beside the one that was broken off.
#[test]
fn a_session_of_shots_whose_machine_is_lost_reaches_its_goal_on_another_one() {
    let Some(server) = postgres::shared() else { return };
    let models = ModelServer::start(good);
    let database = server.database();
    let machine = || on(&database, repository(&models));
    let whole = machine();
    call_of(&whole, &["--validate", CHECK]).var("NIETZ_RUN", "whole").go().exits(0);
    let lines = journal(&database, "whole").lines.len();
    let calls = models.chats();
    let (one, other) = (machine(), machine());
    let killed = call_of(&one, &["--validate", CHECK]).var("NIETZ_FAULT", &format!("kill@{}", lines * 2 / 3)).go();
    assert_eq!(killed.signal, Some(9), "{killed:?}");
    expire(&database, "r1");
    let ended = other.nietz(["fork", "r1", "--lost", "--json"]).go();
    let result = ended.result();
    assert_eq!((&result["status"], &result["branch"]), (&json!("success"), &json!("nietz/r1-anew")), "{ended:?}");
    assert_eq!(git::git(&other.workspace(), ["show", "nietz/r1-anew:work.txt"]), "one\ndone\nthree");
    assert!(models.chats() < calls * 3, "what was said is given back: {} and {calls}", models.chats());
    other.nietz(["verify", "r1-anew"]).go().exits(0);
    // The records are apart, and both are what their tables may hold.
    let plain = Env::new();
    other.nietz(["documents", "export", "--into", &plain.workspace().display().to_string()]).go().exits(0);
    for run in ["r1", "r1-anew"] {
        let folder = plain.path(&format!(".nietz/shots-on-goal/{run}"));
        let tables: Vec<_> = std::fs::read_dir(folder).expect("it has a record").flatten().collect();
        assert!(tables.len() > 3, "{run}: {tables:?}");
        for table in tables {
            let path = table.path().display().to_string();
            plain.nietz(["check", path.as_str()]).go().exits(0);
        }
    }
}
