//! The models of a run: the client for all of them, and the names that the run was begun with.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::error::{Code, Failure, Result, nearest};
use crate::host::FrontEnd;
#[cfg(feature = "local")]
use crate::host::llm::local::server::choice::{Engine, EngineChoice};
#[cfg(feature = "local")]
use crate::host::llm::without_keys;
use crate::host::llm::{Client, ClientSettings};
use crate::model::choice::{ModelChoice, RunEfforts};
#[cfg(feature = "local")]
use crate::model::event::Event;
use crate::model::permission::Permission;
use crate::model::text::excerpt;
use crate::run::machine::Machine;

/// The models that a run was begun with. Filled when they are known, read by flows.
#[derive(Default)]
pub struct PinnedModels {
    pub default: Option<Result<String>>,
    pub aliases: BTreeMap<String, String>,
    pub efforts: RunEfforts,
}

impl PinnedModels {
    /// Returns the model that a flow names, as the run has pinned it, with its effort; the run's default without a name.
    ///
    /// # Errors
    ///
    /// `model-unknown` for a name that is neither an alias nor `provider/model`; without a name, why there is no default.
    pub fn resolve(&self, name: Option<&str>) -> Result<ModelChoice> {
        let model = match name {
            None => self.default.clone().unwrap_or_else(|| Err(Permission::Llm.undeclared_failure())),
            Some(name) => match self.aliases.get(name) {
                Some(model) => Ok(model.clone()),
                None if name.contains('/') => Ok(name.to_owned()),
                None => {
                    let shown = excerpt(name);
                    let failure =
                        Failure::new(Code::ModelUnknown, format!("`{shown}` is neither `provider/model` nor an alias"));
                    Err(match nearest(name, self.aliases.keys().map(String::as_str)) {
                        Some(near) => failure.hint(format!("did you mean `{near}`?")),
                        None => failure.hint("aliases stand in the configuration, under `models.aliases`"),
                    })
                }
            },
        };
        Ok(ModelChoice { model: model?, effort: self.efforts.of(name) })
    }
}

/// The front end of a run, once it is open. Models are connected before that, and report to it later.
pub(crate) type FrontEndSlot = Rc<std::cell::OnceCell<Rc<dyn FrontEnd>>>;

/// Returns the client for all models, which shows the download of a local model on `listener`.
///
/// # Errors
///
/// Those of [`ClientSettings::from_environment`], [`Machine::clock`] and of choosing an engine for local models.
pub(crate) fn listening_client(machine: &Machine, listener: &FrontEndSlot) -> Result<Client> {
    let config = &machine.config.models;
    let settings = ClientSettings::from_environment(&machine.environment, config)?
        .with_stored_keys(&machine.keys, config)
        .on(machine.today()?);
    let client = Client::new(settings).with_redactor(machine.redactor());
    with_local(machine, client, listener)
}

/// Returns the client for all models.
///
/// # Errors
///
/// Those of [`ClientSettings::from_environment`], [`Machine::clock`] and of choosing an engine for local models.
pub(crate) fn client(machine: &Machine) -> Result<Client> {
    listening_client(machine, &FrontEndSlot::default())
}

/// Returns which engine runs local models, and why.
///
/// # Errors
///
/// Those of [`EngineChoice::new`].
#[cfg(feature = "local")]
pub(crate) fn local_engine(machine: &Machine) -> Result<EngineChoice> {
    EngineChoice::new(&machine.environment, &machine.config.models.local)
}

#[cfg(feature = "local")]
fn with_local(machine: &Machine, client: Client, listener: &FrontEndSlot) -> Result<Client> {
    use crate::host::llm::local::{adapter, all_models::AllLocalModels, catalogue, weights::Progress};
    let Some(program) = &machine.program else { return Ok(client) };
    let choice = local_engine(machine)?;
    if choice.engine == Engine::Off {
        return Ok(client.without_local(format!("local models are switched off: {}", choice.why)));
    }
    let mut settings = adapter::EngineSettings::new(&machine.models_folder(), program);
    settings.environment.clone_from(&machine.environment);
    settings.program_environment = without_keys(&machine.environment, &machine.config.models);
    settings.engine = choice.engine;
    settings.threads = machine.variable("NIETZ_LOCAL_THREADS").and_then(|count| count.parse().ok());
    let listener = Rc::clone(listener);
    let tell = move |progress: Progress| {
        let Some(front) = listener.get() else { return };
        front.show(&match progress {
            Progress::Waiting => {
                Event::Status { text: "another process fetches the local model; waiting for it".to_owned() }
            }
            Progress::Source(place) => Event::Notice { text: format!("fetching the local model, once, from {place}") },
            Progress::Bytes { done, total } => Event::Progress { label: "local model".to_owned(), done, total },
            Progress::Checking => Event::Status { text: "checking the local model's SHA-256".to_owned() },
            Progress::Ready => Event::Status { text: String::new() },
        });
    };
    Ok(client.with_local(Box::new(AllLocalModels::new(settings, tell)), catalogue::default().name.clone()))
}

#[cfg(not(feature = "local"))]
fn with_local(_: &Machine, client: Client, _: &FrontEndSlot) -> Result<Client> {
    Ok(client)
}
