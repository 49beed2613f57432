//! The growth profile: totals, averages, trends on means that are not rounded, blind spots, filters.

use serde_json::{Value, json};

use super::desk::{Desk, says};

/// The id of a session with this number.
pub(super) fn id(number: usize) -> String {
    format!("{number:08x}-0000-4000-8000-000000000000")
}

/// A session with two turns, one tag and the same score in each dimension.
pub(super) fn session(number: usize, timestamp: &str, outcome: &str, score: f64) -> Value {
    let turn = |turn: usize| {
        json!({"turnNumber": turn, "question": "Why?", "response": "I guess", "model": "m", "quoteUsed": null,
               "behaviorTags": [], "timestamp": timestamp})
    };
    json!({
        "schemaVersion": 1, "id": id(number), "timestamp": timestamp, "endTimestamp": timestamp,
        "problemDescription": "it is slow", "intensity": "nietzsche", "outcome": outcome, "questionsToRootCause": 2,
        "codeFiles": [], "transcript": [turn(1), turn(2)],
        "skillScores": {"assumptionChecking": score, "evidenceGathering": score, "rootCauseSpeed": score},
        "behaviorTags": [{"turnNumber": 1, "tag": "guessed-without-evidence", "dimension": "evidenceGathering"}],
    })
}

/// Sessions of one day each, oldest first, with these scores. Their ids say nothing of their order.
fn with_scores(scores: &[f64]) -> Desk {
    let desk = Desk::new();
    for (day, score) in scores.iter().enumerate() {
        let number = 1000 - day * 7;
        let document = session(number, &format!("2026-01-{:02}T10:00:00Z", day + 1), "solved", *score);
        desk.env.write(&format!(".nietzschian/sessions/{}.json", id(number)), document.to_string());
    }
    desk
}

fn profile(desk: &Desk, more: &[&str]) -> Value {
    desk.talk(["profile"].into_iter().chain(more.iter().copied()), &[]).exits(0).result()
}

#[test]
fn a_trend_compares_the_last_five_with_the_five_before_on_means_that_are_not_rounded() {
    for (scores, trend) in [
        (&[5.0, 5.0, 5.0, 5.0, 5.0, 6.0, 6.0, 6.0, 6.0, 6.0][..], "stable"),
        // 5.4 and 6.6: rounded, they would be one apart.
        (&[5.0, 5.0, 5.0, 6.0, 6.0, 6.0, 6.0, 7.0, 7.0, 7.0], "improving"),
        // 4.6 and 5.4: rounded, they would not differ.
        (&[4.0, 4.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 6.0, 6.0], "stable"),
        (&[7.0, 7.0, 7.0, 7.0, 7.0, 6.0, 6.0, 6.0, 6.0, 5.0], "declining"),
        // What is older than ten sessions does not count.
        (&[1.0, 1.0, 6.0, 6.0, 6.0, 6.0, 6.0, 6.0, 6.0, 6.0, 6.0, 6.0], "stable"),
        // One before is a block, too; none is not.
        (&[3.0, 6.0, 6.0, 6.0, 6.0, 6.0], "improving"),
        (&[1.0, 10.0, 10.0, 10.0, 10.0], "stable"),
    ] {
        let found = profile(&with_scores(scores), &[]);
        for dimension in ["assumptionChecking", "evidenceGathering", "rootCauseSpeed"] {
            assert_eq!(found["recentTrend"][dimension], trend, "{scores:?}");
        }
    }
}

#[test]
fn totals_averages_and_blind_spots_are_shown_with_bars_and_a_sparkline() {
    let desk = with_scores(&[2.0, 4.0, 6.0, 9.0]);
    let path = format!(".nietzschian/sessions/{}.json", id(1));
    desk.env.write(&path, session(1, "2025-12-01T10:00:00Z", "abandoned", 1.0).to_string());
    let ended = desk.talk(["profile"], &[]).exits(0);
    says(
        &ended,
        &[
            "5 sessions total | 4 solved | 1 abandoned",
            "Checks assumptions  ████░░░░░░   4.4  → stable  ▁▂▄▅█",
            "Blind spot: you guess before you look (5 of the last ten sessions, 5 of all)",
        ],
    );
    let found = ended.result();
    assert_eq!(
        (
            &found["totalSessions"],
            &found["solvedCount"],
            &found["abandonedCount"],
            &found["averageScores"]["rootCauseSpeed"]
        ),
        (&json!(5), &json!(4), &json!(1), &json!(4.4))
    );
    assert_eq!(
        found["blindSpots"],
        json!([{"tag": "guessed-without-evidence", "dimension": "evidenceGathering", "sessions": 5, "recent": 5}])
    );
    let none = Desk::new();
    says(&none.talk(["profile"], &[]).exits(0), &["There is no session yet."]);
}

