//! The promise: `nietz check` knows every file that nietz keeps, and tells what is wrong with it by file, line and field, in
//! the words that whoever reads the file says.

use insta::assert_snapshot;
use nietz::schema::builtin;
use serde_json::{Value, json};

use crate::support::env::{Env, RUN};
use crate::support::journal::sealed;
use crate::support::model_server::{ModelServer, Response};

const FLOW: &str = include_str!("../support/flows/short.lua");

/// A journal of format 1, of a run that used every kind of effect.
const JOURNAL: &str = include_str!("../journals/v1/everything.jsonl");

fn lines() -> Vec<Value> {
    JOURNAL.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect()
}

/// The place of the first line of this kind.
fn first(lines: &[Value], kind: &str) -> usize {
    lines.iter().position(|line| line["is"].get(kind).is_some()).unwrap_or_else(|| panic!("no {kind}"))
}

/// What `check --json` tells of a journal of this text: line, field, message, severity.
fn told(text: &str, exit: i32) -> Vec<(u64, String, String, String)> {
    let env = Env::new().file("kept.jsonl", text);
    let ended = env.nietz(["check", "--json", "kept.jsonl"]).go().exits(exit);
    let word = |found: &Value, name: &str| found[name].as_str().unwrap_or_default().to_owned();
    let found = ended.stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
    found
        .map(|found| {
            assert!(word(&found, "file").ends_with("kept.jsonl"), "{found}");
            let line = found["line"].as_u64().unwrap_or_default();
            (line, word(&found, "pointer"), word(&found, "message"), word(&found, "severity"))
        })
        .collect()
}

#[test]
fn a_journal_is_whole_line_by_line_and_as_a_chain() {
    assert_eq!(told(JOURNAL, 0), []);
    assert_eq!(told(&sealed(&lines()), 0), [], "the digests of this test are those of the format");
    let alone = |found: Vec<(u64, String, String, String)>| match <[_; 1]>::try_from(found) {
        Ok([one]) => one,
        Err(found) => panic!("{found:#?}"),
    };

    // A character was changed.
    let changed = JOURNAL.replacen("plain tea", "plain tee", 1);
    let (line, _, message, _) = alone(told(&changed, 4));
    let at = JOURNAL.lines().position(|line| line.contains("plain tea")).expect("it is there");
    assert_eq!((line, message.contains("does not match its digest")), (at as u64 + 1, true), "{message}");

    // A line is gone.
    let text: Vec<&str> = JOURNAL.lines().collect();
    let gone = [&text[..4], &text[5..]].concat().join("\n") + "\n";
    let (line, _, message, _) = alone(told(&gone, 4));
    assert_eq!((line, message.contains("not the next one")), (5, true), "{message}");

    // What a program wrote that does not know the format.
    for (kind, field, value, pointer, message) in [
        ("open", "seed", json!("1"), "/is/open/seed", "must be an integer of at least 0; found \"1\""),
        ("intent", "knid", json!("chat"), "/is/intent/knid", "\"knid\" is not known here; did you mean \"kind\"?"),
        ("outcome", "at", json!(-1), "/is/outcome/at", "must be an integer of at least 0; found -1"),
        ("end", "status", json!("over"), "/is/end/status", "must be one of"),
    ] {
        let mut lines = lines();
        let at = first(&lines, kind);
        lines[at]["is"][kind][field] = value;
        let found = alone(told(&sealed(&lines), 4));
        assert_eq!((found.0, found.1.as_str()), (at as u64 + 1, pointer), "{found:?}");
        assert!(found.2.contains(message), "{found:?}");
    }

    // A text that a line refers to is not there.
    let mut lines = lines();
    let at = first(&lines, "text");
    lines.remove(at);
    for (index, line) in lines.iter_mut().enumerate() {
        line["seq"] = json!(index + 1);
    }
    let (_, _, message, _) = alone(told(&sealed(&lines), 4));
    assert!(message.contains("which is not there"), "{message}");

    // The program was ended while it wrote: that is no fault.
    let (line, _, message, severity) = alone(told(&format!("{JOURNAL}{{\"v\":1,\"seq\""), 0));
    assert_eq!((line, severity.as_str()), (text.len() as u64 + 1, "note"), "{message}");
    assert!(message.contains("12 bytes"), "{message}");
}

#[test]
fn a_journal_of_a_format_to_come_is_named_as_such() {
    let newer = JOURNAL.replace("{\"v\":1,", "{\"v\":999,");
    let ended = Env::new().file("kept.jsonl", newer).nietz(["check", "kept.jsonl"]).go().exits(4);
    assert!(ended.stdout.contains("error[journal-version]") && ended.stdout.contains("kept.jsonl:1"), "{ended:?}");
}

