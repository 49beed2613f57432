//! `nietz fork RUN` starts a new run from a recorded one; `nietz why RUN EFFECT` explains whether an effect is done again.

#[cfg(feature = "postgres")]
mod lost;
mod plan;

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;

use crate::cli::budget::BudgetArgs;
use crate::cli::effort::EffortArgs;
use crate::cli::foreign::{self, ExplicitTerms, Terms};
use crate::cli::front::FrontArgs;
use crate::cli::grants::GrantArgs;
use crate::cli::params;
use crate::cli::recorded::RecordedEffect;
use crate::cli::start;
use crate::cli::texts::TextReader;
use crate::cli::{named, output};
use crate::engine::replay_source::{ReplayMode, ReplaySource};
use crate::error::{Code, Exit, Failure, Result, nearest};
use crate::journal::lines::Fork;
use crate::lua::flow::Flow;
use crate::lua::manifest::FlowCommand;
use crate::model::budget::Budget;
use crate::model::choice::RunEfforts;
use crate::model::command::Grants;
use crate::model::param::ParamOrigin;
use crate::model::text::excerpt;
use crate::run::live;
use crate::run::live::NewRun;
use crate::run::machine::Machine;
use crate::run::replay;
use crate::run::session::Session;

/// Start a new run from a recorded one: only what a change touches is done, asked and paid for
#[derive(Args)]
pub(super) struct ForkArgs {
    /// The run's id, a part of it that only one has, or `latest`; with --into also the file of a cassette
    run: String,
    /// Do this effect anew, and all that were asked for after it: a line or a key of `nietz log`
    #[arg(long, value_name = "EFFECT")]
    at: Option<String>,
    /// The model, instead of the run's
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    #[command(flatten)]
    effort: EffortArgs,
    /// Ask all models anew; what people said, time and chance are given back
    #[arg(long)]
    calls_anew: bool,
    /// Give a param another value; several times for a list
    #[arg(long, value_name = "PARAM=VALUE")]
    set: Vec<String>,
    /// Work for this folder: documents happen anew there, and those of the run stay as they are
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
    /// With a store, where the machine with its branches is lost: begin it anew here, and cancel it. Models, people and servers are asked
    /// nothing again that they have answered; all else happens anew
    #[cfg(feature = "postgres")]
    #[arg(long, conflicts_with_all = ["at", "calls_anew", "set", "into", "model", "effort"])]
    lost: bool,
    /// With --lost: leave it to a worker
    #[cfg(feature = "postgres")]
    #[arg(long, requires = "lost", conflicts_with = "plan")]
    queue: bool,
    /// Only tell what would be given back, and what would be done anew, with calls, tokens and cost
    #[arg(long, conflicts_with = "into")]
    plan: bool,
    #[command(flatten)]
    front: FrontArgs,
    #[command(flatten)]
    grants: GrantArgs,
    #[command(flatten)]
    budget: BudgetArgs,
    /// For a run that you did not begin here: the flow, its params, permissions and models, as for `nietz run`
    #[arg(last = true, value_name = "FLOW [ARGS]", conflicts_with_all = ["set", "model", "effort"])]
    words: Vec<String>,
}

/// Say why an effect of a run was done again, or would be
#[derive(Args)]
pub(super) struct WhyArgs {
    /// The run's id, a part of it that only one has, or `latest`
    run: String,
    /// A line or a key of `nietz log`
    effect: String,
}

