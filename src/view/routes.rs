//! What the server answers. No request but that of an answer changes anything.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use futures_util::stream;
use tokio::sync::oneshot;

use super::guard::guard;
use super::pages::{self, Filter};
use super::{PageJob, View};
use crate::engine::run_records::Origin;
use crate::error::{Code, Failure, Result};
use crate::host::ui::mailbox;
use crate::report::{self, LivePage, LiveRun, RunHistory};

/// How long nothing is looked for after nothing was found.
const PAUSE: Duration = Duration::from_millis(100);
/// How many pauses there are between two looks at whether a process is at the run.
const LOOKS: u32 = 10;
/// The largest answer, in bytes.
const LARGEST: usize = 1 << 20;
/// The most changes that are sent at once.
const AT_ONCE: usize = 200;

type Shared = State<Arc<View>>;

pub(super) fn router(view: Arc<View>) -> Router {
    Router::new()
        .route("/{token}/", get(list))
        .route("/{token}/run/{run}", get(page))
        .route("/{token}/run/{run}/events", get(events))
        .route("/{token}/run/{run}/answer", post(answer))
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&view), guard))
        .with_state(view)
}

fn failed(failure: &Failure) -> Response {
    let status = match failure.code {
        Code::RunNotFound | Code::Usage => StatusCode::NOT_FOUND,
        Code::AnswerInvalid => StatusCode::UNPROCESSABLE_ENTITY,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, crate::model::text::clean(&failure.message) + "\n").into_response()
}

/// Returns the values of a query or of a form.
fn fields(text: &str) -> Vec<(String, String)> {
    let url = reqwest::Url::parse(&format!("http://form/?{}", text.replace('#', "%23")));
    url.map(|url| url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
        .unwrap_or_default()
}

fn field(fields: &[(String, String)], wanted: &str) -> String {
    fields.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone()).unwrap_or_default()
}

async fn list(State(view): Shared, uri: Uri) -> Response {
    let given = fields(uri.query().unwrap_or_default());
    let [text, flow, status, tag, cost] = ["q", "flow", "status", "tag", "cost"].map(|name| field(&given, name));
    match pages::list(&view, &Filter { text, flow, status, tag, cost }) {
        Ok(page) => Html(page).into_response(),
        Err(failure) => failed(&failure),
    }
}

async fn page(State(view): Shared, Path((_, run)): Path<(String, String)>) -> Response {
    match made(&view, &run).await {
        Ok(page) => Html(page).into_response(),
        Err(failure) => failed(&failure),
    }
}

async fn made(view: &View, run: &str) -> Result<String> {
    let run = view.runs.named(run)?;
    let history = RunHistory::read(&view.runs.journal(&run)?)?;
    let busy = view.runs.is_busy(&run)?;
    let questions = pages::questions(view, &run, &history, busy)?;
    let live = LivePage { events: format!("{run}/events?after={}", history.lines), questions };
    let (reply, page) = oneshot::channel();
    let gone = || Failure::new(Code::Internal, "nobody makes pages any more");
    view.jobs.send(PageJob { run, live, busy, reply }).map_err(|_| gone())?;
    page.await.map_err(|_| gone())?
}

/// What one page is told of its run.
struct Followed {
    view: Arc<View>,
    run: String,
    live: LiveRun,
    after: u64,
    /// What is to be sent.
    due: VecDeque<Event>,
    /// What was sent last.
    questions: String,
    status: String,
    pauses: u32,
    busy: bool,
}

async fn events(State(view): Shared, Path((_, run)): Path<(String, String)>, uri: Uri) -> Response {
    let run = match view.runs.named(&run) {
        Ok(run) => run,
        Err(failure) => return failed(&failure),
    };
    let after = field(&fields(uri.query().unwrap_or_default()), "after").parse().unwrap_or_default();
    let live = match view.runs.journal(&run) {
        Ok(journal) => LiveRun::new(&journal),
        Err(failure) => return failed(&failure),
    };
    let (questions, status) = (String::new(), String::new());
    let followed = Followed { view, run, live, after, due: VecDeque::new(), questions, status, pauses: 0, busy: false };
    let events = stream::unfold(followed, |mut followed| async move {
        loop {
            if let Some(event) = followed.due.pop_front() {
                return Some((Ok::<_, Infallible>(event), followed));
            }
            match followed.look() {
                Ok(true) => {}
                Ok(false) => {
                    followed.pauses += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                // The journal is gone, or is not what it was: there is nothing more to follow.
                Err(_) => return None,
            }
        }
    });
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

impl Followed {
    /// Looks for what is new. Returns whether anything is.
    fn look(&mut self) -> Result<bool> {
        // A copy of a journal that is elsewhere gets what is new.
        self.view.runs.journal(&self.run)?;
        let changes = self.live.more(self.after)?;
        if changes.is_empty() && !self.pauses.is_multiple_of(LOOKS) {
            return Ok(false);
        }
        self.busy = self.view.runs.is_busy(&self.run)?;
        let history = self.live.history();
        let w = report::words(&history.lang)?;
        self.due.extend(changes.chunks(AT_ONCE).map(|changes| event("rows", &changes)));
        let questions = pages::questions(&self.view, &self.run, history, self.busy)?;
        if self.questions != questions {
            self.due.push_back(event("questions", &questions));
            self.questions = questions;
        }
        let name = if self.busy { "running" } else { &history.status };
        if self.status != name {
            self.status = name.to_owned();
            let text = w[name].as_str().unwrap_or(name);
            self.due.push_back(event("status", &serde_json::json!({ "text": text, "name": name })));
        }
        self.pauses += 1;
        Ok(!self.due.is_empty())
    }
}

fn event(name: &str, data: &impl serde::Serialize) -> Event {
    // JSON text has no line end, which would end the event.
    Event::default().event(name).data(serde_json::to_string(data).unwrap_or_default())
}

async fn answer(State(view): Shared, Path((_, run)): Path<(String, String)>, body: Body) -> Response {
    let Ok(body) = to_bytes(body, LARGEST).await else {
        return (StatusCode::PAYLOAD_TOO_LARGE, "the answer is too long\n").into_response();
    };
    let given = fields(&String::from_utf8_lossy(&body));
    match take(&view, &run, &field(&given, "key"), &field(&given, "text")) {
        Ok(run) => {
            let mut response = Redirect::to(&format!("../{run}#questions")).into_response();
            response.headers_mut().remove(header::REFERRER_POLICY);
            response
        }
        Err(failure) => failed(&failure),
    }
}

/// Keeps an answer to an open question of one of the user's own runs.
fn take(view: &View, run: &str, key: &str, text: &str) -> Result<String> {
    let run = view.runs.named(run)?;
    if !view.runs.one(&run)?.is_some_and(|run| run.origin == Origin::Own) {
        return Err(Failure::new(Code::RunForeign, "this run was begun by somebody else: it is not answered here"));
    }
    let history = RunHistory::read(&view.runs.journal(&run)?)?;
    let open = history.open_questions();
    let question =
        open.iter().find(|effect| effect.key == key).and_then(|effect| pages::question(effect.request.clone(), key));
    let question = question.ok_or_else(|| Failure::new(Code::AnswerInvalid, "this question is not open any more"))?;
    mailbox::keep(&*view.runs.answers(&run), &question, text, None)?;
    Ok(run)
}
