//! The promise: nothing that a repository's configuration names is run outside of the sandbox, nothing of nietz's own
//! comes out of a worktree, and a repository of somebody else is used only where the user has said so to git.

use std::path::Path;

use serde_json::json;

use super::git::run_in_tree;
use crate::support::env::Env;
use crate::support::git::{git, init};
use crate::support::process::Ended;

/// A repository whose texts have the filter `f`.
fn env() -> Env {
    let env = Env::new().file("a.txt", "one\n").file(".gitattributes", "*.txt filter=f\n").file("flows/tree.lua", "");
    init(&env.workspace());
    env
}

fn config<'a>(env: &Env, arguments: impl IntoIterator<Item = &'a str>) {
    git(&env.workspace(), ["config"].into_iter().chain(arguments));
}

/// A filter that shows that it ran, in the home.
fn filter(env: &Env, name: &str) -> String {
    format!("sh -c \"touch '{}'; tr a-z, A-Z,\"", env.home().join(name).display())
}

/// Configures a command.
type Configure<'a> = &'a dyn Fn(&Env, &str);

fn notices(ended: &Ended) -> String {
    ended.of_type("notice").iter().map(|notice| notice["text"].as_str().unwrap_or_default().to_owned() + "\n").collect()
}

/// Everything that a worktree is used for, with a new text in it.
const WORK: &str = "tree:write('new.txt', 'new\\n')\n\
                    local commit = tree:commit('new').commit\n\
                    sh('echo dirt > a.txt')\n\
                    tree:restore({ from = tree.start, globs = { 'a.txt' } })\n\
                    local text = tree:read('a.txt')\n\
                    git.branch('nietz/into', tree.start)\n\
                    local merged = git.merge { from = 'nietz/t', into = 'nietz/into', message = 'm' }\n\
                    local now = git.snapshot().commit\n\
                    tree:remove()\n\
                    return { text = text, commit = commit, merged = merged.commit }";

#[test]
fn filters_of_a_repository_are_not_run() {
    let where_git_looks: [(&str, Configure); 6] = [
        ("smudge", &|env, command| config(env, ["filter.f.smudge", command])),
        ("clean", &|env, command| config(env, ["filter.f.clean", command])),
        ("process", &|env, command| config(env, ["filter.f.process", command])),
        ("include", &|env, command| {
            config(env, ["-f", ".git/more", "filter.f.smudge", command]);
            config(env, ["include.path", "more"]);
        }),
        ("config.worktree", &|env, command| {
            config(env, ["extensions.worktreeConfig", "true"]);
            config(env, ["--worktree", "filter.f.clean", command]);
        }),
        // What is configured for worktrees alone is seen nowhere else.
        ("includeIf", &|env, command| {
            config(env, ["-f", ".git/more", "filter.f.smudge", command]);
            config(env, ["includeIf.gitdir:**/worktrees/**.path", "more"]);
        }),
    ];
    for (kind, set) in where_git_looks {
        let env = env();
        set(&env, &filter(&env, "ran"));
        let ended = run_in_tree(&env, WORK);
        let result = ended.result();
        assert!(!env.home().join("ran").exists(), "{kind}");
        assert_eq!(result["text"], "one\n", "{kind}");
        let commit = result["commit"].as_str().expect("it was committed");
        assert_eq!(git(&env.workspace(), ["show", &format!("{commit}:new.txt")]), "new", "{kind}");
        let told = notices(&ended);
        assert_eq!(
            told.matches("the filter `f` of the repository's configuration is not run").count(),
            1,
            "{kind}: {told}"
        );
        assert!(told.contains("\ngit config --global filter.f."), "{kind}: {told}");
    }
}

