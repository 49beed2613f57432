//! A workbench for flows: a pack in a temporary folder, the real machine, gate, journal and store, and a
//! model and a user that are scripted.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use futures_util::future::{FutureExt, LocalBoxFuture, pending, ready};
use nietz::engine::budget::Meter;
use nietz::engine::gate::Gate;
use nietz::engine::past::Past;
use nietz::engine::world::World;
use nietz::error::{Failure, Result};
use nietz::host::documents::Store;
use nietz::host::exec::Commands;
use nietz::host::files::Files;
use nietz::host::git::Repository;
use nietz::host::{CallEvent, FrontEnd, Models};
use nietz::journal::lines::Resume;
use nietz::journal::writer::{Tail, Writer};
use nietz::lua::api::Context;
use nietz::lua::flow::{Done, Flow, Start};
use nietz::lua::limits::Limits;
use nietz::lua::scheduler::Interrupts;
use nietz::model::budget::Budget;
use nietz::model::chat::{ChatReply, ChatRequest, Finish, Usage};
use nietz::model::command::{self, Grants};
use nietz::model::event::Event;
use nietz::model::question::{Question, QuestionKind};
use nietz::model::redact::Redactor;
use nietz::pack::persona::Personas;
use nietz::pack::resolve::{self, Located};
use nietz::pack::tree::{Root, Tree};
use serde_json::{Value, json};

/// A pack that is also the workspace of its flows.
pub struct Bench {
    folder: tempfile::TempDir,
    /// For what must not be inside of the workspace.
    beside: tempfile::TempDir,
    runs: std::cell::Cell<u32>,
}

impl Bench {
    pub fn new() -> Bench {
        let folder = || tempfile::tempdir().expect("a temporary folder can be made");
        Bench { folder: folder(), beside: folder(), runs: std::cell::Cell::new(0) }
    }

    /// Makes the workspace a git repository and commits all that is in it.
    pub fn commit_all(&self) {
        crate::support::git::init(self.path());
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file of the pack.
    pub fn file(&self, path: &str, text: impl AsRef<[u8]>) {
        let full = self.path().join(path);
        std::fs::create_dir_all(full.parent().expect("it is in a folder")).expect("folders can be made");
        std::fs::write(full, text).expect("files can be written");
    }

    pub fn located(&self, flow: &str) -> Located {
        let full = self.path().join(flow);
        resolve::flow(&full.display().to_string(), self.path(), Path::new("/nonexistent")).expect("the flow is there")
    }

    pub fn load(&self, flow: &str, limits: Limits) -> Result<Flow> {
        let located = self.located(flow);
        let layers = vec![located.tree.clone(), Tree::new(Root::Bundled)];
        let context = Context {
            tree: located.tree.clone(),
            personas: Personas::new(layers.clone()),
            layers,
            resolve: Box::new(|name| Ok(name.unwrap_or("fake/model").to_owned())),
            window: Box::new(|model| nietz::host::llm::window(&BTreeMap::new(), model)),
            collections: RefCell::default(),
        };
        Flow::load(located, context, limits)
    }

    /// Loads and runs a flow, and returns its result with what was said.
    pub fn run(&self, flow: &str, params: Value, limits: Limits) -> (Result<Value>, Vec<String>) {
        let said = Rc::new(Front::default());
        let result = self.load(flow, limits).and_then(|flow| self.drive(&flow, params, &said));
        let said = said.0.borrow().clone();
        (result, said)
    }

    fn drive(&self, flow: &Flow, params: Value, front: &Rc<Front>) -> Result<Value> {
        self.runs.set(self.runs.get() + 1);
        let journal = self.path().join(format!(".nietz/{}.jsonl", self.runs.get()));
        std::fs::create_dir_all(self.path().join(".nietz")).expect("folders can be made");
        let world = self.world(flow, Box::new(Obliging), Rc::clone(front) as Rc<dyn FrontEnd>)?;
        let writer = Writer::open(&journal, Tail::default(), None)?;
        let gate = gate(flow, world, (writer, Past::default(), None));
        let done = runtime().block_on(flow.run(None, &start(params), gate, &mut Nobody));
        let _ = std::fs::remove_file(&journal);
        match done? {
            Done::Returned(value) => Ok(value),
            Done::Failed(failure) | Done::Parked(failure) => Err(failure),
            Done::Interrupted(_) => unreachable!("nobody interrupts"),
        }
    }

    /// Returns everything outside of a run of this flow, with these models and this user.
    pub fn world(&self, flow: &Flow, models: Box<dyn Models>, front: Rc<dyn FrontEnd>) -> Result<World> {
        Ok(World {
            run: "bench".to_owned(),
            models,
            store: Store::new(self.path())?,
            front,
            details: false,
            collections: RefCell::new(flow.context().collections.borrow().clone()),
            declared: RefCell::default(),
            written: Default::default(),
            files: Files::new(self.path(), &[], None),
            repository: Repository::new(
                self.path(),
                &self.beside.path().join("worktrees"),
                "test",
                &environment(),
                nietz::model::git::Limits::default(),
            ),
            commands: Commands {
                read: Vec::new(),
                told: Default::default(),
                helper: env!("CARGO_BIN_EXE_nietz").into(),
                environment: environment(),
                grants: Grants::default(),
                limits: command::Limits::default(),
                ends: None,
                kept: Vec::new(),
                outputs: self.path().join(".nietz/output"),
                together: nietz::host::exec::Together::default(),
                outputs_shown: ".nietz/output".to_owned(),
                redactor: Redactor::new(BTreeMap::new()),
            },
            now: Box::new(|| 1_768_000_000_000),
        })
    }
}

/// Returns the gate of a run that goes on from here.
pub fn gate(flow: &Flow, world: World, recorded: (Writer, Past, Option<Resume>)) -> Rc<Gate> {
    let redactor = Rc::new(Redactor::new(BTreeMap::<String, String>::new()));
    let gate = Rc::new(Gate::new(Rc::new(world), redactor, Meter::new(Budget::default()), recorded, 7));
    gate.permit(flow.manifest.permissions.clone());
    gate
}

pub fn start(params: Value) -> Start {
    let (run, lang, workspace) = ("test".to_owned(), "en".to_owned(), "workspace".to_owned());
    Start { params, settings: json!({}), run, lang, workspace }
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made")
}

fn environment() -> BTreeMap<String, String> {
    BTreeMap::from([("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())])
}

/// A user who never presses Ctrl-C.
pub struct Nobody;

impl Interrupts for Nobody {
    fn next(&mut self) -> LocalBoxFuture<'_, ()> {
        pending().boxed_local()
    }
}

/// A user who answers everything: "x", the first option, yes.
#[derive(Default)]
pub struct Front(RefCell<Vec<String>>);

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
            usage: Usage { input: 1, output: 1, cached: 0 },
            model: request.model.clone(),
            finish: Finish::Stop,
            cost: None,
            refused: Vec::new(),
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
