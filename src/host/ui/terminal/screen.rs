//! Draws at the bottom of the terminal: lines that stay, and below them a changing part that is redrawn
//! (unfinished streamed text, the spinner, the open question).
//!
//! Each change is one write over the old lines, which are not cleared first, so nothing flickers. Only
//! this module writes escape sequences.

use std::io::Write;

use super::prompt::View;
use super::style::StyledLine;

pub(super) type SizeSource = Box<dyn Fn() -> (usize, usize) + Send>;

pub(super) struct Screen {
    out: Box<dyn Write + Send>,
    size: SizeSource,
    colour: bool,
    /// The widths of the currently drawn lines. If the screen became narrower, it has folded them since.
    drawn: Vec<usize>,
    /// The index of the drawn line with the cursor, and the cursor's column in it.
    row: usize,
    column: usize,
    /// The size of the terminal when the last frame was written.
    was: (usize, usize),
    /// The last frame. An identical frame is not written again.
    last: String,
    closed: bool,
}

/// Makes terminals that support it show the whole frame at once.
const BEGIN: &str = "\u{1b}[?2026h";
const END: &str = "\u{1b}[?2026l";
const HIDE: &str = "\u{1b}[?25l";
const SHOW: &str = "\u{1b}[?25h";
/// Remember where the cursor is, and bring it back there.
const SAVE: &str = "\u{1b}7";
const RESTORE: &str = "\u{1b}8";

impl Screen {
    pub(super) fn new(out: Box<dyn Write + Send>, size: SizeSource, colour: bool) -> Screen {
        Screen {
            out,
            size,
            colour,
            drawn: Vec::new(),
            row: 0,
            column: 0,
            was: (0, 0),
            last: String::new(),
            closed: false,
        }
    }

    /// Returns the largest width of a line. The last column stays free: terminals differ in what they do
    /// after a character in it.
    pub(super) fn width(&self) -> usize {
        (self.size)().0.saturating_sub(1).max(10)
    }

    pub(super) fn height(&self) -> usize {
        (self.size)().1.max(4)
    }

    /// Returns whether a write has failed, so that nobody sees the screen any more.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Adds lines that stay, and redraws the part below them.
    pub(super) fn draw(&mut self, stay: &[StyledLine], view: &View) {
        let mut frame = self.to_top();
        let now = (self.size)();
        // A terminal that folded lines would join them again when it becomes wider, with what was written over them since.
        if std::mem::replace(&mut self.was, now) != now && !self.drawn.is_empty() {
            frame.push_str(&self.emptied());
        }
        for line in stay {
            frame.push_str(&line.ansi(self.colour));
            frame.push_str("\u{1b}[K\r\n");
        }
        let (lines, cursor) = self.visible(view);
        for (index, line) in lines.iter().enumerate() {
            frame.push_str(if index == 0 { "" } else { "\r\n" });
            frame.push_str(&line.ansi(self.colour));
            frame.push_str("\u{1b}[K");
        }
        match stay.is_empty() && lines.is_empty() {
            true => frame.push_str(&self.emptied()),
            false => frame.push_str("\u{1b}[J"),
        }
        let bottom = lines.len().saturating_sub(1);
        let (row, column) = cursor.unwrap_or((bottom, 0));
        // Without a place of its own, the cursor stays behind what was written last.
        let at = if cursor.is_some() { column } else { lines.last().map_or(0, StyledLine::width) };
        if row < bottom {
            frame.push_str(&format!("\u{1b}[{}A", bottom - row));
        }
        if cursor.is_some() {
            frame.push('\r');
            if column > 0 {
                frame.push_str(&format!("\u{1b}[{column}C"));
            }
        }
        frame.push_str(if cursor.is_some() || lines.is_empty() { SHOW } else { HIDE });
        let drawn: Vec<usize> = lines.iter().map(StyledLine::width).collect();
        let same = stay.is_empty() && frame == self.last && drawn == self.drawn && row == self.row;
        self.drawn = drawn;
        (self.row, self.column) = (row, at);
        if !same {
            self.write(&format!("{BEGIN}{frame}{END}"));
            self.last = frame;
        }
    }

