//! A run from its beginning to its end, for `run` and `resume`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::Args;
use futures_util::future::LocalBoxFuture;
use serde_json::Value;

use crate::cli::access::{commands, files};
use crate::cli::client::{Listener, Pinned, listening_client};
use crate::cli::foreign;
use crate::cli::host::{Host, iso};
use crate::cli::signals::CtrlC;
use crate::cli::trust::{self, Called};
use crate::cpu::Thread;
use crate::engine::budget::Meter;
use crate::engine::donor::Donor;
use crate::engine::gate::Gate;
use crate::engine::past::Past;
use crate::engine::run::Locked;
use crate::engine::world::World;
use crate::error::{Code, Exit, Failure, Result};
use crate::host::documents::Store;
use crate::host::git::Repository;
use crate::host::llm::{Client, window};
use crate::host::telemetry::{self, Traced};
use crate::host::ui::answers::Answers;
use crate::host::ui::{self, Mode};
use crate::host::{FrontEnd, Models};
use crate::journal::lines::{End, Fork, Open, Record, Resume};
use crate::journal::writer::{Tail, Writer};
use crate::lua::api::Context;
use crate::lua::flow::{Done, Flow, Start};
use crate::lua::limits::Limits;
use crate::model::budget::{Budget, Spent};
use crate::model::chat::Usage;
use crate::model::command::{self, Grants};
use crate::model::effect::Sources;
use crate::model::event::{EndStatus, Event};
use crate::model::setting;
use crate::pack::persona::Personas;
use crate::pack::resolve::Located;
use crate::pack::tree::Tree;

/// How long flows may be loaded that nobody runs, all together.
const LOOKING: Duration = Duration::from_secs(10);

/// How a run is shown and answered.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct FrontArgs {
    /// Write events as JSON lines; answers are read as JSON lines
    #[arg(long, global = true)]
    pub json: bool,
    /// Answer questions from this YAML or JSON file: question id to answer, or to a list of answers
    #[arg(long, value_name = "FILE", global = true)]
    pub answers: Option<PathBuf>,
    /// Show each request to a model and its reply, on standard error, without secrets
    #[arg(long, global = true)]
    pub verbose: bool,
    /// Trust this folder with what it asks for, in this run alone: for CI
    #[arg(long, global = true)]
    pub trust: bool,
}

impl FrontArgs {
    /// Adds what was said in another place of the command line.
    pub(super) fn or(self, other: FrontArgs) -> FrontArgs {
        FrontArgs {
            json: self.json || other.json,
            answers: self.answers.or(other.answers),
            verbose: self.verbose || other.verbose,
            trust: self.trust || other.trust,
        }
    }
}

/// A flow with what its run needs.
pub(super) struct Session {
    pub flow: Flow,
    pub pinned: Rc<RefCell<Pinned>>,
}

/// Loads a flow, for whatever wants to look at it. All that one command looks at have one limit together: a folder may
/// hold any number of flows that never come to their end.
pub(super) fn load(host: &Host, located: Located) -> Result<Flow> {
    let so_far = host.looked.get();
    if so_far >= LOOKING {
        let seconds = LOOKING.as_secs();
        let message = format!("{} was not looked at: loading the flows before it took {seconds} s", located.source());
        return Err(Failure::new(Code::FlowLimit, message).hint("remove or correct those that take long to load"));
    }
    let (thread, wall) = (Thread::current(), Instant::now());
    let before = thread.spent();
    let loaded = Session::load(host, located).map(|session| session.flow);
    let computed = thread.spent().zip(before).map(|(now, before)| now.saturating_sub(before));
    host.looked.set(so_far + computed.unwrap_or_else(|| wall.elapsed()));
    loaded
}

pub(super) fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Code::Internal, format!("cannot start: {error}")))
}

impl Session {
    pub(super) fn load(host: &Host, located: Located) -> Result<Session> {
        let layers = host.layers(&located.tree)?;
        Session::load_with(host, located, layers)
    }

    /// Loads a flow whose personas and quotes come from these trees, nearest first.
    pub(super) fn load_with(host: &Host, located: Located, layers: Vec<Tree>) -> Result<Session> {
        let pinned: Rc<RefCell<Pinned>> = Rc::default();
        let resolver = Rc::clone(&pinned);
        let context = Context {
            tree: located.tree.clone(),
            personas: Personas::new(layers.clone()),
            layers,
            resolve: Box::new(move |name| resolver.borrow().resolve(name)),
            window: {
                let own = host.config.models.windows.clone();
                Box::new(move |model| window(&own, model))
            },
            collections: RefCell::default(),
        };
        Ok(Session { flow: Flow::load(located, context, Limits::default())?, pinned })
    }

