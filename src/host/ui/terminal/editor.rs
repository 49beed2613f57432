//! The editor of one answer: the text, the cursor, earlier answers, and completion by Tab.
//!
//! The editor knows neither keys' bytes nor the screen, so tests can call its methods directly. The cursor only stops
//! between what readers see as characters: an accent moves with its letter, an emoji of several code points as one.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::wrap::cells;

/// A text that is being edited. `cursor` is a byte offset, always between two characters.
#[derive(Default)]
pub(super) struct Editor {
    text: String,
    cursor: usize,
    history: Vec<String>,
    /// The shown entry of the history; `None` while the text is the user's own.
    shown: Option<usize>,
    /// The user's own text while an entry of the history is shown.
    draft: String,
}

impl Editor {
    pub(super) fn new(history: Vec<String>) -> Editor {
        Editor { history, ..Editor::default() }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Discards the typed text.
    pub(super) fn clear(&mut self) {
        self.shown = None;
        self.remove(0, self.text.len());
    }

    pub(super) fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    /// Turns a backslash at the end of the text, right before the cursor, into a new line. Returns whether there was one.
    pub(super) fn continue_line(&mut self) -> bool {
        let continued = self.cursor == self.text.len() && self.text.ends_with('\\');
        if continued {
            self.text.pop();
            self.text.push('\n');
            self.cursor = self.text.len();
        }
        continued
    }

    pub(super) fn backspace(&mut self) {
        self.remove(self.left_of(self.cursor), self.cursor);
    }

    pub(super) fn delete(&mut self) {
        self.remove(self.cursor, self.right_of(self.cursor));
    }

    pub(super) fn delete_word(&mut self) {
        self.remove(self.word_left(), self.cursor);
    }

    pub(super) fn delete_to_start(&mut self) {
        self.remove(self.line_start(), self.cursor);
    }

    pub(super) fn delete_to_end(&mut self) {
        self.remove(self.cursor, self.line_end());
    }

    pub(super) fn left(&mut self) {
        self.cursor = self.left_of(self.cursor);
    }

    pub(super) fn right(&mut self) {
        self.cursor = self.right_of(self.cursor);
    }

    pub(super) fn home(&mut self) {
        self.cursor = self.line_start();
    }

    pub(super) fn end(&mut self) {
        self.cursor = self.line_end();
    }

    pub(super) fn go_word_left(&mut self) {
        self.cursor = self.word_left();
    }

    pub(super) fn go_word_right(&mut self) {
        let rest = &self.text[self.cursor..];
        let word = rest.len() - rest.trim_start().len();
        let end = rest[word..].find(char::is_whitespace).map_or(rest.len(), |length| word + length);
        self.cursor += end;
    }

    /// Moves a line up, or from the first line to the previous answer.
    pub(super) fn up(&mut self) {
        let start = self.line_start();
        if start > 0 {
            let column = self.text[start..self.cursor].chars().count();
            let above = self.text[..start - 1].rfind('\n').map_or(0, |end| end + 1);
            self.cursor = self.column(above, start - 1, column);
            return;
        }
        let index = self.shown.unwrap_or(self.history.len());
        if let Some(older) = index.checked_sub(1) {
            if self.shown.is_none() {
                self.draft = std::mem::take(&mut self.text);
            }
            self.show(Some(older));
        }
    }

    /// Moves a line down, or from the last line to the next answer.
    pub(super) fn down(&mut self) {
        let end = self.line_end();
        if end < self.text.len() {
            let column = self.text[self.line_start()..self.cursor].chars().count();
            let below = self.text[end + 1..].find('\n').map_or(self.text.len(), |length| end + 1 + length);
            self.cursor = self.column(end + 1, below, column);
            return;
        }
        if let Some(index) = self.shown {
            self.show((index + 1 < self.history.len()).then_some(index + 1));
        }
    }

    /// Completes the text before the cursor as far as it is unambiguous. Returns the matching words if there are several.
    pub(super) fn complete(&mut self, words: &[String]) -> Vec<String> {
        let line = self.text[self.line_start()..self.cursor].trim_start().to_owned();
        let word = line.rsplit(char::is_whitespace).next().unwrap_or_default().to_owned();
        for begun in [line, word] {
            let fits: Vec<&str> = words.iter().map(String::as_str).filter(|word| starts(word, &begun)).collect();
            let Some(first) = fits.first() else { continue };
            let common = fits.iter().fold(*first, |common, word| &common[..shared(common, word)]);
            if common.len() >= begun.len() && common.is_char_boundary(begun.len()) {
                // The text is replaced, not continued, to take the capital letters of the words.
                self.remove(self.cursor - begun.len(), self.cursor);
                self.insert(common);
            }
            return if fits.len() > 1 { fits.iter().map(|word| (*word).to_owned()).collect() } else { Vec::new() };
        }
        Vec::new()
    }

    /// Returns the text as rows of at most this width, and the row and column of the cursor.
    pub(super) fn rows(&self, width: usize) -> (Vec<String>, (usize, usize)) {
        // The last cell of a row stays free for a cursor after the row's last character.
        let room = width.saturating_sub(1).max(2);
        let (mut rows, mut cursor, mut start) = (Vec::new(), (0, 0), 0);
        for line in self.text.split('\n') {
            for row in broken(line, room) {
                let (from, to) = (start + row.start, start + row.end);
                // Between two rows, the cursor stands where the next character comes.
                if (from..=to).contains(&self.cursor) {
                    cursor = (rows.len(), self.text[from..self.cursor].chars().map(cells).sum());
                }
                rows.push(self.text[from..to].to_owned());
            }
            start += line.len() + 1;
        }
        (rows, cursor)
    }

    fn show(&mut self, index: Option<usize>) {
        self.shown = index;
        self.text = match index.and_then(|index| self.history.get(index)) {
            Some(entry) => entry.clone(),
            None => std::mem::take(&mut self.draft),
        };
        self.cursor = self.text.len();
    }

    fn remove(&mut self, start: usize, end: usize) {
        self.text.drain(start..end);
        self.cursor = start;
    }

    fn left_of(&self, place: usize) -> usize {
        self.text[..place].grapheme_indices(true).next_back().map_or(0, |(index, _)| index)
    }

    fn right_of(&self, place: usize) -> usize {
        place + self.text[place..].graphemes(true).next().map_or(0, str::len)
    }

    fn word_left(&self) -> usize {
        let before = self.text[..self.cursor].trim_end();
        before.char_indices().rev().find(|(_, c)| c.is_whitespace()).map_or(0, |(index, c)| index + c.len_utf8())
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |end| end + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |length| self.cursor + length)
    }

