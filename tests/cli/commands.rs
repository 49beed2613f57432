//! The promise: which typed line is a command and which an answer is one rule, at a terminal, in a pipe, in a file of answers
//! and in an editor, live and in a replay; and `/help` tells it at every question.

use serde_json::{Value, json};

use crate::support::env::Env;
use crate::support::process::Ended;

const FLOW: &str = r#"
local json = require("@nietz/json")
local nietz = require("@nietz")
local ui = require("@nietz/ui")
local COMMANDS = {
	{ name = "idea", summary = "adds an idea of yours", text = "TEXT" },
	{ name = "dive", summary = "goes deeper", text = "[ABOUT]", words = { "dive" } },
	{ name = "back", summary = "goes back", number = "N", words = { "back" } },
	{ name = "security-check", summary = "looks for attacks", words = { "security-check" } },
	{ name = "solved", summary = "ends well", words = { "solved", "found it" } },
	{ name = "quit", summary = "ends", words = { "quit", "I give up" } },
}
return nietz.flow {
	name = "asks",
	summary = "Asks until it has heard enough",
	params = { times = { type = "integer", default = 1 } },
	run = function(ctx)
		local heard = {}
		for number = 1, ctx.params.times do
			local said, command, line = ui.ask {
				id = "next",
				prompt = `Number {number}?`,
				optional = true,
				complete = { "@Ann" },
				commands = COMMANDS,
			}
			assert(line ~= nil)
			table.insert(heard, if command == nil then `={said}` else `{command}({said})`)
		end
		ui.say("heard " .. json.encode(heard))
		return heard
	end,
}
"#;

/// What is typed, and what the flow hears.
const HEARD: &[(&str, &str)] = &[
    ("security", "=security"),
    ("plan", "=plan"),
    ("spike in traffic at noon", "=spike in traffic at noon"),
    ("idea about caching", "=idea about caching"),
    ("solved", "solved()"),
    ("Found it!", "solved()"),
    ("I give up", "quit()"),
    ("solved it by restarting", "=solved it by restarting"),
    ("back", "back()"),
    ("back 3", "back(3)"),
    ("back to the old design", "=back to the old design"),
    ("/back 2", "back(2)"),
    ("/idea use a cache", "idea(use a cache)"),
    ("/dive tokens", "dive(tokens)"),
    ("/Found it", "solved()"),
    ("/usr/lib/x.so is missing", "=/usr/lib/x.so is missing"),
    ("\\solved", "=solved"),
    ("\\solvd", "=solvd"),
    ("\\/idea", "=/idea"),
    ("", "="),
];

/// What is typed and refused, and a part of why.
const REFUSED: &[(&str, &str)] = &[
    ("solvd", "`solvd`: did you mean `solved`? Type that, or `\\solvd` to answer with it"),
    ("bakc 3", "`bakc 3`: did you mean `back 3`?"),
    ("/idea", "`/idea` needs a text: `/idea TEXT`"),
    ("/back x", "`/back` does not take `x`: `/back [N]`"),
    ("/solvd", "there is no command `/solvd`: did you mean `/solved`?"),
    ("/xyzzy", "there is no command `/xyzzy`"),
];

fn heard() -> Value {
    HEARD.iter().map(|(_, heard)| json!(heard)).collect()
}

fn times() -> String {
    HEARD.len().to_string()
}

/// All lines, those that are refused first.
fn lines() -> String {
    REFUSED.iter().chain(HEARD).map(|(line, _)| format!("{line}\n")).collect()
}

fn asks() -> Env {
    Env::new().flow("asks", FLOW)
}

/// The answers to questions, as they stand in the journal.
fn recorded(env: &Env) -> Vec<Value> {
    let mut asked = Vec::new();
    let mut answers = Vec::new();
    for line in &env.journal().lines {
        let (intent, outcome) = (&line["is"]["intent"], &line["is"]["outcome"]);
        if intent["kind"] == "ask" {
            asked.push(intent["key"].clone());
        } else if asked.contains(&outcome["key"]) {
            answers.push(outcome["ok"].clone());
        }
    }
    answers
}

