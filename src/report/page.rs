//! The page: one file of HTML without a script, or, for very long runs, with one that shows the list of effects piece by piece
//! and that the page's own policy names by its digest. Nothing in it asks for anything from elsewhere.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use indexmap::IndexMap;
use minijinja::{AutoEscape, Environment};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::OwnPart;
use super::blocks::Block;
use super::history::{RecordedEffect, RunHistory};
use super::{cost, documents, prose, readable, timeline, words};
use crate::error::{Code, Failure, Result};
use crate::model::budget;
use crate::model::text::{clean, excerpt, line};

const PAGE: &str = include_str!("templates/page.html");
const BLOCKS: &str = include_str!("templates/blocks.html");
const ROWS: &str = include_str!("templates/rows.html");
/// The style of all pages.
pub(crate) const STYLE: &str = include_str!("templates/style.css");
/// What follows a run on a live page.
const FOLLOW: &str = include_str!("templates/follow.js");
const SCRIPT: &str = include_str!("templates/list.js");

/// Effects that are seldom looked for: the time, chance, and whether anybody sits there.
const QUIET: [&str; 3] = ["clock", "random", "attended"];
/// The most effects that stand in the page as they are; more are data, which a script shows.
const EFFECTS: usize = 2_000;
/// How many turns or effects are laid out at once, where there are more: a browser leaves alone what is far from the screen.
const AT_ONCE: usize = 200;
/// The longest request or outcome in the list of effects, in bytes; the journal has all of it.
const LONGEST: usize = 60_000;
/// A part of a request or an outcome that is at least as long, in bytes, stands on the page once.
const REPEATED: usize = 120;
/// The colours of speakers, without that of no speaker.
const COLOURS: usize = 8;
/// A param that is at least as long, in bytes, is no option.
const LONG_PARAM: usize = 40;
/// The longest title, in letters.
const TITLE: usize = 160;
/// How much of a time tells the minute.
const MINUTE: usize = "2026-01-09T10:30".len();
/// The longest prompt that is a label of its answer, in letters.
const LABEL: usize = 40;

/// Returns the page of a run; a live one follows it.
pub(super) fn html(run: &RunHistory, own: &OwnPart, live: Option<&LivePage>) -> Result<String> {
    let w = words::of(&run.lang)?;
    let many = run.effects.len() > EFFECTS;
    let mut texts = ShownTexts::default();
    let effects: Vec<Value> = run.effects.iter().map(|effect| shown_effect(effect, &mut texts)).collect();
    let parts_of_data = if many { effects.chunks(AT_ONCE).map(effects_as_data).collect() } else { Vec::new() };
    let scripts = [(many, SCRIPT), (live.is_some(), FOLLOW)].into_iter().filter(|(used, _)| *used);
    let scripts: String = scripts.map(|(_, script)| format!(" 'sha256-{}'", digest(script))).collect();
    let scripts = if scripts.is_empty() { scripts } else { format!("; script-src{scripts}") };
    let asks = if live.is_some() { "; connect-src 'self'; form-action 'self'" } else { "; form-action 'none'" };
    let policy = format!("default-src 'none'; style-src 'sha256-{}'{scripts}; base-uri 'none'{asks}", digest(STYLE));
    let params = params(run);
    let options = params.iter().filter(|param| param["main"] == false).count();
    let is_asked_more = options < params.len();
    let result = &run.result;
    let result_html = result.as_str().or_else(|| result["markdown"].as_str()).map(prose::html);
    let result_text = (!result.is_null()).then(|| clean(&readable(result)));
    let values = json!({
        "live": live, "follow": FOLLOW, "w": w, "run": cleaned(run), "title": title(run), "policy": policy, "style": STYLE, "script": SCRIPT,
        "figures": figures(run, &w), "parts": parts(run, own, &w), "params": params, "options": options, "is_asked_more": is_asked_more,
        "own": own.blocks.iter().map(Block::shown).collect::<Vec<_>>(), "own_failure": own.failure.as_deref().map(line),
        "result_html": result_html, "result_text": result_text, "turns": turns(run, &w),
        "documents": shown_documents(run), "shares": shares(run, &w), "timeline": shown_timeline(run, &w),
        "surroundings": surroundings(run, &w), "effect_count": run.effects.len(),
        "effects": if many { Vec::new() } else { effects }, "effect_parts": parts_of_data, "at_once": AT_ONCE,
    });
    let template = templates().get_template("page.html");
    let values = minijinja::Value::from(minijinja::value::Serde(&values));
    template.and_then(|template| template.render(values)).map_err(|error| cannot_be_written(&error))
}

