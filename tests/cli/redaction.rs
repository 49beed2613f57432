//! The promise: a key of the environment stands in no journal, document or output, wherever it came from.

use std::time::Duration;

use nietz::cpu::{CpuLimit, ThreadClock};
use nietz::model::redact::Redactor;

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
            .var("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
            .var("OTEL_SERVICE_NAME", &format!("a {KEY}"))
            .var("OTEL_RESOURCE_ATTRIBUTES", &format!("team=b {KEY}"));
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

/// Keys that nietz finds by itself: what a variable of a name of the user's choice holds, and what a command prints.
#[test]
fn a_key_that_nietz_got_itself_is_in_nothing_either() {
    let server = ModelServer::start(|request| {
        let header = request.header("authorization").trim_start_matches("Bearer ").to_owned();
        Response::text(format!("you sent {header}"))
    });
    let flow = "return require('@nietz').flow { name = 'x', summary = 's', permissions = { llm = true }, run = function()
        local text = require('@nietz/llm').chat({ prompt = 'p' }).text require('@nietz/ui').say(text) return text end }";
    for (provider, key) in [("command", "printed-key-1234567890"), ("variable", "chosen-key-1234567890")] {
        let url = server.url();
        let env = Env::with(&server)
            .flow("x", flow)
            .config(&format!(
                "models: {{ providers: {{ command: {{ base_url: '{url}', key_command: [echo, printed-key-1234567890] }}, \
                 variable: {{ base_url: '{url}', key_env: LAB_ACCESS }} }} }}\n"
            ))
            .var("LAB_ACCESS", "chosen-key-1234567890");
        let ended = env.nietz(["run", "x", "--verbose", "--model", &format!("{provider}/m")]).go().exits(0);
        let sent = server.requests().pop().expect("it was called");
        assert!(sent.header("authorization").contains(key), "the key is sent");
        assert!(ended.stdout.contains("you sent"), "{ended:?}");
        let journal = std::fs::read_to_string(env.journal_path()).expect("there is a journal");
        for (what, text) in
            [("standard output", &ended.stdout), ("standard error", &ended.stderr), ("the journal", &journal)]
        {
            assert!(!text.contains(key), "{what} holds the key of {provider}: {text}");
        }
    }
}

/// What is a name cannot do with a part of it taken out: it is refused. The rest of a run's first line is without it.
#[test]
fn a_key_as_a_name_is_in_nothing_either() {
    let server = ModelServer::start(|_| Response::text("said"));
    let line = "require('@nietz/ui').say('hi') return require('@nietz/llm').chat({ prompt = 'p' }).text";
    let flow = format!(
        "return require('@nietz').flow {{ name = 'x', summary = 's', permissions = {{ llm = true }}, \
         settings = {{ note = {{ type = 'string', default = '' }} }}, run = function() {line} end }}"
    );
    let env = Env::with(&server).flow("x", &flow);
    for call in [
        env.nietz(["run", "x", "--model", &format!("openai/{KEY}")]),
        env.nietz(["run", "x", "--model", "openai/test"]).var("NIETZ_RUN", KEY),
    ] {
        let ended = call.go().exits(2);
        assert!(ended.stderr.contains("has a key or a password in it"), "{ended:?}");
        holds_no_key("standard error", &ended.stderr);
    }
    assert!(!env.path(".nietz").exists() && server.calls() == 0, "nothing has begun");
    let project = format!(
        "models: {{aliases: {{'a-{KEY}': openai/test, b: 'openai/{KEY}'}}}}\nflows: {{x: {{note: '{KEY}'}}}}\n"
    );
    let env = env.file("nietz.yaml", project);
    let ended = env.nietz(["run", "x", "--json", "--model", "openai/test", "--lang", KEY]).go().exits(0);
    holds_no_key("standard output", &ended.stdout);
    holds_no_key("standard error", &ended.stderr);
    let journal = std::fs::read_to_string(env.journal_path()).expect("there is a journal");
    holds_no_key("the journal", &journal);
    assert!(journal.contains("openai/[redacted:OPENAI_API_KEY]"), "{journal}");
}