fn notices(ended: &Ended) -> String {
    ended.of_type("notice").iter().map(|notice| format!("{}\n", notice["text"].as_str().unwrap_or_default())).collect()
}

#[test]
fn in_a_pipe_a_line_is_a_command_an_answer_or_refused_and_asked_for_again() {
    let env = asks();
    let ended = env.nietz(["run", "asks", "--times", &times()]).stdin(lines()).go().exits(0);
    assert!(ended.stdout.contains(&format!("heard {}", heard())), "{}", ended.stdout);
    for (line, why) in REFUSED {
        assert!(ended.stdout.contains(&format!("> {line}\n  {why}")), "{line}: {}", ended.stdout);
    }
    let typed: Vec<Value> = HEARD.iter().map(|(line, _)| json!(line)).collect();
    assert_eq!(recorded(&env), typed, "what is recorded is what was typed");
}

#[test]
fn an_editor_is_told_by_a_notice_and_answers_by_the_same_rule() {
    let env = asks();
    let answers = REFUSED.iter().chain(HEARD).map(|(line, _)| json!({ "id": "next", "answer": line }));
    let answers: String = answers.map(|answer| format!("{answer}\n")).collect();
    let ended = env.run(["asks", "--times", &times()]).stdin(answers).go().exits(0);
    assert_eq!(ended.result(), heard());
    for (line, why) in REFUSED {
        assert!(notices(&ended).contains(&format!("the answer to `next` is not valid: {why}")), "{line}: {ended:?}");
    }
    let question = &ended.of_type("asked")[0]["question"];
    assert_eq!(
        question["commands"][2],
        json!({ "name": "back", "summary": "goes back", "number": "[N]", "words": ["back"] })
    );
}

#[test]
fn a_file_of_answers_is_read_by_the_same_rule_and_what_is_refused_ends_the_run() {
    let all: Vec<&str> = HEARD.iter().map(|(line, _)| *line).collect();
    let env = asks().file("answers.yaml", json!({ "next": all }).to_string());
    let ended = env.run(["asks", "--times", &times(), "--answers", "answers.yaml"]).go().exits(0);
    assert_eq!(ended.result(), heard());
    for (line, why) in REFUSED {
        let env = asks().file("answers.yaml", json!({ "next": line }).to_string());
        let ended = env.run(["asks", "--answers", "answers.yaml"]).go().exits(2);
        assert_eq!(ended.failure(), "answer-invalid", "{line}");
        assert!(
            ended.ending()["failure"]["message"].as_str().is_some_and(|told| told.contains(why)),
            "{line}: {ended:?}"
        );
    }
}

#[test]
fn at_a_terminal_what_is_refused_stays_to_be_corrected() {
    let env = asks();
    let mut seat = env.nietz(["run", "asks", "--times", &times()]).var("TERM", "xterm").at_a_terminal();
    seat.sees("Number 1?");
    seat.sees("[/help]");
    for (line, why) in REFUSED {
        seat.types(&format!("{line}\r"));
        // The screen writes what it styles in pieces, and the line has an end. What was meant stands in the line already.
        let told = why.split_inclusive('?').next().unwrap_or(why);
        seat.sees(&told[..told.len().min(40)]);
        seat.types("\u{3}");
    }
    for (number, (line, _)) in (1..).zip(HEARD) {
        seat.types(&format!("{line}\r"));
        if number < HEARD.len() {
            seat.sees(&format!("Number {}?", number + 1));
            seat.sees("\u{1b}[?25h");
        }
    }
    assert_eq!(seat.end(), Some(0));
    let typed: Vec<Value> = HEARD.iter().map(|(line, _)| json!(line)).collect();
    assert_eq!(recorded(&env), typed);
}