/// Returns effects as what a script shows, with the line of the last.
fn effects_as_data(effects: &[Value]) -> Value {
    // In a script's text, only `<` could end it.
    let data = serde_json::to_string(effects).unwrap_or_default().replace('<', "\\u003c");
    json!({ "last": effects.last().map(|effect| &effect["line"]), "data": data })
}

/// The templates of all pages, compiled once.
pub(crate) fn templates() -> &'static Environment<'static> {
    static TEMPLATES: OnceLock<Environment<'static>> = OnceLock::new();
    TEMPLATES.get_or_init(|| {
        let mut environment = Environment::new();
        environment.set_auto_escape_callback(|_| AutoEscape::Html);
        for (name, text) in [("blocks.html", BLOCKS), ("rows.html", ROWS), ("page.html", PAGE)] {
            environment.add_template(name, text).expect("a template of the program, as a test shows");
        }
        environment
    })
}

/// Returns the failure of a template that cannot be rendered.
pub(super) fn cannot_be_written(error: &minijinja::Error) -> Failure {
    Failure::new(Code::TemplateInvalid, format!("the report cannot be written: {error}"))
}

/// Renders a template of the pages around reports.
pub(crate) fn render(name: &'static str, template: &'static str, values: &Value) -> Result<String> {
    let template = templates().template_from_named_str(name, template);
    let values = minijinja::Value::from(minijinja::value::Serde(values));
    template.and_then(|template| template.render(values)).map_err(|error| cannot_be_written(&error))
}

/// Returns the digest by which a policy names a style or a script.
pub(crate) fn digest(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

/// What a page has that follows its run.
#[derive(Debug, Serialize)]
pub(crate) struct LivePage {
    /// Where its events come from, relative to the page.
    pub events: String,
    /// The open questions, as the page shows them.
    pub questions: String,
}

/// Returns what the page's head shows of the run.
fn cleaned(run: &RunHistory) -> Value {
    let text = |value: &Value| value.as_str().map(|text| line(text).into_owned());
    let failure = (!run.failure.is_null()).then(|| json!({ "message": text(&run.failure["message"]) }));
    let verdict =
        (!run.verdict.is_null()).then(|| json!({ "ok": run.verdict["ok"], "why": text(&run.verdict["why"]) }));
    json!({
        "flow": line(&run.flow), "command": run.command.as_deref().map(line), "status": run.status, "failure": failure,
        "verdict": verdict,
    })
}

fn title(run: &RunHistory) -> String {
    let topic = line(run.topic().split('\n').next().unwrap_or_default()).into_owned();
    let short: String = topic.chars().take(TITLE).collect();
    match (short.is_empty(), short.len() < topic.len()) {
        (true, _) => format!("{} {}", run.flow, run.run),
        (false, true) => short + "…",
        (false, false) => short,
    }
}

fn figures(run: &RunHistory, w: &Value) -> Vec<Value> {
    let figure = |name: &str, value: String, more: String| json!({ "name": w[name], "value": value, "more": more });
    let total = cost::total(&cost::by_speaker(run));
    let saved = budget::saved(&run.spent);
    let saved = saved.map(|saved| format!("{} {}", word(w, "saved"), budget::dollars_with_sign(saved)));
    let cached = if total.cached > 0 { format!(", {} {}", total.cached, word(w, "cached")) } else { String::new() };
    let counted = [("failed", total.failed), ("again", total.again)].into_iter().filter(|(_, count)| *count > 0);
    let counted: Vec<String> = counted.map(|(name, count)| format!("{count} {}", word(w, name))).collect();
    let began = run.started.get(..MINUTE).unwrap_or(&run.started).replace('T', " ");
    let mut figures = vec![figure("began", began, format!("UTC · {}", run.run))];
    if total.calls + total.failed > 0 {
        figures.push(figure("calls", total.calls.to_string(), counted.join(", ")));
        figures.push(figure(
            "tokens",
            (total.input + total.output).to_string(),
            format!("{} {}{cached}, {} {}", total.input, word(w, "input"), total.output, word(w, "output")),
        ));
        figures.push(figure("money", money(total.cost, w), saved.unwrap_or_default()));
        if total.milliseconds > 0 {
            figures.push(figure("lasted", duration(total.milliseconds), String::new()));
        }
    }
    figures
}

fn word<'w>(w: &'w Value, name: &str) -> &'w str {
    w[name].as_str().unwrap_or_default()
}