    /// Returns the offset of a column in the line between two offsets, or the line's end.
    fn column(&self, start: usize, end: usize, column: usize) -> usize {
        self.text[start..end].char_indices().nth(column).map_or(end, |(index, _)| start + index)
    }
}

/// Returns the parts of a line that are rows of at most this width: broken behind blanks, and only a word that is longer
/// than a row is cut. A blank that has no room hangs over.
fn broken(line: &str, room: usize) -> Vec<Range<usize>> {
    let (mut rows, mut start, mut used, mut gap) = (Vec::new(), 0, 0, None);
    for (index, c) in line.char_indices() {
        let wide = cells(c);
        if used + wide > room && index > start {
            let end = if c == ' ' { index + 1 } else { gap.unwrap_or(index) };
            rows.push(start..end);
            (start, gap) = (end, None);
            used = line.get(end..index).unwrap_or_default().chars().map(cells).sum();
            if c == ' ' {
                continue;
            }
        }
        used += wide;
        if c == ' ' {
            gap = Some(index + 1);
        }
    }
    rows.push(start..line.len());
    rows
}

fn starts(word: &str, begun: &str) -> bool {
    word.get(..begun.len()).is_some_and(|start| start.to_lowercase() == begun.to_lowercase())
}

/// Returns how many bytes two words share at their beginning.
fn shared(a: &str, b: &str) -> usize {
    a.char_indices().zip(b.chars()).find(|((_, x), y)| x != y).map_or(a.len().min(b.len()), |((index, _), _)| index)
}

