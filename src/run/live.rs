//! A run from its first line to its last: how it begins, goes on and ends.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

use crate::engine::budget::Meter;
use crate::engine::gate::{Gate, OpenJournal};
use crate::engine::history::History;
use crate::engine::replay_source::ReplaySource;
use crate::engine::runs::LockedRun;
use crate::error::{Code, Exit, Failure, Result};
use crate::host::FrontEnd;
use crate::host::llm::Client;
use crate::journal::lines::{EndRecord, Fork, OpenRecord, Record, ResumeRecord};
use crate::journal::writer::JournalTail;
use crate::lua::flow::FlowOutcome;
use crate::model::budget::{Budget, Spent};
use crate::model::chat::Usage;
use crate::model::command::{self, Grants};
use crate::model::effect::Sources;
use crate::model::event::{EndStatus, Event};
use crate::run::access::filters;
use crate::run::assemble::{RunParts, assemble};
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
    /// Whether the flow was called by its name, and not by a path.
    pub by_name: bool,
    pub model: Option<String>,
    /// Whether the model holds for personas that name another one, too.
    pub only_model: bool,
    /// Without it, the user's.
    pub lang: Option<String>,
    pub seed: Option<u64>,
    /// What the command line says; the flow and the configuration say the rest.
    pub budget: Budget,
    pub id: Option<String>,
    pub grants: Grants,
    /// What the flow is told of the workspace's name; without it, what it is.
    pub workspace: Option<String>,
    pub fork: Option<Fork>,
    /// What the run takes from.
    pub replay_source: Option<ReplaySource>,
    /// Whether its folder stays, so that it can be resumed.
    pub kept: bool,
}

/// What a run goes on with.
pub enum ResumeTerms {
    /// What its first line says, with what the command line adds.
    Own { grants: Grants, budget: Budget },
    /// What the command line says, and nothing that the first line grants or names.
    Given(Box<NewRun>),
}

/// A run that is ready to be driven: its journal is read and open for writing.
struct PreparedRun {
    locked: LockedRun,
    open: OpenRecord,
    recorded: OpenJournal,
    listener: FrontEndSlot,
    replay_source: Option<ReplaySource>,
    /// Why the run is not known as the user's own.
    not_noted: Option<Failure>,
    /// What the user is told of what the flow asks for.
    notices: Vec<String>,
}

impl Session {
    /// Begins a new run and takes it to its end. The user is told the notices first.
    pub fn begin(
        self,
        machine: &Machine,
        mut begin: NewRun,
        notices: Vec<String>,
        front: &FrontOptions,
    ) -> Result<Exit> {
        let listener = FrontEndSlot::default();
        let client = listening_client(machine, &listener)?;
        let runtime = runtime()?;
        let (kept, replay_source) = (begin.kept, begin.replay_source.take());
        let open = self.open_record(machine, &client, &runtime, begin)?;
        let runs = machine.runs();
        let locked = runs.create(&open.run)?;
        let mut writer = locked.writer(JournalTail::default(), machine.fault())?;
        let first = Record::Open(Box::new(open.clone()));
        // A run that cannot be noted as the user's own is a run all the same: resuming it takes more words.
        let noted =
            kept.then(|| writer.render_line(&first).and_then(|line| runs.note_own(&open.run, line))).transpose();
        let (noted, not_noted) = noted.map_or_else(|failure| (None, Some(failure)), |noted| (noted, None));
        let mut writer = writer.with_companion(noted);
        // It is synced with the first outcome: until then, a power cut loses nothing that was paid for.
        writer.append(&first)?;
        let recorded = OpenJournal { writer, history: History::default(), resume: None };
        let ready = PreparedRun { locked, open, recorded, listener, replay_source, not_noted, notices };
        self.drive(machine, client, runtime, ready, front)
    }

