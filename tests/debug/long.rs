//! Long sessions: from 80% of what the model takes in one call on, the older turns are a summary.

use super::desk::{Desk, For, all_of};

#[test]
fn at_four_fifths_of_the_window_older_turns_are_summarised_and_the_last_eight_stay() {
    let desk = Desk::new();
    let word = |turn: usize| format!("In turn {turn} I saw {}", "the old price once more, ".repeat(16));
    let mut lines: Vec<String> = (1..=16).map(word).collect();
    lines.extend(["exit".to_owned(), String::new()]);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    desk.talk(["stale prices", "--context", "3000"], &lines).exits(0);
    let summaries = desk.asked(For::Summary);
    assert!(!summaries.is_empty(), "nothing was summarised");
    assert!(summaries[0].prompt().contains("In turn 1 I saw"));
    for request in desk.asked(For::Question) {
        let sent = all_of(&request);
        // A token is a quarter of its bytes here, as the flow counts.
        assert!(sent.len() / 4 <= 3000 * 8 / 10, "{} tokens", sent.len() / 4);
    }
    let last = all_of(desk.asked(For::Question).last().expect("there is one"));
    assert!(last.contains("in short: They saw the old price in the cache.") && !last.contains("In turn 1 I saw"));
    for turn in 10..=16 {
        assert!(last.contains(&format!("In turn {turn} I saw")), "turn {turn} is missing");
    }
    assert_eq!(desk.saved()["transcript"].as_array().map(Vec::len), Some(17), "the session keeps all of them");
    // With room enough nothing is summarised.
    let wide = Desk::new();
    wide.talk(["stale prices"], &lines).exits(0);
    assert_eq!(wide.asked(For::Summary).len(), 0);
}