#[test]
fn a_filter_whose_command_is_a_file_of_the_worktree_runs_no_models_version() {
    let env = env().file("tools/strip.sh", "cat\n");
    git(&env.workspace(), ["add", "-A"]);
    git(&env.workspace(), ["commit", "-qm", "tools"]);
    config(&env, ["filter.f.clean", "sh tools/strip.sh"]);
    let ran = env.home().join("ran");
    let write = format!("tree:write('tools/strip.sh', \"touch '{}'; cat\\n\")\n", ran.display());
    run_in_tree(&env, &format!("{write}tree:write('a.txt', 'two\\n')\nreturn tree:commit('x').changed")).exits(0);
    assert!(!ran.exists());
}

#[test]
fn a_filter_of_the_users_own_configuration_is_run_as_it_stands_there() {
    let env = env();
    let own = filter(&env, "own");
    std::fs::write(env.home().join(".gitconfig"), "").expect("the home can be written");
    let global = env.home().join(".gitconfig").display().to_string();
    config(&env, ["-f", &global, "filter.f.clean", &own]);
    config(&env, ["-f", &global, "filter.unused.clean", "false"]);
    // The repository has the same name for something else.
    config(&env, ["filter.f.clean", &filter(&env, "theirs")]);
    config(&env, ["filter.f.smudge", &filter(&env, "theirs")]);
    let ended = run_in_tree(&env, WORK);
    let commit = ended.result()["commit"].as_str().expect("it was committed").to_owned();
    assert_eq!(git(&env.workspace(), ["show", &format!("{commit}:new.txt")]), "NEW");
    assert!(env.home().join("own").exists() && !env.home().join("theirs").exists());
    let told = notices(&ended);
    assert_eq!(
        told.matches("git runs the filter `f` of your own configuration, outside of the sandbox").count(),
        1,
        "{told}"
    );
    assert!(!told.contains("unused"), "{told}");
}

/// What is trusted is the command, word for word: another one of that name is asked about anew, also in a folder that is
/// trusted with all that it asks for.
#[test]
fn a_filter_of_a_repository_is_run_when_the_user_trusts_its_command() {
    let env = env().trusting("git, exec=sh");
    config(&env, ["filter.f.clean", &filter(&env, "ran")]);
    // Whoever trusts a folder with what its flows ask for has not read this command: it is told, and not given.
    let told = env.nietz(["trust", "add", "."]).go().exits(0).stdout;
    assert!(told.contains("not trusted: it has git run `sh -c"), "{told}");
    let left = env.nietz(["trust", "list"]).go().stdout;
    assert!(!left.contains("has git run"), "{left}");
    let line = told.lines().find_map(|line| line.split_once("if you trust this command: ")).expect("it is told how").1;
    env.nietz([]).by("sh", ["-c", &line.replacen("nietz", "exec \"$0\"", 1)]).go().exits(0);
    let listed = env.nietz(["trust", "list"]).go().stdout;
    assert!(listed.contains("has git run `sh -c") && listed.contains("as filter.f.clean"), "{listed}");
    let ended = run_in_tree(&env, WORK);
    let commit = ended.result()["commit"].as_str().expect("it was committed").to_owned();
    assert_eq!(git(&env.workspace(), ["show", &format!("{commit}:new.txt")]), "NEW");
    let told = notices(&ended);
    assert!(told.contains("git runs the filter `f` of the repository's configuration, which you trust"), "{told}");
    config(&env, ["filter.f.clean", &filter(&env, "another")]);
    let env = env.var("NIETZ_RUN", "r2");
    git(&env.workspace(), ["branch", "-D", "nietz/t", "nietz/into"]);
    let ended = run_in_tree(&env, WORK).exits(0);
    assert!(!env.home().join("another").exists());
    assert!(notices(&ended).contains("is not run"), "{ended:?}");
    // One that a model may write is run for nobody.
    config(&env, ["filter.f.clean", "sh flows/tree.lua"]);
    env.nietz(["trust", "add", ".", "--allow", "filter=f.clean=sh flows/tree.lua"]).go().exits(0);
    let env = env.var("NIETZ_RUN", "r3");
    git(&env.workspace(), ["branch", "-D", "nietz/t", "nietz/into"]);
    assert_eq!(run_in_tree(&env, WORK).exits(5).failure(), "permission-refused");
}

