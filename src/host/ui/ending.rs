//! The text at the end of a run: what it used, by model and persona, and, if it failed, what went wrong, why, and how to
//! go on. Front ends write it to standard error, because standard output is for the messages of the flow.

use std::fmt::Write as _;
use std::time::Duration;

use crate::error::{Code, Failure};
use crate::model::budget::{self, Spent};
use crate::model::chat::Usage;
use crate::model::event::EndStatus;
use crate::model::text::clean;
use unicode_width::UnicodeWidthStr;

/// The parts of `Event::RunEnded` that a person reads.
pub(super) struct RunEnding<'a> {
    pub(super) status: EndStatus,
    pub(super) failure: Option<&'a Failure>,
    pub(super) spent: &'a [Spent],
    pub(super) elapsed: Duration,
    /// The run's language.
    pub(super) lang: &'a str,
}

/// What is said of an ending in one language. Failures are told in English.
struct Words {
    done: &'static str,
    failed: &'static str,
    waiting: &'static str,
    interrupted: &'static str,
    call: &'static str,
    calls: &'static str,
    /// Behind the tokens that went in and those that came out.
    tokens_in: &'static str,
    tokens_out: &'static str,
    thinking: &'static str,
    saved: &'static str,
    no_price: &'static str,
    price_unknown: &'static str,
    free: &'static str,
    resume: &'static str,
    /// Between the thousands of a number.
    thousands: &'static str,
}

const ENGLISH: Words = Words {
    done: "done in",
    failed: "failed after",
    waiting: "waiting after",
    interrupted: "interrupted after",
    call: "call",
    calls: "calls",
    tokens_in: "tokens in",
    tokens_out: "out",
    thinking: "of them thinking",
    saved: "caching saved",
    no_price: "no price is known for",
    price_unknown: "price unknown",
    free: "free",
    resume: "resume with:",
    thousands: ",",
};

const FRENCH: Words = Words {
    done: "terminé en",
    failed: "échec après",
    waiting: "en attente après",
    interrupted: "interrompu après",
    call: "appel",
    calls: "appels",
    tokens_in: "jetons envoyés",
    tokens_out: "reçus",
    thinking: "pour réfléchir",
    saved: "le cache a épargné",
    no_price: "aucun prix connu pour",
    price_unknown: "prix inconnu",
    free: "gratuit",
    resume: "pour reprendre :",
    thousands: "\u{202f}",
};

/// Returns the words of a language; English where there are no others.
fn words(lang: &str) -> &'static Words {
    if lang == "fr" { &FRENCH } else { &ENGLISH }
}

/// Returns the lines at the end of a run, each with its line end; `paint` colours the important words.
pub(super) fn text(ending: &RunEnding<'_>, run: &str, paint: &dyn Fn(Tone, &str) -> String) -> String {
    let (mut out, words) = (String::new(), words(ending.lang));
    let failure = ending.failure.filter(|_| ending.status != EndStatus::Done);
    if let Some(failure) = failure {
        out.push_str(&self::failure(failure, paint));
    }
    // A failure before any call needs no summary.
    if failure.is_none() || !ending.spent.is_empty() {
        for line in std::iter::once(summary(ending, words)).chain(table(ending.spent, words)) {
            let _ = writeln!(out, "{}", paint(Tone::Quiet, &line));
        }
    }
    // A command that only looks, and a run that is over for good, have no name here.
    let can_go_on = failure.is_none_or(|failure| helps_to_resume(failure, !ending.spent.is_empty()));
    if ending.status != EndStatus::Done && can_go_on && !run.is_empty() {
        let _ = writeln!(out, "{} nietz resume {run}", words.resume);
    }
    out
}

/// Tells whether resuming can come to more than the same failure. Wrong params stay wrong, a run that found no repository to
/// begin with is not kept, and a mistake in a flow is mended by who can: its line is shown to nobody else.
fn helps_to_resume(failure: &Failure, has_spent: bool) -> bool {
    let is_the_users_flow = failure.place.as_ref().is_none_or(|place| place.line.is_none() || place.excerpt.is_some());
    match failure.code {
        Code::Usage => false,
        Code::GitMissing => has_spent,
        Code::FlowInvalid | Code::ModuleNotFound | Code::RequestInvalid | Code::TemplateInvalid | Code::Internal => {
            is_the_users_flow
        }
        _ => true,
    }
}

/// Returns the text of a failure, as nietz prints it wherever it ends with a failure.
pub fn failure(failure: &Failure, paint: &dyn Fn(Tone, &str) -> String) -> String {
    let head = format!("error[{}]:", failure.code.name());
    let mut out = format!("{} {}\n", paint(Tone::Bad, &head), indented(&failure.message));
    if let Some(place) = &failure.place {
        let _ = writeln!(out, "  --> {}", indented(&place.to_string()));
    }
    for detail in &failure.details {
        let _ = writeln!(out, "  - {}", indented(detail));
    }
    if let Some(hint) = failure.hint.clone().or_else(|| for_its_author(failure)) {
        let _ = writeln!(out, "{} {}", paint(Tone::Good, "hint:"), indented(&hint));
    }
    out
}

