//! How a comparison is shown: as a table with what differs below it, and as JSON.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::figures::{Compared, Figure, Figures, Preference};
use super::{Base, CompareArgs, OfModel};
use crate::cli::output;
use crate::error::Result;
use crate::model::text::{excerpt, line};

/// The most fields that differ are shown of one model.
const MOST: usize = 20;

/// Returns the interval of a figure as a pair, for JSON.
fn pair(figure: Figure) -> Option<[f64; 2]> {
    figure.interval.map(|(least, most)| [least, most])
}

pub(super) fn json(args: &CompareArgs, all: &[OfModel<'_>]) -> Result<()> {
    let models = all.iter().map(|model| {
        let OfModel { name, figures, compared } = model;
        let [better, ties, worse] = figures.judged;
        json!({
            "model": name, "runs": figures.runs, "done": figures.done, "same": figures.same, "fields": figures.fields,
            "same_texts": figures.same_texts, "texts": figures.texts, "held": figures.held, "checks": figures.checks,
            "share": figures.share.value, "interval": pair(figures.share), "below": model.is_below(args.at_least),
            "dearer": figures.dearer.value, "dearer_interval": pair(figures.dearer),
            "slower": figures.slower.value, "slower_interval": pair(figures.slower),
            "judged": args.judge.as_ref().map(|judge| json!({
                "judge": judge, "better": better, "ties": ties, "worse": worse, "preference": figures.preference.value,
                "interval": pair(figures.preference), "verdict": figures.verdict().map(Preference::name),
                "fields": figures.judged_parts.iter().map(|(name, [better, ties, worse])| {
                    (name.clone(), json!({ "better": better, "ties": ties, "worse": worse }))
                }).collect::<serde_json::Map<_, _>>(),
            })),
            "lost": compared.iter().flat_map(|one| &one.lost).collect::<Vec<_>>(),
            "different": compared.iter().flat_map(|one| &one.different).collect::<Vec<_>>(),
            "statuses": compared.iter().map(|one| &one.status).collect::<Vec<_>>(),
            "each": compared.iter().map(each).collect::<Vec<_>>(),
        })
    });
    output::json(&json!({ "models": models.collect::<Vec<_>>(), "at_least": args.at_least }))
}

fn each(one: &Compared) -> Value {
    json!({
        "run": one.run, "number": one.number, "status": one.status, "same": one.same, "fields": one.fields, "lost": one.lost,
        "different": one.different, "dearer": one.dearer(), "slower": one.slower(),
        "judged": one.judged.as_ref().map(|said| json!({
            "verdict": said.preference.name(), "why": said.why,
            "fields": said.parts.iter().map(|(name, said)| (name.clone(), said.name().into())).collect::<serde_json::Map<_, _>>(),
        })),
    })
}

/// Returns so many of so many; a dash where there are none.
pub(super) fn of(some: usize, all: usize) -> String {
    if all == 0 { "-".to_owned() } else { format!("{some} of {all}") }
}

pub(super) fn times(figure: Figure) -> String {
    let Some(value) = figure.value else { return "-".to_owned() };
    let interval = figure.interval.map(|(least, most)| format!(" ({least:.2} to {most:.2})"));
    format!("{value:.2} ×{}", interval.unwrap_or_default())
}

pub(super) fn share(figures: &Figures) -> String {
    let Some(value) = figures.share.value else { return "-".to_owned() };
    let interval = figures.share.interval.map(|(least, most)| format!(" ({least:.2} to {most:.2})"));
    format!("{value:.2}{}", interval.unwrap_or_default())
}

/// What is beyond chance of a model, as words of the pages' frame (`w`) with figures.
pub(super) fn findings(model: &OfModel<'_>, w: &Value) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let mut lost: Vec<&String> = model.compared.iter().flat_map(|one| &one.lost).collect();
    lost.sort();
    let count = |name: &String| model.compared.iter().filter(|one| one.lost.contains(name)).count();
    let runs = model.compared.len();
    lost.iter().enumerate().filter(|(at, name)| *at == 0 || lost[at - 1] != **name).for_each(|(_, name)| {
        found.push(("lost_check", format!("{} ({})", line(name), of(count(name), runs))));
    });
    let figures = &model.figures;
    let words = |figure: Figure, more, less| {
        figure.beyond(1.0).map(|beyond| if beyond == Ordering::Greater { more } else { less })
    };
    found.extend(words(figures.dearer, "dearer", "cheaper").map(|word| (word, times(figures.dearer))));
    found.extend(words(figures.slower, "slower", "faster").map(|word| (word, times(figures.slower))));
    let [better, ties, worse] = figures.judged;
    if better + ties + worse > 0 {
        let word = match figures.verdict() {
            Some(Preference::Better) => "texts_better",
            Some(_) => "texts_worse",
            None => "texts_no_verdict",
        };
        let interval = figures.preference.interval.map(|(least, most)| format!(" ({least:.2} to {most:.2})"));
        found.push((word, counts(w, [better, ties, worse]) + &interval.unwrap_or_default()));
        let parts = figures.judged_parts.iter();
        let parts: Vec<String> =
            parts.map(|(name, judged)| format!("{}: {}", line(name), counts(w, *judged))).collect();
        found.extend((!parts.is_empty()).then(|| ("text_fields", parts.join("; "))));
    }
    let over = model.compared.iter().filter(|one| one.status != "done").count();
    found.extend((over > 0).then(|| ("not_done", of(over, runs))));
    found
}

/// Returns how often a judge found better, neither, and worse, in words.
fn counts(w: &Value, judged: [usize; 3]) -> String {
    let named = |(name, count): (&str, usize)| format!("{} {count}", w[name].as_str().unwrap_or(name));
    ["better", "alike", "worse"].into_iter().zip(judged).map(named).collect::<Vec<_>>().join(", ")
}

pub(super) fn table(args: &CompareArgs, bases: &[Base], all: &[OfModel<'_>]) -> Result<()> {
    let w = crate::report::words("en")?;
    let head = ["MODEL", "DONE", "FIELDS SAME", "CHECKS HOLD", "TEXTS", "SHARE (95 %)", "COST (95 %)", "TIME (95 %)"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for OfModel { name, figures, .. } in all {
        let [better, ties, worse] = figures.judged;
        let texts = match args.judge {
            Some(_) if better + ties + worse > 0 => format!("{better} better, {ties} alike, {worse} worse"),
            _ if figures.texts == 0 => "-".to_owned(),
            _ => format!("{} the same", of(figures.same_texts, figures.texts)),
        };
        rows.push(vec![
            line(name).into_owned(),
            of(figures.done, figures.runs),
            of(figures.same, figures.fields),
            of(figures.held, figures.checks),
            texts,
            share(figures),
            times(figures.dearer),
            times(figures.slower),
        ]);
    }
    output::table(&rows)?;
    for model in all {
        let name = line(model.name);
        for (word, figure) in findings(model, &w) {
            output::line(format!("{name}: {}: {figure}", w[word].as_str().unwrap_or(word)))?;
        }
        let different: Vec<_> = model.compared.iter().flat_map(|one| &one.different).collect();
        for (place, was, is) in different.iter().take(MOST) {
            let (was, is) = (excerpt(&was.to_string()), excerpt(&is.to_string()));
            output::line(format!("{name}: {}: {was}, now {is}", line(place)))?;
        }
        if different.len() > MOST {
            output::line(format!("{name}: … and {} more fields", different.len() - MOST))?;
        }
        let over = model.compared.iter().filter(|one| one.status != "done");
        over.map(|one| format!("{name}: {} is not done: {}", one.run, one.status)).try_for_each(output::line)?;
    }
    let unread = bases.iter().filter(|base| base.recorded.session.flow.judged_checks().next().is_some()).count();
    if args.judge.is_none() && (unread > 0 || all.iter().any(|model| model.figures.same_texts < model.figures.texts)) {
        output::line("longer texts and the flow's questions were not judged: --judge MODEL names who reads them")?;
    }
    Ok(())
}
