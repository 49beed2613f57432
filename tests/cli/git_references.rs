//! The promise: whatever a stranger's `.git` holds, a run reads and writes the references of the workspace's own repository,
//! and works on the objects that these name.

use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::json;

use super::git::run_in_tree;
use crate::support::env::Env;
use crate::support::git::{git, init};
use crate::support::process::Ended;

fn env() -> Env {
    let env = Env::new().file("a.txt", "one\n").file("flows/tree.lua", "");
    init(&env.workspace());
    env
}

/// Runs a flow's body, which knows what a call fails with.
fn run(env: &Env, body: &str) -> Ended {
    let source = format!(
        "local git = require('@nietz/git')\n\
         local function code(run, ...) local ok, err = pcall(run, ...) return if ok then 'ok' else err.code end\n\
         return require('@nietz').flow {{ name = 'tree', summary = 's', permissions = {{ git = true }},\n\
         run = function()\n{body}\nend }}\n"
    );
    env.write("flows/tree.lua", source);
    env.run(["tree"]).go()
}

const REFUSED: &str = "permission-refused";

#[test]
fn a_branch_that_is_another_name_of_something_is_not_moved() {
    for (to, there) in [("refs/heads/main", true), ("refs/heads/release", false), ("refs/tags/v9", false)] {
        let env = env();
        let work = env.workspace();
        git(&work, ["branch", "feature"]);
        env.write("b.txt", "more\n");
        git(&work, ["add", "-A"]);
        git(&work, ["commit", "-qm", "more"]);
        git(&work, ["checkout", "-q", "-b", "other"]);
        git(&work, ["symbolic-ref", "refs/heads/nietz/x", to]);
        let before = git(&work, ["for-each-ref"]);
        let result = run(
            &env,
            "return { code(git.branch, 'nietz/x', git.head().commit), code(git.delete_branch, 'nietz/x'),\n\
             code(git.merge, { from = 'feature', into = 'nietz/x', message = 'm' }),\n\
             code(git.worktree, { name = 'x', branch = 'nietz/x' }) }",
        )
        .result();
        let merge = if there { REFUSED } else { "git-failed" };
        assert_eq!(result, json!([REFUSED, REFUSED, merge, REFUSED]), "{to}");
        assert_eq!(git(&work, ["for-each-ref"]), before, "{to}");
    }
}

#[test]
fn nothing_is_written_through_links_in_a_git_folder() {
    let cases: [(&str, bool); 8] = [
        ("refs/heads/nietz", true),
        ("refs/heads/nietz/t", true),
        ("logs/refs/heads/nietz", true),
        ("logs/refs/heads/nietz/t", false),
        ("worktrees", true),
        ("logs", true),
        ("refs", true),
        ("packed-refs", false),
    ];
    for (way, is_folder) in cases {
        let env = env();
        let (link, target) = (env.path(".git").join(way), env.home().join("target"));
        std::fs::create_dir_all(link.parent().expect("it has one")).expect("a folder can be made");
        match std::fs::symlink_metadata(&link) {
            Ok(found) if found.is_dir() => std::fs::rename(&link, &target).expect("it can be moved"),
            _ if is_folder => std::fs::create_dir_all(&target).expect("a folder can be made"),
            _ => std::fs::write(&target, "").expect("it can be written"),
        }
        symlink(&target, &link).expect("a link can be made");
        let listed = || {
            walkdir::WalkDir::new(&target)
                .into_iter()
                .flatten()
                .map(|entry| (entry.path().to_owned(), entry.metadata().expect("it is there").len()))
                .collect::<Vec<_>>()
        };
        let before = listed();
        let ended = run_in_tree(&env, "tree:write('x', 'x')\nreturn tree:commit('x')").exits(5);
        assert_eq!(ended.failure(), REFUSED, "{way}");
        assert_eq!(listed(), before, "{way}");
    }
}

/// `nietz/main` is `main` there.
#[test]
fn a_folder_of_branches_that_is_another_is_no_way_to_its_branches() {
    let env = env();
    let work = env.workspace();
    git(&work, ["checkout", "-q", "--detach"]);
    symlink(".", env.path(".git/refs/heads/nietz")).expect("a link can be made");
    assert_eq!(run(&env, "return code(git.delete_branch, 'nietz/main')").result(), REFUSED);
    assert_ne!(git(&work, ["rev-parse", "refs/heads/main"]), "");
}

/// A repository beside the workspace, with something in it.
fn private(env: &Env) -> std::path::PathBuf {
    let folder = env.home().join("private");
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    std::fs::write(folder.join("secret.txt"), "secret\n").expect("it can be written");
    init(&folder);
    folder
}

