//! A reply that cannot be used: the session goes on without it, and a fork asks for it anew.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::model::Brain;
use super::table::{FULL, TOPIC, Table, said, says, task};
use crate::support::env::{Env, RUN};
use crate::support::model_server::{ModelServer, Response};

#[test]
fn what_a_model_could_not_take_down_stands_as_it_was_said_and_a_fork_asks_for_it_anew() {
    let rambles = Arc::new(AtomicBool::new(true));
    let now = rambles.clone();
    let server =
        ModelServer::start(move |request| match task(request).starts_with("Take down") && now.load(Ordering::SeqCst) {
            true => Response::text("I would rather talk."),
            false => Response::text(Brain::default().reply(request).to_string()),
        });
    let table = Table { env: Env::with(&server), server };
    let flags = [TOPIC, "--no-clarify", "--no-hmw", "--no-technique", "--no-suggest"];
    let ended = table.talk(flags, &[FULL, "", "", "quit"]).exits(0);
    says(
        &ended,
        &["The model gave nothing usable here (Taking it down)", "fact: Orders stay in our own ledger first."],
    );
    assert!(!said(&ended).contains("decided:"), "{}", said(&ended));

    rambles.store(false, Ordering::SeqCst);
    let before = table.server.calls();
    let forked = table.env.nietz(["fork", RUN, "--json"]).var("NIETZ_RUN", "r2").stdin("aside\nquit\n").go().exits(0);
    says(&forked, &["decided: Orders stay in our ledger"]);
    let asked: Vec<String> = table.server.requests()[before..].iter().map(task).collect();
    assert!(asked[0].starts_with("Take down"), "what was answered before is given back: {asked:?}");
    assert_eq!(asked.iter().filter(|task| task.starts_with("Take down")).count(), 1, "{asked:?}");
}
