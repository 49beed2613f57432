//! All local models behind one adapter: each model gets an engine of its own at its first call.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use futures_util::future::{FutureExt, LocalBoxFuture};

use super::adapter::LocalModelAdapter;
use super::local_model::LocalModel;
use super::server::adapter::ServedLocalModel;
use super::server::choice::{Engine, Server};
use super::settings::EngineSettings;
use super::weights::Progress;
use crate::error::{Code, Result};
use crate::host::{CallEvent, Models};
use crate::model::chat::{ChatReply, ChatRequest};

/// Answers calls to `local/NAME` for every model of the catalogue, and for files of weights.
pub(crate) struct AllLocalModels {
    settings: EngineSettings,
    on_progress: Rc<dyn Fn(Progress)>,
    built_in: RefCell<BTreeMap<String, Rc<LocalModelAdapter>>>,
    served: RefCell<BTreeMap<String, Rc<ServedLocalModel>>>,
    /// The models that the server could not run, and the built-in engine runs in its place.
    given_up: RefCell<BTreeSet<String>>,
}

impl AllLocalModels {
    /// Starts no engine yet; `on_progress` gets the progress of fetching weights.
    pub(crate) fn new(settings: EngineSettings, on_progress: impl Fn(Progress) + 'static) -> AllLocalModels {
        AllLocalModels {
            settings,
            on_progress: Rc::new(on_progress),
            built_in: RefCell::default(),
            served: RefCell::default(),
            given_up: RefCell::default(),
        }
    }

    fn built_in(&self, model: LocalModel) -> Result<Rc<LocalModelAdapter>> {
        if let Some(adapter) = self.built_in.borrow().get(model.name()) {
            return Ok(Rc::clone(adapter));
        }
        model.check_built_in()?;
        let name = model.name().to_owned();
        let on_progress = Rc::clone(&self.on_progress);
        let adapter =
            Rc::new(LocalModelAdapter::new(model, self.settings.clone(), move |progress| on_progress(progress)));
        self.built_in.borrow_mut().insert(name, Rc::clone(&adapter));
        Ok(adapter)
    }

    fn served(&self, model: &LocalModel, server: &Server) -> Rc<ServedLocalModel> {
        let make = || Rc::new(ServedLocalModel::new(model.clone(), self.settings.clone(), server.clone()));
        Rc::clone(self.served.borrow_mut().entry(model.name().to_owned()).or_insert_with(make))
    }

    async fn call(&self, request: &ChatRequest, report: &mut dyn FnMut(CallEvent<'_>)) -> Result<ChatReply> {
        let model = LocalModel::of(request.model.strip_prefix("local/").unwrap_or(&request.model))?;
        let has_given_up = self.given_up.borrow().contains(model.name());
        if let Engine::Server(server) = &self.settings.engine
            && !has_given_up
        {
            let served = self.served(&model, server);
            match served.start(&*self.on_progress, report).await {
                Ok(()) => return served.chat(request, report).await,
                Err(failure)
                    if server.wanted || failure.code != Code::ModelBroken || model.check_built_in().is_err() =>
                {
                    return Err(failure);
                }
                Err(failure) => {
                    let log = failure.details.first().and_then(|log| log.lines().last()).unwrap_or_default();
                    report(CallEvent::Notice(&format!(
                        "{} could not run local/{}, so the built-in engine answers: {}; {log}",
                        server.program.display(),
                        model.name(),
                        failure.message,
                    )));
                    self.given_up.borrow_mut().insert(model.name().to_owned());
                }
            }
        }
        self.built_in(model)?.chat(request, report).await
    }
}

impl Models for AllLocalModels {
    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        report: &'a mut dyn FnMut(CallEvent<'_>),
    ) -> LocalBoxFuture<'a, Result<ChatReply>> {
        self.call(request, report).boxed_local()
    }
}
