//! What a comparison comes to.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::draws;
use super::outcome::{Outcome, is_text};

/// How many pairs of texts there are at least where one model's are said to be better. Fewer of the same verdict come about by
/// chance more often than one time in twenty.
const LEAST_PAIRS: usize = 6;

/// What a judge said of the texts of a pair: the new ones are better, worse, or neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preference {
    Better,
    Tie,
    Worse,
}

impl Preference {
    pub(super) fn name(self) -> &'static str {
        match self {
            Preference::Better => "better",
            Preference::Tie => "tie",
            Preference::Worse => "worse",
        }
    }

    fn points(self) -> f64 {
        match self {
            Preference::Better => 1.0,
            Preference::Tie => 0.0,
            Preference::Worse => -1.0,
        }
    }
}

/// What a judge said of a pair of texts.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    pub preference: Preference,
    /// Its reasons, in the order of its calls.
    pub why: Vec<String>,
    /// What it said of each field, where there are several.
    pub parts: Vec<(String, Preference)>,
}

impl Judged {
    pub(super) fn without_a_call(preference: Preference) -> Judged {
        Judged { preference, why: Vec::new(), parts: Vec::new() }
    }
}

/// One run beside the recorded one.
#[derive(Debug, Default)]
pub(super) struct Compared {
    /// The recorded run, and which of its forks onto this model it is.
    pub run: String,
    pub number: u32,
    pub status: String,
    /// The fields that are the same, and all.
    pub same: usize,
    pub fields: usize,
    /// The fields that differ: where, what was recorded, and what it is now.
    pub different: Vec<(String, Value, Value)>,
    /// The longer texts that are the same, and all.
    pub same_texts: usize,
    pub texts: usize,
    /// What the judge said of the longer texts, if there is one.
    pub judged: Option<Judged>,
    /// The checks that hold, all that held in the recorded run, and those of them that do not hold any more.
    pub held: usize,
    pub checks: usize,
    pub lost: Vec<String>,
    /// US dollars and milliseconds of calls: recorded, and now.
    pub cost: [Option<f64>; 2],
    pub milliseconds: [u64; 2],
    /// Its longer texts.
    pub text: String,
}

impl Compared {
    pub(super) fn of(recorded: &Outcome, other: &Outcome) -> Compared {
        let fields: BTreeSet<&str> = recorded.text_fields().union(&other.text_fields()).copied().collect();
        let (status, text) = (other.status.clone(), other.text(&fields));
        let mut compared = Compared { status, text, ..Compared::default() };
        let places: BTreeSet<&String> = recorded.values.keys().chain(other.values.keys()).collect();
        let nothing = Value::Null;
        for place in places {
            let value = |of: &'_ Outcome| of.values.get(place).unwrap_or(&nothing).clone();
            let (before, after) = (value(recorded), value(other));
            let are_texts = is_text(&before) || is_text(&after);
            let (count, same) = match are_texts {
                true => (&mut compared.texts, &mut compared.same_texts),
                false => (&mut compared.fields, &mut compared.same),
            };
            *count += 1;
            *same += usize::from(before == after);
            if before != after && !are_texts {
                compared.different.push((place.clone(), before, after));
            }
        }
        let after: BTreeMap<&str, bool> = other.checks.iter().map(|(name, held)| (name.as_str(), *held)).collect();
        for (name, _) in recorded.checks.iter().filter(|(_, held)| *held) {
            compared.checks += 1;
            match after.get(name.as_str()) {
                Some(true) => compared.held += 1,
                Some(false) | None => compared.lost.push(name.clone()),
            }
        }
        compared.cost = [recorded.cost, other.cost];
        compared.milliseconds = [recorded.milliseconds, other.milliseconds];
        compared
    }

    /// How much dearer it was.
    pub(super) fn dearer(&self) -> Option<f64> {
        dearer(&[self])
    }

    /// How much slower its calls were.
    pub(super) fn slower(&self) -> Option<f64> {
        slower(&[self])
    }
}

/// A figure, and between what it lies 95 of 100 times, where several runs were compared.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Figure {
    pub value: Option<f64>,
    pub interval: Option<(f64, f64)>,
}

