//! The promise: what the user has told their git once counts for runs, too: where their home is, what they never commit,
//! which filters are theirs and how these find what they need. What fails for want of it can be put right and resumed.

use std::os::unix::fs::symlink;

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

/// Writes a file of the home.
fn home(env: &Env, path: &str, text: &str) {
    let path = env.home().join(path);
    std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder can be made");
    std::fs::write(path, text).expect("the home can be written");
}

/// Configures something for the user.
fn global(env: &Env, [name, value]: [&str; 2]) {
    let file = env.home().join(".gitconfig").display().to_string();
    git(&env.workspace(), ["config", "-f", &file, name, value]);
}

fn committed(env: &Env, path: &str) -> String {
    git(&env.workspace(), ["show", &format!("nietz/t:{path}")])
}

fn notices(ended: &Ended) -> String {
    ended.of_type("notice").iter().map(|notice| notice["text"].as_str().unwrap_or_default().to_owned() + "\n").collect()
}

fn worktrees(env: &Env) -> usize {
    git(&env.workspace(), ["worktree", "list"]).lines().count()
}

#[test]
fn a_home_that_is_reached_through_a_link_is_as_good_as_any() {
    let env = env();
    let link = env.home().with_file_name("link");
    symlink(env.home(), &link).expect("a link can be made");
    let env = env.var("NIETZ_HOME", &link.display().to_string()).var("HOME", &link.display().to_string());
    let ended = run_in_tree(
        &env,
        "tree:write('new.txt', 'x')\nsh('echo y > made.txt')\nlocal commit = tree:commit('x')\ntree:restore()\ntree:remove()\n\
         return git.changed(tree.start, commit.commit)",
    );
    assert_eq!(ended.result(), json!(["made.txt", "new.txt"]));
    assert_eq!(worktrees(&env), 1);
}

#[test]
fn what_the_user_ignores_everywhere_is_in_no_commit_and_no_search() {
    type Say<'a> = &'a dyn Fn(Env) -> Env;
    let patterns = ".venv/\n.env\n";
    let ways: [(&str, Say); 4] = [
        ("usual", &|env| {
            home(&env, ".config/git/ignore", patterns);
            env
        }),
        ("XDG_CONFIG_HOME", &|env| {
            home(&env, "xdg/git/ignore", patterns);
            let xdg = env.home().join("xdg").display().to_string();
            env.var("XDG_CONFIG_HOME", &xdg)
        }),
        ("core.excludesFile", &|env| {
            home(&env, "mine", patterns);
            global(&env, ["core.excludesFile", "~/mine"]);
            env
        }),
        ("the repository's own", &|env| {
            home(&env, "mine", "*.txt\n");
            home(&env, "theirs", patterns);
            global(&env, ["core.excludesFile", "~/mine"]);
            let theirs = env.home().join("theirs").display().to_string();
            git(&env.workspace(), ["config", "core.excludesFile", &theirs]);
            env
        }),
    ];
    for (way, say) in ways {
        let env = say(env());
        env.write(".env", "KEY=planted\n");
        let ended = run_in_tree(
            &env,
            "sh('mkdir .venv; echo x > .venv/x; echo y > new.txt; echo z > .env')\n\
             local found = tree:find('**').paths\nlocal commit = tree:commit('x').commit\n\
             return { found = found, changed = git.changed(tree.start, commit),\n\
               snapshot = git.changed(tree.start, git.snapshot().commit) }",
        );
        let expected = json!({
            "found": ["a.txt", "flows/tree.lua", "new.txt"], "changed": ["new.txt"], "snapshot": ["flows/tree.lua"]
        });
        assert_eq!(ended.result(), expected, "{way}");
    }
}

#[test]
fn attributes_of_the_user_are_those_of_their_own_git() {
    for (way, path) in [("usual", ".config/git/attributes"), ("core.attributesFile", "mine")] {
        let env = env();
        home(&env, path, "*.txt filter=f\n");
        if path == "mine" {
            global(&env, ["core.attributesFile", "~/mine"]);
        }
        global(&env, ["filter.f.clean", "tr a-z A-Z"]);
        // Whoever made the repository does not say where attributes are.
        let theirs = env.home().join("theirs").display().to_string();
        home(&env, "theirs", "");
        git(&env.workspace(), ["config", "core.attributesFile", &theirs]);
        let ended = run_in_tree(&env, "tree:write('new.txt', 'new\\n')\nreturn tree:commit('x').changed");
        assert_eq!(ended.result(), json!(true), "{way}");
        assert_eq!(committed(&env, "new.txt"), "NEW", "{way}");
        let told = "git runs the filter `f` of your own configuration, outside of the sandbox";
        assert!(notices(&ended).contains(told), "{way}: {ended:?}");
    }
}

