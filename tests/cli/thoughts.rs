//! The promise to models that think: what a model wants back goes back to it, also after a kill, and to nobody else. What it
//! shows of its thinking is seen while it comes, and kept nowhere.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::env::{Env, KEY};
use crate::support::model_server::strict::Provider;
use crate::support::model_server::{Gate, ModelServer, Request, Response};
use crate::support::strict::{Round, keys, thoughts_in_requests};

/// A model looks with a tool and answers; another one says something to that, and then the first goes on.
const FLOW: &str = r#"
local llm = require("@nietz/llm")
local nietz = require("@nietz")

local look = { description = "Looks", parameters = { type = "object" }, run = function() return "a ledger" end }

return nietz.flow {
	name = "thoughts",
	summary = "Two models, one conversation",
	params = { other = { type = "string", required = true } },
	permissions = { llm = true },
	run = function(ctx)
		local first = llm.chat { prompt = "What is there?", tools = { look = look } }
		local other = llm.chat { model = ctx.params.other, messages = first.messages, prompt = "Is that so?" }
		local again = llm.chat { messages = other.messages, prompt = "And now?", tools = { look = look } }
		return again.text
	end,
}
"#;

const GEMINI: Round = Round { provider: Provider::Gemini, model: "gemini/gemini-3.8-flash", known: true };
const CLAUDE: Round = Round { provider: Provider::Anthropic, model: "anthropic/claude-sonnet-5-5", known: true };
const DEEPSEEK: Round = Round { provider: Provider::DeepSeek, model: "deepseek/deepseek-flash", known: true };

/// Looks once for each question of the user's.
fn looks(request: &Request) -> Response {
    match request.turns().last() {
        _ if request.body["tools"].is_null() => Response::text("It is."),
        Some((_, text)) if text == "a ledger" => Response::text("There is a ledger."),
        _ => Response::text("").tool_call("t", "look", "{}"),
    }
}

/// What of a body was thought.
fn thoughts(body: &Value) -> usize {
    body.to_string().matches("sealed-").count()
}

#[test]
fn a_thought_goes_back_to_its_model_alone_and_survives_a_kill() {
    for round in [GEMINI, CLAUDE, DEEPSEEK] {
        let gate = Gate::default();
        let held = gate.clone();
        let seat = round.serve(move |request| {
            let reply = looks(request);
            if request.number == 2 { reply.held_by(&held) } else { reply }
        });
        // The other model does not think, and would refuse what it does not know.
        let other = Round { provider: Provider::OpenAi, model: "openai/gpt-6.1-terra", known: true }.serve(looks);
        let env = seat.env().var("OPENAI_BASE_URL", &other.server.url()).flow("thoughts", FLOW);
        let running = env.run_on(round.model, ["thoughts", "--other", "openai/gpt-6.1-terra"]).spawn();
        assert!(seat.server.wait_for_calls(2, Duration::from_secs(30)), "{round:?}");
        running.kill();
        gate.open();
        let ended = env.resume().args(["--verbose"]).go();
        let shown: Vec<String> = ended.of_type("call_received").iter().map(ToString::to_string).collect();
        assert!(shown.len() == 4 && !shown.concat().contains("sealed-"), "{shown:?}");
        assert_eq!(ended.result(), "There is a ledger.", "{round:?}: {ended:?}");
        let sent: Vec<usize> = seat.server.requests().iter().map(|request| thoughts(&request.body)).collect();
        assert!(
            sent[0] == 0 && sent[1] > 0 && sent[2] == sent[1] && sent[3..].iter().all(|count| *count > 0),
            "{sent:?}"
        );
        let strange: usize = other.server.requests().iter().map(|request| thoughts(&request.body)).sum();
        assert_eq!((strange, other.refusals(), seat.refusals()), (0, 0, 0), "{round:?}");
        assert!(!thoughts_in_requests(&env), "they stand with the replies");
        let whole = std::fs::read_to_string(env.journal_path()).expect("there is a journal");
        assert!(whole.contains("sealed-") && keys(&env).len() == 5, "{round:?}");
    }
}

