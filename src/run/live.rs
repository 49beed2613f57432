//! A run from its first line to its last: how it begins, resumes and ends.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

use crate::engine::budget::Meter;
use crate::engine::gate::{Closed, Gate, OpenJournal};
use crate::engine::history::History;
use crate::engine::replay_source::{ReplayMode, ReplaySource};
use crate::engine::runs::LockedRun;
use crate::error::{Code, Exit, Failure, Result};
use crate::host::FrontEnd;
use crate::host::attachments::AttachmentStore;
use crate::host::llm::Client;
use crate::journal::lines::{EndRecord, Fork, OpenRecord, Parent, Record, ResumeRecord};
use crate::journal::writer::{JournalTail, JournalWriter};
use crate::lua::flow::FlowOutcome;
use crate::model::budget::{Budget, Spent};
use crate::model::chat::Usage;
use crate::model::choice::RunEfforts;
use crate::model::command::{self, Grants};
use crate::model::effect::Sources;
use crate::model::event::{EndStatus, Event, RunVerdict};
use crate::model::param::ParamOrigin;
use crate::model::permission;
use crate::pack::permission_items::Items;
use crate::pack::tree::Root;
use crate::run::access::{filters, typed_models};
use crate::run::assemble::{RunParts, assemble};
use crate::run::children::{check_bounds, trace};
use crate::run::front::{FrontOptions, OpenFront};
use crate::run::interrupts::CtrlC;
use crate::run::machine::{Machine, iso};
use crate::run::models::{FrontEndSlot, PinnedModels, listening_client};
use crate::run::runtime;
use crate::run::session::Session;

/// What a new run begins with.
pub struct NewRun {
    pub command: Option<String>,
    pub params: Value,
    /// Where texts of the params came from that the user did not type.
    pub origins: Vec<ParamOrigin>,
    /// The images and PDFs that params have by their digests.
    pub files: Vec<Vec<u8>>,
    /// The images and PDFs of the run that outcomes are taken from: they are kept by this one, too.
    pub files_from: Option<AttachmentStore>,
    /// Whether the flow was called by its name, and not by a path.
    pub by_name: bool,
    pub model: Option<String>,
    /// How much models are to think, where calls say nothing of that; what comes with aliases is added.
    pub efforts: RunEfforts,
    /// Whether the model is also used for personas that name another one.
    pub only_model: bool,
    /// Without it, the user's language.
    pub lang: Option<String>,
    pub seed: Option<u64>,
    /// The limits of the command line; the flow and the configuration give the others.
    pub budget: Budget,
    pub id: Option<String>,
    pub grants: Grants,
    /// The workspace's name for the flow; without it, the real one.
    pub workspace: Option<String>,
    pub fork: Option<Fork>,
    /// The run that begins it as a part of its own.
    pub of: Option<Parent>,
    /// The journal that the run takes outcomes from.
    pub replay_source: Option<ReplaySource>,
    /// Whether the run's folder is kept, so that the run can be resumed.
    pub kept: bool,
}

/// The terms on which a run is resumed.
pub enum ResumeTerms {
    /// Those of the run's first line, with what the command line adds.
    Own { grants: Grants, budget: Budget },
    /// Those of the command line alone: what the first line grants or names does not count.
    Given(Box<NewRun>),
}

/// A run that is ready to be driven: its journal is read and open for writing.
struct PreparedRun {
    /// `None` for a command that only looks: it leaves no run.
    locked: Option<LockedRun>,
    front: OpenFront,
    filters: Items,
    open: OpenRecord,
    recorded: OpenJournal,
    listener: FrontEndSlot,
    replay_source: Option<ReplaySource>,
    /// Whether the run is one of a command that nobody needs any more if it did no more than look.
    passing: bool,
    /// Why the run could not be recorded as the user's own.
    not_noted: Option<Failure>,
    /// What the user is told about what the flow asks for.
    notices: Vec<String>,
}

