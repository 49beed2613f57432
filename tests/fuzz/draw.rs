//! What hostile input is made from: honest input, changed in the ways that programs stumble over.

use std::fmt;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::{Index, select};

/// The longest input, in bytes.
pub(super) const LONGEST: usize = 256 << 10;

/// Bytes that show themselves as they would stand in a test.
#[derive(Clone, PartialEq)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

/// What is put somewhere.
const PIECES: &[&[u8]] = &[
    b"",
    b"\0",
    b"\n",
    b"\r",
    b"\r\n",
    b"\t",
    b" ",
    b"  ",
    b"\"",
    b"'",
    b"\\",
    b"/",
    b"../",
    b":",
    b": ",
    b",",
    b"-",
    b"- ",
    b"#",
    b" #",
    b"|",
    b">",
    b"{",
    b"}",
    b"[",
    b"]",
    b"{}",
    b"[]",
    b"()",
    b"&a ",
    b"*a",
    b"!!x ",
    b"%",
    b"@",
    b"`",
    b"---\n",
    b"...\n",
    b"<<: *a",
    b"? ",
    b"null",
    b"true",
    b"1e999",
    b"-0",
    b"0x",
    b"1.",
    b"18446744073709551616",
    b"-9223372036854775809",
    b"1e-400",
    b"\\u0000",
    b"\\ud800",
    b"\\ud83d\\ude00",
    b"\\x",
    b"\xff",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xc2\x85",
    b"\xe2\x80\xa8",
    b"\xe2\x80\xae",
    b"e\xcc\x81",
    b"\x1b[2J",
    b"{{",
    b"}}",
    b"{%",
    b"%}",
    b"{#",
    b"#}",
    b"{{ x }}",
    b"data:",
    b"data: ",
    b"event: x",
    b"\n\n",
    b"\r\r",
    b"a{9}",
    b"(",
    b")*",
    b"[^",
    b"\\p{L}",
    b"$text",
    b"$list",
    b"\x7f\x80\x81",
    b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];

/// What stands in itself, opened and closed.
const NESTS: &[(&str, &str)] =
    &[("[", "]"), ("{\"a\":", "}"), ("(", ")"), ("- ", ""), ("{{", "}}"), ("[a: ", "]"), ("{% if x %}", "{% endif %}")];

/// One change.
#[derive(Clone, Debug)]
enum Edit {
    Flip(Index, u8),
    Remove(Index, usize),
    Put(Index, Vec<u8>),
    /// Takes a part and puts it somewhere else, so many times.
    Copy(Index, usize, Index, usize),
    Nest(Index, (&'static str, &'static str), usize),
    End(Index),
    LineEnds,
    Mark,
}

fn edit() -> impl Strategy<Value = Edit> {
    let index = any::<Index>;
    let bytes = prop_oneof![4 => select(PIECES).prop_map(<[u8]>::to_vec), 1 => vec(any::<u8>(), 0..12)];
    prop_oneof![
        4 => (index(), 0..8_u8).prop_map(|(at, bit)| Edit::Flip(at, bit)),
        3 => (index(), 0..60_usize).prop_map(|(at, length)| Edit::Remove(at, length)),
        6 => (index(), bytes).prop_map(|(at, bytes)| Edit::Put(at, bytes)),
        3 => (index(), 0..200_usize, index(), prop_oneof![4 => Just(1), 1 => 2..60_usize])
            .prop_map(|(from, length, to, times)| Edit::Copy(from, length, to, times)),
        1 => (index(), select(NESTS), 1..300_usize).prop_map(|(at, nest, depth)| Edit::Nest(at, nest, depth)),
        1 => index().prop_map(Edit::End),
        1 => Just(Edit::LineEnds),
        1 => Just(Edit::Mark),
    ]
}

fn apply(edit: &Edit, bytes: &mut Vec<u8>) {
    let place = |at: &Index, bytes: &[u8]| at.index(bytes.len() + 1);
    match edit {
        Edit::Flip(at, bit) => {
            let at = place(at, bytes);
            bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << bit);
        }
        Edit::Remove(at, length) => {
            let at = place(at, bytes);
            bytes.drain(at..(at + length).min(bytes.len()));
        }
        Edit::Put(at, put) => {
            let at = place(at, bytes);
            bytes.splice(at..at, put.iter().copied());
        }
        Edit::Copy(from, length, to, times) => {
            let (from, to) = (place(from, bytes), place(to, bytes));
            let part = bytes[from..(from + length).min(bytes.len())].repeat(*times);
            bytes.splice(to..to, part);
        }
        Edit::Nest(at, (open, shut), depth) => {
            let at = place(at, bytes);
            let nest = open.repeat(*depth) + &shut.repeat(*depth);
            bytes.splice(at..at, nest.into_bytes());
        }
        Edit::End(at) => bytes.truncate(place(at, bytes)),
        Edit::LineEnds => {
            *bytes = bytes
                .iter()
                .flat_map(|byte| if *byte == b'\n' { &b"\r\n"[..] } else { std::slice::from_ref(byte) })
                .copied()
                .collect()
        }
        Edit::Mark => drop(bytes.splice(0..0, *b"\xef\xbb\xbf")),
    }
}

/// Draws one of the texts, changed some times; and which one it was.
pub(super) fn mutated(corpus: Vec<Vec<u8>>) -> impl Strategy<Value = (usize, Bytes)> {
    let edits = prop_oneof![6 => vec(edit(), 0..4), 1 => vec(edit(), 4..30)];
    (any::<Index>(), edits).prop_map(move |(which, edits)| {
        let which = which.index(corpus.len());
        let mut bytes = corpus[which].clone();
        for edit in &edits {
            apply(edit, &mut bytes);
            bytes.truncate(LONGEST);
        }
        (which, Bytes(bytes))
    })
}

/// Returns the texts of all files with one of these endings that are short enough to draw many of.
pub(super) fn corpus(folders: &[&str], endings: &[&str]) -> Vec<Vec<u8>> {
    let files = crate::lua::structure::files(folders, endings).into_iter().map(|(_, text)| text.into_bytes());
    let found: Vec<Vec<u8>> = files.filter(|text| text.len() <= LONGEST / 8).collect();
    assert!(found.len() > 2, "there are too few of {endings:?}");
    found
}

/// Values as files hold them.
pub(super) fn value() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::{Value, json};
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", |float| float.is_finite().then(|| json!(float))),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            vec((text(), inner), 0..6).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

/// Texts, most of them of pieces that mean something to somebody.
pub(super) fn text() -> impl Strategy<Value = String> {
    let piece = select(PIECES).prop_map(|piece| String::from_utf8_lossy(piece).into_owned());
    prop_oneof![2 => vec(piece, 0..8).prop_map(|pieces| pieces.concat()), 1 => any::<String>(), 1 => "[a-z]{0,8}"]
}
