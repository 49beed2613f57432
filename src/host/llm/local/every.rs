//! All local models behind one adapter: each gets an engine of its own when it is first asked.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use futures_util::future::{FutureExt, LocalBoxFuture};

use super::adapter::{LocalModels, Settings};
use super::catalogue;
use super::weights::Progress;
use crate::error::Result;
use crate::host::{CallEvent, Models};
use crate::model::chat::{ChatReply, ChatRequest};

/// Answers calls to `local/NAME` for every model of the catalogue.
pub struct EveryLocal {
    settings: Settings,
    fetched: Rc<dyn Fn(Progress)>,
    running: RefCell<BTreeMap<String, Rc<LocalModels>>>,
}

impl EveryLocal {
    /// `fetched` hears how far a fetch of weights is.
    pub fn new(settings: Settings, fetched: impl Fn(Progress) + 'static) -> EveryLocal {
        EveryLocal { settings, fetched: Rc::new(fetched), running: RefCell::default() }
    }

    fn get(&self, name: &str) -> Result<Rc<LocalModels>> {
        if let Some(models) = self.running.borrow().get(name) {
            return Ok(Rc::clone(models));
        }
        let fetched = Rc::clone(&self.fetched);
        let model = catalogue::find(name)?;
        let models = Rc::new(LocalModels::new(model, self.settings.clone(), move |progress| fetched(progress)));
        self.running.borrow_mut().insert(name.to_owned(), Rc::clone(&models));
        Ok(models)
    }
}

impl Models for EveryLocal {
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
