//! The promise: images and PDFs go to models that take them, in the form of their wire, as they were when the run was given
//! them; requests, keys and journals have their digests; and a model that cannot take one is not called.

use std::os::unix::fs::PermissionsExt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::support::env::{Env, KEY, RUN};
use crate::support::model_server::{ModelServer, Request, Response};
use crate::support::process::Ended;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\xff";
const PDF: &[u8] = b"%PDF-1.7\n<</Type /Page>> \xe2\xe3\xcf\xd3";

/// Asks about what the user attached, after a question where one is wanted, and goes on from the answer.
const FLOW: &str = r#"
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local ui = require("@nietz/ui")
return nietz.flow {
	name = "shows",
	summary = "Shows files to a model",
	host_api = 2,
	attachments = true,
	permissions = { llm = true },
	params = { asks = { type = "boolean" }, again = { type = "boolean" }, notes = { type = "string", many = true } },
	run = function(ctx)
		if ctx.params.asks then
			ui.ask { id = "go", prompt = "Go?" }
		end
		local first = llm.chat { prompt = "What is it?", attach = ctx.attachments }
		if ctx.params.again then
			llm.chat { messages = first.messages, prompt = "And now?" }
		end
		return first.text
	end,
}
"#;

/// Attaches files of the workspace by their paths.
const READS: &str = r#"
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local ui = require("@nietz/ui")
return nietz.flow {
	name = "reads",
	summary = "Shows files of the project to a model",
	permissions = { llm = true, files = true },
	params = { path = { type = "string", positional = true, required = true } },
	run = function(ctx)
		local first = llm.chat { prompt = "What is it?", attach = { ctx.params.path } }
		ui.ask { id = "go", prompt = "Go on?" }
		return llm.chat { messages = first.messages, prompt = "And now?" }.text
	end,
}
"#;

fn seen(_: &Request) -> Response {
    Response::text("a bird")
}

fn env(server: &ModelServer) -> Env {
    let env = ["ANTHROPIC", "DEEPSEEK"].iter().fold(Env::with(server), |env, name| {
        env.var(&format!("{name}_API_KEY"), KEY).var(&format!("{name}_BASE_URL"), &server.url())
    });
    let mistral = format!("providers: {{mistral: {{base_url: \"{}\", key_env: OPENAI_API_KEY}}}}", server.url());
    let retry = "retry: {attempts: 3, total_seconds: 20, base_delay_ms: 1}";
    // Content decides, and no name.
    env.config(&format!("models: {{{retry}, {mistral}}}\n"))
        .flow("shows", FLOW)
        .flow("reads", READS)
        .file("bird.txt", PNG)
        .file("paper.pdf", PDF)
        .file("notes.md", "# Notes\n")
}

fn url(media_type: &str, bytes: &[u8]) -> String {
    format!("data:{media_type};base64,{}", BASE64.encode(bytes))
}

/// The content of the message of this number.
fn content(request: &Request, number: usize) -> Value {
    request.body["messages"][number]["content"].clone()
}

/// What a run failed with, in words.
fn told(ended: &Ended) -> String {
    ended.ending()["failure"]["message"].as_str().unwrap_or_default().to_owned()
}

fn kept(env: &Env, run: &str) -> std::path::PathBuf {
    let files: Vec<_> =
        std::fs::read_dir(env.path(&format!(".nietz/runs/{run}/files"))).expect("it is there").collect();
    assert_eq!(files.len(), 1);
    files.into_iter().next().expect("there is one").expect("it can be read").path()
}

