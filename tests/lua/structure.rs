//! The rules of the house that a compiler does not check.

use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the files below some folders with one of these endings, with their text.
pub(crate) fn files(folders: &[&str], endings: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).collect();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("the folder is there") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                open.push(path);
            } else if endings.iter().any(|ending| path.extension().is_some_and(|found| found == *ending)) {
                let name = path.strip_prefix(root()).expect("it is below the root").display().to_string();
                found.push((name, std::fs::read_to_string(&path).expect("it is text")));
            }
        }
    }
    found.sort();
    found
}

fn without_comments(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim_start).filter(|line| !line.starts_with("//"))
}

/// Returns the rooms that a file names: `model` of `crate::model::text`.
fn rooms(text: &str) -> Vec<String> {
    let mut rooms = Vec::new();
    for line in without_comments(text) {
        for part in line.split("crate::").skip(1) {
            let names = match part.strip_prefix('{') {
                Some(list) => list.split('}').next().unwrap_or_default().split(',').collect(),
                None => vec![part],
            };
            for name in names {
                let name = name.trim().split(|c: char| !c.is_ascii_lowercase() && c != '_').next().unwrap_or_default();
                rooms.push(name.to_owned());
            }
        }
    }
    rooms
}

#[test]
fn no_rust_file_names_a_mode() {
    let flows = std::fs::read_dir(root().join("flows")).expect("there are flows");
    let mut names: Vec<String> = flows
        .filter_map(|entry| Some(entry.ok()?.path()).filter(|path| path.is_file()))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        // These are also words of every programmer; the first is the name of a library of Lua's.
        .filter(|name| !["debug", "ask"].contains(&name.as_str()))
        .collect();
    names.extend(["brainstorm", "council", "shots-on-goal", "debug-memory"].map(str::to_owned));
    names.extend(names.clone().iter().map(|name| name.replace('-', "_")));
    for (path, text) in files(&["src"], &["rs", "luau"]) {
        let text = text.to_lowercase();
        for name in &names {
            assert!(!text.contains(name), "{path} names the mode {name}: modes are files in flows/");
        }
    }
}

#[test]
fn each_room_knows_only_those_below_it() {
    let rules: &[(&str, &[&str])] = &[
        ("src/model", &["model", "error"]),
        ("src/schema", &["schema", "model", "error"]),
        ("src/disk", &["disk", "error"]),
        ("src/journal", &["journal", "disk", "model", "error"]),
        ("src/store", &["store", "error"]),
        ("src/template", &["template", "pack", "model", "cpu", "error"]),
        ("src/pack", &["pack", "assets", "disk", "schema", "model", "error"]),
        ("src/host", &["host", "store", "disk", "schema", "model", "cpu", "error"]),
        ("src/lua", &["lua", "engine", "journal", "pack", "schema", "template", "model", "cpu", "error"]),
        ("src/engine", &["engine", "host", "store", "journal", "disk", "model", "error"]),
        ("src/report", &["report", "journal", "schema", "model", "error"]),
        ("src/view", &["view", "report", "engine", "host", "model", "error"]),
        (
            "src/run",
            &[
                "run", "lua", "engine", "host", "store", "journal", "pack", "assets", "disk", "schema", "model", "cpu",
                "error",
            ],
        ),
        ("src/editors", &["editors", "run", "report", "lua", "engine", "host", "pack", "disk", "model", "error"]),
    ];
    for (folder, allowed) in rules {
        for (path, text) in files(&[folder], &["rs"]) {
            for room in rooms(&text) {
                assert!(allowed.contains(&room.as_str()), "{path} uses crate::{room}, which {folder} must not know");
            }
        }
    }
}

#[test]
fn only_the_command_line_reads_the_environment() {
    for (path, text) in files(&["src"], &["rs"]) {
        if path.starts_with("src/cli/") || path == "src/main.rs" || path.ends_with("tests.rs") {
            continue;
        }
        for line in without_comments(&text).take_while(|line| *line != "#[cfg(test)]") {
            for call in ["env::var", "env::args", "env::current_exe", "env::current_dir", "env::temp_dir"] {
                assert!(!line.contains(call), "{path} uses {call}: it is handed in");
            }
        }
    }
}

#[test]
fn the_model_does_no_io() {
    for (path, text) in files(&["src/model"], &["rs"]) {
        for line in without_comments(&text) {
            for room in ["std::fs", "std::net", "std::process", "std::env", "std::io", "tokio", "SystemTime"] {
                assert!(!line.contains(room), "{path} uses {room}");
            }
        }
    }
}

/// A kind of effect has its facts in one file, and whatever performs it in another; a module of Lua offers it.
#[test]
fn a_kind_of_effect_is_told_from_others_in_two_places() {
    let sources = files(&["src"], &["rs"]);
    let mut kinds = 0;
    for (facts, text) in &sources {
        let enums = text.split(" enum ").skip(1).filter_map(|rest| rest.split_once(" {\n"));
        for (name, body) in enums.filter(|(name, _)| name.ends_with("Op")) {
            let variants = body.split("\n}").next().unwrap_or_default().lines();
            let variants = variants.filter_map(|line| line.strip_prefix("    "));
            let variants = variants.filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
            for variant in variants.map(|line| line.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default()) {
                kinds += 1;
                let used = format!("{name}::{variant}");
                let names = |text: &str| {
                    let code: String = without_comments(text).take_while(|line| *line != "#[cfg(test)]").collect();
                    code.match_indices(&used).any(|(at, _)| !code[at + used.len()..].starts_with(char::is_alphanumeric))
                };
                let others = sources.iter().filter(|(path, text)| path != facts && names(text));
                let (lua, performed): (Vec<&str>, Vec<&str>) =
                    others.map(|(path, _)| path.as_str()).partition(|path| path.starts_with("src/lua/api/"));
                assert!(lua.len() <= 1 && performed.len() == 1, "{used} is named in {lua:?} and {performed:?}");
            }
        }
    }
    assert!(kinds > 30, "only {kinds} kinds were found");
}

#[test]
fn every_rust_file_says_what_it_is() {
    for (path, text) in files(&["src", "tests"], &["rs"]) {
        assert!(text.starts_with("//!") || text.starts_with("#![doc"), "{path} does not open with `//!`");
    }
}

/// A constructor says nothing that its type does not.
#[test]
fn everything_public_says_what_it_is() {
    const KINDS: [&str; 7] = ["fn", "struct", "enum", "trait", "type", "const", "static"];
    let mut count = 0;
    for (path, text) in files(&["src"], &["rs"]) {
        let mut said = false;
        for line in text.lines().map(str::trim) {
            let mut words =
                line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| *word != "async");
            let (first, kind, name) =
                (words.next(), words.next().unwrap_or_default(), words.next().unwrap_or_default());
            if first == Some("pub") && line.starts_with("pub ") && KINDS.contains(&kind) && name != "new" {
                count += 1;
                assert!(said, "{path}: `{name}` is public and does not say what it is");
            }
            said = line.starts_with("///") || (said && (line.starts_with("#[") || line.ends_with(")]")));
        }
    }
    assert!(count > 500, "public things are not found: {count}");
}

#[test]
fn no_file_is_longer_than_a_person_reads() {
    for (path, text) in files(&["src", "flows", "tests"], &["rs", "lua", "luau"]) {
        let lines = text.lines().count();
        assert!(lines <= 600, "{path} has {lines} lines");
    }
}
