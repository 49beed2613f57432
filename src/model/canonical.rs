//! The canonical bytes of a JSON value, from which keys are made: sorted members, no white space.

use serde_json::Value;

/// Appends the canonical form of `value` to `out`.
///
/// Members are sorted by their name's bytes; numbers and strings are written as serde_json does.
pub(crate) fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(item, out);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            // Most objects are sorted already and need no copy.
            if members.keys().is_sorted() {
                object(members.iter(), out);
            } else {
                let mut sorted: Vec<_> = members.iter().collect();
                sorted.sort_unstable_by(|a, b| a.0.cmp(b.0));
                object(sorted.into_iter(), out);
            }
        }
        other => scalar(other, out),
    }
}

fn object<'a>(members: impl Iterator<Item = (&'a String, &'a Value)>, out: &mut Vec<u8>) {
    out.push(b'{');
    for (index, (name, member)) in members.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        scalar(name, out);
        out.push(b':');
        write(member, out);
    }
    out.push(b'}');
}

fn scalar(value: &(impl serde::Serialize + ?Sized), out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect("a string, number, boolean or null is always written to memory");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_members_does_not_matter() {
        let mut one = Vec::new();
        let mut two = Vec::new();
        write(&serde_json::json!({"b": [1, {"d": "é", "c": null}], "a": 1.5}), &mut one);
        write(&serde_json::json!({"a": 1.5, "b": [1, {"c": null, "d": "é"}]}), &mut two);
        assert_eq!(one, two);
        assert_eq!(String::from_utf8(one).unwrap(), r#"{"a":1.5,"b":[1,{"c":null,"d":"é"}]}"#);
    }
}