impl Session {
    /// Starts a new run and takes it to its end. The user sees the notices first.
    ///
    /// # Errors
    ///
    /// The run cannot start, or its journal cannot be written; a failure of the flow is part of the exit status.
    pub fn begin(
        self,
        machine: &Machine,
        mut new_run: NewRun,
        notices: Vec<String>,
        front: &FrontOptions,
    ) -> Result<Exit> {
        let listener = FrontEndSlot::default();
        let client = listening_client(machine, &listener)?.with_thoughts(front.thoughts);
        let runtime = runtime()?;
        let (kept, replay_source) = (new_run.kept, new_run.replay_source.take());
        let (given, files_from) = (std::mem::take(&mut new_run.files), new_run.files_from.take());
        let open = self.open_record(machine, &client, &runtime, new_run)?;
        check_bounds(&self.flow, &open)?;
        // What can be refused is, before there is anything of the run. A recording keeps the journal of any command.
        let looks = kept && self.flow.command(open.command.as_deref())?.reads_only;
        let front = front.open(machine, if looks { "" } else { &open.run }, trace(&open))?;
        let filters = filters(machine, &self.flow)?;
        let runs = machine.runs();
        let locked = (!looks).then(|| runs.create(&open.run)).transpose()?;
        let mut writer = match &locked {
            Some(locked) => locked.writer(JournalTail::default(), machine.fault())?,
            None => JournalWriter::unnamed(machine.fault())?,
        };
        let attachments = locked.as_ref().map(LockedRun::attachments).unwrap_or_default();
        files_from.map_or(Ok(()), |other| attachments.take_from(&other))?;
        // They are there before the line that names them.
        given.iter().try_for_each(|bytes| attachments.put(bytes))?;
        let (first, texts) = open.folded();
        let first = Record::Open(Box::new(first));
        let everywhere: Vec<&str> = self.flow.manifest.read_everywhere().collect();
        // A run that cannot be recorded as the user's own runs all the same; resuming it takes more options.
        let noted = (kept && !looks)
            .then(|| writer.render_line(&first).and_then(|line| runs.note_own(&open.run, line, &everywhere)))
            .transpose();
        let (noted, not_noted) = noted.map_or_else(|failure| (None, Some(failure)), |noted| (noted.flatten(), None));
        let mut writer = writer.with_companion(noted);
        // The line is synced with the first outcome: until then, a power cut loses nothing that was paid for.
        writer.append(&first)?;
        writer.append_texts(texts)?;
        writer.begun()?;
        let recorded = OpenJournal { writer, history: History::default(), resume: None };
        let passing = kept && open.command.is_some() && replay_source.is_none();
        let ready = PreparedRun {
            locked,
            front,
            filters,
            open,
            recorded,
            listener,
            replay_source,
            passing,
            not_noted,
            notices,
        };
        self.drive(machine, client, runtime, ready)
    }

