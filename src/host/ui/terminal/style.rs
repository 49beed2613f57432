//! Text with a look: what every part of the terminal front end makes, and only the screen turns into
//! escape sequences. Because all text passes through [`Line::push`], none can carry its own.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::model::text::clean;

/// The colours that read well on dark and light backgrounds, as their SGR numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    Red = 31,
    Green = 32,
    Yellow = 33,
    Blue = 34,
    Magenta = 35,
    Cyan = 36,
}

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) bold: bool,
    pub(super) dim: bool,
    pub(super) italic: bool,
    pub(super) underline: bool,
    pub(super) strike: bool,
    pub(super) colour: Option<Colour>,
}

impl Style {
    pub(super) const PLAIN: Style =
        Style { bold: false, dim: false, italic: false, underline: false, strike: false, colour: None };
    pub(super) const BOLD: Style = Style { bold: true, ..Style::PLAIN };
    pub(super) const DIM: Style = Style { dim: true, ..Style::PLAIN };

    pub(super) const fn colour(self, colour: Colour) -> Style {
        Style { colour: Some(colour), ..self }
    }

    /// Returns the look of a speaker's name: always the same for the same name.
    pub(super) fn speaker(name: &str) -> Style {
        const COLOURS: [Colour; 5] = [Colour::Cyan, Colour::Magenta, Colour::Green, Colour::Yellow, Colour::Blue];
        let sum = name.bytes().fold(5381_usize, |sum, byte| sum.wrapping_mul(33) ^ usize::from(byte));
        Style::BOLD.colour(COLOURS[sum % COLOURS.len()])
    }

    /// Returns the SGR parameters, empty for plain text. Without colour the other looks stay: that is
    /// what `NO_COLOR` asks for.
    fn sgr(self, colour: bool) -> String {
        let looks = [(self.bold, "1"), (self.dim, "2"), (self.italic, "3"), (self.underline, "4"), (self.strike, "9")];
        let mut codes: Vec<String> = looks.iter().filter(|(on, _)| *on).map(|(_, code)| (*code).to_owned()).collect();
        codes.extend(self.colour.filter(|_| colour).map(|colour| (colour as u8).to_string()));
        codes.join(";")
    }
}

/// One line of the screen, never longer than the screen is wide once it was wrapped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    spans: Vec<(String, Style)>,
}

impl Line {
    pub(super) fn new(text: &str, style: Style) -> Line {
        let mut line = Line::default();
        line.push(text, style);
        line
    }

    /// Adds text; control characters become pictures, line ends and tabs become spaces.
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

    pub(super) fn with(mut self, text: &str, style: Style) -> Line {
        self.push(text, style);
        self
    }

    pub(super) fn append(&mut self, other: &Line) {
        for (text, style) in &other.spans {
            self.push(text, *style);
        }
    }

    /// Returns the line without the spaces at its end.
    pub(super) fn trimmed(mut self) -> Line {
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

    /// Returns the line cut to a width, with `…` where something is missing.
    pub(super) fn cut(&self, width: usize) -> Line {
        if self.width() <= width {
            return self.clone();
        }
        let mut out = Line::default();
        let mut room = width.saturating_sub(1);
        for (c, style) in self.chars() {
            let wide = c.width().unwrap_or(0);
            if wide > room {
                break;
            }
            room -= wide;
            out.push(c.encode_utf8(&mut [0; 4]), style);
        }
        out.with("…", Style::DIM)
    }

    /// Returns the line with its escape sequences, each look closed where it ends.
    pub(super) fn ansi(&self, colour: bool) -> String {
        let mut out = String::new();
        for (text, style) in &self.spans {
            match style.sgr(colour) {
                sgr if sgr.is_empty() => out.push_str(text),
                sgr => out.push_str(&format!("\u{1b}[{sgr}m{text}\u{1b}[0m")),
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::{Colour, Line, Style};

    #[test]
    fn no_text_brings_its_own_escapes() {
        let line = Line::new("a\u{1b}[31mb\n\tc", Style::BOLD.colour(Colour::Red));
        assert_eq!(line.ansi(true), "\u{1b}[1;31ma␛[31mb     c\u{1b}[0m");
        assert_eq!(line.ansi(false), "\u{1b}[1ma␛[31mb     c\u{1b}[0m");
    }

    #[test]
    fn a_line_is_cut_by_what_is_seen_not_by_bytes() {
        let line = Line::new("désœuvré 漢字漢字", Style::PLAIN);
        assert_eq!(line.width(), 17);
        assert_eq!(line.cut(17), line);
        assert_eq!(line.cut(13).ansi(false), "désœuvré 漢\u{1b}[2m…\u{1b}[0m");
    }
}