    /// Returns what a run may use: the tightest of what the flow and the configuration say, unless it is given.
    pub(super) fn budget(&self, host: &Host, given: Budget) -> Budget {
        self.flow.manifest.budget.tightened(host.config.budget).replaced(given)
    }

    /// Returns the settings of a run. One that began before the flow had a setting goes on with its default.
    pub(super) fn settled(&self, open: &Open) -> Value {
        let mut settings = setting::settle(&self.flow.manifest.settings, &[]).unwrap_or_default();
        settings.extend(open.settings.clone());
        Value::Object(settings)
    }

    /// Returns the flow's settings, as the configuration has them.
    pub(super) fn settings(&self, host: &Host) -> Result<serde_json::Map<String, Value>> {
        let manifest = &self.flow.manifest;
        setting::settle(&manifest.settings, &host.config.settings(&manifest.name)).map_err(|why| {
            let known: Vec<&str> = manifest.settings.keys().map(String::as_str).collect();
            let hint = match known.is_empty() {
                true => format!("{} has no settings: take flows.{} out", manifest.name, manifest.name),
                false => format!("below flows.{}, known are {}", manifest.name, known.join(", ")),
            };
            Failure::new(Code::ConfigInvalid, why).hint(hint)
        })
    }

    /// Begins a new run and takes it to its end.
    pub(super) fn begin(self, host: &Host, mut begin: Begin, front: &FrontArgs) -> Result<Exit> {
        let mut told = trust::require(host, &self.flow, &Called::of(&begin, begin.by_name), front)?;
        told.extend(begin.hold_to_model(host, &self.flow, front)?);
        told.extend(foreign::results(host, &self.flow, &begin)?);
        let listener = Listener::default();
        let client = listening_client(host, &listener)?;
        let runtime = runtime()?;
        let (kept, donor) = (begin.kept, begin.donor.take());
        let open = self.opened(host, &client, &runtime, begin)?;
        let runs = host.runs();
        let locked = runs.create(&open.run)?;
        let mut writer = locked.writer(Tail::default(), host.fault())?;
        let first = Record::Open(Box::new(open.clone()));
        // A run that cannot be noted as the user's own is a run all the same: resuming it takes more words.
        let noted = kept.then(|| writer.line(&first).and_then(|line| runs.note_own(&open.run, line))).transpose();
        let (noted, not_noted) = noted.map_or_else(|failure| (None, Some(failure)), |noted| (noted, None));
        let mut writer = writer.with(noted);
        // It is synced with the first outcome: until then, a power cut loses nothing that was paid for.
        writer.append(&first)?;
        let recorded =
            Recorded { locked, open, writer, past: Past::default(), resume: None, listener, donor, not_noted, told };
        self.drive(host, client, runtime, recorded, front)
    }