/// The script is the user's in their checkout, and a model's in a worktree.
#[test]
fn a_filter_of_the_users_own_whose_command_is_a_file_of_the_worktree_is_refused() {
    for command in ["sh tools/strip.sh", "./tools/strip.sh %f", "\"$(git rev-parse --show-toplevel)/tools/strip.sh\""] {
        let env = env().file("tools/strip.sh", "cat\n");
        git(&env.workspace(), ["add", "-A"]);
        git(&env.workspace(), ["commit", "-qm", "tools"]);
        std::fs::write(env.home().join(".gitconfig"), "").expect("the home can be written");
        let global = env.home().join(".gitconfig").display().to_string();
        config(&env, ["-f", &global, "filter.f.smudge", command]);
        let ended = run_in_tree(&env, "return 1").exits(5);
        assert_eq!(ended.failure(), "permission-refused", "{command}");
        let failure = ended.ending()["failure"].clone();
        let (message, hint) =
            (failure["message"].as_str().unwrap_or_default(), failure["hint"].as_str().unwrap_or_default());
        assert!(message.contains("`filter.f.smudge` of git's configuration"), "{failure}");
        assert!(hint.contains("whole path") && hint.contains("git config --global 'filter.f.smudge'"), "{failure}");
        // Nothing is left of the worktree.
        assert_eq!(git(&env.workspace(), ["worktree", "list"]).lines().count(), 1, "{command}");
    }
}

#[test]
fn no_filter_of_the_users_own_is_led_to_a_models_file_later() {
    for command in ["sh strip.sh", "./strip.sh", "strip.sh", "python3 -m strip", "PATH=.:$PATH; strip.sh"] {
        let env = env().file(".gitattributes", "");
        git(&env.workspace(), ["commit", "-qam", "no filter"]);
        std::fs::write(env.home().join(".gitconfig"), "").expect("the home can be written");
        let global = env.home().join(".gitconfig").display().to_string();
        for variable in ["clean", "smudge"] {
            config(&env, ["-f", &global, &format!("filter.f.{variable}"), command]);
        }
        let ran = env.home().join("ran");
        let script = format!("#!/bin/sh\ntouch {}; cat\n", ran.display());
        let python = format!("open('{}', 'w')\n", ran.display());
        let body = format!(
            "tree:write('strip.sh', [==[{script}]==])\ntree:write('strip.py', [==[{python}]==])\nsh('chmod 755 strip.sh')\n\
             tree:write('.gitattributes', '*.txt filter=f\\n')\ntree:write('a.txt', 'two\\n')\n\
             tree:commit('x')\nsh('echo three > a.txt')\ntree:restore({{ from = tree.start, globs = {{ 'a.txt' }} }})\n\
             return tree:read('a.txt')"
        );
        let ended = run_in_tree(&env, &body).exits(0);
        assert!(!ran.exists(), "{command}");
        assert_eq!(ended.result(), "one\n", "{command}");
    }
}

/// As git-crypt does, which looks for its keys in the worktree's own git folder.
#[test]
fn a_filter_finds_the_keys_of_the_repository_in_a_worktree() {
    let env = env();
    env.write(".git/git-crypt/keys/default", "key ");
    std::fs::write(env.home().join(".gitconfig"), "").expect("the home can be written");
    let global = env.home().join(".gitconfig").display().to_string();
    let smudge = "cat \"$(git rev-parse --git-dir)/git-crypt/keys/default\" -";
    config(&env, ["-f", &global, "filter.f.smudge", smudge]);
    config(&env, ["-f", &global, "filter.f.required", "true"]);
    config(&env, ["-f", &global, "filter.f.clean", "sed 's/^key //'"]);
    let ended = run_in_tree(&env, "local text = tree:read('a.txt')\ntree:remove()\nreturn text");
    assert_eq!(ended.result(), "key one\n");
    assert_eq!(env.read(".git/git-crypt/keys/default"), "key ", "the keys are left as they are");
}