fn money(cost: Option<f64>, w: &Value) -> String {
    match cost {
        None => word(w, "unknown_price").to_owned(),
        Some(cost) if cost > 0.0 => budget::dollars_with_sign(cost),
        Some(_) => word(w, "free").to_owned(),
    }
}

pub(super) fn duration(milliseconds: u64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..120_000 => format!("{:.1} s", milliseconds as f64 / 1e3),
        _ => format!("{} min", milliseconds / 60_000),
    }
}

fn parts(run: &RunHistory, own: &OwnPart, w: &Value) -> Vec<Value> {
    let has_documents = run.effects.iter().any(|effect| matches!(effect.kind.as_str(), "save" | "append"));
    let has_calls = run.effects.iter().any(|effect| effect.kind == "chat");
    let parts = [
        ("asked", "asked", params(run).iter().any(|param| param["main"] == true)),
        ("came-out", "came_out", !run.result.is_null() || !own.blocks.is_empty() || own.failure.is_some()),
        ("conversation", "conversation", true),
        ("documents", "documents", has_documents),
        ("cost", "cost", has_calls),
        ("timeline", "timeline", timeline::of(run).is_some()),
        ("surroundings", "surroundings", true),
        ("effects", "effects", true),
    ];
    let shown = parts.into_iter().filter(|(_, _, shown)| *shown);
    shown.map(|(id, name, _)| json!({ "id": id, "name": w[name] })).collect()
}

