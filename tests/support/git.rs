//! A real git repository for a test, which knows nothing of the machine's user.

use std::path::Path;
use std::process::Command;

/// Runs git in a folder and returns what it wrote.
#[track_caller]
pub(crate) fn git<'a>(folder: &Path, arguments: impl IntoIterator<Item = &'a str>) -> String {
    let arguments: Vec<&str> = arguments.into_iter().collect();
    let mut command = Command::new("git");
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("GIT_CONFIG_GLOBAL", "/dev/null");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "Somebody").env(format!("GIT_{who}_EMAIL"), "somebody@example.org");
        command.env(format!("GIT_{who}_DATE"), "1767950000 +0000");
    }
    let output = command.args(&arguments).current_dir(folder).output().expect("git is there");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {}: {said}", arguments.join(" "));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// Makes a repository of a folder, and commits all that is in it on the branch `main`.
pub(crate) fn init(folder: &Path) {
    git(folder, ["init", "-q", "-b", "main"]);
    git(folder, ["add", "-A"]);
    git(folder, ["commit", "-q", "--allow-empty", "-m", "first"]);
}
