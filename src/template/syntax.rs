//! What a template may not contain: operators that make texts, slices, and tags that capture or define.
//!
//! With those, a few lines can double a text until the memory is full, where neither fuel nor filters see it.
//! It is a scanner and no parser: what it does not understand, minijinja refuses.

/// The tags that there are.
const TAGS: &[&str] = &["if", "elif", "else", "endif", "for", "endfor", "include", "raw", "endraw", "set"];

/// Returns the line of the first thing that a template may not contain, and why.
pub(super) fn check(source: &str) -> Result<(), (usize, String)> {
    let mut rest = source;
    while let Some(start) = rest.find('{') {
        let at = source.len() - rest.len() + start;
        let line = || 1 + source[..at].matches('\n').count();
        let (tag, inner) = match rest.as_bytes().get(start + 1) {
            Some(b'#') => {
                let Some(end) = rest[start..].find("#}") else { return Ok(()) };
                rest = &rest[start + end + 2..];
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
            let inner = inner.trim_start();
            let name = inner.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
            if !TAGS.contains(&name) {
                let known = TAGS.join(", ");
                let name = crate::model::text::excerpt(name);
                return Err((line(), format!("there is no tag `{name}` here, only {known}")));
            }
            if name == "set" && !inner[..inner.find("%}").unwrap_or(inner.len())].contains('=') {
                return Err((line(), "`set` must give a value: {% set name = … %}".to_owned()));
            }
        }
        let end = expression(inner, if tag { "%}" } else { "}}" }).map_err(|why| (line(), why))?;
        rest = &inner[end..];
    }
    Ok(())
}

/// Returns where the expression ends.
fn expression(text: &str, close: &str) -> Result<usize, String> {
    let bytes = text.as_bytes();
    let mut open = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        // Inside of brackets, `}}` closes two of them.
        if open.is_empty() && text[at..].starts_with(close) {
            return Ok(at + 2);
        }
        match bytes[at] {
            quote @ (b'"' | b'\'') => at = string(bytes, at + 1, quote),
            b'~' | b'*' => return Err(format!("there is no operator `{}` here", char::from(bytes[at]))),
            b'+' if !text[at + 1..].starts_with(close) => return Err("there is no operator `+` here".to_owned()),
            b':' if open.last() == Some(&b'[') => return Err("there are no slices here".to_owned()),
            bracket @ (b'[' | b'{' | b'(') => open.push(bracket),
            b']' | b'}' | b')' => {
                open.pop();
            }
            _ => {}
        }
        at += 1;
        while at < text.len() && !text.is_char_boundary(at) {
            at += 1;
        }
    }
    Ok(text.len())
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
        ] {
            assert_eq!(check(source).map_err(|(line, _)| line), Err(2), "{source}");
        }
    }
}