/// What Luau says of a call of something that there is not; it does not name what was called.
const NO_FUNCTION: &str = "attempt to call a nil value";

/// Returns what helps the author of a flow, where the failure itself says nothing of that.
fn for_its_author(failure: &Failure) -> Option<String> {
    failure.place.as_ref()?.excerpt.as_ref()?;
    match failure.code {
        Code::FlowError if failure.message == NO_FUNCTION => {
            Some("`nietz check` names functions that are misspelt".to_owned())
        }
        Code::RequestInvalid => {
            let (name, _) = failure.message.split_once(": ")?;
            let (module, function) = name.split_once('.')?;
            let is_name =
                |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            (is_name(module) && is_name(function)).then(|| format!("what it takes: nietz docs {name}"))
        }
        _ => None,
    }
}

/// The meaning of a piece of text, for front ends with colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Bad,
    Good,
    Quiet,
}

/// Returns the text unchanged, for front ends without colours.
pub fn without_colour(_: Tone, text: &str) -> String {
    text.to_owned()
}

/// Cleans a text, such as a snippet of the author's code, and indents all lines but the first.
fn indented(text: &str) -> String {
    clean(text.trim_end()).replace('\n', "\n  ")
}

fn summary(ending: &RunEnding<'_>, words: &Words) -> String {
    let how = match ending.status {
        EndStatus::Done => words.done,
        EndStatus::Failed => words.failed,
        EndStatus::Waiting => words.waiting,
        EndStatus::Interrupted => words.interrupted,
    };
    let mut out = format!("{how} {}", duration(ending.elapsed));
    let calls: u64 = ending.spent.iter().map(|spent| spent.calls).sum();
    if calls > 0 {
        let sum = |part: fn(&Usage) -> u64| {
            let sum = ending.spent.iter().fold(0, |sum: u64, spent| sum.saturating_add(part(&spent.usage)));
            number(sum, words)
        };
        let (input, output) = (sum(|usage| usage.input), sum(|usage| usage.output));
        let _ =
            write!(out, " · {} · {input} {}, {output} {}", call_count(calls, words), words.tokens_in, words.tokens_out);
        if ending.spent.iter().any(|spent| spent.usage.reasoning > 0) {
            let _ = write!(out, " ({} {})", sum(|usage| usage.reasoning), words.thinking);
        }
        let _ = match budget::cost(ending.spent) {
            Some(cost) => match budget::saved(ending.spent) {
                Some(saved) => {
                    write!(out, " · {} ({} {})", money(Some(cost), words), words.saved, money(Some(saved), words))
                }
                None => write!(out, " · {}", money(Some(cost), words)),
            },
            None => {
                let mut models: Vec<&str> =
                    ending.spent.iter().filter(|spent| spent.cost.is_none()).map(|spent| &*spent.model).collect();
                models.dedup();
                write!(out, " · {} {}", words.no_price, clean(&models.join(", ")))
            }
        };
    }
    out
}

/// The most rows of what each used; of more, each model has one.
const MOST_ROWS: usize = 12;

/// Returns what was used of each model, whoever spoke.
fn by_model(spent: &[Spent]) -> Vec<Spent> {
    let mut models: Vec<Spent> = Vec::new();
    for one in spent {
        match models.iter_mut().find(|model| model.model == one.model) {
            Some(model) => {
                model.calls += one.calls;
                model.usage += one.usage;
                model.cost = model.cost.zip(one.cost).map(|(before, cost)| before + cost);
            }
            None => models.push(Spent { label: String::new(), ..one.clone() }),
        }
    }
    models
}

/// The widest table that names the one model of all rows in each of them: what fits a usual terminal.
const WIDEST: usize = 79;

/// Returns what each persona used of each model, in columns; nothing if there is only one row, as in the summary.
fn table(spent: &[Spent], words: &Words) -> Vec<String> {
    let models = (spent.len() > MOST_ROWS).then(|| by_model(spent));
    let spent = models.as_deref().unwrap_or(spent);
    if spent.len() < 2 {
        return Vec::new();
    }
    let lines = columns(spent, words, true);
    let is_one = spent.iter().all(|other| other.model == spent[0].model && !other.label.is_empty());
    match is_one && lines.iter().any(|line| line.width() > WIDEST) {
        true => columns(spent, words, false),
        false => lines,
    }
}

