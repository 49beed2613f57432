//! A workbench for flows: a pack in a temporary folder, the real machine, gate, journal and store, and a
//! model and a user that are scripted.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

use futures_util::future::{FutureExt, LocalBoxFuture, pending, ready};
use nietz::engine::budget::Meter;
use nietz::engine::gate::OpenJournal;
use nietz::engine::history::History;
use nietz::error::{Failure, Result};
use nietz::host::{CallEvent, FrontEnd, Models};
use nietz::journal::lines::OpenRecord;
use nietz::journal::writer::{JournalTail, JournalWriter};
use nietz::lua::flow::FlowOutcome;
use nietz::lua::limits::FlowLimits;
use nietz::lua::scheduler::Interrupts;
use nietz::model::budget::Budget;
use nietz::model::chat::{ChatReply, ChatRequest, FinishReason, Usage};
use nietz::model::choice::RunEfforts;
use nietz::model::command::Grants;
use nietz::model::event::Event;
use nietz::model::question::{Question, QuestionKind};
use nietz::model::redact::Redactor;
use nietz::pack::resolve::{self, ResolvedFlow};
use nietz::pack::tree::{PackTree, Root};
use nietz::run::assemble::{RunParts, assemble};
use nietz::run::machine::Machine;
use nietz::run::session::Session;
use serde_json::{Value, json};

/// A pack that is also the workspace of its flows.
pub(super) struct Bench {
    folder: tempfile::TempDir,
    /// For what must not be inside of the workspace.
    beside: tempfile::TempDir,
    runs: std::cell::Cell<u32>,
}

impl Bench {
    pub(super) fn new() -> Bench {
        let folder = || tempfile::tempdir().expect("a temporary folder can be made");
        let beside = folder();
        // The user has one MCP server.
        std::fs::write(beside.path().join("config.yaml"), crate::mcp::config("good", "")).expect("it can be written");
        Bench { folder: folder(), beside, runs: std::cell::Cell::new(0) }
    }

    /// Makes the workspace a git repository and commits all that is in it.
    pub(super) fn commit_all(&self) {
        crate::support::git::init(self.path());
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file of the pack.
    pub(super) fn file(&self, path: &str, text: impl AsRef<[u8]>) {
        let full = self.path().join(path);
        std::fs::create_dir_all(full.parent().expect("it is in a folder")).expect("folders can be made");
        std::fs::write(full, text).expect("files can be written");
    }

    pub(super) fn located(&self, flow: &str) -> ResolvedFlow {
        let full = self.path().join(flow);
        resolve::flow(&full.display().to_string(), self.path(), Path::new("/nonexistent")).expect("the flow is there")
    }

    /// Loads a flow, with the personas and quotes of this pack and the bundled ones.
    pub(super) fn load(&self, flow: &str, limits: FlowLimits) -> Result<Session> {
        let located = self.located(flow);
        let layers = vec![located.tree.clone(), PackTree::new(Root::Bundled)];
        let session = Session::load_limited(&self.machine(), located, layers, limits)?;
        session.pinned.borrow_mut().default = Some(Ok("fake/model".to_owned()));
        Ok(session)
    }

    /// Loads and runs a flow, and returns its result with what was said.
    pub(super) fn run(&self, flow: &str, params: Value, limits: FlowLimits) -> (Result<Value>, Vec<String>) {
        let said = Rc::new(Front::default());
        let result = self.load(flow, limits).and_then(|session| self.drive(&session, params, &said));
        let said = said.0.borrow().clone();
        (result, said)
    }

    fn drive(&self, session: &Session, params: Value, front: &Rc<Front>) -> Result<Value> {
        self.runs.set(self.runs.get() + 1);
        let journal = self.path().join(format!(".nietz/{}.jsonl", self.runs.get()));
        std::fs::create_dir_all(self.path().join(".nietz")).expect("folders can be made");
        let parts = parts(Box::new(Obliging), Rc::clone(front) as Rc<dyn FrontEnd>);
        let recorded = OpenJournal {
            writer: JournalWriter::open(&journal, JournalTail::default(), None)?,
            history: History::default(),
            resume: None,
        };
        let done = self.go(session, params, parts, recorded);
        let _ = std::fs::remove_file(&journal);
        match done? {
            FlowOutcome::Returned(value, _) => Ok(value),
            FlowOutcome::Failed(failure) | FlowOutcome::Parked(failure) => Err(failure),
            FlowOutcome::Interrupted(_) => unreachable!("nobody interrupts"),
        }
    }

    /// Runs a flow, or goes on with it, to an end.
    pub(super) fn go(
        &self,
        session: &Session,
        params: Value,
        parts: RunParts,
        recorded: OpenJournal,
    ) -> Result<FlowOutcome> {
        let (gate, start) = assemble(&self.machine(), session, &open(session, params), parts, recorded)?;
        runtime().block_on(session.flow.run(None, &start, gate, &mut Nobody))
    }

    fn machine(&self) -> Machine {
        let home = self.beside.path().display().to_string();
        let path = "/usr/local/bin:/usr/bin:/bin".to_owned();
        let environment = BTreeMap::from([("PATH".to_owned(), path), ("NIETZ_HOME".to_owned(), home)]);
        let program = Some(env!("CARGO_BIN_EXE_nietz").into());
        let nothing = Redactor::new(BTreeMap::<String, String>::new());
        Machine::new(Some(self.path().to_owned()), environment, nothing, program).expect("its configuration is right")
    }
}

/// Returns what a run needs that these models and this user answer; no time goes by.
pub(super) fn parts(models: Box<dyn Models>, front: Rc<dyn FrontEnd>) -> RunParts {
    RunParts {
        models,
        front,
        details: false,
        filters: BTreeSet::new(),
        now: Box::new(|| 1_768_000_000_000),
        meter: Meter::new(Budget::default()),
        attachments: Default::default(),
    }
}

fn open(session: &Session, params: Value) -> OpenRecord {
    OpenRecord {
        run: "test".to_owned(),
        flow: session.flow.manifest.name.clone(),
        source: session.flow.located.source(),
        command: None,
        params,
        origins: Vec::new(),
        model: None,
        only_model: false,
        aliases: BTreeMap::new(),
        efforts: RunEfforts::default(),
        lang: "en".to_owned(),
        seed: 7,
        grants: Grants::default(),
        budget: Budget::default(),
        settings: serde_json::Map::new(),
        files: session.flow.sources(),
        host: Machine::version(),
        at: "2026-01-09T10:30:00Z".to_owned(),
        workspace: Some("workspace".to_owned()),
        fork: None,
        of: None,
        anew_of: None,
        more: serde_json::Map::new(),
    }
}

pub(super) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made")
}

