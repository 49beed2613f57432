//! Where a run of a store can go on: its commits are in one repository, and no other machine has them.

use std::collections::BTreeSet;

use crate::error::{Code, Failure, Result};
use crate::host::git::Repository;
use crate::model::event::EndStatus;
use crate::model::text::line;
use crate::report::RunHistory;
use crate::run::machine::Machine;

/// What stands behind the name of a run that was begun anew.
const ANEW: &str = "-anew";

/// Where a run can go on.
enum Whereabouts {
    /// It has made no branches, or is done.
    Anywhere,
    /// Its branches are in the repository that is worked for.
    Here,
    /// This branch of its own is not.
    Elsewhere(String),
    /// There is no repository here.
    WithoutRepository,
}

/// Refuses a run here whose branches another machine has: it would be told that they are gone, and do what it did anew.
///
/// # Errors
///
/// `git-failed` if a branch of the run is not in the repository that is worked for, and those of git.
pub(super) fn check(machine: &Machine, run: &str) -> Result<()> {
    // Where there is no repository, what needs one says so; all of it may be recorded.
    let Whereabouts::Elsewhere(missing) = find(machine, run)? else { return Ok(()) };
    let message = format!(
        "the run {run} has made the branch {}, and the repository {} has none of that name: it was made on another machine",
        line(&missing),
        line(&machine.repository().0.display().to_string())
    );
    Err(Failure::new(Code::GitFailed, message).hint(format!(
        "go on where that repository is, by `nietz resume` or by a worker; if that machine is lost: nietz fork {run} --lost"
    )))
}

/// Refuses to begin a run anew that can go on.
///
/// # Errors
///
/// `usage`, and those of git.
pub(super) fn check_lost(machine: &Machine, run: &str) -> Result<()> {
    let why = match find(machine, run)? {
        Whereabouts::Elsewhere(_) | Whereabouts::WithoutRepository => return Ok(()),
        Whereabouts::Anywhere => "has no branches, and goes on anywhere",
        Whereabouts::Here => "has its branches in the repository here",
    };
    Err(Failure::new(Code::Usage, format!("the run {run} {why}: nothing of it is lost"))
        .hint(format!("go on with it: nietz resume {run}")))
}

/// Returns the name of the run that is begun in the place of one that is lost: always the same, so that two are never begun.
pub(super) fn successor(run: &str) -> String {
    match run.rsplit_once(ANEW) {
        Some((of, "")) => format!("{of}{ANEW}-2"),
        Some((of, number)) => match number.strip_prefix('-').and_then(|number| number.parse::<u32>().ok()) {
            Some(number) => format!("{of}{ANEW}-{}", number.saturating_add(1)),
            None => format!("{run}{ANEW}"),
        },
        None => format!("{run}{ANEW}"),
    }
}

fn find(machine: &Machine, run: &str) -> Result<Whereabouts> {
    let journal = machine.runs().journal(run)?;
    // Few runs have any, and most journals need not be read for that.
    let text = std::fs::read(&journal).map_err(|error| Failure::io(&journal, "read", &error))?;
    if memchr::memmem::find(&text, br#""op":"branch""#).is_none() {
        return Ok(Whereabouts::Anywhere);
    }
    let history = RunHistory::read(&journal)?;
    let wanted = branches(&history);
    if wanted.is_empty() || history.status == EndStatus::Done.name() {
        return Ok(Whereabouts::Anywhere);
    }
    let top = machine.repository().0;
    let repository = Repository::new(&top, &machine.worktrees(), run, &machine.environment, machine.config.git);
    let there = match repository.branches_of(run) {
        Err(failure) if failure.code == Code::GitMissing => return Ok(Whereabouts::WithoutRepository),
        there => there?,
    };
    Ok(match wanted.into_iter().find(|name| !there.contains(name)) {
        Some(missing) => Whereabouts::Elsewhere(missing),
        None => Whereabouts::Here,
    })
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

#[cfg(test)]
mod tests {
    use super::successor;

    #[test]
    fn each_run_has_one_successor_of_its_own() {
        let mut run = "20261126-163000-ab12".to_owned();
        for after in ["-anew", "-anew-2", "-anew-3"] {
            run = successor(&run);
            assert_eq!(run, format!("20261126-163000-ab12{after}"));
        }
        assert_eq!(successor("an-anew-one"), "an-anew-one-anew");
    }
}