impl Figure {
    /// Tells whether it is above (`Greater`) or below what would make no difference, beyond chance.
    pub(super) fn beyond(&self, no_difference: f64) -> Option<std::cmp::Ordering> {
        let (least, most) = self.interval?;
        match (least > no_difference, most < no_difference) {
            (true, _) => Some(std::cmp::Ordering::Greater),
            (_, true) => Some(std::cmp::Ordering::Less),
            _ => None,
        }
    }
}

/// The sums of all comparisons with one model.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub done: usize,
    pub runs: usize,
    pub same: usize,
    pub fields: usize,
    pub same_texts: usize,
    pub texts: usize,
    pub held: usize,
    pub checks: usize,
    /// How often the judge found its texts better, neither, and worse; in the order of [`Preference`].
    pub judged: [usize; 3],
    /// The least of three shares: of fields that are the same, of checks that hold, of judged texts that are no worse.
    pub share: Figure,
    /// The same of each field with texts, where there are several.
    pub judged_parts: BTreeMap<String, [usize; 3]>,
    /// From -1, where its texts were worse each time, to 1.
    pub preference: Figure,
    /// How much dearer and slower it is than what was recorded.
    pub dearer: Figure,
    pub slower: Figure,
}

impl Figures {
    pub(super) fn of(all: &[Compared]) -> Figures {
        let each: Vec<&Compared> = all.iter().collect();
        let sum = |count: fn(&Compared) -> usize| all.iter().map(count).sum();
        let groups = groups(all);
        let figure = |figure: fn(&[&Compared]) -> Option<f64>| Figure {
            value: figure(&each),
            interval: draws::interval(&groups, figure),
        };
        let judged =
            |wanted| all.iter().filter_map(|one| one.judged.as_ref()).filter(|said| said.preference == wanted).count();
        let mut judged_parts: BTreeMap<String, [usize; 3]> = BTreeMap::new();
        for (name, preference) in all.iter().filter_map(|one| one.judged.as_ref()).flat_map(|said| &said.parts) {
            judged_parts.entry(name.clone()).or_default()[*preference as usize] += 1;
        }
        Figures {
            done: all.iter().filter(|one| one.status == "done").count(),
            runs: all.len(),
            same: sum(|one| one.same),
            fields: sum(|one| one.fields),
            same_texts: sum(|one| one.same_texts),
            texts: sum(|one| one.texts),
            held: sum(|one| one.held),
            checks: sum(|one| one.checks),
            judged: [Preference::Better, Preference::Tie, Preference::Worse].map(judged),
            judged_parts,
            share: figure(share),
            preference: figure(preference),
            dearer: figure(dearer),
            slower: figure(slower),
        }
    }

    /// Returns whether the judge found this model's texts better or worse; neither where chance alone may have done that.
    pub(super) fn verdict(&self) -> Option<Preference> {
        if self.judged.iter().sum::<usize>() < LEAST_PAIRS {
            return None;
        }
        self.preference.beyond(0.0).map(|beyond| match beyond {
            std::cmp::Ordering::Greater => Preference::Better,
            _ => Preference::Worse,
        })
    }
}

/// Returns the pairs of each recorded run; each pair by itself where there are too few runs to tell how they differ.
fn groups(all: &[Compared]) -> Vec<Vec<&Compared>> {
    let mut by_run: BTreeMap<&str, Vec<&Compared>> = BTreeMap::new();
    all.iter().for_each(|one| by_run.entry(&one.run).or_default().push(one));
    match by_run.len() > 2 {
        true => by_run.into_values().collect(),
        false => all.iter().map(|one| vec![one]).collect(),
    }
}

fn share(all: &[&Compared]) -> Option<f64> {
    let part = |some: fn(&Compared) -> usize, of: fn(&Compared) -> usize| {
        let whole: usize = all.iter().map(|one| of(one)).sum();
        (whole > 0).then(|| all.iter().map(|one| some(one)).sum::<usize>() as f64 / whole as f64)
    };
    let no_worse =
        |one: &Compared| usize::from(one.judged.as_ref().is_some_and(|said| said.preference != Preference::Worse));
    let parts = [
        part(|one| one.same, |one| one.fields),
        part(|one| one.held, |one| one.checks),
        part(no_worse, |one| usize::from(one.judged.is_some())),
    ];
    parts.into_iter().flatten().min_by(f64::total_cmp)
}

