//! Shows what is wrong with a file: one line for each violation, a picture of the place, or data for programs.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};
use serde::Serialize;

use super::check::Violation;
use super::position::TextPosition;
use super::spans::Spans;
use crate::error::{Code, Failure};
use crate::model::collection::Format;
use crate::model::text;

/// How many violations a failure lists; a file that has more is probably another kind of file.
const LISTED: usize = 1000;

/// The longest line, in bytes, that is drawn in a picture; the renderer takes long for longer ones.
const DRAWN: usize = 20_000;

/// Whether something is wrong, or only worth a remark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Note,
}

/// A violation and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LocatedViolation {
    pub file: String,
    pub line: usize,
    pub column: usize,
    pub pointer: String,
    pub message: String,
    pub keyword: String,
    pub severity: Severity,
}

impl std::fmt::Display for LocatedViolation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}: ", self.file, self.line, self.column)?;
        if !self.pointer.is_empty() {
            write!(f, "{}: ", text::clean(&self.pointer))?;
        }
        match self.severity {
            Severity::Error => f.write_str(&self.message),
            Severity::Note => write!(f, "note: {}", self.message),
        }
    }
}

impl LocatedViolation {
    /// Returns the violation for a text that cannot be read at all.
    pub fn unreadable(file: &str, place: TextPosition, message: impl Into<String>) -> LocatedViolation {
        let violation = Violation::new("", "syntax", message);
        LocatedViolation::new(file, place, violation, Severity::Error)
    }

    /// Returns a remark on a file as a whole.
    pub(crate) fn remark(file: &str, keyword: &str, message: impl Into<String>) -> LocatedViolation {
        let violation = Violation::new("", keyword, message);
        LocatedViolation::new(file, TextPosition { line: 1, column: 1 }, violation, Severity::Note)
    }

    fn new(file: &str, place: TextPosition, violation: Violation, severity: Severity) -> LocatedViolation {
        let Violation { pointer, message, keyword } = violation;
        LocatedViolation {
            file: file.to_owned(),
            line: place.line,
            column: place.column,
            pointer,
            message,
            keyword,
            severity,
        }
    }
}

/// Finds the places of a value's violations in the text that the value was read from, and sorts them by place.
pub(crate) fn locate(
    violations: Vec<Violation>,
    severity: Severity,
    text: &str,
    format: Format,
    file: &str,
) -> Vec<LocatedViolation> {
    if violations.is_empty() {
        return Vec::new();
    }
    let spans = Spans::find(text, format, violations.iter().map(|violation| violation.pointer.as_str()));
    let mut located: Vec<LocatedViolation> = violations
        .into_iter()
        .map(|violation| {
            let place = match violation.is_about_key() {
                true => spans.key(&violation.pointer),
                false => spans.value(&violation.pointer),
            };
            LocatedViolation::new(file, place, violation, severity)
        })
        .collect();
    located.sort_by_key(|violation| (violation.line, violation.column));
    located
}

/// Returns the failure that lists all violations of a file.
pub(crate) fn failure(file: &str, violations: &[LocatedViolation]) -> Failure {
    let message = match violations {
        [violation] => format!("{file} is not valid: {}", violation.message),
        violations => format!("{file} is not valid: it has {} faults", violations.len()),
    };
    let mut failure =
        Failure::new(Code::DocumentInvalid, message).hint("mend the file; `nietz check` shows each place");
    failure.details = violations.iter().take(LISTED).map(LocatedViolation::to_string).collect();
    if violations.len() > LISTED {
        failure.details.push(format!("and {} more", violations.len() - LISTED));
    }
    failure
}

/// Returns a picture of each violation: the line, a mark under the place, and what is wrong with it.
pub(crate) fn render(text: &str, violations: &[LocatedViolation], colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.decor_style(DecorStyle::Ascii);
    let lines: Vec<&str> = text.lines().collect();
    let pictures: Vec<String> = violations
        .iter()
        .map(|violation| {
            let line = lines.get(violation.line.saturating_sub(1)).copied();
            picture(&renderer, violation, line)
        })
        .collect();
    pictures.join("\n\n")
}

