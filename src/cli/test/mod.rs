//! `nietz test [PATH…]`.

mod record;

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use serde_json::json;

use crate::cli::front::FrontArgs;
use crate::cli::output;
use crate::error::{Code, Exit, Failure, Result, nearest};
use crate::host::ui::ending;
use crate::model::text::count;
use crate::pack::path::below;
use crate::pack::resolve::{self, ResolvedFlow};
use crate::pack::tree::{PackTree, Root};
use crate::run::machine::Machine;
use crate::run::replay::{self, JournalEnds};

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
    /// Make a cassette of a run of this folder: its id, a part of it, or `latest`
    #[arg(long, value_name = "RUN", conflicts_with_all = ["record", "paths"])]
    from_run: Option<String>,
    /// The name of the new cassette [default: the flow's command, or `run`]
    #[arg(long)]
    name: Option<String>,
    /// The model to record with, instead of the one that it was recorded with
    #[arg(long, value_name = "NAME", requires = "record")]
    model: Option<String>,
    /// Record a run that fails, and only one that fails with this code
    #[arg(long, value_name = "CODE", value_parser = code)]
    expect_failure: Option<Code>,
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

/// The result of one case.
struct CaseOutcome {
    effects: usize,
    how: &'static str,
    /// The code of the failure that the cassette ends with, if the test is about a failure.
    fails: Option<Code>,
}

impl CaseOutcome {
    /// Returns the end of a result line, which names the failure that the test is about.
    fn failure_note(&self) -> String {
        self.fails.map(|code| format!("; it shows the failure {}", code.name())).unwrap_or_default()
    }
}

/// Parses the name of a code.
fn code(name: &str) -> Result<Code, String> {
    Code::parse(name).ok_or_else(|| match nearest(name, Code::ALL.iter().map(|code| code.name())) {
        Some(near) => format!("no failure has this code; did you mean `{near}`?"),
        None => "no failure has this code; `nietz explain` lists them".to_owned(),
    })
}

pub(super) fn run(machine: &Machine, args: TestArgs) -> Result<Exit> {
    if let Some(wanted) = &args.from_run {
        return record::from_run(machine, wanted, args.name.as_deref(), args.expect_failure);
    }
    if args.expect_failure.is_some() && !args.record {
        return Err(Failure::new(Code::Usage, "--expect-failure says what may be recorded, and nothing is recorded")
            .hint("a replay compares each failure with the one that was recorded; to record: --record or --from-run"));
    }
    if args.record && (!args.rest.is_empty() || args.name.is_some()) {
        return record::new(machine, args);
    }
    let cases = cases(machine, &args.paths)?;
    if cases.is_empty() {
        return Err(Failure::new(Code::Usage, "there is no cassette here")
            .hint("make one of a run: nietz test --from-run RUN; or record one: nietz test --record FLOW -- ARGS"));
    }
    let (mut failed, total) = (0, cases.len());
    for case in &cases {
        let since = Instant::now();
        let interrupted = |failure: &Failure| failure.code == Code::Interrupted;
        let outcome = match case.replay(machine) {
            Err(failure) if args.record && !interrupted(&failure) => record::rerecord(machine, case, &args),
            played => played,
        };
        if outcome.as_ref().is_err_and(interrupted) {
            return outcome.map(|_| Exit::Interrupted);
        }
        failed += usize::from(outcome.is_err());
        tell(machine, case, &outcome, since.elapsed().as_millis(), args.front.json)?;
    }
    if !args.front.json {
        output::line(format!("{} passed, {failed} failed", total - failed))?;
    }
    Ok(if failed == 0 { Exit::Done } else { Exit::Failed })
}

fn tell(machine: &Machine, case: &Case, outcome: &Result<CaseOutcome>, ms: u128, as_json: bool) -> Result<()> {
    let shown = display_path(machine, &case.path);
    match outcome {
        Ok(CaseOutcome { effects, how, fails }) if as_json => {
            let mut line =
                json!({ "case": case.name, "path": shown, "passed": true, "how": how, "effects": effects, "ms": ms });
            if let Some(code) = fails {
                line["fails"] = json!(code);
            }
            output::json(&line)
        }
        Ok(outcome) => {
            let CaseOutcome { effects, how, .. } = outcome;
            let effects = count(*effects as u64, "effect");
            output::line(format!("{how} {}: {effects} in {ms} ms{}", case.name, outcome.failure_note()))
        }
        Err(failure) if as_json => {
            output::json(&json!({ "case": case.name, "path": shown, "passed": false, "ms": ms, "failure": failure }))
        }
        Err(failure) => {
            output::line(format!("FAILED {}", case.name))?;
            output::block(ending::failure(failure, &ending::without_colour))
        }
    }
}