/// What git-lfs does with the variables that it reads: it runs them.
#[test]
fn a_filter_of_the_users_own_is_given_no_program_by_the_repository() {
    let env = env();
    let ran = |name: &str| env.home().join(name);
    let theirs = |name: &str| format!("touch '{}'", ran(name).display());
    config(&env, ["lfs.extension.e.clean", &theirs("extension")]);
    config(&env, ["lfs.customtransfer.c.path", &theirs("transfer")]);
    config(&env, ["lfs.standalonetransferagent", "c"]);
    config(&env, ["credential.helper", &format!("!{}", theirs("credential"))]);
    config(&env, ["core.sshCommand", &theirs("ssh")]);
    config(&env, ["core.askPass", &ran("ask").display().to_string()]);
    let agent = "agent=$(git config lfs.standalonetransferagent); [ -z \"$agent\" ] || eval \"$(git config lfs.customtransfer.$agent.path)\"";
    let script = format!(
        "#!/bin/sh\ntouch '{}'\neval \"$(git config lfs.extension.e.clean)\"\n{agent}\n\
         printf 'protocol=https\\nhost=localhost\\n\\n' | git credential fill > /dev/null 2>&1\n\
         eval \"$(git config core.sshCommand)\" > /dev/null 2>&1\ncat\n",
        ran("own").display()
    );
    let own = env.home().join("own.sh");
    std::fs::write(&own, script).expect("the home can be written");
    std::fs::write(env.home().join(".gitconfig"), "").expect("the home can be written");
    let global = env.home().join(".gitconfig").display().to_string();
    config(&env, ["-f", &global, "filter.f.clean", &format!("sh '{}'", own.display())]);
    let ended = run_in_tree(&env, WORK).exits(0);
    assert!(ran("own").exists());
    for name in ["extension", "transfer", "credential", "ssh", "ask"] {
        assert!(!ran(name).exists(), "{name}");
    }
    let told = notices(&ended);
    assert!(
        told.contains("what the repository's configuration has git-lfs run is not run: `lfs.customtransfer.c.path`"),
        "{told}"
    );
}

/// Encrypted files would be committed as plain text otherwise.
#[test]
fn where_a_filter_is_required_git_fails_rather_than_doing_without() {
    let env = env();
    config(&env, ["filter.f.clean", "cat"]);
    config(&env, ["filter.f.required", "true"]);
    let ended = run_in_tree(&env, "tree:write('new.txt', 'x')\nreturn tree:commit('x').changed").exits(1);
    assert_eq!(ended.failure(), "git-failed");
    let hint = ended.ending()["failure"]["hint"].as_str().unwrap_or_default().to_owned();
    assert!(hint.contains("are not run") && hint.contains("git config --global filter.f.clean"), "{ended:?}");
}

#[test]
fn a_merge_driver_of_a_repository_is_the_merge_of_texts() {
    let env = env();
    let driver = format!("touch '{}'; cat %B > %A", env.home().join("ran").display());
    config(&env, ["merge.evil.driver", &driver]);
    env.write(".git/info/attributes", "* merge=evil\n");
    let sides = |left: &str, right: &str| {
        format!(
            "tree:write('a.txt', {left})\ntree:commit('left')\n\
             git.branch('nietz/r', tree.start)\nlocal right = git.worktree {{ name = 'r', branch = 'nietz/r' }}\n\
             right:write('a.txt', {right})\nright:commit('right')\nright:remove()\ntree:remove()\n\
             git.branch('nietz/into', git.commit_of('nietz/t'))\n\
             local merged = git.merge {{ from = 'nietz/r', into = 'nietz/into', message = 'm' }}\n\
             return {{ conflicts = merged.conflicts or {{}} }}"
        )
    };
    let ended = run_in_tree(&env, &sides("'left\\n'", "'right\\n'"));
    assert_eq!(ended.result(), json!({ "conflicts": ["a.txt"] }));
    assert!(!env.home().join("ran").exists());
}