    /// Returns the first line of a run, and pins the run's models.
    ///
    /// # Errors
    ///
    /// The model that the user named cannot be used, a setting is wrong, or a name has a secret in it.
    pub(crate) fn open_record(
        &self,
        machine: &Machine,
        client: &Client,
        runtime: &tokio::runtime::Runtime,
        new_run: NewRun,
    ) -> Result<OpenRecord> {
        let mut settings = self.settings(machine)?;
        let clock = machine.clock()?;
        let seed = new_run.seed.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0 >> 11);
        // A command that only looks calls no model, and none is searched for.
        let looks = self.flow.command(new_run.command.as_deref())?.reads_only;
        let named = new_run.model.as_deref();
        let default = self.flow.manifest.permissions.llm.then(|| match looks && new_run.model.is_none() {
            true => Err(permission::only_looks_failure("chat")),
            false => runtime.block_on(client.resolve(named)),
        });
        if let (Some(_), Some(Err(failure))) = (&new_run.model, &default) {
            return Err(failure.clone());
        }
        let model = default.as_ref().and_then(|model| model.as_ref().ok().cloned());
        let redactor = machine.redactor();
        redactor.refuse("the model's name", model.as_deref())?;
        redactor.refuse("the run's name (NIETZ_RUN)", new_run.id.as_deref())?;
        let text = |text: String| redactor.text(&text).into_owned();
        let (mut aliases, mut alias_efforts) = (BTreeMap::new(), BTreeMap::new());
        for (alias, choice) in client.aliases() {
            alias_efforts.extend(choice.effort.map(|effort| (text(alias.clone()), effort)));
            aliases.insert(text(alias.clone()), text(choice.model.clone()));
        }
        let model_effort = new_run.efforts.model.or_else(|| client.effort_of(named));
        let efforts = RunEfforts { model: model_effort, aliases: alias_efforts, ..new_run.efforts };
        *self.pinned.borrow_mut() = PinnedModels { default, aliases: aliases.clone(), efforts: efforts.clone() };
        let mut params = new_run.params;
        redactor.value(&mut params);
        let mut origins = new_run.origins;
        let names = origins.iter_mut().filter_map(|origin| origin.name.as_mut());
        names.for_each(|name| *name = redactor.text(name).into_owned());
        settings.values_mut().for_each(|value| redactor.value(value));
        Ok(OpenRecord {
            run: new_run.id.unwrap_or_else(|| new_id(clock())),
            flow: self.flow.manifest.name.clone(),
            source: machine.source_of(&self.flow.located),
            command: new_run.command,
            params,
            origins,
            model,
            only_model: new_run.only_model,
            aliases,
            efforts,
            lang: text(new_run.lang.unwrap_or_else(|| machine.lang())),
            seed,
            grants: new_run.grants,
            budget: self.budget(machine, new_run.budget),
            settings,
            files: self.flow.sources(),
            host: Machine::version(),
            at: iso(clock()),
            workspace: Some(text(new_run.workspace.unwrap_or_else(|| machine.workspace_name()))),
            fork: new_run.fork.clone().filter(|fork| !fork.lost),
            of: new_run.of,
            anew_of: new_run.fork.filter(|fork| fork.lost).map(|fork| fork.run),
            more: serde_json::Map::new(),
        })
    }

    /// Resumes a run from its journal. The user sees the notices first.
    ///
    /// # Errors
    ///
    /// The run cannot go on, or its journal cannot be written; a failure of the flow is part of the exit status.
    pub fn resume(
        self,
        machine: &Machine,
        locked: LockedRun,
        (history, tail): (History, JournalTail),
        (first, terms): (OpenRecord, ResumeTerms),
        notices: Vec<String>,
        front: &FrontOptions,
    ) -> Result<Exit> {
        let clock = machine.clock()?;
        let listener = FrontEndSlot::default();
        let client = listening_client(machine, &listener)?.with_thoughts(front.thoughts);
        let runtime = runtime()?;
        let open = match terms {
            ResumeTerms::Own { grants, budget } => {
                // A run that began without a model may have one by now, if the user set a key.
                let default = match first.model.clone() {
                    Some(model) => Some(Ok(model)),
                    None => self.flow.manifest.permissions.llm.then(|| runtime.block_on(client.resolve(None))),
                };
                let named = default.as_ref().and_then(|model| model.as_deref().ok());
                machine.redactor().refuse("the model's name", named)?;
                // Whoever began the run said these names; on a server of a team that may have been somebody else.
                if machine.team().is_here() {
                    first.aliases.values().chain(first.model.as_ref()).for_each(|model| client.allow(model));
                }
                let (aliases, efforts) = (first.aliases.clone(), first.efforts.clone());
                *self.pinned.borrow_mut() = PinnedModels { default, aliases, efforts };
                OpenRecord { grants, budget: first.budget.replaced(budget), ..first }
            }
            ResumeTerms::Given(new_run) => {
                new_run.files.iter().try_for_each(|bytes| locked.attachments().put(bytes))?;
                let new_run = NewRun { id: Some(first.run), ..*new_run };
                OpenRecord { files: first.files, ..self.open_record(machine, &client, &runtime, new_run)? }
            }
        };
        let now = self.flow.sources();
        let changed: Sources = now.into_iter().filter(|(path, digest)| open.files.get(path) != Some(digest)).collect();
        let resume =
            Some(ResumeRecord { host: Machine::version(), changed, torn: history.whole.torn, at: iso(clock()) });
        let writer = locked.writer(tail, machine.fault())?;
        let replay_source = match open.taken_from() {
            Some(fork) if machine.runs().journal(&fork.run)?.is_file() => Some(fork_source(machine, &fork)?),
            _ => None,
        };
        let recorded = OpenJournal { writer, history, resume };
        check_bounds(&self.flow, &open)?;
        let front = front.open(machine, &open.run, trace(&open))?;
        let filters = filters(machine, &self.flow)?;
        let ready = PreparedRun {
            locked: Some(locked),
            front,
            filters,
            open,
            recorded,
            listener,
            replay_source,
            passing: false,
            not_noted: None,
            notices,
        };
        self.drive(machine, client, runtime, ready)
    }

    fn drive(
        self,
        machine: &Machine,
        client: Client,
        runtime: tokio::runtime::Runtime,
        mut ready: PreparedRun,
    ) -> Result<Exit> {
        self.flow.context().personas.set_ignore_models(ready.open.only_model);
        // The cell is new: nobody has set it.
        let _ = ready.listener.set(Rc::clone(&ready.front.shown));
        ready.notices.extend(ready.open.model.as_deref().and_then(|model| client.retirement(model)));
        self.announce(&ready);
        let PreparedRun { locked, front, filters, open, recorded, replay_source, passing, .. } = ready;
        typed_models(&open, &self.flow).iter().for_each(|model| client.allow(model));
        let is_new = recorded.resume.is_none() && replay_source.is_none();
        let listener = Rc::clone(&front.shown);
        let notify = Box::new(move |text| listener.show(&Event::Notice { text }));
        let parts = RunParts {
            models: Box::new(client),
            front: Rc::clone(&front.shown),
            details: front.details,
            filters,
            now: machine.clock()?,
            meter: Meter::telling(open.budget.bounded(), notify),
            attachments: locked.as_ref().map(LockedRun::attachments).unwrap_or_default(),
        };
        let (gate, input) = assemble(machine, &self, &open, parts, recorded)?;
        if let Some(replay_source) = replay_source {
            gate.set_replay_source(replay_source);
        }
        // It lives until everything is written and shown.
        let mut interrupts = CtrlC::new(locked.as_ref().map(|locked| locked.id.as_str()))?;
        let flow = self.flow.run(open.command.as_deref(), &input, Rc::clone(&gate), &mut interrupts);
        let outcome = runtime.block_on(flow);
        front.tell_unused_answers();
        if let Some(taken) =
            gate.take_replay_source().map(|replay_source| replay_source.replayed_count()).filter(|taken| *taken > 0)
        {
            let what = if taken == 1 { "effect" } else { "effects" };
            front.notice(format!("{taken} recorded {what} given back, and not done again"));
        }
        let changed = |failure: &Failure| failure.code == Code::DocumentChanged;
        if open.taken_from().is_some() && matches!(&outcome, Ok(FlowOutcome::Failed(failure)) if changed(failure)) {
            front.notice(
                "the documents are as the other run left them: with `--into FOLDER`, a fork works in a folder of its own",
            );
        }
        if matches!(outcome, Ok(FlowOutcome::Interrupted(_))) {
            // A second interruption gave up what still runs: nothing waits for it, and git is ended.
            crate::host::git::end_all();
            runtime.shutdown_background();
        }
        let leaves_nothing = is_new
            && !gate.acted()
            && match &outcome {
                Ok(FlowOutcome::Failed(failure)) => is_refusal(failure),
                Ok(FlowOutcome::Returned(_, None)) => passing,
                _ => false,
            };
        let (exit, written) = record_end(&gate, &*front.shown, outcome, machine.clock()?());
        match locked {
            Some(locked) if leaves_nothing => machine.runs().discard(locked),
            Some(locked) => written.iter().for_each(|end| locked.note_end(&open, end)),
            None => {}
        }
        // The process ends now: dropping the VM, object by object, would only take time.
        std::mem::forget(self.flow);
        exit
    }

    /// Shows what the user should know before the flow runs.
    fn announce(&self, ready: &PreparedRun) {
        let PreparedRun { locked, front, open, recorded, replay_source, not_noted, notices, .. } = ready;
        let resume = &recorded.resume;
        front.shown.show(&Event::RunStarted {
            flow: open.flow.clone(),
            resumed: resume.is_some(),
            journal: locked.as_ref().map(|locked| locked.journal.display().to_string()).unwrap_or_default(),
            lang: open.lang.clone(),
        });
        notices.iter().for_each(|text| front.notice(text));
        if locked.is_none() {
            return;
        }
        if let Some(resume) = resume {
            announce_resume(front, resume);
        }
        if resume.is_some() && recorded.history.unordered {
            front.notice(
                "this run began in an older format, which does not say in which order work side by side went on: \
                 what is recorded is given back line by line",
            );
        }
        if let Some(failure) = not_noted {
            front.notice(format!(
                "this run cannot be noted as your own, so that `nietz resume` will take it for foreign: {failure}; \
                 XDG_STATE_HOME or NIETZ_HOME can name a folder that you can write"
            ));
        }
        if let Some(fork) = open.taken_from().filter(|_| replay_source.is_none()) {
            front.notice(format!(
                "the run {} is gone, which this one was forked from: what was not given back yet is done anew",
                fork.run
            ));
        }
        let is_bundled = self.flow.located.tree.root == Root::Bundled;
        if let Some(limits) = self.flow.manifest.limits.filter(|_| !is_bundled) {
            front.notice(format!(
                "this flow asks for its own limits: {} s of Lua without an effect, {} MB of memory",
                limits.seconds, limits.megabytes
            ));
        }
        let permissions = self.flow.manifest.permissions.with_params(&open.params, !open.grants.no_sandbox);
        if !permissions.commands().is_empty() {
            front.notice(format!(
                "this flow may run {}",
                command::describe_commands(permissions.commands(), &open.grants)
            ));
        }
        if !permissions.files_of_commands().is_empty() {
            let files = command::describe_files(permissions.files_of_commands());
            front.notice(format!("this flow {files}"));
        }
    }
}

