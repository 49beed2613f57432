//! `nietz mcp`: flows as tools and prompts of the Model Context Protocol, runs as its resources.
//!
//! Both eras of the protocol are spoken. Up to 2025-11-25 a question is a request to the client while the call is open; since
//! 2026-07-28 the call returns that it needs input, and is made again with it. `call` follows a run for one call, `tasks` tells of
//! it to clients that ask by themselves, `tools` lists what can be called, `resources` and `documents` read what is there. `stdio`
//! is a client at standard input and output, `http` several at the loopback.

mod address;
mod call;
mod documents;
mod http;
mod resources;
mod result;
mod standing;
mod stdio;
mod tasks;
mod tools;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelledNotificationParam, GetPromptRequestParams,
    GetPromptResponse, GetTaskParams, GetTaskResult, Implementation, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    RequestId, ServerCapabilities, ServerConfig, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, ServiceExt as _};
use rmcp::{ErrorData, RoleServer, ServerHandler};

use crate::editors::InFolder;
use crate::editors::offer::Offer;
use crate::editors::supervisor::Supervisor;
use crate::error::{Code, Failure, Result};
use crate::host::documents::Store;
use crate::model::redact::Redactor;

pub(crate) use http::HttpListener;

/// What the user says of the server.
pub(crate) struct McpOptions {
    /// How long a call stays open before it tells how to go on.
    pub patience: Duration,
    /// The commands that a client may name where a flow runs one.
    pub allowed: Vec<String>,
    /// Whether a model may answer in the user's place.
    pub model_may_answer: bool,
}

/// A server for one client.
pub(crate) struct McpServer {
    shared: Arc<Shared>,
    calls: Calls,
}

/// The runs that open calls of a client wait for.
#[derive(Default)]
struct Calls(Mutex<HashMap<RequestId, String>>);

struct Shared {
    supervisor: Supervisor,
    offers: Vec<Offer>,
    options: McpOptions,
    documents: Store,
    redactor: Redactor,
    /// The questions of tasks that the person did not want to answer.
    put_off: Mutex<HashSet<String>>,
}

impl McpServer {
    /// `documents` are those of the workspace; what goes out of them is redacted.
    pub(crate) fn new((supervisor, offers): InFolder, options: McpOptions, documents: (Store, Redactor)) -> McpServer {
        let ((documents, redactor), put_off) = (documents, Mutex::default());
        McpServer::with(Arc::new(Shared { supervisor, offers, options, documents, redactor, put_off }))
    }

    fn with(shared: Arc<Shared>) -> McpServer {
        McpServer { shared, calls: Calls::default() }
    }

    /// Serves the client at standard input and output until it leaves.
    ///
    /// # Errors
    ///
    /// `internal` if it speaks no version of the protocol.
    pub(crate) async fn serve_stdio(self) -> Result<()> {
        let failed = |why: String| Failure::new(Code::Internal, format!("the client at standard input: {why}"));
        let running = match self.serve(stdio::stdio()).await {
            Ok(running) => running,
            // One that leaves before it says anything has not failed.
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(failed(error.to_string())),
        };
        running.waiting().await.map(drop).map_err(|error| failed(error.to_string()))
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_prompts().enable_resources();
        let capabilities = capabilities.enable_resources_list_changed().enable_tasks().build();
        let mut info = ServerConfig::new(capabilities).with_instructions(tools::INSTRUCTIONS);
        info.server_info = Implementation::new("nietz", env!("CARGO_PKG_VERSION"));
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> std::result::Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::list(&self.shared)))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> std::result::Result<CallToolResponse, ErrorData> {
        let (id, cancelled) = (context.id.clone(), context.ct.clone());
        let result = call::call(&self.shared, &self.calls, request, context).await;
        // Of a call that was cancelled, `on_cancelled` wants to know the run.
        if !cancelled.is_cancelled() {
            self.calls.lock().remove(&id);
        }
        result
    }

    /// The client does not want the run of a call any more. It stops as by Ctrl-C, and can be resumed. A client that only leaves
    /// says nothing, and its runs go on.
    async fn on_cancelled(&self, notification: CancelledNotificationParam, _: NotificationContext<RoleServer>) {
        let run = notification.request_id.and_then(|id| self.calls.lock().remove(&id));
        if let Some(process) = run.and_then(|run| self.shared.supervisor.process(&run)) {
            process.interrupt();
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> std::result::Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(tools::prompts(&self.shared)))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> std::result::Result<GetPromptResponse, ErrorData> {
        tools::prompt(&self.shared, &request).map(GetPromptResponse::from)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> std::result::Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(
            resources::list(&self.shared).map_err(|failure| address::refused(&failure))?,
        ))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> std::result::Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> std::result::Result<ReadResourceResponse, ErrorData> {
        resources::read(&self.shared, &request.uri).await.map(ReadResourceResponse::from)
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> std::result::Result<GetTaskResult, ErrorData> {
        let has_forms = call::has_forms(context.client_capabilities().as_ref());
        tasks::get(&self.shared, &request.task_id, has_forms).await.map(GetTaskResult::new)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> std::result::Result<(), ErrorData> {
        tasks::update(&self.shared, &request.task_id, request.input_responses).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> std::result::Result<(), ErrorData> {
        tasks::cancel(&self.shared, &request.task_id)
    }
}

impl Calls {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<RequestId, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Returns the flow whose tool or prompt has this name.
    fn offer(&self, name: &str) -> Option<&Offer> {
        let name = name.strip_prefix(tools::PREFIX)?;
        self.offers.iter().find(|offer| offer.name == name)
    }
}
