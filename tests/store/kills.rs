//! The promise of the file store, on a server: kill a run at any line, and it goes on to the same end, on another machine.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::hosts::{self, R1, documents, expire, host, journal, status};
use crate::cli::kill_matrix::{ANSWERS, FLOW, script};
use crate::support::env::Env;
use crate::support::journal::{Journal, Recorded};
use crate::support::kills;
use crate::support::model_server::{Gate, ModelServer};
use crate::support::postgres::{self, Database, Server};

/// What every disturbed run is compared with.
pub(super) struct Reference {
    pub(super) documents: BTreeMap<String, String>,
    pub(super) result: Value,
    pub(super) calls: usize,
    pub(super) asked: Vec<String>,
    pub(super) lines: u64,
}

pub(super) fn machine(database: &Database<'_>, server: &ModelServer) -> Env {
    host(database, server, ("everything", FLOW))
}

/// A document that the flow finds.
pub(super) fn with_a_note(database: &Database<'_>) {
    let text = "format: \"1\"\\nslug: old\\nbody: before\\n";
    let digest = blake3_of("format: \"1\"\nslug: old\nbody: before\n");
    database.session().get(&format!(
        "SELECT nietz.save_document(1, 'nietz', 'notes/old.yaml', E'{text}'::text::bytea, '{digest}', NULL)"
    ));
}

fn blake3_of(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

pub(super) fn reference(server: &Server) -> Reference {
    let database = server.database();
    with_a_note(&database);
    let models = ModelServer::start(script);
    let env = machine(&database, &models);
    let ended = env.run(["everything"]).stdin(ANSWERS).go();
    let result = ended.result();
    assert_eq!(result["sure"], true, "{result}");
    assert_eq!(status(&database, R1), "done");
    assert!(!env.path(".nietz/runs").exists(), "nothing of it is kept on the machine");
    let lines = journal(&database, R1).lines.len() as u64;
    Reference { documents: documents(&database), result, calls: models.calls(), asked: ended.asked(), lines }
}

/// Whether something followed this line that only a flow that went on does.
fn followed(journal: &Journal, key: &str) -> bool {
    let at = journal.lines.iter().position(|line| line["is"]["outcome"]["key"] == key).unwrap_or_default();
    journal.lines[at..].iter().any(|line| line["is"].get("intent").or(line["is"].get("effect")).is_some())
}

/// Goes on with a run on this machine, and compares all that can be seen of it.
#[track_caller]
fn goes_on_to_the_same_end(
    what: &str,
    database: &Database<'_>,
    env: &Env,
    models: &ModelServer,
    reference: &Reference,
) {
    let before = journal(database, R1);
    let kept = |(key, effect): &(String, Recorded)| effect.finished() || effect.failed() && followed(&before, key);
    let finished = before.effects().into_iter().filter(|(_, effect)| effect.kind == "chat").filter(kept).count();
    let mut left = reference.asked.clone();
    for id in before.answered() {
        left.retain(|asked| *asked != id);
    }
    expire(database, R1);
    let ended = env.resume().stdin(ANSWERS).go();
    assert_eq!(ended.result(), reference.result, "{what}: another result");
    assert_eq!(ended.asked(), left, "{what}: exactly the questions without an answer are put");
    let calls = ended.of_type("call_started").len();
    assert_eq!(calls, reference.calls - finished, "{what}: exactly what was open is called");
    assert!(models.calls() >= reference.calls, "{what}");
    assert_eq!(documents(database), reference.documents, "{what}: other documents");
    let after = journal(database, R1);
    assert!(after.lines.starts_with(&before.lines), "{what}: a line was rewritten");
    assert_eq!(status(database, R1), "done", "{what}");
    assert_eq!(database.session().get("SELECT count(*) FROM pgmq.q_nietz_1"), "0", "{what}");
}

#[test]
fn a_run_killed_after_any_line_goes_on_on_another_machine_to_the_same_end() {
    let Some(server) = postgres::shared() else { return };
    let reference = reference(server);
    kills::for_each(&kills::points(reference.lines, 10), |line| {
        let what = format!("killed after line {line}");
        let database = server.database();
        with_a_note(&database);
        let models = ModelServer::start(script);
        let (one, other) = (machine(&database, &models), machine(&database, &models));
        let killed = one.run(["everything"]).var("NIETZ_FAULT", &format!("kill@{line}")).stdin(ANSWERS).go();
        assert_eq!(killed.signal, Some(9), "{what}: {killed:?}");
        assert_eq!(journal(&database, R1).lines.len() as u64, line);
        if line == reference.lines {
            // Its last line says that it is over, in the transaction that took it out of the queue.
            assert_eq!(status(&database, R1), "done");
            assert_eq!(database.session().get("SELECT count(*) FROM pgmq.q_nietz_1"), "0");
            return;
        }
        goes_on_to_the_same_end(&what, &database, &other, &models, &reference);
    });
}

/// It is held by somebody, as far as the store knows.
#[test]
fn a_run_whose_process_was_killed_is_held_until_its_time_is_over() {
    let Some(database) = postgres::database() else { return };
    with_a_note(&database);
    let models = ModelServer::start(script);
    let (one, other) = (machine(&database, &models), machine(&database, &models));
    one.run(["everything"]).var("NIETZ_FAULT", "kill@5").stdin(ANSWERS).go();
    let refused = other.resume().stdin(ANSWERS).go();
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("run-busy") || refused.stdout.contains("run-busy"), "{refused:?}");
    expire(&database, R1);
    other.resume().stdin(ANSWERS).go().exits(0);
}

