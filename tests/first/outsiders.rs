//! What somebody met who wrote three flows with nothing but the README.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};

fn agent(parameters: &str) -> String {
    format!(
        "local llm = require(\"@nietz/llm\")\n\
         return require(\"@nietz\").flow {{ name = \"agent\", summary = \"s\", host_api = 2, permissions = {{ llm = true }}, run = function()\n\
         \treturn llm.chat {{ prompt = \"go\", tools = {{ look = {{ description = \"Looks\", parameters = {parameters},\n\
         \t\trun = function() return \"seen\" end }} }} }}.text\n\
         end }}\n"
    )
}

/// An empty table of Lua may be a list or an object.
#[test]
fn a_tool_whose_list_of_required_arguments_is_empty_can_be_called() {
    let calls = AtomicUsize::new(0);
    let server = ModelServer::start(move |_| match calls.fetch_add(1, Ordering::SeqCst) {
        0 => Response::text("").tool_call("c1", "look", "{}"),
        _ => Response::text("all is well"),
    });
    let flow = agent("{ type = \"object\", required = {}, properties = {} }");
    let ended = Env::with(&server).flow("agent", &flow).run(["agent"]).go();
    assert_eq!(ended.result(), "all is well", "{ended:?}");
}

#[test]
fn a_tool_whose_parameters_are_no_schema_is_refused_before_anything_is_paid_for() {
    let server = ModelServer::start(|_| Response::text("never"));
    let flow = agent("{ type = \"object\", properties = { path = { type = \"txt\" } } }");
    let told = Env::with(&server).flow("agent", &flow).nietz(["run", "agent"]).go().exits(1).stderr;
    assert!(told.contains("the parameters of the tool `look`") && told.contains("txt"), "{told}");
    assert_eq!(server.calls(), 0);
}

#[test]
fn a_document_that_lacks_a_field_is_told_without_an_empty_place() {
    let flow = r#"
local documents = require("@nietz/documents")
return require("@nietz").flow { name = "weeks", summary = "s", host_api = 2,
  collections = { weeks = { path = "weeks/{week}.yaml", keys = { week = "/week" }, schema = { type = "object", required = { "owner" } } } },
  run = function() documents.collection("weeks"):save { week = "46", mood = "good" } end }
"#;
    let told = Env::new().flow("weeks", flow).nietz(["run", "weeks", "--trust"]).go().stderr;
    assert!(told.contains("weeks/46.yaml is not valid: is missing required \"owner\""), "{told}");
}

#[test]
fn a_test_that_needs_a_repository_is_recorded_from_a_run() {
    let flow = r#"
local git = require("@nietz/git")
return require("@nietz").flow { name = "heads", summary = "s", host_api = 2, permissions = { git = true },
  run = function() return git.head() end }
"#;
    let told = Env::new().flow("heads", flow).nietz(["test", "--record", "heads", "--trust"]).go();
    assert!(!told.stderr.contains("internal"), "{told:?}");
    assert!(told.stderr.contains("nietz test --from-run RUN"), "{told:?}");
}

#[test]
fn runs_that_failed_are_removed_together() {
    let flow = |body: &str| {
        format!("return require(\"@nietz\").flow {{ name = \"f\", summary = \"s\", run = function() {body} end }}")
    };
    let env = Env::new().flow("f", &flow("return 1"));
    env.nietz(["run", "f"]).go().exits(0);
    let env = env.flow("f", &flow("error(\"no\")"));
    env.nietz(["run", "f"]).var("NIETZ_RUN", "r2").go().exits(1);
    let told = env.nietz(["runs", "prune", "--status", "failed"]).go().exits(0).stdout;
    assert!(told.contains("1 run; with --yes it is removed"), "{told}");
}
