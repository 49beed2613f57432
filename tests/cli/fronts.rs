//! The promise: what a flow gets and does is the same at a terminal, in a pipe, from `--answers FILE` and from `--answers -`:
//! texts and attachments, commands, a tool that is approved, a notification, a file that overrides, a verdict.

use serde_json::{Value, json};

use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Request, Response};

const FLOW: &str = r#"
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local template = require("@nietz/template")
local ui = require("@nietz/ui")
return nietz.flow {
  name = "all", summary = "Uses what every mode needs", host_api = 2, attachments = true,
  params = { about = { type = "string", positional = true, required = true } },
  permissions = { llm = true, notify = true },
  run = function(ctx)
    local said, command = ui.ask {
      id = "next", prompt = "What next?",
      commands = { { name = "idea", summary = "adds an idea", text = "TEXT" }, { name = "done", summary = "ends", words = { "done" } } },
    }
    local sent = {}
    local reply = llm.chat {
      prompt = template.render("./all/ask.md", { about = ctx.params.about }),
      tools = { send = {
        description = "Sends", approve = true, parameters = { type = "object", properties = { to = { type = "string" } } },
        run = function(arguments) table.insert(sent, arguments.to) return "sent" end,
      } },
    }
    local told = nietz.notify { title = "Done", text = reply.text }
    nietz.verdict(false, "two are against it")
    return {
      about = ctx.params.about, from = ctx.origins.about[1].name, attached = ctx.attachments[1].name,
      said = said, command = command, sent = sent, text = reply.text, told = told,
    }
  end,
}"#;

fn answer(request: &Request) -> Response {
    match request.turns().iter().any(|(role, _)| role == "tool") {
        true => Response::text("all is sent"),
        false => Response::text("").tool_call("t1", "send", r#"{"to": "ann"}"#),
    }
}

fn env(server: &ModelServer) -> Env {
    Env::with(server)
        .flow("all", FLOW)
        .file("flows/all/ask.md", "Ask about {{ about }}")
        .file("topic.txt", "tabs or spaces")
        .file("notes.md", "# Notes\n")
        .file("answers.yaml", "next: /idea use both\napprove-send: yes\n")
        .config("notify: {command: [sh, -c, 'cat > told.json']}\nmodels: {retry: {attempts: 1}}\n")
}

/// What the journal keeps of a run's outcomes and its end; they have no times of their own here.
fn kept(env: &Env) -> Vec<Value> {
    let text = std::fs::read_to_string(env.journal_path()).expect("there is a journal");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("each line is JSON")["is"].clone());
    let mut kept: Vec<Value> = lines.filter(|is| is.get("outcome").is_some() || is.get("end").is_some()).collect();
    for is in &mut kept {
        for member in ["outcome", "end"] {
            if let Some(line) = is.get_mut(member).and_then(Value::as_object_mut) {
                line.retain(|name, _| !matches!(name.as_str(), "at" | "ms"));
            }
        }
    }
    kept
}

#[test]
fn what_every_mode_needs_is_the_same_at_each_front_end() {
    let server = ModelServer::start(answer);
    let arguments = ["run", "all", "@topic.txt", "--attach", "notes.md", "--model", "openai/test"];
    let typed = "/idea use both\nyes\n";
    let mut journals = Vec::new();
    for front in ["pipe", "answers", "answers -", "terminal"] {
        let env = env(&server);
        let call = env.nietz(arguments);
        match front {
            "pipe" => drop(call.stdin(typed).go().exits(8)),
            "answers" => drop(call.args(["--answers", "answers.yaml"]).go().exits(8)),
            "answers -" => drop(call.args(["--answers", "-"]).stdin(typed).go().exits(8)),
            _ => {
                let mut seat = call.var("TERM", "xterm").at_a_terminal();
                seat.sees("What next?");
                seat.types("/idea use both\r");
                seat.sees("May the model call `send`");
                seat.types("yes\r");
                seat.sees("the verdict is no: two are against it");
                assert_eq!(seat.end(), Some(8), "{front}");
            }
        }
        let told: Value =
            serde_json::from_str(&std::fs::read_to_string(env.home().join("told.json")).expect("it was told"))
                .expect("it is JSON");
        assert_eq!((&told["title"], &told["text"]), (&json!("Done"), &json!("all is sent")), "{front}");
        journals.push((front, kept(&env)));
    }
    let (_, first) = &journals[0];
    let end = &first.last().expect("a last line")["end"];
    assert_eq!(
        end["result"],
        json!({
            "about": "tabs or spaces", "from": "topic.txt", "attached": "notes.md", "said": "use both", "command": "idea",
            "sent": ["ann"], "text": "all is sent", "told": true,
        })
    );
    for (front, kept) in &journals {
        assert_eq!(kept, first, "{front}");
    }
}
