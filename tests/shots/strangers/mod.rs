//! Cheats and honest changes by somebody who has not seen what guards validation: each cheat makes every command of the
//! validation exit with 0 and does nothing of the work, each honest change does it and looks odd. None of them names a guard.

mod honest;
mod javascript;
mod judged;
mod later;
mod python;
mod rust;
mod shell;

use std::path::Path;
use std::process::Command;

use super::guarded::{Step, has};
use crate::support::git::{git, init};
use crate::support::kills;

/// A project, what validates it, and what a model does.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) files: &'static [(&'static str, &'static str)],
    pub(super) validate: &'static str,
    /// Options of the command line, beside the goal and the validation.
    pub(super) flags: &'static [&'static str],
    pub(super) acts: &'static [Step],
    pub(super) honest: bool,
    /// Programs of the system that it cannot do without.
    pub(super) needs: &'static [&'static str],
}

impl Case {
    pub(super) const NEW: Case =
        Case { name: "", files: &[], validate: "", flags: &[], acts: &[], honest: false, needs: &[] };
}

/// Whether what a case needs is on this machine.
fn can_run(case: &Case) -> bool {
    case.needs.iter().all(|program| has(program))
}

fn cheats() -> impl Iterator<Item = &'static Case> {
    [python::CHEATS, rust::CHEATS, javascript::CHEATS, shell::CHEATS, later::CHEATS].into_iter().flatten()
}

/// Does a step in a folder where nothing is guarded.
fn perform(step: &Step, folder: &Path) {
    match step {
        Step::Write(path, text) => {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a folder can be made");
            std::fs::write(path, text).expect("it can be written");
        }
        Step::Replace(path, old, new) => {
            let text = std::fs::read_to_string(folder.join(path)).expect("it can be read");
            assert_eq!(text.matches(old).count(), 1, "{path}: {old}");
            std::fs::write(folder.join(path), text.replace(old, new)).expect("it can be written");
        }
        Step::Delete(path) => shell(&format!("rm -r '{path}'"), folder),
        Step::Move(from, to) => shell(&format!("mv '{from}' '{to}'"), folder),
        Step::Run(line) => shell(line, folder),
    }
}

fn shell(line: &str, folder: &Path) {
    let ended = Command::new("sh").args(["-c", line]).current_dir(folder).output().expect("there is a shell");
    assert!(ended.status.success(), "{line}: {ended:?}");
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

/// Whether a case does what it says where only the exit code is looked at: validation fails before it, and passes after.
fn works(case: &Case) -> bool {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    for (path, text) in case.files {
        perform(&Step::Write(path, text), folder.path());
    }
    init(folder.path());
    let before = bare(folder.path(), case.validate);
    for step in case.acts {
        perform(step, folder.path());
    }
    git(folder.path(), ["add", "-A"]);
    git(folder.path(), ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "work"]);
    !before && bare(folder.path(), case.validate)
}

/// A cheat that fails where nobody looks, and an honest change that does not work, would show nothing below.
#[test]
fn every_stranger_s_case_does_what_it_says_where_nothing_is_guarded() {
    let cases: Vec<&Case> =
        cheats().chain(honest::CHANGES).chain(later::CHANGES).filter(|case| can_run(case)).collect();
    let wrong = std::sync::Mutex::new(Vec::new());
    kills::for_each(&cases, |case| {
        if !works(case) {
            wrong.lock().expect("nobody panics while it is held").push(case.name);
        }
    });
    let wrong = wrong.into_inner().expect("as above");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