pub(super) fn run(machine: &Machine, args: ForkArgs) -> Result<Exit> {
    let runs = machine.runs();
    let cassette = args.into.is_some() && args.run.ends_with(".jsonl") && Path::new(&args.run).is_file();
    let (id, journal) = match cassette {
        true => (args.run.clone(), PathBuf::from(&args.run)),
        false => runs.find(Some(&args.run)).map(|id| runs.journal(&id).map(|journal| (id, journal)))??,
    };
    #[cfg(feature = "postgres")]
    let lost = args.lost;
    #[cfg(not(feature = "postgres"))]
    let lost = false;
    #[cfg(feature = "postgres")]
    if lost {
        lost::check(machine, &id)?;
    }
    let replay::JournalEnds { open, first, .. } = replay::read_ends(&journal)?;
    // Of a cassette, what was asked is taken, and nothing that it was allowed.
    let terms = match cassette {
        true => Terms::Own,
        false => foreign::terms(machine, "fork", (&id, &open, runs.origin(&id, &first)), args.words)?,
    };
    let (session, begin, front) = match terms {
        Terms::Own => {
            let located = match cassette {
                true => replay::flow_of(&machine.workspace, &open)?,
                false => machine.find_flow(&open.source)?,
            };
            let session = Session::load(machine, located)?;
            let mut params = open.params.clone();
            let command = session.flow.command(open.command.as_deref())?;
            let texts = set(machine, &session.flow, command, (&mut params, open.origins), &args.set)?;
            let efforts = RunEfforts {
                run: args.effort.effort.or(open.efforts.run),
                // It belongs to the name of the run's own model.
                model: open.efforts.model.filter(|_| args.model.is_none()),
                ..open.efforts
            };
            let begin = NewRun {
                command: open.command,
                params,
                origins: texts.origins,
                files: texts.files,
                files_from: None,
                by_name: false,
                only_model: open.only_model,
                model: args.model.or(open.model),
                efforts,
                lang: Some(open.lang),
                // What was made by chance stands in documents already.
                seed: (!lost).then_some(open.seed),
                budget: if lost { open.budget } else { Budget::default() },
                id: machine.variable("NIETZ_RUN").map(str::to_owned),
                grants: if lost { open.grants } else { Grants::default() },
                workspace: open.workspace,
                fork: None,
                of: None,
                replay_source: None,
                kept: true,
            };
            (session, begin, args.front)
        }
        Terms::Given(given) => {
            let ExplicitTerms { session, begin, front } = *given;
            (session, begin, args.front.or(front))
        }
    };
    let before = args.at.as_deref().map(|at| RecordedEffect::find(&journal, at)).transpose()?.map(|effect| effect.seq);
    let fork = Fork { run: id.clone(), before, lost };
    let (work, fork, mut source) = match &args.into {
        None => (machine.workspace.clone(), Some(fork.clone()), live::fork_source(machine, &fork)?),
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(|error| Failure::io(folder, "create", &error))?;
            let folder = folder.canonicalize().map_err(|error| Failure::io(folder, "find", &error))?;
            // What a cassette found around it is nowhere else.
            let mode = if cassette { ReplayMode::AllButDocuments } else { ReplayMode::WhatWasSaid };
            let mut source = ReplaySource::new(&journal, mode)?;
            before.map_or(Ok(()), |line| source.forget_from(line))?;
            (folder, None, source)
        }
    };
    if args.calls_anew {
        source.forget_calls()?;
    }
    let begin = NewRun {
        budget: begin.budget.replaced(args.budget.budget()?),
        grants: args.grants.added_to(begin.grants),
        fork,
        files_from: (!cassette).then(|| runs.attachments(&id)),
        replay_source: Some(source),
        ..begin
    };
    #[cfg(feature = "postgres")]
    if lost && !args.plan {
        return lost::begin(machine, session, (&id, begin), &front, args.queue);
    }
    match args.plan {
        true => plan::show(machine, &session, begin, &journal, front.json),
        false => start::begin(&machine.in_workspace(work), session, begin, &front),
    }
}

