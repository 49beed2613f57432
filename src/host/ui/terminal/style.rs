//! Styled text. Every part of the terminal front end makes it, and only the screen turns it into escape
//! sequences. All text passes through [`StyledLine::push`], so no text can bring its own escape sequences.

use anstyle::{AnsiColor, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::model::text::clean;

pub(super) const BOLD: Style = Style::new().bold();
pub(super) const DIM: Style = Style::new().dimmed();

/// Returns the style of a speaker's name: always the same for the same name, and readable on dark and light screens.
pub(super) fn speaker(name: &str) -> Style {
    use AnsiColor::{Blue, Cyan, Green, Magenta, Yellow};
    const COLOURS: [AnsiColor; 5] = [Cyan, Magenta, Green, Yellow, Blue];
    let sum = name.bytes().fold(5381_usize, |sum, byte| sum.wrapping_mul(33) ^ usize::from(byte));
    COLOURS[sum % COLOURS.len()].on_default().bold()
}

/// One line of styled text. Wrapping or cutting makes it fit the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StyledLine {
    spans: Vec<(String, Style)>,
}

impl StyledLine {
    pub(super) fn new(text: &str, style: Style) -> StyledLine {
        let mut line = StyledLine::default();
        line.push(text, style);
        line
    }

    /// Adds text. Control characters become visible pictures, line ends and tabs become spaces.
    pub(super) fn push(&mut self, text: &str, style: Style) {
        if text.is_empty() {
            return;
        }
        let text = clean(text).replace('\n', " ").replace('\t', "    ");
        match self.spans.last_mut() {
            Some((last, same)) if *same == style => last.push_str(&text),
            _ => self.spans.push((text, style)),
        }
    }

    pub(super) fn with(mut self, text: &str, style: Style) -> StyledLine {
        self.push(text, style);
        self
    }

    pub(super) fn append(&mut self, other: &StyledLine) {
        for (text, style) in &other.spans {
            self.push(text, *style);
        }
    }

    /// Returns the line without trailing spaces.
    pub(super) fn trimmed(mut self) -> StyledLine {
        while let Some((text, _)) = self.spans.last_mut() {
            text.truncate(text.trim_end_matches(' ').len());
            if !text.is_empty() {
                break;
            }
            self.spans.pop();
        }
        self
    }

    pub(super) fn width(&self) -> usize {
        self.spans.iter().map(|(text, _)| text.width()).sum()
    }

    pub(super) fn chars(&self) -> impl Iterator<Item = (char, Style)> + '_ {
        self.spans.iter().flat_map(|(text, style)| text.chars().map(|c| (c, *style)))
    }

    /// Returns the line cut to a width, with `…` at the end if something was cut.
    pub(super) fn cut(&self, width: usize) -> StyledLine {
        if self.width() <= width {
            return self.clone();
        }
        let mut out = StyledLine::default();
        let mut room = width.saturating_sub(1);
        for (c, style) in self.chars() {
            let wide = c.width().unwrap_or(0);
            if wide > room {
                break;
            }
            room -= wide;
            out.push(c.encode_utf8(&mut [0; 4]), style);
        }
        out.with("…", DIM)
    }

    /// Returns the line with escape sequences that begin and end each style. Without colour, other styles such as bold stay,
    /// as `NO_COLOR` asks for.
    pub(super) fn ansi(&self, colour: bool) -> String {
        let mut out = String::new();
        for (text, style) in &self.spans {
            let style = if colour { *style } else { style.fg_color(None) };
            // Joins the sequences of a style into one.
            let begin = style.to_string().replace("m\u{1b}[", ";");
            out.push_str(&format!("{begin}{text}{style:#}"));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_brings_its_own_escapes() {
        let line = StyledLine::new("a\u{1b}[31mb\n\tc", AnsiColor::Red.on_default().bold());
        assert_eq!(line.ansi(true), "\u{1b}[1;31ma␛[31mb     c\u{1b}[0m");
        assert_eq!(line.ansi(false), "\u{1b}[1ma␛[31mb     c\u{1b}[0m");
    }

    #[test]
    fn a_line_is_cut_by_what_is_seen_not_by_bytes() {
        let line = StyledLine::new("désœuvré 漢字漢字", Style::new());
        assert_eq!(line.width(), 17);
        assert_eq!(line.cut(17), line);
        assert_eq!(line.cut(13).ansi(false), "désœuvré 漢\u{1b}[2m…\u{1b}[0m");
    }
}