/// Returns the path of a cassette as it is printed.
fn display_path(machine: &Machine, path: &Path) -> String {
    below(&machine.workspace, path).unwrap_or_else(|| path.display().to_string())
}

/// Replays every cassette of a pack, and returns how many there are.
pub(super) fn play_all(machine: &Machine, root: &Path) -> Result<usize> {
    let cases = in_folder(root, &replay::cassette_folder(root));
    for case in &cases {
        case.replay(machine)
            .map_err(|failure| Failure { message: format!("{}: {}", case.name, failure.message), ..failure })?;
    }
    Ok(cases.len())
}

impl Case {
    fn ends(&self) -> Result<JournalEnds> {
        replay::read_ends(&self.path)
    }

    /// Returns the flow of this cassette, and where its personas and quotes come from.
    fn flow(&self, machine: &Machine, ends: &JournalEnds) -> Result<(ResolvedFlow, Vec<PackTree>)> {
        let located =
            replay::flow_of(&self.root, &ends.open).or_else(|failure| match self.root == machine.workspace {
                // A project may also test the flows of its packs.
                true => resolve::flow(&ends.open.flow, &machine.workspace, &machine.packs()).map_err(|_| failure),
                false => Err(failure),
            })?;
        // A pack that is tested by itself gets nothing from other installed packs, and nothing of a project overrides its files.
        if self.root != machine.workspace {
            let layers = vec![located.tree.clone(), PackTree::new(Root::Bundled)];
            return Ok((located, layers));
        }
        let located = resolve::as_installed(located, &machine.workspace, &machine.packs())?;
        let layers = machine.layers(&located.tree)?;
        Ok((located, layers))
    }

    fn replay(&self, machine: &Machine) -> Result<CaseOutcome> {
        let ends = self.ends()?;
        let end = record::require_end(&self.path, &ends)?;
        let flow = self.flow(machine, &ends)?;
        let played = replay::play(machine, flow, (&self.path, &ends.open), None)?;
        played.compare_with(&self.path, &end)?;
        Ok(CaseOutcome { effects: played.effects, how: "passed", fails: end.failure.map(|failure| failure.code) })
    }
}

/// Finds the cassettes that paths name.
fn cases(machine: &Machine, paths: &[String]) -> Result<Vec<Case>> {
    if paths.is_empty() {
        return Ok(in_folder(&machine.workspace, &replay::cassette_folder(&machine.workspace)));
    }
    let mut found = Vec::new();
    for wanted in paths {
        let path = [PathBuf::from(wanted), machine.workspace.join(wanted)]
            .into_iter()
            .find_map(|path| path.canonicalize().ok());
        match path {
            Some(path) if path.extension().is_some_and(|ending| ending == "jsonl") => {
                found.push(case_at(machine, path)?);
            }
            Some(path) if path.is_dir() && replay::cassette_folder(&path).is_dir() => {
                found.extend(in_folder(&path, &replay::cassette_folder(&path)));
            }
            Some(path) if path.is_dir() => {
                let all = replay::cassettes(&path).into_iter().map(|(_, path)| case_at(machine, path));
                found.extend(all.collect::<Result<Vec<_>>>()?);
            }
            _ => found.extend(of_flow(machine, wanted)?),
        }
    }
    Ok(found)
}

/// Returns a cassette by its path; its pack is the folder above `tests/cassettes`.
fn case_at(machine: &Machine, path: PathBuf) -> Result<Case> {
    let root = path.ancestors().find(|above| path.starts_with(replay::cassette_folder(above)));
    let root = root.unwrap_or(&machine.workspace).to_owned();
    let name = below(&replay::cassette_folder(&root), &path).unwrap_or_else(|| path.display().to_string());
    Ok(Case { name: name.trim_end_matches(".jsonl").to_owned(), path, root })
}

fn in_folder(root: &Path, folder: &Path) -> Vec<Case> {
    let all = replay::cassettes(folder).into_iter();
    all.map(|(name, path)| Case { name, path, root: root.to_owned() }).collect()
}

/// Returns the cassettes of one flow.
fn of_flow(machine: &Machine, wanted: &str) -> Result<Vec<Case>> {
    let located = resolve::flow(wanted, &machine.workspace, &machine.packs())?;
    let root = match &located.tree.root {
        Root::Disk(root) => root.clone(),
        Root::Bundled => machine.workspace.clone(),
    };
    let mut cases = in_folder(&root, &replay::cassette_folder(&root));
    cases.retain(|case| {
        let flow = case.ends().and_then(|ends| replay::flow_of(&case.root, &ends.open));
        flow.is_ok_and(|flow| flow.path == located.path)
    });
    Ok(cases)
}