#[test]
fn files_go_in_the_form_of_each_wire_and_on_with_the_conversation() {
    let text = "===== notes.md\n# Notes\n\n=====\n\nWhat is it?";
    let image = json!({ "type": "image_url", "image_url": { "url": url("image/png", PNG) } });
    let file = json!({ "type": "file", "file": { "filename": "paper.pdf", "file_data": url("application/pdf", PDF) } });
    let by_url = json!({ "type": "document_url", "document_url": url("application/pdf", PDF) });
    let words = json!({ "type": "text", "text": text });
    let source =
        |kind: &str, bytes: &[u8]| json!({ "type": "base64", "media_type": kind, "data": BASE64.encode(bytes) });
    let blocks = json!([
        { "type": "image", "source": source("image/png", PNG) },
        { "type": "document", "source": source("application/pdf", PDF), "title": "paper.pdf" },
        words,
    ]);
    for (model, expected) in [
        ("openai/gpt-6.1-terra", json!([image, file, words])),
        ("mistral/mistral-large-4", json!([image, by_url, words])),
        ("anthropic/claude-sonnet-5-5", blocks),
    ] {
        let server = ModelServer::start(seen);
        let env = env(&server);
        let call = env.run_on(model, ["shows", "--again", "--attach", "bird.txt", "notes.md", "paper.pdf"]);
        let ended = call.args(["--verbose"]).go().exits(0);
        let requests = server.requests();
        assert_eq!((requests.len(), content(&requests[0], 0)), (2, expected.clone()), "{model}: {ended:?}");
        assert_eq!(content(&requests[1], 0), expected, "{model}: it goes on with the conversation");
        let journal = std::fs::read_to_string(env.journal_path()).expect("there is one");
        let shown = format!("{}{journal}", ended.stdout);
        assert!(!shown.contains(&BASE64.encode(PNG)) && !shown.contains("base64"), "{model}: {shown}");
        assert!(journal.contains(r#""media_type":"image/png","name":"bird.txt""#), "{journal}");
    }
}

#[test]
fn a_run_and_its_heirs_have_what_was_given_when_the_file_is_gone() {
    let server = ModelServer::start(seen);
    let env = env(&server);
    env.run(["shows", "--asks", "--attach", "bird.txt"]).go().exits(7);
    std::fs::remove_file(env.path("bird.txt")).expect("it was there");
    assert_eq!(server.calls(), 0);
    env.resume().stdin("yes\n").go().exits(0);
    let sent = json!([{ "type": "image_url", "image_url": { "url": url("image/png", PNG) } }, { "type": "text", "text": "What is it?" }]);
    assert_eq!(content(&server.requests()[0], 0), sent);
    let file = kept(&env, RUN);
    assert_eq!(std::fs::read(&file).expect("it is there"), PNG);
    assert_eq!(file.metadata().expect("it is there").permissions().mode() & 0o777, 0o600);
    // The key has the digest: the same is given back; another model is asked anew, with the same image.
    env.nietz(["fork", RUN, "--json"]).var("NIETZ_RUN", "r2").go().exits(0);
    assert_eq!(server.calls(), 1);
    env.nietz(["fork", RUN, "--json", "--model", "openai/other"]).var("NIETZ_RUN", "r3").go().exits(0);
    env.nietz(["fork", RUN, "--json", "--into", "elsewhere", "--model", "openai/third"])
        .var("NIETZ_RUN", "r4")
        .go()
        .exits(0);
    assert_eq!(
        (server.calls(), content(&server.requests()[1], 0), content(&server.requests()[2], 0)),
        (3, sent.clone(), sent)
    );
    assert_eq!(kept(&env, "r3").file_name(), file.file_name());
    env.write("other.bin", b"\x89PNG\r\n\x1a\n\x01");
    env.nietz(["fork", RUN, "--json", "--set", "attach=other.bin"]).var("NIETZ_RUN", "r5").go().exits(0);
    assert_eq!(server.calls(), 4);
    // A test needs no file, and has none.
    env.nietz(["test", "--from-run", RUN]).go().exits(0);
    std::fs::remove_dir_all(env.path(".nietz")).expect("it was there");
    env.nietz(["test"]).go().exits(0);
    assert_eq!(server.calls(), 4);
}

#[test]
fn what_is_not_what_it_was_is_not_sent() {
    let server = ModelServer::start(seen);
    let env = env(&server);
    env.run(["shows", "--asks", "--attach", "bird.txt"]).go().exits(7);
    let file = kept(&env, RUN);
    std::fs::write(&file, b"\x89PNG\r\n\x1a\n\x01").expect("it can be written");
    let ended = env.resume().stdin("yes\n").go().exits(1);
    assert!(told(&ended).contains("bird.txt has changed since this run was given it: it is not sent"), "{ended:?}");
    assert!(ended.stderr.contains("attachment-changed") || ended.stdout.contains("attachment-changed"), "{ended:?}");
    std::fs::remove_file(&file).expect("it was there");
    let ended = env.resume().go().exits(1);
    assert!(told(&ended).contains("bird.txt is not kept beside the journal of this run"), "{ended:?}");
    assert_eq!(server.calls(), 0);
    // It failed for what can be put right.
    std::fs::write(&file, PNG).expect("it can be written");
    env.resume().go().exits(0);
    assert_eq!(server.calls(), 1);
}

#[test]
fn a_model_that_takes_none_is_not_called_and_those_that_do_are_named() {
    let server = ModelServer::start(seen);
    let env = env(&server);
    let call =
        |model: &str, file: &str, run: &str| env.run_on(model, ["shows", "--attach", file]).var("NIETZ_RUN", run).go();
    let ended = call("deepseek/deepseek-v4-pro", "bird.txt", "r1").exits(1);
    let message = told(&ended);
    assert!(
        message.contains("deepseek/deepseek-v4-pro takes no such image: bird.txt (image/png) is not sent"),
        "{ended:?}"
    );
    let hint = ended.ending()["failure"]["hint"].as_str().unwrap_or_default().to_owned();
    assert!(hint.contains("these of yours take it") && hint.contains("openai/"), "{hint}");
    let message = told(&call("deepseek/deepseek-flash", "paper.pdf", "r2").exits(1));
    assert!(
        message.contains("deepseek/deepseek-flash takes no PDF: paper.pdf (application/pdf) is not sent"),
        "{message}"
    );
    assert_eq!(server.calls(), 0);
    call("deepseek/deepseek-flash", "bird.txt", "r3").exits(0);
    // Of a stranger nothing is known: its server says what it takes.
    call("openai/unheard-of", "paper.pdf", "r4").exits(0);
    assert_eq!(server.calls(), 2);
}

#[test]
fn a_flow_attaches_what_it_may_read_and_sends_it_as_it_read_it() {
    let server = ModelServer::start(seen);
    let env = env(&server);
    env.run(["reads", "./bird.txt"]).go().exits(7);
    env.write("bird.txt", b"\x89PNG\r\n\x1a\n\x01");
    env.resume().stdin("yes\n").go().exits(0);
    let requests = server.requests();
    assert_eq!(content(&requests[1], 0), content(&requests[0], 0));
    assert_eq!(content(&requests[0], 0)[0]["image_url"]["url"], url("image/png", PNG));
    env.run(["reads", "notes.md"]).var("NIETZ_RUN", "r2").go().exits(7);
    assert_eq!(content(&server.requests()[2], 0), "===== notes.md\n# Notes\n\n=====\n\nWhat is it?");
    env.write("odd.png", b"PK\x03\x04\xff\xfe");
    for (number, (path, code, why)) in [
        ("none.png", 1, "there is no file \"none.png\""),
        ("odd.png", 1, "is neither text nor an image or a PDF that models take (application/zip)"),
        ("/etc/hostname", 5, "outside of the workspace"),
        (".nietz/runs/r1/journal.jsonl", 5, "flows do not read it"),
    ]
    .into_iter()
    .enumerate()
    {
        // What the user names may be read: here the flow names it.
        env.write(
            "flows/named.lua",
            READS.replace("ctx.params.path", &format!("\"{path}\"")).replace("\"reads\"", "\"named\""),
        );
        let ended = env.run(["named", "x"]).var("NIETZ_RUN", &format!("n{number}")).go().exits(code);
        assert!(told(&ended).contains(why), "{path}: {ended:?}");
    }
    env.write("flows/bare.lua", READS.replace(", files = true", "").replace("\"reads\"", "\"bare\""));
    let ended = env.run(["bare", "bird.txt"]).var("NIETZ_RUN", "r4").go().exits(5);
    assert!(ended.stdout.contains("permission-refused"), "{ended:?}");
    assert_eq!(server.calls(), 3);
}

#[test]
fn an_image_stands_where_a_text_can_and_the_flow_takes_files() {
    let server = ModelServer::start(seen);
    let env = env(&server);
    let question = ["ask", "What?", "@bird.txt", "@notes.md", "--attach", "paper.pdf"];
    env.run_on("openai/test", question).go().exits(0);
    let sent = content(&server.requests()[0], 1);
    let kinds: Vec<&str> = sent.as_array().expect("parts").iter().filter_map(|part| part["type"].as_str()).collect();
    assert_eq!(kinds, ["file", "image_url", "text"], "{sent}");
    assert_eq!(sent[2]["text"], "===== notes.md\n# Notes\n=====\n\nWhat?");
    env.write(
        "flows/texts.lua",
        "local nietz = require('@nietz')\nreturn nietz.flow { name = 'texts', summary = 's', params = {
        topic = { type = 'string', positional = true, required = true } }, run = function() end }",
    );
    let refused = env.run(["texts", "@bird.txt"]).var("NIETZ_RUN", "r2").go().exits(2);
    assert!(refused.stderr.contains("topic: @bird.txt is an image or a PDF, and no text"), "{refused:?}");
    env.write(
        "flows/lists.lua",
        "local nietz = require('@nietz')\nreturn nietz.flow { name = 'lists', summary = 's', params = {
        topic = { type = 'string', positional = true, many = true } }, run = function() end }",
    );
    let refused = env.run(["lists", "@bird.txt"]).var("NIETZ_RUN", "r3").go().exits(2);
    assert!(refused.stderr.contains("topic: bird.txt is no text (image/png)"), "{refused:?}");
    assert_eq!(server.calls(), 1);
}

#[test]
fn what_an_image_can_cost_is_within_the_budget() {
    let server = ModelServer::start(seen);
    let env = env(&server);
    env.run(["shows", "--attach", "bird.txt", "--max-tokens", "10000"]).go().exits(6);
    assert_eq!(server.calls(), 0);
    env.run(["shows", "--attach", "bird.txt", "--max-tokens", "20000"]).var("NIETZ_RUN", "r2").go().exits(0);
}