    /// Returns what a run begins with, and pins its models.
    fn opened(&self, host: &Host, client: &Client, runtime: &tokio::runtime::Runtime, begin: Begin) -> Result<Open> {
        let mut settings = self.settings(host)?;
        let clock = host.clock()?;
        let seed = begin.seed.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0 >> 11);
        let default =
            self.flow.manifest.permissions.llm.then(|| runtime.block_on(client.resolve(begin.model.as_deref())));
        if let (Some(_), Some(Err(failure))) = (&begin.model, &default) {
            return Err(failure.clone());
        }
        let model = default.as_ref().and_then(|model| model.as_ref().ok().cloned());
        let redactor = host.redactor();
        redactor.refuse("the model's name", model.as_deref())?;
        redactor.refuse("the run's name (NIETZ_RUN)", begin.id.as_deref())?;
        let text = |text: String| redactor.text(&text).into_owned();
        let aliases = client.aliases().clone().into_iter().map(|(alias, model)| (text(alias), text(model)));
        let aliases: BTreeMap<String, String> = aliases.collect();
        *self.pinned.borrow_mut() = Pinned { default, aliases: aliases.clone() };
        let mut params = begin.params;
        redactor.value(&mut params);
        settings.values_mut().for_each(|value| redactor.value(value));
        Ok(Open {
            run: begin.id.unwrap_or_else(|| new_id(clock())),
            flow: self.flow.manifest.name.clone(),
            source: self.flow.located.source(),
            command: begin.command,
            params,
            model,
            only_model: begin.only_model,
            aliases,
            lang: text(begin.lang.unwrap_or_else(|| host.lang())),
            seed,
            grants: begin.grants,
            budget: self.budget(host, begin.budget),
            settings,
            files: self.flow.sources(),
            host: Host::version(),
            at: iso(clock()),
            workspace: Some(text(begin.workspace.unwrap_or_else(|| host.workspace_name()))),
            fork: begin.fork,
            more: serde_json::Map::new(),
        })
    }

    /// Goes on with a run from its journal.
    pub(super) fn go_on(
        self,
        host: &Host,
        locked: Locked,
        (past, tail): (Past, Tail),
        (first, with): (Open, With),
        front: &FrontArgs,
    ) -> Result<Exit> {
        let called = match &with {
            // Its model is in its journal.
            With::Own { .. } => Called { by_name: false, with_model: true },
            With::Given(begin) => Called::of(begin, begin.by_name),
        };
        let mut told = trust::require(host, &self.flow, &called, front)?;
        let clock = host.clock()?;
        let listener = Listener::default();
        let client = listening_client(host, &listener)?;
        let runtime = runtime()?;
        let open = match with {
            With::Own { grants, budget } => {
                // A run that began without a model may have one by now: the user set a key.
                let default = match first.model.clone() {
                    Some(model) => Some(Ok(model)),
                    None => self.flow.manifest.permissions.llm.then(|| runtime.block_on(client.resolve(None))),
                };
                let named = default.as_ref().and_then(|model| model.as_deref().ok());
                host.redactor().refuse("the model's name", named)?;
                *self.pinned.borrow_mut() = Pinned { default, aliases: first.aliases.clone() };
                Open { grants, budget: first.budget.replaced(budget), ..first }
            }
            With::Given(mut begin) => {
                told.extend(begin.hold_to_model(host, &self.flow, front)?);
                let (fork, not_taken) = foreign::fork(host, first.fork)?;
                told.extend(not_taken);
                told.extend(foreign::results(host, &self.flow, &begin)?);
                let begin = Begin { id: Some(first.run), fork, ..*begin };
                Open { files: first.files, ..self.opened(host, &client, &runtime, begin)? }
            }
        };
        let now = self.flow.sources();
        let changed: Sources = now.into_iter().filter(|(path, digest)| open.files.get(path) != Some(digest)).collect();
        let resume = Resume { host: Host::version(), changed, torn: past.whole.torn, at: iso(clock()) };
        let writer = locked.writer(tail, host.fault())?;
        let there = open.fork.as_ref().filter(|fork| host.runs().journal(&fork.run).is_file());
        let donor = there.map(|fork| donor(host, fork)).transpose()?;
        let recorded =
            Recorded { locked, open, writer, past, resume: Some(resume), listener, donor, not_noted: None, told };
        self.drive(host, client, runtime, recorded, front)
    }

    fn drive(
        self,
        host: &Host,
        client: Client,
        runtime: tokio::runtime::Runtime,
        recorded: Recorded,
        front: &FrontArgs,
    ) -> Result<Exit> {
        let Recorded { locked, open, writer, past, resume, listener, donor, not_noted, told } = recorded;
        self.flow.context().personas.hold_to_model(open.only_model);
        let resumed = resume.is_some();
        let (mut shown, answers) = open_front(host, front, &open.run)?;
        let traced = telemetry::wanted(&host.environment);
        if traced {
            // What is said of this process goes to the collector, too.
            let mut environment = host.environment.clone();
            let told = ["OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"];
            for value in
                environment.iter_mut().filter(|(name, _)| told.contains(&name.as_str())).map(|(_, value)| value)
            {
                *value = host.redactor().text(value).into_owned();
            }
            shown = Rc::new(Traced::open(shown, front.verbose, &open.run, &environment)?);
        }
        shown.show(&Event::RunStarted {
            flow: open.flow.clone(),
            resumed,
            journal: locked.journal.display().to_string(),
        });
        // The cell is new: nobody has set it.
        let _ = listener.set(Rc::clone(&shown));
        told.into_iter().for_each(|text| shown.show(&Event::Notice { text }));
        if let Some(resume) = &resume {
            note_resume(&*shown, resume);
        }
        if resumed && past.unordered {
            let text = "this run began in an older format, which does not say in which order work side by side went on: \
                        what is recorded is given back line by line";
            shown.show(&Event::Notice { text: text.to_owned() });
        }
        if let Some(failure) = not_noted {
            let text = format!(
                "this run cannot be noted as your own, so that `nietz resume` will take it for foreign: {failure}; \
                 XDG_STATE_HOME or NIETZ_HOME can name a folder that you can write"
            );
            shown.show(&Event::Notice { text });
        }
        if let Some(fork) = open.fork.as_ref().filter(|_| donor.is_none()) {
            let text = format!(
                "the run {} is gone, which this one was forked from: what was not taken over yet is done anew",
                fork.run
            );
            shown.show(&Event::Notice { text });
        }
        if let Some(model) = open.model.as_deref().filter(|model| model.starts_with("local/")) {
            let text = format!(
                "{model} is a small model on this machine: free and private, and not clever. For a better one set \
                 OPENAI_API_KEY or ANTHROPIC_API_KEY, or see `nietz models`."
            );
            shown.show(&Event::Notice { text });
        }
        if let Some(limits) = self.flow.manifest.limits {
            let text = format!(
                "this flow asks for its own limits: {} s of Lua without an effect, {} MB of memory",
                limits.seconds, limits.megabytes
            );
            shown.show(&Event::Notice { text });
        }
        let models: Box<dyn Models> = Box::new(client);
        let world = World {
            run: open.run.clone(),
            models,
            store: Store::new(&host.workspace)?.without(&host.own_folders()).with_indexes(&host.indexes()),
            front: Rc::clone(&shown),
            details: traced || front.verbose,
            collections: RefCell::new(self.flow.context().collections.borrow().clone()),
            declared: RefCell::default(),
            written: Default::default(),
            files: files(host, &open, &self.flow),
            repository: Repository::new(
                &host.workspace,
                &host.worktrees(),
                &open.run,
                &host.environment,
                host.config.git,
            )
            .trusting(trust::filters(host, &self.flow)?),
            commands: commands(host, &open, self.flow.manifest.exec_limits)?,
            now: host.clock()?,
        };
        let told = Rc::clone(&shown);
        let tell = Box::new(move |text| told.show(&Event::Notice { text }));
        let meter = Meter::telling(open.budget.bounded(), tell);
        let recorded = (writer, past, resume);
        let gate = Rc::new(Gate::new(Rc::new(world), Rc::new(host.redactor()), meter, recorded, open.seed));
        let permissions = self.flow.manifest.permissions.with_params(&open.params);
        if !permissions.commands().is_empty() {
            let text = format!("this flow may run {}", command::told(permissions.commands(), &open.grants));
            shown.show(&Event::Notice { text });
        }
        gate.permit(permissions);
        if let Some(donor) = donor {
            gate.take_from(donor);
        }
        let start = Start {
            params: open.params.clone(),
            settings: self.settled(&open),
            run: open.run.clone(),
            lang: open.lang.clone(),
            workspace: open.workspace.clone().unwrap_or_else(|| host.workspace_name()),
        };
        // Until all is written and said.
        let mut interrupts = CtrlC::new(&open.run)?;
        let flow = self.flow.run(open.command.as_deref(), &start, Rc::clone(&gate), &mut interrupts);
        let done = runtime.block_on(flow);
        if let Some(answers) = answers {
            let unused = answers.unused();
            if !unused.is_empty() {
                let text = format!("answers that nobody asked for: {}", unused.join(", "));
                shown.show(&Event::Notice { text });
            }
        }
        if let Some(taken) = gate.donor().map(|donor| donor.taken()).filter(|taken| *taken > 0) {
            let what = if taken == 1 { "effect was" } else { "effects were" };
            shown.show(&Event::Notice { text: format!("{taken} {what} taken over, and not done again") });
        }
        let changed = |failure: &Failure| failure.code == Code::DocumentChanged;
        if open.fork.is_some() && matches!(&done, Ok(Done::Failed(failure)) if changed(failure)) {
            let text = "the documents are as the other run left them: with `--into FOLDER`, a fork works in a folder of its own";
            shown.show(&Event::Notice { text: text.to_owned() });
        }
        if matches!(done, Ok(Done::Interrupted(_))) {
            // What still goes on was given up by a second interruption: it is not waited for, and git is ended.
            crate::host::git::end_all();
            runtime.shutdown_background();
        }
        let exit = end(&gate, &*shown, done, host.clock()?());
        // The process ends now. Taking the machine down, object by object, would only take time.
        std::mem::forget(self.flow);
        exit
    }
}

