//! The filters, tests and functions that templates have. All filters that make texts share one budget, so that no
//! chain of them, and no list of their results, can fill the memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use minijinja::{Environment, Error, ErrorKind, State, Value, filters, tests};

type FilterResult<T> = std::result::Result<T, Error>;

/// How many bytes of text the filters of one rendering may still make.
#[derive(Clone)]
struct TextBudget(Arc<AtomicUsize>);

impl TextBudget {
    fn take(&self, bytes: usize) -> FilterResult<()> {
        let left = self.0.load(Ordering::Relaxed).checked_sub(bytes);
        let left = left.ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "the text gets too long"))?;
        self.0.store(left, Ordering::Relaxed);
        Ok(())
    }
}

/// Adds all of them to an environment; filters may make `bytes` of text altogether.
pub(super) fn add(environment: &mut Environment<'_>, bytes: usize) {
    let budget = TextBudget(Arc::new(AtomicUsize::new(bytes)));
    let text = |make: fn(&str) -> String| {
        let budget = budget.clone();
        move |text: &str| -> FilterResult<String> {
            // Changing the case of a letter can make three of it.
            budget.take(text.len().saturating_mul(3))?;
            Ok(make(text))
        }
    };
    environment.add_filter("upper", text(str::to_uppercase));
    environment.add_filter("lower", text(str::to_lowercase));
    environment.add_filter("trim", text(|text| text.trim().to_owned()));
    environment.add_filter("capitalize", text(capitalize));
    environment.add_filter("replace", {
        let budget = budget.clone();
        move |text: &str, from: &str, to: &str| -> FilterResult<String> {
            let count = if from.is_empty() { text.len() + 1 } else { text.matches(from).count() };
            budget.take(text.len().saturating_add(count.saturating_mul(to.len())))?;
            Ok(text.replace(from, to))
        }
    });
    environment.add_filter("indent", {
        let budget = budget.clone();
        move |text: &str, width: usize| -> FilterResult<String> {
            budget.take(text.len().saturating_add(text.lines().count().saturating_mul(width)))?;
            let pad = format!("\n{}", " ".repeat(width));
            Ok(text.lines().collect::<Vec<_>>().join(&pad))
        }
    });
    environment.add_filter("join", {
        let budget = budget.clone();
        move |items: &Value, separator: Option<&str>| -> FilterResult<String> {
            let mut out = String::new();
            for (index, item) in items.try_iter()?.enumerate() {
                let separator = if index > 0 { separator.unwrap_or_default() } else { "" };
                let item = value_text(&item, &budget)?;
                budget.take(separator.len())?;
                out.push_str(separator);
                out.push_str(&item);
            }
            Ok(out)
        }
    });
    environment.add_filter("string", {
        let budget = budget.clone();
        move |value: &Value| value_text(value, &budget)
    });
    environment.add_filter("tojson", {
        let budget = budget.clone();
        move |value: &Value| -> FilterResult<String> {
            let mut out = BudgetWriter { text: Vec::new(), budget: &budget };
            let written = serde_json::to_writer(&mut out, value);
            written.map_err(|error| Error::new(ErrorKind::InvalidOperation, error.to_string()))?;
            Ok(String::from_utf8_lossy(&out.text).into_owned())
        }
    });
    environment.add_filter("list", {
        let budget = budget.clone();
        move |state: &State<'_, '_>, value: Value| -> FilterResult<Value> {
            budget.take(value.len().unwrap_or(0).saturating_mul(32))?;
            filters::list(state, value)
        }
    });
    environment.add_filter("default", filters::default);
    environment.add_filter("d", filters::default);
    environment.add_filter("length", filters::length);
    environment.add_filter("count", filters::length);
    environment.add_filter("first", filters::first);
    environment.add_filter("last", filters::last);
    environment.add_filter("round", filters::round);
    environment.add_filter("int", filters::int);
    environment.add_filter("abs", filters::abs);
    environment.add_filter("items", filters::items);
    environment.add_test("defined", tests::is_defined);
    environment.add_test("undefined", tests::is_undefined);
    environment.add_test("none", tests::is_none);
    environment.add_test("string", tests::is_string);
    environment.add_test("number", tests::is_number);
    environment.add_test("boolean", tests::is_boolean);
    environment.add_test("sequence", tests::is_sequence);
    environment.add_test("mapping", tests::is_mapping);
    environment.add_test("even", tests::is_even);
    environment.add_test("odd", tests::is_odd);
    environment.add_test("divisibleby", tests::is_divisibleby);
    environment.add_test("in", tests::is_in);
    environment.add_test("eq", tests::is_eq);
    environment.add_test("startingwith", tests::is_startingwith);
    environment.add_test("endingwith", tests::is_endingwith);
    environment.add_function("range", range);
}

fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Returns a value as text. The size of the text is not known before, so it is written piece by piece.
fn value_text(value: &Value, budget: &TextBudget) -> FilterResult<String> {
    if let Some(text) = value.as_str() {
        budget.take(text.len())?;
        return Ok(text.to_owned());
    }
    struct Pieces<'a>(String, &'a TextBudget);
    impl std::fmt::Write for Pieces<'_> {
        fn write_str(&mut self, piece: &str) -> std::fmt::Result {
            self.1.take(piece.len()).map_err(|_| std::fmt::Error)?;
            self.0.push_str(piece);
            Ok(())
        }
    }
    let mut out = Pieces(String::new(), budget);
    std::fmt::write(&mut out, format_args!("{value}"))
        .map_err(|_| Error::new(ErrorKind::InvalidOperation, "the text gets too long"))?;
    Ok(out.0)
}

struct BudgetWriter<'a> {
    text: Vec<u8>,
    budget: &'a TextBudget,
}

impl std::io::Write for BudgetWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.budget.take(bytes.len()).map_err(std::io::Error::other)?;
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn range(first: i64, second: Option<i64>) -> FilterResult<Vec<i64>> {
    let (from, to) = second.map_or((0, first), |second| (first, second));
    if to.saturating_sub(from) > 10_000 {
        return Err(Error::new(ErrorKind::InvalidOperation, "range of more than 10000 numbers"));
    }
    Ok((from..to).collect())
}