    /// Returns what a run begins with, and pins its models.
    fn open_record(
        &self,
        machine: &Machine,
        client: &Client,
        runtime: &tokio::runtime::Runtime,
        begin: NewRun,
    ) -> Result<OpenRecord> {
        let mut settings = self.settings(machine)?;
        let clock = machine.clock()?;
        let seed = begin.seed.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0 >> 11);
        let default =
            self.flow.manifest.permissions.llm.then(|| runtime.block_on(client.resolve(begin.model.as_deref())));
        if let (Some(_), Some(Err(failure))) = (&begin.model, &default) {
            return Err(failure.clone());
        }
        let model = default.as_ref().and_then(|model| model.as_ref().ok().cloned());
        let redactor = machine.redactor();
        redactor.refuse("the model's name", model.as_deref())?;
        redactor.refuse("the run's name (NIETZ_RUN)", begin.id.as_deref())?;
        let text = |text: String| redactor.text(&text).into_owned();
        let aliases = client.aliases().clone().into_iter().map(|(alias, model)| (text(alias), text(model)));
        let aliases: BTreeMap<String, String> = aliases.collect();
        *self.pinned.borrow_mut() = PinnedModels { default, aliases: aliases.clone() };
        let mut params = begin.params;
        redactor.value(&mut params);
        settings.values_mut().for_each(|value| redactor.value(value));
        Ok(OpenRecord {
            run: begin.id.unwrap_or_else(|| new_id(clock())),
            flow: self.flow.manifest.name.clone(),
            source: self.flow.located.source(),
            command: begin.command,
            params,
            model,
            only_model: begin.only_model,
            aliases,
            lang: text(begin.lang.unwrap_or_else(|| machine.lang())),
            seed,
            grants: begin.grants,
            budget: self.budget(machine, begin.budget),
            settings,
            files: self.flow.sources(),
            host: Machine::version(),
            at: iso(clock()),
            workspace: Some(text(begin.workspace.unwrap_or_else(|| machine.workspace_name()))),
            fork: begin.fork,
            more: serde_json::Map::new(),
        })
    }

    /// Goes on with a run from its journal. The user is told the notices first.
    pub fn resume(
        self,
        machine: &Machine,
        locked: LockedRun,
        (past, tail): (History, JournalTail),
        (first, with): (OpenRecord, ResumeTerms),
        notices: Vec<String>,
        front: &FrontOptions,
    ) -> Result<Exit> {
        let clock = machine.clock()?;
        let listener = FrontEndSlot::default();
        let client = listening_client(machine, &listener)?;
        let runtime = runtime()?;
        let open = match with {
            ResumeTerms::Own { grants, budget } => {
                // A run that began without a model may have one by now: the user set a key.
                let default = match first.model.clone() {
                    Some(model) => Some(Ok(model)),
                    None => self.flow.manifest.permissions.llm.then(|| runtime.block_on(client.resolve(None))),
                };
                let named = default.as_ref().and_then(|model| model.as_deref().ok());
                machine.redactor().refuse("the model's name", named)?;
                *self.pinned.borrow_mut() = PinnedModels { default, aliases: first.aliases.clone() };
                OpenRecord { grants, budget: first.budget.replaced(budget), ..first }
            }
            ResumeTerms::Given(begin) => {
                let begin = NewRun { id: Some(first.run), ..*begin };
                OpenRecord { files: first.files, ..self.open_record(machine, &client, &runtime, begin)? }
            }
        };
        let now = self.flow.sources();
        let changed: Sources = now.into_iter().filter(|(path, digest)| open.files.get(path) != Some(digest)).collect();
        let resume = Some(ResumeRecord { host: Machine::version(), changed, torn: past.whole.torn, at: iso(clock()) });
        let writer = locked.writer(tail, machine.fault())?;
        let there = open.fork.as_ref().filter(|fork| machine.runs().journal(&fork.run).is_file());
        let replay_source = there.map(|fork| fork_source(machine, fork)).transpose()?;
        let recorded = OpenJournal { writer, history: past, resume };
        let ready = PreparedRun { locked, open, recorded, listener, replay_source, not_noted: None, notices };
        self.drive(machine, client, runtime, ready, front)
    }

    fn drive(
        self,
        machine: &Machine,
        client: Client,
        runtime: tokio::runtime::Runtime,
        ready: PreparedRun,
        front: &FrontOptions,
    ) -> Result<Exit> {
        self.flow.context().personas.set_ignore_models(ready.open.only_model);
        let front = front.open(machine, &ready.open.run)?;
        // The cell is new: nobody has set it.
        let _ = ready.listener.set(Rc::clone(&front.shown));
        self.announce(&ready, &front);
        let PreparedRun { open, recorded, replay_source, .. } = ready;
        let told = Rc::clone(&front.shown);
        let tell = Box::new(move |text| told.show(&Event::Notice { text }));
        let parts = RunParts {
            models: Box::new(client),
            front: Rc::clone(&front.shown),
            details: front.details,
            filters: filters(machine, &self.flow)?,
            now: machine.clock()?,
            meter: Meter::telling(open.budget.bounded(), tell),
        };
        let (gate, start) = assemble(machine, &self, &open, parts, recorded)?;
        if let Some(replay_source) = replay_source {
            gate.set_replay_source(replay_source);
        }
        // Until all is written and said.
        let mut interrupts = CtrlC::new(&open.run)?;
        let flow = self.flow.run(open.command.as_deref(), &start, Rc::clone(&gate), &mut interrupts);
        let done = runtime.block_on(flow);
        front.tell_unused_answers();
        if let Some(taken) =
            gate.take_replay_source().map(|replay_source| replay_source.replayed_count()).filter(|taken| *taken > 0)
        {
            let what = if taken == 1 { "effect was" } else { "effects were" };
            front.notice(format!("{taken} {what} taken over, and not done again"));
        }
        let changed = |failure: &Failure| failure.code == Code::DocumentChanged;
        if open.fork.is_some() && matches!(&done, Ok(FlowOutcome::Failed(failure)) if changed(failure)) {
            front.notice(
                "the documents are as the other run left them: with `--into FOLDER`, a fork works in a folder of its own",
            );
        }
        if matches!(done, Ok(FlowOutcome::Interrupted(_))) {
            // What still goes on was given up by a second interruption: it is not waited for, and git is ended.
            crate::host::git::end_all();
            runtime.shutdown_background();
        }
        let exit = record_end(&gate, &*front.shown, done, machine.clock()?());
        // The process ends now. Taking the machine down, object by object, would only take time.
        std::mem::forget(self.flow);
        exit
    }

    /// Tells what the user should know before anything happens.
    fn announce(&self, ready: &PreparedRun, front: &OpenFront) {
        let PreparedRun { locked, open, recorded, replay_source, not_noted, notices, .. } = ready;
        let resume = &recorded.resume;
        front.shown.show(&Event::RunStarted {
            flow: open.flow.clone(),
            resumed: resume.is_some(),
            journal: locked.journal.display().to_string(),
        });
        notices.iter().for_each(|text| front.notice(text));
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
        if let Some(fork) = open.fork.as_ref().filter(|_| replay_source.is_none()) {
            front.notice(format!(
                "the run {} is gone, which this one was forked from: what was not taken over yet is done anew",
                fork.run
            ));
        }
        if let Some(model) = open.model.as_deref().filter(|model| model.starts_with("local/")) {
            front.notice(format!(
                "{model} is a small model on this machine: free and private, and not clever. For a better one set \
                 OPENAI_API_KEY or ANTHROPIC_API_KEY, or see `nietz models`."
            ));
        }
        if let Some(limits) = self.flow.manifest.limits {
            front.notice(format!(
                "this flow asks for its own limits: {} s of Lua without an effect, {} MB of memory",
                limits.seconds, limits.megabytes
            ));
        }
        let permissions = self.flow.manifest.permissions.with_params(&open.params);
        if !permissions.commands().is_empty() {
            front.notice(format!(
                "this flow may run {}",
                command::describe_commands(permissions.commands(), &open.grants)
            ));
        }
    }
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