fn params(run: &RunHistory) -> Vec<Value> {
    let topic = run.topic();
    // Options are folded: what the run was about is seen first.
    let is_main = |value: &Value| value.as_str().is_some_and(|text| text == topic || text.len() >= LONG_PARAM);
    // What is the page's title is not told again.
    let title = title(run);
    let is_told = |value: &Value| value.as_str().is_some_and(|text| line(text) == title);
    let params = run.params.as_object().into_iter().flatten();
    let params = params.filter(|(_, value)| !is_empty(value) && !is_told(value));
    let shown = params
        .map(|(name, value)| json!({ "name": line(name), "value": clean(&readable(value)), "main": is_main(value) }));
    shown.collect()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

/// What of the conversation so far is of use for what follows.
#[derive(Default)]
pub(super) struct Speakers {
    /// Who has spoken, each with a colour.
    colours: IndexMap<String, usize>,
    /// The label of the last answer.
    label: String,
}

impl Speakers {
    /// Returns what was said in an effect: by the flow, by a model whose words people saw, and by the person who answered.
    pub(super) fn turns(&mut self, effect: &RecordedEffect, w: &Value) -> Vec<Value> {
        let request = &effect.request;
        let (who, markdown) = match effect.kind.as_str() {
            "say" => (request["from"].as_str(), request["markdown"].as_str()),
            "chat" if effect.shown => (effect.label.as_deref(), effect.outcome["text"].as_str()),
            "ask" => (None, request["prompt"].as_str()),
            _ => return Vec::new(),
        };
        let Some(markdown) = markdown.filter(|text| !text.is_empty()) else { return Vec::new() };
        let name = line(who.unwrap_or_default()).into_owned();
        let next = self.colours.len() % COLOURS + 1;
        let colour = if who.is_some() { *self.colours.entry(person(&name).to_owned()).or_insert(next) } else { 0 };
        let options = request["options"].as_array().into_iter().flatten();
        let options: Vec<_> = options.filter_map(|option| option["label"].as_str()).map(line).collect();
        let options = options.join(" · ");
        // A prompt that only says that it is somebody's turn stands with what they said.
        let is_label =
            effect.kind == "ask" && options.is_empty() && !markdown.contains('\n') && markdown.chars().count() <= LABEL;
        let mut turns = Vec::new();
        if !is_label {
            turns.push(json!({
                "line": effect.line, "class": effect.kind, "who": name, "initials": initials(&name), "colour": colour,
                "html": prose::html(markdown), "options": options,
            }));
        }
        if effect.kind == "ask" {
            let answer = match (&effect.outcome, effect.ended) {
                (_, None) => word(w, "no_answer").to_owned(),
                (Value::String(empty), _) if empty.is_empty() => word(w, "enter").to_owned(),
                (Value::Bool(yes), _) => word(w, if *yes { "yes" } else { "no" }).to_owned(),
                (answer, Some(_)) => clean(&readable(answer)),
            };
            let (id, label) = match is_label {
                true => (effect.line.to_string(), line(markdown).into_owned()),
                false => (format!("{}-answer", effect.line), String::new()),
            };
            // What each answer is asked by in the same words says nothing after the first.
            let label = if label == self.label { String::new() } else { label };
            if !label.is_empty() {
                self.label.clone_from(&label);
            }
            turns.push(json!({
                "line": id, "class": "you", "who": w["you"], "initials": initials(word(w, "you")), "colour": 0,
                "label": label, "html": plain(&answer), "options": "",
            }));
        }
        turns
    }
}

fn turns(run: &RunHistory, w: &Value) -> Vec<Value> {
    let mut speakers = Speakers::default();
    run.effects.iter().flat_map(|effect| speakers.turns(effect, w)).collect()
}

/// Returns text as HTML that keeps its lines.
fn plain(text: &str) -> String {
    format!("<p>{}</p>", prose::escaped(text).replace('\n', "<br>"))
}

/// Returns who speaks: a name may have the number of the turn behind it, and is that of the same person.
fn person(name: &str) -> &str {
    match name.rsplit_once(" #") {
        Some((person, number)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => person,
        _ => name,
    }
}

/// Returns the first letters of the first two words of a name.
fn initials(name: &str) -> String {
    let is_between = |c: char| !c.is_alphanumeric() && !['\'', '’'].contains(&c);
    let words = person(name).split(is_between).filter_map(|word| word.chars().find(|c| c.is_alphanumeric()));
    words.take(2).flat_map(char::to_uppercase).collect()
}

fn shown_documents(run: &RunHistory) -> Vec<Value> {
    let shown_line = |text: &String| {
        let class = match text.chars().next() {
            Some('-') => "old",
            Some('+') => "new",
            _ => "same",
        };
        json!({ "class": class, "text": clean(text) })
    };
    let documents = documents::of(run).into_iter().map(|document| {
        let changes = document.changes.iter().map(|change| {
            let lines: Vec<Value> = change.lines.iter().map(shown_line).collect();
            json!({ "address": address(change.line, run), "lines": lines })
        });
        json!({
            "path": line(&document.path), "writes": document.writes, "rows": document.rows, "deleted": document.deleted,
            "content": bounded(&document.content), "changes": changes.collect::<Vec<_>>(),
        })
    });
    let (rows, whole): (Vec<Value>, Vec<Value>) = documents.partition(|document| document["rows"] == true);
    whole.into_iter().chain(rows).collect()
}

/// Returns the address of an effect on the page: what stands in the conversation already has its own there.
fn address(line: u64, run: &RunHistory) -> String {
    let spoken = run.effects.iter().find(|effect| effect.line == line).is_some_and(is_spoken);
    if spoken { format!("effect{line}") } else { format!("e{line}") }
}

fn is_spoken(effect: &RecordedEffect) -> bool {
    matches!(effect.kind.as_str(), "say" | "ask") || effect.shown
}

fn shares(run: &RunHistory, w: &Value) -> Vec<Value> {
    let mut shares = cost::by_speaker(run);
    if shares.is_empty() {
        return Vec::new();
    }
    shares.push(cost::total(&shares));
    let shown = shares.into_iter().map(|share| {
        json!({
            "speaker": line(&share.speaker), "model": line(&share.model), "calls": share.calls, "input": share.input,
            "cached": share.cached, "output": share.output, "time": duration(share.milliseconds),
            "money": money(share.cost, w),
        })
    });
    shown.collect()
}

fn shown_timeline(run: &RunHistory, w: &Value) -> Option<Value> {
    let timeline = timeline::of(run)?;
    let bars = timeline.bars.iter().map(|bar| {
        let waits = bar.waits.iter().map(|wait| {
            let title = format!("{} {}: {}", word(w, "waited"), duration(wait.milliseconds), line(&wait.reason));
            json!({ "x": wait.x, "width": wait.width, "title": title })
        });
        json!({
            "address": address(bar.line, run), "x": bar.x, "y": bar.y, "width": bar.width, "class": bar.class,
            "failed": bar.failed, "kind": bar.kind, "who": line(&bar.who), "milliseconds": bar.milliseconds,
            "waits": waits.collect::<Vec<_>>(),
            "title": format!("{} {}: {}", bar.kind, line(&bar.who), duration(bar.milliseconds)),
        })
    });
    let bars: Vec<Value> = bars.collect();
    Some(json!({ "height": timeline.height, "gaps": timeline.gaps, "left_out": timeline.left_out, "bars": bars }))
}

fn surroundings(run: &RunHistory, w: &Value) -> Vec<Value> {
    let facts = [
        ("run", json!(run.run)),
        ("models", json!(run.model)),
        ("seed", json!(run.seed)),
        ("host", json!(run.host)),
        ("granted", run.grants.clone()),
        ("budget", run.budget.clone()),
        ("fork", run.fork.clone()),
        ("resumes", json!(Some(run.resumes).filter(|count| *count > 0))),
        ("torn", json!(Some(run.torn).filter(|bytes| *bytes > 0))),
    ];
    let facts = facts.into_iter().filter(|(_, value)| !is_empty(value));
    facts.map(|(name, value)| json!({ "name": w[name], "value": clean(&told(&value)) })).collect()
}

/// Returns what a request is about, in a few words.
fn told_of(effect: &RecordedEffect) -> Option<String> {
    let request = &effect.request;
    let of = |value: &Value, name: &str| value[name].as_str().map(str::to_owned);
    let said = ["markdown", "prompt", "path", "title"].iter().find_map(|name| of(request, name));
    let command =
        || of(&request["run"], "shell").or_else(|| request["run"]["argv"].as_array().map(|argv| told(&json!(argv))));
    // What was written or read, or where nobody knows, of which kind.
    let document = || of(&effect.outcome, "path").or_else(|| of(request, "collection"));
    said.or_else(|| of(request, "op")).or_else(command).or_else(document)
}

/// Returns a value as people would write it down: names with their values, lists with commas.
fn told(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| match value {
                Value::Object(_) => format!("{name}: {}", told(value).replace('\n', ", ")),
                _ => format!("{name}: {}", told(value)),
            });
            members.collect::<Vec<_>>().join("\n")
        }
        Value::Array(items) => items.iter().map(|item| told(item).replace('\n', ", ")).collect::<Vec<_>>().join(", "),
        other => readable(other),
    }
}

