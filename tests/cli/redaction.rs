//! The promise: a key of the environment stands in no journal, document or output, wherever it came from.

use crate::support::env::{Env, KEY};
use crate::support::model_server::{ModelServer, Response};

const FLOW: &str = include_str!("../support/flows/secrets.lua");

fn env(server: &ModelServer) -> Env {
    Env::with(server)
        .flow("secrets", &FLOW.replace("PLANTED", KEY))
        .file("flows/secrets/prompt.md", format!("a prompt file with {KEY} in it"))
        .file("notes/old.yaml", format!("slug: old\ntext: {KEY}\n"))
}

fn planted(_: &crate::support::model_server::Request) -> Response {
    // Pieces of one byte cut the key in all its places.
    Response::text(format!("you gave me {KEY}.")).in_pieces(1)
}

#[track_caller]
fn holds_no_key(what: &str, text: &str) {
    assert!(!text.contains(KEY), "{what} holds the key: {text}");
}

#[test]
fn a_planted_key_is_in_nothing_that_is_written_or_shown() {
    for json in [true, false] {
        let server = ModelServer::start(planted);
        let collector = ModelServer::start(|_| Response::plain(200, "{}"));
        let env = env(&server)
            .var("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url().trim_end_matches("/v1"))
            .var("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
        let mut arguments = vec!["run", "--verbose", "--seed", "1", "--model", "openai/test", "secrets", KEY];
        arguments.extend(json.then_some("--json"));
        let answer = format!("my key is {KEY}\n");
        let ended = env.nietz(arguments).stdin(&answer).go().exits(0);
        assert!(ended.stdout.contains("[redacted:OPENAI_API_KEY]"), "{}", ended.stdout);
        holds_no_key("standard output", &ended.stdout);
        holds_no_key("standard error", &ended.stderr);
        if json {
            let shown: String = ended.of_type("call_delta").iter().filter_map(|delta| delta["text"].as_str()).collect();
            assert!(shown.contains("you gave me [redacted:OPENAI_API_KEY]."), "{shown}");
        }
        let journal = std::fs::read_to_string(env.journal_path()).expect("there is a journal");
        holds_no_key("the journal", &journal);
        for path in ["notes/new.yaml", "rows.jsonl"] {
            holds_no_key(path, &env.read(path));
            assert!(env.read(path).contains("[redacted:OPENAI_API_KEY]"), "{}", env.read(path));
        }
        assert!(collector.calls() > 0);
        for request in server.requests().into_iter().chain(collector.requests()) {
            holds_no_key("a request", &request.body.to_string());
        }
        for arguments in [vec!["log", "r1"], vec!["log", "r1", "--json"], vec!["runs"], vec!["resume", "r1"]] {
            let ended = env.nietz(arguments).go().exits(0);
            holds_no_key("standard output", &ended.stdout);
            holds_no_key("standard error", &ended.stderr);
        }
    }
}

#[test]
fn a_key_in_an_answers_file_or_in_an_error_is_not_shown_either() {
    let server = ModelServer::start(|_| Response::error(400, &format!("your key {KEY} does not suit")));
    let env = env(&server).file("answers.yaml", format!("secret: it is {KEY}\n"));
    let failed =
        env.nietz(["run", "--model", "openai/test", "--answers", "answers.yaml", "secrets", "topic"]).go().exits(1);
    assert!(failed.stderr.contains("error[model-refused]"), "{}", failed.stderr);
    holds_no_key("standard output", &failed.stdout);
    holds_no_key("standard error", &failed.stderr);
    holds_no_key("the journal", &std::fs::read_to_string(env.journal_path()).expect("there is a journal"));

    let unknown = env.nietz(["run", &format!("no-{KEY}")]).go().exits(2);
    holds_no_key("standard error", &unknown.stderr);
}

#[test]
fn what_a_flow_is_told_of_a_failure_and_what_is_noted_of_it_hold_no_key() {
    let source = "local files = require('@nietz/files')\n\
         local notes = require('@nietz/documents').collection('notes')\n\
         return require('@nietz').flow { name = 'fails', summary = 'x', permissions = { files = true },\n\
         collections = { notes = { path = 'notes/{slug}.yaml', schema = { type = 'object',\n\
         properties = { slug = { type = 'string' }, count = { type = 'integer' } } } } },\n\
         run = function()\n\
         local told = {}\n\
         for _, one in { function() files.read('/elsewhere/PLANTED.txt') end, function() notes:load('old') end,\n\
         function() notes:load('PLANTED') end } do\n\
         local ok, err = pcall(one) table.insert(told, err.message .. table.concat(err.details or {}, ' ')) end\n\
         return told end }\n";
    let env = Env::new()
        .flow("fails", &source.replace("PLANTED", KEY))
        .file("notes/old.yaml", format!("slug: old\ncount: {KEY}\n"));
    let ended = env.run(["fails"]).go().exits(0);
    let told = ended.result();
    for place in 0..3 {
        assert!(told[place].as_str().is_some_and(|told| told.contains("[redacted:OPENAI_API_KEY]")), "{place}: {told}");
    }
    holds_no_key("standard output", &ended.stdout);
    holds_no_key("the journal", &std::fs::read_to_string(env.journal_path()).expect("there is a journal"));
}
