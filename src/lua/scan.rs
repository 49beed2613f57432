//! Splits Lua source into words, for checks that need no VM: what a file requires, which functions of the host it
//! names, which prompts it renders. This is a scanner, not a parser: it skips what it does not understand.

/// A word of Lua with its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Word {
    pub kind: WordKind,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

/// What a word of Luau source is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum WordKind {
    Name(String),
    /// The text between the quotes, if it has no escape.
    Text(Option<String>),
    Sign(char),
}

impl Word {
    /// Returns the name that the word is, if it is one.
    pub(super) fn name(&self) -> Option<&str> {
        match &self.kind {
            WordKind::Name(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the text that the word is, if it is one without an escape.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.kind {
            WordKind::Text(text) => text.as_deref(),
            _ => None,
        }
    }

    /// Tells whether the word is this sign.
    pub(super) fn is_sign(&self, sign: char) -> bool {
        self.kind == WordKind::Sign(sign)
    }
}

/// Returns the words of a source, without comments and without the expressions in interpolated texts.
pub(super) fn words(source: &str) -> Vec<Word> {
    let mut scanner = LuaScanner { rest: source.chars().collect(), at: 0, line: 1, column: 1 };
    let mut words = Vec::new();
    while let Some(c) = scanner.peek(0) {
        let (line, column) = (scanner.line, scanner.column);
        let kind = match c {
            _ if c.is_whitespace() => {
                scanner.next();
                continue;
            }
            '-' if scanner.peek(1) == Some('-') => {
                scanner.comment();
                continue;
            }
            '[' if scanner.long().is_some() => WordKind::Text(Some(scanner.long_text())),
            '"' | '\'' | '`' => WordKind::Text(scanner.text(c)),
            _ if c.is_alphanumeric() || c == '_' => {
                let mut name = String::new();
                while let Some(c) = scanner.peek(0).filter(|c| c.is_alphanumeric() || *c == '_') {
                    name.push(c);
                    scanner.next();
                }
                WordKind::Name(name)
            }
            _ => {
                scanner.next();
                WordKind::Sign(c)
            }
        };
        words.push(Word { kind, line, column });
    }
    words
}

struct LuaScanner {
    rest: Vec<char>,
    at: usize,
    line: usize,
    column: usize,
}

impl LuaScanner {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.rest.get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek(0)?;
        self.at += 1;
        if c == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(c)
    }

    fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.next();
        }
    }

    /// Returns how many `=` a long bracket has that begins here.
    fn long(&self) -> Option<usize> {
        let level = self.rest.get(self.at + 1..)?.iter().take_while(|c| **c == '=').count();
        (self.peek(0) == Some('[') && self.peek(level + 1) == Some('[')).then_some(level)
    }

    fn long_text(&mut self) -> String {
        let level = self.long().unwrap_or(0);
        self.skip(level + 2);
        let close: Vec<char> = std::iter::once(']').chain(std::iter::repeat_n('=', level)).chain([']']).collect();
        let mut text = String::new();
        while self.at < self.rest.len() && !self.rest[self.at..].starts_with(&close) {
            text.extend(self.next());
        }
        self.skip(close.len());
        text
    }

    fn comment(&mut self) {
        self.skip(2);
        if self.long().is_some() {
            self.long_text();
            return;
        }
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.next();
        }
    }

    fn text(&mut self, quote: char) -> Option<String> {
        self.next();
        let mut text = Some(String::new());
        while let Some(c) = self.next() {
            match c {
                '\\' => {
                    text = None;
                    self.next();
                }
                '{' if quote == '`' => text = None,
                '\n' if quote != '`' => break,
                _ if c == quote => break,
                _ => text.iter_mut().for_each(|text| text.push(c)),
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_no_words_and_texts_are_one() {
        let source = "-- require('a')\n--[==[ b\n]] ]==] local x = require(\"./c\") .. [[d\ne]] .. 'f\\n' .. `g {h}`";
        let words = words(source);
        let shown: Vec<String> = words
            .iter()
            .map(|word| match &word.kind {
                WordKind::Name(name) => name.clone(),
                WordKind::Text(text) => format!("{text:?}"),
                WordKind::Sign(sign) => sign.to_string(),
            })
            .collect();
        let wanted = r#"local x = require ( Some("./c") ) . . Some("d\ne") . . None . . None"#;
        assert_eq!(shown.join(" "), wanted);
        assert_eq!((words[5].line, words[5].column), (3, 27));
    }
}
