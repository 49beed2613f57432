//! Recording: a run becomes a cassette. A run that fails, waits or is interrupted is not worth comparing with: it becomes no
//! cassette and leaves the existing one as it was. To test a failure, the user names its code.

use std::path::{Path, PathBuf};

use super::{Case, CaseOutcome, TestArgs, display_path};
use crate::cli::action::{self, RunAction};
use crate::cli::front::FrontArgs;
use crate::cli::start;
use crate::cli::{new, output};
use crate::disk;
use crate::engine::replay_source::{ReplayMode, ReplaySource, first_different_read, first_read_of_before};
use crate::error::{Code, Exit, Failure, Result};
use crate::journal::lines::EndRecord;
use crate::model::budget::Budget;
use crate::model::command::Grants;
use crate::model::event::EndStatus;
use crate::model::text::{count, excerpt};
use crate::pack::resolve::{self, ResolvedFlow};
use crate::pack::tree::{PackTree, Root};
use crate::run::live::NewRun;
use crate::run::machine::Machine;
use crate::run::replay::{self, JournalEnds};
use crate::run::session::Session;

/// Where a recording is written, and which run may be kept there.
struct RecordingTarget<'a> {
    machine: &'a Machine,
    path: &'a Path,
    /// The cassette whose outcomes this recording reuses.
    source: Option<&'a Path>,
    /// How the existing recording ended.
    previous: Option<EndRecord>,
    /// The failure that the run must end with.
    expected: Option<Code>,
}

/// Records a case anew. For unchanged requests to models, people, files, git and commands, the recording reuses the outcomes
/// of the case's cassette; effects on documents are performed anew in an empty folder.
pub(super) fn rerecord(machine: &Machine, case: &Case, args: &TestArgs) -> Result<CaseOutcome> {
    let ends = case.ends()?;
    let (located, layers) = case.flow(machine, &ends)?;
    let target =
        RecordingTarget { source: Some(&case.path), ..RecordingTarget::at(machine, &case.path, args.expect_failure) };
    // Before anything is asked or paid for.
    if let Some(line) = first_read_of_before(&case.path)? {
        return Err(target.began_with_documents(line));
    }
    let open = ends.open;
    // No model wrote the replies in a cassette of `nietz new`: the user's own model does now.
    let recorded_with = open.model.filter(|model| model != new::NO_MODEL);
    let begin = NewRun {
        command: open.command,
        params: open.params,
        origins: open.origins,
        files: Vec::new(),
        files_from: None,
        by_name: false,
        only_model: open.only_model,
        model: args.model.clone().or(recorded_with),
        efforts: open.efforts,
        lang: Some(open.lang),
        seed: Some(open.seed),
        budget: Budget::default(),
        id: Some(open.run),
        grants: Grants::default(),
        workspace: open.workspace,
        fork: None,
        of: None,
        replay_source: Some(ReplaySource::new(&case.path, ReplayMode::AllButDocuments)?),
        kept: false,
    };
    let session = Session::load_with(machine, located.clone(), layers.clone())?;
    run_in_scratch(machine, session, begin, &args.front, |journal| make((located, layers), journal, &target))
}

/// The hint for a flow that cannot be recorded in an empty folder.
const FROM_RUN: &str = "run it where all that it works on is, then nietz test --from-run RUN --name NAME";

/// Records a flow for the first time.
pub(super) fn new(machine: &Machine, args: TestArgs) -> Result<Exit> {
    let [wanted] = args.paths.as_slice() else {
        return Err(Failure::new(Code::Usage, "which flow is recorded?").hint("nietz test --record FLOW -- ARGS"));
    };
    let located = resolve::flow(wanted, &machine.workspace, &machine.packs())?;
    let layers = machine.layers(&located.tree)?;
    let session = Session::load_with(machine, located.clone(), layers.clone())?;
    let (mut begin, front) = match action::parse_action(machine, wanted, &session, args.rest)? {
        RunAction::Run(begin, front) => (*begin, front),
        RunAction::Plan(..) => return Err(Failure::new(Code::Usage, "a plan cannot be recorded: it runs nothing")),
        #[cfg(feature = "postgres")]
        RunAction::Queue(..) => {
            return Err(Failure::new(Code::Usage, "a run that is left to others is recorded by nobody"));
        }
        RunAction::Printed(exit) => return Ok(exit),
    };
    begin.workspace = Some(machine.workspace_name());
    begin.model = begin.model.or(args.model);
    begin.kept = false;
    let name = args.name.unwrap_or_else(|| begin.command.clone().unwrap_or_else(|| "run".to_owned()));
    let path = cassette_path(machine, &located, &session.flow.manifest.name, &name)?;
    let target = RecordingTarget::at(machine, &path, args.expect_failure);
    let outcome = run_in_scratch(machine, session, begin, &front.or(args.front), |journal| {
        make((located, layers), journal, &target)
    })?;
    print_recorded(machine, &path, &outcome)
}

