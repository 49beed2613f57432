//! Resolves an unquoted YAML word to its value, by the YAML 1.2 core schema and nothing else.
//!
//! YAML libraries differ exactly here: `no` is text and not false, `017` is seventeen, `1_000` and
//! `2026-01-09` are text. Readers that guess more lose data silently.

use serde_json::{Number, Value};

pub(super) const TOO_LARGE: &str = "this number has too many digits to be kept exactly; write it in quotes, as text";

/// Returns the value of a plain scalar, or why there is none.
pub(super) fn resolve(word: &str) -> Result<Value, &'static str> {
    match word {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        _ => {}
    }
    let unsigned = word.strip_prefix(['+', '-']).unwrap_or(word);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(word, ".nan" | ".NaN" | ".NAN") {
        return Err("infinity and not-a-number cannot be stored; write it in quotes if it is text");
    }
    if is_digits(unsigned) {
        return integer(word.strip_prefix('+').unwrap_or(word), 10);
    }
    if let Some(digits) = word.strip_prefix("0o").filter(|digits| is_all(digits, |byte| (b'0'..=b'7').contains(&byte)))
    {
        return integer(digits, 8);
    }
    if let Some(digits) = word.strip_prefix("0x").filter(|digits| is_all(digits, |byte| byte.is_ascii_hexdigit())) {
        return integer(digits, 16);
    }
    if is_float(unsigned) {
        return match word.parse().ok().and_then(Number::from_f64) {
            Some(number) => Ok(Value::Number(number)),
            None => Err("this number is too large to be stored"),
        };
    }
    Ok(Value::String(word.to_owned()))
}

fn integer(digits: &str, radix: u32) -> Result<Value, &'static str> {
    if let Ok(number) = i64::from_str_radix(digits, radix) {
        return Ok(number.into());
    }
    u64::from_str_radix(digits, radix).map(Value::from).map_err(|_| TOO_LARGE)
}

/// Tells whether an unsigned word is a number with a point or an exponent.
fn is_float(word: &str) -> bool {
    let (mantissa, exponent) = match word.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (word, None),
    };
    let mantissa = match mantissa.split_once('.') {
        Some(("", fraction)) => is_digits(fraction),
        Some((whole, fraction)) => is_digits(whole) && (fraction.is_empty() || is_digits(fraction)),
        None => is_digits(mantissa),
    };
    mantissa && exponent.is_none_or(is_digits)
}

fn is_digits(word: &str) -> bool {
    is_all(word, |byte| byte.is_ascii_digit())
}

fn is_all(word: &str, test: impl Fn(u8) -> bool) -> bool {
    !word.is_empty() && word.bytes().all(test)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_are_what_the_core_schema_says() {
        for (word, value) in [
            ("", json!(null)),
            ("~", json!(null)),
            ("Null", json!(null)),
            ("TRUE", json!(true)),
            ("False", json!(false)),
            ("017", json!(17)),
            ("-017", json!(-17)),
            ("+5", json!(5)),
            ("0", json!(0)),
            ("0o17", json!(15)),
            ("0xfF", json!(255)),
            ("18446744073709551615", json!(18_446_744_073_709_551_615_u64)),
            ("10.0", json!(10.0)),
            ("1.", json!(1.0)),
            (".5", json!(0.5)),
            ("-1e3", json!(-1000.0)),
            ("1.2", json!(1.2)),
        ] {
            assert_eq!(resolve(word), Ok(value), "{word}");
        }
        for text in [
            "no",
            "yes",
            "on",
            "off",
            "y",
            "n",
            "tRUE",
            "1_000",
            "0b11",
            "-0o7",
            "-0x1",
            "0x",
            "0o8",
            "1e",
            "e3",
            ".",
            "1.2.3",
            "2026-01-09",
            "2026-01-09T10:30:00Z",
            "12:30:45",
            "<<",
            "=",
            "inf",
            "nan",
            "+",
            "-",
            "1 000",
        ] {
            assert_eq!(resolve(text), Ok(Value::from(text)), "{text}");
        }
        for refused in [".inf", "-.INF", ".nan", "1e999", "123456789012345678901234567890"] {
            assert!(resolve(refused).is_err(), "{refused}");
        }
    }
}
