//! A comparison as a page.

use super::figures::Compared;
use super::shown::{findings, of, share, times};
use super::{Base, CompareArgs, OfModel};
use crate::error::Result;
use crate::model::budget;
use crate::report::{self, ComparedModel, ComparedRun, ComparedSide, Comparison, Judgement};
use crate::run::machine::Machine;

pub(super) fn write(machine: &Machine, args: &CompareArgs, bases: &[Base], all: &[OfModel<'_>]) -> Result<String> {
    let w = report::words(&machine.lang())?;
    let models = all.iter().map(|model| {
        let figures = &model.figures;
        let [better, ties, worse] = figures.judged;
        let judged = if args.judge.is_some() { Some(format!("{better} / {ties} / {worse}")) } else { None };
        ComparedModel {
            name: model.name.to_owned(),
            below: model.is_below(args.at_least),
            share: figures.share.value,
            cells: vec![
                ("done", of(figures.done, figures.runs)),
                ("fields_same", of(figures.same, figures.fields)),
                ("checks_hold", of(figures.held, figures.checks)),
                ("texts", judged.unwrap_or_else(|| of(figures.same_texts, figures.texts))),
                ("share", share(figures)),
                ("money", times(figures.dearer)),
                ("lasted", times(figures.slower)),
            ],
            findings: findings(model, &w),
        }
    });
    let models: Vec<ComparedModel> = models.collect();
    let runs = bases.iter().map(|base| {
        let recorded = ComparedSide {
            name: None,
            status: base.outcome.status.clone(),
            money: base.outcome.cost.map(budget::dollars_with_sign),
            milliseconds: base.outcome.milliseconds,
            text: base.outcome.text(&base.outcome.text_fields()),
            ..ComparedSide::default()
        };
        let id = &base.recorded.id;
        let forks = all.iter().flat_map(|model| {
            let own = model.compared.iter().filter(|one| one.run == *id);
            own.map(|one| side(model.name, args.repeat, one))
        });
        ComparedRun {
            id: id.clone(),
            flow: base.recorded.history.flow.clone(),
            topic: base.recorded.history.topic().to_owned(),
            model: base.recorded.history.model.clone(),
            sides: std::iter::once(recorded).chain(forks).collect(),
        }
    });
    report::comparison(&Comparison {
        lang: machine.lang(),
        judge: args.judge.clone(),
        at_least: args.at_least,
        models,
        runs: runs.collect(),
    })
}

fn side(model: &str, repeat: u32, one: &Compared) -> ComparedSide {
    ComparedSide {
        name: Some(if repeat > 1 { format!("{model} ({})", one.number) } else { model.to_owned() }),
        status: one.status.clone(),
        money: one.cost[1].map(budget::dollars_with_sign),
        milliseconds: one.milliseconds[1],
        lost: one.lost.clone(),
        checks: (one.checks > 0).then(|| of(one.held, one.checks)),
        different: one.different.clone(),
        fields: (one.fields > 0).then(|| of(one.same, one.fields)),
        judged: one.judged.as_ref().map(|said| Judgement {
            verdict: said.preference.name(),
            why: said.why.clone(),
            fields: said.parts.iter().map(|(name, said)| (name.clone(), said.name())).collect(),
        }),
        text: one.text.clone(),
    }
}
