//! What is a plea for the answer, and what only asks back: on labelled lines, half of which were set aside before the words were
//! changed (`replies/pleas_aside.jsonl`).

use serde_json::Value;

use super::desk::{Desk, For, PROBLEM};
use crate::support::env::Env;

const FLOW: &str = r#"
local files, json, text = require("@nietz/files"), require("@nietz/json"), require("@nietz/text")
local intent = require("./debug/intent")
return require("@nietz").flow {
    name = "pleas", summary = "Tells how surely each line is a plea", permissions = { files = true },
    run = function()
        local found = json.array({})
        for _, line in text.lines(files.read("lines.jsonl").text) do
            table.insert(found, intent.plea(json.decode(line).response) or "none")
        end
        return { found = found }
    end,
}
"#;

/// Returns the label of each line of a file, and how surely it is taken for a plea.
fn judged(file: &str) -> Vec<(String, String, String)> {
    let root = env!("CARGO_MANIFEST_DIR");
    let read = |path: &str| std::fs::read_to_string(format!("{root}/{path}")).expect("it is there");
    let lines = read(&format!("tests/debug/replies/{file}"));
    let mut env = Env::new().flow("pleas", FLOW).file("lines.jsonl", lines.trim_end());
    for module in ["flows/debug/intent.lua", "flows/debug/moods.yaml", "flows/common/list.lua"] {
        env = env.file(module, read(module));
    }
    let found = env.nietz(["run", "--trust", "--json", "pleas"]).go().exits(0).result()["found"].clone();
    let rows = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let sureness = found.as_array().expect("a list").clone();
    rows.zip(sureness).map(|(row, sure)| (text(&row["id"]), text(&row["label"]), text(&sure))).collect()
}

/// To ask back costs nothing: no such line is surely a plea, and each plea is seen.
#[test]
fn who_asks_back_is_not_taken_for_one_who_begs() {
    for file in ["pleas.jsonl", "pleas_aside.jsonl"] {
        let lines = judged(file);
        assert_eq!(lines.len(), 30, "{file}");
        for (id, label, sure) in lines {
            let right = if label == "plea" { sure == "sure" } else { sure != "sure" };
            assert!(right, "{file}: {id}, which is {label}, is taken for {sure}");
        }
    }
}

#[test]
fn a_question_back_raises_no_intensity() {
    const BACK: [&str; 6] = [
        "Can you tell me which line you mean?",
        "could you show me the question again?",
        "please tell me what you mean by disease",
        "What is the bug number in the log? I see #4411",
        "how can I fix the permissions on the log to read it?",
        "c'est la solution qui marchait hier qui plante",
    ];
    let desk = Desk::with(|what, _| (what == For::Tags).then(|| r#"{"tags": []}"#.to_owned()));
    let lines: Vec<&str> = BACK.into_iter().chain(["exit", ""]).collect();
    desk.talk([PROBLEM], &lines).exits(0);
    let saved = desk.saved();
    assert!(!saved.to_string().contains("asked-for-answer"), "{saved:#}");
}
