//! The promise: a flow works in the repository without touching anything of the user's, and a crash neither loses
//! nor repeats what git was asked for.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::env::Env;
use crate::support::git::{git, init};
use crate::support::kills;
use crate::support::process::Ended;

const FLOW: &str = include_str!("../support/flows/repository.lua");

fn env() -> Env {
    let env = Env::new()
        .flow("repository", FLOW)
        .file("README", "read me\n")
        .file("src/a.txt", "one\ntwo\nthree\n")
        .file("tests/t.txt", "test\n")
        .file(".gitignore", "*.o\n.nietz\n");
    init(&env.workspace());
    env
}

/// What git has of the user's and of the run's: all refs, the checkout, the index, stashes, worktrees.
fn state(env: &Env) -> Value {
    let work = env.workspace();
    let ask = |arguments: &[&str]| git(&work, arguments.iter().copied());
    json!({
        "refs": ask(&["for-each-ref"]), "status": ask(&["status", "--porcelain"]), "index": ask(&["ls-files", "-s"]),
        "stash": ask(&["stash", "list"]), "worktrees": ask(&["worktree", "list"]).lines().count(),
        "config": env.read(".git/config"), "files": env.documents().keys().filter(|path| !path.starts_with(".git/")).cloned().collect::<Vec<_>>(),
    })
}

#[test]
fn everything_works_and_nothing_of_the_user_s_is_touched() {
    let env = env();
    let work = env.workspace();
    // Something staged, something changed, something new, something stashed; hooks and signing that would fail.
    env.write("src/a.txt", "stashed\n");
    git(&work, ["stash", "-q"]);
    env.write("README", "staged\n");
    git(&work, ["add", "README"]);
    env.write("README", "changed\n");
    env.write("new.txt", "new\n");
    for hook in ["pre-commit", "post-checkout", "reference-transaction", "post-merge", "commit-msg", "post-commit"] {
        env.write(
            &format!(".git/hooks/{hook}"),
            format!("#!/bin/sh\necho {hook} >> '{}/hooked'\nexit 1\n", work.display()),
        );
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(env.path(&format!(".git/hooks/{hook}")), mode).unwrap();
    }
    git(&work, ["config", "commit.gpgSign", "true"]);
    git(&work, ["config", "core.fsmonitor", "false"]);
    let before = state(&env);
    let result = env.run(["repository"]).go().result();
    let after = state(&env);
    for what in ["status", "index", "stash", "worktrees", "config", "files"] {
        assert_eq!(after[what], before[what], "{what}");
    }
    let others = |refs: &Value| refs.as_str().unwrap().lines().filter(|line| !line.contains("/nietz/")).count();
    assert_eq!(others(&after["refs"]), others(&before["refs"]));

    assert_eq!(result["left"], json!({ "line": 2, "changed": true, "again": false }));
    assert_eq!(result["merged"], json!({ "first": true, "again": true }));
    assert_eq!(result["conflict"]["conflicts"], json!(["src/a.txt"]));
    assert_eq!(result["conflict"]["commit"], "none");
    assert!(result["conflict"]["messages"][0].as_str().unwrap().contains("Merge conflict in src/a.txt"), "{result}");
    assert_eq!(result["changed"], json!(["README", "made.txt", "src/a.txt", "src/new/left.txt"]));
    assert!(result["patch"].as_str().unwrap().contains("+right and right"));
    assert_eq!(result["touched"], json!(["tests/more.txt", "tests/t.txt"]));
    let found: Vec<String> = serde_json::from_value(result["restored"]["found"].clone()).unwrap();
    assert!(!found.iter().any(|path| ["dirt", "tests/more.txt", "b.o"].contains(&path.as_str())), "{found:?}");
    assert_eq!(result["restored"]["text"], "one\nright and right\nthree\n");
    assert_eq!(result["restored"]["test"], "test\n");
    let failed = "git-failed";
    assert_eq!(
        result["refused"],
        json!({ "dirty": failed, "twice": failed, "theirs": "permission-refused", "moved": "permission-refused",
            "used": failed, "absent": failed, "name": "request-invalid", "gone": failed })
    );
    let merge = git(&work, ["log", "-1", "--format=%an %ae %s %P", "nietz/base"]);
    assert!(merge.starts_with("nietz nietz@localhost merge left ") && merge.split(' ').count() == 6, "{merge}");
    assert_eq!(git(&work, ["show", "nietz/left:made.txt"]), "made");
    assert_eq!(git(&work, ["fsck", "--strict", "--no-dangling"]), "");
}

