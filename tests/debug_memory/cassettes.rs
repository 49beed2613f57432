//! Whole sessions, kept as cassettes that replay with no model, no key, no repository and no test runner: `relay.jsonl` was played by
//! hand, each reply written from the prompts alone by somebody who knew nothing else; in `local.jsonl` the built-in model answered.
//!
//! After a change of a prompt it is recorded anew by hand: a session with a server whose replies are written by somebody who reads the
//! requests, then a copy of its journal.

use std::path::Path;

use crate::debug::whole::replay_all;

#[test]
fn every_cassette_replays_without_a_model() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cassettes/debug-memory");
    assert!(replay_all(&folder) >= 2, "one is played by hand, and one by the built-in model");
}
