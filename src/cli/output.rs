//! Printing to standard output for verbs that list things: a closed pipe ends the program quietly.

use std::io::Write;

use crate::error::{Code, Exit, Failure, Result};

/// Prints a text and a line end.
pub(super) fn line(text: impl std::fmt::Display) -> Result<()> {
    match writeln!(std::io::stdout(), "{text}") {
        Ok(()) => Ok(()),
        // `nietz runs | head` is no failure.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(Exit::Done as i32),
        Err(error) => Err(Failure::new(Code::DiskFailed, format!("cannot write to standard output: {error}"))),
    }
}

/// Returns rows as columns that stand under each other.
pub(super) fn columns(rows: &[Vec<String>]) -> String {
    use unicode_width::UnicodeWidthStr;
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut out = String::new();
    for row in rows {
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
