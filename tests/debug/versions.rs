//! Session files of other times and hands: older ones are brought up, newer ones are read and never written over, broken
//! ones are named, skipped and left alone.

use serde_json::{Value, json};

use super::desk::{Desk, said, says};
use super::growth::{id, session};

fn put(desk: &Desk, number: usize, text: &str) -> String {
    let path = format!(".nietzschian/sessions/{}.json", id(number));
    desk.env.write(&path, text);
    path
}

#[test]
fn older_files_count_with_their_defaults_and_are_left_as_they_are() {
    let desk = Desk::new();
    let turn = json!({"question": "Why?", "response": "because"});
    let mut old = vec![];
    for (number, version) in [(1, Value::Null), (2, json!(0))] {
        let text = json!({"schemaVersion": version, "id": id(number), "timestamp": "2026-01-01T10:00:00Z", "transcript": [turn]});
        let mut text = text;
        if version.is_null() {
            text.as_object_mut().expect("an object").remove("schemaVersion");
        }
        old.push((put(&desk, number, &text.to_string()), text.to_string()));
    }
    let found = desk.talk(["profile"], &[]).exits(0).result();
    assert_eq!((&found["totalSessions"], &found["abandonedCount"]), (&json!(2), &json!(2)));
    assert_eq!(found["averageScores"], json!({"assumptionChecking": 5, "evidenceGathering": 5, "rootCauseSpeed": 5}));
    for (path, text) in old {
        assert_eq!(desk.env.read(&path), text);
    }
}

#[test]
fn a_newer_file_is_read_as_far_as_it_goes_with_a_warning_and_never_written_over() {
    let desk = Desk::new();
    let mut newer = session(1, "2026-01-01T10:00:00Z", "solved", 9.0);
    newer["schemaVersion"] = json!(2);
    newer["transcript"] = json!({"turns": "elsewhere now"});
    let path = put(&desk, 1, &newer.to_string());
    let ended = desk.talk(["profile"], &[]).exits(0);
    says(&ended, &["Written by a newer version and read as far as it is known: 1", &path]);
    let found = ended.result();
    assert_eq!((&found["solvedCount"], &found["averageScores"]["rootCauseSpeed"]), (&json!(1), &json!(9)));
    assert_eq!(desk.env.read(&path), newer.to_string());
}

#[test]
fn our_fields_of_before_they_had_a_key_of_their_own_move_under_it() {
    let desk = Desk::new();
    let mut old = session(1, "2026-01-01T10:00:00Z", "solved", 7.0);
    old.as_object_mut().expect("an object").remove("nietz");
    let alone = put(&desk, 2, &old.to_string().replace(&id(1), &id(2)));
    old["scoredBy"] = json!("model");
    old["lifelineUsed"] = json!(true);
    let path = put(&desk, 1, &old.to_string());
    assert_eq!(desk.talk(["profile"], &[]).exits(0).result()["totalSessions"], 2);
    assert_eq!(desk.env.read(&path), old.to_string(), "what only looks changes nothing");
    desk.env.nietz(["documents", "migrate", "debug"]).go().exits(0);
    let now: Value = serde_json::from_str(&desk.env.read(&path)).expect("a session");
    assert_eq!(now["nietz"], json!({"version": 1, "state": "ended", "scoredBy": "model", "lifelineUsed": true}));
    assert_eq!((&now["scoredBy"], &now["skillScores"]["rootCauseSpeed"]), (&Value::Null, &json!(7)));
    // A file that another program wrote by the specification alone is no older one.
    let checked = desk.env.nietz(["check", &alone]).go().exits(0);
    assert!(!checked.stdout.contains("error"), "{checked:?}");
}

#[test]
fn broken_files_are_named_skipped_and_left_alone() {
    let desk = Desk::new();
    let good = session(1, "2026-01-01T10:00:00Z", "solved", 7.0);
    put(&desk, 1, &good.to_string());
    let with = |change: &dyn Fn(&mut Value)| {
        let mut text = good.clone();
        change(&mut text);
        text
    };
    let broken = [
        ("{\"id\": ".to_owned(), "the text ends"),
        (with(&|text| text["skillScores"]["rootCauseSpeed"] = json!(11)).to_string(), "/skillScores/rootCauseSpeed"),
        (with(&|text| text["questionsToRootCause"] = json!(3)).to_string(), "/questionsToRootCause"),
        (with(&|text| text["behaviorTags"][0]["turnNumber"] = json!(9)).to_string(), "there is no turn 9"),
        (with(&|text| text["behaviorTags"][0]["dimension"] = json!("luck")).to_string(), "not a dimension"),
        (with(&|text| text["transcript"][1]["turnNumber"] = json!(1)).to_string(), "repeats"),
        (with(&|text| text["intensity"] = json!("plato")).to_string(), "/intensity"),
    ];
    let paths: Vec<String> = broken
        .iter()
        .enumerate()
        .map(|(number, (text, _))| put(&desk, number + 2, &text.replace(&id(1), &id(number + 2))))
        .collect();
    let ended = desk.talk(["profile"], &[]).exits(0);
    assert_eq!(ended.result()["totalSessions"], 1);
    says(&ended, &[&format!("cannot be read: {}", broken.len())]);
    for (number, (text, why)) in broken.iter().enumerate() {
        let told = said(&ended);
        let line =
            told.lines().find(|line| line.contains(&paths[number])).unwrap_or_else(|| panic!("{told}")).to_owned();
        assert!(line.contains(why), "{line} does not say {why}");
        assert_eq!(desk.env.read(&paths[number]), text.replace(&id(1), &id(number + 2)), "left alone");
        let checked = desk.env.nietz(["check", &paths[number]]).go();
        assert_eq!(checked.code, Some(4), "{checked:?}");
    }
}
