//! The promise: the events of a stream are the same however it is cut, and those that its definition says.

use nietz::host::llm::sse::{NotUtf8, Parser};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;

use super::draw::{Bytes, mutated};
use super::holds;

/// Reads a stream at once, as it is defined: slow and plain.
fn defined(stream: &[u8]) -> (Vec<String>, Result<(), NotUtf8>) {
    let stream = stream.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stream);
    let mut lines = Vec::new();
    let mut line = Vec::new();
    let mut bytes = stream.iter().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\r' | b'\n' => {
                if *byte == b'\r' && bytes.peek() == Some(&&b'\n') {
                    bytes.next();
                }
                lines.push(std::mem::take(&mut line));
            }
            byte => line.push(*byte),
        }
    }
    let (mut events, mut data) = (Vec::new(), None::<Vec<String>>);
    for line in lines {
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], line[colon + 1..].strip_prefix(b" ").unwrap_or(&line[colon + 1..])),
            None => (&line[..], &b""[..]),
        };
        if line.is_empty() {
            events.extend(data.take().map(|lines| lines.join("\n")));
        } else if name == b"data" {
            let Ok(value) = String::from_utf8(value.to_vec()) else { return (events, Err(NotUtf8)) };
            data.get_or_insert_default().push(value);
        }
    }
    (events, Ok(()))
}

/// Reads it in pieces of these lengths, again and again.
fn cut(stream: &[u8], lengths: &[usize]) -> (Vec<String>, Result<(), NotUtf8>) {
    let (mut parser, mut events, mut rest) = (Parser::default(), Vec::new(), stream);
    for length in lengths.iter().cycle() {
        let (piece, behind) = rest.split_at((*length).min(rest.len()));
        parser.push(piece);
        loop {
            match parser.event() {
                Ok(Some(data)) => events.push(data),
                Ok(None) => break,
                Err(NotUtf8) => return (events, Err(NotUtf8)),
            }
        }
        let read = stream.len() - behind.len();
        let line = stream[..read].iter().rposition(|byte| matches!(byte, b'\r' | b'\n')).map_or(0, |end| end + 1);
        assert_eq!(parser.unfinished_length(), read - line, "what is kept is the line that has no end yet");
        if behind.is_empty() {
            break;
        }
        rest = behind;
    }
    (events, Ok(()))
}

fn streams() -> Vec<Vec<u8>> {
    [
        "\u{feff}data: a\r\n\r\ndata: b\r\rdata:c\n\n",
        ": comment\n\n:\n\nevent: ping\nid: 7\ndata: {}\nretry: 5\n\n",
        "data: one\ndata: two\n\ndata\n\ndata:\n\ndata:  x\n\ndatabase: x\n\n\n\ndata: é🦀\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n",
        "data: an event that has no end\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

#[test]
fn the_events_of_a_stream_are_those_of_its_definition_however_it_is_cut() {
    let piece = select(vec![
        &b"data"[..],
        b"data:",
        b"data: ",
        b":",
        b" ",
        b"\r",
        b"\n",
        b"\r\n",
        b"x",
        b"\xc3\xa9",
        b"\xff",
        b"\xef\xbb\xbf",
    ]);
    let stream = prop_oneof![
        mutated(streams()).prop_map(|(_, bytes)| bytes),
        vec(piece, 0..60).prop_map(|pieces| Bytes(pieces.concat())),
        vec(any::<u8>(), 0..60).prop_map(Bytes),
    ];
    let lengths = prop_oneof![vec(1..9_usize, 1..6), Just(vec![1]), vec(1..3_000_usize, 1..4)];
    holds("sse", (stream, lengths), |(stream, lengths)| assert_eq!(cut(&stream.0, lengths), defined(&stream.0)));
}

#[test]
fn each_stream_is_read_as_defined_cut_at_any_byte() {
    for stream in streams() {
        for length in 1..=stream.len() {
            assert_eq!(cut(&stream, &[length]), defined(&stream), "{:?} in pieces of {length}", Bytes(stream.clone()));
            assert_eq!(cut(&stream[..length], &[3, 1]), defined(&stream[..length]));
        }
    }
}

/// A line without an end is looked at once, however many pieces it comes in.
#[test]
fn a_long_line_in_small_pieces_takes_as_long_as_it_is() {
    let mut stream = b"data: ".to_vec();
    stream.resize(8 << 20, b'x');
    stream.extend(b"\n\n");
    let limit = nietz::cpu::CpuLimit::new(nietz::cpu::ThreadClock::current(), super::PATIENCE);
    let (mut parser, mut events) = (Parser::default(), 0);
    for piece in stream.chunks(64) {
        parser.push(piece);
        events += usize::from(parser.event().is_ok_and(|event| event.is_some()));
        assert!(!limit.is_over(), "it takes longer than it is");
    }
    assert_eq!(events, 1);
}
