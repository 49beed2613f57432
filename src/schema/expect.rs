//! Checks what documents usually are: numbers without gaps, an end that is not before its start, parts that are no more
//! than the whole, rows in their order. A deviation is a remark of `nietz check`, never an error.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, FixedOffset, NaiveDate};
use serde_json::Value;

use super::check::Violation;
use super::report::{self, LocatedViolation, Severity};
use super::source;
use crate::model::collection::{Expectation, Format};
use crate::model::pointer::{Pointer, PointerMatch};
use crate::model::text::excerpt;

/// Returns a remark for each place of a document that is not as expected.
pub(crate) fn of_document(expects: &[Expectation], document: &Value) -> Vec<Violation> {
    expects.iter().flat_map(|expected| unmet(expected, "", document)).collect()
}

/// Returns the remarks on a file of rows, with their lines.
pub(crate) fn of_file(expects: &[Expectation], text: &str, file: &str) -> Vec<LocatedViolation> {
    let rows: Vec<Value> = text.lines().map(|line| source::read(line, Format::Jsonl).unwrap_or_default()).collect();
    let lines: Vec<&str> = text.lines().collect();
    let mut remarks = Vec::new();
    for mut violation in of_rows(expects, rows) {
        let Some((index, place)) = violation.pointer.strip_prefix('/').and_then(|rest| rest.split_once('/')) else {
            continue;
        };
        let Ok(index) = index.parse::<usize>() else { continue };
        violation.pointer = format!("/{place}");
        for mut located in report::locate(vec![violation], Severity::Note, lines[index], Format::Jsonl, file) {
            located.line = index + 1;
            remarks.push(located);
        }
    }
    remarks.sort_by_key(|located| (located.line, located.column));
    remarks
}

/// Returns the remarks on the rows of one file; their pointers begin with the index of the row, from 0.
fn of_rows(expects: &[Expectation], rows: Vec<Value>) -> Vec<Violation> {
    let rows = Value::Array(rows);
    expects.iter().flat_map(|expected| unmet(expected, "/*", &rows)).collect()
}

/// Tells whether a row is before another row that it refers to, by their values at the same place.
pub(crate) fn is_before(row: &Value, other: &Value) -> bool {
    Measure::of(row).zip(Measure::of(other)).is_some_and(|(row, other)| row.is_below(&other))
}

fn unmet(expected: &Expectation, prefix: &str, value: &Value) -> Vec<Violation> {
    let spots = |at: &str| Pointer::new(&format!("{prefix}{at}")).matches(value);
    match expected {
        Expectation::Numbered { at, within } => {
            groups(spots(at), within, spots).iter().flat_map(|group| gaps(group)).collect()
        }
        Expectation::Rising { at, within } => {
            groups(spots(at), within, spots).iter().flat_map(|group| falls(group)).collect()
        }
        Expectation::Ordered { first, second } => reversed(&spots(first), &spots(second)),
        // Only a caller that has the other rows can check this.
        Expectation::Follows { .. } => Vec::new(),
    }
}

/// What the places of a group share: the indexes that lead to their list, and their items' values at `within`.
type Group = (Vec<usize>, Vec<Option<String>>);

/// Splits places by the list that they are in, and by the values of their items at the places of `within`.
fn groups<'v>(
    spots: Vec<PointerMatch<'v>>,
    within: &[String],
    at: impl Fn(&str) -> Vec<PointerMatch<'v>>,
) -> Vec<Vec<PointerMatch<'v>>> {
    let by_items = |spots: Vec<PointerMatch<'v>>| -> HashMap<Vec<usize>, String> {
        spots.into_iter().map(|spot| (spot.items, spot.value.to_string())).collect()
    };
    let marks: Vec<HashMap<Vec<usize>, String>> = within.iter().map(|place| by_items(at(place))).collect();
    let mut groups: BTreeMap<Group, Vec<PointerMatch<'v>>> = BTreeMap::new();
    for spot in spots {
        let list = spot.items[..spot.items.len().saturating_sub(1)].to_vec();
        let common = marks.iter().map(|marks| marks.get(&spot.items).cloned()).collect();
        groups.entry((list, common)).or_default().push(spot);
    }
    groups.into_values().collect()
}

