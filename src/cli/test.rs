//! `nietz test [PATH…]`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use serde_json::json;

use crate::cli::host::Host;
use crate::cli::output;
use crate::cli::replay::{self, Ends};
use crate::cli::run::{self, Line};
use crate::cli::session::{Begin, FrontArgs, Session};
use crate::engine::donor::{Donor, Takes};
use crate::error::{Code, Exit, Failure, Result};
use crate::host::ui::ending;
use crate::model::budget::Budget;
use crate::model::command::Grants;
use crate::model::event::EndStatus;
use crate::pack::resolve::{self, Located};
use crate::pack::tree::{Root, Tree, below};

/// Test flows: replay their cassettes, with no model, no key and no network
///
/// A cassette is a run that was kept: `tests/cassettes/FLOW/NAME.jsonl`. A replay fails where the flow asks for anything
/// that the cassette does not have, and where its end is another one. It never goes live.
#[derive(Args)]
pub(super) struct TestArgs {
    /// Cassettes, flows, or folders with `tests/cassettes`; without one, all of this folder
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
    /// Record: those that do not replay any more, where only what changed is asked of a model; or, with a flow and its
    /// arguments behind `--`, a new one
    #[arg(long)]
    record: bool,
    /// Make a cassette of a run of this folder
    #[arg(long, value_name = "RUN", conflicts_with_all = ["record", "paths"])]
    from_run: Option<String>,
    /// The name of the new cassette [default: the flow's command, or `run`]
    #[arg(long)]
    name: Option<String>,
    /// The model to record with, instead of the one that it was recorded with
    #[arg(long, value_name = "NAME", requires = "record")]
    model: Option<String>,
    #[command(flatten)]
    front: FrontArgs,
    /// Arguments of the flow to record, as for `nietz run`
    #[arg(last = true, value_name = "ARGS", requires = "record")]
    rest: Vec<String>,
}

/// One cassette of a pack.
pub(super) struct Case {
    name: String,
    path: PathBuf,
    /// The pack's folder.
    root: PathBuf,
}

pub(super) fn run(host: &Host, args: TestArgs) -> Result<Exit> {
    if let Some(wanted) = &args.from_run {
        return from_run(host, wanted, args.name.as_deref());
    }
    if args.record && (!args.rest.is_empty() || args.name.is_some()) {
        return record_new(host, args);
    }
    let cases = cases(host, &args.paths)?;
    if cases.is_empty() {
        return Err(Failure::new(Code::Usage, "there is no cassette here")
            .hint("make one of a run: nietz test --from-run RUN; or record one: nietz test --record FLOW -- ARGS"));
    }
    let (mut failed, total) = (0, cases.len());
    for case in &cases {
        let since = Instant::now();
        let mut outcome = case.played(host).map(|effects| (effects, "passed"));
        if args.record && outcome.is_err() {
            outcome = case.record(host, &args).map(|effects| (effects, "recorded"));
        }
        failed += usize::from(outcome.is_err());
        tell(host, case, &outcome, since.elapsed().as_millis(), args.front.json)?;
    }
    if !args.front.json {
        output::line(format!("{} passed, {failed} failed", total - failed))?;
    }
    Ok(if failed == 0 { Exit::Done } else { Exit::Failed })
}

fn tell(host: &Host, case: &Case, outcome: &Result<(usize, &str)>, ms: u128, as_json: bool) -> Result<()> {
    let shown = below(&host.workspace, &case.path).unwrap_or_else(|| case.path.display().to_string());
    match outcome {
        Ok((effects, how)) if as_json => output::line(
            json!({ "case": case.name, "path": shown, "passed": true, "how": how, "effects": effects, "ms": ms }),
        ),
        Ok((effects, how)) => output::line(format!("{how} {}: {effects} effects in {ms} ms", case.name)),
        Err(failure) if as_json => {
            output::line(json!({ "case": case.name, "path": shown, "passed": false, "ms": ms, "failure": failure }))
        }
        Err(failure) => {
            output::line(format!("FAILED {}", case.name))?;
            output::line(ending::failure(failure, &ending::plain).trim_end())
        }
    }
}

/// Plays every cassette of a pack, and returns how many there are.
pub(super) fn play_all(host: &Host, root: &Path) -> Result<usize> {
    let cases = in_folder(root, &replay::folder(root));
    for case in &cases {
        case.played(host)
            .map_err(|failure| Failure { message: format!("{}: {}", case.name, failure.message), ..failure })?;
    }
    Ok(cases.len())
}

impl Case {
    fn ends(&self) -> Result<Ends> {
        replay::ends(&self.path)
    }

