//! The report as Markdown that fits a pull request or an issue: what was asked, what came out, what was said, and what it cost.

use super::history::RunHistory;
use super::{cost, documents, readable};
use crate::model::budget;
use crate::model::text::{clean, line};

/// The longest text of a turn, in letters.
const TURN: usize = 4_000;

/// Returns the summary of a run.
pub(super) fn markdown(run: &RunHistory) -> String {
    let topic = inline(run.topic().split('\n').next().unwrap_or_default());
    let mut out = format!("## {}: {topic}\n\n", inline(&run.flow));
    let total = cost::total(&cost::by_speaker(run));
    let money = total.cost.filter(|cost| *cost > 0.0).map(|cost| format!(", {}", budget::dollars_with_sign(cost)));
    let (calls, tokens) = (total.calls, total.input + total.output);
    let used = format!("{calls} calls, {tokens} tokens{}", money.unwrap_or_default());
    out += &format!("{}, {used} · run `{}` of {}\n", run.status, run.run, run.started);
    if let Some(message) = run.failure["message"].as_str() {
        out += &format!("\n{}\n", inline(message));
    }
    for effect in &run.effects {
        let request = &effect.request;
        let (who, text) = match effect.kind.as_str() {
            "say" => (request["from"].as_str(), request["markdown"].as_str()),
            "chat" if effect.shown => (effect.label.as_deref(), effect.outcome["text"].as_str()),
            "ask" => (None, request["prompt"].as_str()),
            _ => continue,
        };
        let Some(text) = text else { continue };
        out += "\n";
        if let Some(who) = who {
            out += &format!("**{}**\n\n", inline(who));
        }
        out += &quoted(text);
        if effect.kind == "ask" && effect.ended.is_some() {
            out += &format!("\n**Answer**\n\n{}", quoted(&readable(&effect.outcome)));
        }
    }
    let documents = documents::of(run);
    if !documents.is_empty() {
        out += "\n### Documents\n\n";
        for document in documents {
            out += &format!("- {}\n", inline(&document.path));
        }
    }
    out
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