fn preference(all: &[&Compared]) -> Option<f64> {
    let points: Vec<f64> =
        all.iter().filter_map(|one| one.judged.as_ref()).map(|said| said.preference.points()).collect();
    (!points.is_empty()).then(|| points.iter().sum::<f64>() / points.len() as f64)
}

fn dearer(all: &[&Compared]) -> Option<f64> {
    let sum = |at: usize| all.iter().map(|one| one.cost[at]).sum::<Option<f64>>();
    sum(0).zip(sum(1)).and_then(|(was, is)| ratio(was, is))
}

fn slower(all: &[&Compared]) -> Option<f64> {
    let sum = |at: usize| all.iter().map(|one| one.milliseconds[at]).sum::<u64>() as f64;
    ratio(sum(0), sum(1))
}

fn ratio(was: f64, is: f64) -> Option<f64> {
    (was > 0.0).then(|| is / was)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::outcome::flatten;
    use super::*;

    fn outcome(result: &Value, checks: &[(&str, bool)]) -> Outcome {
        let mut values = BTreeMap::new();
        flatten("", result, &mut values);
        let checks = checks.iter().map(|(name, held)| ((*name).to_owned(), *held)).collect();
        Outcome { status: "done".to_owned(), values, checks, ..Outcome::default() }
    }

    #[test]
    fn fields_are_held_against_each_other_and_texts_are_only_counted() {
        let long = "x".repeat(61);
        let recorded = json!({ "choice": "a", "score": 3, "text": long, "list": ["p", "q"] });
        let other = json!({ "choice": "b", "score": 3, "text": "y".repeat(61), "list": ["p"] });
        let recorded = outcome(&recorded, &[("short", true), ("minority", true), ("never", false)]);
        let compared = Compared::of(&recorded, &outcome(&other, &[("short", true), ("minority", false)]));
        assert_eq!((compared.same, compared.fields, compared.same_texts, compared.texts), (2, 4, 0, 1));
        assert_eq!((compared.held, compared.checks, compared.lost.as_slice()), (1, 2, &["minority".to_owned()][..]));
        let places: Vec<&str> = compared.different.iter().map(|(place, ..)| place.as_str()).collect();
        assert_eq!(places, ["/choice", "/list/1"]);
        let figures = Figures::of(&[compared]);
        assert_eq!((figures.share.value, figures.share.interval), (Some(0.5), None));
    }

    #[test]
    fn a_few_verdicts_are_none_and_many_that_go_both_ways_are_none_either() {
        let said = |said: Preference, run: usize| Compared {
            run: run.to_string(),
            judged: Some(Judged::without_a_call(said)),
            ..Compared::default()
        };
        let all = |verdicts: &[Preference]| {
            let all: Vec<Compared> = verdicts.iter().enumerate().map(|(run, verdict)| said(*verdict, run)).collect();
            Figures::of(&all)
        };
        use Preference::{Better, Tie, Worse};
        assert_eq!(all(&[Worse; 5]).verdict(), None, "five tails in a row are no news");
        assert_eq!(all(&[Worse; 6]).verdict(), Some(Worse));
        assert_eq!(all(&[Better, Better, Better, Better, Better, Better, Tie]).verdict(), Some(Better));
        let mixed = all(&[Worse, Better, Tie, Worse, Better, Worse, Tie, Better]);
        assert_eq!((mixed.verdict(), mixed.judged, mixed.share.value), (None, [3, 2, 3], Some(0.625)));
        assert_eq!(all(&[Tie; 20]).verdict(), None);
    }

    #[test]
    fn what_one_lost_is_not_made_up_for_by_many_fields() {
        let one = Compared { same: 400, fields: 400, held: 1, checks: 2, ..Compared::default() };
        assert_eq!(Figures::of(&[one]).share.value, Some(0.5));
    }
}
