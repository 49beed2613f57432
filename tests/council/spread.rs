//! The promise of `--spread`: each member speaks in a run of its own, and the council is the one that it would be otherwise; whoever is
//! killed, nothing that was recorded is asked again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use serde_json::Value;

use super::model::Brain;
use super::table::{LARGE, REQUEST, SMALL, said};
use crate::cli::children::{are_gone, children};
use crate::support::env::{Env, RUN};
use crate::support::kills::points;
use crate::support::model_server::{Gate, ModelServer, Request, Response};
use crate::support::process::Call;

/// Answers a request in the same way whenever it comes, so that who asks again changes nothing but how often it came.
pub(crate) fn service(brain: Brain, hold: impl Fn(&Request) -> Option<Gate> + Send + Sync + 'static) -> ModelServer {
    let known: Mutex<HashMap<String, Response>> = Mutex::default();
    ModelServer::start(move |request| {
        let mut known = known.lock().expect("no script panics while it is held");
        let response = known.entry(request.body.to_string()).or_insert_with(|| brain.answer(request)).clone();
        match hold(request) {
            Some(gate) => response.held_by(&gate),
            None => response,
        }
    })
}

/// Whether a member is asked where it stands.
pub(crate) fn is_position(request: &Request) -> bool {
    !request.schema()["properties"]["sure"].is_null()
}

/// How often each request has come.
pub(crate) fn asked(server: &ModelServer) -> BTreeMap<String, usize> {
    let mut asked = BTreeMap::new();
    for request in server.requests().iter().filter(|request| request.method == "POST") {
        *asked.entry(request.body.to_string()).or_default() += 1;
    }
    asked
}

fn council(env: &Env, model: &str, options: &[&str]) -> Call {
    env.run_on(model, ["council", REQUEST, "--no-pause"]).args(options.iter().copied()).patient()
}

/// A council of one run: what comes of it, and what was asked.
pub(crate) fn of_one_run(model: &str, env: impl FnOnce(&ModelServer) -> Env) -> (Value, BTreeMap<String, usize>) {
    let server = service(Brain::default(), |_| None);
    let env = env(&server);
    let result = council(&env, model, &[]).go().result();
    (result, asked(&server))
}

/// The runs of a workspace, each of which is what its journal says.
fn verified(env: &Env) -> usize {
    let listed = env.nietz(["runs", "--json"]).go().exits(0);
    for line in listed.stdout.lines() {
        let run: Value = serde_json::from_str(line).expect("JSON");
        env.nietz(["verify", run["run"].as_str().expect("a name")]).go().exits(0);
    }
    listed.stdout.lines().count()
}

#[test]
fn a_council_of_many_runs_is_the_council_that_it_would_be_in_one() {
    for model in [LARGE, SMALL] {
        let (alone, apart) = (service(Brain::default(), |_| None), service(Brain::default(), |_| None));
        let (one, many) = (Env::with(&alone), Env::with(&apart));
        let expected = council(&one, model, &[]).go();
        let ended = council(&many, model, &["--spread"]).go();
        assert_eq!(ended.result(), expected.result(), "{model}");
        assert_eq!(said(&ended), said(&expected), "{model}");
        assert_eq!(asked(&apart), asked(&alone), "{model}: what is asked is the same to the letter");
        let of = |ending: &Value| (ending["calls"].clone(), ending["spent"].clone());
        assert_eq!(of(&ended.ending()), of(&expected.ending()), "{model}: what members used is what it used");
        let spawned = many.journal().of_kind("spawn").len();
        let spoken = apart.requests().iter().filter(|request| is_position(request)).count();
        assert!(spoken >= 6 && spawned > spoken, "{model}: {spoken} positions and the reviews: {spawned}");
        assert_eq!(verified(&many), 1 + spawned, "{model}");
        let calls = apart.chats();
        assert_eq!(many.resume().go().result(), expected.result());
        assert_eq!(apart.chats(), calls, "{model}: nothing is asked again");
    }
}

