//! The promise: a flow that takes attachments gets each file's text with its name and type; the run keeps them, whatever
//! becomes of the files; and what no model takes, or too much, is refused before the run begins, with its type and size.

use serde_json::{Value, json};

use crate::support::env::{Env, KEY, RUN};
use crate::support::model_server::{ModelServer, Request, Response};

const FLOW: &str = r#"
local nietz = require("@nietz")
local ui = require("@nietz/ui")
return nietz.flow {
	name = "takes",
	summary = "Tells what was attached",
	host_api = 2,
	attachments = true,
	params = {
		topic = { type = "string", positional = true, required = true },
		asks = { type = "boolean" },
	},
	commands = {
		none = { summary = "Takes none", run = function(ctx) return { attached = ctx.attachments } end },
	},
	run = function(ctx)
		local more = if ctx.params.asks then ui.ask { id = "more", prompt = "More?" } else nil
		return {
			topic = ctx.params.topic, attached = ctx.attachments, more = more, params = ctx.params, origins = ctx.origins,
		}
	end,
}
"#;

fn env() -> Env {
    Env::new().flow("takes", FLOW).file("notes/a.md", "# A\r\n").file("b.csv", "x;y\n")
}

/// What a flow sees of the attachments, without their digests.
fn seen(result: &Value) -> Value {
    let mut attached = result["attached"].clone();
    for one in attached.as_array_mut().expect("a list") {
        let digest = one.as_object_mut().expect("a table").shift_remove("digest");
        assert_eq!(digest.and_then(|digest| digest.as_str().map(str::len)), Some(32));
    }
    attached
}

fn both() -> Value {
    json!([
        { "name": "notes/a.md", "media_type": "text/markdown", "text": "# A\r\n", "bytes": 5 },
        { "name": "b.csv", "media_type": "text/csv", "text": "x;y\n", "bytes": 4 },
    ])
}

#[test]
fn attachments_have_names_types_and_whole_texts_and_are_no_params() {
    let env = env();
    // One option with several files, or several of them.
    for given in [
        ["takes", "why", "--attach", "notes/a.md", "b.csv", "--asks"].as_slice(),
        &["takes", "--attach", "notes/a.md", "--attach", "b.csv", "--", "why"],
    ] {
        let _ = std::fs::remove_dir_all(env.path(".nietz"));
        let result = env.run(given.iter().copied()).stdin("no\n").go().exits(0).result();
        assert_eq!(seen(&result), both(), "{given:?}");
        assert_eq!((&result["topic"], &result["origins"]), (&json!("why"), &json!({})));
        assert!(result["params"]["attach"].is_null(), "{result}");
    }
    let piped = env.run(["takes", "why", "--attach", "-"]).var("NIETZ_RUN", "r2").stdin("from a pipe\n").go().exits(0);
    let expected =
        json!([{ "name": "standard input", "media_type": "text/plain", "text": "from a pipe\n", "bytes": 12 }]);
    assert_eq!(seen(&piped.result()), expected);
}

#[test]
fn who_attaches_nothing_leaves_nothing_of_it_in_the_journal() {
    let env = env();
    let result = env.run(["takes", "why"]).go().exits(0).result();
    assert_eq!(result["attached"], json!([]));
    assert!(!std::fs::read_to_string(env.journal_path()).expect("there is one").contains("\"attach\""));
    // A command that says nothing of it takes none, and neither does a flow.
    let refused = env.nietz(["run", "takes", "none", "--attach", "b.csv"]).go().exits(2);
    assert!(refused.stderr.contains("--attach"), "{refused:?}");
    assert_eq!(env.run(["takes", "none"]).var("NIETZ_RUN", "r2").go().exits(0).result()["attached"], json!([]));
    let help = env.nietz(["run", "takes", "--help"]).go().exits(0).stdout;
    assert!(help.contains("--attach <FILE>...") && help.contains("50 MB"), "{help}");
    let help = env.nietz(["run", "takes", "none", "--help"]).go().exits(0).stdout;
    assert!(!help.contains("--attach"), "{help}");
}

#[test]
fn a_run_has_them_when_the_files_are_gone_and_no_secret_of_theirs() {
    let long: String = (0..300).map(|line| format!("line {line}: {KEY}\n")).collect();
    let env = env().file("long.txt", &long);
    env.run(["takes", "why", "--asks", "--attach", "long.txt", "b.csv"]).go().exits(7);
    for file in ["long.txt", "b.csv"] {
        std::fs::remove_file(env.path(file)).expect("it was there");
    }
    let resumed = env.resume().stdin("no\n").go().exits(0).result();
    let text = long.replace(KEY, "[redacted:OPENAI_API_KEY]");
    assert_eq!((&resumed["attached"][0]["text"], &resumed["attached"][1]["text"]), (&json!(text), &json!("x;y\n")));
    let journal = std::fs::read_to_string(env.journal_path()).expect("there is one");
    assert!(!journal.contains(KEY) && journal.matches("line 299:").count() <= 2);
    assert!(journal.lines().next().expect("it has one").len() < 3000, "a long text stands behind the first line");
    // A fork has them, or others; a test needs no file.
    env.write("c.txt", "other");
    let fork = |set: &str, run: &str| {
        let call = env.nietz(["fork", RUN, "--json"]).args(if set.is_empty() { vec![] } else { vec!["--set", set] });
        call.var("NIETZ_RUN", run).go().exits(0).result()
    };
    assert_eq!(fork("", "r2")["attached"], resumed["attached"]);
    assert_eq!(fork("attach=c.txt", "r3")["attached"][0]["text"], "other");
    env.nietz(["test", "--from-run", RUN]).go().exits(0);
    env.nietz(["test"]).go().exits(0);
}