#[test]
fn a_workspace_that_names_another_repository_is_not_taken_for_it() {
    type Lead<'a> = &'a dyn Fn(&Env, &Path);
    let ways: [(&str, Lead); 4] = [
        ("file", &|env, git| env.write(".git", format!("gitdir: {}\n", git.display()))),
        ("link", &|env, git| symlink(git, env.path(".git")).expect("a link can be made")),
        ("commondir", &|env, git| {
            env.write(".git/HEAD", "ref: refs/heads/main\n");
            env.write(".git/commondir", format!("{}\n", git.display()));
        }),
        ("refs", &|env, git| {
            init(&env.workspace());
            for name in ["refs", "objects"] {
                std::fs::remove_dir_all(env.path(&format!(".git/{name}"))).expect("it is there");
                symlink(git.join(name), env.path(&format!(".git/{name}"))).expect("a link can be made");
            }
        }),
    ];
    for (way, lead) in ways {
        let env = Env::new().file("a.txt", "one\n");
        let private = private(&env);
        lead(&env, &private.join(".git"));
        let before = git(&private, ["for-each-ref"]);
        let ended = run(&env, "return git.files(git.head().commit, '**')").exits(5);
        assert_eq!(ended.failure(), REFUSED, "{way}");
        assert!(!format!("{ended:?}").contains("secret.txt"), "{way}");
        assert_eq!(git(&private, ["for-each-ref"]), before, "{way}");
    }
}

#[test]
fn one_that_lies_elsewhere_and_knows_of_the_workspace_is() {
    type Make<'a> = &'a dyn Fn(&Env, &Path);
    let ways: [(&str, Make); 3] = [
        ("worktree", &|env, main| {
            std::fs::remove_dir(env.workspace()).expect("it is empty");
            git(main, ["worktree", "add", "-q", "-b", "side", &env.workspace().display().to_string()]);
        }),
        ("submodule", &|env, main| {
            std::fs::create_dir(main.join(".git/modules")).expect("a folder can be made");
            let module = main.join(".git/modules/sub").display().to_string();
            git(&env.workspace(), ["clone", "-q", "--separate-git-dir", &module, &main.display().to_string(), "."]);
            git(&env.workspace(), ["config", "core.worktree", "../../../../../work"]);
        }),
        ("told", &|env, main| {
            let elsewhere = env.home().join("elsewhere").display().to_string();
            git(&env.workspace(), ["clone", "-q", "--separate-git-dir", &elsewhere, &main.display().to_string(), "."]);
            let work = env.workspace().canonicalize().expect("it is there").display().to_string();
            let refused = run(env, "return git.head().commit").exits(5);
            let hint = format!("if they belong together: git --git-dir='{elsewhere}' config core.worktree '{work}'");
            assert_eq!(refused.ending()["failure"]["hint"], hint);
            git(&env.workspace(), ["--git-dir", &elsewhere, "config", "core.worktree", &work]);
            std::fs::remove_dir_all(env.path(".nietz")).expect("it is there");
        }),
    ];
    for (way, make) in ways {
        let env = Env::new();
        let main = private(&env);
        make(&env, &main);
        let ended = run_in_tree(&env, "tree:write('x', 'x')\nreturn tree:commit('x').changed");
        assert_eq!(ended.result(), json!(true), "{way}");
    }
}

#[test]
fn a_commit_holds_what_its_parent_holds_whatever_stands_in_for_that() {
    let env = env();
    let work = env.workspace();
    let real = git(&work, ["rev-parse", "HEAD"]);
    env.write("a.txt", "another\n");
    git(&work, ["add", "-A"]);
    let tree = git(&work, ["write-tree"]);
    let other = git(&work, ["commit-tree", &tree, "-m", "other"]);
    git(&work, ["reset", "-q", "--hard"]);
    git(&work, ["replace", &real, &other]);
    let ended = run_in_tree(&env, "tree:write('new', 'x')\nreturn { tree:read('a.txt'), tree:commit('x').commit }");
    let result = ended.result();
    assert_eq!(result[0], "one\n");
    let commit = result[1].as_str().expect("it was committed");
    let changed = git(&work, ["--no-replace-objects", "diff", "--name-only", &real, commit]);
    assert_eq!(changed, "new");
}

#[test]
fn a_history_is_the_one_that_commits_name() {
    let env = env();
    let work = env.workspace();
    git(&work, ["branch", "old"]);
    env.write("b.txt", "more\n");
    git(&work, ["add", "-A"]);
    git(&work, ["commit", "-qm", "more"]);
    let (old, new) = (git(&work, ["rev-parse", "old"]), git(&work, ["rev-parse", "main"]));
    env.write(".git/info/grafts", format!("{old} {new}\n"));
    let body = "git.branch('nietz/into', git.commit_of('old'))\n\
                return git.merge { from = 'main', into = 'nietz/into', message = 'm' }.commit";
    let merged = run(&env, body).result();
    let merged = merged.as_str().expect("it was merged");
    std::fs::remove_file(env.path(".git/info/grafts")).expect("it is there");
    assert_eq!(git(&work, ["show", &format!("{merged}:b.txt")]), "more");
}

#[test]
fn what_git_would_wait_for_is_refused() {
    for name in ["HEAD", "config", "packed-refs", "info/exclude", "info/sparse-checkout", "objects/info/alternates"] {
        let env = env();
        let path = env.path(".git").join(name);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("a folder can be made");
        let _ = std::fs::remove_file(&path);
        let made = std::process::Command::new("mkfifo").arg(&path).status().expect("it can be started");
        assert!(made.success());
        let ended = run_in_tree(&env, "return 1").exits(1);
        assert_eq!(ended.failure(), "git-failed", "{name}");
        let message = ended.ending()["failure"]["message"].to_string();
        assert!(message.contains(&format!("{name} is not a plain file")), "{message}");
    }
}