    /// Returns the flow of this cassette, and where its personas and quotes come from.
    fn flow(&self, host: &Host, ends: &Ends) -> Result<(Located, Vec<Tree>)> {
        let located = replay::flow_of(&self.root, &ends.open).or_else(|failure| match self.root == host.workspace {
            // A project tests the flows of its packs as well.
            true => resolve::flow(&ends.open.flow, &host.workspace, &host.packs()).map_err(|_| failure),
            false => Err(failure),
        })?;
        // What else is installed is no part of a pack that is tested for itself.
        let layers = match self.root == host.workspace {
            true => host.layers(&located.tree)?,
            false => vec![located.tree.clone(), Tree::new(Root::Bundled)],
        };
        Ok((located, layers))
    }

    fn played(&self, host: &Host) -> Result<usize> {
        let ends = self.ends()?;
        let end = ended(&self.path, &ends)?;
        let flow = self.flow(host, &ends)?;
        let played = replay::play(host, flow, (&self.path, &ends.open), None)?;
        played.compared(&self.path, &end)?;
        Ok(played.effects)
    }

    /// Runs the flow again in an empty folder: what was said is taken from the cassette where it is asked for just so,
    /// everything else happens anew.
    fn record(&self, host: &Host, args: &TestArgs) -> Result<usize> {
        let ends = self.ends()?;
        let (located, layers) = self.flow(host, &ends)?;
        let open = &ends.open;
        let begin = Begin {
            command: open.command.clone(),
            params: open.params.clone(),
            model: args.model.clone().or_else(|| open.model.clone()),
            lang: Some(open.lang.clone()),
            seed: Some(open.seed),
            budget: Budget::default(),
            id: Some(open.run.clone()),
            grants: Grants::default(),
            workspace: open.workspace.clone(),
            fork: None,
            donor: Some(Donor::new(&self.path, Takes::WhatWasSaid)?),
            kept: false,
        };
        let session = Session::load_with(host, located.clone(), layers.clone())?;
        live(host, session, begin, &args.front, |journal| make(host, (located, layers), journal, &self.path))
    }
}

/// Runs a flow in an empty folder that is gone afterwards, and gives its journal to `then`.
fn live<T>(
    host: &Host,
    session: Session,
    begin: Begin,
    front: &FrontArgs,
    then: impl FnOnce(&Path) -> Result<T>,
) -> Result<T> {
    let folder = tempfile::tempdir()
        .map_err(|error| Failure::new(Code::DiskFailed, format!("cannot make a temporary folder: {error}")))?;
    let place = folder.path().canonicalize().map_err(|error| Failure::io(folder.path(), "find", &error))?;
    let work = host.in_workspace(place);
    session.begin(&work, begin, front)?;
    let id = work.runs().ids().pop().ok_or_else(|| Failure::new(Code::Internal, "the run left no journal"))?;
    then(&work.runs().journal(&id))
}

fn record_new(host: &Host, args: TestArgs) -> Result<Exit> {
    let [wanted] = args.paths.as_slice() else {
        return Err(Failure::new(Code::Usage, "which flow is recorded?").hint("nietz test --record FLOW -- ARGS"));
    };
    let located = resolve::flow(wanted, &host.workspace, &host.packs())?;
    let layers = host.layers(&located.tree)?;
    let session = Session::load_with(host, located.clone(), layers.clone())?;
    let (mut begin, front) = match run::line(host, wanted, &session, args.rest)? {
        Line::Run(begin, front) => (*begin, front),
        Line::Plan(..) => return Err(Failure::new(Code::Usage, "a plan is no run, and cannot be recorded")),
        Line::Over(exit) => return Ok(exit),
    };
    begin.workspace = Some(host.workspace_name());
    begin.kept = false;
    let name = args.name.unwrap_or_else(|| begin.command.clone().unwrap_or_else(|| "run".to_owned()));
    let path = place(host, &located, &session.flow.manifest.name, &name)?;
    let effects = live(host, session, begin, &front, |journal| make(host, (located, layers), journal, &path))?;
    told(host, &path, effects)
}

fn from_run(host: &Host, wanted: &str, name: Option<&str>) -> Result<Exit> {
    let runs = host.runs();
    let id = runs.find(Some(wanted))?;
    let journal = runs.journal(&id);
    let ends = replay::ends(&journal)?;
    let located = replay::located(host, &id, &ends)?;
    let layers = host.layers(&located.tree)?;
    let path = match name {
        Some(name) => place(host, &located, &ends.open.flow, name)?,
        None => {
            let first = ends.open.command.clone().unwrap_or_else(|| "run".to_owned());
            let names = std::iter::once(first.clone()).chain((2..).map(|number| format!("{first}-{number}")));
            let mut paths = names.map(|name| place(host, &located, &ends.open.flow, &name));
            paths
                .find(|path| path.as_ref().map_or(true, |path| !path.exists()))
                .unwrap_or_else(|| Err(Failure::new(Code::Internal, "there are more cassettes than numbers")))?
        }
    };
    let effects = make(host, (located, layers), &journal, &path)?;
    told(host, &path, effects)
}

