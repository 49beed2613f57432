//! Assembles a run: the world outside, the gate in front of it, and the flow's input.
//!
//! Live runs, replays and tests all do it here, so that none differs by accident.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::{Value, json};

use crate::engine::budget::Meter;
use crate::engine::gate::{Gate, OpenJournal};
use crate::engine::world::World;
use crate::error::Result;
use crate::host::attachments::AttachmentStore;
use crate::host::git::Repository;
use crate::host::{FrontEnd, Models};
use crate::journal::lines::OpenRecord;
use crate::lua::flow::FlowInput;
use crate::model::command::Grants;
use crate::model::param::origins_by_param;
use crate::pack::permission_items::Items;
use crate::run::access::{commands, files, notifier, servers};
use crate::run::children::children;
use crate::run::machine::Machine;
use crate::run::machine::team::Team;
use crate::run::session::Session;

/// What differs between a live run, a replay and a test.
pub struct RunParts {
    pub models: Box<dyn Models>,
    pub front: Rc<dyn FrontEnd>,
    /// Whether the front end wants each request and reply.
    pub details: bool,
    /// The commands of git's filters that the user trusts.
    pub filters: Items,
    /// Milliseconds since 1970.
    pub now: Box<dyn Fn() -> u64>,
    pub meter: Rc<Meter>,
    /// Where the run keeps its images and PDFs.
    pub attachments: AttachmentStore,
}

/// Returns the gate of a run, and the input of its flow.
///
/// # Errors
///
/// The workspace cannot be used for documents, or this program's path is not known.
pub fn assemble(
    machine: &Machine,
    session: &Session,
    open: &OpenRecord,
    parts: RunParts,
    recorded: OpenJournal,
) -> Result<(Rc<Gate>, FlowInput)> {
    let flow = &session.flow;
    let environment = &machine.environment;
    let (top, below) = machine.repository();
    let repository = Repository::new(&top, &machine.worktrees(), &open.run, environment, machine.config.git);
    let repository = repository.starting_in(below);
    let world = World {
        run: open.run.clone(),
        models: parts.models,
        store: Team::documents(machine, Some(&open.run))?,
        front: parts.front,
        details: parts.details,
        collections: RefCell::new(flow.context().collections.borrow().clone()),
        declared: RefCell::default(),
        written: Default::default(),
        files: files(machine, open, flow).keeping(parts.attachments.clone()),
        attachments: parts.attachments,
        repository: repository.trusting(parts.filters),
        commands: commands(machine, open, flow.manifest.exec_limits)?,
        notifier: notifier(machine, open),
        servers: servers(machine)?,
        children: children(machine, open, flow),
        now: parts.now,
    };
    // A resumed run may be granted more: what the flow sees stays as it was, as all that it is given.
    let options = options(recorded.history.first.as_deref().unwrap_or(open));
    let gate = Gate::new(Rc::new(world), machine.redactor(), parts.meter, recorded, open.seed);
    let reads_only = flow.command(open.command.as_deref()).is_ok_and(|command| command.reads_only);
    let permissions = flow.manifest.permissions.with_params(&open.params, !open.grants.no_sandbox);
    let commands = permissions.commands().to_vec();
    gate.permit(permissions, reads_only);
    let input = FlowInput {
        commands,
        options,
        params: open.params.clone(),
        origins: origins_by_param(&open.params, &open.origins),
        settings: session.effective_settings(open),
        run: open.run.clone(),
        lang: open.lang.clone(),
        workspace: open.workspace.clone().unwrap_or_else(|| machine.workspace_name()),
    };
    Ok((Rc::new(gate), input))
}

/// Returns what the user gave a run beside its params, as the flow sees it.
fn options(began: &OpenRecord) -> Value {
    let Grants { net, no_sandbox, read } = &began.grants;
    json!({
        "allow_net": net, "no_sandbox": no_sandbox, "allow_read": read, "seed": began.seed,
        "budget": began.budget.bounded(),
    })
}
