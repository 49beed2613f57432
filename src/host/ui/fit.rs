//! Lines that fit a terminal: what nietz says of its own accord, with or without colours.
//!
//! Long lines go on indented in the next one, as they are in files of text. Words are not broken: a path or a command that is
//! wider than the terminal is left to it.

use unicode_width::UnicodeWidthChar;

/// The narrowest terminal that is written for, in columns. On one that is narrower, lines fold.
const LEAST: usize = 20;

/// Returns the text in lines of at most this width.
pub fn lines(text: &str, width: usize) -> String {
    let width = width.max(LEAST);
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        fit(line, width, &mut out);
        out.push_str(end);
    }
    out
}

/// Adds one line, in as many as it takes.
fn fit(line: &str, width: usize, out: &mut String) {
    if seen_width(line) <= width {
        return out.push_str(line);
    }
    let blanks = line.len() - line.trim_start_matches(' ').len();
    if row(&line[blanks..], (blanks, width), out) {
        return;
    }
    let is_item = line[blanks..].starts_with("- ") || line[blanks..].starts_with("• ");
    let indent = " ".repeat(if blanks + 2 > width / 2 { 2 } else { blanks + 2 });
    let mut used = 0;
    for (index, word) in line.split(' ').enumerate() {
        let wide = seen_width(word);
        let is_first = index <= blanks || (is_item && index == blanks + 1);
        if index > 0 && used + 1 + wide > width && !is_first {
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
            out.push_str(&indent);
            out.push_str(word);
            used = indent.len() + wide;
            continue;
        }
        if index > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += wide;
    }
}

/// Adds a row of a table, of which no cell is broken. Returns whether the line is one, and each cell fits.
fn row(text: &str, (blanks, width): (usize, usize), out: &mut String) -> bool {
    let cells: Vec<&str> = text.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    if cells.len() < 3 || cells.iter().any(|cell| blanks + 2 + seen_width(cell) > width) {
        return false;
    }
    out.push_str(&" ".repeat(blanks));
    let mut used = blanks;
    for (index, cell) in cells.iter().enumerate() {
        let wide = seen_width(cell);
        if index > 0 && used + 2 + wide > width {
            out.push('\n');
            out.push_str(&" ".repeat(blanks + 2));
            used = blanks + 2 + wide;
        } else {
            let gap = if index > 0 { "  " } else { "" };
            out.push_str(gap);
            used += gap.len() + wide;
        }
        out.push_str(cell);
    }
    true
}

/// Returns how many cells a text takes; the sequences that colour it take none.
fn seen_width(text: &str) -> usize {
    let (mut width, mut is_sequence) = (0, false);
    for c in text.chars() {
        match c {
            '\u{1b}' => is_sequence = true,
            'a'..='z' | 'A'..='Z' if is_sequence => is_sequence = false,
            _ if is_sequence => {}
            c => width += c.width().unwrap_or(0),
        }
    }
    width
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn long_lines_go_on_indented_and_words_stay_whole() {
        assert_eq!(lines("error[x]: one two three four\n", 20), "error[x]: one two\n  three four\n");
        assert_eq!(lines("  - a detail that is long\nb\n", 20), "  - a detail that is\n    long\nb\n");
        assert_eq!(lines("a /very/long/path/of/a/file b", 20), "a\n  /very/long/path/of/a/file\n  b");
        assert_eq!(lines("\u{1b}[1;31merror:\u{1b}[0m one two three", 20), "\u{1b}[1;31merror:\u{1b}[0m one two three");
        assert_eq!(
            lines("  Ann (a/big)  4 calls  400 in  80 out\n", 30),
            "  Ann (a/big)  4 calls  400 in\n    80 out\n"
        );
        assert_eq!(lines("short", 3), "short");
    }
}
