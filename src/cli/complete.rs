//! What a shell completes: verbs and options as they are declared, and names that are looked up when Tab is pressed: flows
//! with their own options, runs, models, personas, packs, error codes.
//!
//! `nietz completions SHELL` prints what a shell needs for it; the shell then starts nietz with [`VARIABLE`].

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::{Arg, Command, ValueHint};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::CompleteEnv;

use crate::cli::{action, docs, explain};
use crate::engine::runs::LATEST;
use crate::error::{Code, Exit};
use crate::lua::api;
use crate::lua::manifest::FlowCommand;
use crate::model::param::ParamKind;
use crate::pack::lock::Lockfile;
use crate::pack::resolve;
use crate::run::machine::Machine;
use crate::run::session::Session;

/// The variable with the name of the shell that asks.
pub(super) const VARIABLE: &str = "NIETZ_COMPLETE";

/// How many runs are offered, the newest first.
const RUNS: usize = 50;

/// Answers a shell, and returns the exit code.
pub(super) fn answer(arguments: Vec<OsString>, machine: &Machine, command: &Command) -> ExitCode {
    let words: Vec<OsString> = arguments.iter().skip_while(|word| *word != "--").skip(1).cloned().collect();
    let here = machine.project.here.clone();
    let factory = || with_names(command.clone(), machine, &words);
    let answered = CompleteEnv::with_factory(factory).var(VARIABLE).bin("nietz").try_complete(arguments, Some(&here));
    match answered {
        Ok(_) => ExitCode::from(Exit::Done as u8),
        // A shell shows nothing of it, and completes file names.
        Err(_) => ExitCode::from(Exit::Failed as u8),
    }
}

/// Returns the folder that the words on the line name by `-C`.
pub(super) fn workspace(arguments: &[OsString]) -> Option<PathBuf> {
    let mut words = arguments.iter().skip_while(|word| *word != "--").skip(1);
    words.find(|word| *word == "-C" || *word == "--workspace")?;
    words.next().map(PathBuf::from)
}

/// Adds the names that there are to the arguments that take them.
fn with_names(command: Command, machine: &Machine, words: &[OsString]) -> Command {
    let command = offer(command, "", machine);
    let behind: Vec<&OsString> = words.iter().skip_while(|word| *word != "run").skip(1).collect();
    command.mut_subcommand("run", |_| run_command(machine, &behind))
}

fn offer(command: Command, verb: &str, machine: &Machine) -> Command {
    let command = command.mut_args(|arg| match names(verb, arg.get_id().as_str(), machine) {
        Some(names) => with_candidates(arg, names),
        None => arg,
    });
    command.mut_subcommands(|sub| {
        let name = sub.get_name().to_owned();
        offer(sub, &name, machine)
    })
}

/// A name that can be typed, and what it means.
type Name = (String, Option<String>);

fn with_candidates(arg: Arg, names: Vec<Name>) -> Arg {
    let candidate = |(name, help): &Name| CompletionCandidate::new(name).help(help.clone().map(StyledStr::from));
    arg.add(ArgValueCandidates::new(move || names.iter().map(candidate).collect()))
}

fn plain(names: impl IntoIterator<Item = String>) -> Vec<Name> {
    names.into_iter().map(|name| (name, None)).collect()
}

/// Returns what an argument of a verb can be, by the name that it has there.
fn names(verb: &str, arg: &str, machine: &Machine) -> Option<Vec<Name>> {
    Some(match (verb, arg) {
        ("explain", "wanted") => codes(),
        ("docs", "wanted") => {
            let modules = api::ALL.iter().map(|(path, ..)| path.rsplit(['/', '@']).next().unwrap_or(path));
            plain(docs::PAGES.iter().map(|(name, _)| *name).chain(modules).map(str::to_owned))
        }
        ("update" | "remove", "name") => {
            plain(Lockfile::read(&machine.workspace).map(|lock| lock.packs).unwrap_or_default().into_keys())
        }
        (_, "run" | "runs" | "other" | "from_run") => runs(machine),
        (_, "model" | "models" | "judge") => plain(models(machine)),
        (_, "flow") => plain(resolve::names(&machine.workspace, &machine.packs()).unwrap_or_default()),
        (_, "slug") => plain(personas(machine)),
        (_, "provider") => plain(machine.config.models.providers()),
        _ => return None,
    })
}

