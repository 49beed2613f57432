//! Scripts in Luau that test the modules of bundled flows: each file here runs as a flow of its own, as a stranger would
//! run it, in a workspace that has a copy of `flows/`. A script passes when it raises nothing.

use std::path::{Path, PathBuf};

use crate::support::env::Env;

/// Runs a script as the body of a flow and returns what the program said when it failed.
fn failure_of(source: &str) -> Option<String> {
    let mut env = Env::new();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    for entry in walkdir::WalkDir::new(repository.join("flows")) {
        let entry = entry.expect("flows can be listed");
        if entry.file_type().is_file() {
            let below = entry.path().strip_prefix(repository).expect("it is below").to_str().expect("UTF-8");
            env = env.file(below, std::fs::read(entry.path()).expect("a flow can be read"));
        }
    }
    // On one line, so that the lines of errors are those of the script. A debug build on a busy machine is slow.
    let head = "return require('@nietz').flow { name = 'script', summary = 'A test', limits = { seconds = 30 }, run = function()";
    let body = source.replace("(\"./flows/", "(\"./");
    let env = env.flow("script", &format!("{head} {body}\nend }}\n"));
    let ended = env.nietz(["run", "script"]).go();
    (ended.code != Some(0)).then(|| format!("{}{}", ended.stdout, ended.stderr))
}

#[test]
fn every_script_beside_this_file_passes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api");
    let mut scripts: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "luau"))
        .collect();
    scripts.sort();
    assert!(scripts.len() >= 6, "scripts were forgotten: {scripts:?}");
    let failed: Vec<String> = scripts
        .iter()
        .filter_map(|path| {
            let source = std::fs::read_to_string(path).expect("a script is text");
            failure_of(&source).map(|why| format!("{}: {why}", path.display()))
        })
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn a_script_that_is_wrong_fails() {
    assert!(failure_of("assert(1 == 2)").is_some());
}