fn picture(renderer: &Renderer, violation: &LocatedViolation, line: Option<&str>) -> String {
    let level = match violation.severity {
        Severity::Error => Level::ERROR,
        Severity::Note => Level::NOTE,
    };
    let line = line.filter(|line| line.len() <= DRAWN && line.chars().count() + 1 >= violation.column);
    // Where no picture can be drawn, the field is named in words.
    let (file, field, reason) =
        (text::line(&violation.file), text::line(&violation.pointer), text::line(&violation.message));
    let message = match line {
        None if !field.is_empty() => format!("{field}: {reason}"),
        _ => reason.into_owned(),
    };
    let mut title = level.primary_title(message.as_str());
    // A code that `nietz explain` knows is named; a keyword of a schema is not.
    if Code::parse(&violation.keyword).is_some() {
        title = title.id(violation.keyword.as_str());
    }
    let Some(line) = line else {
        let origin = Origin::path(&*file).line(violation.line).char_column(violation.column);
        return renderer.render(&[title.element(origin)]);
    };
    // The line is cleaned before it is measured: the mark is counted in bytes of what is shown.
    let shown = text::clean(line).replace('\t', " ");
    let start = shown.char_indices().nth(violation.column.saturating_sub(1)).map_or(shown.len(), |(start, _)| start);
    let mark = start..start + mark(&shown[start..]);
    let snippet = Snippet::source(shown.as_str())
        .path(&*file)
        .line_start(violation.line)
        .annotation(AnnotationKind::Primary.span(mark).label(&*field));
    renderer.render(&[title.element(snippet)])
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

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a: 1\nlist:\n  - id: 1\n  - {id: x, more: 2}\n\"b/c\": \u{1b}[2J\n";

    fn located(text: &str, format: Format) -> Vec<LocatedViolation> {
        let violations = vec![
            Violation::new("/list/1/more", "additionalProperties", "\"more\" is not known here"),
            Violation::new("/list/1/id", "type", "must be an integer; found \"x\""),
            Violation::new("", "required", "is missing required \"z\""),
            Violation::new("/b~1c", "type", "must be a list"),
        ];
        locate(violations, Severity::Error, text, format, "f")
    }

    #[test]
    fn faults_are_found_in_yaml_and_json_alike() {
        let json = "{\n \"a\": 1, \"list\": [\n  {\"id\": 1},\n  {\"id\": \"x\", \"more\": 2}],\n \"b/c\": 2}";
        let lines =
            |found: Vec<LocatedViolation>| found.iter().map(LocatedViolation::to_string).collect::<Vec<_>>().join("\n");
        insta::assert_snapshot!(lines(located(&TEXT.replace('\u{1b}', "x"), Format::Yaml)), @r#"
        f:1:1: is missing required "z"
        f:4:10: /list/1/id: must be an integer; found "x"
        f:4:13: /list/1/more: "more" is not known here
        f:5:8: /b~1c: must be a list
        "#);
        insta::assert_snapshot!(lines(located(json, Format::Json)), @r#"
        f:1:1: is missing required "z"
        f:4:10: /list/1/id: must be an integer; found "x"
        f:4:15: /list/1/more: "more" is not known here
        f:5:9: /b~1c: must be a list
        "#);
    }

    #[test]
    fn a_picture_shows_the_place_and_obeys_no_escape() {
        let mut found =
            vec![LocatedViolation::unreadable("f", TextPosition { line: 5, column: 8 }, "control characters")];
        found[0].severity = Severity::Note;
        found.extend(located(&TEXT.replace('\u{1b}', "x"), Format::Yaml).into_iter().skip(1).take(1));
        insta::assert_snapshot!(render(TEXT, &found, false), @r#"
        note: control characters
         --> f:5:8
          |
        5 | "b/c": ␛[2J
          |        ^^^^

        error: must be an integer; found "x"
         --> f:4:10
          |
        4 |   - {id: x, more: 2}
          |          ^ /list/1/id
        "#);
    }

    #[test]
    fn a_place_far_in_a_long_line_or_outside_of_the_text_is_no_trouble() {
        for (items, is_drawn) in [(200, true), (10_000, false)] {
            let text = format!("[{}\"wrong\"]", "\"éé\", ".repeat(items));
            let violation = Violation::new(format!("/{items}"), "type", "x");
            let found = locate(vec![violation], Severity::Error, &text, Format::Json, "f");
            let shown = render(&text, &found, false);
            assert!(shown.contains(&format!("f:1:{}", 2 + 6 * items)) && shown.len() < 1000, "{shown}");
            assert_eq!(shown.contains("\"wrong\""), is_drawn, "{shown}");
            assert!(shown.contains(&format!("/{items}")), "the field is named: {shown}");
        }
        let outside = LocatedViolation::unreadable("f", TextPosition { line: 99, column: 99 }, "x");
        assert!(render("a", &[outside], false).contains("f:99:99"));
    }

    #[test]
    fn the_data_for_programs_keeps_its_names() {
        let found = LocatedViolation::unreadable("f", TextPosition { line: 1, column: 2 }, "m");
        assert_eq!(
            serde_json::to_string(&found).unwrap(),
            r#"{"file":"f","line":1,"column":2,"pointer":"","message":"m","keyword":"syntax","severity":"error"}"#
        );
    }
}
