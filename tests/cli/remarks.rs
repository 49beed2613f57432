//! The promise: what is odd in a document and no fault is told by `nietz check`, in every mode, without a journal and without
//! a path; what is refused on loading stays an error.
//!
//! `tests/samples/remarks.yaml` has a document of each mode that nothing is said of, and a change of it for each remark.

use nietz::model::collection::Format;
use serde_json::Value;

use crate::support::env::Env;

fn samples() -> Value {
    nietz::schema::source::parse(include_str!("../samples/remarks.yaml"), Format::Yaml, "remarks.yaml")
        .expect("it can be read")
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("{name}: {value}"))
}

/// Puts a value in the place of what stands at a pointer.
fn change(document: &mut Value, at: &str, value: &Value) {
    *document.pointer_mut(at).unwrap_or_else(|| panic!("{at}: nothing is there")) = value.clone();
}

/// Writes the files of a base with the changes of a sample; returns the path of the one that it is about.
fn write(env: &Env, base: &Value, sample: &Value, number: usize) -> String {
    let number = format!("{number:02}");
    let changes = || sample["change"].as_object().into_iter().flatten();
    let named = |text: &str| text.replace("NN", &number);
    let Some(folder) = base["folder"].as_str() else {
        let mut document = base["document"].clone();
        changes().for_each(|(at, value)| change(&mut document, at, value));
        let path = named(text(base, "file"));
        // JSON is YAML.
        env.write(&path, named(&format!("{document:#}\n")));
        return path;
    };
    let mut tables = base["tables"].clone();
    changes().for_each(|(at, value)| change(&mut tables, at, value));
    for (name, rows) in tables.as_object().expect("tables") {
        let rows: String = rows.as_array().expect("rows").iter().map(|row| format!("{row}\n")).collect();
        env.write(&named(&format!("{folder}/{name}.jsonl")), rows);
    }
    named(&format!("{folder}/{}.jsonl", sample["file"].as_str().unwrap_or("session")))
}

fn found(env: &Env, exit: i32) -> Vec<Value> {
    let ended = env.nietz(["check", "--json"]).go().exits(exit);
    ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect()
}

/// Writes the samples that are told with this severity, each in its own place, and looks for just one word on each.
fn told(errors: bool) {
    let all = samples();
    let env = Env::new();
    let mut expected = Vec::new();
    let wanted = all["samples"].as_array().expect("a list").iter().filter(|sample| (sample["error"] == true) == errors);
    for (number, sample) in wanted.enumerate() {
        let base = &all["bases"][text(sample, "base")];
        assert!(base.is_object(), "{sample}");
        expected.push((sample, write(&env, base, sample, number)));
    }
    let found = found(&env, if errors { 4 } else { 0 });
    let mut wrong = Vec::new();
    for (sample, path) in &expected {
        let folder = path.rsplit_once('/').map_or(path.as_str(), |(folder, _)| folder);
        let rows = sample["line"].is_u64();
        let of = |found: &&Value| text(found, "file").contains(if rows { folder } else { path.as_str() });
        let here: Vec<&Value> = found.iter().filter(of).collect();
        let severity = if errors { "error" } else { "note" };
        let fits = |found: &&Value| {
            text(found, "file").ends_with(path.as_str())
                && found["pointer"] == sample["at"]
                && found["severity"] == severity
                && (!rows || found["line"] == sample["line"])
                && text(found, "message").contains(text(sample, "says"))
        };
        if !(here.len() == 1 && here.iter().all(fits)) {
            wrong.push(format!("{}: {here:#?}", text(sample, "rule")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(found.len(), expected.len(), "{found:#?}");
}

#[test]
fn what_is_odd_is_told_and_refuses_nothing() {
    told(false);
}

#[test]
fn what_is_there_twice_is_refused() {
    told(true);
}

#[test]
fn nothing_is_said_of_what_is_as_it_should_be() {
    let all = samples();
    let env = Env::new();
    for (number, base) in all["bases"].as_object().expect("bases").values().enumerate() {
        write(&env, base, &Value::Null, number);
    }
    assert_eq!(found(&env, 0), Vec::<Value>::new());
}

/// What a collection expects is declared with care, and told where it is not.
#[test]
fn an_expectation_is_one_of_four() {
    for (expects, message) in [
        ("{ numberd = '/n' }", "unknown field `numberd`"),
        ("{ numbered = 'n' }", "must be a JSON pointer"),
        ("{ numbered = '/n', rising = '/n' }", "each is one of"),
        ("{ ordered = { '/a', '/b' }, within = { '/c' } }", "each is one of"),
        ("{ ordered = { '/a' } }", "expects"),
        ("{}", "expects"),
    ] {
        let flow = format!(
            "return require('@nietz').flow {{ name = 'x', summary = 'x', collections = {{ notes = {{ path = 'n/{{slug}}.yaml',\n\
             schema = {{ type = 'object' }}, expects = {{ {expects} }} }} }}, run = function() end }}"
        );
        let ended = Env::new().flow("x", &flow).nietz(["check", "flows/x.lua"]).go().exits(4);
        assert!(ended.stdout.contains(message) && ended.stdout.contains("notes"), "{expects}: {}", ended.stdout);
    }
}
