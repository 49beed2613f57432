//! What is told of a command line that came to no run: a flow's name in the place of a verb, and failures for programs that
//! read events.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::error::{Code, Failure};
use crate::host::children;
use crate::model::text::{excerpt, shell};
use crate::pack::resolve;
use crate::run::machine::Machine;

/// The verbs that write events with `--json`.
const OF_RUNS: [&str; 3] = ["run", "resume", "fork"];

/// Tells whether a program reads standard output as events of a run.
pub(super) fn wants_events(arguments: &[OsString]) -> bool {
    let own = || arguments.iter().skip(1).take_while(|word| *word != "--");
    if own().any(|word| word == children::VERB) {
        return true;
    }
    own().any(|word| OF_RUNS.iter().any(|verb| word == verb)) && own().any(|word| word == "--json")
}

/// Returns what to say of a word that is no verb, if it is a flow's name or its path.
pub(super) fn flow_as_verb(error: &clap::Error, arguments: &[OsString], machine: &Machine) -> Option<Failure> {
    let word = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) if error.kind() == ErrorKind::InvalidSubcommand => word,
        _ => return None,
    };
    let names = resolve::names(&machine.workspace, &machine.packs()).unwrap_or_default();
    let is_file = resolve::is_path(word) && machine.typed_path(word).is_file();
    if !is_file && !names.contains(word) && resolve::flow(word, &machine.workspace, &machine.packs()).is_err() {
        return None;
    }
    let behind = arguments.iter().map(|word| word.to_string_lossy()).skip_while(|one| one != word).skip(1);
    let line: Vec<String> = std::iter::once(shell(word)).chain(behind.map(|word| shell(&word))).collect();
    let message = format!("`{}` is a flow, and no command of nietz", excerpt(word));
    Some(Failure::new(Code::Usage, message).hint(format!("nietz run {}", line.join(" "))))
}
