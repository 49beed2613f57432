//! Making text safe to show: nothing that a model, a file or a pack says may drive the terminal.

/// Returns the text with control and escape characters made visible, line ends and tabs kept.
///
/// Escape becomes `␛`, other C0 controls their picture (`␀` …), C1 controls and the invisible
/// direction marks that can disguise text become `�`.
pub fn clean(text: &str) -> String {
    if !text.chars().any(is_unsafe) {
        return text.to_owned();
    }
    text.chars().map(|c| if is_unsafe(c) { picture(c) } else { c }).collect()
}

/// Returns a piece of a wrong value that fits into an error message: one line, at most 60 characters.
pub fn excerpt(text: &str) -> String {
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(60).collect();
    let mut short = clean(&start).replace(['\n', '\t'], " ");
    if chars.next().is_some() {
        short.push('…');
    }
    short
}

fn is_unsafe(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{feff}' => true,
        c => c.is_control(),
    }
}

fn picture(c: char) -> char {
    match u32::from(c) {
        control @ 0..=0x1f => char::from_u32(0x2400 + control).unwrap_or('�'),
        0x7f => '␡',
        _ => '�',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_shown_not_obeyed() {
        assert_eq!(clean("a\u{1b}[2Jb\r\u{202e}c\n\td"), "a␛[2Jb␍�c\n\td");
    }

    #[test]
    fn an_excerpt_is_one_short_line() {
        assert_eq!(excerpt("a\nb"), "a b");
        assert_eq!(excerpt(&"x".repeat(80)).chars().count(), 61);
    }
}