/// Tells whether a run that did nothing yet cannot be gone on with: its params are wrong, or it has no repository to work in.
fn is_refusal(failure: &Failure) -> bool {
    matches!(failure.code, Code::Usage | Code::GitMissing)
}

fn announce_resume(front: &OpenFront, resume: &ResumeRecord) {
    if resume.torn > 0 {
        front.notice(format!(
            "the journal's last line was torn by the end of the process; {} bytes were cut off",
            resume.torn
        ));
    }
    if !resume.changed.is_empty() {
        let names: Vec<&str> = resume.changed.keys().map(String::as_str).collect();
        front.notice(format!("changed since the run began: {}; what depends on them runs again", names.join(", ")));
    }
}

/// Returns how a run ended, with its result and verdict or its failure.
pub(crate) fn ending(outcome: Result<FlowOutcome>) -> (EndStatus, Option<Value>, Option<Failure>, Option<RunVerdict>) {
    match outcome {
        Ok(FlowOutcome::Returned(result, verdict)) => (EndStatus::Done, Some(result), None, verdict),
        Ok(FlowOutcome::Interrupted(failure)) => (EndStatus::Interrupted, None, Some(failure), None),
        Ok(FlowOutcome::Failed(failure)) | Err(failure) => (EndStatus::Failed, None, Some(failure), None),
        Ok(FlowOutcome::Parked(failure)) => (EndStatus::Waiting, None, Some(failure), None),
    }
}