/// Returns how a run ended, with its result or its failure.
pub(super) fn told(done: Result<Done>) -> (EndStatus, Option<Value>, Option<Failure>) {
    match done {
        Ok(Done::Returned(result)) => (EndStatus::Done, Some(result), None),
        Ok(Done::Interrupted(failure)) => (EndStatus::Interrupted, None, Some(failure)),
        Ok(Done::Failed(failure)) | Err(failure) => (EndStatus::Failed, None, Some(failure)),
        Ok(Done::Parked(failure)) => (EndStatus::Waiting, None, Some(failure)),
    }
}

/// Returns the run that a fork takes from, up to where it was forked.
pub(super) fn donor(host: &Host, fork: &Fork) -> Result<Donor> {
    let mut donor = Donor::forked(&host.runs().journal(&fork.run))?;
    if let Some(line) = fork.before {
        donor.cut(line)?;
    }
    Ok(donor)
}

/// Writes and shows how a run ended, and returns its exit status.
fn end(gate: &Gate, shown: &dyn FrontEnd, done: Result<Done>, now: u64) -> Result<Exit> {
    let (status, result, failure) = told(done);
    let spent = gate.spent();
    let (usage, calls) = total(&spent);
    let closed = gate.close(End {
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

pub(super) fn total(spent: &[Spent]) -> (Usage, u64) {
    spent.iter().fold((Usage::default(), 0), |(mut usage, calls), spent| {
        usage += spent.usage;
        (usage, calls + spent.calls)
    })
}

/// What a new run begins with.
pub(super) struct Begin {
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
    pub donor: Option<Donor>,
    /// Whether its folder stays, so that it can be resumed.
    pub kept: bool,
}

impl Begin {
    /// Lets the model that the user named hold for all personas, unless they trust those of the folder with a choice.
    /// Returns what they are told of it.
    fn hold_to_model(&mut self, host: &Host, flow: &Flow, front: &FrontArgs) -> Result<Option<String>> {
        if self.model.is_none() || self.only_model {
            return Ok(None);
        }
        let told = trust::only_model(host, flow, front)?;
        self.only_model = told.is_some();
        Ok(told)
    }
}

/// What a run goes on with.
pub(super) enum With {
    /// What its first line says, with what the command line adds.
    Own { grants: Grants, budget: Budget },
    /// What the command line says, and nothing that the first line grants or names.
    Given(Box<Begin>),
}

/// A run's journal, read and open for writing.
struct Recorded {
    locked: Locked,
    open: Open,
    writer: Writer,
    past: Past,
    resume: Option<Resume>,
    listener: Listener,
    donor: Option<Donor>,
    /// Why the run is not known as the user's own.
    not_noted: Option<Failure>,
    /// What the user is told of what the flow asks for.
    told: Vec<String>,
}

/// Shares one front end between the gate and this verb.
struct Shared<F: FrontEnd + ?Sized>(Rc<F>);

impl<F: FrontEnd + ?Sized> FrontEnd for Shared<F> {
    fn show(&self, event: &Event) {
        self.0.show(event);
    }

    fn ask<'a>(&'a self, question: &'a crate::model::question::Question) -> LocalBoxFuture<'a, Result<Value>> {
        self.0.ask(question)
    }

    fn answered_before(&self, question: &crate::model::question::Question) {
        self.0.answered_before(question);
    }
}

/// The front end of a run, and the answers file that stands in front of it.
type Opened = (Rc<dyn FrontEnd>, Option<Rc<Answers>>);

fn open_front(host: &Host, args: &FrontArgs, run: &str) -> Result<Opened> {
    let mode = if args.json { Mode::Json } else { Mode::Auto };
    let plain = ui::open(mode, run, &host.environment, &host.redactor());
    let Some(path) = &args.answers else { return Ok((Rc::from(plain), None)) };
    let answers = Rc::new(Answers::open(path, plain)?);
    Ok((Rc::new(Shared(Rc::clone(&answers))), Some(answers)))
}

fn note_resume(shown: &dyn FrontEnd, resume: &Resume) {
    if resume.torn > 0 {
        let text =
            format!("the journal's last line was torn by the end of the process; {} bytes were cut off", resume.torn);
        shown.show(&Event::Notice { text });
    }
    if !resume.changed.is_empty() {
        let names: Vec<&str> = resume.changed.keys().map(String::as_str).collect();
        let text = format!("changed since the run began: {}; what depends on them runs again", names.join(", "));
        shown.show(&Event::Notice { text });
    }
}

/// Returns the id of a new run: its start, and something that tells two of one second apart.
fn new_id(now: u64) -> String {
    let time = iso(now).replace([':', '-'], "").replace('T', "-").replace('Z', "");
    let unique = uuid::Uuid::new_v4().simple().to_string();
    format!("{time}-{}", &unique[..4])
}