/// A user who never presses Ctrl-C.
pub(super) struct Nobody;

impl Interrupts for Nobody {
    fn next(&mut self) -> LocalBoxFuture<'_, ()> {
        pending().boxed_local()
    }
}

/// A user who answers everything: "x", the first option, yes.
#[derive(Default)]
pub(super) struct Front(RefCell<Vec<String>>);

impl FrontEnd for Front {
    fn show(&self, event: &Event) {
        if let Event::Said { markdown, .. } = event
            && self.0.borrow().len() < 1000
        {
            self.0.borrow_mut().push(markdown.chars().take(1000).collect());
        }
    }

    fn ask<'a>(&'a self, question: &'a Question) -> LocalBoxFuture<'a, Result<Value>> {
        ready(Ok(match question.kind {
            QuestionKind::Ask => json!("x"),
            QuestionKind::Choose => json!(question.options[0].value),
            QuestionKind::Confirm => json!(true),
        }))
        .boxed_local()
    }

    fn attended(&self) -> bool {
        true
    }
}

/// A model that says "hello", or a smallest value that is valid by the schema; `fake/echo` and `seeded/echo` say the
/// seed that they were given.
struct Obliging;

impl Models for Obliging {
    fn is_seeded(&self, model: &str) -> bool {
        model.starts_with("seeded/")
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        _: &'a mut dyn FnMut(CallEvent<'_>),
    ) -> LocalBoxFuture<'a, Result<ChatReply, Failure>> {
        let text = match &request.schema {
            Some(schema) => least(schema).to_string(),
            None if request.model.ends_with("/echo") => format!("{:?}", request.seed),
            None => "hello".to_owned(),
        };
        ready(Ok(ChatReply {
            text,
            tool_calls: Vec::new(),
            state: None,
            usage: Usage { input: 1, output: 1, ..Usage::default() },
            model: request.model.clone(),
            finish: FinishReason::Stop,
            cost: None,
            saved: 0.0,
            refused: Vec::new(),
            retries: Vec::new(),
            lost: None,
        }))
        .boxed_local()
    }
}

fn least(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("object") => schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, member)| (name.clone(), least(member)))
            .collect(),
        Some("array") => json!([least(&schema["items"])]),
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        _ => json!("x"),
    }
}
