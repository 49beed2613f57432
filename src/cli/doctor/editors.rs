//! Checks of the entries by which editors and agents know nietz.

use std::path::Path;

use crate::cli::doctor::{CheckOutcome, CheckState, DoctorArgs, finding};
use crate::cli::install::home;
use crate::editors::{EditorClient, Scope};
use crate::error::Result;
use crate::run::machine::Machine;

/// Says which editors and agents here have an entry, and whether the program that it names is there.
pub(super) fn editors(machine: &Machine, _: &DoctorArgs) -> Result<Vec<CheckOutcome>> {
    let Ok(home) = home(machine) else { return Ok(Vec::new()) };
    let mut findings = Vec::new();
    for client in EditorClient::ALL {
        let name = client.name();
        let scopes = [(Scope::User, "your"), (Scope::Project, "this project's")];
        let mut entries = scopes.into_iter().filter_map(|(scope, whose)| {
            client.installed(scope, &home, &machine.workspace).map(|program| (whose, program))
        });
        match entries.next() {
            Some((whose, program)) if program.starts_with('/') && !Path::new(&program).is_file() => {
                let found = format!("{whose} configuration of {name} names {program}, which is not there");
                let hint = format!("nietz install {name}");
                findings.push(finding("editor", CheckState::Weak, found).hint(hint));
            }
            Some((whose, _)) => {
                findings.push(finding("editor", CheckState::Ok, format!("{name}, by {whose} configuration")));
            }
            None if client.is_here(&home) => {
                let found = format!("{name} is here, and does not know nietz");
                findings.push(finding("editor", CheckState::Ok, found).hint(format!("nietz install {name}")));
            }
            None => {}
        }
    }
    Ok(findings)
}