#[test]
fn what_no_model_takes_or_too_much_is_refused_with_its_type_and_size() {
    let env = env().file("photo.zip", b"PK\x03\x04\0\0\0\xff").file("report.doc", b"\xd0\xcf\x11\xe0".repeat(600));
    // An image of more than its limit, with nothing in it.
    let image = std::fs::File::create(env.path("huge.png")).expect("it can be made");
    std::io::Write::write_all(&mut &image, b"\x89PNG\r\n\x1a\n")
        .and_then(|()| image.set_len(21 << 20))
        .expect("it has room");
    let large = std::fs::File::create(env.path("large.txt")).expect("it can be made");
    large.set_len((50 << 20) + 1).expect("it has room");
    let half = std::fs::File::create(env.path("half.txt")).expect("it can be made");
    half.set_len(30 << 20).expect("it has room");
    for (files, why) in [
        (["b.csv", "photo.zip"], "photo.zip is of no kind that models take (application/zip, 8 bytes)"),
        (["b.csv", "report.doc"], "report.doc is of no kind that models take (application/octet-stream, 2 kB)"),
        (["b.csv", "huge.png"], "huge.png has 21.0 MB, and 20 MB is the most of an image or a PDF"),
        (["b.csv", "large.txt"], "large.txt has 50.0 MB, which makes 50.0 MB in all, and 50 MB is the most"),
        (["half.txt", "half.txt"], "half.txt has 30.0 MB, which makes 60.0 MB in all"),
        (["b.csv", "none.txt"], "there is no file none.txt"),
        (["b.csv", "notes"], "cannot read notes"),
        (["-", "-"], "standard input is taken by `attach` already"),
    ] {
        let ended = env.nietz(["run", "takes", "why", "--attach"]).args(files).stdin("x").go().exits(2);
        assert!(ended.stderr.contains("error[usage]: --attach: ") && ended.stderr.contains(why), "{why}: {ended:?}");
    }
    assert!(!env.path(".nietz").exists(), "no run began");
    let both = env.nietz(["run", "takes", "why", "--attach", "-", "--answers", "-"]).stdin("x").go().exits(2);
    assert!(both.stderr.contains("cannot answer questions as well"), "{both:?}");
}

#[test]
fn answers_come_from_a_file_or_a_pipe_beside_attachments() {
    let env = env().file("answers.yaml", "more: by file\n");
    let call = |run: &str| env.run(["takes", "why", "--asks", "--attach", "b.csv"]).var("NIETZ_RUN", run);
    assert_eq!(call("r1").args(["--answers", "answers.yaml"]).go().exits(0).result()["more"], "by file");
    assert_eq!(call("r2").args(["--answers", "-"]).stdin("by pipe\n").go().exits(0).result()["more"], "by pipe");
    let both = env.run(["takes", "why", "--asks", "--attach", "-", "--answers", "answers.yaml"]);
    let both = both.var("NIETZ_RUN", "r3").stdin("the text").go().exits(0).result();
    assert_eq!((&both["more"], &both["attached"][0]["text"]), (&json!("by file"), &json!("the text")));
}

#[test]
fn a_manifest_says_it_in_one_way() {
    for (declared, why) in [
        ("attachments = 'yes'", "attachments must be true, false or \"piped\""),
        ("attachments = true, params = { attach = { type = 'string' } }", "`attach` is no name for a param"),
        ("params = { files = { type = 'attachment' } }", "attachments are no param"),
    ] {
        let text = format!(
            "local nietz = require('@nietz')\nreturn nietz.flow {{ name = 'odd', summary = 'Odd', {declared}, run = \
             function() end }}\n"
        );
        let checked = env().flow("odd", &text).nietz(["check", "flows/odd.lua"]).go().exits(4);
        assert!((checked.stdout.clone() + &checked.stderr).contains(why), "{declared}: {checked:?}");
    }
}

fn echo(request: &Request) -> Response {
    Response::text(request.prompt())
}

#[test]
fn a_question_takes_attachments_beside_texts() {
    let server = ModelServer::start(echo);
    let env = Env::with(&server).file("a.md", "first\n").file("b.md", "second\n");
    env.run(["ask", "What?", "@a.md", "--attach", "b.md", "a.md"]).go().exits(0);
    let prompt = server.requests()[0].prompt();
    let expected = "===== a.md\nfirst\n=====\n\n===== b.md\nsecond\n\n=====\n\n===== a.md\nfirst\n\n=====\n\nWhat?";
    assert_eq!(prompt, expected);
}

/// At a terminal the answer is there as far as it has come, and in a pipe it is all that there is.
#[test]
fn an_answer_is_shown_while_it_comes() {
    let text = "alpha beta gamma delta\n\n".repeat(60);
    let server = ModelServer::start(move |_| Response::text(text.clone()).silent_after(1000));
    let env = Env::with(&server).file("a.md", "first\n");
    let call = env.nietz(["run", "ask", "What?", "--model", "openai/test", "--attach", "a.md"]).var("TERM", "xterm");
    let mut seat = call.at_a_terminal();
    seat.sees("alpha beta gamma delta");
    seat.types("\u{3}");
    seat.sees("resume with: nietz resume r1");
    assert_eq!(seat.end(), Some(130));
    assert_eq!(server.calls(), 1);
}
