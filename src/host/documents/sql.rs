//! Turns SQL as people write it into SQL that SQLite accepts: the name after a dot may be a keyword, as in `call.order`.

use crate::error::{Code, Failure, Result};

/// Quotes each name that follows a dot, and refuses a second statement.
pub(super) fn quote_names(sql: &str) -> Result<String> {
    let bytes = sql.as_bytes();
    let mut out = String::with_capacity(sql.len() + 16);
    let mut at = 0;
    let mut after_dot = false;
    let mut ended = false;
    while at < bytes.len() {
        let end = token(bytes, at);
        let token = &sql[at..end];
        let first = bytes[at];
        let is_space = first.is_ascii_whitespace() || token.starts_with("--") || token.starts_with("/*");
        if ended && !is_space && token != ";" {
            return Err(Failure::new(
                Code::RequestInvalid,
                "a query is one statement, and there is more behind its `;`",
            ));
        }
        ended |= token == ";";
        if after_dot && is_name_start(first) {
            out.push('"');
            out.push_str(token);
            out.push('"');
        } else {
            out.push_str(token);
        }
        if !is_space {
            after_dot = token == ".";
        }
        at = end;
    }
    Ok(out)
}

/// Returns the end of the token that begins at `at`. An unclosed quote or comment ends with the text.
fn token(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let until = |found: Option<usize>, length: usize| found.map_or(bytes.len(), |found| at + found + length);
    match rest[0] {
        // A doubled quote ends one quoted token and begins another, which yields the same text.
        quote @ (b'\'' | b'"' | b'`') => until(rest[1..].iter().position(|byte| *byte == quote), 2),
        b'[' => until(rest.iter().position(|byte| *byte == b']'), 1),
        b'-' if rest.starts_with(b"--") => until(rest.iter().position(|byte| *byte == b'\n'), 1),
        b'/' if rest.starts_with(b"/*") => until(rest[2..].windows(2).position(|pair| pair == b"*/"), 4),
        first if is_name_start(first) => until(rest.iter().position(|byte| !is_name(*byte)), 0),
        first if first.is_ascii_digit() => until(rest.iter().position(|byte| !is_name(*byte) && *byte != b'.'), 0),
        _ => at + 1,
    }
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn is_name(byte: u8) -> bool {
    is_name_start(byte) || byte.is_ascii_digit() || byte == b'$'
}

#[cfg(test)]
mod tests {
    use super::quote_names;

    #[test]
    fn names_behind_a_dot_are_quoted_and_nothing_else_is() {
        for (sql, expected) in [
            ("SELECT tc.order FROM t tc", "SELECT tc.\"order\" FROM t tc"),
            ("SELECT tc . \"order\", t.* FROM t", "SELECT tc . \"order\", t.* FROM t"),
            ("SELECT 1.5e3, 'a.order', \"a.b\", [a.b], `a.b`", "SELECT 1.5e3, 'a.order', \"a.b\", [a.b], `a.b`"),
            ("SELECT 1 -- t.order\n, t.x /* t.order */", "SELECT 1 -- t.order\n, t.\"x\" /* t.order */"),
            ("SELECT 'it''s t.order' || t.été;", "SELECT 'it''s t.order' || t.\"été\";"),
            ("SELECT 'open t.order", "SELECT 'open t.order"),
            ("SELECT t. /* x */ order", "SELECT t. /* x */ \"order\""),
        ] {
            assert_eq!(quote_names(sql).unwrap(), expected);
        }
    }

    #[test]
    fn a_second_statement_is_refused() {
        assert!(quote_names("SELECT 1; -- fine\n ;").is_ok());
        assert!(quote_names("SELECT ';'").is_ok());
        assert!(quote_names("SELECT 1; DROP TABLE t").is_err());
    }
}
