//! How a run ends on the user's screen: one line when it went well, and otherwise what went wrong,
//! what stands behind it, and how to go on. All of it goes to standard error, because standard output
//! is for what the flow said.

use std::fmt::Write as _;
use std::time::Duration;

use crate::error::Failure;
use crate::model::chat::Usage;
use crate::model::event::EndStatus;
use crate::model::text::clean;

/// The parts of `Event::RunEnded` that a person reads.
pub(super) struct Ending<'a> {
    pub(super) status: EndStatus,
    pub(super) failure: Option<&'a Failure>,
    pub(super) usage: Usage,
    pub(super) calls: u64,
    pub(super) elapsed: Duration,
}

/// Returns the lines that end the run, each with its line end; `paint` colours the words that matter.
pub(super) fn text(ending: &Ending<'_>, run: &str, paint: &dyn Fn(Tone, &str) -> String) -> String {
    let mut out = String::new();
    let summary = summary(ending);
    match (ending.status, ending.failure) {
        (EndStatus::Done, _) => {
            let _ = writeln!(out, "{}", paint(Tone::Quiet, &summary));
            return out;
        }
        (_, Some(failure)) => out.push_str(&self::failure(failure, paint)),
        (_, None) => {
            let _ = writeln!(out, "{}", paint(Tone::Quiet, &summary));
        }
    }
    let _ = writeln!(out, "resume with: nietz resume {run}");
    out
}

/// Returns a failure as it is printed wherever nietz ends with one.
pub fn failure(failure: &Failure, paint: &dyn Fn(Tone, &str) -> String) -> String {
    let head = format!("error[{}]:", failure.code.name());
    let mut out = format!("{} {}\n", paint(Tone::Bad, &head), indented(&failure.message));
    for detail in &failure.details {
        // A place in a file, with its line below, looks as it does where compilers show one.
        let _ = match detail.strip_prefix("at ") {
            Some(place) => writeln!(out, "  --> {}", indented(place)),
            None => writeln!(out, "  - {}", indented(detail)),
        };
    }
    if let Some(hint) = &failure.hint {
        let _ = writeln!(out, "{} {}", paint(Tone::Good, "hint:"), indented(hint));
    }
    out
}

/// What a piece of the ending means, for front ends that have colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Bad,
    Good,
    Quiet,
}

/// Returns the text as it is, for front ends without colours.
pub fn plain(_: Tone, text: &str) -> String {
    text.to_owned()
}

/// Cleans a text of several lines (a snippet of the author's code) and sets the later ones off.
fn indented(text: &str) -> String {
    clean(text.trim_end()).replace('\n', "\n  ")
}

fn summary(ending: &Ending<'_>) -> String {
    let how = match ending.status {
        EndStatus::Done => "done in",
        EndStatus::Failed => "failed after",
        EndStatus::Waiting => "waiting after",
        EndStatus::Interrupted => "interrupted after",
    };
    let mut out = format!("{how} {}", duration(ending.elapsed));
    if ending.calls > 0 {
        let noun = if ending.calls == 1 { "call" } else { "calls" };
        let Usage { input, output, .. } = ending.usage;
        let calls = thousands(ending.calls);
        let _ = write!(out, " · {calls} {noun} · {} tokens in, {} out", thousands(input), thousands(output));
    }
    out
}

/// Returns a time in the two units that matter: `4s`, `3m12s`, `1h02m`.
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

    use super::{Ending, duration, plain, text, thousands};
    use crate::error::{Code, Failure};
    use crate::model::chat::Usage;
    use crate::model::event::EndStatus;

    fn ending<'a>(status: EndStatus, failure: Option<&'a Failure>) -> Ending<'a> {
        let usage = Usage { input: 12340, output: 2100, cached: 0 };
        Ending { status, failure, usage, calls: 14, elapsed: Duration::from_secs(192) }
    }

    #[test]
    fn a_good_end_is_one_line() {
        let done = text(&ending(EndStatus::Done, None), "r1", &plain);
        assert_snapshot!(done, @"done in 3m12s · 14 calls · 12,340 tokens in, 2,100 out");
    }

    #[test]
    fn a_bad_end_says_what_why_and_how_to_go_on() {
        let failure = Failure::new(Code::KeyMissing, "no key for openai\u{7}")
            .because("tried OPENAI_API_KEY\nand the configuration")
            .hint("set it");
        let failed = text(&ending(EndStatus::Failed, Some(&failure)), "r1", &plain);
        assert_snapshot!(failed, @r"
        error[key-missing]: no key for openai␇
          - tried OPENAI_API_KEY
          and the configuration
        hint: set it
        resume with: nietz resume r1
        ");
        let interrupted = text(&ending(EndStatus::Interrupted, None), "r1", &plain);
        assert_snapshot!(interrupted, @r"
        interrupted after 3m12s · 14 calls · 12,340 tokens in, 2,100 out
        resume with: nietz resume r1
        ");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!([0, 999, 1000, 1234567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        let times = [4, 60, 3599, 3720].map(|seconds| duration(Duration::from_secs(seconds)));
        assert_eq!(times, ["4s", "1m00s", "59m59s", "1h02m"]);
    }
}
