//! `nietz log [RUN] [EFFECT]`.

use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use crate::cli::output;
use crate::cli::recorded::RecordedEffect;
use crate::engine::runs::{Runs, WHERE_RUNS_STAND};
use crate::error::{Code, Exit, Failure, Result};
use crate::journal::entries;
use crate::model::budget::{self, Spent};
use crate::model::text::{clean, excerpt};
use crate::run::machine::{Machine, iso, time_of_day};

/// Show what a run did: its journal, made readable; or one effect of it, whole
#[derive(Args)]
pub(super) struct LogArgs {
    /// The run's id, or a part of it that only one has; without it, the one that began last
    run: Option<String>,
    /// The line or the key of an effect, to show all of its request and its outcome
    effect: Option<String>,
    /// One JSON object for each line of the journal, with long texts put back
    #[arg(long)]
    json: bool,
}

pub(super) fn run(machine: &Machine, args: &LogArgs) -> Result<Exit> {
    let runs = machine.runs();
    let (id, effect) = meant(&runs, args)?;
    let path = runs.journal(&id)?;
    if let Some(effect) = effect {
        let effect = RecordedEffect::find(&path, effect)?;
        if args.json {
            let lines =
                std::iter::once(&effect.intent).chain(&effect.outcome).filter(|line| line["type"] != Value::Null);
            lines.take(if effect.intent["type"] == "effect" { 1 } else { 2 }).try_for_each(output::json)?;
        } else {
            output::block(whole(&effect))?;
        }
        return Ok(Exit::Done);
    }
    // Each line is printed when it is read, so that the intact lines appear before an error about the rest.
    let mut shown = Ok(());
    let read = entries::read(&path, |entry| {
        if shown.is_ok() {
            shown = output::line(if args.json { entry.to_string() } else { readable(&entry) });
        }
    });
    shown?;
    let intact = read?;
    if intact.torn > 0 && !args.json {
        output::line(format!("      (then {} bytes of a torn line, which resuming cuts off)", intact.torn))?;
    }
    if !args.json {
        people(machine, &id)?;
    }
    Ok(Exit::Done)
}

/// Shows who began a run on a server, and who answered it.
fn people(machine: &Machine, id: &str) -> Result<()> {
    #[cfg(feature = "postgres")]
    if let Some(server) = machine.team().server()
        && let Some(run) = server.find(id)?
    {
        let name = |role: &str, person: &str| match person {
            "" => line(role),
            person => format!("{} ({})", line(person), line(role)),
        };
        output::line(format!("      begun by {}", name(&run.began_by, &run.began_as)))?;
        for given in server.answers(run.id)? {
            let (key, by) = (given.key.chars().take(8).collect::<String>(), name(&given.who, &given.said_as));
            output::line(format!("      {key} answered by {by} at {}", given.at))?;
        }
    }
    let _ = (machine, id);
    Ok(())
}

/// Returns the run and the effect that are meant. A number alone that no run has in its name is a line of the newest run.
fn meant<'a>(runs: &Runs, args: &'a LogArgs) -> Result<(String, Option<&'a str>)> {
    let newest = || {
        runs.newest()?.ok_or_else(|| Failure::new(Code::RunNotFound, "there are no runs here").hint(WHERE_RUNS_STAND))
    };
    match (&args.run, &args.effect) {
        (None, _) => Ok((newest()?, None)),
        (Some(run), effect) => match runs.find(Some(run)) {
            Ok(id) => Ok((id, effect.as_deref())),
            Err(_) if effect.is_none() && is_line(run) && !runs.ids()?.iter().any(|id| id.contains(run.as_str())) => {
                Ok((newest()?, Some(run)))
            }
            Err(failure) => Err(failure),
        },
    }
}

fn is_line(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns all of an effect's request and outcome, as people read them.
fn whole(effect: &RecordedEffect) -> String {
    let scope = if effect.scope == "/" { String::new() } else { format!(" {}", line(&effect.scope)) };
    let label = effect.intent["label"].as_str().map(|label| format!(" for {}", line(label))).unwrap_or_default();
    let at = effect.intent["at"].as_u64().unwrap_or_default();
    let ended = effect.outcome.as_ref().and_then(|outcome| outcome["at"].as_u64());
    let took =
        ended.map(|ended| format!(", took {:.1} s", ended.saturating_sub(at) as f64 / 1000.0)).unwrap_or_default();
    let mut out = format!("line {}: {}{scope}{label}, {}{took}\n", effect.seq, line(&effect.kind), iso(at));
    out += "\n-- request\n";
    let mut request = effect.request.clone();
    let mut take = |name| request.as_object_mut().and_then(|request| request.shift_remove(name));
    let (system, messages) = (take("system"), take("messages"));
    out += &value(&request);
    if let Some(system) = &system {
        out += &format!("\n-- system\n{}", value(system));
    }
    for message in messages.as_ref().and_then(Value::as_array).into_iter().flatten() {
        out += &format!("\n-- {}\n", line(message["role"].as_str().unwrap_or("message")));
        out += &texts(message, "content");
    }
    let Some(outcome) = &effect.outcome else { return out + "\n-- no outcome\n" };
    if let Some(failure) = outcome.get("failure").filter(|failure| !failure.is_null()) {
        return format!("{out}\n-- failure\n{}", value(failure));
    }
    let mut ok = outcome["ok"].clone();
    out += "\n-- outcome\n";
    if ok["text"].is_string() {
        out += &texts(&ok, "text");
        if let Some(rest) = ok.as_object_mut() {
            rest.shift_remove("text");
            rest.shift_remove("tool_calls");
        }
        out += "\n-- its facts\n";
    }
    out + &value(&ok)
}

/// Returns a message's text and its tool calls.
fn texts(message: &Value, text: &str) -> String {
    let text = message[text].as_str().unwrap_or_default();
    let text = if text.is_empty() { String::new() } else { clean(text).trim_end().to_owned() + "\n" };
    text + &calls(message).map(|call| format!("calls {call}\n")).collect::<String>()
}

/// Returns the tool calls of a reply or a message.
fn calls(message: &Value) -> impl Iterator<Item = String> + '_ {
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    calls.map(|call| {
        let text = |name: &str| line(call[name].as_str().unwrap_or_default());
        format!("{}({})", text("name"), text("arguments"))
    })
}

