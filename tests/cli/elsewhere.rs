//! What a flow does with what came before it and goes where its user says: the result of another run as a param, a
//! document at any path of the workspace, and rules that only remark on something.

use insta::assert_snapshot;

use crate::support::env::Env;

const FLOW: &str = r#"
local nietz = require("@nietz")
local documents = require("@nietz/documents")
local function rules(doc)
  if doc.count > 90 then
    return { { pointer = "/count", message = "is too much" } }
  end
  return if doc.count > 9 then { { pointer = "/count", message = "is a lot", severity = "note" } } else {}
end
return nietz.flow {
  name = "votes", summary = "Votes",
  params = { count = { type = "integer", default = 3 }, fail = { type = "boolean", default = false } },
  collections = { votes = { path = "{*}", format = "yaml", rules = rules,
    schema = { type = "object", required = { "count" }, properties = { count = { type = "integer" } } } } },
  commands = { export = {
    summary = "Writes a run's result",
    params = { run = { type = "run", positional = true, required = true, order = 1 },
               file = { type = "string", positional = true, required = true, order = 2 } },
    run = function(ctx)
      return { from = ctx.params.run.run, path = documents.collection("votes"):save(ctx.params.run.result, { key = ctx.params.file }) }
    end,
  } },
  run = function(ctx)
    if ctx.params.fail then nietz.fail("no votes") end
    return { count = ctx.params.count }
  end,
}
"#;

const OTHER: &str =
    r#"return require("@nietz").flow { name = "other", summary = "Other", run = function() return 1 end }"#;

fn env() -> Env {
    Env::new().flow("votes", FLOW).flow("other", OTHER)
}

#[test]
fn a_command_takes_the_result_of_a_run_and_writes_it_where_the_user_says() {
    let env = env();
    env.run(["votes", "--count", "12"]).var("NIETZ_RUN", "first").go().exits(0);
    let ended = env.run(["votes", "export", "first", "out/new/votes.yaml"]).go();
    assert_eq!(ended.result(), serde_json::json!({"from": "first", "path": "out/new/votes.yaml"}));
    assert_eq!(env.read("out/new/votes.yaml"), "count: 12\n", "a note keeps nothing from being saved");
    // It stands in the journal: the run that it came from may go.
    std::fs::remove_dir_all(env.path(".nietz/runs/first")).expect("it can be removed");
    assert_eq!(env.resume().go().result()["from"], "first");
    let checked = env.nietz(["check", "--as", "votes:votes", "out/new/votes.yaml"]).go().exits(0);
    assert_snapshot!(checked.stdout, @r"
    note: is a lot
     --> out/new/votes.yaml:1:8
      |
    1 | count: 12
      |        ^^ /count
    ");
    let unknown = env.nietz(["check", "out/new/votes.yaml"]).go().exits(2);
    assert!(unknown.stderr.contains("belongs to no collection"), "{unknown:?}");
}

#[test]
fn only_a_run_of_the_same_flow_that_is_done_has_a_result_to_give() {
    let env = env();
    env.run(["other"]).var("NIETZ_RUN", "strange").go().exits(0);
    env.run(["votes", "--fail"]).var("NIETZ_RUN", "failed").go().exits(1);
    for (run, code, message) in [
        ("strange", 2, "strange is a run of other, not of votes"),
        ("failed", 2, "failed is not done: it has no result yet"),
        ("nobody", 2, "there is no run `nobody` here"),
    ] {
        let ended = env.run(["votes", "export", run, "a.yaml"]).go().exits(code);
        assert!(ended.stderr.contains(message), "{ended:?}");
    }
    assert!(!env.journal_path().exists(), "no run was begun");
}

#[test]
fn a_path_that_the_user_says_stays_in_the_workspace_and_its_document_is_valid() {
    let env = env();
    env.run(["votes"]).var("NIETZ_RUN", "few").go().exits(0);
    env.run(["votes", "--count", "91"]).var("NIETZ_RUN", "many").go().exits(0);
    for (number, (run, file, code)) in [
        ("few", "../a.yaml", "path-refused"),
        ("few", "/tmp/a.yaml", "path-refused"),
        ("few", ".git/config", "path-refused"),
        ("few", "nietz.yaml", "path-refused"),
        ("many", "a.yaml", "document-invalid"),
    ]
    .into_iter()
    .enumerate()
    {
        let ended = env.run(["votes", "export", run, file]).var("NIETZ_RUN", &format!("export-{number}")).go();
        assert_eq!(ended.failure(), code, "{file}: {ended:?}");
    }
    let files: Vec<String> = env.documents().into_keys().collect();
    assert_eq!(files, ["flows/other.lua", "flows/votes.lua"]);
    let plan = env.nietz(["run", "votes", "--plan"]).go().exits(0);
    assert!(plan.stdout.contains("reads and writes the file that you name (votes)"), "{}", plan.stdout);
}
