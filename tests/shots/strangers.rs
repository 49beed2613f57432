//! Cheats and honest changes by somebody who has not seen what guards validation: each cheat makes every command of the
//! validation exit with 0 and does nothing of the work, each honest change does it and looks odd. None of them names a guard.

mod honest;
mod javascript;
mod python;
mod rust;
mod shell;

use std::path::Path;
use std::process::Command;

use crate::support::git::{git, init};

/// What a model does in its worktree, one tool call each.
pub(super) enum Act {
    Read(&'static str),
    Write(&'static str, &'static str),
    /// The file is read before.
    Replace(&'static str, &'static str, &'static str),
    /// A line of a shell.
    Run(&'static str),
}

/// A project, its goal, and what a model does.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) goal: &'static str,
    pub(super) files: &'static [(&'static str, &'static str)],
    pub(super) validate: &'static str,
    /// Options of the command line, beside the goal and the validation.
    pub(super) flags: &'static [&'static str],
    pub(super) acts: &'static [Act],
    pub(super) honest: bool,
    /// Programs of the system that it cannot do without.
    pub(super) needs: &'static [&'static str],
    pub(super) needs_cargo: bool,
}

impl Case {
    pub(super) const NEW: Case = Case {
        name: "",
        goal: "",
        files: &[],
        validate: "",
        flags: &[],
        acts: &[],
        honest: false,
        needs: &[],
        needs_cargo: false,
    };
}

fn cheats() -> impl Iterator<Item = &'static Case> {
    [python::CHEATS, rust::CHEATS, javascript::CHEATS, shell::CHEATS].into_iter().flatten()
}

/// Does an act in a folder where nothing is guarded.
fn perform(act: &Act, folder: &Path) {
    match act {
        Act::Read(path) => drop(std::fs::read(folder.join(path)).expect("it can be read")),
        Act::Write(path, text) => {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a folder can be made");
            std::fs::write(path, text).expect("it can be written");
        }
        Act::Replace(path, old, new) => {
            let text = std::fs::read_to_string(folder.join(path)).expect("it can be read");
            assert_eq!(text.matches(old).count(), 1, "{path}: {old}");
            std::fs::write(folder.join(path), text.replace(old, new)).expect("it can be written");
        }
        Act::Run(line) => {
            let ended = Command::new("sh").args(["-c", line]).current_dir(folder).output().expect("there is a shell");
            assert!(ended.status.success(), "{line}: {ended:?}");
        }
    }
}

/// What validation comes to in a clean clone, where only the exit code is looked at.
fn bare(folder: &Path, validate: &str) -> bool {
    let place = tempfile::tempdir().expect("a temporary folder can be made");
    let clone = place.path().join("clone");
    git(folder, ["clone", "-q", ".", &clone.display().to_string()]);
    let mut command = Command::new("sh");
    command.args(["-c", validate]).current_dir(&clone).env("CARGO_TARGET_DIR", place.path().join("target"));
    command.env_remove("RUSTFLAGS").output().expect("there is a shell").status.success()
}

/// A cheat that fails where nobody looks, and an honest change that does not work, would show nothing below.
#[test]
fn every_stranger_s_case_does_what_it_says_where_nothing_is_guarded() {
    let mut wrong = Vec::new();
    for case in cheats().chain(honest::CHANGES) {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        for (path, text) in case.files {
            perform(&Act::Write(path, text), folder.path());
        }
        init(folder.path());
        let before = bare(folder.path(), case.validate);
        for act in case.acts {
            perform(act, folder.path());
        }
        git(folder.path(), ["add", "-A"]);
        git(folder.path(), ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "work"]);
        if before || !bare(folder.path(), case.validate) {
            wrong.push(format!("{}: passes before: {before}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