/// Returns the replay source of a fork: the journal of the other run, up to where it was forked.
///
/// # Errors
///
/// Those of [`ReplaySource::for_fork`] and [`ReplaySource::forget_from`].
pub(crate) fn fork_source(machine: &Machine, fork: &Fork) -> Result<ReplaySource> {
    let mode = if fork.lost { ReplayMode::WhatWasPaidFor } else { ReplayMode::Everything };
    let mut replay_source = ReplaySource::for_fork(&machine.runs().journal(&fork.run)?, mode)?;
    if let Some(line) = fork.before {
        replay_source.forget_from(line)?;
    }
    Ok(replay_source)
}

/// Writes and shows how a run ended. Returns its exit status, and the line that was written.
fn record_end(
    gate: &Gate,
    front_end: &dyn FrontEnd,
    outcome: Result<FlowOutcome>,
    now: u64,
) -> (Result<Exit>, Option<EndRecord>) {
    let (status, result, failure, verdict) = ending(outcome);
    let spent = gate.spent();
    let (usage, calls) = total_usage(&spent);
    let closed = gate.close(EndRecord {
        status,
        result: result.clone(),
        failure: failure.clone(),
        usage,
        calls,
        spent: spent.clone(),
        verdict: verdict.clone(),
        at: iso(now),
        void: Vec::new(),
        more: serde_json::Map::new(),
    });
    // Whoever has lost the run tells of no end: that is another one's to tell.
    let (status, result, failure, verdict) = match &closed {
        Err(lost) if lost.code == Code::RunTaken => (EndStatus::Failed, None, Some(lost.clone()), None),
        _ => (status, result, failure, verdict),
    };
    if status == EndStatus::Done && gate.only_replayed() {
        front_end.show(&Event::Notice { text: "this run was done already; nothing was done again".to_owned() });
    }
    let exit = match (&failure, &verdict) {
        (Some(failure), _) => failure.code.exit(),
        (None, Some(RunVerdict { ok: false, .. })) => Exit::No,
        (None, _) => Exit::Done,
    };
    // A yes is what the flow has said already; a no is why the exit status is what it is.
    if let Some(verdict) = verdict.as_ref().filter(|verdict| !verdict.ok) {
        front_end.show(&Event::Notice { text: format!("the verdict is {verdict}") });
    }
    front_end.show(&Event::RunEnded { status, result, failure: failure.clone(), usage, calls, spent, verdict });
    // A run whose end cannot be written can be resumed from what is recorded; its own failure was shown above.
    match (closed, failure) {
        (Err(failure), None) => (Err(failure), None),
        (Ok(Closed::Written(end)), _) => (Ok(exit), Some(*end)),
        (Ok(Closed::Answered), _) => {
            let text = "it was answered meanwhile, and can go on: nietz resume".to_owned();
            front_end.show(&Event::Notice { text });
            (Ok(exit), None)
        }
        (Ok(Closed::Unchanged) | Err(_), _) => (Ok(exit), None),
    }
}

/// Returns the tokens and the calls of all models together.
pub(crate) fn total_usage(spent: &[Spent]) -> (Usage, u64) {
    spent.iter().fold((Usage::default(), 0), |(mut usage, calls), spent| {
        usage += spent.usage;
        (usage, calls + spent.calls)
    })
}

/// Returns the id of a new run: its start time, and random digits that tell two runs of one second apart.
fn new_id(now: u64) -> String {
    let time = iso(now).replace([':', '-'], "").replace('T', "-").replace('Z', "");
    let unique = uuid::Uuid::new_v4().simple().to_string();
    format!("{time}-{}", &unique[..4])
}
