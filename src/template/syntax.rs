//! Refuses what a template may not contain: operators that make texts, slices, tags that capture or define, and depth.
//!
//! With the first three, a few lines can double a text until the memory is full, unnoticed by fuel and filters. minijinja
//! walks and drops a tree by recursion, so a deep tree fills the stack: it limits the depth of brackets and tags itself,
//! but not that of the operators between them, nor that of `elif`.
//! This is a scanner, not a parser: minijinja refuses what the scanner does not understand.

/// The allowed tags.
const TAGS: &[&str] = &["if", "elif", "else", "endif", "for", "endfor", "include", "raw", "endraw", "set"];
/// How many operators of an expression may be nested.
const DEEPEST: usize = 200;
/// Words that are operators.
const WORDS: &[&str] = &["and", "or", "not", "is", "in", "if", "else"];
/// Words that are values, and no names.
const CONSTANTS: &[&str] = &["true", "false", "none", "True", "False", "None"];
/// How many `elif` a template may have: each is nested in the one before it.
const ELIFS: usize = 200;

/// Returns the line of the first thing that a template may not contain, and why.
pub(super) fn check(source: &str) -> Result<(), (usize, String)> {
    let mut rest = source;
    let mut elifs = 0;
    while let Some(start) = rest.find('{') {
        let at = source.len() - rest.len() + start;
        let line = || 1 + source[..at].matches('\n').count();
        let (tag, inner) = match rest.as_bytes().get(start + 1) {
            Some(b'#') => {
                let Some(end) = rest[start + 2..].find("#}") else { return Ok(()) };
                rest = &rest[start + 2 + end + 2..];
                continue;
            }
            Some(b'%') => (true, &rest[start + 2..]),
            Some(b'{') => (false, &rest[start + 2..]),
            _ => {
                rest = &rest[start + 1..];
                continue;
            }
        };
        let inner = inner.strip_prefix(['-', '+']).unwrap_or(inner);
        if tag {
            if let Some(raw) = basic(inner, "raw") {
                let Some(behind) = behind_raw(raw) else { return Ok(()) };
                rest = behind;
                continue;
            }
            let inner = inner.trim_start();
            let name = first_word(inner);
            if !TAGS.contains(&name) {
                let known = TAGS.join(", ");
                let name = crate::model::text::excerpt(name);
                return Err((line(), format!("there is no tag `{name}` here, only {known}")));
            }
            if name == "set" && !inner[..inner.find("%}").unwrap_or(inner.len())].contains('=') {
                return Err((line(), "`set` must give a value: {% set name = … %}".to_owned()));
            }
            elifs += usize::from(name == "elif");
            if elifs > ELIFS {
                return Err((line(), format!("a template may have {ELIFS} `elif`, and this is one more")));
            }
        }
        let names = tag && matches!(first_word(inner.trim_start()), "set" | "for");
        let end = expression(inner, if tag { "%}" } else { "}}" }, names).map_err(|why| (line(), why))?;
        rest = &inner[end..];
    }
    Ok(())
}

fn first_word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// Returns the text behind a tag that is nothing but `name`; `text` begins behind the tag's `{%`.
fn basic<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let space = |c: char| c.is_ascii_whitespace();
    let text = text.trim_start_matches(space).strip_prefix(name)?.trim_start_matches(space);
    text.strip_prefix(['-', '+']).unwrap_or(text).strip_prefix("%}")
}

/// Returns the text behind the end of a raw part. The content of the part is plain text, whatever it looks like.
fn behind_raw(text: &str) -> Option<&str> {
    let mut tags = text.match_indices("{%").map(|(at, _)| &text[at + 2..]);
    tags.find_map(|tag| basic(tag.strip_prefix(['-', '+']).unwrap_or(tag), "endraw"))
}

/// The depth of an expression's tree, for the part in one pair of brackets.
#[derive(Default)]
struct Depth {
    bracket: u8,
    /// Whether the part is, or is in, a literal list or map.
    makes: bool,
    /// Whether the brackets group, and whether a name stands in them: with a comma, they make a list, too.
    groups: bool,
    named: bool,
    /// The operators since the last comma, which may all be nested, and the greatest depth of the parts that they join.
    operators: usize,
    joined: usize,
    /// The greatest depth of the parts before that comma.
    before: usize,
}

impl Depth {
    fn max_depth(&self) -> usize {
        self.before.max(self.operators + self.joined)
    }

    /// Adds the depth of a part in brackets.
    fn close(&mut self, inner: &Depth) {
        self.operators += 1;
        self.joined = self.joined.max(inner.max_depth());
    }
}

