//! The promise, with three machines at a switch: one is cut off and comes back, one is lost, and the third takes the run to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::hosts::{R1, documents, expire, journal, status};
use super::kills::{machine, reference, with_a_note};
use super::network::{Network, SERVER, within};
use crate::cli::kill_matrix::{ANSWERS, script};
use crate::support::env::Env;
use crate::support::model_server::{Gate, ModelServer};
use crate::support::postgres::{self, Database, Server};
use crate::support::process::Call;

/// A machine of the network with its own service of models, which the cut does not reach.
struct Machine {
    name: String,
    models: ModelServer,
    env: Env,
}

impl Machine {
    fn new(network: &mut Network, database: &Database<'_>, gate: Option<Gate>) -> Machine {
        let name = network.machine();
        let script = move |request: &crate::support::model_server::Request| match &gate {
            Some(gate) if request.prompt().starts_with("plain") => script(request).held_by(gate),
            _ => script(request),
        };
        let models = within(&name, || ModelServer::start(script));
        // Found by a timeout of a second; then it is tried for a minute to reach the server again.
        let url = format!("{}&nietz_timeout=1&nietz_patience=60", database.url_at(SERVER));
        let env = machine(database, &models).var("NIETZ_STORE", &url);
        Machine { name, models, env }
    }

    /// Has a call of the program made there.
    fn there(&self, call: Call) -> Call {
        call.by("/sbin/ip", ["netns", "exec", &self.name])
    }
}

#[test]
fn one_machine_is_cut_off_and_back_one_is_lost_and_the_third_goes_on_to_the_end() {
    let Some(mut network) = Network::new() else { return };
    let place = network.machine();
    let before = ["/sbin/ip", "netns", "exec", &place];
    let Some(server) = Server::by(&before, (SERVER, 5432), &[]) else { return };
    let Some(near) = postgres::shared() else { return };
    let reference = reference(near);
    let database = server.database();
    with_a_note(&database);
    let gate = Gate::default();
    let one = Machine::new(&mut network, &database, Some(gate.clone()));
    let (two, three) = (Machine::new(&mut network, &database, None), Machine::new(&mut network, &database, None));

    let mut cut_off = one.there(one.env.run(["everything"]).stdin(ANSWERS)).spawn();
    assert!(one.models.wait_for_calls(1, Duration::from_secs(60)), "its first call came");
    cut_off.close();
    network.cut(&one.name);
    // It has the reply now, and cannot record it.
    gate.open();
    let acknowledged = journal(&database, R1).lines;
    expire(&database, R1);

    let line = acknowledged.len() + 12;
    let lost = two.there(two.env.resume().stdin(ANSWERS).var("NIETZ_FAULT", &format!("kill@{line}"))).go();
    assert_eq!(lost.signal, Some(9), "{lost:?}");
    network.cut(&two.name);
    let before = journal(&database, R1);
    assert!(before.lines.starts_with(&acknowledged), "nothing that was acknowledged is lost");
    expire(&database, R1);

    let ended = three.there(three.env.resume().stdin(ANSWERS)).go();
    assert_eq!(ended.result(), reference.result);
    let after = journal(&database, R1).lines;
    assert!(after.starts_with(&before.lines), "a line was rewritten");
    assert_eq!(documents(&database), reference.documents);

    network.join(&one.name);
    let back = cut_off.end();
    assert!(back.code != Some(0) && format!("{back:?}").contains("run-"), "it is told that it lost the run: {back:?}");
    assert_eq!(journal(&database, R1).lines, after, "it has written nothing");
    assert_eq!(status(&database, R1), "done");
    assert_eq!(database.session().get("SELECT count(*) FROM pgmq.q_nietz_1"), "0");
}

/// Nobody is told that the server cannot be reached: a call without an answer within the time that was set is one that failed.
#[test]
fn a_connection_that_was_cut_silently_is_found_by_its_timeout_and_made_anew() {
    let Some(mut network) = Network::new() else { return };
    let place = network.machine();
    let before = ["/sbin/ip", "netns", "exec", &place];
    let Some(server) = Server::by(&before, (SERVER, 5432), &[]) else { return };
    let database = server.database();
    with_a_note(&database);
    let gate = Gate::default();
    let one = Machine::new(&mut network, &database, Some(gate.clone()));
    let mut running = one.there(one.env.run(["everything"]).stdin(ANSWERS)).spawn();
    running.close();
    assert!(one.models.wait_for_calls(1, Duration::from_secs(60)), "its first call came");
    network.cut(&one.name);
    gate.open();
    // It notices: the connection that it had is given up on its side, and another one is tried.
    let tries = Arc::new(AtomicBool::new(false));
    running.until(|| {
        let seen = connecting(&one.name);
        tries.fetch_or(seen, Ordering::SeqCst);
        seen
    });
    network.join(&one.name);
    let ended = running.end();
    assert_eq!(ended.result()["sure"], true, "it went on as if nothing had been");
    assert_eq!(one.models.calls(), ended.of_type("call_started").len(), "nothing is called twice");
    assert_eq!(status(&database, R1), "done");
}

/// Whether the machine has a connection to the server that is still being made: state 02 of the kernel's table.
fn connecting(machine: &str) -> bool {
    let table = within(machine, || std::fs::read_to_string("/proc/thread-self/net/tcp")).unwrap_or_default();
    // 5432 in hex.
    table.lines().any(|line| line.contains(":1538 02 "))
}