fn gaps(group: &[PointerMatch<'_>]) -> Vec<Violation> {
    let mut numbers: Vec<(u64, &PointerMatch<'_>)> =
        group.iter().filter_map(|spot| Some((spot.value.as_u64()?, spot))).collect();
    numbers.sort_by_key(|(number, _)| *number);
    // A number that occurs twice takes the place of another: the collection's rules report that.
    if numbers.iter().zip(numbers.iter().skip(1)).any(|(one, next)| one.0 == next.0) {
        return Vec::new();
    }
    let mut before = 0;
    let mut violations = Vec::new();
    for (number, spot) in numbers {
        if number > before + 1 {
            let message = match before {
                0 => format!("{number} is the first, and 1 is missing"),
                _ => format!("{before} to {number} leaves a gap"),
            };
            violations.push(Violation::new(spot.pointer.as_str(), "numbered", message));
        }
        before = number;
    }
    violations
}

fn falls(group: &[PointerMatch<'_>]) -> Vec<Violation> {
    let pairs = group.iter().zip(group.iter().skip(1));
    let fall = |(before, spot): (&PointerMatch<'_>, &PointerMatch<'_>)| {
        is_before(spot.value, before.value).then(|| {
            let (own, other) = (display_value(spot.value), display_value(before.value));
            Violation::new(spot.pointer.as_str(), "rising", format!("{own} comes behind {other}, and is before it"))
        })
    };
    pairs.filter_map(fall).collect()
}

fn reversed(firsts: &[PointerMatch<'_>], seconds: &[PointerMatch<'_>]) -> Vec<Violation> {
    let by_items: HashMap<&[usize], &PointerMatch<'_>> =
        firsts.iter().map(|first| (first.items.as_slice(), first)).collect();
    let mut violations = Vec::new();
    for second in seconds {
        // A first place outside a list belongs to every item of the list.
        for first in (0..=second.items.len()).filter_map(|length| by_items.get(&second.items[..length])) {
            let (Some(from), Some(to)) = (Measure::of(first.value), Measure::of(second.value)) else { continue };
            if !to.is_below(&from) {
                continue;
            }
            let name = first.pointer.rsplit('/').next().unwrap_or_default();
            let word = if matches!(to, Measure::Number(_)) { "less than" } else { "before" };
            let message = format!(
                "{} is {word} {}, which is {}",
                display_value(second.value),
                excerpt(name),
                display_value(first.value)
            );
            violations.push(Violation::new(second.pointer.as_str(), "ordered", message));
        }
    }
    violations
}

fn display_value(value: &Value) -> String {
    match value {
        Value::String(text) => excerpt(text),
        other => other.to_string(),
    }
}

/// A value that can be compared.
enum Measure {
    Number(f64),
    Time(DateTime<FixedOffset>),
    Day(NaiveDate),
}

impl Measure {
    fn of(value: &Value) -> Option<Measure> {
        match value {
            Value::Number(number) => number.as_f64().map(Measure::Number),
            Value::String(text) => {
                let time = DateTime::parse_from_rfc3339(text).map(Measure::Time);
                time.or_else(|_| text.parse().map(Measure::Day)).ok()
            }
            _ => None,
        }
    }

    /// Tells whether this value is below another one of its kind; a day and a time compare by their days.
    fn is_below(&self, other: &Measure) -> bool {
        match (self, other) {
            (Measure::Number(one), Measure::Number(other)) => one < other,
            (Measure::Time(one), Measure::Time(other)) => one < other,
            (Measure::Day(one), Measure::Day(other)) => one < other,
            (Measure::Time(time), Measure::Day(day)) => time.date_naive() < *day,
            (Measure::Day(day), Measure::Time(time)) => *day < time.date_naive(),
            (Measure::Number(_), _) | (_, Measure::Number(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(violations: Vec<Violation>) -> Vec<String> {
        violations.iter().map(Violation::to_string).collect()
    }

    fn text(text: &str) -> String {
        text.to_owned()
    }

    #[test]
    fn what_is_not_as_expected_is_told_with_its_place() {
        let document = json!({
            "from": "2026-01-09T12:00:00+02:00", "to": "2026-01-09T09:59:59Z", "day": "2026-01-09",
            "turns": [{"n": 2, "at": 3}, {"n": 6, "at": 3}, {"n": 4, "at": 1}, {"n": 5, "at": 2}],
            "twice": [{"n": 1}, {"n": 1}, {"n": 3}],
            "tries": [{"of": 1, "n": 1, "passed": 3, "total": 2}, {"of": 2, "n": 1, "passed": 1, "total": 1},
                      {"of": 1, "n": 3}],
        });
        let pair = |first: &str, second: &str| Expectation::Ordered { first: text(first), second: text(second) };
        let expects = [
            pair("/from", "/to"),
            pair("/to", "/from"),
            pair("/day", "/to"),
            pair("/to", "/absent"),
            pair("/tries/*/passed", "/tries/*/total"),
            Expectation::Numbered { at: text("/turns/*/n"), within: Vec::new() },
            Expectation::Numbered { at: text("/twice/*/n"), within: Vec::new() },
            Expectation::Numbered { at: text("/tries/*/n"), within: vec![text("/tries/*/of")] },
            Expectation::Rising { at: text("/turns/*/at"), within: Vec::new() },
        ];
        assert_eq!(
            texts(of_document(&expects, &document)),
            [
                "/to: 2026-01-09T09:59:59Z is before from, which is 2026-01-09T12:00:00+02:00",
                "/tries/0/total: 2 is less than passed, which is 3",
                "/turns/0/n: 2 is the first, and 1 is missing",
                "/turns/2/n: 2 to 4 leaves a gap",
                "/tries/2/n: 1 to 3 leaves a gap",
                "/turns/2/at: 1 comes behind 3, and is before it",
            ]
        );
    }

    #[test]
    fn rows_are_one_list() {
        let rows = [json!({"id": 1, "of": 1}), json!({"id": 3, "of": 2}), Value::Null, json!({"id": 2, "of": 1})];
        let expects = [
            Expectation::Numbered { at: text("/id"), within: Vec::new() },
            Expectation::Rising { at: text("/id"), within: Vec::new() },
            Expectation::Numbered { at: text("/id"), within: vec![text("/of")] },
        ];
        assert_eq!(
            texts(of_rows(&expects, rows.to_vec())),
            ["/3/id: 2 comes behind 3, and is before it", "/1/id: 3 is the first, and 1 is missing"]
        );
    }
}