#[test]
fn tab_completes_commands_with_their_slash_their_words_and_the_other_words_of_a_flow() {
    let env = asks();
    let mut seat = env.nietz(["run", "asks", "--times", "4"]).var("TERM", "xterm").at_a_terminal();
    for (number, (typed, _)) in (1..).zip([("/sol\t", ""), ("fou\t", ""), ("@A\t", ""), ("/he\t", "")]) {
        seat.sees(&format!("Number {number}?"));
        seat.sees("\u{1b}[?25h");
        seat.types(&format!("{typed}\r"));
    }
    seat.sees("adds an idea of yours");
    seat.types("/quit\r");
    assert_eq!(seat.end(), Some(0));
    assert_eq!(recorded(&env), ["/solved", "found it", "@Ann", "/quit"]);
}

#[test]
fn a_recorded_line_means_the_same_when_the_run_goes_on_and_is_not_asked_for_again_when_more_is_offered() {
    let env = asks();
    env.run(["asks", "--times", "4"]).stdin("back 3\n\\solved\n/idea a cache\n").go().exits(7);
    env.write(
        "flows/asks.lua",
        FLOW.replace("local COMMANDS = {", "local COMMANDS = {\n{ name = \"more\", summary = \"more\" },"),
    );
    let ended = env.resume().stdin("/more\n").go();
    assert_eq!(ended.result(), json!(["back(3)", "=solved", "idea(a cache)", "more()"]), "{ended:?}");
    assert_eq!(recorded(&env).len(), 4);
}

/// A question of each kind, with commands and without.
const KINDS: &str = r#"
local nietz = require("@nietz")
local ui = require("@nietz/ui")
return nietz.flow {
	name = "kinds",
	summary = "Asks in every way",
	run = function()
		local plain = ui.ask { id = "plain", prompt = "In your words?" }
		local colour = ui.choose { id = "colour", prompt = "Which?", options = { { value = "red", label = "Deep red" }, "green" }, default = "green" }
		local sure = ui.confirm { id = "sure", prompt = "Sure?", default = true }
		local said = ui.ask { id = "said", prompt = "What next?", commands = { { name = "stop", summary = "stops it", words = { "stop" } } } }
		return { plain, colour, tostring(sure), said }
	end,
}
"#;

/// What help tells at each of its questions.
const TOLD: [&str; 4] = ["Any text is an answer.", "1. red: Deep red", "yes or no", "/stop  stops it (stop)"];

#[test]
fn help_is_shown_at_every_question_and_recorded_nowhere() {
    let lines = "/help\n\\/help\n/help\nred\n/help\ny\n/help\nsomething\n";
    let result = json!(["/help", "red", "true", "something"]);
    // A pipe.
    let env = Env::new().flow("kinds", KINDS);
    let ended = env.nietz(["run", "kinds"]).stdin(lines).go().exits(0);
    for told in TOLD {
        assert_eq!(ended.stdout.matches(told).count(), 1, "{told}: {}", ended.stdout);
    }
    assert_eq!(recorded(&env), [json!("/help"), json!("red"), json!(true), json!("something")]);
    // An editor.
    let env = Env::new().flow("kinds", KINDS);
    let ended = env.run(["kinds"]).stdin(lines).go().exits(0);
    assert_eq!(ended.result(), result);
    assert!(TOLD.iter().all(|told| notices(&ended).contains(told)), "{ended:?}");
    // A file: a list goes on with its next answer; a single one is somebody else's to follow.
    let answers =
        json!({ "plain": ["/help", "\\/help"], "colour": ["/help", "red"], "sure": ["/help", "y"], "said": "/help" });
    let env = Env::new().flow("kinds", KINDS).file("answers.yaml", answers.to_string());
    let waiting = env.run(["kinds", "--answers", "answers.yaml"]).go().exits(7);
    assert!(TOLD.iter().all(|told| notices(&waiting).contains(told)), "{waiting:?}");
    let ended = env.resume().args(["--answers", "answers.yaml"]).stdin("something\n").go();
    assert_eq!(ended.result(), result);
    // A terminal.
    let env = Env::new().flow("kinds", KINDS);
    let mut seat = env.nietz(["run", "kinds"]).var("TERM", "xterm").at_a_terminal();
    let asked =
        ["In your words?", "Which?", "Sure?", "What next?"].into_iter().zip(["\\/help\r", "red\r", "y", "something\r"]);
    for (told, (prompt, answer)) in TOLD.iter().zip(asked) {
        seat.sees(prompt);
        seat.types("/help\r");
        seat.sees(told);
        seat.types(answer);
    }
    assert_eq!(seat.end(), Some(0));
    assert_eq!(recorded(&env), [json!("/help"), json!("red"), json!(true), json!("something")]);
}

