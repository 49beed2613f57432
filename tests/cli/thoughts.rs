//! The promise to models that think: what a model wants back goes back to it, also after a kill, and to nobody else.

use std::time::Duration;

use serde_json::Value;

use crate::support::env::Env;
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