/// Makes a cassette from a run of this workspace.
pub(super) fn from_run(machine: &Machine, wanted: &str, name: Option<&str>, expected: Option<Code>) -> Result<Exit> {
    let runs = machine.runs();
    let id = runs.find(Some(wanted))?;
    let journal = runs.journal(&id)?;
    let ends = replay::read_ends(&journal)?;
    require_end(&journal, &ends)?;
    let located = replay::locate_flow(machine, &id, &ends)?;
    let layers = machine.layers(&located.tree)?;
    let path = match name {
        Some(name) => cassette_path(machine, &located, &ends.open.flow, name)?,
        None => {
            let first = ends.open.command.clone().unwrap_or_else(|| "run".to_owned());
            let names = std::iter::once(first.clone()).chain((2..).map(|number| format!("{first}-{number}")));
            let mut paths = names.map(|name| cassette_path(machine, &located, &ends.open.flow, &name));
            paths
                .find(|path| path.as_ref().map_or(true, |path| !path.exists()))
                .unwrap_or_else(|| Err(Failure::new(Code::Internal, "there are more cassettes than numbers")))?
        }
    };
    let outcome = make((located, layers), &journal, &RecordingTarget::at(machine, &path, expected))?;
    print_recorded(machine, &path, &outcome)
}

fn print_recorded(machine: &Machine, path: &Path, outcome: &CaseOutcome) -> Result<Exit> {
    output::line(format!(
        "recorded {}: {}{}",
        display_path(machine, path),
        count(outcome.effects as u64, "effect"),
        outcome.failure_note()
    ))?;
    Ok(Exit::Done)
}

/// Runs a flow in an empty temporary folder, and passes its journal to `then`.
fn run_in_scratch<T>(
    machine: &Machine,
    session: Session,
    begin: NewRun,
    front: &FrontArgs,
    then: impl FnOnce(&Path) -> Result<T>,
) -> Result<T> {
    // Its folder is gone when it is over: nobody resumes it.
    let front = &FrontArgs { is_passing: true, ..front.clone() };
    let folder = tempfile::tempdir()
        .map_err(|error| Failure::new(Code::DiskFailed, format!("cannot make a temporary folder: {error}")))?;
    let scratch = folder.path().canonicalize().map_err(|error| Failure::io(folder.path(), "find", &error))?;
    let mut machine = machine.in_workspace(scratch);
    // A recording is a test: it tells nobody anything.
    machine.config.notify = None;
    start::begin(&machine, session, begin, front)?;
    let Some(id) = machine.runs().ids()?.pop() else {
        return Err(Failure::new(
            Code::Usage,
            "nothing was recorded: in an empty folder, the run ended before it began",
        )
        .hint(FROM_RUN));
    };
    then(&machine.runs().journal(&id)?)
}

impl<'a> RecordingTarget<'a> {
    /// Returns the target for a path. An existing file that cannot be read does not count as a recording.
    fn at(machine: &'a Machine, path: &'a Path, expected: Option<Code>) -> RecordingTarget<'a> {
        RecordingTarget {
            machine,
            path,
            previous: replay::read_ends(path).ok().and_then(|ends| ends.end),
            expected,
            source: None,
        }
    }

    /// Returns the failure for a recording that is not kept.
    fn refusal(&self, why: &str) -> Failure {
        let shown = display_path(self.machine, self.path);
        Failure::new(
            Code::RecordingFailed,
            match self.path.exists() {
                true => format!("{shown} is as it was: {why}"),
                false => format!("{shown} is not written: {why}"),
            },
        )
    }

    /// Returns the failure for a recording whose line reads documents that were there before it.
    fn began_with_documents(&self, line: u64) -> Failure {
        let why = format!(
            "its line {line} read documents that were there before, and a recording is made in an empty folder"
        );
        self.refusal("the flow works on documents that are there").because(why).hint(FROM_RUN)
    }

    /// Refuses a run that did not end in a way that this recording allows.
    fn admit(&self, end: Option<&EndRecord>) -> Result<()> {
        let Some(end) = end else { return Err(self.refusal("the journal of the run was not written to its end")) };
        let previous = self.previous.as_ref();
        let failed_before = previous.filter(|was| was.status == EndStatus::Failed).and_then(|was| was.failure.as_ref());
        let compared = |why: &str| {
            let failure = self.refusal(why).because(format!("now: {}", describe_end(end)));
            previous.into_iter().fold(failure, |failure, was| failure.because(format!("before: {}", describe_end(was))))
        };
        match (end.status, self.expected, &end.failure) {
            (EndStatus::Interrupted, ..) => {
                let shown = self.refusal("the recording was interrupted").message;
                Err(Failure::new(Code::Interrupted, shown).hint("record it again"))
            }
            (EndStatus::Waiting, ..) => Err(compared("a run that waits cannot be a test")
                .hint("give what it waits for, --answers FILE for answers, and record it again")),
            (EndStatus::Done, None, _) => Ok(()),
            (EndStatus::Failed, Some(wanted), Some(failure)) if failure.code == wanted => Ok(()),
            (EndStatus::Failed, None, Some(failure)) if failed_before.is_some_and(|was| was.code == failure.code) => {
                Ok(())
            }
            (_, Some(wanted), _) => Err(compared(&format!("it was to fail with {}", wanted.name()))
                .hint("--expect-failure keeps a run that fails with just that code")),
            (EndStatus::Failed, None, failure) => {
                let code = failure.as_ref().map_or(Code::Internal, |failure| failure.code);
                Err(compared("the run failed").hint(match code {
                    Code::CassetteMissed | Code::DocumentChanged => FROM_RUN.to_owned(),
                    _ => format!(
                        "put that right and record it again, with another model by --model NAME; if the failure is what \
                         the test is to show: --expect-failure {}",
                        code.name()
                    ),
                }))
            }
        }
    }
}

