//! The promise: a session's page shows how it ended, what is known of the bug, each turn with its tags, and the scores.

use serde_json::json;

use super::desk::{Desk, For};
use super::growth::{id, session};
use crate::support::env::Env;

#[test]
fn the_page_of_a_session_shows_turns_and_scores() {
    let env = Env::new();
    for outcome in ["solved", "abandoned"] {
        let cassette = format!("{}/tests/cassettes/debug/{outcome}.jsonl", env!("CARGO_MANIFEST_DIR"));
        let page = env.page_of(&cassette, &format!("debug-{outcome}"));
        for part in [outcome, "<h3>Turns</h3>", "<h3>How it was reasoned (of 10)</h3>", "evidence gathered"] {
            assert!(page.contains(part), "{outcome}: {part} is missing: {page}");
        }
    }
}

#[test]
fn the_page_of_a_session_shows_what_is_known_of_the_bug() {
    let desk = Desk::with(|what, _| {
        let known = json!({ "tags": ["checked-logs"], "entries": [
            { "what": "seen", "quote": "the log is empty" }, { "what": "believed", "quote": "the cache is stale" },
        ] });
        (what == For::Tags).then(|| known.to_string())
    });
    desk.session(&["the log is empty and I think the cache is stale", "exit", ""]).exits(0);
    let page = desk.env.page("debug-known");
    for part in ["What is known of the bug", "<td>the log is empty</td>", "<td>Believed</td>", "checked-logs"] {
        assert!(page.contains(part), "{part} is missing: {page}");
    }
}

#[test]
fn the_page_of_a_session_shows_how_scores_went_over_the_last_sessions() {
    let desk = Desk::new();
    for (number, score) in [(1, 4.0), (2, 6.0)] {
        let before = session(number, &format!("2026-01-0{number}T10:00:00Z"), "solved", score);
        desk.env.write(&format!(".nietzschian/sessions/{}.json", id(number)), before.to_string());
    }
    desk.session(&["the log is empty", "exit", ""]).exits(0);
    let page = desk.env.page("debug-growth");
    for part in
        ["Growth over 3 sessions (of 10)", "<title>evidence gathered 2026-01-02: 6</title>", ">2026-01-09</text>"]
    {
        assert!(page.contains(part), "{part} is missing: {page}");
    }
    // One session is no growth.
    let first = Desk::new();
    first.session(&["the log is empty", "exit", ""]).exits(0);
    assert!(!first.env.page("debug-first").contains("Growth over"));
}
