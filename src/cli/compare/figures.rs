//! What a comparison comes to.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::report::RunHistory;

/// A text that is longer, in letters, or has several lines is no field: two of them are hardly ever the same.
const FIELD: usize = 60;
/// How often the pairs are drawn anew for an interval.
const DRAWS: usize = 2_000;

/// A check of a flow, by its name, and whether it held.
pub(super) type CheckHeld = (String, bool);

/// One run beside the recorded one.
#[derive(Debug, Default)]
pub(super) struct Compared {
    pub status: String,
    /// The fields that are the same, and all.
    pub same: usize,
    pub fields: usize,
    /// The fields that differ: where, what was recorded, and what it is now.
    pub different: Vec<(String, Value, Value)>,
    /// The longer texts that are the same, and all.
    pub same_texts: usize,
    pub texts: usize,
    /// The checks that hold, all that held in the recorded run, and those of them that do not hold any more.
    pub held: usize,
    pub checks: usize,
    pub lost: Vec<String>,
    /// US dollars and milliseconds of calls: recorded, and now.
    pub cost: [Option<f64>; 2],
    pub milliseconds: [u64; 2],
}

impl Compared {
    pub(super) fn of(
        recorded: &RunHistory,
        other: &RunHistory,
        (before, after): (Vec<CheckHeld>, Vec<CheckHeld>),
    ) -> Compared {
        let mut compared = Compared { status: other.status.clone(), ..Compared::default() };
        let (mut was, mut is) = (BTreeMap::new(), BTreeMap::new());
        flatten("", &recorded.result, &mut was);
        flatten("", &other.result, &mut is);
        let places: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
        let nothing = Value::Null;
        for place in places {
            let (before, after) = (was.get(place).unwrap_or(&nothing), is.get(place).unwrap_or(&nothing));
            let (count, same) = match is_text(before) || is_text(after) {
                true => (&mut compared.texts, &mut compared.same_texts),
                false => (&mut compared.fields, &mut compared.same),
            };
            *count += 1;
            *same += usize::from(before == after);
            if before != after && !is_text(before) && !is_text(after) {
                compared.different.push((place.clone(), before.clone(), after.clone()));
            }
        }
        let after: BTreeMap<String, bool> = after.into_iter().collect();
        for (name, _) in before.into_iter().filter(|(_, held)| *held) {
            compared.checks += 1;
            match after.get(&name) {
                Some(true) => compared.held += 1,
                Some(false) | None => compared.lost.push(name),
            }
        }
        compared.cost = [recorded.paid(), other.paid()];
        compared.milliseconds = [recorded.call_time(), other.call_time()];
        compared
    }

    fn good(&self) -> usize {
        self.same + self.held
    }

    fn all(&self) -> usize {
        self.fields + self.checks
    }
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.contains('\n') || text.chars().count() > FIELD)
}

fn flatten(place: &str, value: &Value, out: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            members.iter().for_each(|(name, member)| flatten(&format!("{place}/{name}"), member, out));
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().enumerate().for_each(|(index, item)| flatten(&format!("{place}/{index}"), item, out));
        }
        leaf => drop(out.insert(place.to_owned(), leaf.clone())),
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
    /// How much dearer and slower it is than what was recorded.
    pub dearer: Option<f64>,
    pub slower: Option<f64>,
    /// Between what the share lies, 95 of 100 times, where several runs were compared.
    pub interval: Option<(f64, f64)>,
}

impl Figures {
    pub(super) fn of(all: &[Compared]) -> Figures {
        let sum = |count: fn(&Compared) -> usize| all.iter().map(count).sum();
        let costs = |at: usize| all.iter().map(|one| one.cost[at]).sum::<Option<f64>>();
        let times = |at: usize| all.iter().map(|one| one.milliseconds[at]).sum::<u64>() as f64;
        let ratio = |was: f64, is: f64| (was > 0.0).then(|| is / was);
        Figures {
            done: all.iter().filter(|one| one.status == "done").count(),
            runs: all.len(),
            same: sum(|one| one.same),
            fields: sum(|one| one.fields),
            same_texts: sum(|one| one.same_texts),
            texts: sum(|one| one.texts),
            held: sum(|one| one.held),
            checks: sum(|one| one.checks),
            dearer: costs(0).zip(costs(1)).and_then(|(was, is)| ratio(was, is)),
            slower: ratio(times(0), times(1)),
            interval: interval(all),
        }
    }

    /// The share of fields that are the same and of checks that hold; none where there is neither.
    pub(super) fn share(&self) -> Option<f64> {
        let all = self.fields + self.checks;
        (all > 0).then(|| (self.same + self.held) as f64 / all as f64)
    }
}

/// Returns the interval of the share by drawing the pairs anew: always the same for the same pairs.
fn interval(all: &[Compared]) -> Option<(f64, f64)> {
    if all.len() < 3 || all.iter().all(|one| one.all() == 0) {
        return None;
    }
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut draw = || {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        &all[((mixed ^ (mixed >> 31)) % all.len() as u64) as usize]
    };
    let mut shares: Vec<f64> = (0..DRAWS)
        .filter_map(|_| {
            let (good, whole) = (0..all.len())
                .map(|_| draw())
                .fold((0, 0), |(good, whole), one| (good + one.good(), whole + one.all()));
            (whole > 0).then(|| good as f64 / whole as f64)
        })
        .collect();
    shares.sort_by(f64::total_cmp);
    let at = |part: f64| shares.get((shares.len() as f64 * part) as usize).copied();
    at(0.025).zip(at(0.975))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(result: Value) -> RunHistory {
        RunHistory { status: "done".to_owned(), result, ..RunHistory::default() }
    }

    #[test]
    fn fields_are_held_against_each_other_and_texts_are_only_counted() {
        let long = "x".repeat(FIELD + 1);
        let recorded = run(json!({ "choice": "a", "score": 3, "text": long, "list": ["p", "q"] }));
        let other = run(json!({ "choice": "b", "score": 3, "text": "y".repeat(FIELD + 1), "list": ["p"] }));
        let checks = |held: bool| vec![("short".to_owned(), true), ("minority".to_owned(), held)];
        let compared = Compared::of(&recorded, &other, (checks(true), checks(false)));
        assert_eq!((compared.same, compared.fields, compared.same_texts, compared.texts), (2, 4, 0, 1));
        assert_eq!((compared.held, compared.checks, compared.lost.as_slice()), (1, 2, &["minority".to_owned()][..]));
        let places: Vec<&str> = compared.different.iter().map(|(place, ..)| place.as_str()).collect();
        assert_eq!(places, ["/choice", "/list/1"]);
        let figures = Figures::of(&[compared]);
        assert_eq!((figures.share(), figures.interval), (Some(0.5), None));
    }

    #[test]
    fn an_interval_is_as_wide_as_the_runs_differ() {
        let one = |same| Compared { same, fields: 10, ..Compared::default() };
        assert_eq!(interval(&[one(9), one(9), one(9), one(9)]), Some((0.9, 0.9)));
        let (least, most) = interval(&[one(0), one(10), one(5), one(10)]).unwrap();
        assert!(least < 0.4 && most > 0.8, "{least} {most}");
        assert_eq!(interval(&[one(0), one(10), one(5), one(10)]), Some((least, most)), "it is the same each time");
    }
}
