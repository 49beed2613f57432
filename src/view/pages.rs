//! The list of runs, and the questions of a run.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::View;
use crate::engine::run_records::Origin;
use crate::engine::runs::ListedRun;
use crate::error::Result;
use crate::model::budget;
use crate::model::question::{Question, QuestionKind};
use crate::model::text::{clean, line};
use crate::report::{self, RunHistory};

const LIST: &str = include_str!("templates/list.html");
const QUESTIONS: &str = include_str!("templates/questions.html");
/// The most runs that a list shows.
const MOST: usize = 200;
/// How much of a time tells the minute.
const MINUTE: usize = "2026-01-09T10:30".len();
/// The statuses that a list can be narrowed to.
const STATUSES: [&str; 7] = ["done", "failed", "waiting", "interrupted", "stopped", "running", "broken"];

/// To which runs a list is narrowed.
#[derive(Debug, Default)]
pub(super) struct Filter {
    pub text: String,
    pub flow: String,
    pub status: String,
    pub tag: String,
    /// The least cost, in US dollars.
    pub cost: String,
}

impl Filter {
    fn takes(&self, run: &ListedRun) -> bool {
        let summary = &run.summary;
        let text = self.text.trim().to_lowercase();
        let least: Option<f64> = self.cost.trim().parse().ok();
        (self.flow.is_empty() || self.flow == summary.flow)
            && (self.status.is_empty() || self.status == run.status())
            && (self.tag.is_empty() || run.tags.contains(&self.tag))
            && least.is_none_or(|least| summary.cost.is_some_and(|cost| cost >= least))
            && [&run.id, &summary.topic, &summary.flow].iter().any(|shown| shown.to_lowercase().contains(&text))
    }
}

/// Returns the page with the list of runs, newest first.
pub(super) fn list(view: &View, filter: &Filter) -> Result<String> {
    let w = report::words(&view.options.lang)?;
    let all = view.runs.list()?;
    let mut flows: Vec<&str> =
        all.iter().map(|run| run.summary.flow.as_str()).filter(|flow| !flow.is_empty()).collect();
    flows.sort_unstable();
    flows.dedup();
    let tags: BTreeSet<&String> = all.iter().flat_map(|run| &run.tags).collect();
    let meant: Vec<&ListedRun> = all.iter().rev().filter(|run| filter.takes(run)).collect();
    let rows: Vec<Value> = meant.iter().take(MOST).map(|run| row(run)).collect();
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'self'",
        report::digest(report::STYLE)
    );
    let values = json!({
        "w": w, "policy": policy, "style": report::STYLE, "rows": rows, "left_out": meant.len().saturating_sub(MOST),
        "flows": flows, "statuses": STATUSES, "tags": tags,
        "filter": {
            "text": filter.text, "flow": filter.flow, "status": filter.status, "tag": filter.tag, "cost": filter.cost,
        },
    });
    report::render("list.html", LIST, &values)
}

fn row(run: &ListedRun) -> Value {
    let summary = &run.summary;
    let cost = summary.cost.filter(|cost| *cost > 0.0).map(budget::dollars_with_sign);
    json!({
        "id": line(&run.id), "flow": line(&summary.flow), "status": run.status(),
        "started": summary.started.get(..MINUTE).unwrap_or(&summary.started).replace('T', " "),
        "topic": line(&summary.topic), "calls": summary.calls, "cost": cost, "parent": summary.parent.as_deref().map(line),
        "tags": run.tags.iter().map(|tag| line(tag)).collect::<Vec<_>>(),
        "foreign": run.origin != Origin::Own, "why": run.failure.as_ref().map(|failure| line(&failure.message).into_owned()),
    })
}

/// Returns the questions of a run that wait, each with a form where it can be answered here.
pub(super) fn questions(view: &View, run: &str, history: &RunHistory, busy: bool) -> Result<String> {
    let open = history.open_questions();
    if open.is_empty() {
        return Ok(String::new());
    }
    let is_own = view.runs.one(run)?.is_some_and(|run| run.origin == Origin::Own);
    let answers = view.runs.answers(run);
    let shown = open.iter().filter_map(|effect| {
        let question = question(effect.request.clone(), &effect.key)?;
        let kept = answers.find(&effect.key).map(|found| found.is_some());
        let options: Vec<Value> = match question.kind {
            QuestionKind::Confirm => ["yes", "no"].iter().map(|word| json!({ "value": word, "label": word })).collect(),
            QuestionKind::Ask => Vec::new(),
            QuestionKind::Choose => {
                let option = |value: &str, label: &str| json!({ "value": clean(value), "label": line(label) });
                question.options.iter().map(|given| option(&given.value, &given.label)).collect()
            }
        };
        Some(kept.map(|kept| {
            json!({
                "key": effect.key, "line": effect.line, "prompt": clean(&question.prompt), "options": options,
                "kept": kept,
            })
        }))
    });
    let values = json!({
        "w": report::words(&history.lang)?, "run": run, "busy": busy, "questions": shown.collect::<Result<Vec<_>>>()?,
        "can_answer": is_own && !view.options.read_only,
    });
    report::render("questions.html", QUESTIONS, &values)
}

/// Returns a question as its journal has recorded it.
pub(super) fn question(request: Value, key: &str) -> Option<Question> {
    let question: Question = serde_json::from_value(request).ok()?;
    Some(Question { effect: Some(key.to_owned()), ..question })
}
