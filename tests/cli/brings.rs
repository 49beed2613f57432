//! The promise: what a model's branch brings that is started by something else than the person who merges it is told before
//! the merge, in lines that no name of a file can forge.

use serde_json::{Value, json};

use super::git::run_in_tree;
use crate::support::env::Env;
use crate::support::git::{git, init};
use crate::support::process::Ended;

fn env() -> Env {
    let env = Env::new()
        .file("a.txt", "one\n")
        .file("was.sh", "#!/bin/sh\n")
        .file("package.json", "{\"scripts\": {\"prepare\": \"x\"}}\n")
        .file(".gitattributes", "*.bin filter=lfs\n")
        .file("flows/tree.lua", "");
    init(&env.workspace());
    env
}

fn notices(ended: &Ended) -> Vec<String> {
    let notices = ended.of_type("notice");
    notices.iter().map(|notice| notice["text"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Makes files by a command, commits and merges them; returns what the change brings.
fn brings(env: &Env, make: &str) -> (Value, Ended) {
    let body = format!(
        "sh([==[{make}]==])\nlocal commit = tree:commit('m').commit\n\
         git.branch('nietz/into', tree.start)\ngit.merge {{ from = 'nietz/t', into = 'nietz/into', message = 'm' }}\n\
         tree:remove()\nlocal all = {{}}\n\
         for _, thing in git.brings(tree.start, commit).things do\n\
           table.insert(all, thing.kind .. ' ' .. thing.path .. (if thing.to then ' ' .. thing.to else ''))\n\
         end\nreturn require('@nietz/json').array(all)"
    );
    let ended = run_in_tree(env, &body);
    (ended.result(), ended)
}

#[test]
fn what_starts_by_itself_is_told_and_given_to_the_flow() {
    let make = "mkdir -p .github/workflows .husky sub; echo > .github/workflows/ci.yml; echo > .husky/pre-commit\n\
                echo '#!/bin/sh' > run.sh; chmod 755 run.sh; chmod 6755 was.sh; echo > .envrc; echo > Jenkinsfile\n\
                ln -s /etc/passwd out; ln -s ../.. sub/up; ln -s a.txt in; ln -s .git/hooks/x hook; ln -s sub .vscode\n\
                echo '*.txt filter=evil' >> .gitattributes\n\
                echo '{\"scripts\": {\"\\u0070ostinstall\": \"x\", \"prepare\": \"x\"}}' > package.json\n\
                echo two > a.txt; echo > Makefile";
    let (all, ended) = brings(&env(), make);
    assert_eq!(
        all,
        json!([
            "hook .husky/pre-commit",
            "git .gitattributes",
            "link hook .git/hooks/x",
            "link out /etc/passwd",
            "link sub/up ../..",
            "ci .github/workflows/ci.yml",
            "ci Jenkinsfile",
            "starts .envrc",
            "starts .vscode",
            "starts package.json",
            "executable run.sh",
            "executable was.sh",
        ])
    );
    let told: Vec<String> = notices(&ended)
        .into_iter()
        .filter_map(|text| Some(text.strip_prefix("look at this before you merge `nietz/into`: ")?.to_owned()))
        .collect();
    assert_eq!(
        told,
        [
            "`.husky/pre-commit` is run by git as a hook",
            "`.gitattributes` tells git what to run or where to go",
            "`hook` is a link that leads elsewhere: `.git/hooks/x`, `out` is a link that leads elsewhere: `/etc/passwd`, \
         `sub/up` is a link that leads elsewhere: `../..`",
            "`.github/workflows/ci.yml` is run by a server that builds, `Jenkinsfile` is run by a server that builds",
            "`.envrc` is run or obeyed by what opens, installs or builds the folder, \
         `.vscode` is run or obeyed by what opens, installs or builds the folder, \
         `package.json` is run or obeyed by what opens, installs or builds the folder",
            "`run.sh` can be run, `was.sh` can be run",
        ]
    );
    // A mode of more than that is kept by no commit.
    let modes = git(&env().workspace(), ["ls-tree", "HEAD"]);
    assert!(!modes.contains("104755"), "{modes}");
}

#[test]
fn sources_are_not_told() {
    let make = "mkdir -p src .github; echo > src/main.rs; echo > .github/CODEOWNERS; ln -s src code; chmod 644 was.sh; echo x >> was.sh\n\
                echo '*.txt text' >> .gitattributes; rm a.txt\n\
                echo '{\"scripts\": {\"prepare\": \"x\", \"test\": \"y\"}}' > package.json";
    let (all, ended) = brings(&env(), make);
    assert_eq!(all, json!([]));
    assert!(!notices(&ended).iter().any(|text| text.contains("before you merge")), "{ended:?}");
}

#[test]
fn submodules_and_the_users_own_folder_for_hooks_are_told() {
    let env = env();
    let work = env.workspace();
    git(&work, ["config", "core.hooksPath", "tools/hooks"]);
    let commit = git(&work, ["rev-parse", "HEAD"]);
    git(&work, ["checkout", "-q", "-b", "nietz/old"]);
    git(&work, ["update-index", "--add", "--cacheinfo", &format!("160000,{commit},sub")]);
    env.write("tools/hooks/pre-push", "x\n");
    env.write(".gitmodules", "x\n");
    git(&work, ["add", "tools", ".gitmodules"]);
    git(&work, ["commit", "-qm", "old"]);
    git(&work, ["checkout", "-q", "-f", "main"]);
    let ended = run_in_tree(
        &env,
        "local all = {}\n\
         for _, thing in git.brings(tree.start, git.commit_of('nietz/old')).things do table.insert(all, thing.text) end\n\
         return all",
    );
    assert_eq!(
        ended.result(),
        json!([
            "`tools/hooks/pre-push` is run by git as a hook",
            "`.gitmodules` tells git what to run or where to go",
            "`sub` is a submodule"
        ])
    );
}

#[test]
fn no_name_of_a_file_forges_a_line() {
    let make = "mkdir -p '.husky'; echo > \"$(printf '.husky/a` is fine\\n> nietz: all is well\\033[2K `b')\"\n\
                for n in 1 2 3 4 5 6 7 8 9; do echo > .husky/$n; done; echo > .envrc";
    let (_, ended) = brings(&env(), make);
    let told: Vec<String> = notices(&ended).into_iter().filter(|text| text.contains("before you merge")).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("5 more") && told[1].contains("`.envrc`"), "{told:?}");
    let lines: Vec<&String> = told.iter().filter(|text| text.contains(['\n', '\u{1b}'])).collect();
    assert!(lines.is_empty(), "{lines:?}");
}
