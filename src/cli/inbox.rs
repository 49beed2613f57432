//! `nietz inbox`, `nietz answer` and `nietz cancel`: what waits for people, and what they say.

use clap::Args;
use serde_json::{Value, json};

use crate::cli::output;
use crate::engine::run_records::Origin;
use crate::engine::runs::ListedRun;
use crate::error::{Code, Exit, Failure, Result, nearest};
use crate::host::ui::mailbox;
use crate::model::question::{Question, QuestionKind};
use crate::model::text::{excerpt, line};
use crate::report::RunHistory;
use crate::run::machine::Machine;

/// List what waits for an answer: the run, its flow, since when, the question and its options
#[derive(Args)]
pub(super) struct InboxArgs {
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

/// Answer a question of a run that waits, or is asking now: from any machine that has the store
#[derive(Args)]
pub(super) struct AnswerArgs {
    /// The run's id, a part of it that only one has, or `latest`
    run: String,
    /// The question's id, where several wait, and the answer: as it is typed at the terminal
    #[arg(required = true, num_args = 1..=2, value_names = ["ID", "VALUE"])]
    words: Vec<String>,
}

/// Cancel a run of the store, and those that it began: whoever is at it stops
#[derive(Args)]
pub(super) struct CancelArgs {
    /// The run's id, a part of it that only one has, or `latest`
    run: String,
}

/// A question that waits.
struct Open {
    run: String,
    flow: String,
    status: String,
    since: Option<String>,
    question: Option<Question>,
    /// Why it waits, where that is no question.
    why: Option<String>,
}

pub(super) fn inbox(machine: &Machine, args: &InboxArgs) -> Result<Exit> {
    let open = waiting(machine)?;
    if open.is_empty() && !args.json {
        output::line("nothing waits for an answer")?;
        return Ok(Exit::Done);
    }
    for it in &open {
        let (id, prompt, kind) = match &it.question {
            Some(question) => (question.id.as_str(), question.prompt.as_str(), Some(question.kind)),
            None => ("", it.why.as_deref().unwrap_or_default(), None),
        };
        let options: Vec<&str> = match (&it.question, kind) {
            (Some(_), Some(QuestionKind::Confirm)) => vec!["yes", "no"],
            (Some(question), Some(QuestionKind::Choose)) => {
                question.options.iter().map(|option| option.value.as_str()).collect()
            }
            _ => Vec::new(),
        };
        if args.json {
            output::json(&json!({
                "run": it.run, "flow": it.flow, "status": it.status, "since": it.since, "id": id, "question": prompt,
                "options": options, "key": it.question.as_ref().and_then(|question| question.effect.clone()),
            }))?;
            continue;
        }
        let since = it.since.as_deref().map(|since| format!(", since {}", since.replace('T', " "))).unwrap_or_default();
        output::line(format!("{} ({}): {}{since}", line(&it.run), line(&it.flow), it.status))?;
        let asked = if id.is_empty() { String::new() } else { format!("[{}] ", line(id)) };
        // Why a run waits is nietz's own sentence, and says what to do.
        let shown = if it.question.is_some() { excerpt(prompt) } else { line(prompt).into_owned() };
        output::line(format!("  {asked}{shown}"))?;
        if !options.is_empty() {
            output::line(format!("  {}", options.iter().map(|option| line(option)).collect::<Vec<_>>().join(" | ")))?;
        }
    }
    Ok(Exit::Done)
}

/// Returns the open questions of all runs that wait, or that a process is at and asks.
fn waiting(machine: &Machine) -> Result<Vec<Open>> {
    let runs = machine.runs();
    #[cfg(feature = "postgres")]
    if let Some(server) = machine.team().server() {
        let mut open = Vec::new();
        for run in server.inbox()? {
            let listed: Vec<Value> = serde_json::from_str(&run.questions).unwrap_or_default();
            let about = |question: Option<Question>, why: Option<String>| Open {
                run: run.name.clone(),
                flow: run.flow.clone(),
                status: run.status.clone(),
                since: run.waiting_since.clone(),
                question,
                why,
            };
            if run.status == "stuck" {
                let noted = listed.first().and_then(|why| why["prompt"].as_str()).map(str::to_owned);
                let usual = || "delivered again and again, and no worker came to an end with it".to_owned();
                open.push(about(None, Some(noted.unwrap_or_else(usual))));
                continue;
            }
            for request in listed {
                let key = request["key"].as_str().unwrap_or_default().to_owned();
                let question = if key.is_empty() { None } else { question(request.clone(), &key) };
                let why = question.is_none().then(|| request["prompt"].as_str().unwrap_or_default().to_owned());
                open.push(about(question, why));
            }
        }
        return Ok(open);
    }
    let mut open = Vec::new();
    for run in runs.list()?.into_iter().filter(|run| run.is_alive() && run.origin == Origin::Own) {
        let history = RunHistory::read(&runs.journal(&run.id)?)?;
        let answers = runs.answers(&run.id);
        for effect in history.open_questions() {
            let Some(asked) = question(effect.request.clone(), &effect.key) else { continue };
            let why = answers.find(&effect.key)?.is_some().then(|| "answered; `nietz resume` goes on".to_owned());
            open.push(Open {
                run: run.id.clone(),
                flow: run.summary.flow.clone(),
                status: why.clone().unwrap_or_else(|| run.status().to_owned()),
                since: Some(crate::run::machine::iso(effect.began)),
                question: Some(asked),
                why: None,
            });
        }
    }
    Ok(open)
}

pub(super) fn answer(machine: &Machine, args: &AnswerArgs) -> Result<Exit> {
    let runs = machine.runs();
    let id = runs.find(Some(&args.run))?;
    let run = runs.one(&id)?.ok_or_else(|| Failure::new(Code::RunNotFound, format!("there is no run `{id}` here")))?;
    // On a server, roles say who may answer.
    if run.stored.is_none() && run.origin != Origin::Own {
        return Err(Failure::new(Code::RunForeign, "this run was begun by somebody else: it is not answered here"));
    }
    let history = RunHistory::read(&runs.journal(&id)?)?;
    let open: Vec<Question> =
        history.open_questions().iter().filter_map(|effect| question(effect.request.clone(), &effect.key)).collect();
    let (wanted, value) = match args.words.as_slice() {
        [value] => (None, value),
        [id, value, ..] => (Some(id.as_str()), value),
        [] => return Err(Failure::new(Code::Usage, "which answer?")),
    };
    let asked = meant(&id, &open, wanted)?;
    mailbox::keep(&*runs.answers(&id), asked, value, None)?;
    let told = match &run {
        ListedRun { stored: None, busy: false, .. } => format!("kept for {id}: nietz resume {id}"),
        ListedRun { stored: None, busy: true, .. } => format!("{id} takes it"),
        ListedRun { stored: Some(_), .. } => format!("{id} goes on with it"),
    };
    output::line(told)?;
    Ok(Exit::Done)
}

/// Returns the open question that is meant.
fn meant<'q>(run: &str, open: &'q [Question], wanted: Option<&str>) -> Result<&'q Question> {
    let none = |message: String| Failure::new(Code::AnswerInvalid, message).hint("`nietz inbox` lists what is asked");
    match (open, wanted) {
        ([], _) => Err(none(format!("the run {run} asks nothing"))),
        ([one], None) => Ok(one),
        (_, None) => {
            Err(none(format!("the run {run} asks {} things: say which: nietz answer {run} ID VALUE", open.len())))
        }
        (_, Some(wanted)) => open
            .iter()
            .find(|one| {
                one.id == wanted || one.effect.as_deref().is_some_and(|key| wanted.len() > 3 && key.starts_with(wanted))
            })
            .ok_or_else(|| {
                let failure = none(format!("the run {run} does not ask `{}` now", excerpt(wanted)));
                match nearest(wanted, open.iter().map(|one| one.id.as_str())) {
                    Some(near) => failure.hint(format!("did you mean `{near}`?")),
                    None => failure,
                }
            }),
    }
}

fn question(mut request: Value, key: &str) -> Option<Question> {
    request.as_object_mut()?.shift_remove("key");
    let question: Question = serde_json::from_value(request).ok()?;
    Some(Question { effect: Some(key.to_owned()), ..question })
}

pub(super) fn cancel(machine: &Machine, args: &CancelArgs) -> Result<Exit> {
    #[cfg(not(feature = "postgres"))]
    {
        let _ = (machine, &args.run);
        return Err(Failure::new(Code::Usage, "a run in files is ended where it runs: Ctrl-C, or SIGTERM"));
    }
    #[cfg(feature = "postgres")]
    {
        let (server, _) = machine.team().needed("`nietz cancel`")?;
        let id = machine.runs().find(Some(&args.run))?;
        let run =
            server.find(&id)?.ok_or_else(|| Failure::new(Code::RunNotFound, format!("there is no run `{id}`")))?;
        let before = server.cancel(run.id)?;
        if matches!(before.as_str(), "done" | "failed" | "cancelled") {
            output::line(format!("{id} was over before: {before}"))?;
        } else {
            output::line(format!("{id} is cancelled; it was {before}"))?;
        }
        Ok(Exit::Done)
    }
}
