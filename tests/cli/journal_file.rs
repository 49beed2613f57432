//! The promise: a journal is either whole, or torn at its end and cut there, or broken and refused by its
//! line with a way to go on. An unknown version is an error, never a guess.

use std::collections::BTreeMap;

use crate::support::env::{Env, RUN};
use crate::support::kills;
use crate::support::model_server::{ModelServer, Response};

const FLOW: &str = include_str!("../support/flows/short.lua");
const ANSWER: &str = "more of it\n";

/// A finished run, and the bytes of its journal.
fn finished() -> (ModelServer, Env, Vec<u8>) {
    let server = ModelServer::start(|_| Response::text("a reply"));
    let env = Env::with(&server).flow("short", FLOW);
    env.run(["short"]).stdin(ANSWER).go().exits(0);
    let bytes = std::fs::read(env.journal_path()).expect("there is a journal");
    (server, env, bytes)
}

/// Where the line begins that holds this, from 0.
fn start_of(bytes: &[u8], what: &str) -> usize {
    let at = bytes.windows(what.len()).position(|window| window == what.as_bytes()).expect("it is there");
    bytes[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
}

/// Returns lengths from `from` to `to` at which to cut: `few`, or each.
fn cuts(from: usize, to: usize, few: u64) -> Vec<u64> {
    kills::points((to - from + 1) as u64, few).into_iter().map(|point| from as u64 + point - 1).collect()
}

/// Cuts the journal at each of these lengths and resumes what is left, on a few threads.
fn resume_cut_at(lengths: &[u64], line: usize, bytes: &[u8], documents: &BTreeMap<String, String>, calls: usize) {
    kills::for_each(lengths, |length| {
        let length = usize::try_from(length).expect("it is small");
        let server = ModelServer::start(|_| Response::text("a reply"));
        let env = Env::with(&server).flow("short", FLOW);
        env.write(&format!(".nietz/runs/{RUN}/journal.jsonl"), &bytes[..length]);
        env.own(RUN);
        let ended = env.nietz(["resume", RUN]).stdin(ANSWER).go().exits(0);
        let notice = format!("torn by the end of the process; {} bytes were cut off", length - line);
        assert_eq!(ended.stderr.contains(&notice), length > line, "cut at {length}: {}", ended.stderr);
        assert_eq!(server.calls(), calls, "cut at {length}");
        if calls > 0 {
            assert_eq!(&env.documents(), documents, "cut at {length}");
        }
        let journal = std::fs::read(env.journal_path()).expect("there is a journal");
        assert!(journal.starts_with(&bytes[..line]), "cut at {length}: the whole lines stay");
        env.resume().go().exits(0);
    });
}

#[test]
fn a_journal_cut_at_any_byte_of_its_last_line_is_resumed_and_says_so() {
    let (_server, env, bytes) = finished();
    let line = start_of(&bytes, "\"is\":{\"end\"");
    let cuts = cuts(line, bytes.len() - 1, 12);
    resume_cut_at(&cuts, line, &bytes, &env.documents(), 0);
}

#[test]
fn a_torn_outcome_of_a_call_is_no_outcome() {
    let (_server, env, bytes) = finished();
    let line = start_of(&bytes, "a reply");
    let end = line + bytes[line..].iter().position(|byte| *byte == b'\n').expect("lines end");
    let cuts = cuts(line, end, 12);
    resume_cut_at(&cuts, line, &bytes, &env.documents(), 1);
}

#[test]
fn a_flipped_bit_is_refused_by_its_line_and_the_whole_part_goes_on() {
    let (server, env, bytes) = finished();
    let documents = env.documents();
    let at = bytes.windows(7).position(|window| window == b"a reply").expect("it is there");
    let mut flipped = bytes.clone();
    flipped[at] ^= 4;
    std::fs::write(env.journal_path(), &flipped).expect("it can be written");
    let number = bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1;

    let refused = env.nietz(["resume", RUN]).go().exits(4);
    let expected = format!("error[journal-broken]: /tmp/test/work/.nietz/runs/r1/journal.jsonl:{number}: ");
    assert!(env.normal(&refused.stderr).starts_with(&expected), "{}", refused.stderr);
    assert!(refused.stderr.contains(&format!("lines 1 to {} are whole", number - 1)), "{}", refused.stderr);
    assert!(refused.stderr.contains("resume RUN --whole"), "{}", refused.stderr);
    assert_eq!(std::fs::read(env.journal_path()).expect("it is there"), flipped, "a refused journal is left alone");

    env.nietz(["resume", RUN, "--whole"]).stdin(ANSWER).go().exits(0);
    assert_eq!(server.calls(), 2, "the call whose outcome was broken");
    assert_eq!(env.documents(), documents);
    let kept = std::fs::read(env.path(&format!(".nietz/runs/{RUN}/journal.broken-1.jsonl"))).expect("it is kept");
    assert_eq!(kept, flipped);
    let start = start_of(&bytes, "a reply");
    assert!(std::fs::read(env.journal_path()).expect("it is there").starts_with(&bytes[..start]));
    env.nietz(["resume", RUN]).go().exits(0);
}

#[test]
fn a_journal_of_another_version_is_refused_and_left_alone() {
    let (_server, env, bytes) = finished();
    let text = String::from_utf8(bytes).expect("journals are UTF-8").replacen("{\"v\":2,", "{\"v\":9,", 1);
    std::fs::write(env.journal_path(), &text).expect("it can be written");
    for arguments in [vec!["resume", RUN], vec!["resume", RUN, "--whole"]] {
        let refused = env.nietz(arguments).go().exits(4);
        assert!(refused.stderr.contains("error[journal-version]"), "{}", refused.stderr);
        assert!(refused.stderr.contains("journal.jsonl:1: this journal has format 9"), "{}", refused.stderr);
    }
    assert_eq!(std::fs::read_to_string(env.journal_path()).expect("it is there"), text);
}

#[test]
fn a_new_run_never_takes_the_place_of_one_that_is_there() {
    let (_server, env, bytes) = finished();
    let refused = env.run(["short"]).stdin(ANSWER).go().exits(2);
    assert!(refused.stderr.contains("there is a run r1 already"), "{}", refused.stderr);
    assert_eq!(std::fs::read(env.journal_path()).expect("it is there"), bytes);
}