#[test]
fn a_run_killed_after_any_line_comes_to_the_same_commits() {
    let reference = env();
    let result = reference.run(["repository"]).go().result();
    let refs = state(&reference);
    let lines = reference.journal().lines.len() as u64;
    kills::for_each(&kills::points(lines, 8), |line| {
        let env = env();
        let killed = env.run(["repository"]).var("NIETZ_FAULT", &format!("kill@{line}")).go();
        assert_eq!(killed.signal, Some(9), "line {line}");
        let ended = env.resume().go();
        assert_eq!(ended.result(), result, "killed after line {line}");
        assert_eq!(state(&env), refs, "killed after line {line}");
    });
}

/// What git did and nobody noted is looked for, and not done again.
#[test]
fn a_run_that_cannot_note_what_git_did_comes_to_the_same_commits() {
    let reference = env();
    let result = reference.run(["repository"]).go().result();
    let refs = state(&reference);
    let journal = reference.journal();
    let is = |line: &Value, what: &str| line["is"].get(what).cloned();
    // Of what changes something; the rest is asked again.
    let asked =
        |key: &Value| journal.lines.iter().filter_map(|line| is(line, "intent")).find(|intent| intent["key"] == *key);
    let changes = |line: &&Value| {
        let request =
            is(line, "outcome").and_then(|outcome| asked(&outcome["key"])).map(|intent| intent["request"].clone());
        let op =
            request.as_ref().map(|request| request["op"].as_str().or(request["op"]["op"].as_str()).unwrap_or_default());
        op.is_some_and(|op| ["branch", "worktree", "commit", "merge", "replace", "remove", "delete"].contains(&op))
    };
    let lines: Vec<u64> = journal.lines.iter().filter(changes).filter_map(|line| line["seq"].as_u64()).collect();
    assert!(lines.len() > 5, "what changes something is not found: {lines:?}");
    kills::for_each(&lines, |line| {
        let env = env();
        env.run(["repository"]).var("NIETZ_FAULT", &format!("full@{line}")).go().exits(1);
        let ended = env.resume().go();
        assert_eq!(ended.result(), result, "line {line} was lost");
        assert_eq!(state(&env), refs, "line {line} was lost");
    });
}

/// Runs a flow's body with a worktree `tree` in it, and returns what it returns.
#[track_caller]
fn in_tree(env: Env, body: &str) -> Value {
    run_in_tree(&env, body).result()
}

/// Runs a flow's body with a worktree `tree` in it.
pub(super) fn run_in_tree(env: &Env, body: &str) -> Ended {
    let source = format!(
        "local git = require('@nietz/git')\n\
         local function code(run, ...) local ok, err = pcall(run, ...) return if ok then 'ok' else err.code end\n\
         return require('@nietz').flow {{ name = 'tree', summary = 's', permissions = {{ git = true, exec = {{ 'sh' }} }},\n\
         run = function()\n\
         git.branch('nietz/t', git.head().commit)\n\
         local tree = git.worktree {{ name = 't', branch = 'nietz/t' }}\n\
         local function sh(text) return tree:exec {{ program = {{ 'sh', '-c', text }} }} end\n{body}\nend }}\n"
    );
    env.write("flows/tree.lua", source);
    env.run(["tree"]).go()
}

