//! Prints the output and the failures of the verbs. Only this module and the front ends of a run write to the terminal.
//! Known secrets are redacted from everything that is printed here.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::cli::columns;
use crate::error::{Code, Exit, Failure, Result};
use crate::host::ui::{self, ending, fit};
use crate::model::redact::Redactor;
use crate::model::text;

/// The redactor that knows the secrets of this process. It is set once, before anything is printed.
static REDACTOR: OnceLock<Redactor> = OnceLock::new();

/// Whether a program reads standard output as events of a run.
static FOR_A_PROGRAM: AtomicBool = AtomicBool::new(false);

/// Says that a program reads events from standard output: it is told there, too, why no run began.
pub(super) fn for_a_program() {
    FOR_A_PROGRAM.store(true, Ordering::Relaxed);
}

/// Sets the redactor of all output. Clones share what they know, so secrets that are learned later are redacted, too.
pub(super) fn redact(redactor: Redactor) {
    // A second call changes nothing: the first redactor stays.
    let _ = REDACTOR.set(redactor);
}

/// Prints one line. Foreign names, paths and texts in it can neither break the line nor control the terminal.
pub(super) fn line(text: impl Display) -> Result<()> {
    let text = text.to_string();
    let text = text::line(&text);
    match ui::output_width() {
        Some(width) => print(&fit::lines(&text, width)),
        None => print(&text),
    }
}

/// Prints several lines of nietz's own. The caller has already escaped foreign text in them, or set it apart.
pub(super) fn block(text: impl Display) -> Result<()> {
    print(text::clean(&text.to_string()).trim_end())
}

/// Prints Markdown of nietz's own: laid out at a terminal, and as it is in a pipe.
pub(super) fn prose(markdown: &str, environment: &BTreeMap<String, String>) -> Result<()> {
    match ui::laid_out(&without_secrets(markdown), environment) {
        Some(shown) => written(&shown),
        None => block(markdown),
    }
}

/// Prints a value as one line of JSON.
pub(super) fn json(value: &Value) -> Result<()> {
    let mut value = value.clone();
    if let Some(redactor) = REDACTOR.get() {
        redactor.value(&mut value);
    }
    print(&text::json(&value.to_string()))
}

/// Prints rows as aligned columns; prints nothing if there are no rows.
pub(super) fn table(rows: &[Vec<String>]) -> Result<()> {
    print_rows(&cells(rows))
}

/// Returns all cells as [`cell_text`] does. Secrets are searched for in all of them together first: hardly ever there is one.
fn cells(rows: &[Vec<String>]) -> Vec<Vec<String>> {
    let mut all = String::with_capacity(rows.iter().flatten().map(|cell| cell.len() + 1).sum());
    for cell in rows.iter().flatten() {
        all.push_str(cell);
        all.push('\n');
    }
    let shown = match without_secrets(&all) {
        Cow::Borrowed(_) => |cell: &String| text::line(cell).into_owned(),
        Cow::Owned(_) => |cell: &String| cell_text(cell),
    };
    rows.iter().map(|row| row.iter().map(shown).collect()).collect()
}

fn print_rows(cells: &[Vec<String>]) -> Result<()> {
    match cells.is_empty() {
        true => Ok(()),
        false => print(columns::text(cells, ui::output_width()).trim_end()),
    }
}

/// Prints rows as [`table`], in which the last column gets what is left of a terminal's width, and at least `least` columns;
/// where no terminal limits it, `most` columns.
pub(super) fn table_within(rows: &[Vec<String>], width: Option<usize>, (least, most): (usize, usize)) -> Result<()> {
    use unicode_width::UnicodeWidthStr;
    let mut rows = cells(rows);
    let last = rows.iter().map(Vec::len).max().unwrap_or(0).saturating_sub(1);
    let widest =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max().unwrap_or(0);
    let taken: usize = (0..last).map(|column| widest(column) + 2).sum();
    let room = width.map_or(most, |width| width.saturating_sub(taken).max(least));
    for cell in rows.iter_mut().filter_map(|row| row.get_mut(last)) {
        if cell.width() > room {
            *cell = within(cell, room);
        }
    }
    print_rows(&rows)
}

/// Returns the beginning of a text that takes no more columns than there are.
fn within(text: &str, room: usize) -> String {
    use unicode_width::UnicodeWidthChar;
    let mut taken = 1;
    let short = text.chars().take_while(|letter| {
        taken += letter.width().unwrap_or(0);
        taken <= room
    });
    short.collect::<String>() + "…"
}

/// Returns the width of the terminal that standard output is, if it is one.
pub(super) fn width(environment: &BTreeMap<String, String>) -> Option<usize> {
    let facts = ui::terminal_facts(environment);
    facts.size.filter(|_| facts.output).map(|(columns, _)| usize::from(columns))
}

/// Prints the failure that ends the program to standard error.
pub(super) fn failure(failure: &Failure) {
    let text = ending::failure(failure, &ending::without_colour);
    print_status(&match ui::error_width() {
        Some(width) => fit::lines(&text, width),
        None => text,
    });
    tell_program(failure);
}

/// Tells a program that no run began, as the one event that there is.
fn tell_program(failure: &Failure) {
    if FOR_A_PROGRAM.load(Ordering::Relaxed) {
        ui::tell_no_run(failure, REDACTOR.get().unwrap_or(&Redactor::default()));
    }
}

/// Returns the failure of an output that could not be written.
pub(super) fn unwritten(why: impl Display) -> Failure {
    Failure::new(Code::DiskFailed, format!("cannot write to standard output: {why}"))
        .hint("what was shown is not all there; `nietz log` and `nietz report` have what the run did")
}

/// Prints what is wrong with the arguments, or the help that they ask for. Arguments may hold text that the user did not
/// type: a shell inserts file names and values of variables.
pub(super) fn arguments(error: &clap::Error) {
    let text = error.render().to_string();
    match text::clean(&without_secrets(&text)) == text {
        // clap prints its text in colour.
        true => drop(error.print()),
        false => print_status(&text),
    }
    if error.use_stderr() {
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        tell_program(&Failure::new(Code::Usage, first));
    }
}

/// Prints progress, or what the program waits for, to standard error.
pub(super) fn print_status(text: &str) {
    // A closed standard error is no failure: the exit status says the rest.
    let _ = std::io::stderr().write_all(text::clean(&without_secrets(text)).as_bytes());
}

fn without_secrets(text: &str) -> Cow<'_, str> {
    REDACTOR.get().map_or(Cow::Borrowed(text), |redactor| redactor.text(text))
}

fn print(text: &str) -> Result<()> {
    written(&without_secrets(text))
}

/// Writes what has no secrets any more.
fn written(text: &str) -> Result<()> {
    match writeln!(std::io::stdout(), "{text}") {
        Ok(()) => Ok(()),
        // A reader that stops early, as in `nietz runs | head`, is no failure.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(Exit::Done as i32),
        Err(error) => Err(Failure::new(Code::DiskFailed, format!("cannot write to standard output: {error}"))),
    }
}

/// Returns a cell as it is printed, on one line and without secrets, so that its width is measured correctly.
fn cell_text(cell: &str) -> String {
    text::line(&without_secrets(cell)).into_owned()
}
