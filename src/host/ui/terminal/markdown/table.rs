//! Lays out tables: columns as wide as their content, narrowed evenly if the screen is too small, and turned into
//! a list of records if even that would be unreadable.

use anstyle::Style;
use pulldown_cmark::Alignment;
use unicode_width::UnicodeWidthStr;

use super::super::style::{DIM, StyledLine};
use super::super::wrap::wrap;

/// The narrowest readable column.
const NARROW: usize = 8;
/// The width of the separator between two columns.
const BETWEEN: usize = 3;

type Cell = Vec<(char, Style)>;

pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Cell>>,
    row: Vec<Cell>,
}

impl Table {
    pub(super) fn new(alignments: &[Alignment]) -> Table {
        Table { alignments: alignments.to_vec(), rows: Vec::new(), row: Vec::new() }
    }

    pub(super) fn cell(&mut self, cell: Cell) {
        self.row.push(cell);
    }

    pub(super) fn end_of_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    /// Returns the table's lines; the first row is its head.
    pub(super) fn lines(mut self, width: usize) -> Vec<StyledLine> {
        for (_, style) in self.rows.iter_mut().take(1).flatten().flatten() {
            *style = style.bold();
        }
        let natural: Vec<usize> = (0..self.alignments.len()).map(|column| self.natural(column)).collect();
        let room = width.saturating_sub(BETWEEN * natural.len().saturating_sub(1));
        match narrowed(natural, room) {
            Some(widths) => self.grid(&widths),
            None => self.records(width),
        }
    }

    fn natural(&self, column: usize) -> usize {
        self.rows.iter().filter_map(|row| row.get(column)).map(|cell| plain(cell).width()).max().unwrap_or(0).max(1)
    }

    fn grid(&self, widths: &[usize]) -> Vec<StyledLine> {
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            let cells: Vec<Vec<StyledLine>> = widths
                .iter()
                .enumerate()
                .map(|(column, width)| row.get(column).map(|cell| wrap(cell, *width)).unwrap_or_default())
                .collect();
            for level in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
                lines.push(self.grid_line(&cells, widths, level));
            }
            if index == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(StyledLine::new(&rule.join("─┼─"), DIM));
            }
        }
        lines
    }

    fn grid_line(&self, cells: &[Vec<StyledLine>], widths: &[usize], level: usize) -> StyledLine {
        let mut out = StyledLine::default();
        for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
            if column > 0 {
                out.push(" │ ", DIM);
            }
            let text = cell.get(level).cloned().unwrap_or_default();
            let spare = width.saturating_sub(text.width());
            let before = match self.alignments.get(column) {
                Some(Alignment::Right) => spare,
                Some(Alignment::Center) => spare / 2,
                _ => 0,
            };
            out.push(&" ".repeat(before), Style::new());
            out.append(&text);
            if column + 1 < widths.len() {
                out.push(&" ".repeat(spare - before), Style::new());
            }
        }
        out
    }

    /// Returns each row as `head: cell` lines, with a blank line between rows.
    fn records(&self, width: usize) -> Vec<StyledLine> {
        let mut lines = Vec::new();
        let Some((head, rows)) = self.rows.split_first() else { return lines };
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                lines.push(StyledLine::default());
            }
            for (name, cell) in head.iter().zip(row) {
                let mut text = name.clone();
                text.extend(": ".chars().map(|c| (c, DIM)));
                text.extend(cell);
                lines.extend(wrap(&text, width));
            }
        }
        lines
    }
}

/// Narrows the widest columns until all fit. Returns `None` if a column would become too narrow to read.
fn narrowed(mut widths: Vec<usize>, room: usize) -> Option<Vec<usize>> {
    if widths.iter().map(|width| *width.min(&NARROW)).sum::<usize>() > room {
        return None;
    }
    let mut total: usize = widths.iter().sum();
    while total > room {
        let widest = widths.iter_mut().max()?;
        if *widest <= NARROW {
            return None;
        }
        *widest -= 1;
        total -= 1;
    }
    Some(widths)
}

fn plain(cell: &[(char, Style)]) -> String {
    cell.iter().map(|(c, _)| *c).collect()
}
