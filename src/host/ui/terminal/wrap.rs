//! Breaks styled text into lines that fit: at spaces, and between wide characters, which are written
//! without spaces. A word that is longer than the line is cut. A no-break space is no break, so French
//! punctuation stays with its word.

use anstyle::Style;
use unicode_width::UnicodeWidthChar;

use super::style::StyledLine;

/// Returns the text as lines of at most this width; `\n` characters in it are hard breaks.
pub(super) fn wrap(text: &[(char, Style)], width: usize) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    for paragraph in text.split(|(c, _)| *c == '\n') {
        wrap_one(paragraph, width.max(2), &mut lines);
    }
    lines
}

/// Returns a text in one style as lines of at most this width.
pub(super) fn wrap_text(text: &str, style: Style, width: usize) -> Vec<StyledLine> {
    let chars: Vec<(char, Style)> = text.chars().map(|c| (c, style)).collect();
    wrap(&chars, width)
}

fn wrap_one(text: &[(char, Style)], width: usize, lines: &mut Vec<StyledLine>) {
    let mut start = 0;
    loop {
        let rest = &text[start..];
        let (end, next) = first_break(rest, width);
        lines.push(line(&rest[..end]).trimmed());
        if next >= rest.len() {
            return;
        }
        start += next;
    }
}

/// Returns the index at which the first line ends, and the index at which the next one starts, after the spaces.
fn first_break(text: &[(char, Style)], width: usize) -> (usize, usize) {
    let mut used = 0;
    let mut best = None;
    for (index, (c, _)) in text.iter().enumerate() {
        let wide = cells(*c);
        if *c == ' ' || (wide == 2 && used > 0) {
            best = Some(index);
        }
        used += wide;
        if used > width {
            let end = best.filter(|best| *best > 0).unwrap_or(index.max(1));
            let spaces = text[end..].iter().take_while(|(c, _)| *c == ' ').count();
            return (end, end + spaces);
        }
    }
    (text.len(), text.len())
}

/// Returns how many cells a character takes. A tab is shown as four spaces.
pub(super) fn cells(c: char) -> usize {
    if c == '\t' { 4 } else { c.width().unwrap_or(1) }
}

fn line(text: &[(char, Style)]) -> StyledLine {
    let mut out = StyledLine::default();
    let mut buffer = [0; 4];
    for (c, style) in text {
        out.push(c.encode_utf8(&mut buffer), *style);
    }
    out
}

#[cfg(test)]
mod tests {
    use anstyle::Style;

    use super::wrap_text;

    fn wrapped(text: &str, width: usize) -> Vec<String> {
        wrap_text(text, Style::new(), width).iter().map(|line| line.ansi(false)).collect()
    }

    #[test]
    fn lines_break_at_spaces_and_long_words_are_cut() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("a  incomprehensibilities", 8), ["a", "incompre", "hensibil", "ities"]);
        assert_eq!(wrapped("a\n\nb", 7), ["a", "", "b"]);
        assert_eq!(wrapped("", 7), [""]);
    }

    #[test]
    fn accents_and_wide_characters_count_what_they_take() {
        assert_eq!(wrapped("L’e\u{301}te\u{301} à Nîmes\u{a0}!", 7), ["L’e\u{301}te\u{301} à", "Nîmes\u{a0}!"]);
        assert_eq!(wrapped("漢字かな交じり文", 7), ["漢字か", "な交じ", "り文"]);
        assert_eq!(wrapped("漢", 1), ["漢"]);
    }
}