fn codes() -> Vec<Name> {
    Code::ALL.iter().map(|code| (code.name().to_owned(), Some(explain::summary(*code)))).collect()
}

fn runs(machine: &Machine) -> Vec<Name> {
    // A completion that fails says nothing.
    let mut ids = machine.runs().ids().unwrap_or_default();
    ids.reverse();
    let latest = (!ids.is_empty()).then(|| (LATEST.to_owned(), Some("yours that began last".to_owned())));
    plain(ids.into_iter().take(RUNS)).into_iter().chain(latest).collect()
}

/// Returns the aliases and the providers' usual models.
fn models(machine: &Machine) -> Vec<String> {
    let models = &machine.config.models;
    models.aliases.keys().cloned().chain(models.usual_models()).collect()
}

fn personas(machine: &Machine) -> Vec<String> {
    let trees = machine.trees().unwrap_or_default();
    let paths = trees.iter().flat_map(|tree| tree.list("personas", ".md"));
    let mut slugs: Vec<String> =
        paths.filter_map(|path| Some(path.rsplit('/').next()?.strip_suffix(".md")?.to_owned())).collect();
    slugs.sort();
    slugs.dedup();
    slugs
}

/// Returns `nietz run` with the flows there are; the one that is named has its own options and commands.
fn run_command(machine: &Machine, behind: &[&OsString]) -> Command {
    let known = resolve::names(&machine.workspace, &machine.packs()).unwrap_or_default();
    let mut run = offer(action::command("nietz run", ""), "run", machine);
    // A flow is named by a path, too.
    run = run.arg(Arg::new("path").value_hint(ValueHint::FilePath)).subcommand_precedence_over_arg(true);
    // What is under the cursor may be the beginning of a name, and is no flow yet.
    let finished = behind.split_last().map_or(&[][..], |(_, finished)| finished);
    let words: Vec<String> = finished.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let named = action::flow_at(&words).and_then(|at| words.get(at)).cloned();
    let others = known.iter().filter(|name| Some(*name) != named.as_ref());
    run = run.subcommands(others.map(|name| Command::new(name.clone())));
    match named.and_then(|name| flow_command(machine, &name)) {
        Some(flow) => run.subcommand(flow),
        None => run,
    }
}

fn flow_command(machine: &Machine, wanted: &str) -> Option<Command> {
    let located = resolve::flow(wanted, &machine.workspace, &machine.packs()).ok()?;
    let session = Session::load(machine, located).ok()?;
    let command = action::flow_command(wanted, &session).ok()?;
    let manifest = &session.flow.manifest;
    let command = offer_params(offer(command, "run", machine), &manifest.main, machine);
    let command = manifest
        .offered()
        .fold(command, |command, (name, own)| command.mut_subcommand(name, |sub| offer_params(sub, own, machine)));
    Some(command.name(wanted.to_owned()))
}

/// Adds the names that params of a flow take by their kind.
fn offer_params(command: Command, own: &FlowCommand, machine: &Machine) -> Command {
    command.mut_args(|arg| match own.params.get(arg.get_id().as_str()).map(|param| param.kind) {
        Some(ParamKind::Persona) => with_candidates(arg, plain(personas(machine))),
        Some(ParamKind::Model) => with_candidates(arg, plain(models(machine))),
        Some(ParamKind::Run) => with_candidates(arg, runs(machine)),
        Some(ParamKind::Attachment) => arg.value_hint(ValueHint::FilePath),
        _ => arg,
    })
}

/// Tells whether a shell asks.
pub(super) fn is_asked(environment: &[(OsString, OsString)]) -> bool {
    environment.iter().any(|(name, shell)| name == VARIABLE && !shell.is_empty() && shell != OsStr::new("0"))
}
