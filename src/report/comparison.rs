//! The page of a comparison: models beside what was recorded, run by run. Foreign text is no markup here either.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::page::{STYLE, digest, duration, render};
use super::{prose, words};
use crate::error::Result;
use crate::model::text::{clean, line};

const COMPARISON: &str = include_str!("templates/comparison.html");
/// The most fields that differ are shown of one side.
const MOST: usize = 40;
/// The longest value of a field on the page, and the longest topic, in letters.
const LONGEST: usize = 200;

/// What a comparison came to.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub lang: String,
    pub judge: Option<String>,
    pub at_least: Option<f64>,
    pub models: Vec<ComparedModel>,
    pub runs: Vec<ComparedRun>,
}

/// What one model came to.
#[derive(Debug)]
pub(crate) struct ComparedModel {
    pub name: String,
    /// Whether it is below what the user asked for.
    pub below: bool,
    pub share: Option<f64>,
    /// Figures, by the words of the pages' frame.
    pub cells: Vec<(&'static str, String)>,
    /// What is beyond chance, in the same way.
    pub findings: Vec<(&'static str, String)>,
}

/// A recorded run, and what others made of it.
#[derive(Debug)]
pub(crate) struct ComparedRun {
    pub id: String,
    pub flow: String,
    pub topic: String,
    pub model: Option<String>,
    /// The recorded one is the first.
    pub sides: Vec<ComparedSide>,
}

/// What came out with one model.
#[derive(Debug, Default)]
pub(crate) struct ComparedSide {
    /// The model; none of what was recorded.
    pub name: Option<String>,
    pub status: String,
    pub money: Option<String>,
    pub milliseconds: u64,
    /// The checks that do not hold any more, and how many hold of how many.
    pub lost: Vec<String>,
    pub checks: Option<String>,
    /// The fields that differ, and how many are the same of how many.
    pub different: Vec<(String, Value, Value)>,
    pub fields: Option<String>,
    pub judged: Option<Judgement>,
    pub text: String,
}

/// What the judge said of a side's texts.
#[derive(Debug)]
pub(crate) struct Judgement {
    /// `better`, `tie` or `worse`.
    pub verdict: &'static str,
    pub why: Vec<String>,
    /// The same of each field, where there are several.
    pub fields: Vec<(String, &'static str)>,
}

/// Returns the page.
///
/// # Errors
///
/// `template-invalid` if a text is too long for a page.
pub(crate) fn comparison(found: &Comparison) -> Result<String> {
    let w = words::of(&found.lang)?;
    let policy =
        format!("default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'", digest(STYLE));
    let names: Vec<_> = found.models.iter().map(|model| line(&model.name).into_owned()).collect();
    let values = json!({
        "w": w, "policy": policy, "style": STYLE, "names": names.join(", "),
        "judge": found.judge.as_deref().map(line), "at_least": found.at_least,
        "columns": found.models.first().map(|model| model.cells.iter().map(|(name, _)| *name).collect::<Vec<_>>()),
        "models": found.models.iter().map(model).collect::<Vec<_>>(),
        "runs": found.runs.iter().map(run).collect::<Vec<_>>(),
    });
    render("comparison.html", COMPARISON, &values)
}

fn model(model: &ComparedModel) -> Value {
    let cells: HashMap<&str, &str> = model.cells.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let findings = model.findings.iter().map(|(word, figure)| {
        let class = match *word {
            "lost_check" | "dearer" | "slower" | "texts_worse" | "not_done" => "bad",
            "cheaper" | "faster" | "texts_better" => "good",
            _ => "none",
        };
        json!({ "word": word, "figure": line(figure), "class": class })
    });
    json!({
        "name": line(&model.name), "below": model.below, "cells": cells, "findings": findings.collect::<Vec<_>>(),
        "width": model.share.map(|share| (share.clamp(0.0, 1.0) * 1000.0).round() / 10.0),
    })
}

fn run(run: &ComparedRun) -> Value {
    json!({
        "id": line(&run.id), "flow": line(&run.flow), "topic": short(&run.topic), "model": run.model.as_deref().map(line),
        "sides": run.sides.iter().map(side).collect::<Vec<_>>(),
    })
}

fn side(side: &ComparedSide) -> Value {
    let shown = |value: &Value| if value.is_null() { "–".to_owned() } else { short(&super::readable(value)) };
    let different = side.different.iter().take(MOST).map(
        |(place, was, is)| json!({ "place": line(place.trim_start_matches('/')), "was": shown(was), "is": shown(is) }),
    );
    json!({
        "name": side.name.as_deref().map(line), "status": side.status, "money": side.money,
        "time": (side.milliseconds > 0).then(|| duration(side.milliseconds)),
        "lost": side.lost.iter().map(|name| line(name)).collect::<Vec<_>>(), "checks": side.checks, "fields": side.fields,
        "different": different.collect::<Vec<_>>(), "left_out": side.different.len().saturating_sub(MOST),
        "judged": side.judged.as_ref().map(|said| json!({
            "verdict": said.verdict, "why": said.why.iter().map(|why| clean(why)).collect::<Vec<_>>(),
            "fields": said.fields.iter().map(|(name, said)| json!({ "name": line(name), "said": said })).collect::<Vec<_>>(),
        })),
        "html": (!side.text.is_empty()).then(|| prose::html(&side.text)),
    })
}

fn short(text: &str) -> String {
    let text = line(text);
    let short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() { short + "…" } else { short }
}