/// Whatever the verbs print or fail with goes one way to the terminal.
#[test]
fn what_the_verbs_print_and_fail_with_holds_no_key() {
    let env = Env::new()
        .flow("x", "return require('@nietz').flow { name = 'x', summary = 's', run = function() end }")
        .flow("broken", &format!("local = \"{KEY}\"\n"))
        .file("personas/p.md", format!("---\n{KEY}: [\n---\n"))
        .file("nietz.yaml", format!("models: {{aliases: {{'{KEY}': openai/x}}}}\n"));
    let nope = format!("--nope-{KEY}");
    let shown = |env: &Env, arguments: &[&str]| {
        let ended = env.nietz(arguments.iter().copied()).go();
        holds_no_key(&arguments.join(" "), &format!("{}{}", ended.stdout, ended.stderr));
        format!("{}{}", ended.stdout, ended.stderr)
    };
    for arguments in [
        &["check"][..],
        &["check", "--json"],
        &["models"],
        &["run", "x", &nope],
        &["run", "x", &nope, "--json"],
        &["runs", &nope],
        &[&nope],
        &["log", KEY],
        &["explain", KEY],
        &["trust", "add", KEY],
        &["-C", KEY, "runs"],
    ] {
        let text = shown(&env, arguments);
        assert!(text.contains("[redacted:OPENAI_API_KEY]"), "{arguments:?} shows what it is about: {text}");
    }
    // Before anything of the configuration is known.
    for text in [
        format!("models: {{providers: {{openai: {{key: {KEY}}}}}}}\n"),
        format!("models: [{KEY}\n"),
        format!("{KEY}\n"),
        format!("{KEY}: 1\n"),
        format!("models: {{providers: {{openai: {{key_command: '{KEY}'}}}}}}\n"),
    ] {
        std::fs::write(env.home().join("config.yaml"), &text).expect("the home can be written");
        assert!(shown(&env, &["runs"]).contains("config-invalid"), "{text}");
    }
}

/// A collector that cannot be reached, or refuses, is named without the password in its address.
#[test]
fn the_password_of_a_collector_is_not_shown() {
    let refuses = ModelServer::start(|_| Response::plain(500, "no"));
    let flow = "return require('@nietz').flow { name = 'x', summary = 's', run = function() end }";
    for place in [refuses.url().replace("/v1", "").replace("http://", ""), "127.0.0.1:1".to_owned()] {
        let env = Env::new().flow("x", flow);
        let ended = env
            .nietz(["run", "x"])
            .var("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("http://bob:pw7@{place}"))
            .var("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
            .go();
        assert!(ended.stderr.contains(&place) && !ended.stderr.contains("pw7"), "{ended:?}");
    }
}

/// What is no secret stays as it is: in the sources of this project, and in those that `NIETZ_TEST_SOURCES` names, nearly
/// nothing is taken for one. Ten megabytes may have one that is taken.
#[test]
fn ordinary_sources_hold_no_secret() {
    let named = std::env::var_os("NIETZ_TEST_SOURCES");
    let places = match &named {
        Some(folder) => vec![std::path::PathBuf::from(folder)],
        None => ["src", "flows", "tests/lua", "tests/debug", "tests/council", "README.md", "Cargo.lock"]
            .map(|place| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(place))
            .into(),
    };
    let redactor = nietz::model::redact::Redactor::default();
    let (mut bytes, mut taken) = (0_usize, Vec::new());
    for entry in places.iter().flat_map(walkdir::WalkDir::new) {
        let path = entry.expect("it can be read").into_path();
        // Samples of shapes, and planted keys.
        let own = named.is_none()
            && ["redact", "llm/tests", "settings/tests"].iter().any(|part| path.to_string_lossy().contains(part));
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        if own {
            continue;
        }
        bytes += text.len();
        let count = redactor.text(&text).matches("[redacted]").count() - text.matches("[redacted]").count();
        taken.extend(std::iter::repeat_n(path, count));
    }
    println!("{} in {} MB: {taken:#?}", taken.len(), bytes / 1_000_000);
    assert!(bytes > 1_000_000, "there is something to look through");
    assert!(taken.len() <= bytes / 10_000_000, "{} in {bytes} bytes: {taken:#?}", taken.len());
}

/// Time grows with the length of a text, whatever is in it: what follows is searched from its end.
#[test]
fn beginnings_without_end_are_looked_through_once() {
    let redactor = Redactor::default();
    for piece in [
        "http://a:b ",
        "http://a:b",
        "Bearer ",
        "basic\t",
        "://u:p@",
        "://",
        "secret_access_key= ",
        "-----BEGIN ",
        "PuTTY-User-Key-File-2: ",
    ] {
        let text = piece.repeat(4_000_000 / piece.len());
        // Without a bound it takes hours; with one, a hundredth of this limit.
        let limit = CpuLimit::new(ThreadClock::current(), Duration::from_secs(20));
        let settled = redactor.settled_length(&text);
        assert!(!limit.is_over(), "{piece}");
        assert!(settled + 80_000 > text.len(), "{piece}: {settled}");
    }
}