/// Returns where the expression ends. If it gives a value a name (`names`), it may not make a list of values that have
/// names: step by step, such lists of lists would double in size, or become as deep as there are steps.
fn expression(text: &str, close: &str, names: bool) -> Result<usize, String> {
    let bytes = text.as_bytes();
    // The open brackets, behind the expression around them.
    let mut open = vec![Depth::default()];
    let mut at = 0;
    // Whether a value was read last: a bracket behind a value selects a part of it.
    let mut value = false;
    // Whether the `=` or `in` behind the new name was read.
    let mut bound = false;
    while at < bytes.len() {
        // Inside of brackets, `}}` closes two of them.
        if open.len() == 1 && text[at..].starts_with(close) {
            break;
        }
        let last = open.len() - 1;
        let before = std::mem::take(&mut value);
        match bytes[at] {
            quote @ (b'"' | b'\'') => {
                at = string(bytes, at + 1, quote);
                value = true;
            }
            b'~' | b'*' => return Err(format!("there is no operator `{}` here", char::from(bytes[at]))),
            b'+' if !text[at + 1..].starts_with(close) => return Err("there is no operator `+` here".to_owned()),
            b':' if open[last].bracket == b'[' => return Err("there are no slices here".to_owned()),
            bracket @ (b'[' | b'{' | b'(') => {
                let groups = !before && bracket == b'(';
                let makes = open[last].makes || !before && !groups;
                open.push(Depth { bracket, makes, groups, ..Depth::default() });
            }
            b']' | b'}' | b')' if last > 0 => {
                let inner = open.remove(last);
                open[last - 1].close(&inner);
                open[last - 1].named |= inner.named;
                value = true;
            }
            b',' => {
                let Depth { bracket, makes, groups, named, .. } = open[last];
                if bound && (last == 0 || groups && named) {
                    return Err("a list that gets a name is written in `[` and `]`, and holds none".to_owned());
                }
                let makes = makes || groups;
                open[last] =
                    Depth { bracket, makes, groups, named, before: open[last].max_depth(), ..Depth::default() };
            }
            b'.' | b'|' | b'-' | b'/' | b'%' | b'=' | b'!' | b'<' | b'>' => {
                open[last].operators += 1;
                bound |= names && last == 0 && bytes[at] == b'=';
            }
            b' ' | b'\t' | b'\r' | b'\n' => value = before,
            b'0'..=b'9' => value = true,
            letter if letter.is_ascii_alphabetic() || letter == b'_' || letter >= 0x80 => {
                let word = first_word(&text[at..]);
                let operator = WORDS.contains(&word);
                open[last].operators += usize::from(operator);
                if word == "recursive" && bound {
                    return Err("there are no recursive loops here".to_owned());
                }
                bound |= names && last == 0 && word == "in";
                if !operator && !CONSTANTS.contains(&word) {
                    if bound && open[last].makes {
                        let word = crate::model::text::excerpt(word);
                        return Err(format!("a list or map that gets a name holds no others: `{word}`"));
                    }
                    open[last].named = true;
                }
                at += word.len().saturating_sub(1);
                value = !operator;
            }
            _ => {}
        }
        at += 1;
        while at < text.len() && !text.is_char_boundary(at) {
            at += 1;
        }
    }
    // minijinja makes a tree of an unclosed expression, too, before it refuses it.
    let deepest = open.into_iter().rev().reduce(|inner, mut outer| {
        outer.close(&inner);
        outer
    });
    if deepest.is_some_and(|depth| depth.max_depth() > DEEPEST) {
        return Err(format!("an expression of more than {DEEPEST} operators, one inside of another"));
    }
    Ok(if at < text.len() { at + 2 } else { text.len() })
}

/// Returns where a quoted text ends: at its closing quote.
fn string(bytes: &[u8], mut at: usize, quote: u8) -> usize {
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at.min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn what_inserts_chooses_and_repeats_is_fine() {
        for source in [
            "a {{ b }} {c} {% if x == 'a ~ b' and y[0] %}{% else %}{% endif %}",
            "{%- for n in range(1, 3) -%}{{ n - 1 }}{{ {\"a\": 1}.a }}{%- endfor +%}{# a ~ b {% macro %} #}",
            "{% set a = b|default(\"+\") %}{{ x['}}'] }}",
            "é {{ 'é' }} {",
            "{% raw %}{{ a ~ b {% macro m() %} ' {% endraw %}{{ a }}",
            "{% for (k, v) in (a or b)|items %}{{ [k, v]|join }}{% endfor %}{% set x = y[z]|default([1, none]) %}",
            "{{ [-1, -2, {'a': -3}]|length }}{% for x in [1, 2] if x is not none and x != 1 %}{% endfor %}",
        ] {
            assert_eq!(check(source), Ok(()), "{source}");
        }
    }

    #[test]
    fn what_makes_texts_is_refused_with_its_line() {
        for source in [
            "\n{{ a ~ b }}",
            "\n{{ a * 3 }}",
            "\n{{ a + b }}",
            "\n{{ a[1:] }}",
            "\n{% macro m() %}",
            "\n{% set x %}",
            "\n{% filter upper %}",
            "\n{%- block a %}",
            // What doubles with each step, or is as deep as there are steps.
            "\n{% set x = [x, x] %}",
            "\n{% set x = {'a': x} %}",
            "\n{% set x = x, x %}",
            "\n{% set x = (x, 1) %}",
            "\n{% set x = (1, x) %}",
            "\n{% set x = y or ((x), 1) %}",
            "\n{% set x = y|default([x]) %}",
            "\n{% for a in [[a, a]] %}",
            "\n{% for a in b recursive %}",
            // What seems to begin in a raw part or in a comment hides nothing behind it.
            "{% raw %}{{ '{% endraw %}\n{{ a ~ b }}{# ' #}",
            "{#} {{ ' #}\n{{ a ~ b }}{# ' #}",
        ] {
            assert_eq!(check(source).map_err(|(line, _)| line), Err(2), "{source}");
        }
    }
}
