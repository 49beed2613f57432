//! A flow with what its run needs of this machine and its user.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cpu::ThreadClock;
use crate::error::{Code, Failure, Result};
use crate::host::llm::window;
use crate::journal::lines::OpenRecord;
use crate::lua::api::Context;
use crate::lua::flow::Flow;
use crate::lua::limits::FlowLimits;
use crate::model::budget::Budget;
use crate::model::setting;
use crate::pack::persona::Personas;
use crate::pack::resolve::ResolvedFlow;
use crate::pack::tree::PackTree;
use crate::run::machine::Machine;
use crate::run::models::PinnedModels;

/// How long flows may be loaded that nobody runs, all together.
const LOADING_LIMIT: Duration = Duration::from_secs(10);

/// A flow with what its run needs.
pub struct Session {
    pub flow: Flow,
    pub pinned: Rc<RefCell<PinnedModels>>,
}

/// Loads a flow, for whatever wants to look at it. All that one command looks at have one limit together: a folder may
/// hold any number of flows that never come to their end.
pub fn load(machine: &Machine, located: ResolvedFlow) -> Result<Flow> {
    let so_far = machine.inspection_time.get();
    if so_far >= LOADING_LIMIT {
        let seconds = LOADING_LIMIT.as_secs();
        let message = format!("{} was not looked at: loading the flows before it took {seconds} s", located.source());
        return Err(Failure::new(Code::FlowLimit, message).hint("remove or correct those that take long to load"));
    }
    let (thread, wall) = (ThreadClock::current(), Instant::now());
    let before = thread.spent();
    let loaded = Session::load(machine, located).map(|session| session.flow);
    let computed = thread.spent().zip(before).map(|(now, before)| now.saturating_sub(before));
    machine.inspection_time.set(so_far + computed.unwrap_or_else(|| wall.elapsed()));
    loaded
}

impl Session {
    pub fn load(machine: &Machine, located: ResolvedFlow) -> Result<Session> {
        let layers = machine.layers(&located.tree)?;
        Session::load_with(machine, located, layers)
    }

    /// Loads a flow whose personas and quotes come from these trees, nearest first.
    pub fn load_with(machine: &Machine, located: ResolvedFlow, layers: Vec<PackTree>) -> Result<Session> {
        Session::load_limited(machine, located, layers, FlowLimits::default())
    }

    /// The same, with limits on what the flow computes between two effects, where it asks for none of its own.
    pub fn load_limited(
        machine: &Machine,
        located: ResolvedFlow,
        layers: Vec<PackTree>,
        limits: FlowLimits,
    ) -> Result<Session> {
        let pinned: Rc<RefCell<PinnedModels>> = Rc::default();
        let resolver = Rc::clone(&pinned);
        let context = Context {
            tree: located.tree.clone(),
            personas: Personas::new(layers.clone()),
            layers,
            resolve: Box::new(move |name| resolver.borrow().resolve(name)),
            window: {
                let own = machine.config.models.windows.clone();
                Box::new(move |model| window(&own, model))
            },
            collections: RefCell::default(),
        };
        Ok(Session { flow: Flow::load(located, context, limits)?, pinned })
    }

    /// Returns what a run may use: the tightest of what the flow and the configuration say, unless it is given.
    pub fn budget(&self, machine: &Machine, given: Budget) -> Budget {
        self.flow.manifest.budget.tightened(machine.config.budget).replaced(given)
    }

    /// Returns the settings of a run. One that began before the flow had a setting goes on with its default.
    pub fn effective_settings(&self, open: &OpenRecord) -> Value {
        let mut settings = setting::settle(&self.flow.manifest.settings, &[]).unwrap_or_default();
        settings.extend(open.settings.clone());
        Value::Object(settings)
    }

    /// Returns the flow's settings, as the configuration has them.
    pub fn settings(&self, machine: &Machine) -> Result<serde_json::Map<String, Value>> {
        let manifest = &self.flow.manifest;
        setting::settle(&manifest.settings, &machine.config.settings(&manifest.name)).map_err(|why| {
            let known: Vec<&str> = manifest.settings.keys().map(String::as_str).collect();
            let hint = match known.is_empty() {
                true => format!("{} has no settings: take flows.{} out", manifest.name, manifest.name),
                false => format!("below flows.{}, known are {}", manifest.name, known.join(", ")),
            };
            Failure::new(Code::ConfigInvalid, why).hint(hint)
        })
    }
}