/// Replaces params of a run by the values of `--set`. Returns where texts of the params came from, and the files that were given.
fn set(
    machine: &Machine,
    flow: &Flow,
    command: &FlowCommand,
    (params, mut origins): (&mut Value, Vec<ParamOrigin>),
    given: &[String],
) -> Result<TextReader> {
    let mut texts = TextReader::default();
    let mut lists: std::collections::BTreeMap<&str, Vec<Value>> = std::collections::BTreeMap::new();
    for assignment in given {
        let usage = |message: String| Failure::new(Code::Usage, message);
        let (name, text) = assignment
            .split_once('=')
            .ok_or_else(|| usage(format!("--set {}: write PARAM=VALUE", excerpt(assignment))))?;
        // On the command line of `run`, the option of `max_rounds` is `--max-rounds`.
        let respelled = name.replace('-', "_");
        let name = command
            .params
            .get_key_value(name)
            .or_else(|| command.params.get_key_value(&respelled))
            .map_or(name, |(name, _)| name.as_str());
        let Some(param) = command.params.get(name) else {
            let failure = usage(format!("the flow has no param `{}`", excerpt(name)));
            return Err(match nearest(name, command.params.keys().map(String::as_str)) {
                Some(near) => failure.hint(format!("did you mean `{near}`?")),
                None => failure,
            });
        };
        origins.retain(|origin| origin.param != name);
        let item = param.many.then(|| lists.get(name).map_or(0, Vec::len));
        let exec = &flow.manifest.permissions.typed();
        let value = params::parse_value((name, param), item, text, exec, &mut texts)?;
        let mut value = value.ok_or_else(|| {
            usage(format!("--set {name}: this file is an image or a PDF, and no text"))
                .hint("give it as --set attach=FILE")
        })?;
        named::take(machine, flow, (name, param), &mut value)?;
        match param.many {
            true => lists.entry(name).or_default().push(value),
            false => params[name] = value,
        }
    }
    for (name, values) in lists {
        params::check_count(name, &command.params[name], values.len())?;
        params[name] = Value::Array(values);
    }
    origins.append(&mut texts.origins);
    texts.origins = origins;
    Ok(texts)
}

pub(super) fn why(machine: &Machine, args: &WhyArgs) -> Result<Exit> {
    let runs = machine.runs();
    let id = runs.find(Some(&args.run))?;
    let journal = runs.journal(&id)?;
    let effect = RecordedEffect::find(&journal, &args.effect)?;
    let scope = if effect.scope == "/" { String::new() } else { format!(" in {}", effect.scope) };
    output::line(format!("line {}: {}{scope} {}", effect.seq, effect.kind, excerpt(&effect.request.to_string())))?;
    let failed = effect.outcome.as_ref().is_some_and(|outcome| outcome["failure"].is_object());
    output::line(match &effect.outcome {
        None if effect.resumed => {
            "It was begun, and the process ended before its outcome was written: it was left, or is done again."
        }
        None => "It was begun and has no outcome: resuming the run does it again.",
        Some(_) if failed => {
            "It failed. A failure that the flow went on after is given back; one that ended the run is tried again."
        }
        Some(_) if effect.begun > 1 && effect.kind == "ask" => {
            "It was asked more than once: a process ended before it was answered, or another question came before it."
        }
        Some(_) if effect.begun > 1 => {
            "It was begun more than once: a process ended before its outcome was written. It has one now."
        }
        Some(_) => "It was done once, and its outcome is recorded.",
    })?;
    let ends = replay::read_ends(&journal)?;
    let located = replay::locate_flow(machine, &id, &ends)?;
    let open = ends.open;
    let layers = machine.layers(&located.tree)?;
    let tree = located.tree.clone();
    let played = replay::play(machine, (located, layers), (&journal, &open), None)?;
    let digests = tree.digests();
    let changed: Vec<&str> = digests
        .iter()
        // What was read only later, such as personas, does not stand there.
        .filter(|(path, digest)| open.files.get(*path).is_some_and(|was| was != *digest))
        .map(|(path, _)| path.as_str())
        .collect();
    if !changed.is_empty() {
        output::line(format!("Changed since the run began: {}.", changed.join(", ")))?;
    }
    if played.asked_for(effect.key) {
        output::line("With the files of now, the flow asks for just the same: it is given back, and not done again.")?;
        return Ok(Exit::Done);
    }
    match played.cassette_miss() {
        Some(missed) => {
            output::line(
                "With the files of now, it is not given back: before it, or in its place, the flow asks for something else.",
            )?;
            for detail in &missed.details {
                output::block(detail)?;
            }
        }
        None => output::line("With the files of now, the flow comes to its end without asking for it.")?,
    }
    Ok(Exit::Done)
}
