//! Foreign runs: those that this user did not begin here. Their journals grant and choose nothing. The user gives the
//! permissions, models, settings, limits, flow and params on the command line, as for `nietz run`. Recorded outcomes are
//! reused as from a cassette.

use crate::cli::action::{self, RunAction};
use crate::cli::front::FrontArgs;
use crate::engine::run_records::Origin;
use crate::engine::runs::{Runs, check_name};
use crate::error::{Code, Failure, Result};
use crate::journal::lines::{Fork, OpenRecord};
use crate::lua::flow::Flow;
use crate::model::command::Grants;
use crate::model::param::ParamKind;
use crate::model::text::{clean, excerpt, shell};
use crate::run::live::NewRun;
use crate::run::machine::Machine;
use crate::run::session::Session;

/// How many characters of a journal's own description are shown.
const SHOWN: usize = 400;

/// What determines how a resumed or forked run goes on.
pub(super) enum Terms {
    /// Its journal: the run is the user's own.
    Own,
    /// The command line: the run is foreign.
    Given(Box<ExplicitTerms>),
}

/// A flow and its arguments, as the command line gives them.
pub(super) struct ExplicitTerms {
    pub session: Session,
    pub begin: NewRun,
    pub front: FrontArgs,
}

/// Returns the terms on which a run is resumed or forked, as `verb` says; `words` are the arguments behind `--`.
pub(super) fn terms(
    machine: &Machine,
    verb: &str,
    (id, open, origin): (&str, &OpenRecord, Origin),
    words: Vec<String>,
) -> Result<Terms> {
    match origin {
        Origin::Own if words.is_empty() => Ok(Terms::Own),
        Origin::Own => {
            Err(Failure::new(Code::Usage, format!("run {} is your own: its journal says the rest", excerpt(id)))
                .hint("leave out what stands behind `--`; `nietz fork --set PARAM=VALUE` changes something"))
        }
        Origin::Foreign(why) if words.is_empty() => Err(foreign_failure(verb, id, open, &why)),
        Origin::Foreign(_) => {
            explicit_terms(machine, verb, (id, open), words).map(|given| Terms::Given(Box::new(given)))
        }
    }
}

/// Returns the run that a foreign run was forked from if that run is foreign, too, or else a notice for the user: naming one
/// of the user's own runs in a journal must not give access to what that run recorded.
pub(super) fn fork(machine: &Machine, fork: Option<Fork>) -> Result<(Option<Fork>, Option<String>)> {
    let Some(fork) = fork else { return Ok((None, None)) };
    check_name(&fork.run)?;
    if !is_own(&machine.runs(), &fork.run)? {
        return Ok((Some(fork), None));
    }
    let notice = format!(
        "the journal says that this run was forked from {}, which is your own: nothing is taken from it",
        fork.run
    );
    Ok((None, Some(notice)))
}

fn is_own(runs: &Runs, id: &str) -> Result<bool> {
    Ok(runs.one(id)?.is_some_and(|run| run.origin == Origin::Own))
}

/// Returns a notice for each foreign run whose result the user passes to a new run.
pub(super) fn results(machine: &Machine, flow: &Flow, begin: &NewRun) -> Result<Vec<String>> {
    let runs = machine.runs();
    let params =
        flow.command(begin.command.as_deref())?.params.iter().filter(|(_, param)| param.kind == ParamKind::Run);
    let names = params.filter_map(|(name, _)| Some((name, begin.params[name]["run"].as_str()?)));
    let notice = |(name, run)| {
        let run = excerpt(run);
        format!("--{name}: the run {run} was not begun by you in this folder: whoever brought it wrote its result")
    };
    let mut notices = Vec::new();
    for (name, run) in names {
        if !is_own(&runs, run)? {
            notices.push(notice((name, run)));
        }
    }
    Ok(notices)
}

fn explicit_terms(
    machine: &Machine,
    verb: &str,
    (id, open): (&str, &OpenRecord),
    words: Vec<String>,
) -> Result<ExplicitTerms> {
    let usage = |message: String| Failure::new(Code::Usage, message);
    // The name becomes part of branches and worktrees, so it must be the one that the user gave: the name of the folder.
    if open.run != id {
        return Err(usage(format!("the journal of {} is that of a run {}", excerpt(id), excerpt(&open.run)))
            .hint("the folder of a run has its name: rename the folder"));
    }
    let Some((session, action)) = action::load_action(machine, words)? else {
        return Err(usage("which flow does it go on with?".to_owned())
            .hint(format!("nietz {verb} {} -- FLOW [ARGS]", shell(id))));
    };
    let RunAction::Run(mut begin, front) = action else {
        return Err(usage("behind `--` stands what the run goes on with: no --help and no --plan".to_owned()));
    };
    let name = &session.flow.manifest.name;
    if *name != open.flow {
        let message = format!("{} is a run of {}, not of {}", excerpt(id), excerpt(&open.flow), excerpt(name));
        return Err(usage(message).hint("name the flow that it is of: nothing that it recorded fits another one"));
    }
    // Seed and language grant nothing, and with others every recorded request would be made again: keep those of the journal.
    begin.seed = begin.seed.or(Some(open.seed));
    let is_language = open.lang.len() == 2 && open.lang.bytes().all(|byte| byte.is_ascii_lowercase());
    begin.lang = begin.lang.or_else(|| is_language.then(|| open.lang.clone()));
    begin.workspace.clone_from(&open.workspace);
    Ok(ExplicitTerms { session, begin: *begin, front })
}

fn foreign_failure(verb: &str, id: &str, open: &OpenRecord, why: &str) -> Failure {
    let (id, typed) = (excerpt(id), shell(id));
    let message =
        format!("run {id} was not begun by you in this folder: nothing that its journal grants or names holds");
    let cut: String = describe_journal(open).chars().take(SHOWN).collect();
    Failure::new(Code::RunForeign, message)
        .because(clean(why))
        .because(format!("its journal says: {}", clean(&cut)))
        .hint(format!(
            "look at it: nietz log {typed}; go on with it by what you give: nietz {verb} {typed} -- FLOW [ARGS]"
        ))
}

/// Describes what a journal asks for, so that the user can decide which of it to grant.
fn describe_journal(open: &OpenRecord) -> String {
    let Grants { net, no_sandbox, read } = &open.grants;
    let mut parts = vec![format!("flow {}", open.flow)];
    parts.extend(open.command.iter().map(|command| format!("command {command}")));
    parts.extend(open.model.iter().map(|model| format!("model {model}")));
    parts.extend(no_sandbox.then(|| "without a sandbox".to_owned()));
    parts.extend(net.then(|| "with the network".to_owned()));
    parts.extend((!read.is_empty()).then(|| format!("reading {}", read.join(", "))));
    parts.push(format!("params {}", open.params));
    parts.join(", ")
}