/// Returns how a run ended, with its result or its failure.
pub fn ending(done: Result<FlowOutcome>) -> (EndStatus, Option<Value>, Option<Failure>) {
    match done {
        Ok(FlowOutcome::Returned(result)) => (EndStatus::Done, Some(result), None),
        Ok(FlowOutcome::Interrupted(failure)) => (EndStatus::Interrupted, None, Some(failure)),
        Ok(FlowOutcome::Failed(failure)) | Err(failure) => (EndStatus::Failed, None, Some(failure)),
        Ok(FlowOutcome::Parked(failure)) => (EndStatus::Waiting, None, Some(failure)),
    }
}

/// Returns the run that a fork takes from, up to where it was forked.
pub fn fork_source(machine: &Machine, fork: &Fork) -> Result<ReplaySource> {
    let mut replay_source = ReplaySource::for_fork(&machine.runs().journal(&fork.run))?;
    if let Some(line) = fork.before {
        replay_source.forget_from(line)?;
    }
    Ok(replay_source)
}

/// Writes and shows how a run ended, and returns its exit status.
fn record_end(gate: &Gate, shown: &dyn FrontEnd, done: Result<FlowOutcome>, now: u64) -> Result<Exit> {
    let (status, result, failure) = ending(done);
    let spent = gate.spent();
    let (usage, calls) = total_usage(&spent);
    let closed = gate.close(EndRecord {
        status,
        result: result.clone(),
        failure: failure.clone(),
        usage,
        calls,
        spent: spent.clone(),
        at: iso(now),
        void: Vec::new(),
        more: serde_json::Map::new(),
    });
    if status == EndStatus::Done && gate.only_replayed() {
        shown.show(&Event::Notice { text: "this run was done already; nothing was done again".to_owned() });
    }
    let exit = failure.as_ref().map_or(Exit::Done, |failure| failure.code.exit());
    shown.show(&Event::RunEnded { status, result, failure: failure.clone(), usage, calls, spent });
    // A run whose end cannot be written is resumed from what is there; its own failure was shown above.
    match (closed, failure) {
        (Err(failure), None) => Err(failure),
        _ => Ok(exit),
    }
}

pub fn total_usage(spent: &[Spent]) -> (Usage, u64) {
    spent.iter().fold((Usage::default(), 0), |(mut usage, calls), spent| {
        usage += spent.usage;
        (usage, calls + spent.calls)
    })
}

/// Returns the id of a new run: its start, and something that tells two of one second apart.
fn new_id(now: u64) -> String {
    let time = iso(now).replace([':', '-'], "").replace('T', "-").replace('Z', "");
    let unique = uuid::Uuid::new_v4().simple().to_string();
    format!("{time}-{}", &unique[..4])
}
