//! The promise: a text param takes what stands in a file or comes from a pipe, whole and once; the flow knows where it came
//! from; the run has it for good, whatever becomes of the file; and the pipe that was a text answers no question.

use serde_json::json;

use crate::support::env::{Env, KEY, RUN};
use crate::support::model_server::{ModelServer, Request, Response};

const FLOW: &str = r#"
local nietz = require("@nietz")
local llm = require("@nietz/llm")
local ui = require("@nietz/ui")
return nietz.flow {
	name = "reads",
	summary = "Tells what it was given and where that came from",
	params = {
		topic = { type = "string", positional = true, required = true, order = 1 },
		notes = { type = "string", positional = true, many = true, order = 2 },
		style = { type = "string", choices = { "-", "@plain" } },
		check = { type = "string" },
		asks = { type = "boolean" },
		size = { type = "boolean" },
	},
	permissions = { llm = true, exec = { "{check}" } },
	run = function(ctx)
		if ctx.params.size then
			local topic = ctx.params.topic
			return { size = #topic, last = string.sub(topic, -5), with = #(topic .. "!") }
		end
		local said = llm.chat { prompt = "About: " .. ctx.params.topic }.text
		local more = if ctx.params.asks then ui.ask { id = "more", prompt = "More?" } else nil
		return {
			topic = ctx.params.topic, notes = ctx.params.notes, origins = ctx.origins, more = more,
			style = ctx.params.style, check = ctx.params.check, said = #said,
		}
	end,
}
"#;

fn echo(request: &Request) -> Response {
    Response::text(request.prompt())
}

/// Longer than what stands in the first line itself, in lines that do not repeat.
fn long() -> String {
    (0..200).map(|line| format!("line {line} of the notes, as they were taken\n")).collect()
}

fn env() -> (ModelServer, Env) {
    let server = ModelServer::start(echo);
    let env = Env::with(&server).flow("reads", FLOW);
    (server, env)
}

#[test]
fn texts_come_from_files_and_from_a_pipe_and_the_flow_knows_which() {
    let (_server, env) = env();
    let env = env.file("notes/a.md", "\u{feff}first\nsecond\n").file("b.txt", "no line end");
    let given = ["reads", "-", "@notes/a.md", "typed", "@b.txt", r"\@home", r"\-", "--style", "-", "--check", "@plain"];
    let ended = env.run(given).stdin("from the pipe\r\n").go().exits(0);
    let expected = json!({
        "topic": "from the pipe",
        "notes": ["first\nsecond", "typed", "no line end", "@home", "-"],
        "style": "-",
        "check": "@plain",
        "said": "About: from the pipe".len(),
        "origins": {
            "topic": [{ "kind": "pipe" }],
            "notes": [
                { "kind": "file", "name": "notes/a.md" }, { "kind": "typed" }, { "kind": "file", "name": "b.txt" },
                { "kind": "typed" }, { "kind": "typed" },
            ],
        },
    });
    assert_eq!(ended.result(), expected);
    // What was typed has no origin, and leaves nothing of it in the journal.
    let typed = env.run(["reads", "tea"]).var("NIETZ_RUN", "r2").go().exits(0);
    assert_eq!(typed.result()["origins"], json!({}));
    let journal = env.read(".nietz/runs/r2/journal.jsonl");
    assert!(!journal.lines().next().expect("there is one").contains("origins"), "{journal}");
}

#[test]
fn a_file_is_looked_for_where_nietz_was_started_and_the_help_says_how() {
    let (_server, env) = env();
    let env = env.file("sub/here.txt", "of the folder where it was started");
    let folder = env.path("sub");
    let at = env.workspace().display().to_string();
    let call = env.run(["-C", &at, "reads", "@here.txt"]).by("env", ["-C", &folder.display().to_string()]);
    assert_eq!(call.go().exits(0).result()["topic"], "of the folder where it was started");
    let help = env.nietz(["run", "reads", "--help"]).go().exits(0).stdout;
    assert!(help.contains("`@FILE`") && help.contains(r"`\@…`"), "{help}");
}

#[test]
fn a_long_text_stands_once_behind_a_short_first_line_without_secrets() {
    let (_server, env) = env();
    let text = format!("{}the key is {KEY}\n", long());
    let env = env.file("notes.md", &text);
    env.run(["reads", "@notes.md"]).go().exits(0);
    let journal = env.read(&format!(".nietz/runs/{RUN}/journal.jsonl"));
    let first = journal.lines().next().expect("there is one");
    assert!(first.len() < 1200 && first.contains("$text") && first.contains("notes.md"), "{first}");
    assert!(!journal.contains(KEY), "the key was kept");
    let before_the_end = journal.split("\"is\":{\"end\"").next().unwrap_or_default();
    let times = before_the_end.matches("line 100 of the notes").count();
    assert_eq!(times, 1, "the prompt and the reply are made of parts of it");
}

#[test]
fn a_run_has_its_text_when_the_file_is_gone() {
    let (_server, env) = env();
    let env = env.file("notes.md", long());
    let text = long().trim_end().to_owned();
    env.run(["reads", "@notes.md", "--asks"]).go().exits(7);
    std::fs::remove_file(env.path("notes.md")).expect("it was there");
    let resumed = env.resume().stdin("no\n").go().exits(0).result();
    assert_eq!((&resumed["topic"], &resumed["more"]), (&json!(text), &json!("no")));
    assert_eq!(resumed["origins"]["topic"], json!([{ "kind": "file", "name": "notes.md" }]));
    // A fork has it too, with what it is told anew; a cassette is played without the file.
    let forked = env.nietz(["fork", RUN, "--json", "--set", "notes=@other.md"]).var("NIETZ_RUN", "r2");
    env.write("other.md", "another");
    let forked = forked.go().exits(0).result();
    assert_eq!((&forked["topic"], &forked["notes"]), (&json!(text), &json!(["another"])));
    assert_eq!(forked["origins"]["notes"], json!([{ "kind": "file", "name": "other.md" }]));
    env.nietz(["test", "--from-run", RUN]).go().exits(0);
    std::fs::remove_dir_all(env.path(".nietz")).expect("it was there");
    let played = env.nietz(["test"]).var("OPENAI_API_KEY", "").go().exits(0);
    assert!(played.stdout.contains("1 passed, 0 failed"), "{played:?}");
    env.nietz(["test", "--record"]).go().exits(0);
    assert!(env.read("tests/cassettes/reads/run.jsonl").contains("line 100 of the notes"));
}

#[test]
fn a_run_that_is_killed_anywhere_goes_on_with_its_text_or_says_that_it_never_began() {
    let (_server, env) = env();
    let env = env.file("notes.md", long());
    for line in 1..=6 {
        let folder = env.path(".nietz");
        let _ = std::fs::remove_dir_all(folder);
        let killed = env.run(["reads", "@notes.md"]).var("NIETZ_FAULT", &format!("kill@{line}")).go();
        assert_eq!(killed.signal, Some(9), "line {line}");
        let resumed = env.resume().go();
        if line == 1 {
            assert!(resumed.code == Some(4) && resumed.stderr.contains("begin another run"), "{resumed:?}");
        } else {
            assert_eq!(resumed.exits(0).result()["topic"], long().trim_end(), "line {line}");
        }
    }
}

#[test]
fn a_text_of_another_digest_is_refused() {
    let (_server, env) = env();
    let env = env.file("notes.md", long());
    env.run(["reads", "@notes.md", "--asks"]).go().exits(7);
    let whole = env.read(&format!(".nietz/runs/{RUN}/journal.jsonl"));
    let changed = whole.replacen("line 100 of", "line 999 of", 1);
    assert_ne!(whole, changed);
    env.write(&format!(".nietz/runs/{RUN}/journal.jsonl"), changed);
    assert!(env.resume().go().exits(4).stderr.contains("journal-broken"));
}

#[test]
fn a_text_from_elsewhere_grants_no_file() {
    let server = ModelServer::start(echo);
    let flow = r#"
local files = require("@nietz/files")
local nietz = require("@nietz")
return nietz.flow {
	name = "opens",
	summary = "Reads the file that it is told to",
	params = { path = { type = "string", positional = true, required = true } },
	permissions = { files = true },
	run = function(ctx)
		return files.read(ctx.params.path).text
	end,
}
"#;
    // A file that holds secrets is read if the user names it, which is to type it.
    let env = Env::with(&server).flow("opens", flow).file(".env", "COLOUR=blue").file("list", ".env");
    assert_eq!(env.run(["opens", ".env"]).go().exits(0).result(), "COLOUR=blue");
    let refused = env.run(["opens", "@list"]).var("NIETZ_RUN", "r2").go().exits(5);
    assert_eq!(refused.failure(), "path-refused");
}

#[test]
fn a_pipe_that_is_a_text_answers_nothing_and_one_that_answers_says_so() {
    let (_server, env) = env();
    // Nothing of the pipe is left for the question: the run waits.
    let waits =
        env.nietz(["run", "--model", "openai/test", "reads", "-", "--asks"]).stdin("a text\nno\n").go().exits(7);
    assert!(!waits.stdout.contains("> no") && !waits.stderr.contains("standard input answers"), "{waits:?}");
    let call = || env.nietz(["run", "--model", "openai/test", "reads", "tea", "--asks"]).var("NIETZ_RUN", "r2");
    let told = call().stdin("no\n").go().exits(0);
    assert_eq!(told.stderr.matches("standard input answers the questions").count(), 1, "{told:?}");
    let call = || env.nietz(["run", "--model", "openai/test", "reads", "tea", "--asks"]).var("NIETZ_RUN", "r3");
    let said = call().args(["--answers", "-"]).stdin("no\n").go().exits(0);
    assert!(said.stdout.contains("> no") && !said.stderr.contains("standard input"), "{said:?}");
    // Nobody is there, and nothing is said of a pipe that gave nothing.
    let call = || env.nietz(["run", "--model", "openai/test", "reads", "tea", "--asks"]).var("NIETZ_RUN", "r4");
    let nobody = call().go().exits(7);
    assert!(!nobody.stderr.contains("standard input answers"), "{nobody:?}");
}

#[test]
fn what_cannot_be_a_text_is_said_with_its_place_and_leaves_no_run() {
    let (_server, env) = env();
    let env = env.file("bad.txt", b"one\nt\xffwo\n").file("folder/x", "");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        env.path("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .expect("a pipe can be made");
    let large = std::fs::File::create(env.path("large")).expect("it can be made");
    large.set_len((50 << 20) + 1).expect("it can be large");
    for (given, why) in [
        (vec!["@bad.txt"], "bad.txt:2:2: is not UTF-8"),
        (vec!["@absent"], "there is no file absent"),
        (vec!["@"], "`@` names no file"),
        (vec!["@pipe"], "cannot read @pipe"),
        (vec!["@folder"], "cannot read @folder"),
        (vec!["@large"], "larger than 50 MB"),
        (vec!["-", "-"], "standard input is taken by"),
        (vec!["-", "--answers", "-"], "cannot answer questions as well"),
    ] {
        let ended = env.nietz(["run", "reads"]).args(given.clone()).stdin("text\n").go().exits(2);
        assert!(ended.stderr.contains(why), "{given:?}: {ended:?}");
    }
    assert!(!env.path(".nietz/runs").exists(), "no run was begun");
}

#[test]
fn fifty_megabytes_reach_the_flow_and_a_fork() {
    let (_server, env) = env();
    let size = 50 << 20;
    let text: Vec<u8> = (0..).flat_map(|line: u64| format!("{line:07}\n").into_bytes()).take(size).collect();
    let env = env.file("large", &text);
    let ended = env.run(["reads", "@large", "--size"]).go().exits(0);
    // The last line end is no part of the text.
    assert_eq!(ended.result(), json!({ "size": size - 1, "last": "53599", "with": size }));
    let first = env.journal_path();
    let journal = std::fs::metadata(first).expect("it is there").len();
    assert!(journal < size as u64 * 5 / 4, "{journal}");
    let forked = env.nietz(["fork", RUN, "--json"]).var("NIETZ_RUN", "r2").go().exits(0);
    assert_eq!(forked.result(), ended.result());
}
