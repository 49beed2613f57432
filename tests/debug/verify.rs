//! `--verify`: the developer's own command says whether the fix holds, on the files as they are now.

use serde_json::json;

use super::desk::{Desk, For, PROBLEM, says};
use crate::support::git;

fn desk() -> Desk {
    let desk = Desk::new().file("price.txt", "stale\n").file(".gitignore", ".nietzschian/\n");
    git::init(&desk.env.workspace());
    desk
}

const CHECK: &str = "grep -q fresh price.txt && echo right > out.txt";

#[test]
fn a_fix_that_holds_is_said_to_and_nothing_of_the_workspace_is_touched() {
    let desk = desk();
    // Not committed: it is the files as they are that count.
    desk.env.write("price.txt", "fresh\n");
    let before = desk.env.documents();
    let ended = desk.talk([PROBLEM, "--verify", CHECK], &["solved", ""]).exits(0);
    says(&ended, &[&format!("`{CHECK}` passes: the fix holds.")]);
    assert_eq!(desk.saved()["nietz"]["verification"], json!({"command": CHECK, "exit": 0, "holds": true}));
    let mut after = desk.env.documents();
    after.retain(|path, _| !path.starts_with(".nietzschian/") && !path.starts_with(".git/"));
    let mut expected = before;
    expected.retain(|path, _| !path.starts_with(".git/"));
    assert_eq!(after, expected, "what the command wrote is gone with its worktree");
    let folder = desk.env.workspace();
    assert_eq!(git::git(&folder, ["status", "--porcelain"]), " M price.txt");
    assert_eq!(git::git(&folder, ["branch", "--format=%(refname:short)"]), "main");
    assert_eq!(git::git(&folder, ["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a_fix_that_does_not_hold_goes_back_to_the_developer_and_to_the_next_question() {
    let desk = desk();
    let ended = desk
        .talk(
            [PROBLEM, "--verify", "cat price.txt; grep -q fresh price.txt"],
            &["solved", "n", "ah", "solved", "y", ""],
        )
        .exits(0);
    says(&ended, &["still fails, with exit code 1.", "stale"]);
    assert_eq!(ended.result()["outcome"], "solved", "whether it is solved is the developer's word");
    assert_eq!(desk.saved()["nietz"]["verification"]["holds"], false);
    assert!(desk.asked(For::Question)[1].prompt().contains("says otherwise, exit code 1"));
    assert_eq!(
        ended.asked(),
        ["answer", "still-solved", "answer", "answer", "explains-all", "still-solved", "reflection"]
    );
}

#[test]
fn without_a_repository_it_is_refused_before_anything_is_asked() {
    let desk = Desk::new();
    let ended = desk.talk([PROBLEM, "--verify", "true"], &[]);
    assert_eq!((ended.code, desk.server.calls()), (Some(1), 0), "{ended:?}");
    assert_eq!(ended.failure(), "git-missing");
}

#[test]
fn in_a_folder_below_the_top_commands_start_there_and_all_of_the_repository_is_there() {
    let desk = desk();
    desk.env.write("shop/check.sh", "cat ../price.txt; pwd\nexit 3\n");
    let lines = "solved\ny\n\n";
    let call = desk.call([PROBLEM, "--verify", "sh check.sh", "--diff", "HEAD"]).within("shop").stdin(lines);
    let ended = call.go().exits(0);
    let place = desk.env.path("shop").canonicalize().expect("it is there").display().to_string();
    says(&ended, &["`sh check.sh` ends with exit code 3", &format!("stale\n{place}\n")]);
    assert!(super::desk::all_of(&desk.asked(For::Question)[0]).contains("shop/check.sh"), "the diff is of all");
    let folder = desk.env.workspace();
    assert_eq!(git::git(&folder, ["branch", "--format=%(refname:short)"]), "main");
}