#[test]
fn a_council_that_is_killed_while_its_members_speak_goes_on_with_them() {
    let (expected, once) = of_one_run(SMALL, Env::with);
    let gate = Gate::default();
    let held = gate.clone();
    let server = service(Brain::default(), move |request| is_position(request).then(|| held.clone()));
    let env = Env::with(&server);
    let mut running = council(&env, SMALL, &["--spread"]).spawn();
    running.close();
    let speaking = || server.requests().iter().filter(|request| is_position(request)).count();
    running.until(|| speaking() == 3);
    let pids = children(running.id());
    assert_eq!(pids.len(), 3, "each has a process of its own");
    running.kill();
    while !are_gone(&pids) {
        std::thread::yield_now();
    }
    gate.open();
    assert_eq!(env.resume().patient().go().result(), expected);
    let again: Vec<usize> = asked(&server).into_values().filter(|times| *times > 1).collect();
    assert_eq!(again, [2, 2, 2], "what was under way is asked again, and nothing else");
    assert!(asked(&server).keys().eq(once.keys()));
}

#[test]
fn councils_and_members_killed_at_every_line_come_to_the_same_end() {
    let (expected, once) = of_one_run(SMALL, Env::with);
    let server = service(Brain::default(), |_| None);
    let env = Env::with(&server);
    council(&env, SMALL, &["--spread"]).go().exits(0);
    let lines = env.journal().lines.len() as u64 - 1;
    for line in points(lines, 5) {
        let server = service(Brain::default(), |_| None);
        let env = Env::with(&server);
        let killed = council(&env, SMALL, &["--spread"]).var("NIETZ_FAULT", &format!("kill@{line}")).go();
        assert_eq!(killed.signal, Some(9), "line {line}: {killed:?}");
        let ended = env.resume().patient().go();
        let ended = if ended.code == Some(1) && line == 1 { council(&env, SMALL, &["--spread"]).go() } else { ended };
        assert_eq!(ended.result(), expected, "line {line}");
        let asked = asked(&server);
        assert!(asked.keys().eq(once.keys()), "line {line}");
        assert!(asked.values().all(|times| *times <= 2), "line {line}: {:?}", asked.values());
        verified(&env);
    }
}

#[test]
fn members_share_the_budget_of_their_council() {
    let (expected, once) = of_one_run(SMALL, Env::with);
    let server = service(Brain::default(), |_| None);
    let env = Env::with(&server);
    let ended = council(&env, SMALL, &["--spread", "--max-calls", "4"]).go().exits(6);
    assert_eq!(ended.failure(), "budget-used-up");
    assert!(server.chats() <= 4, "{} calls", server.chats());
    let ended = env.resume().args(["--max-calls", "100"]).patient().go();
    assert_eq!(ended.result(), expected);
    assert_eq!(asked(&server), once, "nothing is asked twice");
}

/// One member writes what nobody can use: the council goes on as it would without runs of their own.
#[test]
fn a_member_whose_reply_cannot_be_used_is_silent_in_both() {
    let start = || {
        let brain = Brain::default();
        ModelServer::start(move |request| match brain.speaker(request) {
            "QA Engineer" if is_position(request) => Response::text("I would rather not."),
            _ => brain.answer(request),
        })
    };
    let (alone, apart) = (start(), start());
    let (one, many) = (Env::with(&alone), Env::with(&apart));
    let expected = council(&one, SMALL, &[]).go();
    let ended = council(&many, SMALL, &["--spread"]).go();
    assert_eq!(ended.result(), expected.result());
    assert_eq!(ended.result()["metadata"]["errorCategories"][0]["code"], "reply-invalid");
    // Each process finds out by itself that this service passes over schemas, and spells them out from then on.
    assert_eq!(apart.chats(), alone.chats());
    assert!(many.journal_path().exists() && many.journal().of_kind("spawn").len() > 3, "{RUN}");
    // A fork asks that member again.
    let asked_again = |env: &Env, server: &ModelServer| {
        let before = server.requests().len();
        let forked = env.nietz(["fork", RUN, "--json"]).var("NIETZ_RUN", "r2").patient().go();
        assert_eq!(forked.result()["decision"], expected.result()["decision"], "{forked:?}");
        let (brain, asked) = (Brain::default(), server.requests());
        asked[before..].iter().any(|request| is_position(request) && brain.speaker(request) == "QA Engineer")
    };
    assert!(asked_again(&one, &alone) && asked_again(&many, &apart));
}