#[test]
fn it_can_be_filtered_by_date_outcome_and_intensity() {
    let desk = with_scores(&[2.0, 4.0, 6.0, 9.0]);
    let path = format!(".nietzschian/sessions/{}.json", id(1));
    let mut other = session(1, "2026-01-03T23:30:00-02:00", "abandoned", 1.0);
    other["intensity"] = json!("socrates");
    desk.env.write(&path, other.to_string());
    for (filter, count) in [
        (&["--since", "2026-01-03"][..], 3),
        (&["--until", "2026-01-02"], 2),
        (&["--since", "2026-01-02", "--until", "2026-01-03"], 2),
        (&["--since", "2026-01-04T01:00:00Z", "--until", "2026-01-04T02:00:00Z"], 1),
        (&["--outcome", "abandoned"], 1),
        (&["--intensity", "nietzsche"], 4),
        (&["--intensity", "nietzsche", "--outcome", "abandoned"], 0),
    ] {
        assert_eq!(profile(&desk, filter)["totalSessions"], count, "{filter:?}");
    }
    let wrong = desk.talk(["profile", "--since", "yesterday"], &[]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[test]
fn a_session_of_today_is_in_the_profile_that_follows_it() {
    let desk = with_scores(&[7.0, 7.0]);
    let ended = desk.session(&["a", "solved", ""]).exits(0);
    says(&ended, &["3 sessions total | 3 solved | 0 abandoned"]);
}

#[test]
fn a_thousand_sessions_and_more_are_each_counted_once() {
    let desk = Desk::new();
    for number in 0..1203 {
        let outcome = if number % 3 == 0 { "solved" } else { "abandoned" };
        let document = session(number, &format!("2026-01-01T{:02}:{:02}:00Z", number / 60, number % 60), outcome, 5.0);
        desk.env.write(&format!(".nietzschian/sessions/{}.json", id(number)), document.to_string());
    }
    let found = profile(&desk, &[]);
    assert_eq!((&found["totalSessions"], &found["solvedCount"]), (&json!(1203), &json!(401)));
}

#[test]
fn over_all_folders_each_session_counts_once_and_what_is_gone_or_broken_is_named() {
    let desk = with_scores(&[2.0, 4.0]);
    let beside = |name: &str| desk.env.workspace().parent().expect("the workspace is in a folder").join(name);
    let question_in = |folder: &std::path::Path, run: &str| {
        std::fs::create_dir_all(folder).expect("a folder can be made");
        let at = folder.to_str().expect("it is a text");
        desk.call(["-C", at, "it is slow"]).var("NIETZ_RUN", run).stdin("a\nsolved\n\n\n").go().exits(0);
    };
    let (other, gone, never) = (beside("other"), beside("gone"), beside("never"));
    question_in(&other, "r-other");
    question_in(&gone, "r-gone");
    // A folder in which nobody was questioned is not looked into, whatever lies there.
    let files = |folder: &std::path::Path| folder.join(".nietzschian/sessions");
    std::fs::create_dir_all(files(&never)).expect("a folder can be made");
    let here = desk.env.path(&format!(".nietzschian/sessions/{}.json", id(1000)));
    for (folder, name) in [(&never, id(7)), (&other, id(1000))] {
        std::fs::copy(&here, files(folder).join(format!("{name}.json"))).expect("a session can be copied");
    }
    std::fs::write(files(&other).join(format!("{}.json", id(9))), "{").expect("a file can be written");
    std::fs::remove_dir_all(&gone).expect("the folder can be removed");

    assert_eq!(profile(&desk, &[])["totalSessions"], 2);
    let all = desk.talk(["profile", "--all"], &[]).exits(0);
    let found = all.result();
    // Two of here, one of which the other folder has a copy of, and the one that was questioned there.
    assert_eq!((&found["totalSessions"], &found["brokenCount"]), (&json!(3), &json!(1)));
    assert_eq!(found["gone"], json!([gone.to_str()]));
    let broken = files(&other).join(format!("{}.json", id(9)));
    assert_eq!(found["broken"][0]["path"], json!(broken.to_str()));
    says(&all, &["3 sessions total", "Left out, because the folder is gone: 1", gone.to_str().expect("it is a text")]);
    let french = desk.talk(["profile", "--all", "--lang", "fr"], &[]).exits(0);
    says(&french, &["Laissé de côté, parce que le dossier n'est plus là : 1"]);
}