    /// Writes text that takes no space on the screen, such as a change of mode.
    pub(super) fn write(&mut self, text: &str) {
        if !self.closed && self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()).is_err() {
            self.closed = true;
        }
    }

    /// Clears the whole screen; the next frame starts at its top.
    pub(super) fn clear(&mut self) {
        self.drawn.clear();
        (self.row, self.column) = (0, 0);
        self.last.clear();
        self.write("\u{1b}[2J\u{1b}[H");
    }

    /// Returns the sequence that moves the cursor to the beginning of the changing part.
    fn to_top(&self) -> String {
        let columns = (self.size)().0.max(1);
        let above: usize = self.drawn.iter().take(self.row).map(|width| width.div_ceil(columns).max(1)).sum();
        // If the screen became narrower, the cursor's own line is folded, too.
        let up = above + self.column.saturating_sub(1) / columns;
        if up > 0 { format!("\u{1b}[{up}A\r") } else { "\r".to_owned() }
    }

    /// Returns what clears the screen from the cursor on. A multiplexer keeps in its history what stood on a screen that is cleared
    /// at once, so each row is emptied before.
    fn emptied(&self) -> String {
        format!("{SAVE}{}{RESTORE}\u{1b}[J", "\u{1b}[K\u{1b}[1B".repeat(self.height()))
    }

    /// Returns the lines that fit on the screen; if there are too many, the lowest ones.
    fn visible<'a>(&self, view: &'a View) -> (&'a [StyledLine], Option<(usize, usize)>) {
        let skipped = view.lines.len().saturating_sub(self.height() - 1);
        let cursor = view.cursor.map(|(row, column)| (row.saturating_sub(skipped), column));
        (&view.lines[skipped..], cursor)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::prompt::View;
    use anstyle::Style;

    use super::super::style::StyledLine;
    use super::Screen;
    use crate::host::ui::out::tests::Captured;

    fn lines(texts: &[&str]) -> Vec<StyledLine> {
        texts.iter().map(|text| StyledLine::new(text, Style::new())).collect()
    }

    #[test]
    fn a_frame_goes_over_the_last_one_and_the_same_one_is_not_written() {
        let out = Captured::default();
        let mut screen = Screen::new(out.stream(), Box::new(|| (20, 5)), true);
        let view = View { lines: lines(&["? ask", "> a"]), cursor: Some((1, 3)) };
        screen.draw(&lines(&["stays"]), &view);
        let first = out.text();
        assert_eq!(
            first,
            "\u{1b}[?2026h\rstays\u{1b}[K\r\n? ask\u{1b}[K\r\n> a\u{1b}[K\u{1b}[J\r\u{1b}[3C\u{1b}[?25h\u{1b}[?2026l"
        );
        screen.draw(&[], &view);
        screen.draw(&[], &view);
        screen.draw(&[], &View::default());
        let rest = out.text()[first.len()..].to_owned();
        let again = "\u{1b}[?2026h\u{1b}[1A\r? ask\u{1b}[K\r\n> a\u{1b}[K\u{1b}[J\r\u{1b}[3C\u{1b}[?25h\u{1b}[?2026l";
        let cleared = format!("\u{1b}7{}\u{1b}8\u{1b}[J", "\u{1b}[K\u{1b}[1B".repeat(5));
        assert_eq!(rest, format!("{again}\u{1b}[?2026h\u{1b}[1A\r{cleared}\u{1b}[?25h\u{1b}[?2026l"));
    }

    #[test]
    fn a_screen_that_became_narrower_is_drawn_over_from_the_top_of_what_it_folded() {
        let (out, columns) = (Captured::default(), Arc::new(AtomicUsize::new(20)));
        let size = columns.clone();
        let mut screen = Screen::new(out.stream(), Box::new(move || (size.load(Ordering::SeqCst), 9)), true);
        screen.draw(&[], &View { lines: lines(&["? a long question", "> typed typed"]), cursor: Some((1, 13)) });
        columns.store(10, Ordering::SeqCst);
        let before = out.text().len();
        screen.draw(&[], &View { lines: lines(&["? a"]), cursor: None });
        // Two rows of the question, and one of the line that the cursor was in.
        let cleared = format!("\u{1b}7{}\u{1b}8\u{1b}[J", "\u{1b}[K\u{1b}[1B".repeat(9));
        let frame = format!("\u{1b}[?2026h\u{1b}[3A\r{cleared}? a");
        assert!(out.text()[before..].starts_with(&frame), "{:?}", &out.text()[before..]);
        // Wider again, it goes up no row: what stands above stays.
        columns.store(20, Ordering::SeqCst);
        let before = out.text().len();
        screen.draw(&[], &View { lines: lines(&["? a long question"]), cursor: None });
        let frame = format!("\u{1b}[?2026h\r{cleared}? a long question");
        assert!(out.text()[before..].starts_with(&frame), "{:?}", &out.text()[before..]);
    }

    #[test]
    fn what_is_higher_than_the_screen_loses_its_top() {
        let out = Captured::default();
        let mut screen = Screen::new(out.stream(), Box::new(|| (20, 4)), true);
        screen.draw(&[], &View { lines: lines(&["1", "2", "3", "4", "5"]), cursor: Some((4, 0)) });
        assert!(!out.text().contains('2') || out.text().starts_with("\u{1b}[?2026h\r3"));
    }
}