/// Returns the rows of the table; `models` says whether they name the model beside who spoke.
fn columns(spent: &[Spent], words: &Words, models: bool) -> Vec<String> {
    let priced = spent.iter().any(|spent| spent.cost.is_some());
    let rows: Vec<[String; 5]> = spent
        .iter()
        .map(|spent| {
            let Usage { input, output, .. } = spent.usage;
            // The summary has said of what; here is no room for it.
            let into = words.tokens_in.rsplit(' ').next().unwrap_or_default();
            let [input, output] =
                [format!("{} {into}", number(input, words)), format!("{} {}", number(output, words), words.tokens_out)];
            let what = match clean(&spent.label) {
                label if label.is_empty() => clean(&spent.model),
                label if !models => label,
                label => format!("{label} ({})", clean(&spent.model)),
            };
            let cost = if priced { money(spent.cost, words) } else { String::new() };
            [what, call_count(spent.calls, words), input, output, cost]
        })
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
    let widths: [usize; 5] = std::array::from_fn(width);
    let padded = |row: &[String; 5]| {
        let mut line = format!("  {}{}", row[0], " ".repeat(widths[0] - row[0].width()));
        for (cell, width) in row.iter().zip(widths).skip(1) {
            let _ = write!(line, "  {}{cell}", " ".repeat(width - cell.width()));
        }
        line.truncate(line.trim_end().len());
        line
    };
    rows.iter().map(padded).collect()
}

fn call_count(calls: u64, words: &Words) -> String {
    format!("{} {}", number(calls, words), if calls == 1 { words.call } else { words.calls })
}

fn number(count: u64, words: &Words) -> String {
    thousands(count).replace(',', words.thousands)
}

fn money(cost: Option<f64>, words: &Words) -> String {
    match cost {
        None => words.price_unknown.to_owned(),
        Some(0.0) => words.free.to_owned(),
        Some(cost) => budget::dollars_with_sign(cost),
    }
}

