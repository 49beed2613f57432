//! A real git repository for a test, which knows nothing of the machine's user.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::support::env::Env;

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

/// Has git fail at what matches a pattern of the shell, from the given time on.
pub(crate) fn broken(env: Env, pattern: &str, from: u32) -> Env {
    let bin = env.home().join("bin");
    std::fs::create_dir(&bin).expect("a folder can be made");
    let count = bin.join("count");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in {pattern})\n  echo >> '{0}'\n  [ $(wc -l < '{0}') -lt {from} ] || {{ echo 'fatal: it is broken' >&2; exit 128; }};;\n\
         esac\nexec /usr/bin/git \"$@\"\n",
        count.display()
    );
    std::fs::write(bin.join("git"), script).expect("it can be written");
    std::fs::set_permissions(bin.join("git"), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let path = format!("{}:/usr/bin:/bin", bin.display());
    env.var("PATH", &path)
}
