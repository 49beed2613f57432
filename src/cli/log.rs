//! `nietz log RUN`.

use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use crate::cli::output;
use crate::error::{Code, Exit, Failure, Result};
use crate::journal::entries;
use crate::model::budget::{self, Spent};
use crate::model::text::excerpt;
use crate::run::machine::{Machine, iso, time_of_day};

/// Show what a run did: its journal, made readable
#[derive(Args)]
pub(super) struct LogArgs {
    /// The run's id, or a part of it that only one has; without it, the latest that can go on
    run: Option<String>,
    /// One JSON object for each line of the journal, with long texts put back
    #[arg(long)]
    json: bool,
}

pub(super) fn run(machine: &Machine, args: &LogArgs) -> Result<Exit> {
    let runs = machine.runs();
    let id = match &args.run {
        Some(wanted) => runs.find(Some(wanted))?,
        None => {
            let newest = || runs.newest().ok_or_else(|| Failure::new(Code::RunNotFound, "there are no runs here"));
            runs.find(None).or_else(|_| newest())?
        }
    };
    let path = runs.journal(&id);
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
    Ok(Exit::Done)
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
        let last = messages.last().and_then(|message| message["content"].as_str()).unwrap_or_default();
        let of = request["model"].as_str().unwrap_or_default();
        return format!("{of}, {} messages: {}", messages.len(), excerpt(last));
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
    text.map_or_else(|| excerpt(&ok.to_string()), excerpt) + &usage
}