/// Returns a duration in its two largest units: `4s`, `3m12s`, `1h02m`.
pub(super) fn duration(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

/// Returns a count with commas between its thousands.
pub(super) fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use insta::assert_snapshot;

    use super::{RunEnding, duration, text, thousands, without_colour};
    use crate::error::{Code, Failure};
    use crate::model::budget::Spent;
    use crate::model::chat::Usage;
    use crate::model::event::EndStatus;

    fn spent(model: &str, label: &str, calls: u64, cost: Option<f64>) -> Spent {
        let usage = Usage { input: 12340, output: 2100, ..Usage::default() };
        Spent { model: model.to_owned(), label: label.to_owned(), calls, usage, cost, saved: 0.0 }
    }

    fn ending<'a>(status: EndStatus, failure: Option<&'a Failure>, spent: &'a [Spent]) -> RunEnding<'a> {
        RunEnding { status, failure, spent, elapsed: Duration::from_secs(192), lang: "en" }
    }

    #[test]
    fn a_good_end_is_one_line() {
        let done = |spent: &[Spent]| text(&ending(EndStatus::Done, None, spent), "r1", &without_colour);
        let local = done(&[spent("local/small", "model", 14, Some(0.0))]);
        assert_snapshot!(local, @"done in 3m12s · 14 calls · 12,340 tokens in, 2,100 out · free");
        assert_snapshot!(done(&[]), @"done in 3m12s");
        let cached = |saved| done(&[Spent { saved, ..spent("a/big", "Max", 14, Some(0.5)) }]);
        assert_snapshot!(cached(1.25), @"done in 3m12s · 14 calls · 12,340 tokens in, 2,100 out · $0.50 (caching saved $1.25)");
        assert_snapshot!(cached(-0.25), @"done in 3m12s · 14 calls · 12,340 tokens in, 2,100 out · $0.50");
    }

    #[test]
    fn it_is_told_in_the_language_of_the_run() {
        let spent = [spent("a/big", "Max", 1, Some(1.2)), spent("a/small", "Eva", 2, Some(0.5))];
        let ending = RunEnding { lang: "fr", ..ending(EndStatus::Waiting, None, &spent) };
        assert_snapshot!(text(&ending, "r1", &without_colour).replace('\u{202f}', "_"), @r"
        en attente après 3m12s · 3 appels · 24_680 jetons envoyés, 4_200 reçus · $1.70
          Max (a/big)     1 appel  12_340 envoyés  2_100 reçus  $1.20
          Eva (a/small)  2 appels  12_340 envoyés  2_100 reçus  $0.50
        pour reprendre : nietz resume r1
        ");
    }

    #[test]
    fn what_was_thought_is_told_as_a_part_of_what_came() {
        let mut thinking = spent("openai/deep", "model", 2, None);
        thinking.usage.reasoning = 1800;
        let done = text(&ending(EndStatus::Done, None, &[thinking]), "r1", &without_colour);
        assert_snapshot!(done, @"done in 3m12s · 2 calls · 12,340 tokens in, 2,100 out (1,800 of them thinking) · no price is known for openai/deep");
    }

    #[test]
    fn of_many_who_spoke_each_model_has_a_row() {
        let model = |at: usize| if at.is_multiple_of(2) { "a/big" } else { "a/small" };
        let many: Vec<Spent> = (0..20).map(|at| spent(model(at), &format!("goal {at}"), 3, Some(0.5))).collect();
        let done = text(&ending(EndStatus::Done, None, &many), "r1", &without_colour);
        assert_snapshot!(done, @r"
        done in 3m12s · 60 calls · 246,800 tokens in, 42,000 out · $10.00
          a/big    30 calls  123,400 in  21,000 out  $5.00
          a/small  30 calls  123,400 in  21,000 out  $5.00
        ");
        let one: Vec<Spent> = (0..20).map(|at| spent("a/big", &format!("goal {at}"), 3, Some(0.5))).collect();
        assert_eq!(text(&ending(EndStatus::Done, None, &one), "r1", &without_colour).lines().count(), 1);
    }

    #[test]
    fn a_table_that_would_be_wider_than_a_terminal_names_its_one_model_in_no_row() {
        let of = |label: &str| spent("anthropic/claude-sonnet-4-5", label, 12, Some(0.1234));
        let done = text(
            &ending(EndStatus::Done, None, &[of("Looking for what must be known"), of("QA")]),
            "r1",
            &without_colour,
        );
        assert_snapshot!(done, @r"
        done in 3m12s · 24 calls · 24,680 tokens in, 4,200 out · $0.25
          Looking for what must be known  12 calls  12,340 in  2,100 out  $0.12
          QA                              12 calls  12,340 in  2,100 out  $0.12
        ");
    }

    #[test]
    fn what_was_used_is_told_by_model_and_persona() {
        let both = [spent("a/big", "Éléonore", 1, Some(1.2)), spent("a/small", "Max", 1200, Some(0.004))];
        let done = text(&ending(EndStatus::Done, None, &both), "r1", &without_colour);
        assert_snapshot!(done, @r"
        done in 3m12s · 1,201 calls · 24,680 tokens in, 4,200 out · $1.20
          Éléonore (a/big)       1 call  12,340 in  2,100 out    $1.20
          Max (a/small)     1,200 calls  12,340 in  2,100 out  $0.0040
        ");
        let unknown = [spent("a/big", "Max", 1, Some(1.2)), spent("lab/qwen", "Max", 1, None)];
        let done = text(&ending(EndStatus::Done, None, &unknown), "r1", &without_colour);
        assert_snapshot!(done, @r"
        done in 3m12s · 2 calls · 24,680 tokens in, 4,200 out · no price is known for lab/qwen
          Max (a/big)     1 call  12,340 in  2,100 out          $1.20
          Max (lab/qwen)  1 call  12,340 in  2,100 out  price unknown
        ");
    }

    #[test]
    fn a_bad_end_says_what_why_and_how_to_go_on() {
        let failure = Failure::new(Code::KeyMissing, "no key for openai\u{7}")
            .because("tried OPENAI_API_KEY\nand the configuration")
            .hint("set it");
        let used = [spent("a/big", "Max", 14, Some(0.5))];
        let failed = text(&ending(EndStatus::Failed, Some(&failure), &used), "r1", &without_colour);
        assert_snapshot!(failed, @r"
        error[key-missing]: no key for openai␇
          - tried OPENAI_API_KEY
          and the configuration
        hint: set it
        failed after 3m12s · 14 calls · 12,340 tokens in, 2,100 out · $0.50
        resume with: nietz resume r1
        ");
        let interrupted = text(&ending(EndStatus::Interrupted, None, &used), "r1", &without_colour);
        assert_snapshot!(interrupted, @r"
        interrupted after 3m12s · 14 calls · 12,340 tokens in, 2,100 out · $0.50
        resume with: nietz resume r1
        ");
    }

    #[test]
    fn nobody_is_told_to_resume_a_run_that_was_called_wrongly() {
        let failure = Failure::new(Code::Usage, "--fast and --slow exclude each other").hint("give one of them");
        let failed = text(&ending(EndStatus::Failed, Some(&failure), &[]), "r1", &without_colour);
        assert_snapshot!(failed, @r"
        error[usage]: --fast and --slow exclude each other
        hint: give one of them
        ");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!([0, 999, 1000, 1234567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        let times = [4, 60, 3599, 3720].map(|seconds| duration(Duration::from_secs(seconds)));
        assert_eq!(times, ["4s", "1m00s", "59m59s", "1h02m"]);
    }
}