/// What a model thought was made for another conversation: it goes on without.
#[test]
fn a_thought_that_is_not_taken_back_is_left_out_of_that_call() {
    let flow = FLOW.replace("prompt = \"And now?\"", "system = \"Be brief.\", prompt = \"And now?\"");
    let seat = CLAUDE.serve(looks);
    let other = Round { provider: Provider::OpenAi, model: "openai/gpt-6.1-terra", known: true }.serve(looks);
    let env = seat.env().var("OPENAI_BASE_URL", &other.server.url()).flow("thoughts", &flow);
    let ended = env.run_on(CLAUDE.model, ["thoughts", "--other", "openai/gpt-6.1-terra"]).go();
    let told: Vec<String> = ended.of_type("notice").iter().map(|event| event["text"].to_string()).collect();
    assert_eq!(told.iter().filter(|text| text.contains("did not take back what it thought")).count(), 1, "{told:?}");
}

/// What a server refused in one process of a run is not tried again in the next.
#[test]
fn what_a_server_refused_is_remembered_for_the_run() {
    let server = ModelServer::start(|request| match request.body.get("temperature") {
        Some(_) => Response::error(400, "Unsupported parameter: 'temperature' is not supported with this model."),
        None => Response::text("fine"),
    });
    let source = "local llm, ui = require('@nietz/llm'), require('@nietz/ui')
        return require('@nietz').flow { name = 'warm', summary = 's', permissions = { llm = true }, run = function()
          local one = llm.chat { prompt = 'one', temperature = 0.5 }.text
          local more = ui.ask { id = 'more', prompt = 'More?' }
          return one .. llm.chat { prompt = more, temperature = 0.5 }.text end }";
    let env = Env::with(&server).flow("warm", source);
    env.run(["warm"]).go().exits(7);
    assert_eq!(server.calls(), 2);
    let ended = env.resume().stdin("yes\n").go();
    assert_eq!((ended.result(), server.calls()), ("finefine".into(), 3), "{ended:?}");
}

/// One reply that is streamed to the user, and one that is not.
const SHOWN: &str = "local llm = require('@nietz/llm')
return require('@nietz').flow { name = 'shown', summary = 's', permissions = { llm = true }, run = function()
    llm.chat { prompt = 'Hidden?' }
    return llm.chat { prompt = 'Coffee?', stream = true }.text end }";