/// Returns how a run ended, for a line of a message.
fn describe_end(end: &EndRecord) -> String {
    match &end.failure {
        None => "it came to its end".to_owned(),
        Some(failure) => format!("{}: {}", failure.code.name(), failure.message),
    }
}

/// Writes a cassette from a journal: only what a replay needs, without any secret that is known now.
fn make(flow: (ResolvedFlow, Vec<PackTree>), journal: &Path, target: &RecordingTarget<'_>) -> Result<CaseOutcome> {
    let RecordingTarget { machine, path, .. } = target;
    let ends = replay::read_ends(journal)?;
    target.admit(ends.end.as_ref())?;
    let end = require_end(journal, &ends)?;
    if let Some(source) = target.source
        && let Some(line) = first_different_read(source, journal)?
    {
        return Err(target.began_with_documents(line));
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    if folder.starts_with(&machine.workspace) {
        disk::make_folder(&machine.workspace, folder)?;
    } else {
        std::fs::create_dir_all(folder).map_err(|error| Failure::io(folder, "create", &error))?;
    }
    let temporary = path.with_extension("jsonl.new");
    let played = replay::play(machine, flow, (journal, &ends.open), Some(&temporary)).and_then(|mut played| {
        // Recorded effects that the replay did not need, such as abandoned attempts, are not part of the test.
        played.forget_unused();
        played.compare_with(journal, &end)?;
        std::fs::rename(&temporary, path).map_err(|error| Failure::io(path, "write", &error))?;
        Ok(CaseOutcome { effects: played.effects, how: "recorded", fails: end.failure.map(|failure| failure.code) })
    });
    if played.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    played.map_err(|failure| match failure.code {
        Code::CassetteMissed | Code::CassetteDiffers => failure.hint("the flow or a secret has changed since that run"),
        _ => failure,
    })
}

/// Returns how a run ended, or a failure if it did not come to an end that a test can compare.
pub(super) fn require_end(path: &Path, ends: &JournalEnds) -> Result<EndRecord> {
    let end = ends.end.clone().filter(|end| matches!(end.status, EndStatus::Done | EndStatus::Failed));
    end.ok_or_else(|| {
        Failure::new(Code::Usage, format!("{}: this run was not taken to its end", path.display()))
            .hint("a test needs an end to compare: nietz resume, then record it")
    })
}

/// Returns the path of a new cassette: in the flow's own folder, or in the workspace for bundled flows and installed packs.
fn cassette_path(machine: &Machine, located: &ResolvedFlow, flow: &str, name: &str) -> Result<PathBuf> {
    let plain = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "-_".contains(c));
    // Both names become parts of a path, and the flow's name may come from a journal.
    for part in [flow, name] {
        if !plain(part) {
            let shown = excerpt(part);
            return Err(Failure::new(Code::Usage, format!("`{shown}` is not the name of a cassette or a flow"))
                .hint("use letters, digits, hyphens"));
        }
    }
    let root = match &located.tree.root {
        Root::Disk(root) if !root.starts_with(machine.packs()) => root.clone(),
        Root::Disk(_) | Root::Bundled => machine.workspace.clone(),
    };
    Ok(replay::cassette_folder(&root).join(flow).join(format!("{name}.jsonl")))
}
