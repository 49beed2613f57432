//! Calls of one model to its server, which is started for the first of them and again where it has ended.

use std::cell::RefCell;
use std::time::Duration;

use tokio::sync::Mutex;

use super::super::attempts;
use super::super::gguf::Gguf;
use super::super::grammar::{self, ReplyForm};
use super::super::local_model::LocalModel;
use super::super::process::free_cores;
use super::super::settings::EngineSettings;
use super::super::transformer::CONTEXT;
use super::super::weights::Progress;
use super::choice::Server;
use super::process::{Load, ServerProcess};
use super::wire::{Completion, Terms};
use crate::error::{Code, Failure, Result};
use crate::host::CallEvent;
use crate::model::chat::{ChatReply, ChatRequest, FinishReason, Usage};

/// How often a call looks whether the server still works.
const SIGN: Duration = Duration::from_millis(250);

/// A model that an installed server runs.
pub(in super::super) struct ServedLocalModel {
    model: LocalModel,
    settings: EngineSettings,
    server: Server,
    /// The process and the most tokens of a conversation. It takes the calls one after the other by itself.
    process: Mutex<Option<(ServerProcess, usize)>>,
}

impl ServedLocalModel {
    /// Starts nothing yet.
    pub(in super::super) fn new(model: LocalModel, settings: EngineSettings, server: Server) -> ServedLocalModel {
        ServedLocalModel { model, settings, server, process: Mutex::default() }
    }

    /// Makes sure that the server runs, with the weights loaded, which are fetched where that is due.
    ///
    /// # Errors
    ///
    /// Those of fetching, and `model-broken` if the server does not start.
    pub(in super::super) async fn start(
        &self,
        on_progress: &dyn Fn(Progress),
        report: &mut dyn FnMut(CallEvent<'_>),
    ) -> Result<()> {
        let mut process = self.process.lock().await;
        if let Some((running, _)) = process.as_mut()
            && running.runs()
        {
            return Ok(());
        }
        *process = None;
        let weights = self.model.weights(&self.settings, on_progress, report).await?;
        let trained = Gguf::open(&weights).and_then(|file| file.context());
        // What cannot be read here, the server says better.
        let context = trained.map_or(CONTEXT, |trained| trained.min(CONTEXT));
        let threads = match self.settings.threads {
            Some(threads) => threads,
            None => free_cores().await,
        };
        let load = Load { weights: &weights, context, threads };
        *process = Some((ServerProcess::start(&self.settings, &self.server, &load, report).await?, context));
        Ok(())
    }

    /// Answers a call. [`start`](Self::start) comes first.
    pub(in super::super) async fn chat(
        &self,
        request: &ChatRequest,
        report: &mut dyn FnMut(CallEvent<'_>),
    ) -> Result<ChatReply> {
        attempts::refuse_options(request)?;
        let report = RefCell::new(report);
        let answer = self.answer(request, &report);
        let mut answer = std::pin::pin!(answer);
        loop {
            match tokio::time::timeout(SIGN, answer.as_mut()).await {
                Ok(outcome) => return self.explained(outcome).await,
                // Reading a prompt is no silence, but a server that does nothing is.
                Err(_) if self.works().await => (report.borrow_mut())(CallEvent::Alive),
                Err(_) => {}
            }
        }
    }

    async fn works(&self) -> bool {
        // A call holds the lock no longer than it takes to borrow the address.
        self.process.lock().await.as_ref().is_some_and(|(process, _)| process.has_computed())
    }

    /// Says why the server ended, if that is why a call failed.
    async fn explained(&self, outcome: Result<ChatReply>) -> Result<ChatReply> {
        let Err(failure) = outcome else { return outcome };
        if failure.code != Code::ModelBroken {
            return Err(failure);
        }
        let mut process = self.process.lock().await;
        let ended = match process.as_mut() {
            Some((process, _)) => process.ended().await,
            None => None,
        };
        if ended.is_some() {
            *process = None;
        }
        Err(ended.unwrap_or(failure))
    }

    async fn answer(
        &self,
        request: &ChatRequest,
        report: &RefCell<&mut dyn FnMut(CallEvent<'_>)>,
    ) -> Result<ChatReply> {
        let (wire, context) = match self.process.lock().await.as_ref() {
            Some((process, context)) => (process.wire.clone(), *context),
            None => return Err(Failure::new(Code::ModelBroken, "llama-server is not running")),
        };
        let prompt = wire.prompt(request).await?;
        let max_tokens = attempts::room(request, self.model.name(), prompt.len(), context)?;
        let mut usage = Usage { input: prompt.len() as u64, ..Usage::default() };
        let seed = request.seed.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0);
        let mut problem: Option<String> = None;
        for (nth, bounds) in attempts::bounds(request, max_tokens).into_iter().enumerate() {
            if let Some(problem) = &problem {
                (report.borrow_mut())(CallEvent::Retry { attempt: 2, reason: problem, wait_ms: 0 });
            }
            let form = grammar::form(request, bounds);
            // A possible call is not shown to the reader.
            let mut seen = String::new();
            let mut on_text = |piece: &str| {
                seen.push_str(piece);
                let is_call = !request.tools.is_empty() && seen.starts_with('{');
                (report.borrow_mut())(if is_call { CallEvent::Alive } else { CallEvent::Delta(piece) });
            };
            let terms = Terms { max_tokens, seed: seed.wrapping_add(nth as u64), form };
            let is_form = matches!(terms.form, Some(ReplyForm::Value(_)));
            let done = match wire.complete(request, &prompt, &terms, &mut on_text).await {
                // Its grammars know less of schemas than the built-in engine's do: then the words of the prompt have to do.
                Err(failure) if failure.code == Code::RequestInvalid && is_form => {
                    let terms = Terms { form: Some(ReplyForm::Value(serde_json::json!({}))), ..terms };
                    wire.complete(request, &prompt, &terms, &mut on_text).await?
                }
                done => done?,
            };
            usage.output += done.tokens;
            usage.cached = usage.cached.max(done.cached);
            if let Some(call) = attempts::tool_call(request, &done.text, done.finish) {
                let done = Completion { text: String::new(), finish: FinishReason::ToolCalls, ..done };
                return Ok(ChatReply {
                    tool_calls: vec![call],
                    ..attempts::reply(self.model.name(), done.text, done.finish, usage)
                });
            }
            problem = attempts::problem(request, &done.text, done.finish, max_tokens);
            if problem.is_none() {
                return Ok(attempts::reply(self.model.name(), done.text, done.finish, usage));
            }
        }
        Err(attempts::gave_up(self.model.name(), problem))
    }
}
