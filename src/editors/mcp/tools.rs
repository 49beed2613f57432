//! What can be called: a tool and a prompt for each flow, and tools that go on with runs.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{
    GetPromptRequestParams, GetPromptResult, MetaObject, Prompt, PromptArgument, PromptMessage, Role, Tool,
    ToolAnnotations,
};
use serde_json::{Map, Value, json};

use super::Shared;
use super::resources::APP;
use crate::editors::offer::Offer;
use crate::model::text::clean;

/// What the names of flows begin with.
pub(super) const PREFIX: &str = "flow_";

/// What a model is told of the server.
pub(super) const INSTRUCTIONS: &str = "Each `flow_…` tool runs a structured conversation (a nietz flow) with models of its \
    own. It may ask questions, which are for the user: show them as they are, and give the user's own words back with \
    `answer`; never make up an answer. A call that returns `running` goes on by itself: call `wait` with its run. What is \
    finished is never done or paid for again: a run that waits, failed or was stopped goes on with `resume`.";

/// Returns all tools.
pub(super) fn list(shared: &Shared) -> Vec<Tool> {
    let flows = shared.offers.iter().map(|offer| flow(shared, offer));
    flows.chain(of_runs(shared)).collect()
}

fn flow(shared: &Shared, offer: &Offer) -> Tool {
    let mut about = clean(&offer.summary);
    if offer.asks.is_empty() {
        about += ".";
    } else {
        about += &format!(". What it may do: it {}.", offer.asks.join("; it "));
    }
    if offer.origin != "bundled" {
        about += &format!(" It comes from {}.", clean(&offer.origin));
    }
    let hints = ToolAnnotations::with_title(format!("nietz: {}", offer.flow))
        .read_only(!offer.works && offer.collections.is_empty())
        .destructive(offer.works)
        .idempotent(false)
        .open_world(true);
    Tool::new(format!("{PREFIX}{}", offer.name), about, offer.schema(&shared.options.allowed))
        .with_raw_output_schema(Arc::new(result_schema()))
        .with_annotations(hints)
        .with_meta(shown_by())
}

/// Returns what tells a client by which app it can show a call's run.
fn shown_by() -> MetaObject {
    MetaObject(Map::from_iter([("ui".to_owned(), json!({ "resourceUri": APP }))]))
}

/// Returns the schema of what calls return that follow a run.
fn result_schema() -> Map<String, Value> {
    let schema = json!({
        "type": "object",
        "properties": {
            "run": { "type": "string", "description": "The run's name, for the other tools" },
            "status": { "type": "string", "enum": ["done", "failed", "waiting", "interrupted", "running"] },
            "result": {
                "type": ["object", "array", "string", "number", "boolean", "null"],
                "description": "What the flow returned, where it is done",
            },
            "verdict": { "type": "object", "description": "What the flow decided, if it had to" },
            "failure": { "type": "object", "description": "Why it ended" },
            "question": { "type": "object", "description": "The question that waits; `effect` is its name for `answer`" },
            "usage": { "type": "object", "description": "The tokens of all calls so far" },
        },
        "required": ["run", "status"],
    });
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

fn of_runs(shared: &Shared) -> Vec<Tool> {
    let run = json!({ "type": "string", "description": "The run's name, or a part of it that only one has" });
    let said_by = match shared.options.model_may_answer {
        true => json!({
            "type": "string", "enum": ["user", "model"],
            "description": "Whose words these are: the user's, as they said them, or your own. The user has allowed your own.",
        }),
        false => json!({ "type": "string", "enum": ["user"], "description": "These are the user's own words" }),
    };
    let answer_about = match shared.options.model_may_answer {
        true => {
            "Answer a question of a run. The user's own words come before yours; say whose they are in `said_by`. What \
             approves something counts only from the user, in a form of their own."
        }
        false => {
            "Give a run the user's own answer to its question, word for word. Ask the user first; never answer in their \
             place, shorten or improve what they said. It is recorded as relayed. What approves something does not count \
             from here: only the user can say that, in a form of their own."
        }
    };
    let seconds = json!({ "type": "number", "minimum": 0, "description": "How long to wait" });
    let limit = json!({ "type": "integer", "minimum": 1, "maximum": 200 });
    let status = json!({ "type": "string", "enum": ["done", "failed", "waiting", "interrupted", "stopped", "running", "broken"] });
    let answer = json!({ "type": "string", "description": "The answer; of a yes or no, `yes` or `no`" });
    let effect = json!({ "type": "string", "description": "Which question, by its `effect`; without it the oldest" });
    vec![
        tool(
            "runs",
            "List the runs of this workspace, newest first",
            &json!({ "status": status, "limit": limit }),
            &[],
            true,
        ),
        tool("log", "Show what a run did and said, as Markdown", &json!({ "run": run }), &["run"], true),
        tool(
            "wait",
            "Wait for a run that is under way, until it asks, ends, or the time is over",
            &json!({ "run": run, "seconds": seconds }),
            &["run"],
            true,
        ),
        tool(
            "resume",
            "Go on with a run that waits, failed or was stopped. Nothing that is finished is done, asked or paid for again",
            &json!({ "run": run }),
            &["run"],
            false,
        ),
        tool(
            "answer",
            answer_about,
            &json!({ "run": run, "answer": answer, "effect": effect, "said_by": said_by }),
            &["run", "answer"],
            false,
        ),
        tool("cancel", "Stop a run, as Ctrl-C does; it can be resumed", &json!({ "run": run }), &["run"], false),
    ]
}

fn tool(name: &'static str, about: &'static str, properties: &Value, required: &[&str], reads_only: bool) -> Tool {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.clone());
    schema.insert("required".to_owned(), required.into());
    schema.insert("additionalProperties".to_owned(), false.into());
    let hints = ToolAnnotations::with_title(format!("nietz: {name}")).read_only(reads_only).destructive(false);
    Tool::new(name, about, schema).with_annotations(hints.open_world(false))
}

/// Returns the prompts, which clients show as slash commands.
pub(super) fn prompts(shared: &Shared) -> Vec<Prompt> {
    let prompt = |offer: &Offer| {
        let arguments = offer.main.params.iter().filter(|(_, param)| param.positional).map(|(name, param)| {
            PromptArgument::new(name.clone()).with_description(clean(&param.help)).with_required(param.required)
        });
        let arguments: Vec<PromptArgument> = arguments.collect();
        Prompt::new(format!("{PREFIX}{}", offer.name), Some(clean(&offer.summary)), Some(arguments))
    };
    shared.offers.iter().map(prompt).collect()
}

/// Returns what a prompt says.
pub(super) fn prompt(shared: &Shared, request: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    let unknown = || ErrorData::invalid_params(format!("there is no prompt `{}`", clean(&request.name)), None);
    let offer = shared.offer(&request.name).ok_or_else(unknown)?;
    let given = request.arguments.clone().unwrap_or_default();
    let given: Map<String, Value> =
        given.into_iter().filter(|(name, _)| offer.main.params.contains_key(name)).collect();
    let with = match given.is_empty() {
        true => "Ask me for what it needs.".to_owned(),
        false => format!("Its arguments: {}", Value::Object(given)),
    };
    let text = format!(
        "Run the flow {} by calling the tool `{}`. {with}\n\nShow me what it says. Its questions are for me: ask me each as \
         it stands, and give my words back as they are.",
        offer.flow, request.name
    );
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).with_description(clean(&offer.summary)))
}
