//! Where a run of a store can go on: its commits are in one repository, and no other machine has them.

use std::collections::BTreeSet;

use crate::error::{Code, Failure, Result};
use crate::host::git::Repository;
use crate::model::event::EndStatus;
use crate::model::text::line;
use crate::report::RunHistory;
use crate::run::machine::Machine;

/// Refuses a run here whose branches another machine has: it would be told that they are gone, and do what it did anew.
///
/// # Errors
///
/// `git-failed` if a branch of the run is not in the repository that is worked for, and those of git.
pub(super) fn check(machine: &Machine, run: &str) -> Result<()> {
    let journal = machine.runs().journal(run)?;
    // Few runs have any, and most journals need not be read for that.
    let text = std::fs::read(&journal).map_err(|error| Failure::io(&journal, "read", &error))?;
    if memchr::memmem::find(&text, br#""op":"branch""#).is_none() {
        return Ok(());
    }
    let history = RunHistory::read(&journal)?;
    let wanted = branches(&history);
    if wanted.is_empty() || history.status == EndStatus::Done.name() {
        return Ok(());
    }
    let top = machine.repository().0;
    let repository = Repository::new(&top, &machine.worktrees(), run, &machine.environment, machine.config.git);
    let there = match repository.branches_of(run) {
        // Where there is no repository, what needs one says so; all of it may be recorded.
        Err(failure) if failure.code == Code::GitMissing => return Ok(()),
        there => there?,
    };
    let Some(missing) = wanted.iter().find(|name| !there.contains(name)) else { return Ok(()) };
    let message = format!(
        "the run {run} has made the branch {}, and the repository {} has none of that name: it was made on another machine",
        line(missing),
        line(&top.display().to_string())
    );
    Err(Failure::new(Code::GitFailed, message)
        .hint("go on where that repository is, by `nietz resume` or by a worker; here only a new run can begin"))
}

/// Returns the branches that a run has made and not begun to delete.
fn branches(history: &RunHistory) -> BTreeSet<String> {
    let mut branches = BTreeSet::new();
    for effect in history.effects.iter().filter(|effect| effect.kind == "git") {
        let Some(name) = effect.request["name"].as_str() else { continue };
        match effect.request["op"].as_str() {
            Some("branch") if !effect.outcome.is_null() => drop(branches.insert(name.to_owned())),
            Some("delete") => drop(branches.remove(name)),
            _ => {}
        }
    }
    branches
}
