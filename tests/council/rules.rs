//! The rules of the specification that a schema cannot hold, each with a sample that breaks it and nothing else.
//!
//! `tests/samples/council/session.json` is valid. Each entry of `broken.yaml` changes it (JSON Patch, RFC 6902) and names
//! the one fault that must be found, by its pointer and words; `note: true` where it is only a remark. With `on: foreign` there is
//! nothing of ours in it: states are judged by turns and entities alone, so a session of another program is really checked.

use std::path::Path;

use nietz::model::collection::Format;
use serde_json::Value;

use super::table::list;
use crate::support::env::Env;

fn sample(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/council").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    nietz::schema::source::parse(&text, Format::Yaml, name).expect("it can be read")
}

/// Does one step of a JSON Patch.
fn change(document: &mut Value, step: &Value) {
    let path = step["path"].as_str().expect("a path");
    let (above, last) = path.rsplit_once('/').expect("a pointer");
    let value = match step["op"].as_str() {
        Some("copy") => {
            document.pointer(step["from"].as_str().expect("from")).unwrap_or_else(|| panic!("{step}")).clone()
        }
        _ => step["value"].clone(),
    };
    match document.pointer_mut(above).unwrap_or_else(|| panic!("{step}: nothing is there")) {
        Value::Object(members) if step["op"] == "remove" => {
            members.remove(last).unwrap_or_else(|| panic!("{step}: nothing is there"));
        }
        Value::Object(members) => {
            members.insert(last.to_owned(), value);
        }
        Value::Array(items) if last == "-" => items.push(value),
        Value::Array(items) => {
            let index: usize = last.parse().expect("an index");
            match step["op"].as_str() {
                Some("remove") => drop(items.remove(index)),
                Some("replace") => items[index] = value,
                _ => items.insert(index, value),
            }
        }
        other => panic!("{step}: {other} has no members"),
    }
}

/// The sample as a program that knows nothing but the specification would have written it, with three cycles of ten.
fn foreign() -> Value {
    let mut document = sample("session.json");
    document.as_object_mut().expect("an object").remove("nietz");
    document["metadata"] = serde_json::json!({});
    let ours: [(&str, &[&str]); 2] =
        [("messageTurns", &["metadata"]), ("clarificationQuestions", &["why", "suggestedDefault"])];
    for (of, members) in ours {
        for item in document[of].as_array_mut().expect("a list") {
            item.as_object_mut().expect("an object").retain(|name, _| !members.contains(&name.as_str()));
        }
    }
    document["councilDiscussions"][2]["status"] = "concluded".into();
    document
}

/// The sample with what an entry changes in it.
fn changed(samples: &Value, entry: &Value) -> Value {
    let mut document = if entry["on"] == "foreign" { foreign() } else { sample("session.json") };
    let blank = if entry["on"] == "blank" { list(&samples["blank"]) } else { &[] };
    blank.iter().chain(list(&entry["change"])).for_each(|step| change(&mut document, step));
    document
}

#[test]
fn each_rule_is_found_where_it_is_broken_and_nothing_else_is() {
    let samples = sample("broken.yaml");
    let broken = list(&samples["broken"]);
    assert!(broken.len() >= 110, "samples were forgotten: {}", broken.len());
    let env = Env::new();
    let mut files = Vec::new();
    let mut write = |file: String, document: Value| {
        env.write(&file, document.to_string());
        files.push(file);
    };
    write("valid.json".to_owned(), sample("session.json"));
    for (number, entry) in list(&samples["valid"]).iter().enumerate() {
        write(format!("valid-{number}.json"), changed(&samples, entry));
    }
    let valid = 1 + list(&samples["valid"]).len();
    for (number, entry) in broken.iter().enumerate() {
        write(format!("{number:03}.json"), changed(&samples, entry));
    }
    // A few at a time: a process has a limit of time, however loaded the machine is.
    let check = |files: &[String]| {
        let arguments = ["check", "--json", "--as", "council:sessions"].into_iter();
        env.nietz(arguments.chain(files.iter().map(String::as_str))).go().stdout
    };
    let told: String = files.chunks(20).map(check).collect();
    let found: Vec<Value> =
        told.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))).collect();
    let of = |file: &str| -> Vec<&Value> { found.iter().filter(|fault| fault["file"] == file).collect() };
    for file in &files[..valid] {
        assert!(of(file).is_empty(), "{file} is broken: {:?}", of(file));
    }
    let mut wrong = Vec::new();
    for (entry, file) in broken.iter().zip(&files[valid..]) {
        let faults = of(file);
        let fits = |fault: &&Value| {
            let told = fault["message"].as_str().unwrap_or_default();
            fault["pointer"] == entry["at"]
                && told.contains(entry["says"].as_str().expect("says"))
                && (fault["severity"] == "note") == (entry["note"] == true)
        };
        if !(faults.len() == 1 && faults.iter().all(fits)) {
            wrong.push(format!("{}: {faults:#?}", entry["rule"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A remark refuses nothing.
#[test]
fn a_session_with_a_remark_is_valid() {
    let samples = sample("broken.yaml");
    let entry = list(&samples["broken"]).iter().find(|entry| entry["note"] == true).expect("there is one");
    let document = changed(&samples, entry);
    let env = Env::new().file("a.json", document.to_string());
    env.nietz(["check", "--as", "council:sessions", "a.json"]).go().exits(0);
}

/// A session from before there was a key for what is ours: what stood beside the specification's fields has its place there now.
#[test]
fn a_session_from_before_its_own_key_is_read_and_valid() {
    let mut document = sample("session.json");
    let members = document.as_object_mut().expect("an object");
    members.remove("nietz");
    for question in 0..2 {
        let line = document["assumptionLog"][question]["assumption"].as_str().expect("a text").to_owned();
        let (before, _) = line.split_once(" (asked: ").expect("it names its question");
        for turn in document["messageTurns"].as_array_mut().expect("turns") {
            if turn["content"] == line.as_str() {
                turn["content"] = before.into();
            }
        }
        document["assumptionLog"][question]["assumption"] = before.into();
    }
    document["metadata"]["remarks"] =
        serde_json::json!([{"text": "We are two.", "after": 12, "at": "2026-01-09T10:30:00Z"}]);
    document["messageTurns"][13]["metadata"]["asked"] = "how would we know?".into();
    let env = Env::new().file("old.json", document.to_string());
    let checked = env.nietz(["check", "--as", "council:sessions", "old.json"]).go().exits(0);
    assert!(checked.stdout.contains("old.json: valid") && !checked.stdout.contains("asked"), "{checked:?}");
}