/// The one that was paused believes that it still has the run; the machine's clocks say nothing.
#[test]
fn a_process_that_was_paused_writes_nothing_and_says_so() {
    let Some(database) = postgres::database() else { return };
    with_a_note(&database);
    let gate = Gate::default();
    let hold = gate.clone();
    let models = ModelServer::start(move |request| match request.prompt().starts_with("plain") {
        true => script(request).held_by(&hold),
        false => script(request),
    });
    let (one, other) = (machine(&database, &models), machine(&database, &models));
    let mut paused = one.run(["everything"]).stdin(ANSWERS).spawn();
    assert!(models.wait_for_calls(1, Duration::from_secs(60)), "the first call came");
    paused.close();
    paused.freeze();
    expire(&database, R1);
    gate.open();
    let ended = other.resume().stdin(ANSWERS).go();
    ended.result();
    let before = journal(&database, R1).lines;
    paused.thaw();
    let stale = paused.end();
    assert_ne!(stale.code, Some(0), "{stale:?}");
    assert!(stale.stdout.contains("run-taken") || stale.stderr.contains("run-taken"), "{stale:?}");
    assert_eq!(journal(&database, R1).lines, before, "it has written nothing");
    assert_eq!(status(&database, R1), "done");
}

/// The server is killed and comes back while a model answers; then the process goes on as if nothing had been.
#[test]
fn a_server_that_was_killed_and_is_back_costs_nothing_but_time() {
    let Some(server) = Server::start(&[]) else { return };
    let database = server.database();
    with_a_note(&database);
    let gate = Gate::default();
    let hold = gate.clone();
    let models = ModelServer::start(move |request| match request.prompt().starts_with("size") {
        true => script(request).held_by(&hold),
        false => script(request),
    });
    let env = machine(&database, &models);
    let mut running = env.run(["everything"]).stdin(ANSWERS).spawn();
    running.close();
    assert!(models.wait_for_calls(2, Duration::from_secs(60)), "two calls came");
    let before = hosts::journal(&database, R1).lines;
    server.tell("kill");
    gate.open();
    server.tell("start");
    let ended = running.end();
    assert_eq!(ended.result()["sure"], true);
    let after = hosts::journal(&database, R1);
    assert!(after.lines.starts_with(&before), "what was acknowledged is there");
    assert_eq!(models.calls(), ended.of_type("call_started").len(), "nothing is called twice");
    assert_eq!(status(&database, R1), "done");
}
