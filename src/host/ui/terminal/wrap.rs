//! Breaks styled text into lines that fit: at spaces, and between wide characters, which are written
//! without spaces. Cells of a row, with a wide gap between them, stay whole where they can. A word that is longer than the line is
//! cut, behind a slash or a hyphen if it has one there. A no-break space is no break, so French
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

/// Returns a text in one style as lines of at most this width, of which all but the first are indented as far as the text of
/// the first is: behind its blanks, and behind the wide gap in it, if there is one, as in `  /back  goes back`.
pub(super) fn wrap_hanging(text: &str, style: Style, width: usize) -> Vec<StyledLine> {
    let chars: Vec<(char, Style)> = text.chars().map(|c| (c, style)).collect();
    hanging(&chars, width, indent(text))
}

/// Returns styled text without line ends as lines of at most this width, of which all but the first are indented.
pub(super) fn hanging(text: &[(char, Style)], width: usize, indent: usize) -> Vec<StyledLine> {
    let indent = if indent > width / 2 { 2 } else { indent };
    let (mut lines, mut start) = (Vec::new(), 0);
    loop {
        let rest = &text[start..];
        let indent = if start == 0 { 0 } else { indent };
        let (end, next) = first_break(rest, width.saturating_sub(indent).max(2));
        let mut shown = StyledLine::new(&" ".repeat(indent), Style::new());
        shown.append(&line(&rest[..end]).trimmed());
        lines.push(shown);
        if next >= rest.len() {
            return lines;
        }
        start += next;
    }
}

/// Returns how far the lines below the first one of a text are indented.
fn indent(text: &str) -> usize {
    let blanks = text.len() - text.trim_start_matches(' ').len();
    let gap = text[blanks..].find("  ").map(|gap| blanks + gap);
    let behind = gap.map(|gap| gap + text[gap..].len() - text[gap..].trim_start_matches(' ').len());
    behind.map_or(blanks + 2, |behind| text[..behind].chars().map(cells).sum())
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
    let (mut best, mut gap, mut slash, mut blank) = (None, None, None, true);
    for (index, (c, _)) in text.iter().enumerate() {
        let wide = cells(*c);
        if index > 0 && matches!(text[index - 1].0, '/' | '-' | '_') && used > width / 3 {
            slash = Some(index);
        }
        if *c == ' ' || (wide == 2 && used > 0) {
            best = Some(index);
        }
        // Blanks at the beginning are no gap.
        if !blank && *c == ' ' && text.get(index + 1).is_some_and(|(next, _)| *next == ' ') && used > width / 2 {
            gap = Some(index);
        }
        blank = *c == ' ';
        used += wide;
        if used > width {
            let end = gap.or(best.filter(|best| *best > 0)).or(slash).unwrap_or(index.max(1));
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

    use super::{wrap_hanging, wrap_text};

    fn wrapped(text: &str, width: usize) -> Vec<String> {
        wrap_text(text, Style::new(), width).iter().map(|line| line.ansi(false)).collect()
    }

    #[test]
    fn lines_break_at_spaces_and_long_words_are_cut() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("a  incomprehensibilities", 8), ["a", "incompre", "hensibil", "ities"]);
        assert_eq!(wrapped("  Ann (a/big)  4 calls  400 in", 28), ["  Ann (a/big)  4 calls", "400 in"]);
        assert_eq!(wrapped("docs/briefs/checkout", 14), ["docs/briefs/", "checkout"]);
        assert_eq!(wrapped("checkout-that-survives", 18), ["checkout-that-", "survives"]);
        assert_eq!(wrapped("a/incomprehensible", 14), ["a/incomprehens", "ible"]);
        assert_eq!(wrapped("a\n\nb", 7), ["a", "", "b"]);
        assert_eq!(wrapped("", 7), [""]);
    }

    #[test]
    fn what_does_not_fit_goes_on_below_the_text_of_the_first_line() {
        let lines = |text, width| -> Vec<String> {
            wrap_hanging(text, Style::new(), width).iter().map(|line| line.ansi(false)).collect()
        };
        assert_eq!(lines("  /back  goes back a step", 18), ["  /back  goes back", "         a step"]);
        assert_eq!(lines("one two three", 7), ["one two", "  three"]);
    }

    #[test]
    fn accents_and_wide_characters_count_what_they_take() {
        assert_eq!(wrapped("L’e\u{301}te\u{301} à Nîmes\u{a0}!", 7), ["L’e\u{301}te\u{301} à", "Nîmes\u{a0}!"]);
        assert_eq!(wrapped("漢字かな交じり文", 7), ["漢字か", "な交じ", "り文"]);
        assert_eq!(wrapped("漢", 1), ["漢"]);
    }
}