#[test]
fn paths_cannot_leave_the_worktree() {
    let result = in_tree(
        env(),
        "sh('ln -s /etc/hostname out; ln -s / root; ln -s src in; ln -s .. up; mkfifo pipe; ln -s out chain')\n\
         local codes = {}\n\
         for _, path in { '../x', '/etc/hostname', 'src/../../x', 'out', 'root/etc/hostname', 'up/x', 'chain', '.git',\n\
           'src/.GIT/config', 'pipe', '', 'nowhere', 'src', 'src/a.txt/x' } do\n\
           table.insert(codes, code(tree.read, tree, path) .. ' ' .. code(tree.write, tree, path, 'x'))\n\
         end\n\
         return { codes = codes, inside = tree:read('in/a.txt'), link = code(tree.write, tree, 'in/b.txt', 'x'),\n\
           list = code(tree.list, tree, 'root') }",
    );
    let (out, no) = ("path-refused", "request-invalid");
    let both = |read: &str, write: &str| format!("{read} {write}");
    assert_eq!(
        result["codes"],
        json!([
            both(out, out),
            both(out, out),
            both(out, out),
            both(out, out),
            both(out, out),
            both(out, out),
            both(out, out),
            both(out, out),
            both(out, out),
            both(no, no),
            both(out, out),
            both(no, "ok"),
            both(no, no),
            both(no, no)
        ])
    );
    assert_eq!(result["inside"], "one\ntwo\nthree\n");
    assert_eq!((&result["link"], &result["list"]), (&json!(out), &json!(out)));
}

#[test]
fn what_a_command_puts_into_a_worktree_does_not_lead_git_astray() {
    let env = env();
    let evil = env.home().join("evil").display().to_string();
    let result = in_tree(
        env,
        &format!(
            "sh([[\n\
             mkdir sub && cd sub && git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x\n\
             printf '[core]\\n\\tfsmonitor = \"touch {evil}\"\\n' >> .git/config\n\
             cd .. && rm -f .git && git init -q . && printf '[core]\\n\\tfsmonitor = \"touch {evil}\"\\n' >> .git/config\n\
             printf '#!/bin/sh\\ntouch {evil}\\n' > .git/hooks/post-checkout; chmod +x .git/hooks/*\n\
             echo 'x filter=evil diff=evil' > .gitattributes; echo y > x; echo new > kept.txt\n\
             ]])\n\
             local commit = tree:commit('all')\n\
             tree:restore()\n\
             local diff = git.changed(tree.start, commit.commit)\n\
             local same = git.commit_of('nietz/t') == commit.commit\n\
             tree:remove()\n\
             return {{ diff = diff, same = same }}"
        ),
    );
    assert_eq!(result, json!({ "diff": [".gitattributes", "kept.txt", "x"], "same": true }));
    assert!(!Path::new(&evil).exists());
}

#[test]
fn where_there_is_no_repository_it_is_said() {
    for (prepare, part, hint) in [
        (Box::new(|_: &Path| {}) as Box<dyn Fn(&Path)>, "not the top folder of a git repository", "git init"),
        (Box::new(|path: &Path| drop(git(path, ["init", "-q"]))), "no commit to start from", "commit"),
    ] {
        let env = Env::new().flow("repository", FLOW);
        prepare(&env.workspace());
        let ended = env.run(["repository"]).go().exits(1);
        assert_eq!(ended.failure(), "git-missing");
        assert!(ended.ending()["failure"]["message"].as_str().unwrap().contains(part), "{ended:?}");
        assert!(ended.ending()["failure"]["hint"].as_str().unwrap().contains(hint), "{ended:?}");
    }
    // A folder inside of a repository is not taken for it.
    let env = self::env();
    let below = env.nietz(["-C", "src", "run", "--json", "../flows/repository.lua"]).go();
    assert_eq!(below.failure(), "git-missing", "{below:?}");
}

#[test]
fn an_old_git_is_named() {
    let env = env();
    let bin = env.home().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::write(bin.join("git"), "#!/bin/sh\necho git version 2.37.1\n").unwrap();
    std::fs::set_permissions(bin.join("git"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let ended = env.var("PATH", &path).run(["repository"]).go().exits(1);
    assert!(
        ended.ending()["failure"]["message"]
            .as_str()
            .unwrap()
            .contains("2.38 or newer is needed, found git version 2.37.1")
    );
}
