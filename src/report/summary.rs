//! The report as Markdown that fits a pull request or an issue: what was asked, what came out, what was said, and what it cost.

use serde_json::Value;

use super::history::{RecordedEffect, RunHistory};
use super::{cost, documents, readable, words};
use crate::error::Result;
use crate::model::budget;
use crate::model::text::{clean, line};

/// The longest text of a turn, in letters.
const TURN: usize = 4_000;
/// The longest value of a result that stands in a line, in letters.
const SHORT: usize = 200;

/// Returns the summary of a run, in its language.
pub(super) fn markdown(run: &RunHistory) -> Result<String> {
    let w = words::of(&run.lang)?;
    let word = |name: &str| w[name].as_str().unwrap_or_default().to_owned();
    let topic = inline(run.topic().split('\n').next().unwrap_or_default());
    let mut out = format!("## {}: {topic}\n\n", inline(&run.flow));
    let total = cost::total(&cost::by_speaker(run));
    let money = total.cost.filter(|cost| *cost > 0.0).map(|cost| format!(", {}", budget::dollars_with_sign(cost)));
    let counted = |name: &str, count: u64| format!("{}: {count}", word(name));
    let used = [counted("calls", total.calls), counted("tokens", total.input + total.output)].join(", ");
    let status = w[&run.status].as_str().unwrap_or(&run.status);
    out += &format!("{status} · {used}{} · `{}` · {}\n", money.unwrap_or_default(), run.run, run.started);
    if let Some(message) = run.failure["message"].as_str() {
        out += &format!("\n{}\n", inline(message));
    }
    let came_out = result(run);
    if !came_out.is_empty() {
        out += &format!("\n### {}\n\n{came_out}", word("came_out"));
    }
    let said: Vec<(&RecordedEffect, Option<&str>, &str)> = run.effects.iter().filter_map(turn).collect();
    if !said.is_empty() {
        out += &format!("\n### {}\n", word("conversation"));
    }
    for (effect, who, text) in said {
        out += "\n";
        if let Some(who) = who {
            out += &format!("**{}**\n\n", inline(who));
        }
        out += &quoted(text);
        if effect.kind == "ask" && effect.ended.is_some() {
            out += &format!("\n**{}**\n\n{}", word("answer"), quoted(&readable(&effect.outcome)));
        }
    }
    let documents = documents::of(run);
    if !documents.is_empty() {
        out += &format!("\n### {}\n\n", word("documents"));
        for document in documents {
            out += &format!("- {}\n", inline(&document.path));
        }
    }
    Ok(out)
}

/// Returns who said what in an effect, if anything was said in it.
fn turn(effect: &RecordedEffect) -> Option<(&RecordedEffect, Option<&str>, &str)> {
    let request = &effect.request;
    let (who, text) = match effect.kind.as_str() {
        "say" => (request["from"].as_str(), request["markdown"].as_str()),
        "chat" if effect.shown => (effect.label.as_deref(), effect.outcome["text"].as_str()),
        "ask" => (None, request["prompt"].as_str()),
        _ => return None,
    };
    Some((effect, who, text?))
}

/// Returns what came out: a text as a quote, the members of an object each by its name; what was said anyway is left out.
fn result(run: &RunHistory) -> String {
    let is_said = |text: &str| run.effects.iter().filter_map(turn).any(|(_, _, said)| said.trim() == text.trim());
    let text = run.result.as_str().or_else(|| run.result["markdown"].as_str());
    if let Some(text) = text {
        return if is_said(text) { String::new() } else { quoted(text) };
    }
    let (mut short, mut long) = (String::new(), String::new());
    for (name, value) in run.result.as_object().into_iter().flatten() {
        match value {
            Value::Null => {}
            Value::String(text) if is_said(text) => {}
            Value::String(text) if text.contains('\n') || text.chars().count() > SHORT => {
                long += &format!("\n**{}**\n\n{}", inline(name), quoted(text));
            }
            value => {
                let told = readable(value);
                let cut: String = line(&told).chars().take(SHORT).collect();
                let more = if cut.len() < line(&told).len() { "…" } else { "" };
                short += &format!("- {}: {}{more}\n", inline(name), inline(&cut));
            }
        }
    }
    short + &long
}

/// Returns a text as a quote, in which nothing of it is HTML, calls somebody by name, or leaves the quote.
fn quoted(text: &str) -> String {
    let cut: String = clean(text).chars().take(TURN).collect();
    let more = if cut.len() < text.len() && cut.chars().count() == TURN { "\n…" } else { "" };
    let lines = format!("{cut}{more}");
    lines.lines().map(|line| format!("> {}\n", inert(line))).collect()
}

/// Returns a text that stays within its line.
fn inline(text: &str) -> String {
    inert(&line(text)).replace('`', "'").replace('|', "\\|")
}

/// Makes what a page of others would run, fetch or notify plain text: tags, pictures and names of accounts.
fn inert(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace("![", "!\\[").replace('@', "@<!-- -->")
}
