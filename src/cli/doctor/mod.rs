//! `nietz doctor`: what nietz finds on this machine, and which of its guards are in force. Each check tries the thing itself
//! and trusts no version number.

#[cfg(feature = "editors")]
mod editors;
mod guards;
mod model;
mod network;
mod places;
mod servers;

use std::borrow::Cow;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use crate::cli::output;
use crate::error::{Code, Exit, Result};
use crate::model::text::clean;
use crate::run::machine::Machine;

/// Say what nietz finds here: the sandbox, git, limits, trust, the model and its key, the network, files, the terminal
///
/// Each line is `ok`, `weak` (it works, and something that other machines have is not there) or `missing` (what needs it is
/// refused). No model and no server is asked but with --call. Exit status 0 where nothing is missing, 5 otherwise.
#[derive(Args)]
pub(super) struct DoctorArgs {
    /// Look at this model: provider/model, an alias or a provider; else at the one that would be used
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Ask the model for one word, and say how long that took, what it cost and which model answered
    #[arg(long)]
    call: bool,
    /// One JSON object a line: check, state, found, and what to do where there is something
    #[arg(long)]
    json: bool,
}

/// A result of a check.
struct CheckOutcome {
    check: &'static str,
    state: CheckState,
    found: String,
    /// What the user can do about it.
    hint: Option<Cow<'static, str>>,
}

impl CheckOutcome {
    fn hint(self, hint: impl Into<Cow<'static, str>>) -> CheckOutcome {
        CheckOutcome { hint: Some(hint.into()), ..self }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum CheckState {
    Ok,
    Weak,
    Missing,
}

impl CheckState {
    fn name(self) -> &'static str {
        match self {
            CheckState::Ok => "ok",
            CheckState::Weak => "weak",
            CheckState::Missing => "missing",
        }
    }
}

/// Returns its results: none, one or several.
type Check = fn(&Machine, &DoctorArgs) -> Result<Vec<CheckOutcome>>;

/// All checks, in the order in which they are shown.
const CHECKS: &[Check] = &[
    guards::sandbox,
    guards::programs,
    guards::repositories,
    guards::limits,
    guards::trust,
    guards::files,
    places::config,
    places::home,
    model::keys,
    model::model,
    #[cfg(feature = "local")]
    model::engine,
    network::authorities,
    network::proxies,
    servers::servers,
    servers::agents,
    places::terminal,
    #[cfg(feature = "editors")]
    editors::editors,
    // It takes longest, and may cost something.
    model::call,
];

pub(super) fn run(machine: &Machine, args: &DoctorArgs) -> Result<Exit> {
    let mut rows = Vec::new();
    let mut worst = CheckState::Ok;
    for check in CHECKS {
        for CheckOutcome { check, state, found, hint } in check(machine, args)? {
            if state == CheckState::Missing {
                worst = state;
            }
            if args.json {
                output::json(&json!({ "check": check, "state": state, "found": found, "hint": hint }))?;
            } else {
                let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
                rows.push(vec![state.name().to_owned(), check.to_owned(), format!("{}{hint}", clean(&found))]);
            }
        }
    }
    if !args.json {
        output::table(&rows)?;
    }
    Ok(if worst == CheckState::Missing { Code::SandboxMissing.exit() } else { Exit::Done })
}

fn finding(check: &'static str, state: CheckState, found: impl Into<String>) -> CheckOutcome {
    CheckOutcome { check, state, found: found.into(), hint: None }
}