fn value(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => clean(text).trim_end().to_owned() + "\n",
        Value::Object(members) if members.is_empty() => String::new(),
        other => clean(&serde_json::to_string_pretty(other).unwrap_or_default()) + "\n",
    }
}

fn line(text: &str) -> String {
    crate::model::text::line(text).into_owned()
}

/// Formats an entry of a journal as one line for people.
fn readable(entry: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let time = entry["at"].as_u64().map(time_of_day).unwrap_or_default();
    let (what, rest) = match entry["type"].as_str().unwrap_or_default() {
        "open" => {
            let open = &entry["open"];
            (
                format!("run {}", text(&open["run"])),
                format!("{} {} · {}", text(&open["flow"]), open["params"], text(&open["host"])),
            )
        }
        "given" => ("  given together".to_owned(), keys(&entry["keys"])),
        "resume" => ("resumed".to_owned(), text(&entry["resume"]["at"])),
        "end" => (format!("end: {}", text(&entry["end"]["status"])), end(&entry["end"])),
        "outcome" => (format!("  = {}", short_key(entry)), outcome(entry)),
        _ => {
            let scope = text(&entry["scope"]);
            let scope = if scope == "/" { String::new() } else { format!(" {scope}") };
            let anew = if entry["anew"] == true { " (anew: answers before this line hold no more)" } else { "" };
            (format!("{}{scope} {}", text(&entry["kind"]), short_key(entry)), request(entry) + anew)
        }
    };
    format!("{:>5} {time:8} {what}  {}", entry["seq"].as_u64().unwrap_or_default(), rest).trim_end().to_owned()
}

fn short_key(entry: &Value) -> String {
    short(&entry["key"])
}

fn short(key: &Value) -> String {
    key.as_str().unwrap_or_default().chars().take(8).collect()
}

fn keys(keys: &Value) -> String {
    keys.as_array().into_iter().flatten().map(short).collect::<Vec<_>>().join(" ")
}

fn request(entry: &Value) -> String {
    let request = &entry["request"];
    let contents = [&request["markdown"], &request["prompt"], &request["row"], &request["collection"], &request["sql"]];
    if let Some(messages) = request["messages"].as_array() {
        let last = messages.last().unwrap_or(&Value::Null);
        let content = last["content"].as_str().unwrap_or_default();
        let of = request["model"].as_str().unwrap_or_default();
        let result = if last["role"] == "tool" { "a tool's result: " } else { "" };
        return format!("{of}, {} messages: {result}{}", messages.len(), excerpt(content));
    }
    if entry["kind"] == "clock" {
        return entry["ok"].as_u64().map(iso).unwrap_or_default();
    }
    let shown = contents.iter().find(|value| !value.is_null());
    let key = if request["key"].is_object() { format!(" {}", request["key"]) } else { String::new() };
    shown
        .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        .map(|text| excerpt(&text))
        .unwrap_or_else(|| match request.as_object() {
            // Requests to git, worktrees and commands are short enough to be shown as they are.
            Some(members) if !members.is_empty() => excerpt(&request.to_string()),
            _ => String::new(),
        })
        + &key
}

/// Formats what a process ended with: why, where it failed, and what its calls cost.
fn end(end: &Value) -> String {
    let spent: Vec<Spent> = Deserialize::deserialize(&end["spent"]).unwrap_or_default();
    let cost = budget::cost(&spent).filter(|cost| *cost > 0.0).map(budget::dollars_with_sign);
    let saved = budget::saved(&spent).map(|saved| format!("caching saved {}", budget::dollars_with_sign(saved)));
    let message = end["failure"]["message"].as_str().map(str::to_owned);
    message.into_iter().chain(cost).chain(saved).collect::<Vec<_>>().join(" · ")
}

fn outcome(entry: &Value) -> String {
    if let Some(failure) = entry["failure"].as_object() {
        return format!(
            "failed [{}] {}",
            failure["code"].as_str().unwrap_or_default(),
            excerpt(failure["message"].as_str().unwrap_or_default())
        );
    }
    let ok = &entry["ok"];
    let text = ok["text"].as_str().or_else(|| ok["path"].as_str()).or_else(|| ok.as_str());
    let thought =
        ok["usage"]["reasoning"].as_u64().map(|tokens| format!(", {tokens} of them thinking")).unwrap_or_default();
    let usage = ok["usage"]["output"].as_u64().map(|tokens| format!(" ({tokens} tokens{thought})")).unwrap_or_default();
    let calls: Vec<String> = calls(ok).map(|call| excerpt(&call)).collect();
    let calls = if calls.is_empty() { String::new() } else { format!(" calls {}", calls.join(", ")) };
    let by = match entry["by"].as_str() {
        Some("relayed") => " (told by a model, which relayed it)".to_owned(),
        Some("model") => " (answered by a model)".to_owned(),
        Some(other) => format!(" (by {})", line(other)),
        None => String::new(),
    };
    text.map_or_else(|| excerpt(&ok.to_string()), excerpt).trim_start().to_owned() + &calls + &usage + &by
}