pub(super) fn shown_effect(effect: &RecordedEffect, texts: &mut ShownTexts) -> Value {
    let id = if is_spoken(effect) { format!("effect{}", effect.line) } else { format!("e{}", effect.line) };
    let request = readable(&texts.once(&effect.request, &id));
    let (outcome, class) = match (&effect.failure, effect.ended) {
        (Value::Null, None) => (String::new(), "waiting"),
        (Value::Null, Some(_)) => (readable(&texts.once(&effect.outcome, &id)), "outcome"),
        (failure, _) => (readable(failure), "failure"),
    };
    let brief = match effect.failure.is_null() {
        false => effect.failure["message"].as_str().map(excerpt),
        true => effect.outcome["text"].as_str().or(effect.outcome.as_str()).map(excerpt),
    };
    let brief = brief.or_else(|| told_of(effect).map(|told| excerpt(&told)));
    let time = time_of_day(effect.began);
    json!({
        "id": id,
        "line": effect.line, "kind": effect.kind, "time": time, "quiet": QUIET.contains(&effect.kind.as_str()),
        "who": line(effect.label.as_deref().unwrap_or(if effect.scope == "/" { "" } else { &effect.scope })),
        "class": class, "brief": brief.unwrap_or_default(),
        "request": bounded(&request), "outcome": bounded(&outcome),
        "took": if effect.duration() > 0 { duration(effect.duration()) } else { String::new() },
    })
}