#[test]
fn a_repository_of_another_user_is_used_where_git_was_told_so() {
    let env = env();
    let bin = env.home().join("bin");
    std::fs::create_dir_all(&bin).expect("a folder can be made");
    // As if the files were another user's: git looks at that itself, and has this for its own tests.
    let script = "#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 PATH=/usr/local/bin:/usr/bin:/bin exec git \"$@\"\n";
    std::fs::write(bin.join("git"), script).expect("the home can be written");
    std::fs::set_permissions(bin.join("git"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("it is ours");
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let env = env.var("PATH", &path);
    let refused = run_in_tree(&env, "return tree.start").exits(5);
    assert_eq!(refused.failure(), "permission-refused");
    let work = env.workspace().canonicalize().expect("it is there").display().to_string();
    let hint = format!("if you trust it: git config --global --add safe.directory {work}");
    assert_eq!(refused.ending()["failure"]["hint"], hint);
    let global = env.home().join(".gitconfig").display().to_string();
    git(&env.workspace(), ["config", "-f", &global, "--add", "safe.directory", &work]);
    let env = env.var("NIETZ_RUN", "r2");
    run_in_tree(&env, "return tree.start").exits(0);
}

#[test]
fn nothing_of_nietzs_own_comes_out_of_a_worktree() {
    let env = env().file("nietz.yaml", "budget: {calls: 3}\n");
    git(&env.workspace(), ["add", "-A"]);
    git(&env.workspace(), ["commit", "-qm", "configured"]);
    env.write(".nietz/notes.txt", "of an earlier run\n");
    let ended = run_in_tree(
        &env,
        "local codes = {}\n\
         for _, path in { '.nietz/runs/r9/journal.jsonl', '.NIETZ/x', 'sub/.nietz/x', 'nietz.yaml', 'nietz.lock', 'sub/Nietz.Yaml' } do\n\
           table.insert(codes, code(tree.write, tree, path, 'x'))\n\
         end\n\
         table.insert(codes, code(tree.replace, tree, 'nietz.yaml', '3', '4'))\n\
         sh('mkdir -p .nietz/runs/r8 sub; echo x > .nietz/runs/r8/journal.jsonl; echo x > sub/nietz.lock; echo > nietz.yaml; echo x > x')\n\
         local commit = tree:commit('m')\n\
         local again = tree:commit('n').changed\n\
         tree:remove()\n\
         return { codes = codes, again = again, changed = git.changed(tree.start, commit.commit),\n\
           snapshot = git.changed(tree.start, git.snapshot().commit) }",
    );
    let refused = "path-refused";
    assert_eq!(
        ended.result(),
        json!({ "codes": vec![refused; 7], "again": false, "changed": ["x"], "snapshot": ["flows/tree.lua"] })
    );
    let told = notices(&ended);
    let left = "not committed from the worktree `t`, as it belongs to nietz itself: `.nietz/runs/r8/journal.jsonl`, \
                `nietz.yaml`, `sub/nietz.lock`\n";
    assert_eq!(told.matches(left).count(), 1, "{told}");
}

#[test]
fn a_runs_branch_that_holds_something_of_nietzs_own_is_not_merged() {
    let env = env();
    let work = env.workspace();
    // As a nietz that took such files has left it.
    git(&work, ["checkout", "-q", "-b", "nietz/old"]);
    env.write(".nietz/runs/r9/journal.jsonl", "x\n");
    git(&work, ["add", "-f", ".nietz"]);
    git(&work, ["commit", "-qm", "old"]);
    git(&work, ["checkout", "-q", "main"]);
    let merge = "git.branch('nietz/into', tree.start)\n\
                 return code(git.merge, { from = 'nietz/old', into = 'nietz/into', message = 'm' })";
    assert_eq!(run_in_tree(&env, merge).result(), "path-refused");
    assert!(!Path::new(&env.path(".nietz/runs/r9")).exists());
}
