//! What the verbs print, and how they fail: the one way to the terminal beside the front ends of a run. Whatever passes here
//! holds no secret that is known.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::Write;
use std::sync::OnceLock;

use serde_json::Value;

use crate::error::{Code, Exit, Failure, Result};
use crate::host::ui::ending;
use crate::model::redact::Redactor;
use crate::model::text;

/// What knows the secrets of this process. Set once, before anything is printed.
static REDACTOR: OnceLock<Redactor> = OnceLock::new();

/// Says what knows the secrets: a copy of it, which learns what the others do.
pub(super) fn redact(redactor: Redactor) {
    // Whoever came first set the one of this process.
    let _ = REDACTOR.set(redactor);
}

/// Prints one line. Whatever names, paths and texts of others are in it, it stays one line and obeys nobody.
pub(super) fn line(text: impl Display) -> Result<()> {
    print(&text::line(&text.to_string()))
}

/// Prints several lines of nietz's own: what others say in them was made safe line by line, or is set off.
pub(super) fn block(text: impl Display) -> Result<()> {
    print(text::clean(&text.to_string()).trim_end())
}

/// Prints a value as one line of JSON.
pub(super) fn json(value: &Value) -> Result<()> {
    let mut value = value.clone();
    if let Some(redactor) = REDACTOR.get() {
        redactor.value(&mut value);
    }
    print(&text::json(&value.to_string()))
}

/// Prints rows as columns that stand under each other, where there are any.
pub(super) fn table(rows: &[Vec<String>]) -> Result<()> {
    match rows.is_empty() {
        true => Ok(()),
        false => print(columns(rows).trim_end()),
    }
}

/// Tells how the program fails, on standard error.
pub(super) fn failure(failure: &Failure) {
    print_status(&ending::failure(failure, &ending::without_colour));
}

/// Tells what is wrong with the arguments, or the help that they ask for. What stands in arguments is not always
/// typed: a shell puts names of files there, and values of variables.
pub(super) fn arguments(error: &clap::Error) {
    let text = error.render().to_string();
    match text::clean(&without_secrets(&text)) == text {
        // With its colours.
        true => drop(error.print()),
        false => print_status(&text),
    }
}

/// Tells how far something is, or that it is waited for, on standard error.
pub(super) fn print_status(text: &str) {
    // Whoever closed it does not want to read it; the exit status says the rest.
    let _ = std::io::stderr().write_all(text::clean(&without_secrets(text)).as_bytes());
}

fn without_secrets(text: &str) -> Cow<'_, str> {
    REDACTOR.get().map_or(Cow::Borrowed(text), |redactor| redactor.text(text))
}

fn print(text: &str) -> Result<()> {
    match writeln!(std::io::stdout(), "{}", without_secrets(text)) {
        Ok(()) => Ok(()),
        // `nietz runs | head` is no failure.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(Exit::Done as i32),
        Err(error) => Err(Failure::new(Code::DiskFailed, format!("cannot write to standard output: {error}"))),
    }
}

/// A cell is one line, whatever stands in it, and as wide as what is shown of it.
fn cell_text(cell: &str) -> String {
    text::line(&without_secrets(cell)).into_owned()
}

fn columns(rows: &[Vec<String>]) -> String {
    use unicode_width::UnicodeWidthStr;
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| cell_text(cell)).collect()).collect();
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width - cell.width() + 2));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
