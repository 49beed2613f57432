//! Shows what is wrong with a file: one line a fault, a picture of the place, or data for programs.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use serde::Serialize;

use super::check::Fault;
use super::spans::{Place, Spans};
use crate::error::{Code, Failure};
use crate::model::collection::Format;
use crate::model::text::clean;

/// How many faults a failure lists; the file that has more is another kind of file.
const LISTED: usize = 1000;

/// How much of a long line a picture shows, before and after the place.
const BEFORE: usize = 60;
const AFTER: usize = 80;

/// Whether something is wrong, or only worth a remark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Note,
}

/// A fault and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Located {
    pub file: String,
    pub line: usize,
    pub column: usize,
    pub pointer: String,
    pub message: String,
    pub keyword: String,
    pub severity: Severity,
}

impl std::fmt::Display for Located {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}: ", self.file, self.line, self.column)?;
        if !self.pointer.is_empty() {
            write!(f, "{}: ", clean(&self.pointer))?;
        }
        match self.severity {
            Severity::Error => f.write_str(&self.message),
            Severity::Note => write!(f, "note: {}", self.message),
        }
    }
}

impl Located {
    /// Returns the trouble of a text that cannot be read at all.
    pub fn unreadable(file: &str, place: Place, message: impl Into<String>) -> Located {
        let fault = Fault::new("", "syntax", message);
        Located::new(file, place, fault, Severity::Error)
    }

    fn new(file: &str, place: Place, fault: Fault, severity: Severity) -> Located {
        let Fault { pointer, message, keyword } = fault;
        Located { file: file.to_owned(), line: place.line, column: place.column, pointer, message, keyword, severity }
    }
}

/// Finds the faults of a value in the text that it was read from, and sorts them by place.
pub fn locate(faults: Vec<Fault>, severity: Severity, text: &str, format: Format, file: &str) -> Vec<Located> {
    if faults.is_empty() {
        return Vec::new();
    }
    let spans = Spans::find(text, format, faults.iter().map(|fault| fault.pointer.as_str()));
    let mut located: Vec<Located> = faults
        .into_iter()
        .map(|fault| {
            let place = match fault.is_about_key() {
                true => spans.key(&fault.pointer),
                false => spans.value(&fault.pointer),
            };
            Located::new(file, place, fault, severity)
        })
        .collect();
    located.sort_by_key(|fault| (fault.line, fault.column));
    located
}

/// Returns the failure that lists all faults of a file.
pub fn failure(file: &str, faults: &[Located]) -> Failure {
    let message = match faults {
        [fault] => format!("{file} is not valid: {}", fault.message),
        faults => format!("{file} is not valid: it has {} faults", faults.len()),
    };
    let mut failure =
        Failure::new(Code::DocumentInvalid, message).hint("mend the file; `nietz check` shows each place");
    failure.details = faults.iter().take(LISTED).map(Located::to_string).collect();
    if faults.len() > LISTED {
        failure.details.push(format!("and {} more", faults.len() - LISTED));
    }
    failure
}

/// Returns a picture of each fault: the line, a mark under the place, and what is wrong with it.
pub fn render(text: &str, faults: &[Located], colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.decor_style(DecorStyle::Ascii);
    let lines: Vec<&str> = text.lines().collect();
    let pictures: Vec<String> = faults
        .iter()
        .map(|fault| {
            let line = lines.get(fault.line.saturating_sub(1)).copied().unwrap_or_default();
            picture(&renderer, fault, line)
        })
        .collect();
    pictures.join("\n\n")
}

fn picture(renderer: &Renderer, fault: &Located, line: &str) -> String {
    let column = fault.column.saturating_sub(1);
    let skipped = column.saturating_sub(BEFORE);
    // The line is cleaned and cut before it is measured: marks count the bytes of what is shown.
    let shown: String = clean(line).chars().skip(skipped).take(BEFORE + AFTER).collect();
    let shown = shown.replace('\t', " ");
    let start = shown.char_indices().nth(column - skipped).map_or(shown.len(), |(start, _)| start);
    let width = mark(&shown[start..]);
    let level = match fault.severity {
        Severity::Error => Level::ERROR,
        Severity::Note => Level::NOTE,
    };
    let label = if fault.pointer.is_empty() { String::new() } else { clean(&fault.pointer) };
    let snippet = Snippet::source(shown.as_str())
        .path(format!("{}:{}:{}", fault.file, fault.line, fault.column))
        .line_start(fault.line)
        .annotation(AnnotationKind::Primary.span(start..start + width).label(label.as_str()));
    renderer.render(&[level.primary_title(fault.message.as_str()).element(snippet)])
}

/// Returns how many bytes of a line belong to the word or the quoted text that it starts with.
fn mark(rest: &str) -> usize {
    let mut chars = rest.char_indices();
    match chars.next() {
        None => 0,
        Some((_, quote @ ('"' | '\''))) => {
            chars.find(|(_, c)| *c == quote).map_or(rest.trim_end().len(), |(end, _)| end + 1)
        }
        Some((_, first)) => rest
            .find(|c: char| c.is_whitespace() || matches!(c, ':' | ',' | ']' | '}'))
            .filter(|end| *end > 0)
            .unwrap_or(if rest.contains(char::is_whitespace) { first.len_utf8() } else { rest.len() }),
    }
}
