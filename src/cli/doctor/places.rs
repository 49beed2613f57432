//! Checks of where nietz works: its files, the room on their disks, the terminal.

use std::path::{Path, PathBuf};

use crate::cli::doctor::{CheckOutcome, CheckState, DoctorArgs, finding};
use crate::error::Result;
use crate::host::ui;
use crate::run::machine::Machine;

/// Less room than this, in bytes, is told: a run's journal and its worktrees take some megabytes.
const LITTLE_ROOM: u64 = 200 << 20;

/// A terminal with fewer columns than this shows tables and questions badly.
const NARROW: u16 = 60;

/// Says which configuration files are read, and which could be.
pub(super) fn config(machine: &Machine, _: &DoctorArgs) -> Result<Vec<CheckOutcome>> {
    let files = [
        (machine.config_path(), "yours"),
        (machine.project_config_path(), "the project's"),
        (machine.keys_file().path, "stored keys"),
    ];
    let told = |(path, whose): (PathBuf, &str)| {
        let state = if path.is_file() { "is read" } else { "is not there" };
        finding("config", CheckState::Ok, format!("{} ({whose}) {state}", path.display()))
    };
    Ok(files.into_iter().map(told).collect())
}

/// Says where nietz keeps its own files, and how much room there is.
pub(super) fn home(machine: &Machine, _: &DoctorArgs) -> Result<Vec<CheckOutcome>> {
    let mut folders = machine.own_folders().to_vec();
    folders.sort();
    folders.dedup();
    Ok(folders.iter().map(|folder| room_at(folder)).collect())
}

fn room_at(folder: &Path) -> CheckOutcome {
    // It may not be there yet: what is above it is on the same disk.
    let found = folder.ancestors().find_map(|folder| rustix::fs::statvfs(folder).ok());
    let Some(found) = found else {
        return finding("home", CheckState::Weak, format!("{}: its disk cannot be asked for room", folder.display()));
    };
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let told = format!("{}: {} MB are free", folder.display(), free >> 20);
    match free {
        LITTLE_ROOM.. => finding("home", CheckState::Ok, told),
        _ => finding("home", CheckState::Weak, told).hint("make room: what a run says is synced to that disk"),
    }
}

/// Says what a person can see and type here.
pub(super) fn terminal(machine: &Machine, _: &DoctorArgs) -> Result<Vec<CheckOutcome>> {
    let facts = ui::terminal_facts(&machine.environment);
    let stream = |is_terminal: bool| if is_terminal { "a terminal" } else { "no terminal" };
    let mut found = format!("standard input is {}, standard output {}", stream(facts.input), stream(facts.output));
    if let Some((columns, rows)) = facts.size {
        found.push_str(&format!(" of {columns} columns and {rows} rows"));
    }
    found.push_str(if facts.colour { ", with colours" } else { ", without colours" });
    let is_narrow = facts.size.is_some_and(|(columns, _)| columns < NARROW);
    Ok(vec![match facts.input && facts.output {
        true if !facts.moves => finding("terminal", CheckState::Weak, found)
            .hint("TERM says that it cannot move its cursor: texts come in plain lines"),
        true if is_narrow => finding("terminal", CheckState::Weak, found).hint("make the window wider"),
        _ => finding("terminal", CheckState::Ok, found),
    }])
}
