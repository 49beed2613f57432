//! Rows as aligned columns that fit a terminal. Where they are too wide, columns of several words wrap in themselves; where
//! even that does not fit, each row is a block: its first cell, and the others below it.

use unicode_width::UnicodeWidthStr;

/// The blanks between two columns.
const GAP: usize = 2;

/// Returns the rows as lines; without a width, as wide as they are.
pub(super) fn text(rows: &[Vec<String>], width: Option<usize>) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest = |measure: fn(&str) -> usize| -> Vec<usize> {
        let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column)).map(|cell| measure(cell));
        (0..count).map(|column| cells(column).max().unwrap_or(0)).collect()
    };
    let natural = widest(UnicodeWidthStr::width);
    let Some(room) = width.filter(|room| total(&natural) > *room) else { return aligned(rows, &natural) };
    let longest_word = |cell: &str| cell.split(' ').map(UnicodeWidthStr::width).max().unwrap_or(0);
    match narrowed(natural, &widest(longest_word), room) {
        Some(widths) => aligned(rows, &widths),
        None => rows.iter().map(|row| stacked(row, room)).collect(),
    }
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Takes from the widest columns until all fit; none becomes narrower than its longest word.
fn narrowed(mut widths: Vec<usize>, least: &[usize], room: usize) -> Option<Vec<usize>> {
    while total(&widths) > room {
        let can_shrink = (0..widths.len()).filter(|column| widths[*column] > least[*column]);
        let widest = can_shrink.max_by_key(|column| widths[*column])?;
        widths[widest] -= 1;
    }
    Some(widths)
}

fn aligned(rows: &[Vec<String>], widths: &[usize]) -> String {
    let mut out = String::new();
    for row in rows {
        if row.iter().zip(widths).all(|(cell, width)| cell.width() <= *width) {
            line(&mut out, row.iter().map(String::as_str), widths);
            continue;
        }
        let cells: Vec<Vec<String>> = row.iter().zip(widths).map(|(cell, width)| wrapped(cell, *width)).collect();
        for at in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
            line(&mut out, cells.iter().map(|cell| cell.get(at).map_or("", String::as_str)), widths);
        }
    }
    out
}

/// Adds a line of cells that fit, without blanks at its end.
fn line<'a>(out: &mut String, cells: impl Iterator<Item = &'a str>, widths: &[usize]) {
    for (cell, width) in cells.zip(widths) {
        out.push_str(cell);
        out.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.width()) + GAP));
    }
    out.truncate(out.trim_end_matches(' ').len());
    out.push('\n');
}

fn stacked(row: &[String], room: usize) -> String {
    let mut out = String::new();
    for (column, cell) in row.iter().enumerate().filter(|(column, cell)| *column == 0 || !cell.is_empty()) {
        let indent = " ".repeat(if column == 0 { 0 } else { GAP });
        for line in wrapped(cell, room.saturating_sub(indent.len())) {
            out.push_str(&format!("{indent}{line}\n"));
        }
    }
    out
}

/// Returns a cell in lines of whole words.
fn wrapped(cell: &str, width: usize) -> Vec<String> {
    if cell.width() <= width {
        return vec![cell.to_owned()];
    }
    let mut lines: Vec<String> = vec![String::new()];
    for word in cell.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::text;

    fn rows() -> Vec<Vec<String>> {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        vec![
            row(["ask", "Asks a model one question", "bundled:ask.lua"]),
            row(["retro", "Looks back", "flows/retro.lua"]),
        ]
    }

    #[test]
    fn columns_fit_any_width_from_forty_on() {
        let wide =
            "ask    Asks a model one question  bundled:ask.lua\nretro  Looks back                 flows/retro.lua\n";
        assert_eq!(text(&rows(), None), wide);
        assert_eq!(text(&rows(), Some(200)), wide);
        assert_eq!(
            text(&rows(), Some(40)),
            "ask    Asks a model one  bundled:ask.lua\n       question\nretro  Looks back        flows/retro.lua\n"
        );
        let narrow = text(&rows(), Some(24));
        assert!(narrow.starts_with("ask\n  Asks a model one\n  question\n  bundled:ask.lua\nretro\n"), "{narrow}");
        for width in 24..200 {
            assert!(text(&rows(), Some(width)).lines().all(|line| line.len() <= width), "{width}");
        }
    }
}
