//! What a param names: a run, a commit, a persona. It must be there before a run begins, so that what is misspelt is wrong
//! usage and leaves no run.

use std::path::Path;

use serde_json::{Value, json};

use crate::error::{Code, Failure, Result, nearest};
use crate::host::exec::key_files::KeyFile;
use crate::host::git::Repository;
use crate::lua::flow::Flow;
use crate::lua::manifest::FlowCommand;
use crate::model::command;
use crate::model::event::EndStatus;
use crate::model::param::{Param, ParamKind};
use crate::model::text::{clean, excerpt};
use crate::pack::persona::Personas;
use crate::run::machine::Machine;
use crate::run::replay::{self, JournalEnds};

/// The most branches that a hint names.
const MOST_BRANCHES: usize = 5;

/// Replaces each param that names something by what the flow gets, and refuses what is not there.
pub(super) fn take_all(machine: &Machine, flow: &Flow, own: &FlowCommand, params: &mut Value) -> Result<()> {
    for (name, param) in &own.params {
        match params.get_mut(name) {
            Some(Value::Array(items)) => {
                items.iter_mut().try_for_each(|item| take(machine, flow, (name, param), item))?;
            }
            Some(value) => take(machine, flow, (name, param), value)?,
            None => {}
        }
    }
    for name in flow.manifest.permissions.exec_read.iter().filter_map(|grant| command::placeholder(grant)) {
        match params.get_mut(name) {
            Some(Value::Array(items)) => {
                items.iter_mut().try_for_each(|item| take_key_file(machine, name, item))?;
            }
            Some(value) => take_key_file(machine, name, value)?,
            None => {}
        }
    }
    Ok(())
}

/// Replaces the name of a file with keys by its whole path.
fn take_key_file(machine: &Machine, name: &str, value: &mut Value) -> Result<()> {
    let Some(named) = value.as_str() else { return Ok(()) };
    let home = machine.variable("HOME").map(Path::new);
    let file = KeyFile::find(named, home, &machine.protected_folders()).map_err(of_param(name))?;
    *value = json!(file.place);
    Ok(())
}

/// Does the same for one value of a param.
pub(super) fn take(machine: &Machine, flow: &Flow, (name, param): (&str, &Param), value: &mut Value) -> Result<()> {
    let Some(wanted) = value.as_str() else { return Ok(()) };
    match param.kind {
        ParamKind::Run => *value = result_of_run(machine, &flow.manifest.name, wanted)?,
        ParamKind::Revision => check_revision(machine, wanted).map_err(of_param(name))?,
        ParamKind::Persona => {
            let found = Personas::new(machine.layers(&flow.located.tree)?).get(wanted);
            found.map(drop).map_err(|failure| match failure.code {
                Code::PersonaNotFound => of_param(name)(Failure { code: Code::Usage, ..failure }),
                _ => failure,
            })?;
        }
        // Whether a model is there is known only to its provider, who is asked by the run.
        ParamKind::String
        | ParamKind::Integer
        | ParamKind::Number
        | ParamKind::Boolean
        | ParamKind::Model
        | ParamKind::Attachment => {}
    }
    Ok(())
}

fn of_param(name: &str) -> impl Fn(Failure) -> Failure + '_ {
    move |failure| Failure { message: format!("{name}: {}", failure.message), ..failure }
}

/// Returns the result of a run, which the new run's journal then records like all params.
fn result_of_run(machine: &Machine, flow: &str, wanted: &str) -> Result<Value> {
    let runs = machine.runs();
    let id = runs.find_own(wanted)?;
    let JournalEnds { open, end, .. } = replay::read_ends(&runs.journal(&id)?)?;
    let flow_of_run = open.flow;
    if flow_of_run != flow {
        return Err(Failure::new(Code::Usage, format!("{id} is a run of {}, not of {flow}", clean(&flow_of_run)))
            .hint("`nietz runs` tells which is which"));
    }
    match end {
        Some(end) if end.status == EndStatus::Done => Ok(json!({ "run": id, "result": end.result })),
        _ => Err(Failure::new(Code::Usage, format!("{id} is not done: it has no result yet"))
            .hint(format!("nietz resume {id}"))),
    }
}

fn check_revision(machine: &Machine, wanted: &str) -> Result<()> {
    let repository =
        Repository::new(&machine.repository().0, &machine.worktrees(), "", &machine.environment, machine.config.git);
    match repository.resolve(wanted) {
        Ok(Some(_)) => Ok(()),
        Ok(None) => {
            let message = format!("there is no commit `{}` in this repository", excerpt(wanted));
            let names = repository.branch_names()?;
            let hint = match (nearest(wanted, names.iter().map(String::as_str)), names.len()) {
                (Some(near), _) => format!("did you mean `{near}`?"),
                (None, all) => {
                    let more = if all > MOST_BRANCHES { ", …" } else { "" };
                    let some = names.iter().take(MOST_BRANCHES).map(|name| clean(name)).collect::<Vec<_>>().join(", ");
                    format!("branches here: {some}{more}; a tag, HEAD~1 or a hash will do, too; nothing is fetched")
                }
            };
            Err(Failure::new(Code::Usage, message).hint(hint))
        }
        // What is no revision at all, or the beginning of several hashes.
        Err(failure) if failure.code == Code::RequestInvalid => Err(Failure { code: Code::Usage, ..failure }),
        Err(failure) => Err(failure),
    }
}
