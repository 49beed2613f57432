//! The promise: what keeps a command from running here is told before the first call of a model, as what it is, and is
//! never taken for a failure that a model could mend.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::support::env::Env;
use crate::support::git::{git, init};
use crate::support::model_server::{ModelServer, Response};

/// Has both modes run a command that cannot run, each in a project of its own; neither asks a model.
fn is_refused(make: impl Fn(Env) -> Env, command: &str, why: &str) {
    let server = ModelServer::start(|_| Response::text("never"));
    let env = make(Env::with(&server));
    let ended = env.run(["shots-on-goal", "--validate", command, "make it better"]).go().exits(2);
    assert_eq!(ended.ending()["failure"]["message"], format!("`{command}` cannot run here: {why}"), "{ended:?}");
    assert_eq!(git(&env.workspace(), ["branch", "--list", "nietz/*"]), "", "nothing is left of it");
    let env = make(Env::with(&server));
    let ended = env.run(["debug-memory", "--test", command]).go();
    let result = ended.ending()["result"].clone();
    assert_eq!(result["status"], "escalated", "{ended:?}");
    assert_eq!(result["reason"], format!("cannot_run: the tests cannot run here: {why}"), "{ended:?}");
    assert_eq!(server.calls(), 0, "{command}");
}

fn committed(env: Env) -> Env {
    init(&env.workspace());
    env
}

fn executable(env: Env, path: &str, text: &str) -> Env {
    let env = env.file(path, text);
    std::fs::set_permissions(env.path(path), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    env
}

#[test]
fn a_program_that_is_not_there_is_named() {
    is_refused(committed, "testrunner-of-none -q", "`testrunner-of-none` is not found");
    is_refused(
        |env| committed(env.file("check.sh", "testrunner-of-none\n")),
        "sh check.sh",
        "`testrunner-of-none` is not found",
    );
}

#[test]
fn an_interpreter_that_is_not_there_is_named_with_its_script() {
    is_refused(
        |env| committed(executable(env, "run.sh", "#!/opt/none/python9\nprint(1)\n")),
        "./run.sh",
        "`/opt/none/python9`, which is to run `./run.sh`, is not found",
    );
    is_refused(
        |env| committed(executable(env, "run.sh", "#!/usr/bin/env python9\nprint(1)\n")),
        "./run.sh",
        "`python9` is not found",
    );
}

#[test]
fn a_submodule_that_is_empty_is_named() {
    let make = |env: Env| {
        let env = env.file("a.txt", "a\n");
        let library = env.home().join("library");
        std::fs::create_dir_all(&library).expect("a folder can be made");
        std::fs::write(library.join("data.txt"), "data\n").expect("it can be written");
        init(&library);
        let env = committed(env);
        let from = format!("file://{}", library.display());
        git(
            &env.workspace(),
            ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &from, "vendor/library"],
        );
        git(&env.workspace(), ["commit", "-qm", "a library"]);
        env
    };
    is_refused(make, "cat vendor/library/data.txt", "submodules are not in worktrees: `vendor/library`");
}

#[test]
fn a_pointer_of_git_lfs_in_the_place_of_a_file_is_named() {
    // As git-lfs leaves it where it is not installed.
    let pointer = "version https://git-lfs.github.com/spec/v1\n\
                   oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";
    let check = "grep -q MAGIC data.bin || { echo 'data.bin: bad magic number'; exit 1; }\n";
    is_refused(
        |env| {
            let env =
                env.file(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n").file("data.bin", pointer);
            committed(env.file("check.sh", check))
        },
        "sh check.sh",
        "`data.bin` is here as a pointer of git-lfs, and not as the file: `git lfs install` makes git fetch it",
    );
}

#[test]
fn a_sparse_checkout_without_what_the_command_names_is_told() {
    let make = |env: Env| {
        let origin = env.home().join("origin");
        std::fs::create_dir_all(origin.join("tests")).expect("a folder can be made");
        std::fs::write(origin.join("a.txt"), "a\n").expect("it can be written");
        std::fs::write(origin.join("tests/b.txt"), "b\n").expect("it can be written");
        init(&origin);
        git(&origin, ["config", "uploadpack.allowFilter", "true"]);
        let from = format!("file://{}", origin.display());
        git(&env.workspace(), ["clone", "-q", "--filter=blob:none", "--sparse", &from, "."]);
        std::fs::rename(&origin, env.home().join("away")).expect("it is ours");
        env
    };
    is_refused(
        make,
        "cat tests/b.txt",
        "`tests/b.txt` is not in this sparse checkout: `git sparse-checkout add tests/b.txt` fetches it",
    );
}

#[test]
fn packages_of_node_that_nobody_has_installed_are_told_with_what_installs_them() {
    if !std::path::Path::new("/usr/bin/npm").exists() {
        return;
    }
    let package =
        json!({ "name": "a", "scripts": { "test": "jest" }, "devDependencies": { "jest": "^29.0.0" } }).to_string();
    let hint = "; package.json has dependencies, and there is no `node_modules`: --setup \"npm install\" installs them";
    let make = |env: Env| committed(env.file("package.json", &package).file("a.js", "require('jest');\n"));
    is_refused(make, "npm test", &format!("`jest` is not found{hint}"));
    is_refused(make, "node a.js", &format!("Node finds no module `jest`{hint}"));
}

#[test]
fn what_stands_beside_the_repository_is_named() {
    let beside = |env: Env| {
        let env = env.file(
            "check.py",
            "import os\nprint(open(os.path.realpath('../other/value.txt')).read())\nraise SystemExit(1)\n",
        );
        let other = env.workspace().join("../other");
        std::fs::create_dir_all(&other).expect("it is ours");
        std::fs::write(other.join("value.txt"), "it is there\n").expect("it is ours");
        env
    };
    let why = "`../other` is outside of the repository, and a worktree has only what is in it";
    is_refused(|env| committed(beside(env)), "python3 check.py", why);
    // Where a worktree stands in the project's own place, too.
    let with_packages = |env: Env| {
        let env = committed(beside(env.file(".gitignore", "node_modules\n").file("package.json", "{}")));
        env.file("node_modules/a/index.js", "")
    };
    is_refused(with_packages, "python3 check.py", why);
}

#[test]
fn what_the_goal_is_to_make_is_not_missing() {
    for (command, goal) in [("./made.sh", "write a script"), ("made-tool --version", "write the command made-tool")] {
        let server = ModelServer::start(|_| Response::text("I would rather not.").usage(10, 5));
        let env = committed(Env::with(&server));
        env.run(["shots-on-goal", "--max-breakdowns", "0", "--validate", command, goal]).go().exits(8);
        assert!(server.calls() > 0, "{command}");
    }
}