/// The runs of a folder and its cassettes are looked at, the index is not.
#[test]
fn check_without_a_path_sees_runs_and_cassettes() {
    let server = ModelServer::start(|_| Response::text("a reply"));
    let env = Env::with(&server).flow("short", FLOW);
    env.run(["short"]).stdin("more\n").go().exits(0);
    env.nietz(["test", "--from-run", RUN]).go().exits(0);
    env.write(".nietz/index/flows/x.lua", "this is no Lua");
    let ended = env.nietz(["check"]).go().exits(0);
    for line in ["./tests/cassettes/short/run.jsonl: valid\n", "1 journal valid\n"] {
        assert!(ended.stdout.contains(line), "{}", ended.stdout);
    }
    assert!(!ended.stdout.contains("index"), "{}", ended.stdout);
    let journal = env.read(".nietz/runs/r1/journal.jsonl").replacen("short", "shart", 1);
    env.write(".nietz/runs/r1/journal.jsonl", journal);
    let ended = env.nietz(["check", "--json"]).go().exits(4);
    assert!(ended.stdout.contains("\"code\":\"journal-broken\""), "{}", ended.stdout);
}

#[test]
fn a_lock_is_told_and_refused_in_the_same_words() {
    let right =
        format!("version: 1\npacks:\n  retro:\n    version: 1.0.0\n    source: x\n    sha256: {}\n", "a".repeat(64));
    let env = Env::new().file("nietz.lock", &right);
    assert_eq!(env.nietz(["check", "nietz.lock"]).go().exits(0).stdout, "nietz.lock: valid\n");
    for (from, to, place, message) in [
        ("sha256: a", "sha256: ../a", "nietz.lock:6:13: /packs/retro/sha256: ", "must match the pattern"),
        ("  retro:", "  ../retro:", "nietz.lock:3:3: /packs/..~1retro: ", "must match the pattern"),
        ("source: x", "source: 7", "nietz.lock:5:13: /packs/retro/source: ", "must be text; found 7"),
        ("source: x", "sauce: x", "nietz.lock:5:5: /packs/retro/sauce: ", "did you mean \"source\"?"),
    ] {
        env.write("nietz.lock", right.replace(from, to));
        let checked = env.nietz(["check", "nietz.lock", "--json"]).go().exits(4);
        let listed = env.nietz(["pack", "list"]).go().exits(1);
        let said = listed.stderr.lines().find(|line| line.contains(place)).unwrap_or_else(|| panic!("{listed:?}"));
        assert!(said.contains(message) && listed.stderr.contains("config-invalid"), "{said}");
        let found: Vec<Value> =
            checked.stdout.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
        let found =
            found.iter().find(|found| place.contains(&format!(": {}: ", found["pointer"].as_str().unwrap_or(""))));
        let found = found.unwrap_or_else(|| panic!("{checked:?}"));
        assert_eq!(found["code"], "config-invalid");
        assert!(said.contains(found["message"].as_str().expect("a text")), "{said} {found}");
    }
    env.write("nietz.lock", "version: 2\npacks: []\nmore: true\n");
    for ended in
        [env.nietz(["check", "nietz.lock"]).go().exits(4).stdout, env.nietz(["pack", "list"]).go().exits(1).stderr]
    {
        assert!(ended.contains("version 2 is not known") && ended.contains("use a newer nietz"), "{ended}");
    }
}

