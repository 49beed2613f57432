//! All local models behind one adapter: each model gets an engine of its own at its first call.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use futures_util::future::{FutureExt, LocalBoxFuture};

use super::adapter::{EngineSettings, LocalModelAdapter};
use super::catalogue;
use super::weights::Progress;
use crate::error::Result;
use crate::host::{CallEvent, Models};
use crate::model::chat::{ChatReply, ChatRequest};

/// Answers calls to `local/NAME` for every model of the catalogue.
pub(crate) struct AllLocalModels {
    settings: EngineSettings,
    on_progress: Rc<dyn Fn(Progress)>,
    running: RefCell<BTreeMap<String, Rc<LocalModelAdapter>>>,
}

impl AllLocalModels {
    /// Starts no engine yet; `on_progress` gets the progress of fetching weights.
    pub(crate) fn new(settings: EngineSettings, on_progress: impl Fn(Progress) + 'static) -> AllLocalModels {
        AllLocalModels { settings, on_progress: Rc::new(on_progress), running: RefCell::default() }
    }

    fn get(&self, name: &str) -> Result<Rc<LocalModelAdapter>> {
        if let Some(adapter) = self.running.borrow().get(name) {
            return Ok(Rc::clone(adapter));
        }
        let on_progress = Rc::clone(&self.on_progress);
        let model = catalogue::find(name)?;
        let adapter =
            Rc::new(LocalModelAdapter::new(model, self.settings.clone(), move |progress| on_progress(progress)));
        self.running.borrow_mut().insert(name.to_owned(), Rc::clone(&adapter));
        Ok(adapter)
    }
}

impl Models for AllLocalModels {
    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        report: &'a mut dyn FnMut(CallEvent<'_>),
    ) -> LocalBoxFuture<'a, Result<ChatReply>> {
        async move {
            let name = request.model.strip_prefix("local/").unwrap_or(&request.model);
            self.get(name)?.chat(request, report).await
        }
        .boxed_local()
    }
}
