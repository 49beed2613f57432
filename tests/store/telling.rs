//! The promise: who is not there is told what runs ask; what several workers did of a run is one trace; and a worker has its workspace
//! from a repository.

use std::collections::BTreeSet;

use super::children::{Team, end};
use crate::cli::children::{PART, WHOLE};
use crate::support::env::Env;
use crate::support::git;
use crate::support::model_server::{ModelServer, Response};

/// What a program of the user's was given, one line each.
fn told(env: &Env) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(env.home().join("told")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn a_worker_tells_of_each_new_question_once() {
    let Some(team) = Team::new(None) else { return };
    let place = team.machine();
    let file = place.home().join("told").display().to_string();
    let env = place.config(&format!("notify: {{command: [sh, -c, 'cat >>{file}; echo >>{file}']}}\n"));
    team.queue(&env, &["--asks"]);
    let worker = team.worker(&env, &["--parallel", "4"]);
    team.until("SELECT count(*) FROM nietz.run WHERE status = 'waiting' AND jsonb_array_length(questions) = 1", "3");
    while told(&env).len() < 3 {
        std::thread::yield_now();
    }
    for name in team.ask("SELECT name FROM nietz.run WHERE parent IS NOT NULL ORDER BY id").lines() {
        env.nietz(["answer", name, "apples"]).go().exits(0);
    }
    team.until("SELECT status FROM nietz.run WHERE name = 'r1'", "done");
    end(worker);
    let told = told(&env);
    let ids: BTreeSet<&str> = told.iter().filter_map(|one| one["id"].as_str()).collect();
    assert_eq!((told.len(), ids.len()), (3, 3), "{told:?}");
    for one in &told {
        assert_eq!(one["title"], "part asks");
        assert!(one["text"].as_str().is_some_and(|text| text.starts_with("More for")), "{one}");
        assert!(one["resume"].as_str().is_some_and(|how| how.starts_with("nietz answer r1-")), "{one}");
    }
}

#[test]
fn all_that_workers_did_of_a_session_is_one_trace() {
    let collector = ModelServer::start(|_| Response::plain(200, "{}").header("content-type", "application/json"));
    let Some(team) = Team::new(None) else { return };
    let traced = || {
        team.machine()
            .var("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url().trim_end_matches("/v1"))
            .var("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
    };
    let (one, other) = (traced(), traced());
    team.queue(&one, &[]);
    let workers = [team.worker(&one, &[]), team.worker(&other, &[])];
    team.check(&one);
    workers.into_iter().for_each(end);
    let mut traces = BTreeSet::new();
    let mut runs = BTreeSet::new();
    for request in collector.requests() {
        for scope in request.body["resourceSpans"].as_array().into_iter().flatten() {
            for span in scope["scopeSpans"][0]["spans"].as_array().into_iter().flatten() {
                traces.insert(span["traceId"].to_string());
                let of = span["attributes"].as_array().into_iter().flatten();
                let run = of
                    .filter(|one| one["key"] == "gen_ai.conversation.id")
                    .map(|one| one["value"]["stringValue"].to_string());
                runs.extend(run);
            }
        }
    }
    assert_eq!((traces.len(), runs.len()), (1, 4), "{traces:?} {runs:?}");
}

#[test]
fn a_worker_has_its_workspace_from_a_repository_and_brings_it_up() {
    let Some(team) = Team::new(None) else { return };
    let origin = tempfile::tempdir().expect("a temporary folder");
    let flows = origin.path().join("flows");
    std::fs::create_dir(&flows).expect("it can be made");
    std::fs::write(flows.join("whole.lua"), WHOLE).expect("it can be written");
    std::fs::write(flows.join("part.lua"), PART).expect("it can be written");
    git::init(origin.path());
    let url = format!("team=file://{}", origin.path().display());
    let bare = super::hosts::on(&team.database, Env::with(&team.server));
    let asks = team.machine();
    team.queue(&asks, &[]);
    let worker = team.worker(&bare, &["--workspace-of", &url]);
    team.check(&asks);
    end(worker);
    // What has changed since is there for the next one; the checkout is made once.
    std::fs::write(flows.join("part.lua"), PART.replace("return last", "return \"anew\"")).expect("it can be written");
    git::git(origin.path(), ["commit", "-qam", "anew"]);
    asks.nietz(["run", "--queue", "--model", "openai/test", "part", "7"]).var("NIETZ_RUN", "r2").go().exits(0);
    // On this machine the folder of who asks can be seen, too.
    std::fs::remove_dir_all(asks.path("flows")).expect("it is there");
    let worker = team.worker(&bare, &["--workspace-of", &url]);
    team.until("SELECT status FROM nietz.run WHERE name = 'r2'", "done");
    end(worker);
    assert!(team.ask("SELECT body FROM nietz.line l JOIN nietz.run r ON r.id = l.run WHERE r.name = 'r2' ORDER BY seq DESC LIMIT 1").contains("anew"));
    // What cannot be had is told.
    let none = bare.nietz(["worker", "--workspace-of", "team=file:///no/such/place.git"]).go();
    assert!(none.code != Some(0) && none.stderr.contains("git-failed"), "{none:?}");
}

fn says(env: Env, text: &str) -> Env {
    let flow = format!(
        "return require(\"@nietz\").flow {{ name = \"says\", summary = \"Says it\", host_api = 2, run = function() return \"{text}\" end }}"
    );
    env.flow("says", &flow)
}

#[test]
fn one_worker_does_the_runs_of_several_workspaces_each_in_its_folder_over_two_connections() {
    let Some(team) = Team::new(None) else { return };
    team.ask("SELECT nietz.workspace('other', true); SELECT nietz.sign(2, 'folder', '[\"*\"]')");
    let (tea, coffee) =
        (says(team.machine(), "tea"), says(team.machine(), "coffee").var("NIETZ_STORE_WORKSPACE", "other"));
    for env in [&tea, &coffee] {
        env.nietz(["run", "--queue", "says"]).var("NIETZ_RUN", "r1").go().exits(0);
    }
    let (one, other) = (tea.workspace().display().to_string(), coffee.workspace().display().to_string());
    let (one, other) = (format!("team={one}"), format!("other={other}"));
    let bare = team.machine();
    let worker = team.worker(&bare, &["--workspace-of", &one, "--workspace-of", &other, "--parallel", "2"]);
    team.until("SELECT count(*) FROM nietz.run WHERE status = 'done'", "2");
    for (env, text) in [(&tea, "tea"), (&coffee, "coffee")] {
        assert_eq!(env.resume().go().result(), text);
    }
    // Its own and the one that hears; processes of runs have theirs, and are gone.
    let connections =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'nietz'";
    team.until(connections, "2");
    end(worker);
}