#[test]
fn what_a_user_granted_and_began_is_checked_too() {
    let server = ModelServer::start(|_| Response::text("a reply"));
    let env = Env::with(&server).flow("short", FLOW);
    env.run(["short"]).stdin("more\n").go().exits(0);
    let records = std::fs::read_dir(env.home().join("runs")).expect("there are records");
    let record = records
        .map(|entry| entry.expect("it can be read").path())
        .find(|path| !path.ends_with("key"))
        .expect("there is one");
    let check = |path: &std::path::Path, exit: i32| {
        let ended = env.nietz(["check", &path.display().to_string()]).go().exits(exit);
        env.normal(&ended.stdout)
    };
    assert!(check(&record, 0).ends_with(": valid\n"));
    let text = std::fs::read_to_string(&record).expect("it is text");
    std::fs::write(&record, text.replace("\"mac\":\"", "\"mac\":\"x")).expect("it can be written");
    assert!(check(&record, 4).contains("/mac"));

    let grants = env.home().join("grants.yaml");
    let write = |text: &str| std::fs::write(&grants, text).expect("it can be written");
    write(&format!("trees:\n  {}:\n    pack: retro\n    flows:\n      retro: [llm]\n", "a".repeat(64)));
    assert!(check(&grants, 0).ends_with(": valid\n"));
    write(&format!("trees:\n  {}:\n    pack: retro\n    flows:\n      retro: llm\n", "a".repeat(64)));
    let found = check(&grants, 4);
    assert_snapshot!(found.replace(&"a".repeat(64), "SHA256"), @r#"
    error: must be a list; found "llm"
     --> /tmp/test/home/grants.yaml:5:14
      |
    5 |       retro: llm
      |              ^^^ /trees/SHA256/flows/retro
    "#);
}

#[test]
fn what_is_trusted_is_held_to_its_schema() {
    let env = Env::new().trusting("exec: cargo");
    let ended = env.nietz(["check", &env.home().join("trust.yaml").display().to_string()]).go().exits(4);
    assert!(ended.stdout.contains("trust.yaml:3:"), "{}", ended.stdout);
    let env = Env::new().trusting("git, exec=cargo");
    env.nietz(["check", &env.home().join("trust.yaml").display().to_string()]).go().exits(0);
}

/// A fault of the configuration has its line and its field, also where a program could have read the file.
#[test]
fn configuration_meets_its_schema_first() {
    for (text, place, message) in [
        (
            "models:\n  providers:\n    lab:\n      timeout_seconds: 0\n",
            "4:24: /models/providers/lab/timeout_seconds: ",
            "must be",
        ),
        ("budget:\n  time: soon\n", "2:9: /budget/time: ", "must match the pattern"),
        ("budget:\n  time: 0m\n", "2:9: /budget/time: ", "must match the pattern"),
        ("budget:\n  cost: -1\n", "2:9: /budget/cost: ", "must be"),
        ("budget:\n  calls: many\n", "2:10: /budget/calls: ", "must be an integer"),
        ("models:\n  windows: {lab/x: 0}\n", "2:20: /models/windows/lab~1x: ", "must be an integer of at least 1"),
        ("models: [\n", "1:9: ", "unclosed bracket"),
    ] {
        let env = Env::new().config(text);
        let ended = env.nietz(["models"]).go().exits(1);
        let place = format!("{}:{place}", env.home().join("config.yaml").display());
        assert!(ended.stderr.contains("error[config-invalid]"), "{ended:?}");
        assert!(ended.stderr.contains(&format!("{place}{message}")), "{place}{message}: {}", ended.stderr);
    }
    let env = Env::new().file("nietz.yaml", "models:\n  providers: {}\n");
    let ended = env.nietz(["models"]).go().exits(1);
    assert!(ended.stderr.contains("nietz.yaml:2:3: /models/providers: "), "{}", ended.stderr);
}

/// Returns the members of a value that a schema does not name, below it too.
fn unnamed(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let schema = match schema["$ref"].as_str() {
        Some(of) => root.pointer(of.trim_start_matches('#')).expect("it is there"),
        None => schema,
    };
    let options: Vec<&Value> = schema["anyOf"].as_array().into_iter().flatten().collect();
    if let Some(option) = options.iter().find(|option| option["properties"].is_object() || option["$ref"].is_string()) {
        return if value.is_object() { unnamed(root, option, value, at) } else { Vec::new() };
    }
    let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
    let members = value.as_object().into_iter().flatten();
    members
        .flat_map(|(name, member)| match properties.get(name) {
            Some(inner) => unnamed(root, inner, member, &format!("{at}/{name}")),
            None => vec![format!("{at}/{name}")],
        })
        .collect()
}

/// A new member of a line is not forgotten in the schema, which passes over what it does not name.
#[test]
fn the_schema_of_a_journal_names_every_member_that_is_written() {
    let schema = builtin::JOURNAL_V2.schema().expect("it is a schema");
    let server = ModelServer::start(|request| match request.prompt().as_str() {
        "refused" => Response::error(400, "never"),
        prompt => Response::text(prompt.repeat(40)),
    });
    let env = Env::with(&server).flow(
        "lines",
        "local llm, task = require('@nietz/llm'), require('@nietz/task')\n\
         return require('@nietz').flow { name = 'lines', summary = 's', permissions = { llm = true }, run = function()\n\
         local long = string.rep('a line of some length that comes again\\n', 30)\n\
         llm.chat { prompt = long } llm.chat { prompt = long .. 'and more' }\n\
         task.all { a = function() return llm.chat { prompt = 'a' } end, b = function() return llm.chat { prompt = 'b' } end }\n\
         return llm.chat { prompt = 'refused' } end }\n",
    );
    env.run(["lines", "--max-calls", "30"]).go().exits(1);
    env.resume().go().exits(1);
    let journal = env.journal();
    let unnamed: Vec<String> = journal.lines.iter().flat_map(|line| unnamed(&schema, &schema, line, "")).collect();
    assert_eq!(unnamed, Vec::<String>::new());
    let has = |pointer: &str| journal.lines.iter().any(|line| line.pointer(pointer).is_some());
    for wanted in ["/is/text/parts", "/is/end/void", "/is/resume", "/is/outcome/failure"] {
        assert!(has(wanted), "{wanted} is not in what was written");
    }
    env.nietz(["check", ".nietz/runs/r1/journal.jsonl"]).go().exits(0);
}
