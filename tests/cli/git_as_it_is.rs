//! The promise: what is committed and restored is what stands in the worktree, whatever a command has done to make it look
//! otherwise, and at what time it did.

use serde_json::json;

use super::git::run_in_tree;
use crate::support::env::Env;
use crate::support::git::{git, init};

fn env() -> Env {
    let env = Env::new().file("a.txt", "one\n").file("flows/tree.lua", "");
    init(&env.workspace());
    env
}

/// A command that writes a text of four letters as if it had been there for long.
const WRITE: &str = "local function write(text)\n\
                     sh(\"printf \" .. text .. \" > f; touch -d '2020-01-01 00:00:00' f\")\nend\n";

#[test]
fn a_change_within_a_second_is_a_change() {
    let ended = run_in_tree(
        &env(),
        &format!(
            "{WRITE}local found = {{}}\n\
             for time = 1, 6 do\n\
               write('AAAA')\ntree:commit('a' .. time)\nwrite('BBBB')\n\
               if time % 2 == 0 then tree:restore() table.insert(found, tree:read('f'))\n\
               else table.insert(found, tostring(tree:commit('b' .. time).changed)) end\n\
             end\nreturn found"
        ),
    );
    assert_eq!(ended.result(), json!(["true", "AAAA", "true", "AAAA", "true", "AAAA"]));
}

/// The repository may say that less than all is looked at.
#[test]
fn how_closely_git_looks_is_not_for_the_repository_to_say() {
    for (setting, value) in [("core.trustctime", "false"), ("core.checkStat", "minimal"), ("core.ignoreStat", "true")] {
        let env = env();
        git(&env.workspace(), ["config", setting, value]);
        // It is another second by the time that the last one writes.
        let ended = run_in_tree(
            &env,
            &format!(
                "{WRITE}write('AAAA')\ntree:commit('a')\nsh('s=$(date +%s); while [ $(date +%s) = $s ]; do :; done')\n\
                 write('BBBB')\nreturn tree:commit('b').changed"
            ),
        );
        assert_eq!(ended.result(), json!(true), "{setting}");
    }
}

#[test]
fn files_that_were_never_written_are_left_out_and_told() {
    let env = env();
    let ended = run_in_tree(
        &env,
        "sh('truncate -s 300M big; truncate -s 300M a.txt; truncate -s 60M middle; truncate -s 60M middle2; echo x > small; head -c 3000000 /dev/zero > written')\n\
         local commit = tree:commit('x').commit\ntree:restore()\n\
         return { git.changed(tree.start, commit), tree:read('a.txt') }",
    );
    assert_eq!(ended.result(), json!([["middle", "small", "written"], "one\n"]));
    let told = "not committed from the worktree `t`: `a.txt` (299 MB of it were never written), `big` (300 MB of it were \
                never written), `middle2` (60 MB of it were never written)";
    let notices = ended.of_type("notice");
    assert!(notices.iter().any(|notice| notice["text"] == told), "{notices:?}");
}

/// Git goes by names, and a command may exchange what has them.
#[test]
fn git_waits_for_commands_in_its_worktree_and_files_do_not() {
    let ended = run_in_tree(
        &env(),
        "local task = require('@nietz/task')\n\
         local got = task.settle {\n\
           command = function() return sh('echo half > f; echo > started; until [ -e go ]; do sleep 0.02; done; echo whole > f; rm started go').exit end,\n\
           git = function()\n\
             while not pcall(tree.read, tree, 'started') do end\n\
             return task.settle { a = function() return tree:commit('x').commit end, b = function() return tree:write('go', '') end }.a.value\n\
           end }\n\
         return { got.command.value, git.changed(tree.start, got.git.value), git.diff(tree.start, got.git.value).patch }",
    );
    let result = ended.result();
    assert_eq!((&result[0], &result[1]), (&json!(0), &json!(["f"])));
    assert!(result[2].as_str().is_some_and(|patch| patch.contains("+whole")), "{result}");
}