/// Without a home a shell takes `~` for a name, and a model can write that.
#[test]
fn a_filter_of_the_user_finds_their_home_and_their_configuration() {
    let env = env().file(".gitattributes", "*.txt filter=f\n");
    git(&env.workspace(), ["add", "-A"]);
    git(&env.workspace(), ["commit", "-qm", "attributes"]);
    home(&env, "bin/strip.sh", "sed \"s|^|$(git config own.sign) $USER $XDG_CONFIG_HOME |\"\n");
    global(&env, ["filter.f.clean", "sh ~/bin/strip.sh"]);
    global(&env, ["own.sign", "signed"]);
    let ran = env.home().join("ran");
    let write = format!("tree:write('~/bin/strip.sh', \"touch '{}'; cat\\n\")\n", ran.display());
    let body = format!(
        "{write}tree:write('new.txt', 'new\\n')\nlocal changed = tree:commit('x').changed\ntree:remove()\nreturn changed"
    );
    let env = env.var("USER", "somebody").var("XDG_CONFIG_HOME", "/none");
    assert_eq!(run_in_tree(&env, &body).result(), json!(true));
    assert!(!ran.exists());
    assert_eq!(committed(&env, "new.txt"), "signed somebody /none new");
    // The user may keep their configuration elsewhere.
    let elsewhere = env.home().join("else where's").display().to_string();
    std::fs::rename(env.home().join(".gitconfig"), &elsewhere).expect("it is there");
    let env = env.var("GIT_CONFIG_GLOBAL", &elsewhere).var("NIETZ_RUN", "r2");
    git(&env.workspace(), ["branch", "-D", "nietz/t"]);
    let ended = run_in_tree(&env, "tree:write('b.txt', 'b\\n')\nreturn tree:commit('x').changed");
    assert_eq!(ended.result(), json!(true));
    assert_eq!(committed(&env, "b.txt"), "signed somebody /none b");
}

#[test]
fn a_run_goes_on_once_it_is_put_right_what_kept_files_from_being_made() {
    let env = env().file(".gitattributes", "*.txt filter=f\n");
    git(&env.workspace(), ["add", "-A"]);
    git(&env.workspace(), ["commit", "-qm", "attributes"]);
    global(&env, ["filter.f.smudge", "cat ~/server"]);
    global(&env, ["filter.f.required", "true"]);
    let failed = run_in_tree(&env, "return tree:read('a.txt')").exits(1);
    assert_eq!(failed.failure(), "git-failed");
    assert_eq!(worktrees(&env), 1, "what is half made is left");
    home(&env, "server", "served\n");
    assert_eq!(env.resume().go().result(), "served\n");
}

#[test]
fn a_filter_finds_the_keys_that_git_crypt_keeps_in_the_repository() {
    let env = env().file(".gitattributes", "*.txt filter=f\n").file(".git/git-crypt/keys/default", "key\n");
    git(&env.workspace(), ["add", "-A"]);
    git(&env.workspace(), ["commit", "-qm", "attributes"]);
    global(&env, ["filter.f.smudge", "cat \"$(git rev-parse --git-dir)\"/git-crypt/keys/default -"]);
    let ended = run_in_tree(&env, "local text = tree:read('a.txt')\ntree:remove { discard = true }\nreturn text");
    assert_eq!(ended.result(), "key\none\n");
    assert_eq!(env.read(".git/git-crypt/keys/default"), "key\n");
}

#[test]
fn filters_that_are_not_run_are_told_as_lines_to_copy() {
    let hint = |values: &[(&str, &str)]| {
        let env = env().file(".gitattributes", "*.txt filter=f\n*.bin filter=lfs\n").file("b.bin", "");
        git(&env.workspace(), ["add", "-A"]);
        git(&env.workspace(), ["commit", "-qm", "attributes"]);
        for (name, value) in values {
            git(&env.workspace(), ["config", name, value]);
        }
        let ended = run_in_tree(&env, "return 1");
        let hint = ended.ending()["failure"]["hint"].as_str().unwrap_or_default().to_owned();
        let told = notices(&ended) + &hint;
        told.split_once("put it into your own").map(|(_, how)| how.trim_end().to_owned()).unwrap_or(told)
    };
    assert_eq!(
        hint(&[("filter.f.smudge", "it's \"x\" %f"), ("filter.f.clean", "cat"), ("filter.f.required", "true")]),
        ":\ngit config --global filter.f.clean cat\ngit config --global filter.f.smudge 'it'\\''s \"x\" %f'\n\
         git config --global filter.f.required true"
    );
    assert_eq!(
        hint(&[("filter.lfs.clean", "git-lfs clean -- %f"), ("filter.lfs.required", "true")]),
        ": git lfs install"
    );
    // What cannot be shown as it is, is not to be copied.
    assert_eq!(hint(&[("filter.f.clean", "cat\u{1b}[2J")]), ": git config --global filter.f.clean …");
}

#[test]
fn submodules_are_told_to_be_missing() {
    let env = env().file(".gitmodules", "[submodule \"lib\"]\n\tpath = vendor/lib\n\turl = ../lib\n");
    let work = env.workspace();
    let commit = git(&work, ["rev-parse", "HEAD"]);
    git(&work, ["add", "-A"]);
    git(&work, ["update-index", "--add", "--cacheinfo", &format!("160000,{commit},vendor/lib")]);
    git(&work, ["commit", "-qm", "submodule"]);
    let ended = run_in_tree(
        &env,
        "tree:write('x', 'x')\nlocal commit = tree:commit('x')\nreturn git.changed(tree.start, commit.commit)",
    );
    assert_eq!(ended.result(), json!(["x"]));
    let told = notices(&ended);
    assert_eq!(
        told.matches("submodules are not in worktrees, their folders are empty: `vendor/lib`").count(),
        1,
        "{told}"
    );
}
