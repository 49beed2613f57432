//! What an author sees when a flow goes wrong: the file, the line, the line's text, and nothing of the host's.

use insta::assert_snapshot;
use nietz::host::ui::ending;
use nietz::lua::limits::FlowLimits;
use serde_json::json;

use crate::lua::bench::Bench;

/// Runs a flow and returns its error as the terminal prints it.
fn shown(bench: &Bench) -> String {
    let (result, _) = bench.run("flows/wrong.lua", json!({}), FlowLimits::default());
    let failure = result.expect_err("the flow fails");
    let text = ending::failure(&failure, &ending::without_colour);
    assert!(!text.contains("[nietz]"), "{text}");
    text.replace(&bench.path().canonicalize().expect("it is there").display().to_string(), "PACK")
}

fn body(body: &str) -> String {
    let bench = Bench::new();
    bench.file("flows/wrong.lua", flow(body));
    shown(&bench)
}

fn flow(body: &str) -> String {
    format!(
        "local nietz = require(\"@nietz\")\nlocal llm = require(\"@nietz/llm\")\nlocal task = require(\"@nietz/task\")\n\
         return nietz.flow {{ name = \"wrong\", summary = \"Wrong\", permissions = {{ llm = true }}, run = function()\n\
         {body}\nend }}\n"
    )
}

#[test]
fn a_syntax_error() {
    assert_snapshot!(body("  local x = = 1"), @r#"
    error[flow-invalid]: Expected identifier when parsing expression, got '='
      --> PACK/flows/wrong.lua:5
        |
      5 |   local x = = 1
        |
    "#);
}

#[test]
fn an_index_of_nil() {
    assert_snapshot!(body("  local reply = nil\n  return reply.text"), @r#"
    error[flow-error]: attempt to index nil with 'text'
      --> PACK/flows/wrong.lua:6
        |
      6 |   return reply.text
        |
    "#);
}

#[test]
fn an_error_in_a_nested_module() {
    let bench = Bench::new();
    bench.file("flows/wrong.lua", flow("  return require(\"./wrong/room\").enter(3)"));
    bench.file("flows/wrong/room.lua", "local shelf = require(\"./shelf\")\nreturn { enter = shelf.take }\n");
    bench.file("flows/wrong/shelf.lua", "return {\n  take = function(n)\n    return n + {}\n  end,\n}\n");
    assert_snapshot!(shown(&bench), @r#"
    error[flow-error]: attempt to perform arithmetic (add) on number and table
      --> PACK/flows/wrong/shelf.lua:3
        |
      3 |     return n + {}
        |
      - called from flows/wrong.lua:5, in `run`
    "#);
}

#[test]
fn a_syntax_error_in_a_module() {
    let bench = Bench::new();
    bench.file("flows/wrong.lua", flow("  return require(\"./wrong/room\")"));
    bench.file("flows/wrong/room.lua", "return {\n  enter = function(\n}\n");
    assert_snapshot!(shown(&bench), @r#"
    error[flow-invalid]: Expected identifier when parsing variable name, got '}'
      --> PACK/flows/wrong/room.lua:3
        |
      3 | }
        |
      - called from flows/wrong.lua:5, in `run`
    "#);
}

#[test]
fn an_error_that_is_a_table() {
    assert_snapshot!(body("  error { reason = \"no votes\", count = 0 }"), @r#"
    error[flow-error]: the flow raised {"count":0,"reason":"no votes"}
      --> PACK/flows/wrong.lua:5
        |
      5 |   error { reason = "no votes", count = 0 }
        |
    "#);
    assert_snapshot!(body("  nietz.fail(\"there is nothing to vote on\", \"give two options\")"), @r#"
    error[flow-error]: there is nothing to vote on
      --> PACK/flows/wrong.lua:5
        |
      5 |   nietz.fail("there is nothing to vote on", "give two options")
        |
    hint: give two options
    "#);
}

#[test]
fn an_unknown_field() {
    assert_snapshot!(body("  return llm.chat { promt = \"hello\" }"), @r#"
    error[request-invalid]: llm.chat has no field `promt`
      --> PACK/flows/wrong.lua:5
        |
      5 |   return llm.chat { promt = "hello" }
        |
    hint: did you mean `prompt`?
    "#);
}

#[test]
fn an_error_in_a_branch() {
    assert_snapshot!(
        body("  task.all {\n    good = function() return 1 end,\n    bad = function()\n      error(\"no\")\n    end,\n  }"),
        @r#"
    error[flow-error]: no
      --> PACK/flows/wrong.lua:8
        |
      8 |       error("no")
        |
      - called from flows/wrong.lua:5, in `run`
    "#
    );
}

#[test]
fn an_error_of_the_stock_library() {
    assert_snapshot!(body("  return string.find(\"a\", \"[\")"), @r#"
    error[flow-error]: malformed pattern (missing ']')
      --> PACK/flows/wrong.lua:5
        |
      5 |   return string.find("a", "[")
        |
    "#);
}

#[test]
fn an_error_in_a_migration() {
    let bench = Bench::new();
    bench.file("notes/a.yaml", "version: \"1\"\nslug: a\n");
    bench.file(
        "flows/wrong.lua",
        r#"local nietz = require("@nietz")
local documents = require("@nietz/documents")
return nietz.flow {
  name = "wrong",
  summary = "Wrong",
  collections = {
    notes = {
      path = "notes/{slug}.yaml",
      schema = { type = "object" },
      version = {
        field = "/version",
        current = "2",
        migrations = {
          ["1"] = function(doc)
            return doc.missing.field
          end,
        },
      },
    },
  },
  run = function()
    return documents.collection("notes"):load("a")
  end,
}
"#,
    );
    assert_snapshot!(shown(&bench), @r#"
    error[flow-error]: notes/a.yaml: attempt to index nil with 'field'
      --> PACK/flows/wrong.lua:15
         |
      15 |             return doc.missing.field
         |
      - called from flows/wrong.lua:22, in `run`
    "#);
}
