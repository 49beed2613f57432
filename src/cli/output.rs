//! Printing to standard output for verbs that list things: a closed pipe ends the program quietly.

use std::fmt::Display;
use std::io::Write;

use serde_json::Value;

use crate::error::{Code, Exit, Failure, Result};
use crate::model::text;

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
    print(&text::json(&value.to_string()))
}

/// Prints rows as columns that stand under each other, where there are any.
pub(super) fn table(rows: &[Vec<String>]) -> Result<()> {
    match rows.is_empty() {
        true => Ok(()),
        false => print(columns(rows).trim_end()),
    }
}

fn print(text: &str) -> Result<()> {
    match writeln!(std::io::stdout(), "{text}") {
        Ok(()) => Ok(()),
        // `nietz runs | head` is no failure.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(Exit::Done as i32),
        Err(error) => Err(Failure::new(Code::DiskFailed, format!("cannot write to standard output: {error}"))),
    }
}

/// A cell is one line, whatever stands in it.
fn columns(rows: &[Vec<String>]) -> String {
    use unicode_width::UnicodeWidthStr;
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| text::line(cell).into_owned()).collect()).collect();
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