fn sse(events: &[Value]) -> Response {
    let lines: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    Response::stream(lines + "data: [DONE]\n\n")
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

/// Thinks aloud, in the words of OpenRouter and Ollama, of the user's key among other things.
fn thinks_aloud(_: &Request) -> Response {
    let (one, two) = KEY.split_at(9);
    let pieces = ["Perhaps ", "tea, or ", one, two, "?\nOr milk."];
    let mut events: Vec<Value> = pieces.iter().map(|piece| delta(json!({"reasoning": piece}))).collect();
    events.push(delta(json!({"content": "Water."})));
    sse(&events)
}

fn texts(ended: &crate::support::process::Ended, kind: &str) -> String {
    ended.of_type(kind).iter().filter_map(|event| event["text"].as_str().map(str::to_owned)).collect()
}

#[test]
fn what_a_model_thinks_is_shown_while_it_comes_without_secrets_and_kept_nowhere() {
    let server = ModelServer::start(thinks_aloud);
    let env = Env::with(&server).flow("shown", SHOWN);
    let ended = env.run(["shown"]).go().exits(0);
    assert_eq!(texts(&ended, "call_thought"), "Perhaps tea, or [redacted:OPENAI_API_KEY]?\nOr milk.", "{ended:?}");
    assert_eq!((texts(&ended, "call_delta").as_str(), ended.result()), ("Water.", "Water.".into()));
    let kinds: Vec<Value> = ended.events().iter().map(|event| event["type"].clone()).collect();
    let last_thought = kinds.iter().rposition(|kind| kind == "call_thought");
    assert!(last_thought < kinds.iter().position(|kind| kind == "call_delta"), "{kinds:?}");
    let journal = std::fs::read_to_string(env.journal_path()).expect("there is a journal");
    assert!(journal.contains("Water.") && !journal.contains("Perhaps") && !journal.contains("milk"), "{journal}");
    // Nobody sees it come in a pipe.
    let ended = env.nietz(["run", "shown", "--model", "openai/test"]).var("NIETZ_RUN", "r2").go().exits(0);
    assert!(ended.stdout.contains("Water.") && !ended.stdout.contains("Perhaps"), "{ended:?}");
    assert!(!ended.stderr.contains("Perhaps"), "{ended:?}");
}

#[test]
fn what_a_model_thinks_is_dimmed_at_a_terminal_and_gone_when_it_speaks() {
    let gate = Gate::default();
    let held = gate.clone();
    // The thought comes alone, and nothing more until somebody has seen it.
    let server = ModelServer::start(move |request| {
        if request.prompt() == "Hidden?" {
            return Response::text("fine");
        }
        let thought = delta(json!({"reasoning": "Perhaps tea. Or"}));
        let head = format!("data: {thought}\n\n");
        let text = delta(json!({"content": "Water."}));
        Response::stream(format!("{head}data: {text}\n\ndata: [DONE]\n\n")).held_after(head.len(), &held)
    });
    let env = Env::with(&server).flow("shown", SHOWN);
    let mut seat = env.nietz(["run", "shown", "--model", "openai/test"]).var("TERM", "xterm").at_a_terminal();
    seat.sees("\u{1b}[2mPerhaps tea.");
    gate.open();
    seat.sees("Water.");
    assert_eq!(seat.end(), Some(0));
}

/// Models of today leave out what they think unless they are asked for it. The wish is no part of what the flow asks for.
#[test]
fn models_are_asked_to_show_what_they_think_when_the_user_says_so() {
    let server = ModelServer::start(|_| Response::text("fine"));
    let env = crate::support::strict::env(&server).flow("shown", SHOWN);
    env.run_on(CLAUDE.model, ["shown"]).go().exits(0);
    let thinking = |server: &ModelServer| -> Vec<Value> {
        server.requests().iter().map(|request| request.body["thinking"].clone()).collect()
    };
    assert_eq!(thinking(&server), [Value::Null, Value::Null]);
    env.run_on(CLAUDE.model, ["shown", "--thoughts"]).var("NIETZ_RUN", "r2").go().exits(0);
    let wish = json!({"type": "adaptive", "display": "summarized"});
    assert_eq!(thinking(&server)[2..], [wish.clone(), wish]);
    let forked = env.nietz(["fork", "r1", "--json", "--thoughts"]).var("NIETZ_RUN", "r3").go().exits(0);
    assert_eq!((server.calls(), forked.result()), (4, "fine".into()), "it is given back: {forked:?}");
    // A model that does not think by itself is not made to.
    env.run_on("anthropic/claude-haiku-4-5", ["shown", "--thoughts"]).var("NIETZ_RUN", "r4").go().exits(0);
    assert_eq!(thinking(&server)[4..], [Value::Null, Value::Null]);
}

/// OpenRouter passes on what each model wants back, in a form of its own: pieces in, the whole back.
#[test]
fn what_models_behind_openrouter_thought_goes_back_as_it_came() {
    let server = ModelServer::start(|request| match request.turns().last() {
        Some((_, text)) if text == "a ledger" => Response::text("There is a ledger."),
        _ => sse(&[
            delta(json!({"reasoning": "Let me ", "reasoning_details": [
                {"type": "reasoning.text", "text": "Let me ", "index": 0, "format": "anthropic-claude-v1", "signature": null}]})),
            delta(
                json!({"reasoning": "look", "reasoning_details": [{"type": "reasoning.text", "text": "look", "index": 0}]}),
            ),
            delta(json!({"reasoning_details": [{"type": "reasoning.text", "signature": "sealed-1", "index": 0}]})),
            delta(
                json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "sealed-2", "index": 1, "id": "e"}]}),
            ),
            delta(json!({"tool_calls": [{"index": 0, "id": "t", "function": {"name": "look", "arguments": "{}"}}]})),
        ]),
    });
    let source = FLOW.replace(
        "local other = llm.chat { model = ctx.params.other, messages = first.messages, prompt = \"Is that so?\" }",
        "local other = first",
    );
    let env =
        Env::new().var("OPENROUTER_BASE_URL", &server.url()).var("OPENROUTER_API_KEY", KEY).flow("thoughts", &source);
    let ended = env.run_on("openrouter/anthropic/claude-opus-5", ["thoughts", "--other", "-"]).go().exits(0);
    assert_eq!(ended.result(), "There is a ledger.");
    let whole = json!([
        {"type": "reasoning.text", "text": "Let me look", "index": 0, "format": "anthropic-claude-v1", "signature": "sealed-1"},
        {"type": "reasoning.encrypted", "data": "sealed-2", "index": 1, "id": "e"},
    ]);
    let back: Vec<Value> = server.requests()[1].body["messages"].as_array().expect("messages").clone();
    assert_eq!(back[1]["reasoning_details"], whole, "{back:?}");
    assert!(back[1]["reasoning_content"].is_null() && back[1]["reasoning"].is_null(), "{back:?}");
    let later = server.requests()[2].body["messages"].to_string();
    assert!(later.contains("sealed-1") && !thoughts_in_requests(&env), "{later}");
}