fn told(host: &Host, path: &Path, effects: usize) -> Result<Exit> {
    let shown = below(&host.workspace, path).unwrap_or_else(|| path.display().to_string());
    output::line(format!("recorded {shown}: {effects} effects"))?;
    Ok(Exit::Done)
}

/// Writes a cassette of a journal: what a replay of it needs and nothing else, with today's secrets taken out.
fn make(host: &Host, flow: (Located, Vec<Tree>), journal: &Path, path: &Path) -> Result<usize> {
    let ends = replay::ends(journal)?;
    let end = ended(journal, &ends)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|error| Failure::io(folder, "create", &error))?;
    let beside = path.with_extension("jsonl.new");
    let played = replay::play(host, flow, (journal, &ends.open), Some(&beside)).and_then(|mut played| {
        // What was tried and given up on the way is not part of the test.
        played.forget_left();
        played.compared(journal, &end)?;
        std::fs::rename(&beside, path).map_err(|error| Failure::io(path, "write", &error))?;
        Ok(played.effects)
    });
    if played.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    played.map_err(|failure| match failure.code {
        Code::CassetteMissed | Code::CassetteDiffers => failure.hint("the flow or a secret has changed since that run"),
        _ => failure,
    })
}

/// Returns how a run ended that can be a test.
fn ended(path: &Path, ends: &Ends) -> Result<crate::journal::lines::End> {
    let end = ends.end.clone().filter(|end| matches!(end.status, EndStatus::Done | EndStatus::Failed));
    end.ok_or_else(|| {
        Failure::new(Code::Usage, format!("{}: this run was not taken to its end", path.display()))
            .hint("a test needs an end to compare: nietz resume, then record it")
    })
}

/// Returns where a new cassette is put: into the flow's own pack, or into this folder for what is bundled.
fn place(host: &Host, located: &Located, flow: &str, name: &str) -> Result<PathBuf> {
    let plain = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "-_".contains(c));
    // A journal says which flow it is of, and both become parts of a path.
    for part in [flow, name] {
        if !plain(part) {
            let shown = crate::model::text::excerpt(part);
            return Err(Failure::new(Code::Usage, format!("`{shown}` is no name of a cassette or a flow"))
                .hint("use letters, digits, hyphens"));
        }
    }
    let root = match &located.tree.root {
        Root::Disk(root) if !root.starts_with(host.packs()) => root.clone(),
        Root::Disk(_) | Root::Bundled => host.workspace.clone(),
    };
    Ok(replay::folder(&root).join(flow).join(format!("{name}.jsonl")))
}

/// Finds the cassettes that paths name.
fn cases(host: &Host, paths: &[String]) -> Result<Vec<Case>> {
    if paths.is_empty() {
        return Ok(in_folder(&host.workspace, &replay::folder(&host.workspace)));
    }
    let mut found = Vec::new();
    for wanted in paths {
        let path =
            [PathBuf::from(wanted), host.workspace.join(wanted)].into_iter().find_map(|path| path.canonicalize().ok());
        match path {
            Some(path) if path.extension().is_some_and(|ending| ending == "jsonl") => {
                found.push(one(host, path)?);
            }
            Some(path) if path.is_dir() && replay::folder(&path).is_dir() => {
                found.extend(in_folder(&path, &replay::folder(&path)));
            }
            Some(path) if path.is_dir() => {
                let all = replay::cassettes(&path).into_iter().map(|(_, path)| one(host, path));
                found.extend(all.collect::<Result<Vec<_>>>()?);
            }
            _ => found.extend(of_flow(host, wanted)?),
        }
    }
    Ok(found)
}

/// Returns a cassette by its path; its pack is the folder above `tests/cassettes`.
fn one(host: &Host, path: PathBuf) -> Result<Case> {
    let root = path.ancestors().find(|above| path.starts_with(replay::folder(above)));
    let root = root.unwrap_or(&host.workspace).to_owned();
    let name = below(&replay::folder(&root), &path).unwrap_or_else(|| path.display().to_string());
    Ok(Case { name: name.trim_end_matches(".jsonl").to_owned(), path, root })
}

fn in_folder(root: &Path, folder: &Path) -> Vec<Case> {
    let all = replay::cassettes(folder).into_iter();
    all.map(|(name, path)| Case { name, path, root: root.to_owned() }).collect()
}

/// Returns the cassettes of one flow.
fn of_flow(host: &Host, wanted: &str) -> Result<Vec<Case>> {
    let located = resolve::flow(wanted, &host.workspace, &host.packs())?;
    let root = match &located.tree.root {
        Root::Disk(root) => root.clone(),
        Root::Bundled => host.workspace.clone(),
    };
    let mut cases = in_folder(&root, &replay::folder(&root));
    cases.retain(|case| {
        let flow = case.ends().and_then(|ends| replay::flow_of(&case.root, &ends.open));
        flow.is_ok_and(|flow| flow.path == located.path)
    });
    Ok(cases)
}
