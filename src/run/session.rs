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

/// How long one process may load flows only to look at them, all together.
const LOADING_LIMIT: Duration = Duration::from_secs(10);

/// A flow with what its run needs.
pub struct Session {
    pub flow: Flow,
    pub pinned: Rc<RefCell<PinnedModels>>,
}

/// Loads a flow only to look at it. All such loads of one process share a time limit, because a folder may hold any
/// number of flows that never finish loading.
///
/// # Errors
///
/// `flow-limit` if the shared time is used up, and those of [`Flow::load`].
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
    /// Loads a flow with the settings that hold for it.
    ///
    /// # Errors
    ///
    /// Those of its source, its manifest and its settings.
    pub fn load(machine: &Machine, located: ResolvedFlow) -> Result<Session> {
        let layers = machine.layers(&located.tree)?;
        Session::load_with(machine, located, layers)
    }

    /// Loads a flow whose personas and quotes come from these trees, nearest first.
    ///
    /// # Errors
    ///
    /// Those of [`Flow::load`].
    pub fn load_with(machine: &Machine, located: ResolvedFlow, layers: Vec<PackTree>) -> Result<Session> {
        Session::load_limited(machine, located, layers, FlowLimits::default())
    }

    /// Like [`Session::load_with`], with the limits of a flow that asks for none of its own.
    ///
    /// # Errors
    ///
    /// Those of [`Flow::load`].
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
                let configured = machine.config.models.windows.clone();
                Box::new(move |model| window(&configured, model))
            },
            collections: RefCell::default(),
        };
        Ok(Session { flow: Flow::load(located, context, limits)?, pinned })
    }

    /// Returns the budget of a run: the limits in `given`, else the tighter ones of the flow and the configuration.
    pub fn budget(&self, machine: &Machine, given: Budget) -> Budget {
        self.flow.manifest.budget.tightened(machine.config.budget).replaced(given)
    }

    /// Returns the settings of a run. A setting that the flow declared only after the run began has its default.
    pub fn effective_settings(&self, open: &OpenRecord) -> Value {
        let mut settings = setting::settle(&self.flow.manifest.settings, &[]).unwrap_or_default();
        settings.extend(open.settings.clone());
        Value::Object(settings)
    }

    /// Returns the flow's settings with the values of the configuration.
    ///
    /// # Errors
    ///
    /// `config-invalid` if the configuration sets a setting that the flow does not have, or to a wrong value.
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