#[cfg(test)]
mod tests {
    use super::Editor;

    fn typed(text: &str) -> Editor {
        let mut editor = Editor::new(vec!["first".to_owned(), "second".to_owned()]);
        editor.insert(text);
        editor
    }

    /// Shows the cursor as `|`.
    fn seen(editor: &Editor) -> String {
        let (before, after) = editor.text.split_at(editor.cursor);
        format!("{before}|{after}")
    }

    #[test]
    fn moving_and_deleting_go_by_what_is_seen() {
        let mut editor = typed("un e\u{301}te\u{301} 漢");
        editor.left();
        editor.left();
        editor.left();
        assert_eq!(seen(&editor), "un e\u{301}t|e\u{301} 漢");
        editor.delete();
        assert_eq!(seen(&editor), "un e\u{301}t| 漢");
        editor.backspace();
        editor.backspace();
        assert_eq!(seen(&editor), "un | 漢");
        editor.delete_word();
        assert_eq!(seen(&editor), "| 漢");
        editor.go_word_right();
        assert_eq!(seen(&editor), " 漢|");
        editor.delete_to_start();
        editor.backspace();
        editor.delete();
        assert_eq!(seen(&editor), "|");
        let mut editor = typed("a\u{1f469}\u{200d}\u{1f52c}\u{1f1eb}\u{1f1f7}");
        editor.left();
        editor.backspace();
        assert_eq!(seen(&editor), "a|\u{1f1eb}\u{1f1f7}");
    }

    #[test]
    fn lines_are_walked_before_the_history_is() {
        let mut editor = typed("one\\");
        assert!(editor.continue_line());
        editor.insert("three");
        assert!(!editor.continue_line());
        editor.up();
        assert_eq!(seen(&editor), "one|\nthree");
        editor.home();
        editor.down();
        assert_eq!(seen(&editor), "one\n|three");
        editor.up();
        editor.up();
        assert_eq!(seen(&editor), "second|");
        editor.up();
        editor.up();
        assert_eq!(seen(&editor), "first|");
        editor.down();
        editor.down();
        assert_eq!(seen(&editor), "one\nthree|");
    }

    #[test]
    fn tab_goes_as_far_as_is_clear() {
        let words = ["/done", "/doctor", "Émile Zola"].map(str::to_owned);
        let mut editor = typed("/");
        assert_eq!(editor.complete(&words), ["/done", "/doctor"]);
        assert_eq!(seen(&editor), "/do|");
        editor.insert("n");
        assert!(editor.complete(&words).is_empty());
        assert_eq!(seen(&editor), "/done|");
        let mut editor = typed("by émile");
        editor.complete(&words);
        assert_eq!(seen(&editor), "by Émile Zola|");
        let mut editor = typed("nothing");
        assert!(editor.complete(&words).is_empty());
    }

    #[test]
    fn rows_leave_a_place_for_the_cursor() {
        let mut editor = typed("abcdef\n漢字");
        assert_eq!(editor.rows(5), (vec!["abcd".into(), "ef".into(), "漢字".into()], (2, 4)));
        editor.up();
        assert_eq!(editor.rows(5).1, (0, 2));
    }

    #[test]
    fn words_are_not_broken_while_they_are_typed() {
        let rows = |text: &str| typed(text).rows(8);
        assert_eq!(rows("one two three"), (vec!["one two ".into(), "three".into()], (1, 5)));
        assert_eq!(rows("one two"), (vec!["one two".into()], (0, 7)));
        // The blank behind a full row hangs over, and the cursor goes on.
        assert_eq!(rows("one two "), (vec!["one two ".into(), String::new()], (1, 0)));
        assert_eq!(rows("a bcdefghijk"), (vec!["a ".into(), "bcdefgh".into(), "ijk".into()], (2, 3)));
        let mut editor = typed("one two three");
        editor.go_word_left();
        assert_eq!(editor.rows(8).1, (1, 0));
    }
}