/// The texts and parts of values that stand on the page already: requests repeat what was said before.
#[derive(Default)]
pub(super) struct ShownTexts(HashMap<blake3::Hash, String>);

impl ShownTexts {
    /// Returns a value in which each long part that an earlier effect has shown is named by where it stands.
    fn once(&mut self, value: &Value, id: &str) -> Value {
        match value {
            Value::String(text) if text.len() >= REPEATED => {
                self.named(text.as_bytes(), id).unwrap_or_else(|| value.clone())
            }
            Value::Array(items) => Value::Array(items.iter().map(|item| self.part(item, id)).collect()),
            Value::Object(members) => {
                Value::Object(members.iter().map(|(name, member)| (name.clone(), self.part(member, id))).collect())
            }
            other => other.clone(),
        }
    }

    /// Like [`once`](ShownTexts::once), for a part that can be named as a whole.
    fn part(&mut self, value: &Value, id: &str) -> Value {
        if value.is_object() || value.is_array() {
            let text = value.to_string();
            if text.len() >= REPEATED
                && let Some(named) = self.named(text.as_bytes(), id)
            {
                return named;
            }
        }
        self.once(value, id)
    }

    fn named(&mut self, text: &[u8], id: &str) -> Option<Value> {
        match self.0.entry(blake3::hash(text)) {
            // An effect whose outcome has come is shown anew, and is no repetition of itself.
            Entry::Occupied(shown) if shown.get() == id => None,
            Entry::Occupied(shown) => Some(Value::from(format!("[#{}]", shown.get()))),
            Entry::Vacant(place) => {
                place.insert(id.to_owned());
                None
            }
        }
    }
}

fn time_of_day(millis: u64) -> String {
    let time = i64::try_from(millis).ok().and_then(chrono::DateTime::<chrono::Utc>::from_timestamp_millis);
    time.map(|time| time.format("%H:%M:%S").to_string()).unwrap_or_default()
}

/// Returns a text that can be shown, without the middle of a very long one.
fn bounded(text: &str) -> String {
    if text.len() <= LONGEST {
        return clean(text);
    }
    let (mut head, mut tail) = (LONGEST / 2, text.len() - LONGEST / 2);
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    format!("{}\n[… {} bytes …]\n{}", clean(&text[..head]), tail - head, clean(&text[tail..]))
}