#[test]
fn what_a_flow_offers_wrongly_is_told_with_its_line() {
    for (command, why) in [
        ("{ name = 'Go', summary = 'x' }", "`Go` is no name of a command"),
        ("{ name = 'go', summary = 'x' }, { name = 'go', summary = 'x' }", "`go` is two commands"),
        ("{ name = 'help', summary = 'x', text = 'T' }", "`help` is nietz's own"),
        ("{ name = 'go', summary = 'x', text = 'T', words = { 'go' } }", "needs its slash"),
    ] {
        let flow = KINDS.replace(r#"{ name = "stop", summary = "stops it", words = { "stop" } }"#, command);
        let env = Env::new().flow("kinds", &flow);
        let ended = env.run(["kinds"]).stdin("a\nred\ny\n").go();
        let failure = &ended.ending()["failure"];
        assert!(failure["message"].as_str().is_some_and(|told| told.contains(why)), "{why}: {ended:?}");
        assert!(failure["place"]["file"].as_str().is_some_and(|file| file.ends_with("flows/kinds.lua")), "{failure}");
        assert_eq!(failure["place"]["line"], 11);
    }
}

/// A question that has only commands for answers.
const ONLY: &str = r#"
local nietz = require("@nietz")
local ui = require("@nietz/ui")
return nietz.flow {
	name = "only", summary = "Takes commands", host_api = 2,
	run = function()
		local heard = {}
		repeat
			local said, command, line = ui.ask {
				id = "findings", prompt = "And now?", text = false, default = "done",
				commands = {
					{ name = "drop", summary = "drops findings", number = "N…" },
					{ name = "keep", summary = "keeps one", number = "N" },
					{ name = "add", summary = "adds a finding of yours", text = "TEXT" },
					{ name = "done", summary = "ends", words = { "done", "that is all" } },
				},
			}
			assert(command ~= nil and line ~= nil)
			table.insert(heard, `{command}({said})`)
		until command == "done"
		return heard
	end,
}
"#;

const ONLY_HEARD: &[(&str, &str)] = &[
    ("drop 2 3", "drop(2 3)"),
    ("/drop 2,3, 4", "drop(2 3 4)"),
    ("Drop 5.", "drop(5)"),
    ("add the cache is stale. Really!", "add(the cache is stale. Really!)"),
    ("keep 1", "keep(1)"),
    ("That is all!", "done()"),
];

const ONLY_REFUSED: &[(&str, &str)] = &[
    ("dorp 3", "`dorp 3`: did you mean `drop 3`? Type that"),
    ("drop", "`/drop` needs a number: `/drop N…`."),
    ("drop -1", "`/drop` does not take `-1`: `/drop N…`."),
    ("keep 1 2", "`/keep` does not take `1 2`: `/keep N`."),
    ("add", "`/add` needs a text: `/add TEXT`."),
    (
        "the cache is stale",
        "`the cache is stale` is no command here; this question takes `/drop N…`, `/keep N`, `/add TEXT` or `/done`",
    ),
    ("\\done", "`\\done`: did you mean `done`? Type that"),
];

#[test]
fn where_only_commands_are_answers_nothing_else_reaches_the_flow_and_the_slash_may_be_left_out() {
    let heard: Value = ONLY_HEARD.iter().map(|(_, heard)| json!(heard)).collect();
    let lines = || ONLY_REFUSED.iter().chain(ONLY_HEARD).map(|(line, _)| *line);
    // A pipe.
    let env = Env::new().flow("only", ONLY);
    let ended =
        env.nietz(["run", "only"]).stdin(lines().map(|line| format!("{line}\n")).collect::<String>()).go().exits(0);
    for (line, why) in ONLY_REFUSED {
        assert!(ended.stdout.contains(&format!("> {line}\n  {why}")), "{line}: {}", ended.stdout);
    }
    assert_eq!(env.journal().lines.last().expect("lines")["is"]["end"]["result"], heard);
    // An editor.
    let env = Env::new().flow("only", ONLY);
    let answers: String = lines().map(|line| format!("{}\n", json!({ "id": "findings", "answer": line }))).collect();
    let ended = env.run(["only"]).stdin(answers).go().exits(0);
    assert_eq!(ended.result(), heard);
    assert_eq!(ended.of_type("asked")[0]["question"]["commands_only"], true);
    // A file of answers.
    let all: Vec<&str> = ONLY_HEARD.iter().map(|(line, _)| *line).collect();
    let env = Env::new().flow("only", ONLY).file("answers.yaml", json!({ "findings": all }).to_string());
    assert_eq!(env.run(["only", "--answers", "answers.yaml"]).go().exits(0).result(), heard);
    for (line, why) in ONLY_REFUSED {
        let env = Env::new().flow("only", ONLY).file("answers.yaml", json!({ "findings": line }).to_string());
        let ended = env.run(["only", "--answers", "answers.yaml"]).go().exits(2);
        assert_eq!(ended.failure(), "answer-invalid", "{line}");
        let told = ended.ending()["failure"].to_string();
        assert!(told.contains(&json!(why).to_string().trim_matches('"').to_owned()), "{line}: {told}");
    }
    // A terminal: what was probably meant stands in the line, and Enter takes it.
    let env = Env::new().flow("only", ONLY);
    let mut seat = env.nietz(["run", "only"]).var("TERM", "xterm").at_a_terminal();
    seat.sees("And now?");
    seat.sees("[done]");
    seat.types("dorp 3\r");
    seat.sees("did you mean `drop 3`? Enter takes that");
    seat.types("\r");
    seat.sees("[done]");
    seat.sees("\u{1b}[?25h");
    seat.types("nonsense\r");
    seat.sees("is no command here");
    seat.types("\u{3}/help\r");
    seat.sees("One of these commands");
    seat.sees("Enter alone: done");
    seat.types("\r");
    assert_eq!(seat.end(), Some(0));
    assert_eq!(recorded(&env), ["drop 3", "done"]);
}

#[test]
fn a_default_is_a_command_with_its_slash_and_a_text_without_it() {
    for (default, heard) in [("/done", "done()"), ("done", "=done"), ("/nothing", "=/nothing")] {
        let flow = FLOW
            .replace("optional = true,", &format!("default = \"{default}\","))
            .replace("\"solved\", \"found it\"", "\"done\"");
        let flow = flow.replace("name = \"solved\"", "name = \"done\"");
        let env = Env::new().flow("asks", &flow);
        assert_eq!(env.run(["asks"]).stdin("\n").go().exits(0).result(), json!([heard]), "{default}");
    }
}

#[test]
fn a_question_of_commands_alone_that_no_command_can_answer_is_refused() {
    const COMMANDS: &str = "commands = { { name = 'drop', summary = 'drops one', number = 'N' } }";
    for (fields, why) in [
        (format!("text = false, default = 'drop', {COMMANDS}"), "the default is one of the commands: `/drop N`"),
        (format!("text = false, optional = true, {COMMANDS}"), "an empty line is no command"),
        ("text = false".to_owned(), "a question needs `commands`"),
    ] {
        let flow = format!(
            "local nietz = require('@nietz')\nlocal ui = require('@nietz/ui')\nreturn nietz.flow {{ name = 'only', \
             summary = 'x', host_api = 2, run = function() ui.ask {{ id = 'x', prompt = '?', {fields} }} end }}"
        );
        let ended = Env::new().flow("only", &flow).run(["only"]).stdin("drop 1\n").go().exits(1);
        let told = ended.ending()["failure"]["message"].clone();
        assert!(told.as_str().is_some_and(|told| told.contains(why)), "{fields}: {told}");
    }
}
