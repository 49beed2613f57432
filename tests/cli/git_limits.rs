//! The promise: no call of git goes on for ever or fills the memory, and no program is looked for in a folder that a
//! checkout or a model fills.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::git::run_in_tree;
use crate::support::env::Env;
use crate::support::git::init;

fn env() -> Env {
    let env = Env::new().file("a.txt", "one\n").file("flows/tree.lua", "");
    init(&env.workspace());
    env
}

const TREE: &str = "local git = require('@nietz/git')\n\
     return require('@nietz').flow { name = 'tree', summary = 's', permissions = { git = true }, run = function()\n\
     git.branch('nietz/t', git.head().commit)\n\
     return git.worktree({ name = 't', branch = 'nietz/t' }):commit('x').changed end }\n";

fn program(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder can be made");
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).expect("it can be written");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
}

/// A git that does something else where it lists files.
fn listing(env: Env, instead: &str) -> Env {
    let bin = env.home().join("bin");
    let text = format!("case \"$*\" in *ls-files*) {instead};; esac\nexec /usr/bin/git \"$@\"");
    program(&bin.join("git"), &text);
    let path = format!("{}:/usr/bin:/bin", bin.display());
    env.var("PATH", &path)
}

#[test]
fn a_git_that_does_not_end_is_ended_and_told() {
    let env = listing(env().config("git: {seconds: 1}\n"), "sleep 600 & wait");
    let ended = run_in_tree(&env, "return tree:commit('x').changed").exits(1);
    assert_eq!(ended.failure(), "git-failed");
    let failure = ended.ending()["failure"].clone();
    assert_eq!(failure["message"], "git ls-files took longer than 1 s, and was ended");
    let hint = "run `git ls-files` there yourself to see why; `git.seconds` in config.yaml allows more";
    assert_eq!(failure["hint"], hint);
}

#[test]
fn a_git_that_writes_without_end_is_ended_and_told() {
    let env = listing(env().config("git: {megabytes: 2}\n"), "exec yes");
    let ended = run_in_tree(&env, "return tree:commit('x').changed").exits(1);
    assert_eq!(ended.ending()["failure"]["message"], "git ls-files wrote more than 2 MB, and was ended");
}

/// Who asks twice wants an end of it all.
#[test]
fn a_git_that_hangs_is_over_when_the_run_was_asked_twice_to_end() {
    let env = env();
    let note = env.home().join("git");
    let env = listing(env, &format!("sleep 600 & echo $! > '{}'; wait", note.display()));
    env.write("flows/tree.lua", TREE);
    let mut running = env.run(["tree"]).spawn();
    let hanging = || std::fs::read_to_string(&note).ok().filter(|text| text.ends_with('\n'));
    running.until(|| hanging().is_some());
    // Two of a kind may come as one.
    running.interrupt();
    running.terminate();
    running.end().exits(130);
    let id = hanging().expect("it was written");
    let state = std::fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
    // One that nobody has waited for is over, too.
    assert!(state.is_empty() || state.contains(") Z "), "{state}");
}

#[test]
fn of_a_patch_only_what_a_flow_gets_is_read() {
    let env = env().config("git: {megabytes: 1}\n");
    let write = "sh('yes | head -c 6000000 > long.txt')\nlocal commit = tree:commit('long').commit\n";
    let ended = run_in_tree(
        &env,
        &format!("{write}local diff = git.diff(tree.start, commit)\nreturn {{ #diff.patch, diff.cut }}"),
    );
    assert_eq!(ended.result(), serde_json::json!([256 << 10, true]));
}

#[test]
fn no_program_is_looked_for_in_the_current_folder_or_in_a_worktree() {
    let ran = |env: &Env, name: &str| env.home().join(name);
    for path in
        [".:/usr/bin:/bin", ":/usr/bin:/bin", "bin:/usr/bin:/bin", "/usr/bin:/bin:", "../work/bin:/usr/bin:/bin"]
    {
        let env = env().var("PATH", path).var("OPENAI_API_KEY", "");
        for name in ["git", "sh", "theirs"] {
            let text = format!("touch '{}'\nPATH=/usr/bin:/bin exec {name} \"$@\"", ran(&env, name).display());
            program(&env.path(name), &text);
            program(&env.path(&format!("bin/{name}")), &text);
        }
        init(&env.workspace());
        run_in_tree(&env, "tree:write('x', 'x')\nsh('true')\nreturn tree:commit('x').changed").exits(0);
        for name in ["git", "sh"] {
            assert!(!ran(&env, name).exists(), "{path}: {name}");
        }
    }
}

/// The command is the user's own; the folder that `nietz` was started in is not.
#[test]
fn a_key_command_means_nothing_of_the_folder_that_it_is_started_in() {
    for command in ["[theirs]", "[./theirs]", "[sh, theirs]", "[sh, -c, ./theirs]"] {
        let config = format!(
            "models: {{retry: {{attempts: 1}}, providers: {{own: {{base_url: 'http://127.0.0.1:1/v1', key_command: {command}}}}}}}\n"
        );
        let env = Env::new().var("PATH", ".:/usr/bin:/bin").config(&config);
        let ran = env.home().join("ran");
        program(&env.path("theirs"), &format!("touch '{}'; echo key", ran.display()));
        let env = env.flow(
            "ask",
            "return require('@nietz').flow { name = 'ask', summary = 's', permissions = { llm = true },\n\
             run = function() return require('@nietz/llm').chat { prompt = 'x' }.text end }\n",
        );
        let ended = env.run_on("own/m", ["ask"]).go().exits(1);
        assert!(!ran.exists(), "{command}");
        assert_eq!(ended.failure(), "key-missing", "{command}: {ended:?}");
        // What stands in the home is meant.
        if command.contains("./theirs") {
            program(&env.home().join("theirs"), &format!("touch '{}'; echo key", ran.display()));
            let env = env.var("NIETZ_RUN", "r2");
            env.run_on("own/m", ["ask"]).go();
            assert!(ran.exists(), "{command}");
        }
    }
}
